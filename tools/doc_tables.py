#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of pages that repeat what dqrun prints.

    tools/doc_tables.py DQRUN [--check]

- docs/rewrites.md from 'dqrun passes --json', docs/algorithms.md from 'dqrun algorithms --json' and the conditions in src/ops;
- docs/cli.md from the manual page, 'dqrun man'.

A page has each table between two comments. With --check nothing is changed, and the exit code is 1 when a page is not up to date.
"""

import argparse
import json
import pathlib
import re
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


def manual(roff):
    """The sections of a manual page: title -> [(term, text)], with the term "" for text before the first term."""
    sections, title, term_is_next = {}, "", False
    for line in roff.splitlines():
        if line.startswith((".SH ", ".SS ")):
            title = line[4:]
            sections[title] = [["", ""]]
        elif line == ".TP":
            term_is_next = True
        elif line == ".PP":
            sections[title].append(["", ""])
        elif term_is_next:
            sections[title].append([plain(line), ""])
            term_is_next = False
        elif title and not line.startswith("."):
            sections[title][-1][1] += plain(line) + " "
    return {title: [(term, text.strip()) for term, text in rows] for title, rows in sections.items()}


def plain(line):
    """A line of roff as text."""
    text = re.sub(r"\\f[BIR]|\\&", "", line).replace("\\-", "-").replace("\\(aq", "'").replace("\\(dq", '"').replace("\\e", "\\")
    return text.replace("...", "…")


def cell(text):
    """Text for a cell of a table: options as code; what looks like HTML, emphasis or a new cell is escaped."""
    return re.sub(r"(?<![\w-])--[a-z][\w-]*", r"`\g<0>`", re.sub(r"[|<*]", r"\\\g<0>", text))


def texts(rows):
    """The paragraphs before, between and after the terms."""
    return [text for term, text in rows if text and not term]


def two_columns(head, rows):
    yield f"| {head[0]} | {head[1]} |"
    yield "| --- | --- |"
    for term, text in rows:
        if term:
            yield f"| `{term}` | {cell(text)} |"


def json_documents(rows):
    first, *others = texts(rows)
    yield from (cell(first), "", *two_columns(("command", "document"), rows))
    for text in others:
        yield from ("", cell(text))


def options(sections):
    """A table for each section of options, with the commands that have the option."""
    for title, rows in sections.items():
        if title.endswith(" options"):
            yield from ("", f"### {title}", "", "| option | commands | meaning |", "| --- | --- | --- |")
            for term, text in rows[1:]:
                commands = re.search(r" \(([a-z, ]+)\)$", text)
                yield f"| `{term}` | {commands[1] if commands else 'all'} | {cell(text[:commands.start()] if commands else text)} |"
    yield ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dqrun")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()

    def printed(*command):
        return subprocess.run([arguments.dqrun, *command], capture_output=True, check=True, encoding="utf-8").stdout

    sections = manual(printed("man"))
    parts = (("rewrites.md", "passes", passes(json.loads(printed("passes", "--json")))),
             ("algorithms.md", "algorithms", algorithms(json.loads(printed("algorithms", "--json")))),
             ("cli.md", "commands", two_columns(("command", "what it does"), sections["COMMANDS"])),
             ("cli.md", "inputs", two_columns(("input", "gives"), sections["DESCRIPTION"])),
             ("cli.md", "options", options(sections)),
             ("cli.md", "batches", map(cell, texts(sections["BATCHES"]))),
             ("cli.md", "environment", two_columns(("variable", "effect"), sections["ENVIRONMENT"])),
             ("cli.md", "exit codes", two_columns(("exit code", "when"), sections["EXIT STATUS"])),
             ("cli.md", "json", json_documents(sections["JSON"])))
    stale, wrong = set(), False
    for page, name, lines in parts:
        text = (DOCS / page).read_text(encoding="utf-8")
        begin, end = BEGIN.format(name), END.format(name)
        new = text.split(begin)[0] + begin + "\n".join(lines) + "\n" + end + text.split(end)[1]
        if new != text and arguments.check:
            stale.add(page)
        elif new != text:
            (DOCS / page).write_text(new, encoding="utf-8")
    explained = set(re.findall(r"^\| `(\w+=\w+)` \| ", (DOCS / "algorithms.md").read_text(encoding="utf-8"), re.MULTILINE))
    for row in json.loads(printed("algorithms", "--json")):
        if row["id"] not in explained:
            print(f"docs/algorithms.md does not say when {row['id']} applies")
            wrong = True
    for page in sorted(stale):
        print(f"docs/{page} is not up to date: run tools/doc_tables.py {arguments.dqrun}")
    return 1 if stale or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
