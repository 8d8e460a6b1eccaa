#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/rewrites.md and docs/algorithms.md from what 'dqrun passes' and 'dqrun algorithms' print as JSON.

    tools/doc_tables.py DQRUN [--check]

A page has the table between two comments. With --check nothing is changed, and the exit code is 1 when a page is not up to date.
"""

import argparse
import json
import pathlib
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- {}: written by tools/doc_tables.py -->\n", "<!-- end of {} -->\n"


def passes(rows):
    yield "| pass | matches | becomes | exactness |"
    yield "| --- | --- | --- | --- |"
    for row in rows:
        yield f"| `{row['name']}` | {row['matches']} | {row['replacement']} | {row['exactness']} |"


def algorithms(rows):
    yield "| table | row | how | result |"
    yield "| --- | --- | --- | --- |"
    table = None
    for row in rows:
        if row["table"] != table:
            table = row["table"]
            yield f"| **`{table}`** | | {row['table_summary']} | |"
        yield f"| | `{row['id'].partition('=')[2]}` | {row['summary']} | {row['result']} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dqrun")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    stale = 0
    for page, command, table in (("rewrites.md", "passes", passes), ("algorithms.md", "algorithms", algorithms)):
        printed = json.loads(subprocess.run([options.dqrun, command, "--json"], capture_output=True, check=True).stdout)
        text = (DOCS / page).read_text(encoding="utf-8")
        begin, end = BEGIN.format(command), END.format(command)
        new = text.split(begin)[0] + begin + "\n".join(table(printed)) + "\n" + end + text.split(end)[1]
        if new != text and options.check:
            print(f"docs/{page} is not up to date: run tools/doc_tables.py {options.dqrun}")
            stale = 1
        elif new != text:
            (DOCS / page).write_text(new, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())
