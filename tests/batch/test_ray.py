# SPDX-License-Identifier: Apache-2.0
"""dqrun.batch.ray on a local cluster of three CPUs. Without Ray in the environment, the tests are skipped."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dqrun
from conftest import EXAMPLES
from test_predictor import gather

ray = pytest.importorskip("ray", reason="needs pip install 'ray[data]'")

import ray.data  # noqa: E402

from dqrun.batch.ray import map_batches  # noqa: E402

DIGITS = EXAMPLES / "digits_qdq.onnx"


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=3, include_dashboard=False)
    yield
    ray.shutdown()


def test_results_and_order(tmp_path, digits):
    images = np.tile(digits, (4, 1, 1, 1))
    table = pa.table({"id": np.arange(1800), "image": pa.FixedShapeTensorArray.from_numpy_ndarray(images)})
    for i in range(6):
        pq.write_table(table.slice(300 * i, 300), tmp_path / f"{i}.parquet")
    found = map_batches(ray.data.read_parquet(str(tmp_path)), DIGITS, actors=2, batch_size=64, keep=["id"]).take_all()
    assert [row["id"] for row in found] == list(range(1800)) and not any(row["error"] for row in found)
    np.testing.assert_array_equal(np.stack([row["scores"] for row in found]), dqrun.Session(DIGITS)(image=images))


def test_rows_that_fail():
    rows = [{"x": np.array([i, 99 if i in (3, 7) else 0])} for i in range(10)]
    found = map_batches(ray.data.from_items(rows), gather()).take_all()
    assert [i for i, row in enumerate(found) if row["error"]] == [3, 7]
    assert [row["y"][0] for i, row in enumerate(found) if i not in (3, 7)] == [0, 2, 4, 8, 10, 12, 16, 18]


def test_no_cpu_left_to_read():
    with pytest.raises(dqrun.InvalidArgument, match=r"3 actors of one CPU each leave none of the cluster's 3 .* ray.init\(num_cpus=4\)"):
        map_batches(ray.data.range(3), DIGITS, actors=3)
