#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of bench/results.md and the picture bench/summary.svg from bench/history.tsv.

    bench/report.py [--check]

Of each processor, number of threads, peer and case the newest row counts. A part of the page is between "<!-- NAME: written by
bench/report.py -->" and "<!-- end of NAME -->". With --check nothing is changed, and the exit code is 1 when something is stale.
"""

import argparse
import csv
import math
import pathlib
import sys

import plot

FOLDER = pathlib.Path(__file__).resolve().parent
PAGE, PICTURE = FOLDER / "results.md", FOLDER / "summary.svg"
BEGIN, END = "<!-- {}: written by bench/report.py -->\n", "<!-- end of {} -->\n"
MODELS = ("alexnet", "inception_v1", "minilm", "resnet50", "shufflenet", "squeezenet")
MACHINES = {"AVX2": "Intel(R) Xeon(R) Processor as AVX2", "AMX": "Intel(R) Xeon(R) Processor"}
PEERS = {"ONNX Runtime": "ONNX Runtime 1.32.0", "its exact mode": "ORT exact 1.32.0", "OpenVINO": "OpenVINO 2026.4.1"}
GROUPS = {"single operators": lambda case: case[0].isupper(),
          "whole models": lambda case: case.split()[0] in MODELS,
          "trained networks that packages ship": lambda case: case[0].islower() and case.split()[0] not in MODELS and " " in case}


class History:
    def __init__(self):
        with open(FOLDER / "history.tsv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        self.newest = {(r["processor"], r["threads"], r["peer"], r["case"]): r for r in rows}  # dates rise

    def ratio(self, machine, threads, peer, case):
        row = self.newest.get((MACHINES[machine], str(threads), PEERS[peer], case))
        return float(row["ratio"]) if row else None

    def cases(self, group=None):
        return sorted({key[3] for key in self.newest if key[0] in MACHINES.values() and (group is None or GROUPS[group](key[3]))})

    def mean(self, group, machine, threads, peer):
        """The geometric mean, and of how many cases."""
        logs = [math.log(ratio) for case in self.cases(group) if (ratio := self.ratio(machine, threads, peer, case))]
        return (math.exp(sum(logs) / len(logs)), len(logs)) if logs else (None, 0)


COLUMNS = [(machine, peer) for machine in MACHINES for peer in PEERS if (machine, peer) != ("AMX", "its exact mode")]


def cell(ratio):
    return "" if ratio is None else f"**{ratio:.2f}**" if ratio < 0.995 else f"{ratio:.2f}"


def head(first):
    yield f"| {first} | " + " | ".join(f"{machine}: {peer}" for machine, peer in COLUMNS) + " |"
    yield "| --- |" + " --- |" * len(COLUMNS)


# ---- The parts ------------------------------------------------------------------------------------------------------


def means(history):
    """Geometric means of the groups."""
    yield from head("cases")
    for group, threads in (("single operators", 1), ("whole models", 1), ("whole models", 2), ("trained networks that packages ship", 1)):
        found = [history.mean(group, machine, threads, peer) for machine, peer in COLUMNS]
        name = f"{max(count for _, count in found)} {group}" + (f", {threads} threads" if threads > 1 else "")
        yield f"| {name} | " + " | ".join(cell(mean) + (f" ({count})" if count else "") for mean, count in found) + " |"


def models(history):
    """Each form of each model."""
    yield from head("model and form")
    for case in history.cases("whole models"):
        yield f"| {case} | " + " | ".join(cell(history.ratio(machine, 1, peer, case)) for machine, peer in COLUMNS) + " |"


def behind(history):
    """All cases in which a peer is ahead."""
    yield "| case | threads | machine | peer | ratio |"
    yield "| --- | --- | --- | --- | --- |"
    rows = [(ratio, case, threads, machine, peer) for case in history.cases() for threads in (1, 2) for machine, peer in COLUMNS
            if (ratio := history.ratio(machine, threads, peer, case)) is not None and ratio < 0.995]
    for ratio, case, threads, machine, peer in sorted(rows, key=lambda r: (r[1:], r[0])):
        yield f"| {case} | {threads} | {machine} | {peer} | {ratio:.2f} |"


def operators(history):
    """Each operator."""
    yield from head("operator")
    for case in history.cases("single operators"):
        cells = [cell(history.ratio(machine, 1, peer, case)) for machine, peer in COLUMNS]
        if any(cells):  # a case may have rows of older peers only
            yield f"| {case} | " + " | ".join(cells) + " |"


PARTS = (means, models, behind, operators)


def picture(history):
    rows = []
    for group, threads in (("single operators", 1), ("whole models", 1), ("whole models", 2)):
        for machine in MACHINES:
            found = {peer: history.mean(group, machine, threads, peer)[0] for peer in PEERS if (machine, peer) in COLUMNS}
            count = max(history.mean(group, machine, threads, peer)[1] for peer in found)
            words = f"{count} {group}, {machine}" + (f", {threads} threads" if threads > 1 else "")
            rows.append({"case": words, "ms": 1, "peers": {peer: mean for peer, mean in found.items() if mean}})
    return plot.draw(rows, {peer: title for peer, title in PEERS.items()}, "geometric means, above 1 dqrun is faster")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    history, had = History(), PAGE.read_text(encoding="utf-8")
    text, drawn = had, picture(history)
    for part in PARTS:
        begin, end = BEGIN.format(part.__name__), END.format(part.__name__)
        front, _, rest = text.partition(begin)
        _, found, tail = rest.partition(end)
        assert found, f"bench/results.md has no part '{part.__name__}'"
        text = front + begin + "\n" + "\n".join(part(history)) + "\n\n" + end + tail
    stale = text != had or not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawn
    if options.check:
        print("bench/results.md or summary.svg is not up to date: run bench/report.py" if stale else "up to date")
        return 1 if stale else 0
    PAGE.write_text(text, encoding="utf-8")
    PICTURE.write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
