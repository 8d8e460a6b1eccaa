# SPDX-License-Identifier: Apache-2.0
"""Runs a model over many rows: batches of columns, Parquet files, Ray datasets.

>>> import dqrun.batch, numpy as np
>>> predict = dqrun.batch.Predictor("examples/digits_qdq.onnx")
>>> predict({"image": np.zeros((3, 1, 8, 8), np.float32)})["scores"].shape
(3, 10)

`Predictor` needs numpy alone, and takes tables of pandas and pyarrow where these are installed. `run_parquet`, which is also the
command ``python -m dqrun.batch``, needs pyarrow."""

from __future__ import annotations

from ._parquet import Progress as Progress
from ._parquet import run_parquet as run_parquet
from ._pool import WorkerDied as WorkerDied
from ._predictor import Predictor as Predictor

__all__ = ["Predictor", "Progress", "WorkerDied", "run_parquet"]
