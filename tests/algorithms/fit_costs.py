#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the rates of src/ops/costs.def on this processor.

    fit_costs.py [LIBRARY] [--table NAME]… [--isa LEVEL]… [--repeat N] [--save FILE | --load FILE]

Forces each algorithm on each problem of the grid, at each level of this processor and one thread, and fits by row and level
the rates (multiply-adds and bytes in a nanosecond, nanoseconds of a call) whose sum is nearest to the measured times, relative
errors squared. Prints lines for costs.def, which are to be read before they go there, and for each table and level how much
slower than the fastest row is what these costs choose: geometric mean and worst problem. LIBRARY should be a release build.
--save keeps the measured times, --load fits them anew."""

import argparse
import itertools
import json
import math
import pathlib
import re
import sys

import numpy as np

import grid
from check import ROOT, algorithms
from library import Failure, Library, Model

WORK = re.compile(r"([\d.e+-]+) us \(([\d.e+-]+) M multiply-adds, ([\d.e+-]+) KB moved, ([\d.e+-]+) calls\)")


def work_of(told):
    """Multiply-adds, bytes and calls that the planner told of the algorithm that it took."""
    for line in told:
        if found := re.search(r"algorithm [^;]*?, " + WORK.pattern, line):
            return [float(found[2]) * 1e6, float(found[3]) * 1e3, float(found[4])]
    raise RuntimeError(f"no algorithm is told of: {told}")


def measure(library, tables, levels, repeat):
    """Times: a row for each (algorithm, level, problem): id, level, label, work, nanoseconds."""
    times = []
    for table, rows in algorithms(library).items():
        if tables and table not in tables:
            continue
        for problem in grid.problems(table, small=False):
            with Model(library, problem.model) as model:
                for isa, (row, result) in itertools.product(levels, rows):
                    try:
                        told, seconds = model.time(problem.feeds, isa, row, repeat)
                    except Failure as failure:
                        if " is not applicable: " in str(failure):
                            continue
                        raise
                    times.append((row, isa, problem.label, result, work_of(told), seconds * 1e9))
        print(f"{table}: {len(times)} times", file=sys.stderr)
    return times


def fit(works, times):
    """Nonnegative rates of least squared relative error: the best of all subsets of the three terms."""
    a, best = np.asarray(works) / np.asarray(times)[:, None], None
    for count in (1, 2, 3):
        for terms in itertools.combinations(range(3), count):
            x, *_ = np.linalg.lstsq(a[:, terms], np.ones(len(times)), rcond=None)
            if (x > 0).all():
                full = np.zeros(3)
                full[list(terms)] = x
                error = np.square(a @ full - 1).sum()
                if best is None or error < best[0] * 0.98:
                    best = error, full
    return best


def number(x):
    return f"{x:.3g}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", nargs="?", default=str(ROOT / "build-test" / "src" / "libdqrun.so"))
    parser.add_argument("--table", action="append")
    parser.add_argument("--isa", action="append")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--save", type=pathlib.Path)
    parser.add_argument("--load", type=pathlib.Path)
    options = parser.parse_args()
    if options.load:
        times = json.loads(options.load.read_text(encoding="utf-8"))
    else:
        library = Library(options.library)
        times = measure(library, options.table, options.isa or library.levels(), options.repeat)
    if options.save:
        options.save.write_text(json.dumps(times), encoding="utf-8")
    costs, problems = {}, {}
    for row, isa in sorted({(t[0], t[1]) for t in times}):
        of_row = [t for t in times if (t[0], t[1]) == (row, isa)]
        error, x = fit([t[4] for t in of_row], [t[5] for t in of_row])
        table, name = row.split("=")
        macs, moved = (1 / v if v else math.inf for v in x[:2])
        print(f"DQ_COST({table}, {name}, {isa.upper()}, {number(min(macs, 1e4))}, {number(min(moved, 1e4))}, {number(x[2])})"
              f" /* {len(of_row)} times, error {math.sqrt(error / len(of_row)):.2f} */")
        for t in of_row:
            problems.setdefault((table, isa, t[2], t[3]), []).append((float(np.dot(x, t[4])), t[5], row))
    losses = {}
    for (table, isa, label, _), rows in problems.items():
        chosen = min(rows)
        losses.setdefault((table, isa), []).append((chosen[1] / min(r[1] for r in rows), label, chosen[2], min(rows, key=lambda r: r[1])[2]))
    for (table, isa), of_level in losses.items():
        mean = math.exp(sum(math.log(loss) for loss, *_ in of_level) / len(of_level))
        print(f"{table} {isa}: {mean:.3f} times the fastest row's time over {len(of_level)} problems, at most:")
        for loss, label, chosen, fastest in sorted(of_level, reverse=True)[:6]:
            print(f"    {loss:.2f} {label}: {chosen}, fastest {fastest}")


if __name__ == "__main__":
    main()
