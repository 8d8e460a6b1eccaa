#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write a model of all operators that compute elementary functions, for tests/models/same_bits.py.

    tests/math/make_operators.py FOLDER

FOLDER/<type>/model.onnx has one node for each operator in float, double or float16; input_0.npz beside it has arguments
of all sizes.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

UNARY = """Acos Acosh Asin Asinh Atan Atanh Cos Cosh Elu Erf Exp Gelu HardSigmoid HardSwish Log LogSoftmax Mish Selu Sigmoid
Sin Sinh Softmax Softplus Softsign Sqrt Tan Tanh Swish LpNormalization""".split()
REDUCED = "ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare ReduceMean".split()
TYPES = {"float": (TensorProto.FLOAT, np.float32), "double": (TensorProto.DOUBLE, np.float64),
         "float16": (TensorProto.FLOAT16, np.float16)}
ROWS, COLUMNS = 64, 77


def arguments(dtype):
    random = np.random.default_rng(1)
    x = random.uniform(-1, 1, (ROWS, COLUMNS))
    x[16:32] *= 30
    x[32:40] *= 2.0 ** random.uniform(-140, 120, (8, COLUMNS)) if dtype != np.float16 else 3000
    x[40:44] = np.round(x[40:44] * 8) / 4
    x[44, :5] = [np.inf, -np.inf, np.nan, 0.0, -0.0]
    return x.astype(dtype)


def nodes_of(name):
    for op in UNARY:
        yield helper.make_node(op, ["x"], [op])
    for op in REDUCED:
        yield helper.make_node(op, ["x"], [op], keepdims=1)
    yield helper.make_node("Gelu", ["x"], ["GeluTanh"], approximate="tanh")
    yield helper.make_node("Softmax", ["x"], ["SoftmaxFirst"], axis=0)
    yield helper.make_node("Pow", ["positive", "y"], ["Pow"])
    yield helper.make_node("Pow", ["positive", "exponent"], ["PowOne"])
    yield helper.make_node("LayerNormalization", ["x", "gamma"], ["LayerNormalization"])
    yield helper.make_node("Reshape", ["x", "picture"], ["pixels"])
    yield helper.make_node("LRN", ["pixels"], ["LRN"], size=5, beta=0.7)
    yield helper.make_node("LpPool", ["pixels"], ["LpPool"], kernel_shape=[3, 3], p=3)
    yield helper.make_node("GlobalLpPool", ["pixels"], ["GlobalLpPool"], p=5)
    if name != "float16":
        yield helper.make_node("DFT", ["signal"], ["DFT"])
    if name == "float":
        yield helper.make_node("Celu", ["x"], ["Celu"], alpha=0.7)
        yield helper.make_node("HannWindow", ["length"], ["HannWindow"])
        yield helper.make_node("MelWeightMatrix", ["bins", "length", "rate", "low", "high"], ["MelWeightMatrix"])
    yield helper.make_node("RandomNormalLike", ["x"], ["RandomNormalLike"], seed=7.0)
    yield helper.make_node("LSTM", ["steps", "w", "r"], ["LSTM"], hidden_size=5, activations=["Sigmoid", "Softplus", "Elu"])
    yield helper.make_node("SoftmaxCrossEntropyLoss", ["x", "labels"], ["Loss"], reduction="none")


def model_of(name):
    kind, dtype = TYPES[name]
    random = np.random.default_rng(2)
    constants = {
        "y": random.uniform(-3, 3, (ROWS, COLUMNS)).astype(dtype), "exponent": np.array(1.7, dtype),
        "gamma": random.uniform(0.5, 2, COLUMNS).astype(dtype), "picture": np.array([1, 16, 4, COLUMNS], np.int64),
        "w": random.uniform(-1, 1, (1, 20, COLUMNS)).astype(dtype), "r": random.uniform(-1, 1, (1, 20, 5)).astype(dtype),
        "labels": np.arange(ROWS, dtype=np.int64), "length": np.array(50, np.int64), "bins": np.array(8, np.int64),
        "rate": np.array(16000, np.int64), "low": np.array(20, np.float32), "high": np.array(7000, np.float32),
        "six": np.array([8, 8, COLUMNS], np.int64), "signal_shape": np.array([4, 16 * COLUMNS, 1], np.int64)}
    inner = [helper.make_node("Abs", ["x"], ["positive"]), helper.make_node("Reshape", ["x", "six"], ["steps"]),
             helper.make_node("Reshape", ["x", "signal_shape"], ["signal"])]
    nodes = list(nodes_of(name))
    outputs = [helper.make_tensor_value_info(node.output[0], kind, None) for node in nodes if node.output[0] != "pixels"]
    graph = helper.make_graph(inner + nodes, "operators", [helper.make_tensor_value_info("x", kind, (ROWS, COLUMNS))],
                              outputs, [onnx.numpy_helper.from_array(value, key) for key, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)


def main(folder):
    for name, (_, dtype) in TYPES.items():
        place = pathlib.Path(folder) / name
        place.mkdir(parents=True, exist_ok=True)
        onnx.save(model_of(name), place / "model.onnx")
        np.savez(place / "input_0.npz", x=arguments(dtype))


if __name__ == "__main__":
    main(sys.argv[1])
