#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a model whose weights lie in a file beside it, in a folder of its own: external.py MODEL FOLDER

test_oom runs it with memory that runs out while that file is looked for, opened and mapped."""

import sys
from pathlib import Path

import onnx

model, folder = Path(sys.argv[1]), Path(sys.argv[2])
(folder / "weights").mkdir(parents=True, exist_ok=True)
(folder / "weights/data.bin").unlink(missing_ok=True)  # onnx appends
onnx.save(onnx.load(model), folder / "model.onnx", save_as_external_data=True, location="weights/data.bin", size_threshold=0)
