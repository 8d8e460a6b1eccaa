#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/coverage.md: every operator version and its element types, from the registry and the schemas (`dqrun ops
--json`), and what the conformance runner found (its --report as .tsv, and the results of tests/quant_reference).

usage: coverage.py DQRUN NODE_TESTS.tsv [--check]

--check: writes nothing; exit code 1 and the first differing line when docs/coverage.md is not what would be written.
NODE_TESTS.tsv has columns case, op, status. The counts of tests/quant_reference come from its results.tsv, which
`run.py --all --results` writes.
"""

import collections
import csv
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "coverage.md"
REFERENCE = ROOT / "tests" / "quant_reference" / "results.tsv"

HEAD = """# Coverage

Made by tools/coverage.py from the operator registry, the schemas and the test results; tools/test checks that it is
current. One row a version of an operator. *Types* are those that the schema's type variables allow: where the row is
implemented, they run, but for arithmetic that a type does not have: GridSample and Resize do not interpolate strings, booleans
and complex numbers, ScatterElements, ScatterND and Col2Im do not reduce strings and complex numbers, Unique does not sort complex
numbers. DeformConv runs with two spatial axes, BatchNormalization and Dropout for inference only. *Tests of onnx* are the operator's cases among the node tests and the data of the onnx package (passed / all, over all versions:
node tests use the newest one). *Reference* is the number of models of this version that tests/quant_reference
makes and that give the right bits; com.microsoft's operators are compared with ONNX Runtime and numpy by
tests/com_microsoft instead.
"""


def read_tsv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def node_tests(path):
    passed, total = collections.Counter(), collections.Counter()
    for row in read_tsv(path):
        total[row["op"]] += 1
        passed[row["op"]] += row["status"] == "pass"
    return passed, total


def shorten(types):
    """{'T': ['tensor(float)', …]} to 'T: float, …'."""
    def bare(name):
        return name[len("tensor("):-1] if name.startswith("tensor(") else name
    return "; ".join(f"{variable}: {', '.join(bare(t) for t in names)}" for variable, names in types.items())


def page(dqrun, node_report):
    listing = json.loads(subprocess.run([dqrun, "ops", "--json"], check=True, capture_output=True, text=True).stdout)
    passed, total = node_tests(node_report)
    reference = {(row["op"], int(row["version"])): (int(row["passed"]), int(row["failed"]))
                 for row in read_tsv(REFERENCE)}
    domains = collections.defaultdict(list)
    for row in listing:
        domains[row["domain"]].append(row)
    lines = [HEAD]
    implemented = sum(row["implemented"] for row in listing)
    lines.append(f"{implemented} versions of {len({(r['domain'], r['name']) for r in listing if r['implemented']})} "
                 f"operators are implemented; {len(listing) - implemented} versions have a schema only. "
                 f"{sum(passed.values())} of {sum(total.values())} tests of onnx pass, and "
                 f"{sum(good for good, _ in reference.values())} of "
                 f"{sum(good + bad for good, bad in reference.values())} reference models.\n")
    for domain, rows in sorted(domains.items()):
        lines += [f"## {domain}\n", "| operator | version | runs | tests of onnx | reference | types |",
                  "|---|---|---|---|---|---|"]
        newest = {row["name"]: row["since_version"] for row in sorted(rows, key=lambda r: r["since_version"])}
        for row in sorted(rows, key=lambda r: (r["name"], r["since_version"])):
            name, version = row["name"], row["since_version"]
            cases = ""
            if domain == "ai.onnx" and version == newest[name] and total[name]:
                cases = f"{passed[name]} / {total[name]}"
            good, bad = reference.get((name, version), (0, 0)) if domain == "ai.onnx" else (0, 0)
            proof = f"{good} / {good + bad}" if good + bad else ""
            runs = "deprecated" if row["deprecated"] else "yes" if row["implemented"] else "no"
            lines.append(f"| {name} | {version} | {runs} | {cases} | {proof} | {shorten(row['types'])} |")
        lines.append("")
    return "\n".join(lines)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    text = page(*arguments)
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    had = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if had == text:
        return 0
    for number, (old, new) in enumerate(zip(had.split("\n"), text.split("\n")), 1):
        if old != new:
            print(f"docs/coverage.md:{number} is\n  {old}\nwanted\n  {new}")
            break
    else:
        print("docs/coverage.md has another length than expected")
    print("run: tools/coverage.py DQRUN NODE_TESTS.tsv")
    return 1


if __name__ == "__main__":
    sys.exit(main())
