#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of bench/results.md and the pictures beside it from bench/history.tsv and bench/accuracy.tsv.

    bench/report.py [--check]

Of each processor, number of threads, peer and case the newest row counts. A part of the page is between "<!-- NAME: written by
bench/report.py -->" and "<!-- end of NAME -->". With --check nothing is changed, and the exit code is 1 when something is stale.
"""

import argparse
import csv
import math
import pathlib
import statistics
import sys

import accuracy
import plot

FOLDER = pathlib.Path(__file__).resolve().parent
PAGE = FOLDER / "results.md"
BEGIN, END = "<!-- {}: written by bench/report.py -->\n", "<!-- end of {} -->\n"
MODELS = ("alexnet", "inception_v1", "minilm", "resnet50", "shufflenet", "squeezenet")
MACHINES = {"AVX2": "AMD EPYC (Zen 5) as AVX2", "AVX-VNNI": "AMD EPYC (Zen 5) as AVX-VNNI",
            "AVX-512 VNNI": "AMD EPYC (Zen 5) as AVX-512 VNNI", "AVX-512 VBMI": "AMD EPYC (Zen 5)",
            "AVX2, Zen 3": "AMD EPYC (Zen 3)", "AVX2, Xeon": "Intel(R) Xeon(R) Processor as AVX2",
            "AVX-512 VNNI, Xeon": "Intel(R) Xeon(R) Processor as AVX-512 VNNI",
            "AVX-512 VBMI, Xeon": "Intel(R) Xeon(R) Processor without AMX", "AMX": "Intel(R) Xeon(R) Processor"}
ORT, EXACT, OPENVINO, FLOAT, DEFAULT = "ONNX Runtime", "its exact mode", "OpenVINO", "float activations", "its own precision"
LLAMA, LLAMA_F32 = "llama.cpp", "float32 cache"
PEERS = {ORT: "ONNX Runtime 1.32.0", EXACT: "ORT exact 1.32.0", OPENVINO: "OpenVINO 2026.4.1", FLOAT: "OpenVINO float 2026.4.1",
         DEFAULT: "OpenVINO default 2026.4.1",
         LLAMA: "llama.cpp of llama-cpp-python-0.3.36", LLAMA_F32: "llama.cpp float32 cache of llama-cpp-python-0.3.36"}
EQUAL = "OpenVINO at equal accuracy"  # the faster of OpenVINO's three modes whose error is at most dqrun's (accuracy.py)
ONNX_PEERS = (ORT, EXACT, OPENVINO, FLOAT, DEFAULT, EQUAL)
GOALS = {ORT: (2.0, 1.0), EQUAL: (1.5, 1.0), LLAMA: (2.0, 1.5)}  # geometric mean, least
GROUPS = {"single operators": lambda case: case[0].isupper(),
          "whole models": lambda case: case.split()[0] in MODELS,
          "runs of a decoder": lambda case: case.startswith("decoder "),
          "trained networks that packages ship": lambda case: case[0].islower() and " " in case and case.split()[0] not in (*MODELS, "decoder")}
BEHIND = 0.995  # a ratio below it does not round to 1


def rows_of(name):
    with open(FOLDER / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


class History:
    def __init__(self):
        rows = rows_of("history.tsv")  # dates rise
        self.ratios = {(r["processor"], r["threads"], r["peer"], r["case"]): float(r["ratio"]) for r in rows}
        self.names = sorted({key[3] for key in self.ratios if key[0] in MACHINES.values()})
        self.decibels = {(r["processor"], r["engine"], r["case"]): float(r["sqnr_db"]) for r in rows_of("accuracy.tsv")}

    def sqnr(self, machine, engine, case):
        return self.decibels.get((MACHINES[machine], PEERS.get(engine, engine), case))

    def ratio(self, machine, threads, peer, case):
        if peer == EQUAL:
            found = [self.ratio(machine, threads, p, case) for p in (OPENVINO, FLOAT, DEFAULT) if self.is_as_accurate(machine, p, case)]
            return min((r for r in found if r is not None), default=None)
        return self.ratios.get((MACHINES[machine], str(threads), PEERS[peer], case))

    def is_as_accurate(self, machine, peer, case):
        """Without a measurement float32 counts as accurate, and OpenVINO's own precision does not."""
        theirs, ours = self.sqnr(machine, peer, case), self.sqnr(machine, "dqrun", case)
        return peer in (OPENVINO, FLOAT) if theirs is None or ours is None else accuracy.is_equal(theirs, ours)

    def cases(self, group=None):
        return [name for name in self.names if group is None or GROUPS[group](name)]

    def found(self, group, machine, threads, peer):
        """The ratios of a group by case, without those that are not measured."""
        ratios = {case: self.ratio(machine, threads, peer, case) for case in self.cases(group)}
        return {case: ratio for case, ratio in ratios.items() if ratio is not None}


def measured(history, groups=tuple(GROUPS), peers=tuple(PEERS)):
    """Each group, number of threads and machine with a measurement."""
    for group in groups:
        for threads in (1, 2):
            for machine in MACHINES:
                if any(history.found(group, machine, threads, peer) for peer in peers):
                    yield group, threads, machine


def cell(ratio):
    return "" if ratio is None else f"**{ratio:.2f}**" if ratio < BEHIND else f"{ratio:.2f}"


def head(*cells):
    yield "| " + " | ".join(cells) + " |"
    yield "|" + " --- |" * len(cells)


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def words(group, threads):
    return group + (f", {threads} threads" if threads > 1 else "")


# ---- The parts ------------------------------------------------------------------------------------------------------


def means(history):
    """Geometric means of the groups, in parentheses the number of cases."""
    yield from head("cases", "machine", *ONNX_PEERS)
    for group, threads, machine in measured(history, peers=ONNX_PEERS):
        found = [list(history.found(group, machine, threads, peer).values()) for peer in ONNX_PEERS]
        yield row(words(group, threads), machine, *(f"{cell(statistics.geometric_mean(r))} ({len(r)})" if r else "" for r in found))


def goals(history):
    """What dqrun is built for, and what it reaches; bold where it falls short."""
    yield from head("peer", "cases", "machine", "mean: goal", "reached", "least: goal", "reached", "case of the least")
    for peer, (mean, least) in GOALS.items():
        for group, threads, machine in measured(history, peers=(peer,)):
            found = history.found(group, machine, threads, peer)
            reached, worst = statistics.geometric_mean(found.values()), min(found, key=found.get)
            marks = [f"{x:.2f}" if x >= goal - 0.005 else f"**{x:.2f}**" for x, goal in ((reached, mean), (found[worst], least))]
            yield row(peer, words(group, threads), machine, f"{mean:.1f}", marks[0], f"{least:.1f}", marks[1], worst)


def pairs(history, group):
    """Ratios to ONNX Runtime and to OpenVINO in float32, of one thread, a column for each machine."""
    yield from head("case", *MACHINES)
    for case in history.cases(group):
        cells = []
        for machine in MACHINES:
            both = [history.ratio(machine, 1, peer, case) for peer in (ORT, OPENVINO)]
            cells.append("" if both == [None, None] else ", ".join(cell(r) or "–" for r in both))
        if any(cells):  # a case may have rows of older peers only
            yield row(case, *cells)


def models(history):
    """Each form of each model."""
    yield from pairs(history, "whole models")


def operators(history):
    """Each operator."""
    yield from pairs(history, "single operators")


def decibels(value):
    return "" if value is None else "equal" if value == math.inf else "other" if value == -math.inf else str(round(value))


def errors(history):
    """SQNR of each model in dB where OpenVINO may choose a lower precision: on the processor as it is."""
    machine, engines = "AVX-512 VBMI", ("dqrun", ORT, OPENVINO, FLOAT, DEFAULT)
    yield from head("model and form", *engines)
    for case in history.cases("whole models"):
        found = [history.sqnr(machine, engine, case) for engine in engines]
        if any(value is not None for value in found):
            yield row(case, *map(decibels, found))


def decoders(history):
    """llama.cpp's time by dqrun's, with its own type of cache and with dqrun's."""
    columns = [(machine, threads, peer) for peer in (LLAMA, LLAMA_F32) for _, threads, machine in measured(history, ("runs of a decoder",), (peer,))]
    yield from head("case", *(words(machine, threads) + (f", {peer}" if peer == LLAMA_F32 else "") for machine, threads, peer in columns))
    for case in history.cases("runs of a decoder"):
        yield row(case, *(cell(history.ratio(machine, threads, peer, case)) for machine, threads, peer in columns))


def behind_by_machine(history):
    """How many cases are behind, and the least ratio with its case."""
    peers = [*(p for p in PEERS if p != DEFAULT), DEFAULT]
    yield from head("machine", "threads", *peers)
    for machine in MACHINES:
        for threads in (1, 2):
            cells = []
            for peer in peers:
                found = history.found(None, machine, threads, peer)
                low = {case: ratio for case, ratio in found.items() if ratio < BEHIND}
                worst = min(low, key=low.get, default=None)
                cells.append("" if not found else f"0 of {len(found)}" if worst is None else f"{len(low)} of {len(found)}: {low[worst]:.2f} {worst}")
            if any(cells):
                yield row(machine, str(threads), *cells)


def marked(history, machine, peer, case, ratio):
    """A ratio with a mark where the peer's error was measured and is larger than dqrun's."""
    known = ratio is not None and history.sqnr(machine, peer, case) is not None
    return cell(ratio) + (" *" if known and not history.is_as_accurate(machine, peer, case) else "")


def behind(history):
    """All cases in which a peer is ahead, and by how much on each machine."""
    yield from head("case", "threads", "peer", *MACHINES)
    for case in history.cases():
        for threads in (1, 2):
            for peer in PEERS:
                found = [history.ratio(machine, threads, peer, case) for machine in MACHINES]
                if any(ratio is not None and ratio < BEHIND for ratio in found):
                    yield row(case, str(threads), peer, *(marked(history, machine, peer, case, ratio) for machine, ratio in zip(MACHINES, found)))


PARTS = (means, goals, models, errors, decoders, behind_by_machine, behind, operators)


# ---- The pictures ---------------------------------------------------------------------------------------------------


def summary(history):
    shown, rows = (ORT, EQUAL, LLAMA), []
    for group, threads, machine in measured(history, ("single operators", "whole models", "runs of a decoder")):
        found = {peer: history.found(group, machine, threads, peer).values() for peer in shown}
        rows.append({"case": f"{max(map(len, found.values()))} {words(group, threads)}, {machine}", "ms": 1,
                     "peers": {peer: statistics.geometric_mean(ratios) for peer, ratios in found.items() if ratios}})
    return plot.draw(rows, {p: p for p in shown}, "geometric means, above 1 dqrun is faster")


def operators_of(history, machine):
    shown = (ORT, EXACT, OPENVINO)
    rows = [{"case": case, "ms": 1, "peers": {peer: ratio for peer in shown if (ratio := history.ratio(machine, 1, peer, case))}}
            for case in history.cases("single operators")]
    return plot.draw([r for r in rows if r["peers"]], {p: PEERS[p] for p in shown}, f"single operators, {machine}, 1 thread")


def picture_name(machine):
    return "ratios-" + machine.lower().replace(", ", "-").replace(" ", "-") + ".svg"


def pictures(history):
    yield FOLDER / "summary.svg", summary(history)
    for machine in MACHINES:
        if any(history.found("single operators", machine, 1, peer) for peer in PEERS):
            yield FOLDER / picture_name(machine), operators_of(history, machine)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    history, text = History(), PAGE.read_text(encoding="utf-8")
    for part in PARTS:
        begin, end = BEGIN.format(part.__name__), END.format(part.__name__)
        front, _, rest = text.partition(begin)
        _, found, tail = rest.partition(end)
        assert found, f"bench/results.md has no part '{part.__name__}'"
        text = front + begin + "\n" + "\n".join(part(history)) + "\n\n" + end + tail
    wanted = {PAGE: text, **dict(pictures(history))}
    stale = [path.name for path, content in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != content]
    if options.check:
        print(f"run bench/report.py: {', '.join(stale)}" if stale else "up to date")
        return 1 if stale else 0
    for path, content in wanted.items():
        path.write_text(content, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
