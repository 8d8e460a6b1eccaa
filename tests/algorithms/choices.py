#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The algorithms that whole models get at each instruction set level, held against choices.tsv: a change of choice is seen in review.

    choices.py DQRUN MODELS [--update]

MODELS is the folder that tests/models/make_models.py made. A row of choices.tsv is a node of a model, with a column for each level. The
levels of this processor are compared, or written by --update; columns of others stay. A level whose column is empty was never recorded on
such a processor: its cases are skipped. The last line is "N passed, N failed, N skipped": a case is a model at a level."""

import argparse
import csv
import json
import pathlib
import subprocess
import sys

PAGE = pathlib.Path(__file__).with_suffix(".tsv")
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
LEVELS = ["c", "sse41", "avx2", "avxvnni", "avx512", "avx512vnni", "avx512vbmi", "amx", "neon", "dotprod", "i8mm"]
MODELS = {"squeezenet": ("qdq_u8s8", "qdq_u16", "qop_u8s8", "dynamic", "float"), "shufflenet": ("qdq_u8s8", "qdq_u16", "dynamic", "float"),
          "qwen": ("int4_qdq", "int4_qop", "dynamic"), "gemma": ("int4_qdq", "dynamic")}


def models(folder):
    """Name, model and inputs."""
    for form in ("qdq", "qoperator", "dynamic"):
        yield f"digits/{form}", EXAMPLES / f"digits_{form}.onnx", EXAMPLES / "digits_test.npz"
    for name, forms in MODELS.items():
        for form in forms:
            yield f"{name}/{form}", folder / name / f"{form}.onnx", folder / name / "input_0.npz"


def choices(dqrun, model, inputs, level):
    """By node and operator the algorithm, of the steps that have one."""
    command = [dqrun, "bench", model, inputs, "--runs", "1", "--warmup", "0", "--profile", "--json", "--threads", "1", "--isa", level]
    steps = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["steps"]
    return {(step["node"], step["op"]): step["algorithm"] for step in steps if step["algorithm"]}


def read():
    """By model, node and operator: the algorithm of each level."""
    if not PAGE.exists():
        return {}
    with open(PAGE, newline="", encoding="utf-8") as file:
        return {(row["model"], row["node"], row["op"]): row for row in csv.DictReader(file, delimiter="\t")}


def write(found):
    with open(PAGE, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["model", "node", "op", *LEVELS], delimiter="\t", lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(row for row in found.values() if any(row.get(level) for level in LEVELS))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dqrun")
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    have = json.loads(subprocess.run([options.dqrun, "isa", "--json"], capture_output=True, check=True).stdout)
    levels = [level["name"] for level in have["levels"] if level["available"]]
    known, counts = read(), {"passed": 0, "failed": 0, "skipped": 0}
    recorded = {level for level in levels if any(row[level] for row in known.values())}
    found = {key: {**row, **dict.fromkeys(levels, "")} for key, row in known.items()}
    for name, model, inputs in models(options.models):
        for level in levels:
            if level not in recorded and not options.update:
                counts["skipped"] += 1
                continue
            chosen = choices(options.dqrun, model, inputs, level)
            expected = {key[1:]: row[level] for key, row in known.items() if key[0] == name and row[level]}
            for node in chosen.keys() | expected.keys():
                if chosen.get(node) != expected.get(node) and not options.update:
                    print(f"{name} at {level}: {node[0]} ({node[1]}) has {chosen.get(node)}, {PAGE.name} says {expected.get(node)}")
            counts["passed" if chosen == expected or options.update else "failed"] += 1
            for node, algorithm in chosen.items():
                row = found.setdefault((name, *node), {"model": name, "node": node[0], "op": node[1]})
                row[level] = algorithm
    if options.update:
        write(found)
    if not options.update:
        for level in set(levels) - recorded:
            print(f"{PAGE.name} has no choices at {level}: record them with --update")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
