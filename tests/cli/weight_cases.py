# SPDX-License-Identifier: Apache-2.0
"""Weights in the file: wherever they lie in it, and without a second copy beside the packed ones."""

import json
import os

import numpy as np
import onnx
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from harness import save_model

FLOAT, MEGABYTE = TensorProto.FLOAT, 1 << 20
ROWS, COLUMNS = 130, 140  # large enough to stay in the file


def unaligned(h, shift):
    """The weights are a matrix, a table, an operand, a reshaped one and an output; `shift` bytes move them all."""
    rng = np.random.default_rng(shift)
    w = rng.integers(-9, 10, (ROWS, COLUMNS)).astype(np.float32)
    kernel = rng.integers(-2, 3, (8, 3, 30, 30)).astype(np.float32)
    initializers = [helper.make_tensor("pad", TensorProto.UINT8, [shift + 1], bytes(shift + 1), raw=True),
                    numpy_helper.from_array(w, "w"), numpy_helper.from_array(kernel, "kernel"),
                    numpy_helper.from_array(np.array([COLUMNS, ROWS]), "turned"),
                    numpy_helper.from_array(np.array([5, 0, 129]), "places"),
                    numpy_helper.from_array(np.ones((1, COLUMNS), np.float32), "one")]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"]),
             helper.make_node("Gemm", ["one", "w"], ["turned_product"], transB=1),
             helper.make_node("Gather", ["w", "places"], ["rows"]),
             helper.make_node("Mul", ["w", "column"], ["scaled"]),
             helper.make_node("Reshape", ["w", "turned"], ["reshaped"]),
             helper.make_node("MatMul", ["reshaped", "column"], ["reshaped_product"]),
             helper.make_node("Neg", ["w"], ["negative"]),
             helper.make_node("Conv", ["image", "kernel"], ["image_out"]),
             helper.make_node("Identity", ["w"], ["same"])]
    feeds = {"x": rng.integers(-9, 10, (3, ROWS)), "column": rng.integers(-9, 10, (ROWS, 1)),
             "image": rng.integers(-2, 3, (1, 3, 30, 30))}
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    expected = {"product": feeds["x"] @ w, "turned_product": np.ones((1, COLUMNS), np.float32) @ w.T,
              "rows": w[[5, 0, 129]], "scaled": w * feeds["column"],
              "reshaped_product": w.reshape(COLUMNS, ROWS) @ feeds["column"], "negative": -w, "same": w,
              "image_out": (kernel * feeds["image"]).sum((1, 2, 3)).reshape(1, 8, 1, 1)}
    save_model(h.path("w.onnx"), nodes, [(name, FLOAT, value.shape) for name, value in feeds.items()],
               [(name, FLOAT, None) for name in expected], initializers)
    np.savez(h.path("in.npz"), **feeds)
    h.expect(["w.onnx", "in.npz", "-o", "out.npz"])
    with np.load(h.path("out.npz")) as out:
        for name, value in expected.items():
            assert np.array_equal(out[name], value), f"{name} differs with the weights moved by {shift}"


def unaligned_scales(h, shift):
    """Blocks of 4 bits, whose scales are large enough to stay in the file."""
    rng = np.random.default_rng(shift)
    codes = rng.integers(-8, 8, (1024, 512))
    scales = np.exp2(rng.integers(-3, 3, (32, 512))).astype(np.float32)
    x = rng.integers(-4, 5, (1, 1024)).astype(np.float32)
    packed = (codes.reshape(-1, 2) & 15) @ np.array([1, 16])
    initializers = [helper.make_tensor("pad", TensorProto.UINT8, [shift + 1], bytes(shift + 1), raw=True),
                    helper.make_tensor("w", TensorProto.INT4, codes.shape, packed.astype(np.uint8).tobytes(), raw=True),
                    numpy_helper.from_array(scales, "scales")]
    nodes = [helper.make_node("DequantizeLinear", ["w", "scales"], ["floats"], axis=0, block_size=32),
             helper.make_node("MatMul", ["x", "floats"], ["y"])]
    save_model(h.path("blocks.onnx"), nodes, [("x", FLOAT, x.shape)], [("y", FLOAT, None)], initializers)
    np.savez(h.path("in.npz"), x=x)
    h.expect(["blocks.onnx", "in.npz", "-o", "out.npz"])
    with np.load(h.path("out.npz")) as out:
        assert np.array_equal(out["y"], x @ (codes * np.repeat(scales, 32, 0))), f"differs with weights moved by {shift}"


def measure(h, model):
    """Peak memory of a process that loads the model and runs it once, in MB; a sanitizer keeps nothing that is freed."""
    np.savez(h.path("x.npz"), x=np.ones((1, 4096), np.float32))
    options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0"
    return json.loads(h.expect(["bench", model, "x.npz", "--runs", "1", "--warmup", "0", "--json"], out=None,
                               err=None, environment={"ASAN_OPTIONS": options}))["peak_rss_kib"] / 1024


def external(h, dtype, megabytes):
    """Matrices of 16 and 64 MB in a file of their own, one after the other, against a model without weights."""
    save_model(h.path("small.onnx"), [helper.make_node("Identity", ["x"], ["y"])], [("x", FLOAT, [1, 4096])],
               [("y", FLOAT, [1, 4096])])
    small = measure(h, "small.onnx")
    weights, nodes, value = [], [], "x"
    width = np.dtype(dtype).itemsize
    for i in range(megabytes * MEGABYTE // (4096 * 4096 * width)):
        weights.append(numpy_helper.from_array(np.full((4096, 4096), i % 3 - 1, dtype), f"w{i}"))
        if width == 1:
            nodes += [helper.make_node("DynamicQuantizeLinear", [value], [f"q{i}", f"s{i}", f"z{i}"]),
                      helper.make_node("MatMulInteger", [f"q{i}", f"w{i}", f"z{i}"], [f"m{i}"]),
                      helper.make_node("Cast", [f"m{i}"], [f"y{i}"], to=FLOAT)]
        else:
            nodes.append(helper.make_node("MatMul", [value, f"w{i}"], [f"y{i}"]))
        value = f"y{i}"
    graph = helper.make_graph(nodes, "large", [helper.make_tensor_value_info("x", FLOAT, [1, 4096])],
                              [helper.make_tensor_value_info(value, FLOAT, [1, 4096])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    external_data_helper.convert_model_to_external_data(model, location="large.bin", size_threshold=1024)
    onnx.save(model, str(h.path("large.onnx")))
    try:
        peak = measure(h, "large.onnx")
    finally:
        h.path("large.bin").unlink()
    # one matrix is there twice while it is packed
    limit = small + megabytes + 16 * width + 20
    assert peak < limit, f"peak memory with {megabytes} MB of {np.dtype(dtype)} weights is {peak:.0f} MB, " \
                         f"expected below {limit}"


def run(h):
    for shift in range(4):
        h.case(f"weights at {shift} bytes from where they were", lambda shift=shift: unaligned(h, shift))
    for shift in range(4):
        h.case(f"scales of blocks at {shift} bytes from where they were", lambda shift=shift: unaligned_scales(h, shift))
    h.case("int8 weights in an external file", lambda: external(h, np.int8, 128))
    h.case("float weights in an external file", lambda: external(h, np.float32, 256))
