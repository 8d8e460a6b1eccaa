#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the program of examples/c/inspect.c over the example models and hold its output against the onnx package's view.

    python3 tests/examples/test_inspect.py EXAMPLE_INSPECT

One test is one model. The last line is `N passed, N failed, N skipped`; the exit code is 1 when something failed.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BATCH = 3
# Nodes that are computed while planning, or by the step of another one, need not be in the list of steps twice.
FOLDED = {"Constant"}


def check(program, path):
    graph = onnx.load(path).graph
    done = subprocess.run([program, str(path), str(BATCH)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"{path}: IR version "), lines[0]
    assert lines[0].endswith(f", {len(graph.node)} nodes"), lines[0]
    listed = Counter(m[1] for m in (re.match(r"  ([A-Z]\w*)-\d+ ", line + " ") for line in lines) if m)
    assert listed == Counter(n.op_type for n in graph.node), listed
    assert f"  gives scores: tensor(float) [{BATCH},10]" in lines, "no output of the batch's shape"
    computed = Counter()
    for line in lines:
        found = re.match(r"  \d+ \S+: work \d+; computes ([\w, ]+)", line)
        computed.update(found[1].split(", ") if found else [])
    initializers = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    dynamic = [n for n in graph.node if set(n.input) - set(initializers) or not n.input]
    expected = Counter(n.op_type for n in dynamic if n.op_type not in FOLDED)
    assert not expected - computed, f"no step computes {expected - computed}"
    assert not computed - listed, f"steps compute {computed - listed} that the model does not have"
    for node in graph.node:
        if node.op_type == "QuantizeLinear":
            scale = np.asarray(initializers[node.input[1]]).flat[0]
            pattern = rf"    gives {re.escape(node.output[0])}: tensor\(u?int8\)  per \w+.*, scale {scale:g}"
            assert any(re.match(pattern, line) for line in lines), f"no scale of {node.output[0]}"


def main():
    program, failed = sys.argv[1], 0
    paths = sorted(EXAMPLES.glob("digits_*.onnx"))
    for path in paths:
        try:
            check(program, path)
        except AssertionError as fault:
            failed += 1
            print(f"FAILED: {path.name}: {fault}")
    print(f"{len(paths) - failed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
