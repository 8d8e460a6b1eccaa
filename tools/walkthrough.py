#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the generated parts of docs/walkthrough.md: what dqrun makes of examples/digits_qdq.onnx at level avx2.

    tools/walkthrough.py DQRUN DESCRIBE [--check]

DESCRIBE is the program tests/describe of the build. A part is between "<!-- NAME: written by tools/walkthrough.py -->" and
"<!-- end of NAME -->". With --check nothing is changed. Needs the Python packages numpy and onnx. The last line is
'N passed, N failed, N skipped'; everything is skipped on processors without AVX2.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from fractions import Fraction

import numpy as np
import onnx
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "walkthrough.md"
MODEL = ROOT / "examples" / "digits_qdq.onnx"
BEGIN, END = "<!-- {}: written by tools/walkthrough.py -->\n", "<!-- end of {} -->\n"
ISA = "avx2"
CHANNEL, Y, X = 1, 3, 3  # of the element that is computed by hand: output of conv1 for the first test image


class Programs:
    def __init__(self, dqrun, describe):
        self.dqrun, self.describe = str(pathlib.Path(dqrun).resolve()), str(pathlib.Path(describe).resolve())

    def run(self, *arguments):
        return subprocess.run([self.dqrun, *map(str, arguments)], check=True, capture_output=True, text=True)

    def plan(self, disabled=()):
        """What a session plans: rows of tests/docs/describe.c by their kind."""
        done = subprocess.run([self.describe, str(MODEL), "1", ISA, ",".join(disabled)], check=True, capture_output=True, text=True)
        rows = {"step": [], "value": [], "memory": []}
        for line in done.stdout.splitlines():
            kind, *fields = line.split("\t")
            rows[kind].append(fields)
        return rows


def fenced(lines, language="text"):
    yield f"```{language}"
    yield from lines
    yield "```"


# ---- The parts ------------------------------------------------------------------------------------------------------


def graph(programs, model):
    """The nodes as the file has them."""
    del programs
    constants = {i.name for i in model.graph.initializer}
    lines = ["flowchart TD", "    image([\"image: float 1x1x8x8\"])"]
    made = {"image": "image"}
    for i, node in enumerate(model.graph.node):
        inputs = [name for name in node.input if name not in constants]
        weights = [name for name in node.input if name in constants and not name.endswith(("_scale", "_point"))]
        text = node.op_type + (f"<br/>of {weights[0]}" if weights else "")
        lines.append(f'    n{i}["{text}"]')
        lines += [f"    {made[name]} --> n{i}" for name in inputs]
        made[node.output[0]] = f"n{i}"
    lines += ["    scores([\"scores: float 1x10\"])", f"    {made['scores']} --> scores"]
    return fenced(lines, "mermaid")


def listing(plan):
    for op, outputs, inputs, *_ in plan["step"]:
        data = [name for name in inputs.split(", ") if name and not name.endswith(("_scale", "_zero_point"))]
        yield f"{outputs} = {op}({', '.join(data)})"


def passes(programs, model):
    """The steps as written, and after each pass that changes them."""
    del model
    rows = json.loads(programs.run("passes", "--json").stdout)
    names = [row["name"] for row in rows if row["scope"] != "model"]
    before = list(listing(programs.plan(names)))
    yield f"As written: {len(before)} steps. Constant nodes are computed already; scales and zero points are left out here."
    yield ""
    yield from fenced(before)
    unchanged = []
    for i, name in enumerate(names):
        after = list(listing(programs.plan(names[i + 1:])))
        if after == before:
            unchanged.append(name)
            continue
        row, = (row for row in rows if row["name"] == name)
        yield ""
        yield f"After `{name}` ({row['matches']} becomes {row['replacement']}): {len(after)} steps."
        yield ""
        yield from fenced(after)
        before = after
    yield ""
    yield f"The other passes find nothing here: {', '.join(f'`{name}`' for name in unchanged)}."


def algorithms(programs, model):
    del model
    lines = programs.run("run", MODEL, "--random", "1", "--isa", ISA, "--threads", "1", "--why").stderr.splitlines()
    start = next(i for i, line in enumerate(lines) if "algorithm " in line)
    end = max(i for i, line in enumerate(lines) if line.startswith("  ")) + 1
    chosen = [line for line in lines[start:end] if "takes no step" not in line]
    return fenced(chosen, "text")


def steps(programs, model):
    del model
    yield "| step | operator | computes | algorithm | work | scratch bytes |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for i, (op, outputs, _, algorithm, work, scratch, covers) in enumerate(programs.plan()["step"]):
        nodes = covers.split(", ")
        counted = ", ".join(f"{nodes.count(name)} × {name}" if nodes.count(name) > 1 else name for name in dict.fromkeys(nodes))
        yield f"| {i} | {op} → `{outputs}` | {counted} | {f'`{algorithm}`' if algorithm else ''} | {int(work):,} | {int(scratch):,} |"


def buffer(programs, model):
    del model
    plan = programs.plan()
    yield "| value | memory of | offset | bytes | live in steps |"
    yield "| --- | --- | --- | --- | --- |"
    for name, owner, offset, size, first, last in plan["value"]:
        yield f"| `{name}` | {'itself' if owner == name else f'`{owner}`'} | {int(offset):,} | {int(size):,} | {first} to {last} |"
    activations, weights, constants = map(int, plan["memory"][0])
    yield ""
    yield (f"The buffer has {activations:,} bytes. Most of it is scratch of the steps. Packed weights have {weights:,} bytes, "
           f"the constants of the model that steps read {constants:,}.")


def element(programs, model):
    """One output of the first convolution, in exact numbers, against what dqrun gives."""
    constant = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    with tempfile.TemporaryDirectory() as folder:
        image = np.load(ROOT / "examples" / "digits_test.npz")["image"][:1]
        np.save(f"{folder}/image.npy", image)
        programs.run("run", MODEL, f"image={folder}/image.npy", "--isa", ISA, "--value", "image_rounded_codes", "--value",
                     "conv1_rounded_codes", "-o", f"{folder}/out.npz")
        out = np.load(f"{folder}/out.npz")
        x, y = out["image_rounded_codes"][0, 0], out["conv1_rounded_codes"][0, CHANNEL]
    window = np.pad(x, 1)[Y:Y + 3, X:X + 3].astype(int)
    weights = constant["conv1_weight"][CHANNEL, 0].astype(int)
    rows = [(x_row, w_row, int(np.dot(x_row, w_row))) for x_row, w_row in zip(window, weights)]
    bias = int(constant["conv1_bias"][CHANNEL])
    total = sum(row[2] for row in rows) + bias
    sx, sw, sy = (Fraction(float(v)) for v in (constant["image_scale"], constant["conv1_weight_scale"][CHANNEL], constant["conv1_scale"]))
    real, zero = total * sx * sw / sy, int(constant["conv1_zero_point"])
    scale = float(sx * sw / sy)
    result = min(255, max(0, round(real) + zero))
    pixel = float(image[0, 0, Y, X])
    assert result == int(y[Y, X]) == round(real) + zero, (result, y[Y, X])
    yield f"Output channel {CHANNEL}, row {Y}, column {X}, of the first test image."
    yield ""
    yield (f"1. **Input.** The pixel in the middle of the window is {pixel:g}. With the scale {float(sx):.8f} (1/255) and zero point 0 it is "
           f"round({pixel:g} / {float(sx):.8f}) = {round(Fraction(pixel) / sx)}.")
    yield "2. **Products.** A step of the kernel is one row of the window: three uint8 pixels, and a fourth whose weight is 0."
    yield ""
    yield "   | row | pixels (uint8) | weights (int8) | sum of products |"
    yield "   | --- | --- | --- | --- |"
    for i, (x_row, w_row, product) in enumerate(rows):
        products = " + ".join(f"{a}·{f'({b})' if b < 0 else b}" for a, b in zip(x_row, w_row))
        yield f"   | {i} | {', '.join(map(str, x_row))} | {', '.join(map(str, w_row))} | {products} = {product:,} |"
    yield ""
    yield (f"3. **Bias.** {' + '.join(f'{r[2]:,}' for r in rows)} + {bias:,} = **{total:,}**, an int32. The bias counts in units of "
           "`image_scale` · `conv1_weight_scale`.".replace("+ -", "− "))
    yield (f"4. **Multiplier.** `image_scale` · `conv1_weight_scale` / `conv1_scale` = {float(sx):.8f} · {float(sw):.8f} / {float(sy):.8f} "
           f"= {scale:.10f}.")
    yield f"5. **Requantize.** {total:,} · {scale:.10f} = {float(real):.6f}. The nearest integer is {round(real)}, and no tie is near."
    yield (f"6. **Zero point and saturation.** {round(real)} + {zero} = {round(real) + zero}, which is within 0 … 255. Relu needs no step "
           "of its own: with zero point 0, saturation to 0 is its bound.")
    yield f"7. **dqrun** gives `conv1_rounded_codes[0, {CHANNEL}, {Y}, {X}]` = **{int(y[Y, X])}**."


PARTS = (graph, passes, algorithms, steps, buffer, element)


# ---- The page -------------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dqrun")
    parser.add_argument("describe")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    programs = Programs(options.dqrun, options.describe)
    if not re.search(rf"^{ISA} +yes", programs.run("isa").stdout, re.MULTILINE):
        print(f"this processor has no {ISA}\n0 passed, 0 failed, {len(PARTS)} skipped")
        return 0
    model, text, failed = onnx.load(MODEL), PAGE.read_text(encoding="utf-8"), 0
    for part in PARTS:
        name = part.__name__
        begin, end = BEGIN.format(name), END.format(name)
        head, _, rest = text.partition(begin)
        had, _, tail = rest.partition(end)
        new = "\n" + "\n".join(part(programs, model)) + "\n\n"
        if had != new:
            failed += 1
            print(f"docs/walkthrough.md: part '{name}' is not up to date: run tools/walkthrough.py {options.dqrun} {options.describe}")
        text = head + begin + new + end + tail
    if options.check:
        print(f"{len(PARTS) - failed} passed, {failed} failed, 0 skipped")
        return 1 if failed else 0
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
