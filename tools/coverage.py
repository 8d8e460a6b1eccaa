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
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "coverage.md"
REFERENCE = ROOT / "tests" / "quant_reference" / "results.tsv"

HEAD = """<!-- written by tools/coverage.py -->
# Coverage

Which operators run, in which versions? {finding}

tools/test checks that this page is current. The first part shows the quantization operators by type and granularity, the second the
versions of each operator, the third the types and tests of each version.
"""

LEGEND = """A column is a version of the domain. ● an implemented version begins there, ○ one that has a schema only, × a
deprecated one. A node uses the newest version up to the one that its model imports.
"""

QUANTIZATION = """## Quantization operators

Which element type is quantized with which granularity, and from which version of the operator on? *Tensor*: one scale. *Axis*: a scale
for each index of an axis. *Block*: a scale for each block along an axis (`block_size`). A column has the first version. So opset 21 has int4
and uint4 with all three, per block included.
"""

PRODUCTS = """Products and other operators of quantized values:

| operator | quantized types | granularity |
|---|---|---|"""

# What the shapes of scales and zero points may be, as src/ops reads them: the schemas do not say it.
GRANULARITY = (
    ("ai.onnx", "QLinearMatMul", "T1", "a: tensor or row; b: tensor or column; each also for each matrix of a batch; y: tensor, or broadcast to y"),
    ("ai.onnx", "MatMulInteger", "T1", "zero points: a: tensor or row; b: tensor or column"),
    ("ai.onnx", "QLinearConv", "T1", "x and y: tensor; w: tensor or output channel"),
    ("ai.onnx", "ConvInteger", "T1", "zero points: x: tensor; w: tensor or output channel"),
    ("ai.onnx", "DynamicQuantizeLinear", "T2", "tensor"),
    ("com.microsoft", "QGemm", "TA", "A and Y: tensor; B: tensor or column"),
    ("com.microsoft", "MatMulIntegerToFloat", "T1", "A: tensor or row; B: tensor or column"),
    ("com.microsoft", "DynamicQuantizeMatMul", "T2", "A: tensor, from the data; B: tensor or column"),
    ("com.microsoft", "MatMulNBits", None, "weights of 2, 4 or 8 bits in uint8: block along K"),
    ("com.microsoft", "MatMulBnb4", None, "FP4 or NF4 in uint8: block"),
    ("com.microsoft", "GatherBlockQuantized", "T1", "block along an axis, or the whole axis"),
    ("com.microsoft", "QMoE", None, "weights of 2, 4 or 8 bits in uint8: row or block"),
)

DETAILS = """## Types and tests

- *Types* are those that the schema's type variables allow. They run where the version runs, except for arithmetic that a
  type does not have: GridSample and Resize do not interpolate strings, booleans and complex numbers; ScatterElements,
  ScatterND and Col2Im do not reduce strings and complex numbers; Unique does not sort complex numbers.
- DeformConv runs with two spatial axes, BatchNormalization and Dropout for inference only.
- *Tests of onnx* are the operator's cases among the node tests and the data of the onnx package: passed / all, over all
  versions. Node tests use the newest one.
- *Reference* is the number of models of this version that tests/quant_reference makes and that give the right bits.
  tests/com_microsoft compares com.microsoft's operators with ONNX Runtime and numpy instead.
"""

# Domains whose cases the report of the node tests names, with the domain in front but for ai.onnx.
TESTED_DOMAINS = ("ai.onnx", "ai.onnx.ml")


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


def anchor(row):
    return f"{row['domain']}-{row['name']}".lower().replace(".", "-")


def link(row):
    return f"[{row['name']}](#{anchor(row)})"


def mark(row):
    return "×" if row["deprecated"] else "●" if row["implemented"] else "○"


def matrix(domain, rows):
    """A row an operator, a column a version; a list where there is one version only."""
    versions = sorted({row["since_version"] for row in rows})
    by_name = collections.defaultdict(dict)
    for row in rows:
        by_name[row["name"]][row["since_version"]] = row
    yield f"### {domain}\n"
    if len(versions) == 1:
        names = ", ".join(f"{link(row)} {mark(row)}" for row in sorted(rows, key=lambda r: r["name"]))
        yield f"All of version {versions[0]}: {names}.\n"
        return
    yield "| operator | " + " | ".join(map(str, versions)) + " |"
    yield "|---|" + ":-:|" * len(versions)
    for name, own in sorted(by_name.items()):
        cells = [mark(own[version]) if version in own else "" for version in versions]
        yield f"| {link(next(iter(own.values())))} | " + " | ".join(cells) + " |"
    yield ""


def quantization(listing):
    """The first version of QuantizeLinear and DequantizeLinear for each element type and granularity; then the other operators."""
    yield QUANTIZATION
    for domain, name in (("ai.onnx", "QuantizeLinear"), ("ai.onnx", "DequantizeLinear"), ("com.microsoft", "QuantizeLinear"),
                         ("com.microsoft", "DequantizeLinear")):
        versions = sorted((r for r in listing if (r["domain"], r["name"]) == (domain, name) and r["implemented"]),
                          key=lambda r: r["since_version"])
        with_attribute = attributes_of(domain, name)
        first = {}  # type -> [the first version for each granularity]
        for row in versions:
            own = with_attribute[row["since_version"]]
            for kind in next(types for types in row["types"].values() if "tensor(uint8)" in types):
                found = first.setdefault(kind[len("tensor("):-1], [None] * 3)
                for at, needed in enumerate((None, "axis", "block_size")):
                    if found[at] is None and (needed is None or needed in own):
                        found[at] = row["since_version"]
        by_versions = collections.defaultdict(list)
        for kind, found in first.items():
            by_versions[tuple(found)].append(kind)
        yield f"| {link(versions[0])} of {domain}: type | tensor | axis | block |"
        yield "|---|---|---|---|"
        for found, kinds in by_versions.items():
            yield f"| {', '.join(kinds)} | " + " | ".join("no" if v is None else str(v) for v in found) + " |"
        yield ""
    yield PRODUCTS
    newest = {(r["domain"], r["name"]): r for r in sorted(listing, key=lambda r: r["since_version"]) if r["implemented"]}
    for domain, name, variable, granularity in GRANULARITY:
        row = newest[domain, name]
        kinds = ", ".join(kind[len("tensor("):-1] for kind in row["types"][variable]) if variable else "packed"
        yield f"| {link(row)} of {domain} | {kinds} | {granularity} |"
    yield ""


def attributes_of(domain, name):
    """The names of attributes by version, from the schema's file."""
    path = ROOT / "schemas" / ("" if domain == "ai.onnx" else domain) / f"{name}.yaml"
    found = {}
    for document in re.split(r"^---$", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        version = re.search(r"^since_version: (\d+)$", document, re.MULTILINE)
        attributes = re.search(r"^attributes:\n((?:[- ].*\n)*)", document, re.MULTILINE)
        if version:
            found[int(version[1])] = set(re.findall(r"^- name: (\w+)$", attributes[1], re.MULTILINE)) if attributes else set()
    return found


def details(domain, rows, tests, reference):
    passed, total = tests
    newest = {row["name"]: row["since_version"] for row in sorted(rows, key=lambda r: r["since_version"])}
    yield f"### Versions of {domain}\n"
    yield "| operator | version | runs | tests of onnx | reference | types |"
    yield "|---|---|---|---|---|---|"
    named = set()
    for row in sorted(rows, key=lambda r: (r["name"], r["since_version"])):
        name, version = row["name"], row["since_version"]
        reported = name if domain == "ai.onnx" else f"{domain}.{name}"
        cases = ""
        if domain in TESTED_DOMAINS and version == newest[name] and total[reported]:
            cases = f"{passed[reported]} / {total[reported]}"
        good, bad = reference.get((name, version), (0, 0)) if domain == "ai.onnx" else (0, 0)
        proof = f"{good} / {good + bad}" if good + bad else ""
        runs = "deprecated" if row["deprecated"] else "yes" if row["implemented"] else "no"
        target = "" if name in named else f'<a id="{anchor(row)}"></a>'
        named.add(name)
        yield f"| {target}{name} | {version} | {runs} | {cases} | {proof} | {shorten(row['types'])} |"
    yield ""


def page(dqrun, node_report):
    listing = json.loads(subprocess.run([dqrun, "ops", "--json"], check=True, capture_output=True, text=True).stdout)
    passed, total = node_tests(node_report)
    reference = {(row["op"], int(row["version"])): (int(row["passed"]), int(row["failed"]))
                 for row in read_tsv(REFERENCE)}
    domains = collections.defaultdict(list)
    for row in listing:
        domains[row["domain"]].append(row)
    implemented = sum(row["implemented"] for row in listing)
    finding = (f"{implemented} versions of {len({(r['domain'], r['name']) for r in listing if r['implemented']})} operators are "
               f"implemented; {len(listing) - implemented} versions have a schema only.\n{sum(passed.values())} of "
               f"{sum(total.values())} tests of onnx pass, and {sum(good for good, _ in reference.values())} of "
               f"{sum(good + bad for good, bad in reference.values())} reference models.")
    lines = [HEAD.format(finding=finding), *quantization(listing), "## At a glance\n", LEGEND]
    for domain, rows in sorted(domains.items()):
        lines += matrix(domain, rows)
    lines.append(DETAILS)
    for domain, rows in sorted(domains.items()):
        lines += details(domain, rows, (passed, total), reference)
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
