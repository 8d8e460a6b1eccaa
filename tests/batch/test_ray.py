# SPDX-License-Identifier: Apache-2.0
"""dqrun.batch.ray on a local cluster of three CPUs. Without Ray in the environment, the tests are skipped."""

import hashlib
import os
import pathlib
import signal

import numpy as np
import pytest

import dqrun
from conftest import EXAMPLES
from test_parquet import write_files
from test_predictor import gather

ray = pytest.importorskip("ray", reason="needs pip install 'ray[data]'")

import ray.data  # noqa: E402
from ray.data.checkpoint import CheckpointConfig  # noqa: E402

from dqrun.batch import Predictor  # noqa: E402
from dqrun.batch.ray import _Actor, map_batches  # noqa: E402

DIGITS = EXAMPLES / "digits_qdq.onnx"


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init("local", num_cpus=3, include_dashboard=False)
    yield
    ray.shutdown()


def actors():
    """The processes of actors, by the title that Ray gives them."""
    return {int(path.parent.name) for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if b"MapBatches(" in path.read_bytes()
            and path.read_bytes().startswith(b"ray::")}


def test_results_and_order(tmp_path, digits):
    images = np.tile(digits, (4, 1, 1, 1))
    write_files(tmp_path, images, 6)
    found = map_batches(ray.data.read_parquet(str(tmp_path)), DIGITS, actors=2, batch_size=64, keep=["id"]).take_all()
    assert [row["id"] for row in found] == list(range(1800)) and not any(row["error"] for row in found)
    np.testing.assert_array_equal(np.stack([row["scores"] for row in found]), dqrun.Session(DIGITS)(image=images))


def test_an_actor_is_killed(tmp_path, digits):
    """Every row once, the same results, and one load in each process."""
    class Slow(Predictor):  # defined here, so that it is sent to the actors by value
        """One row at a time, with the process and its session in the result."""

        def __call__(self, batch):
            scores = np.concatenate([super(Slow, self).__call__({"image": batch["image"][i:i + 1]})["scores"]
                                     for i in range(len(batch["id"]))])
            count = len(batch["id"])
            return {"id": batch["id"], "scores": scores, "process": np.full(count, os.getpid()),
                    "session": np.full(count, id(self.session))}

    images = np.tile(digits, (40, 1, 1, 1))
    write_files(tmp_path, images, 60)
    dataset = ray.data.read_parquet(str(tmp_path)).repartition(60)  # small files become one block
    dataset.context.execution_options.preserve_order = True
    predict = Slow(DIGITS)
    ids, processes, sha = [], set(), hashlib.sha256()
    victim = None
    for batch in dataset.map_batches(_Actor, fn_constructor_args=(predict,), batch_size=100, num_cpus=1, compute=ray.data.ActorPoolStrategy(size=2)).iter_batches(batch_size=300):
        ids += batch["id"].tolist()
        processes |= set(zip(batch["process"].tolist(), batch["session"].tolist()))
        sha.update(batch["scores"].tobytes())
        if victim is None:
            before = actors()
            victim = min(before)
            os.kill(victim, signal.SIGKILL)
    assert ids == list(range(18000))
    assert sha.hexdigest() == hashlib.sha256(dqrun.Session(DIGITS)(image=images).tobytes()).hexdigest()
    started = {process for process, _ in processes}
    assert len(processes) == len(started), "a process has one session"
    assert started - before, "another actor takes the place of the one that was killed"


def test_rows_that_fail():
    rows = [{"x": np.array([i, 99 if i in (3, 7) else 0])} for i in range(10)]
    found = map_batches(ray.data.from_items(rows), gather()).take_all()
    assert [i for i, row in enumerate(found) if row["error"]] == [3, 7]
    assert [row["y"][0] for i, row in enumerate(found) if i not in (3, 7)] == [0, 2, 4, 8, 10, 12, 16, 18]


def test_no_cpu_left_to_read():
    with pytest.raises(dqrun.InvalidArgument, match=r"3 actors of one CPU each leave none of the cluster's 3 .* ray.init\(num_cpus=4\)"):
        map_batches(ray.data.range(3), DIGITS, actors=3)
    dataset = ray.data.range(3)
    dataset.context.checkpoint_config = CheckpointConfig("id", "/nowhere")
    with pytest.raises(dqrun.InvalidArgument, match=r"2 actors of one CPU each and 1 of one CPU to resume leave none of the cluster's 3 "):
        map_batches(dataset, DIGITS, actors=2)
