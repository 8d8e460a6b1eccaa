# SPDX-License-Identifier: Apache-2.0
"""Scores a folder of Parquet files with Dask: batch_dask.py MODEL SOURCE TARGET WORKERS.

The files have a column `id` and one for each input of the model; TARGET gets Parquet files with `id` and the outputs.
Needs pip install 'dask[dataframe,distributed]'."""

import sys

import dask.dataframe
import dask.distributed
import pyarrow as pa

from dqrun.batch import Predictor


def main(model, source, target, workers):
    dask.config.set({"dataframe.convert-string": False})  # columns of lists stay what they are
    predict = Predictor(model, keep=["id"])  # pickled as a path: each worker process loads the model once
    with dask.distributed.Client(n_workers=workers, threads_per_worker=1, dashboard_address=None):
        rows = dask.dataframe.read_parquet(source)
        example = predict(rows.head(1))
        results = rows.map_partitions(predict, meta=example.iloc[:0])
        results.to_parquet(target, write_index=False, schema=pa.Schema.from_pandas(example, preserve_index=False))


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
