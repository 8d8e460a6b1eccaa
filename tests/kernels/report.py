#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the kernels' test in every way there is and says of each line of kernels.def in which ways it was checked.

usage: report.py WAY=COMMAND…      such as  native=build/tests/kernels/test_kernels
                                            SIMDe=build/tests/kernels/test_kernels_simde
                                            "qemu=qemu-aarch64 -cpu max build-aarch64/tests/kernels/test_kernels"

A command prints what test_kernels.c says it prints. One test is one line of the list: it passes when some way checked it
and none failed, and is skipped, with `not at all`, when no way could. The last line is
`N passed, N failed, N skipped`.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

LIST = Path(__file__).resolve().parents[2] / "src" / "kernels" / "kernels.def"


def run(command):
    """The rows of one command: (instruction set, function, result), and what it wrote besides."""
    done = subprocess.run(shlex.split(command), capture_output=True, text=True)
    rows = [line.split(None, 2) for line in done.stdout.splitlines()]
    broken = not rows or any(len(row) != 3 for row in rows)
    bad = done.returncode != 0 and not any(row[-1] == "FAILED" for row in rows)
    return rows if not broken else [], done.stderr, broken or bad


def main(arguments):
    lines = re.findall(r"^DQ_KERNEL\(DQ_ISA_(\w+), .*, (\w+)\)$", LIST.read_text(), re.MULTILINE)
    kernels, failures = {(isa.lower(), function): {} for isa, function in lines}, 0
    for argument in arguments:
        way, command = argument.split("=", 1)
        rows, words, broken = run(command)
        if words:
            print(words, end="")
        if broken:
            print(f"{way}: {command} ended badly")
            failures += 1
        for isa, function, result in rows:
            ways = kernels.setdefault((isa, function), {})
            if result != "not here":
                ways[way] = result == "checked"
    counts = {"passed": 0, "failed": failures, "skipped": 0}
    for (isa, function), ways in kernels.items():
        names = ", ".join(way if good else f"{way} FAILED" for way, good in ways.items()) or "not at all"
        print(f"{isa:12} {function:40} {names}")
        counts["skipped" if not ways else "passed" if all(ways.values()) else "failed"] += 1
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
