#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the dqrun command line: exact stdout, stderr, files and exit codes.

usage: run.py DQRUN [MODULE…]

Needs the Python packages onnx, numpy and ml_dtypes. The last line is 'N passed, N failed, N skipped'; the exit
code is 1 when something failed."""

import sys
import tempfile

import file_cases
import help_cases
import json_cases
import result_cases
import terminal_cases
import transcript_cases
import usage_cases
import weight_cases
from harness import Harness

MODULES = {"file": file_cases, "help": help_cases, "json": json_cases, "result": result_cases, "terminal": terminal_cases,
           "transcript": transcript_cases, "usage": usage_cases, "weight": weight_cases}


def main(arguments):
    if not arguments or any(name not in MODULES for name in arguments[1:]):
        sys.exit(f"usage: run.py DQRUN [{'|'.join(MODULES)}]…")
    counts = [0, 0, 0]
    for name in arguments[1:] or MODULES:
        with tempfile.TemporaryDirectory(prefix="dqrun-cli-") as folder:
            h = Harness(arguments[0], folder)
            MODULES[name].run(h)
            counts = [a + b for a, b in zip(counts, (h.passed, h.failed, h.skipped))]
    print(f"{counts[0]} passed, {counts[1]} failed, {counts[2]} skipped")
    return 1 if counts[1] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
