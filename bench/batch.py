#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures dqrun.batch.run_parquet: rows a second and a core-second with one and more workers, and their ratio.

    bench/batch.py MODEL [--seconds 60] [--workers 2] [--batch-size 8] [--folder DIRECTORY]

Images of random floats are written to a Parquet file in the folder, which is read as often as one worker needs for the given seconds.
The rate is that from the first finished row group to the last: the start of Python and of workers is left out. CPU seconds are of
the driver and all workers together, with their start. Needs pip install 'dqrun[parquet]' and the processor for itself."""

import argparse
import os
import pathlib
import resource
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dqrun
from dqrun.batch import run_parquet

ROWS, GROUP = 256, 32


def write_images(model, path):
    info, = dqrun.Session(model, threads=1).inputs
    images = np.random.default_rng(0).random((ROWS, *info.shape[1:]), np.float32).astype(info.dtype)
    table = pa.table({"id": np.arange(ROWS), info.name: pa.FixedShapeTensorArray.from_numpy_ndarray(images)})
    pq.write_table(table, path, row_group_size=GROUP, compression="NONE")
    return images.nbytes // ROWS


def cpu_seconds():
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def measure(model, path, repeats, workers, batch_size, folder):
    """Rows, rows a second between the first and the last row group, and CPU seconds."""
    seen = []
    before = cpu_seconds()
    with tempfile.TemporaryDirectory(dir=folder) as target:
        done = run_parquet(model, [path] * repeats, target, id_column="id", workers=workers, batch_size=batch_size,
                           progress=lambda state: seen.append((time.perf_counter(), state.rows)))
    (begin, first), (end, last) = seen[0], seen[-1]
    return done.rows, (last - first) / (end - begin), cpu_seconds() - before, end - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    path = arguments.folder / f"dqrun-bench-{os.getpid()}.parquet"
    try:
        size = write_images(arguments.model, path)
        _, rate, _, _ = measure(arguments.model, path, 2, 1, arguments.batch_size, arguments.folder)
        repeats = max(2, round(rate * arguments.seconds / ROWS))
        print(f"{repeats * ROWS} rows of {size} bytes, runs of {arguments.batch_size} rows")
        print("| workers | seconds | rows a second | rows a core-second | of one worker |")
        print("| --- | --- | --- | --- | --- |")
        alone = None
        for workers in (1, arguments.workers):
            rows, rate, cpu, seconds = measure(arguments.model, path, repeats, workers, arguments.batch_size, arguments.folder)
            alone = alone or rate
            print(f"| {workers} | {seconds:.1f} | {rate:.1f} | {rows / cpu:.1f} | {rate / alone:.2f} |", flush=True)
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
