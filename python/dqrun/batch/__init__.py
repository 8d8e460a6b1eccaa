# SPDX-License-Identifier: Apache-2.0
"""Runs a model over many rows: batches of columns, Parquet files, Ray datasets.

>>> import dqrun.batch, numpy as np
>>> predict = dqrun.batch.Predictor("examples/digits_qdq.onnx")
>>> predict({"image": np.zeros((3, 1, 8, 8), np.float32)})["scores"].shape
(3, 10)

`Predictor` needs numpy alone. It takes tables of pandas and pyarrow where these are installed. docs/batch.md is the guide."""

from __future__ import annotations

from ._predictor import Predictor as Predictor

__all__ = ["Predictor"]
