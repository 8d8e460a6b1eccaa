# SPDX-License-Identifier: Apache-2.0
"""onnx's official backend suite over dqrun.backend. What is expected to fail stands in tests/onnx_backend/expected.tsv; a
case that passes all the same fails here."""

import csv
import os
import re
import tempfile
import unittest

import numpy as np
import onnx.backend.test
import pytest
from onnx import helper

import dqrun.backend
from conftest import ROOT, add_models

os.environ.setdefault("ONNX_MODELS", tempfile.gettempdir())  # where the suite writes its models


# Where this suite judges otherwise than dqrun-conformance does.
RUNNER_FAILS = ["test_loop16_seq_none"]  # its runner asks for the length of an array without dimensions
BFLOAT16 = "one unit in the last place"  # its tolerance for bfloat16 is larger than that


def expected_failures():
    with open(ROOT / "tests" / "onnx_backend" / "expected.tsv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["expected"] != "pass"]
    names = [row["case"].rpartition("/")[2] for row in rows if not ("_bf16" in row["case"] and row["reason"].startswith(BFLOAT16))]
    return names + RUNNER_FAILS


suite = onnx.backend.test.BackendTest(dqrun.backend, __name__)
for name in expected_failures():
    suite.xfail(f"^{re.escape(name)}_cpu$")
globals().update(suite.test_cases)


def test_the_suite_is_whole():
    cases = [name for case in suite.test_cases.values() for name in unittest.TestLoader().getTestCaseNames(case)]
    assert len(cases) >= 2000


def test_entry_points():
    x = np.ones((2, 4), np.float32)
    model = add_models()
    assert dqrun.backend.supports_device("CPU") and not dqrun.backend.supports_device("CUDA")
    assert dqrun.backend.is_compatible(model)
    assert (dqrun.backend.run_model(model, [x])[0] == 2).all()
    assert (dqrun.backend.prepare(model).run({"x": x})[0] == 2).all()
    node = helper.make_node("Add", ["a", "b"], ["c"])
    assert (dqrun.backend.run_node(node, [x, x])[0] == 2).all()
    with pytest.raises(dqrun.Unsupported, match="device 'CUDA'"):
        dqrun.backend.prepare(model, "CUDA")
    with pytest.raises(dqrun.InvalidArgument, match="2 inputs are given, expected at most 1"):
        dqrun.backend.run_model(model, [x, x])
