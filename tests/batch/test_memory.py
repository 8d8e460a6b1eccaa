# SPDX-License-Identifier: Apache-2.0
"""Memory and start of workers: one copy of the weights for all, a worker's memory flat, a model loaded in a moment.

DQRUN_SOAK_SECONDS=3600 in the environment has the test of flat memory last an hour."""

import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from onnx import TensorProto, helper, numpy_helper

import dqrun
from conftest import EXAMPLES
from test_parquet import children_of

DIGITS = EXAMPLES / "digits_qdq.onnx"
WIDTH, LAYERS = 2048, 8
WEIGHTS = WIDTH * WIDTH * LAYERS


@pytest.fixture(scope="module")
def heavy(tmp_path_factory):
    """A chain of quantized MatMuls with WEIGHTS bytes of weights."""
    random = np.random.default_rng(0)
    constants = [numpy_helper.from_array(value, name) for name, value in (
        ("x_scale", np.float32(0.02)), ("x_zero", np.uint8(128)), ("w_scale", np.float32(0.01)), ("w_zero", np.int8(0)))]
    nodes = [helper.make_node("QuantizeLinear", ["x", "x_scale", "x_zero"], ["q0"])]
    for i in range(LAYERS):
        constants.append(numpy_helper.from_array(random.integers(-127, 128, (WIDTH, WIDTH), np.int8), f"w{i}"))
        nodes += [helper.make_node("DequantizeLinear", [f"q{i}", "x_scale", "x_zero"], [f"x{i}"]),
                  helper.make_node("DequantizeLinear", [f"w{i}", "w_scale", "w_zero"], [f"v{i}"]),
                  helper.make_node("MatMul", [f"x{i}", f"v{i}"], [f"y{i}"]),
                  helper.make_node("QuantizeLinear", [f"y{i}", "x_scale", "x_zero"], [f"q{i + 1}"])]
    nodes.append(helper.make_node("DequantizeLinear", [f"q{LAYERS}", "x_scale", "x_zero"], ["y"]))
    graph = helper.make_graph(nodes, "heavy", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", WIDTH])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", WIDTH])], constants)
    path = tmp_path_factory.mktemp("heavy") / "heavy.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def tree_of(pid):
    return [pid, *(process for child in children_of(pid) for process in tree_of(child))]


def rollup(pid, name):
    """Bytes by /proc/PID/smaps_rollup."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * int(next(line for line in text.splitlines() if line.startswith(f"{name}:")).split()[1])


def test_workers_share_the_weights(tmp_path, heavy, digits):
    """Proportional set sizes add up to what is occupied. Three more workers cost as much with a heavy model as with a light one."""
    images, wide = np.tile(digits, (40, 1, 1, 1)), np.ones((4000, WIDTH), np.float32)
    for name, column, rows in (("light", "image", images), ("heavy", "x", wide)):
        pq.write_table(pa.table({"id": np.arange(len(rows)), column: pa.FixedShapeTensorArray.from_numpy_ndarray(rows)}),
                       tmp_path / f"{name}.parquet", row_group_size=len(rows) // 40)

    def occupied(name, model, workers):
        target = tmp_path / f"{name}{workers}"
        process = subprocess.Popen([sys.executable, "-m", "dqrun.batch", model, tmp_path / f"{name}.parquet", target, "--id", "id",
                                    "--workers", str(workers), "--batch-size", "1", "--quiet"])
        try:
            until = time.monotonic() + 30
            while len(list((target / "_done").glob("*.json"))) < 2 * workers:
                assert time.monotonic() < until and process.poll() is None
                time.sleep(0.01)
            return sum(rollup(pid, "Pss") for pid in tree_of(process.pid))
        finally:
            process.kill()
            process.wait()

    grows = {name: occupied(name, model, 4) - occupied(name, model, 1) for name, model in (("light", DIGITS), ("heavy", heavy))}
    print(f"three more workers: {grows['light'] >> 20} MB, with {WEIGHTS >> 20} MB of weights {grows['heavy'] >> 20} MB")
    assert grows["heavy"] - grows["light"] < WEIGHTS


def test_a_predictor_loads_in_a_moment(heavy):
    """In processes that load it for the first time, as a worker does: the SHA-256 of the file is part of it."""
    code = """if True:
        import sys, time
        from dqrun.batch import Predictor
        begin = time.perf_counter()
        Predictor(sys.argv[1])
        print(time.perf_counter() - begin)
    """
    times = [float(subprocess.run([sys.executable, "-c", code, heavy], stdout=subprocess.PIPE, check=True).stdout) for _ in range(3)]
    print(f"{WEIGHTS >> 20} MB of weights loaded in {1e3 * min(times):.1f} ms")
    assert min(times) < 0.1


def test_memory_is_flat(digits):
    code = """if True:
        import sys, time, numpy as np
        from dqrun.batch import Predictor
        predict, random, until, runs = Predictor(sys.argv[1], on_error="column"), np.random.default_rng(0), time.monotonic() + float(sys.argv[2]), 0
        def resident():
            return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1])
        def run():
            rows = random.integers(1, 300)
            predict({"image": random.random((rows, 1, 8, 8), np.float32)})
        for _ in range(500):
            run()
        begin = resident()
        while time.monotonic() < until:
            run()
            runs += 1
        print(begin, resident(), runs)
    """
    seconds = os.environ.get("DQRUN_SOAK_SECONDS", "5")
    done = subprocess.run([sys.executable, "-c", code, DIGITS, seconds], stdout=subprocess.PIPE, text=True, check=True)
    begin, end, runs = map(int, done.stdout.split())
    print(f"resident after 500 batches {begin} KiB, after {runs} more {end} KiB")
    assert runs > 500 and end - begin < 4096
