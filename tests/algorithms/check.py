#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every algorithm of every table, forced on each problem of a grid that it applies to, at every instruction set level and
with one thread and two: rows of one result must give the same bits.

    check.py [LIBRARY] [--table NAME]… [-v]

Rows of another result (Winograd beside direct) are held to a bound against the first: the problem's, times the largest magnitude.
The last line is "N passed, N failed, N skipped"; a case is a row, a problem, a level and a number of threads."""

import argparse
import ctypes
import pathlib
import sys

import numpy as np

import grid

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "differential"))
from library import Failure, Library, Model  # noqa: E402

class AlgorithmInfo(ctypes.Structure):
    """dq_algorithm_info."""
    _fields_ = [("size", ctypes.c_size_t), ("id", ctypes.c_char_p), ("summary", ctypes.c_char_p), ("table", ctypes.c_char_p),
                ("table_summary", ctypes.c_char_p), ("result", ctypes.c_size_t)]


def algorithms(library):
    """By table its rows: (id, result)."""
    found = {}
    library.lib.dq_algorithm_count.restype = ctypes.c_size_t
    for i in range(library.lib.dq_algorithm_count()):
        info = AlgorithmInfo(size=ctypes.sizeof(AlgorithmInfo))
        library.call("algorithm_describe", ctypes.c_size_t(i), ctypes.byref(info))
        found.setdefault(info.table.decode(), []).append((info.id.decode(), info.result))
    return found


def agrees(y, reference, same_bits, bound):
    if same_bits:
        return y.dtype == reference.dtype and y.tobytes() == reference.tobytes()
    difference = np.abs(y.astype(np.float64) - reference.astype(np.float64)).max(initial=0)
    return difference <= bound * np.abs(reference).max(initial=0)


class Checker:
    def __init__(self, library, verbose):
        self.library, self.verbose = library, verbose
        self.passed = self.failed = 0
        self.applied = {}

    def check(self, problem, row, result, references, model):
        """One row on one problem; the first one to give a result is the reference of that result."""
        for isa in self.library.levels():
            for threads in (1, 2):
                try:
                    outputs, told = model.run(problem.feeds, problem.outputs, isa, threads, algorithms=row,
                                              honor_accuracy_level=True)
                except Failure as failure:
                    if " is not applicable: " in str(failure):
                        continue
                    raise
                assert any(f"algorithm {row}, forced" in line for line in told), f"{problem.label} is not computed by {row}: {told}"
                y = outputs["y"]
                reference = references.setdefault(result, y)
                first = next(iter(references.values()))
                good = agrees(y, reference, True, 0) and agrees(y, first, result == next(iter(references)), problem.bound)
                self.applied[row] = self.applied.get(row, 0) + 1
                self.passed += good
                self.failed += not good
                if not good:
                    print(f"FAIL {row} at {isa}, {threads} threads: {problem.label}: results differ from those of the other rows")
                elif self.verbose:
                    print(f"{row} {isa} {threads} {problem.label}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", nargs="?", default=str(ROOT / "build-test" / "src" / "libdqrun.so"))
    parser.add_argument("--table", action="append")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    library = Library(options.library)
    checker = Checker(library, options.verbose)
    for table, rows in algorithms(library).items():
        if options.table and table not in options.table:
            continue
        if table not in grid.TABLES:
            print(f"FAIL table {table} has no problems in grid.py")
            checker.failed += 1
            continue
        for problem in grid.problems(table):
            references = {}
            with Model(library, problem.model) as model:
                for row, result in rows:
                    checker.check(problem, row, result, references, model)
        for row, _ in rows:
            if not checker.applied.get(row):
                print(f"FAIL {row} applies to no problem of the grid")
                checker.failed += 1
    for row, cases in checker.applied.items():
        print(f"{row:40} {cases} cases")
    print(f"{checker.passed} passed, {checker.failed} failed, 0 skipped")
    return 1 if checker.failed else 0


if __name__ == "__main__":
    sys.exit(main())
