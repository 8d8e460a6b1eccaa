# SPDX-License-Identifier: Apache-2.0
"""Planning grows linearly with the nodes, in every pattern: the steps that loading a model and its first run take,
counted by count_work, at N nodes and at 4N. Their exponent, log4 of the quotient, is held against a limit.

    check.py COUNT_WORK [PATTERN…] [--nodes N] [--all]
"""
import argparse
import math
import os
import subprocess
import sys
import tempfile

import onnx

import patterns

NODES, TIMES, LIMIT = 2000, 4, 1.1


def count(tool, folder, name, nodes):
    path = os.path.join(folder, f"{name}-{nodes}.onnx")
    onnx.save(patterns.PATTERNS[name](nodes), path)
    done = subprocess.run([tool, path], capture_output=True, text=True, timeout=600)
    os.unlink(path)
    if done.returncode:
        return None, done.stderr.strip() or f"signal {-done.returncode}"
    return [int(part) for part in done.stdout.split()[-2:]], None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool")
    parser.add_argument("patterns", nargs="*", help="all of them unless given")
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--all", action="store_true", help="print the patterns that pass, too")
    options = parser.parse_intermixed_args()
    failed = 0
    names = options.patterns or list(patterns.PATTERNS)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            few, why = count(options.tool, folder, name, options.nodes)
            many, why_many = count(options.tool, folder, name, TIMES * options.nodes)
            if why or why_many:
                print(f"{name}: {why or why_many}")
                failed += 1
                continue
            exponents = [math.log(b / a, TIMES) for a, b in zip(few, many)]
            good = max(exponents) <= LIMIT
            failed += not good
            if options.all or not good:
                print(f"{name}: load {exponents[0]:.3f}, first run {exponents[1]:.3f} "
                      f"({many[0]} and {many[1]} steps at {TIMES * options.nodes} nodes)")
    print(f"{len(names) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
