#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the rates of src/ops/costs.def on this processor.

    fit_costs.py [LIBRARY] [--table NAME]… [--isa LEVEL]… [--repeat N] [--save FILE | --load FILE]

Forces each algorithm on each problem of the grid, at each level of this processor and one thread. Rates are multiply-adds and bytes in a
nanosecond, and nanoseconds of a call. They begin as those of costs.def, or as those of least squared relative error for each row. Then a
random search changes one rate after the other, and keeps changes after which the chosen rows take less time.

Prints lines for costs.def, which are to be read before they go there. For each table and level it tells how much slower than the fastest
rows the chosen ones are, with the rates of costs.def and with the new ones: geometric mean and worst problems. LIBRARY should be a release
build. --save keeps the measured times, --load fits them anew."""

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
from choices import LEVELS
from library import Failure, Library, Model

ARM = LEVELS.index("neon")  # levels of x86-64 are before it
COST = re.compile(r"DQ_COST\((\w+), (\w+), (\w+), ([\d.e+]+), ([\d.e+]+), ([\d.e+]+)\)")
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
    """Nanoseconds of a multiply-add, a byte and a call, of least squared relative error: the best of all subsets of the three terms."""
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


def as_in_file(nanoseconds):
    """The numbers of a line of costs.def: multiply-adds and bytes in a nanosecond, nanoseconds of a call; two digits of each."""
    macs, moved, call = (float(f"{x:.2g}") for x in (*(min(1 / max(v, 1e-9), 1e4) for v in nanoseconds[:2]), nanoseconds[2]))
    return macs, moved, call


def rounded(nanoseconds):
    """Nanoseconds as they follow from the line, for one row or several."""
    if nanoseconds.ndim > 1:
        return np.array([rounded(row) for row in nanoseconds])
    macs, moved, call = as_in_file(nanoseconds)
    return np.array([1 / macs, 1 / moved, call])


class Problems:
    """The problems of a table at a level. A row is an algorithm; nanoseconds of rows that do not apply are infinite."""

    def __init__(self, times):
        keys = list(dict.fromkeys((label, result) for _, _, label, result, _, _ in times))
        self.labels = [label for label, _ in keys]
        self.rows = sorted({t[0] for t in times})
        self.works, self.times = np.zeros((len(keys), len(self.rows), 3)), np.full((len(keys), len(self.rows)), np.inf)
        for row, _, label, result, work, ns in times:
            at = keys.index((label, result)), self.rows.index(row)
            self.works[at], self.times[at] = work, ns
        self.applies, self.least = np.isfinite(self.times), self.times.min(axis=1)

    def expected(self, rates):
        return np.where(self.applies, (self.works * rates).sum(axis=2), np.inf)

    def losses(self, expected):
        """Times of the chosen rows by those of the fastest, and the chosen rows."""
        chosen = expected.argmin(axis=1)
        return self.times[np.arange(len(chosen)), chosen] / self.least, chosen

    def score(self, expected):
        """What the search minimizes: the mean loss, with small weights for the worst loss and for errors of the expected times."""
        losses = np.log(self.losses(expected)[0])
        errors = np.log(expected[self.applies] / self.times[self.applies])
        return losses.mean() + 0.02 * losses.max() + 0.002 * np.square(errors).mean()

    def least_squares(self):
        return np.array([fit(self.works[self.applies[:, i], i], self.times[self.applies[:, i], i])[1] for i in range(len(self.rows))])

    def search(self, *starts, steps=20000):
        """The best rates that it comes to from the best of some rates."""
        rates = min(map(rounded, starts), key=lambda rates: self.score(self.expected(rates)))
        random, expected = np.random.default_rng(1), self.expected(rates)
        best = self.score(expected)
        for _ in range(steps):
            row, term = random.integers(len(self.rows)), random.integers(3)
            changed, before = expected.copy(), rates[row].copy()
            rates[row, term] *= np.exp(random.normal(0, 0.25))
            rates[row] = rounded(rates[row])
            changed[:, row] = np.where(self.applies[:, row], self.works[:, row] @ rates[row], np.inf)
            score = self.score(changed)
            if score < best:
                best, expected = score, changed
            else:
                rates[row] = before
        return rates

    def report(self, title, expected):
        losses, chosen = self.losses(expected)
        print(f"{title}: {math.exp(np.log(losses).mean()):.3f} times the fastest row's time over {len(losses)} problems, at most:")
        for i in losses.argsort()[::-1][:6]:
            print(f"    {losses[i]:.2f} {self.labels[i]}: {self.rows[chosen[i]]}, fastest {self.rows[self.times[i].argmin()]}")


def rates_of_file(rows, isa):
    """Nanoseconds of costs.def for rows at a level, which has those of the next lower one where it has none of its own."""
    end = LEVELS.index(isa) + 1
    levels = [name.upper() for name in (LEVELS[:end] if end <= ARM else ["c", *LEVELS[ARM:end]])]
    text = (ROOT / "src" / "ops" / "costs.def").read_text(encoding="utf-8")
    found = {(f"{table}={row}", level): list(map(float, rates)) for table, row, level, *rates in COST.findall(text)}
    rates = [next(found[row, level] for level in reversed(levels) if (row, level) in found) for row in rows]
    return np.array([(1 / macs, 1 / moved, call) for macs, moved, call in rates])


def line_of(row, isa, rates):
    table, name = row.split("=")
    return f"DQ_COST({table}, {name}, {isa.upper()}, {', '.join(f'{x:g}' for x in as_in_file(rates))})"


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
    for table, isa in dict.fromkeys((t[0].split("=")[0], t[1]) for t in times):
        problems = Problems([t for t in times if t[0].startswith(f"{table}=") and t[1] == isa])
        before = rates_of_file(problems.rows, isa)
        rates = problems.search(problems.least_squares(), before)
        for row, of_row in zip(problems.rows, rates):
            print(line_of(row, isa, of_row))
        problems.report(f"{table} {isa}, costs.def", problems.expected(before))
        problems.report(f"{table} {isa}, fitted", problems.expected(rates))


if __name__ == "__main__":
    main()
