# SPDX-License-Identifier: Apache-2.0
"""examples/python/batch_*.py: the same model in Dask and Spark. What the environment lacks is skipped. Ray's: test_ray_driver.py."""

import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import dqrun
from conftest import EXAMPLES, ROOT

DIGITS = EXAMPLES / "digits_qdq.onnx"


@pytest.mark.parametrize("engine", ["dask", "spark"])
def test_example(tmp_path, digits, engine):
    pytest.importorskip({"dask": "distributed", "spark": "pyspark"}[engine])
    if engine == "spark" and not shutil.which("java"):
        pytest.skip("Spark needs Java")
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    flat = pa.array(list(digits.reshape(450, 64)), pa.list_(pa.float32()))
    for i in range(4):
        part = slice(120 * i, min(450, 120 * i + 120))
        pq.write_table(pa.table({"id": np.arange(450)[part], "image": flat[part]}), source / f"{i}.parquet")
    done = subprocess.run([sys.executable, ROOT / "examples" / "python" / f"batch_{engine}.py", DIGITS, source, target, "2"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout
    found = pa.dataset.dataset([str(path) for path in sorted(target.glob("*.parquet"))]).to_table().sort_by("id")
    assert found["id"].to_pylist() == list(range(450))
    np.testing.assert_array_equal(np.array(found["scores"].to_pylist(), np.float32), dqrun.Session(DIGITS)(image=digits))
