#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bring expected.tsv up to date with a report of dqrun-conformance, or check a report against it.

expected.tsv has a header and one row a node test: case, pass or skip, reason. A `pass` row has no reason; a
`skip` row says why the case is not expected to pass. Reasons that begin with "operator not implemented:"
are kept by this script; every other reason is somebody's, and stays as it is while the case does not pass.

REPORT is what `dqrun-conformance DIR --report FILE.tsv` writes: tab-separated, a header line first, with the columns
    case     name of the case's folder
    op       operator under test
    status   pass, fail or skip
    seconds  time of the case
    message  why it failed or was skipped, else empty

A case that passes becomes `pass`. A case that is `pass` in expected.tsv and does not pass in the report is named and
keeps its row, so that the loss stays visible until it is mended or the row is edited by hand. Cases that the report
does not have keep their rows; cases that expected.tsv does not have are added.

Exit codes: 0 nothing lost, 1 a case that was expected to pass did not (with --check also: a case passes
that was not expected to, or the two do not hold the same cases), 2 usage or an unreadable file.
"""

import argparse
import sys
from pathlib import Path

EXPECTED = Path(__file__).with_name("expected.tsv")
EXPECTED_HEADER = ["case", "expected", "reason"]
REPORT_HEADER = ["case", "op", "status", "seconds", "message"]
NOT_IMPLEMENTED = "operator not implemented:"


def fail(text):
    print(f"update_expected.py: {text}", file=sys.stderr)
    sys.exit(2)


def read_table(path, header, column, allowed):
    """Rows of a table by their first column. Only `column` holds one of a few words, so only it is checked."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").removesuffix("\n").split("\n")
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    if lines[0].split("\t") != header:
        fail(f"{path}: line 1 is not the header {' '.join(header)}")
    rows = {}
    for number, line in enumerate(lines[1:], 2):
        row = line.split("\t")
        if len(row) != len(header):
            fail(f"{path}: line {number} has {len(row)} columns, expected {len(header)}")
        if row[column] not in allowed:
            fail(f"{path}: line {number} has '{row[column]}', expected one of {', '.join(allowed)}")
        if row[0] in rows:
            fail(f"{path}: line {number} repeats the case {row[0]}")
        rows[row[0]] = row
    return rows


def operators(graph):
    """Names of the operators in a graph and in the graphs inside its nodes."""
    names = set()
    for node in graph.node:
        names.add(f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type)
        for attribute in node.attribute:
            for inner in [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]:
                names |= operators(inner)
    return names


def operators_of_cases(data, cases):
    """Operators of each case that has a model below the folder `data`."""
    try:
        import onnx
    except ImportError as error:
        fail(f"{error}; --data needs the Python package onnx")
    found = {}
    for case in cases:
        model = data / case / "model.onnx"
        if model.is_file():
            found[case] = operators(onnx.load(model).graph)
    if not found:
        fail(f"{data}: holds the model of no case")
    return found


def merge(expected, report):
    """Return (new rows, cases lost). `expected` is {case: [case, pass|skip, reason]} and is not changed."""
    rows = {case: list(row) for case, row in expected.items()}
    lost = []
    for case, _, status, _, message in report.values():
        old = rows.get(case)
        if status == "pass":
            rows[case] = [case, "pass", ""]
        elif old is None:
            rows[case] = [case, "skip", message or status]
        elif old[1] == "pass":
            lost.append(case)
    return rows, lost


def rewrite_reasons(rows, by_case, report):
    """Name in our own reasons only operators that no passing case has."""
    done = set()
    for case, row in rows.items():
        if row[1] == "pass":
            done |= by_case.get(case, set())
    for case, row in rows.items():
        if row[1] != "skip" or not row[2].startswith(NOT_IMPLEMENTED) or case not in by_case:
            continue
        missing = sorted(by_case[case] - done)
        if missing:
            row[2] = f"{NOT_IMPLEMENTED} {', '.join(missing)}"
        elif case in report:
            row[2] = report[case][4] or "does not pass"


def write_expected(path, rows):
    lines = ["\t".join(EXPECTED_HEADER)]
    lines += ["\t".join(rows[case]) for case in sorted(rows)]
    part = path.with_name(path.name + ".part")
    part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    part.replace(path)


def check(expected, report):
    """Print every difference between the report and expected.tsv; return the exit code."""
    problems = []
    for case, row in expected.items():
        if case not in report:
            problems.append(f"not in the report: {case}")
        elif row[1] == "pass" and report[case][2] != "pass":
            problems.append(f"expected to pass: {case}: {report[case][2]} {report[case][4]}".rstrip())
        elif row[1] == "skip" and report[case][2] == "pass":
            problems.append(f"passes, though not expected to: {case} ({row[2]})")
    problems += [f"not in expected.tsv: {case}" for case in report if case not in expected]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", metavar="REPORT", type=Path, help="report of dqrun-conformance (.tsv)")
    parser.add_argument("--check", action="store_true", help="compare only, and write nothing")
    parser.add_argument("--data", metavar="DIR", type=Path,
                        help="folder of make_node_tests.py, to name again the operators that are missing")
    parser.add_argument("--expected", metavar="FILE", type=Path, default=EXPECTED,
                        help="file to rewrite or check against (default: expected.tsv beside this script)")
    arguments = parser.parse_args()
    report = read_table(arguments.report, REPORT_HEADER, 2, ("pass", "fail", "skip"))
    expected = read_table(arguments.expected, EXPECTED_HEADER, 1, ("pass", "skip"))
    if arguments.check:
        return check(expected, report)
    rows, lost = merge(expected, report)
    if arguments.data:
        rewrite_reasons(rows, operators_of_cases(arguments.data, rows), report)
    write_expected(arguments.expected, rows)
    gained = sum(1 for case, row in rows.items() if row[1] == "pass" and expected.get(case, row)[1] == "skip")
    passing = sum(1 for row in rows.values() if row[1] == "pass")
    print(f"{len(rows)} cases, {passing} expected to pass ({gained} new), {len(lost)} lost")
    for case in lost:
        print(f"changed from pass to {report[case][2]}: {case}: {report[case][4]}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
