# SPDX-License-Identifier: Apache-2.0
"""Exact numpy evaluation of the example models, to hold dqrun's results against.

Integer operators are computed in int64, which none of their sums can leave, and rounded once: to nearest, ties to
even, by a multiplier in float64. Float operators are computed in float64 and rounded to float32 at each operator's
output, so there the result is the best float32 answer and not the only right one.

Covers the operators and attributes that the models use, and refuses any other.
"""

import numpy as np
import onnx
from onnx import helper, numpy_helper


def saturate(values, dtype):
    limits = np.iinfo(dtype)
    return np.clip(values, limits.min, limits.max).astype(dtype)


def along(parameter, rank, axis):
    """A scale or zero point of one axis in the shape that broadcasts against a tensor of that rank."""
    parameter = np.asarray(parameter)
    if parameter.ndim == 0:
        return parameter
    return parameter.reshape([-1 if a == axis else 1 for a in range(rank)])


def quantize_linear(x, scale, zero_point, axis=1):
    quotient = x / along(scale, x.ndim, axis)
    codes = np.rint(quotient).astype(np.float64) + along(zero_point, x.ndim, axis)
    return saturate(codes, zero_point.dtype)


def dequantize_linear(x, scale, zero_point=None, axis=1):
    codes = x.astype(np.int64)
    if zero_point is not None:
        codes = codes - along(zero_point, x.ndim, axis).astype(np.int64)
    return codes.astype(np.float32) * along(scale, x.ndim, axis)


def dynamic_quantize_linear(x):
    low, high = np.minimum(x.min(), np.float32(0)), np.maximum(x.max(), np.float32(0))
    scale = np.float32((high - low) / np.float32(255))
    zero_point = saturate(np.rint(np.clip(-low / scale, 0, 255)), np.uint8)
    return quantize_linear(x, scale, zero_point), scale, zero_point


def convolve(x, w, pads, strides, kernel_shape):
    """Sum of products over the window, one kernel position at a time, in the type of the operands."""
    if list(kernel_shape) != list(w.shape[2:]):
        raise ValueError(f"kernel_shape {kernel_shape} beside a weight of shape {w.shape}")
    padded = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    rows = (padded.shape[2] - w.shape[2]) // strides[0] + 1
    columns = (padded.shape[3] - w.shape[3]) // strides[1] + 1
    total = np.zeros((x.shape[0], w.shape[0], rows, columns), x.dtype)
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            seen = padded[:, :, i : i + strides[0] * rows : strides[0], j : j + strides[1] * columns : strides[1]]
            total += np.einsum("nchw,oc->nohw", seen, w[:, :, i, j])
    return total


def centered(codes, zero_point, axis):
    codes = codes.astype(np.int64)
    return codes if zero_point is None else codes - along(zero_point, codes.ndim, axis).astype(np.int64)


def requantize(total, multiplier, zero_point):
    return saturate(np.rint(total * multiplier) + np.float64(zero_point), zero_point.dtype)


def qlinear_conv(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias=None, **attributes):
    total = convolve(centered(x, x_zero, 1), centered(w, w_zero, 0), **attributes)
    if bias is not None:
        total = total + along(bias, 4, 1).astype(np.int64)
    multiplier = np.float64(x_scale) * w_scale.astype(np.float64) / np.float64(y_scale)
    return requantize(total, along(multiplier, 4, 1), y_zero)


def qlinear_matmul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):
    total = centered(a, a_zero, 0) @ centered(b, b_zero, 1)
    return requantize(total, np.float64(a_scale) * b_scale.astype(np.float64) / np.float64(y_scale), y_zero)


def conv_integer(x, w, x_zero=None, w_zero=None, **attributes):
    return convolve(centered(x, x_zero, 1), centered(w, w_zero, 0), **attributes).astype(np.int32)


def matmul_integer(a, b, a_zero=None, b_zero=None):
    return (centered(a, a_zero, 0) @ centered(b, b_zero, 1)).astype(np.int32)


def conv(x, w, bias, **attributes):
    total = convolve(x.astype(np.float64), w.astype(np.float64), **attributes)
    return (total + along(bias, 4, 1)).astype(np.float32)


def cast(x, to):
    return x.astype(helper.tensor_dtype_to_np_dtype(to))


OPERATORS = {
    "Add": lambda a, b: a + b,
    "Cast": cast,
    "Conv": conv,
    "ConvInteger": conv_integer,
    "DequantizeLinear": dequantize_linear,
    "DynamicQuantizeLinear": dynamic_quantize_linear,
    "Flatten": lambda x: x.reshape(len(x), -1),
    "MatMul": lambda a, b: (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32),
    "MatMulInteger": matmul_integer,
    "Mul": lambda a, b: a * b,
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
    "QuantizeLinear": quantize_linear,
    "Relu": lambda x: np.maximum(x, 0),
}


def evaluate(path, inputs):
    """Every value of the model by name, from its inputs by name."""
    graph = onnx.load(path).graph
    values = {**inputs, **{t.name: numpy_helper.to_array(t) for t in graph.initializer}}
    for node in graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        results = OPERATORS[node.op_type](*(values[name] for name in node.input), **attributes)
        values.update(zip(node.output, results if isinstance(results, tuple) else (results,)))
    return values
