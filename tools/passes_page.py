#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of passes in docs/rewrites.md from what 'dqrun passes --json' prints.

    tools/passes_page.py DQRUN [--check]

With --check it changes nothing, and the exit code is 1 when the page is not up to date.
"""

import argparse
import json
import pathlib
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "rewrites.md"
BEGIN, END = "<!-- passes: written by tools/passes_page.py -->\n", "<!-- end of passes -->\n"


def table(passes):
    lines = ["| pass | matches | becomes | exactness |", "| --- | --- | --- | --- |"]
    lines += [f"| `{p['name']}` | {p['matches']} | {p['replacement']} | {p['exactness']} |" for p in passes]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dqrun")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    passes = json.loads(subprocess.run([options.dqrun, "passes", "--json"], capture_output=True, check=True).stdout)
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    new = head + BEGIN + table(passes) + END + rest.split(END)[1]
    if options.check:
        if new != text:
            print(f"docs/{PAGE.name} is not up to date: run tools/passes_page.py {options.dqrun}")
        return int(new != text)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
