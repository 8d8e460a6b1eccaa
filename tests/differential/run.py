#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random graphs of quantized patterns: fused against as written, against the real-number formula, and against themselves
at every instruction set level with one thread and two.

    run.py [LIBRARY] [--cases N] [--minutes M] [--seed N] [--isa LEVEL]… [--keep FOLDER] [-v]

LIBRARY is libdqrun.so (default: that of build-test). A case is a seed: the same seed gives the same graph. What a row of
docs/rewrites.md allows is what passes; the largest difference of each row is printed at the end. A case that fails is
minimised, and a reproducer is left in FOLDER/SEED: model.onnx, in.npz, and command.txt, which says what differs.
The last line is "N passed, N failed, N skipped".
"""

import argparse
import multiprocessing
import pathlib
import re
import sys
import time

import numpy as np
import onnx

import graphs
import minimise
from judge import Judge
from library import Library

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "rewrites.md"
# of src/rewrite: what is no pass and no part of one
INFRASTRUCTURE = {"match.c", "rewriter.c", "verify.c"}
CHUNK = 50
CHUNK_SECONDS = 300


def read_rows(text):
    """By name of a row its bound: 0 for exact to the bit, else quanta, or a share of the largest float. Results that are
    the formula's, or the graph's as written, are less than one quantum from one of them."""
    rows = {}
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip("| ").split("|")]
        if line.startswith("| ") and len(cells) == 5 and cells[0] != "pattern" and (found := re.match(r"exact|([0-9.e-]+) ", cells[2])):
            rows[cells[0]] = 0.5 if cells[2] == "exact to the formula" else float(found.group(1) or 0)
    return rows


def check_table(text):
    """Passes that have no row, and rows that no block measures and that name no other test."""
    problems = [f"{path.name} has no row in docs/rewrites.md" for path in sorted((ROOT / "src" / "rewrite").glob("*.c"))
                if path.name not in INFRASTRUCTURE and f"`{path.name}`" not in text]
    used = set(re.findall(r'"([A-Za-z0-9 -]+)"', pathlib.Path(graphs.__file__).read_text(encoding="utf-8")))
    return problems + [f"row {row!r} is measured by no block and no pattern of tests/fusion" for row in read_rows(text)
                       if row not in used and not re.search(rf"^\| {re.escape(row)} \|.*tests/fusion", text, re.M)]


def judge_seed(judge, seed):
    graph = graphs.draw(seed)
    return graph, judge.problems(graph.model(), graph.feeds, graph.rows)


def reproduce(judge, graph, problems, folder, options):
    """Writes a small model that still has the first problem."""
    model, feeds = minimise.shrink(judge, graph.model(), graph.feeds, graph.rows, problems[0])
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    np.savez(folder / "in.npz", **feeds)
    left = judge.problems(model, feeds, graph.rows) or problems
    command = f"dqrun {folder}/model.onnx {folder}/in.npz -o fused.npz; dqrun … --no-fuse -o written.npz"
    text = "\n".join(f"{name}: {what}" for name, what in left)
    (folder / "command.txt").write_text(f"{command}\n# run.py --seed {graph.seed} --cases 1 {options.library}\n{text}\n",
                                        encoding="utf-8")


def work(options, seeds, pipe):
    """In a process of its own: ("begin", seed), then ("end", seed, problems) of each, and the rows' figures."""
    judge = Judge(Library(options.library), options.rows, options.levels)
    deadline = time.monotonic() + CHUNK_SECONDS
    for seed in seeds:
        pipe.send(("begin", seed))
        graph, problems = judge_seed(judge, seed)
        if problems and options.keep and time.monotonic() < deadline:
            reproduce(judge, graph, problems, options.keep / str(seed), options)
        pipe.send(("end", seed, problems))
    pipe.send(("figures", judge.largest, judge.tried))


def run_chunk(options, seeds, figures):
    """Yields (seed, problems); a process that dies or hangs is a problem of the case that it was at."""
    while seeds:
        mine, theirs = multiprocessing.Pipe(False)
        process = multiprocessing.Process(target=work, args=(options, seeds, theirs), daemon=True)
        process.start()
        theirs.close()
        at = seeds[0]
        try:
            while True:
                if not mine.poll(CHUNK_SECONDS):
                    process.kill()
                    break
                message = mine.recv()
                if message[0] == "begin":
                    at = message[1]
                elif message[0] == "end":
                    yield message[1:]
                    seeds = [s for s in seeds if s > message[1]]
                else:
                    for row, worst in message[1].items():
                        figures[row] = (max(figures[row][0], worst), figures[row][1] + message[2][row])
        except EOFError:
            pass
        process.join()
        if seeds:
            yield at, [("", f"the process ended with {process.exitcode}")]
            seeds = [s for s in seeds if s > at]


def main():
    parser = argparse.ArgumentParser(description="Random quantized graphs: fused, as written, and the real-number formula.")
    parser.add_argument("library", nargs="?", type=pathlib.Path, default=ROOT / "build-test" / "src" / "libdqrun.so")
    parser.add_argument("--cases", type=int, default=1500)
    parser.add_argument("--minutes", type=float, help="go on for this long, whatever the number of cases")
    parser.add_argument("--seed", type=int, default=1, help="of the first case")
    parser.add_argument("--isa", action="append", help="instruction set levels (default: all that the processor has)")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for minimised reproducers")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every failure")
    options = parser.parse_args()
    text = TABLE.read_text(encoding="utf-8")
    options.rows, options.levels = read_rows(text), options.isa or Library(options.library).levels()
    problems = check_table(text)
    passed, failed, seed, begin = len(options.rows) - len(problems), len(problems), options.seed, time.monotonic()
    for problem in problems:
        print(f"FAIL {problem}")
    figures = {row: (0.0, 0) for row in options.rows}

    def more():
        if options.minutes is not None:
            return time.monotonic() - begin < 60 * options.minutes
        return seed < options.seed + options.cases

    while more():
        last = seed + CHUNK if options.minutes is not None else min(seed + CHUNK, options.seed + options.cases)
        for number, found in run_chunk(options, list(range(seed, last)), figures):
            passed, failed = passed + (not found), failed + bool(found)
            if found and (options.verbose or failed <= 20):
                print(f"FAIL seed {number}: " + "; ".join(f"{name} {what}" for name, what in found[:2]), flush=True)
        seed = last
    for row, (worst, tried) in figures.items():
        print(f"{row}: {tried} results, largest difference {worst:g}, bound {options.rows[row]:g}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
