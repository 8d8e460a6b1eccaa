# SPDX-License-Identifier: Apache-2.0
"""Scores a folder of Parquet files with Spark: batch_spark.py MODEL SOURCE TARGET WORKERS.

The files have a column `id` and one of lists of floats for the model's input; TARGET gets Parquet files with `id` and the output.
Needs pip install pyspark pandas pyarrow, and Java."""

import os
import sys

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, pandas_udf

from dqrun.batch import Predictor


def main(model, source, target, workers):
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master(f"local[{workers}]").getOrCreate()
    predict = Predictor(model)  # pickled as a path: each worker process loads the model once
    (column,), (output,) = predict.inputs.values(), predict.outputs.values()

    @pandas_udf("array<float>")
    def score(rows: pd.Series) -> pd.Series:
        return predict(pd.DataFrame({column: rows}))[output]

    spark.read.parquet(source).select("id", score(col(column)).alias(output)).write.parquet(target)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
