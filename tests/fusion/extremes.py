#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold fused operators against the graph as written at extreme parameters.

    extremes.py DQRUN [-v] [--operator NAME]…

Every operator that fusion knows, between DequantizeLinear and QuantizeLinear, with each pair of x_scale and y_scale of
infinity, NaN, 0, denormals, the ends of float's range, negative and ordinary ones, and with comparisons (Relu, Clip,
MaxPool, ReduceMax) before the QuantizeLinear, which must keep a NaN that the operator gives. Then axes without elements.
The fused result is at most one quantum from the result of --no-fuse, and has the same bits at every instruction set level.
The last line is "N passed, N failed, N skipped".
"""

import argparse
import itertools
import pathlib
import sys
import tempfile

import numpy as np

import check
from patterns import S8, U8, Case

SCALES = [np.float32(s) for s in (np.inf, np.nan, 0.0, 1e-45, 1e-38, 3e38, -0.05, 0.05)]
SMALL, NORMAL = np.float32(0.05), np.float32(0.02)
SHAPE = (2, 3, 4, 4)


def unary(op, **attributes):
    return lambda case, x, name="op": case.node(op, [x], name, **attributes)


def with_constant(op, value, first=False):
    def make(case, x, name="op"):
        constant = case.constant(name + "_constant", np.float32(value))
        return case.node(op, [constant, x] if first else [x, constant], name)
    return make


def second(case, x_scale, shape=SHAPE):
    return case.input("second", shape, U8, x_scale, np.array(100, U8))[0]


def binary(op):
    return lambda case, x, name="op": case.node(op, [x, second(case, case.x_scale)], name)


def reduction(op, axes=(2, 3)):
    def make(case, x, name="op"):
        return case.node(op, [x, case.constant(name + "_axes", np.array(axes, np.int64))], name)
    return make


def where(case, x, name="op"):
    condition = case.constant(name + "_condition", case.rng.random(SHAPE) < 0.5)
    return case.node("Where", [condition, x, second(case, case.x_scale)], name)


def concat(case, x, name="op"):
    return case.node("Concat", [x, second(case, SMALL)], name, axis=1)


def product(op):
    def make(case, x, name="op"):
        shape = {"Conv": (4, 3, 2, 2), "ConvTranspose": (3, 4, 2, 2), "MatMul": (4, 5)}[op]
        w = case.dequantize("w", case.constant("w_codes", case.codes(S8, shape)), case.x_scale, None)
        bias = [] if op == "MatMul" else [case.constant("bias", np.array([1, 2, -3, 0], np.float32))]
        return case.node(op, [x, w, *bias], name)
    return make


def pad(value):
    def make(case, x, name="op"):
        pads = case.constant(name + "_pads", np.array([0, 0, 1, 0, 0, 0, 0, 1], np.int64))
        return case.node("Pad", [x, pads, case.constant(name + "_value", np.float32(value))], name)
    return make


def resize(mode):
    def make(case, x, name="op"):
        scales = case.constant(name + "_scales", np.array([1, 1, 2, 2], np.float32))
        return case.node("Resize", [x, "", scales], name, mode=mode)
    return make


def normalization(case, x, name="op", epsilon=0.0):
    gamma = case.constant(name + "_gamma", np.ones(4, np.float32))
    return case.node("LayerNormalization", [x, gamma], name, epsilon=epsilon)


UNARY = ("Relu", "LeakyRelu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Erf", "Exp", "Log", "Sqrt", "Abs", "Neg",
         "Reciprocal", "Floor", "Softplus", "Softsign", "Elu", "Identity", "Softmax", "LogSoftmax", "GlobalAveragePool",
         "GlobalMaxPool", "Transpose")
OPERATORS = {
    **{op: unary(op) for op in UNARY},
    "Softmax along channels": unary("Softmax", axis=1),
    "MaxPool": unary("MaxPool", kernel_shape=[2, 2]),
    "AveragePool": unary("AveragePool", kernel_shape=[2, 2], strides=[2, 1]),
    "AveragePool of padding": unary("AveragePool", kernel_shape=[2, 2], pads=[2, 2, 2, 2]),
    "MaxPool of padding": unary("MaxPool", kernel_shape=[2, 2], pads=[2, 2, 2, 2]),
    "LRN": unary("LRN", size=3),
    "LRN of negative roots": unary("LRN", size=3, bias=-1.0),
    "Clip": lambda case, x, name="op": case.node(
        "Clip", [x, case.constant(name + "_low", np.float32(-1)), case.constant(name + "_high", np.float32(2))], name),
    "Pow": with_constant("Pow", 0.5), "Div": with_constant("Div", 0.0), "quotient": with_constant("Div", 1.0, True),
    **{op: binary(op) for op in ("Add", "Mul", "Sub", "Sum", "Max", "Min", "Mean")},
    **{op: reduction(op) for op in ("ReduceMean", "ReduceMax", "ReduceMin")},
    "Where": where, "Concat": concat,
    **{op: product(op) for op in ("Conv", "ConvTranspose", "MatMul")},
    "Pad": pad(0.0), "Pad of NaN": pad(np.nan), "Pad of infinity": pad(np.inf),
    "nearest": resize("nearest"), "linear": resize("linear"), "LayerNormalization": normalization,
}

TAILS = {
    "": lambda case, y: y,
    "Relu": lambda case, y: case.node("Relu", [y], "tail"),
    "Clip": lambda case, y: OPERATORS["Clip"](case, y, "tail"),
    "Clip and Reshape": lambda case, y: case.node(
        "Reshape", [OPERATORS["Clip"](case, y, "tail"), case.constant("flat", np.array([-1], np.int64))], "reshape"),
    "MaxPool": lambda case, y: case.node("MaxPool", [y], "tail", kernel_shape=[1, 1], strides=[1, 1]),
    "wide MaxPool": lambda case, y: case.node("MaxPool", [y], "tail", kernel_shape=[2, 2], pads=[1, 1, 1, 1]),
    "ReduceMax": lambda case, y: reduction("ReduceMax", (0,))(case, y, "tail"),
    "ReduceMin": lambda case, y: reduction("ReduceMin", (1,))(case, y, "tail"),
}
FLOATS = ["Add", "Mul", "Sub", "Max", "Min", "Mean", "Sum"]  # with floats of the caller's: NaN and infinities among them


def build(case, operator, x_scale, y_scale, tail, dtype=U8, y_dtype=U8, shape=SHAPE):
    case.x_scale = x_scale
    zero = np.array(128 if dtype == U8 else 3, dtype)
    codes = np.resize(np.arange(256, dtype=np.uint8).view(dtype) if dtype.itemsize == 1 else
                      np.arange(-32768, 32768, 999).astype(dtype), int(np.prod(shape))).reshape(shape)
    x = case.dequantize("x", case.fed("x_codes", case.rng.permuted(codes.reshape(-1)).reshape(shape)), x_scale, zero)
    y = TAILS[tail](case, OPERATORS[operator](case, x))
    case.quantize("y", y, y_scale, y_dtype, np.array(100, y_dtype))
    case.note = f"{operator}, then {tail or 'nothing'}, x_scale {x_scale}, y_scale {y_scale}"


def floats(case, operator, tail):
    """A float operand with NaN and infinities beside a dequantized one."""
    case.x_scale = SMALL
    values = case.rng.normal(0, 3, SHAPE).astype(np.float32)
    values.reshape(-1)[::5] = np.nan
    values.reshape(-1)[1::7] = np.inf
    values.reshape(-1)[2::11] = -np.inf
    y = TAILS[tail](case, OPERATORS[operator](case, case.fed("x", values)))
    case.quantize("y", y, NORMAL, U8, np.array(100, U8))
    case.note = f"{operator} of floats, then {tail or 'nothing'}"


def empty(case, operator, tail, shape):
    build(case, operator, SMALL, NORMAL, tail, shape=shape)
    case.note += f", shape {list(shape)}"


EMPTY = [(operator, tail, shape)
         for operator in ("ReduceMean", "ReduceMax", "ReduceMin", "GlobalAveragePool", "GlobalMaxPool", "Softmax",
                          "AveragePool of padding", "MaxPool of padding", "Sigmoid")
         for tail in ("", "Relu", "Clip and Reshape") for shape in ((2, 3, 0, 4), (2, 0, 4, 4))]


def groups(only):
    """Makers of cases, by groups that run as one model."""
    names = [n for n in OPERATORS if not only or n in only]
    for name in names:
        yield [lambda case, n=name, x=x, y=y, t=t: build(case, n, x, y, t)
               for x, y in itertools.product(SCALES, SCALES) for t in ("", "Relu", "Clip and Reshape")]
    yield [lambda case, n=name, t=t, d=d: build(case, n, SMALL, NORMAL, t, d)
           for name in names for t in TAILS for d in (U8, S8)]
    yield [lambda case, n=name, t=t: build(case, n, SMALL, NORMAL, t, np.dtype(np.int16), np.dtype(np.int16))
           for name in names for t in TAILS]
    yield [lambda case, n=name, t=t: floats(case, n, t) for name in ("Identity", "Sigmoid", "LeakyRelu", "Log", "Exp")
           if name in names for t in TAILS]
    for operator, tail, shape in EMPTY:
        if operator in names:
            yield [lambda case, o=operator, t=tail, s=shape: empty(case, o, t, s)]


def run_group(makers, opset, options, runner):
    rng = np.random.default_rng(options.seed)
    cases = []
    for number, make in enumerate(makers):
        case = Case(f"c{number}_", opset, rng)
        make(case)
        cases.append(case)
    results = runner.run_all(cases, opset)
    arrays, text = results["as written"]
    if arrays is None and all(other is None for other, _ in results.values()):
        return 0, 0, len(cases)  # refused either way
    refused = [f"{run}: {why}" for run, (got, why) in results.items() if got is None]
    if refused:
        print(f"FAIL opset {opset}, {cases[0].note} …: {refused[0]}")
        return 0, len(cases), 0
    failed = 0
    for case in cases:
        problems = check.judge(case, results)
        failed += bool(problems)
        if problems and (options.verbose or failed <= 2):
            print(f"FAIL opset {opset}, {case.note}: {'; '.join(problems)}")
    return len(cases) - failed, failed, 0


def main():
    parser = argparse.ArgumentParser(description="Hold fused operators against the graph as written at extremes.")
    parser.add_argument("dqrun", type=pathlib.Path)
    parser.add_argument("--operator", action="append", choices=OPERATORS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the last model and its inputs")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every failure")
    options = parser.parse_args()
    counts = np.zeros(3, int)
    check.RUNS |= {level: ["--threads", "2", "--isa", level] for level in check.levels(options.dqrun)[1:-1]}
    with tempfile.TemporaryDirectory() as folder:
        runner = check.Runner(options.dqrun, options.keep or folder)
        for makers in groups(options.operator):
            if makers:
                counts += run_group(makers, 21 if len(makers) > 1 else 18, options, runner)
    print(f"{counts[0]} passed, {counts[1]} failed, {counts[2]} skipped")
    return 1 if counts[1] or not counts[0] else 0


if __name__ == "__main__":
    sys.exit(main())
