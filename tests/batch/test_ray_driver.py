# SPDX-License-Identifier: Apache-2.0
"""The driver of examples/python/batch_ray.py is killed and started again. It has a cluster of its own."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dqrun
from conftest import EXAMPLES
from test_parquet import write_files

pytest.importorskip("ray", reason="needs pip install 'ray[data]'")

DRIVER = """if True:
    import sys, time
    import ray.data
    sys.path.insert(0, sys.argv.pop(1))
    import batch_ray
    slow = sys.argv.pop(1) == "slow"
    def wait(batch):
        time.sleep(0.2)
        return batch
    context = ray.data.DataContext.get_current()
    context.target_min_block_size, context.target_max_block_size = 1, 1 << 15  # as many blocks as a large job has
    context.enable_progress_bars = False
    if slow:
        read = ray.data.read_parquet
        ray.data.read_parquet = lambda source: read(source).map_batches(wait, batch_size=100)
    batch_ray.main(*sys.argv[1:4], 1)
"""


def start(folder, speed):
    return subprocess.Popen([sys.executable, "-c", DRIVER, EXAMPLES / "python", speed, EXAMPLES / "digits_qdq.onnx", folder / "in",
                             folder / "out"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_driver_is_killed(tmp_path, digits):
    """Every row once, none of those again that were done before, and the results of one run without a fault."""
    images = np.tile(digits, (8, 1, 1, 1))
    (tmp_path / "in").mkdir()
    write_files(tmp_path / "in", images, 8)
    checkpoints = pathlib.Path(f"{tmp_path}/out_checkpoint")

    def done():
        return [path for path in checkpoints.glob("*.parquet") if ".pending" not in path.name]

    process = start(tmp_path, "slow")
    until = time.monotonic() + 120
    while len(done()) < 2:
        assert time.monotonic() < until and process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    until = time.monotonic() + 60  # the cluster ends when its driver has gone: it writes no more
    before = None
    while before != (before := sorted(path.name for path in (tmp_path / "out").iterdir())):
        assert time.monotonic() < until
        time.sleep(2)
    kept = {path.name: path.stat().st_mtime_ns for path in done()}
    assert len(pa.concat_tables(pq.read_table(path) for path in done())) < len(images)

    process = start(tmp_path, "fast")
    text = process.communicate(timeout=240)[0]
    assert process.returncode == 0, text
    assert kept.items() <= {path.name: path.stat().st_mtime_ns for path in done()}.items()
    found = pq.read_table(tmp_path / "out").sort_by("id")
    assert found["id"].to_pylist() == list(range(len(images)))
    scores = np.array(found["scores"].to_pylist(), np.float32)
    np.testing.assert_array_equal(scores, dqrun.Session(EXAMPLES / "digits_qdq.onnx")(image=images))
