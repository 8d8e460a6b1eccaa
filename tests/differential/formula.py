# SPDX-License-Identifier: Apache-2.0
"""The real-number formula of a graph: each operator over the dequantized values, rounded once by QuantizeLinear.

Integer products (MatMulInteger, ConvInteger) are exact integers, and DynamicQuantizeLinear is computed in float32 as its
text says. If runs the branch that its condition, an input, chooses; Loop runs its body as often as its input says.

`evaluate` goes through the nodes of a model with exact rational numbers (object arrays of Fraction), or with float64 to
learn magnitudes. Values that have no exact number (transcendental functions, NaN, infinities, empty means) are None,
and so is all that follows from them up to the next quantized value, which is taken from `known`.
"""

from fractions import Fraction

import ml_dtypes
import numpy as np
from onnx import helper, numpy_helper

BITS = {np.dtype(np.uint8): (0, 255), np.dtype(np.int8): (-128, 127), np.dtype(np.uint16): (0, 65535),
        np.dtype(np.int16): (-32768, 32767)}


class Unknown(Exception):
    """No exact number."""


def exact(array):
    """Integers or finite floats as Fractions."""
    array = np.asarray(array)
    if array.dtype == object:
        return array
    if array.dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        array = array.astype(np.int8)
    if array.dtype.kind not in "iub":
        array = array.astype(np.float64)
        if not np.isfinite(array).all():
            raise Unknown
    result = np.empty(array.shape, object)
    result.reshape(-1)[:] = [Fraction(v) for v in array.reshape(-1).tolist()]
    return result


def along(parameter, rank, axis):
    """A vector of parameters spread along an axis."""
    if parameter.size == 1:
        return parameter.reshape(())
    shape = [1] * rank
    shape[axis] = parameter.size
    return parameter.reshape(shape)


def round_half_even(values):
    return np.vectorize(round, otypes=[object])(values) if values.dtype == object else np.rint(values)


def quantize(x, scale, zero, dtype, axis, numbers):
    scale, zero = numbers(along(scale, x.ndim, axis)), along(zero, x.ndim, axis)
    if np.any(scale == 0):
        raise Unknown
    low, high = BITS[np.dtype(dtype)]
    quotient = round_half_even(np.asarray(x / scale)) if x.size else x
    return np.asarray(np.clip(np.asarray(quotient + numbers(zero)), low, high)).astype(dtype)


def windows(x, kernel, strides, pads, dilations, fill):
    """[…, outputs…, kernel…] of the last axes of x."""
    axes = len(kernel)
    padded = np.pad(x, [(0, 0)] * (x.ndim - axes) + [(pads[i], pads[axes + i]) for i in range(axes)], constant_values=fill)
    reach = [dilations[i] * (kernel[i] - 1) + 1 for i in range(axes)]
    view = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=tuple(range(x.ndim - axes, x.ndim)))
    steps = tuple([slice(None)] * (x.ndim - axes) + [slice(None, None, s) for s in strides]
                  + [slice(None, None, d) for d in dilations])
    return view[steps]


def geometry(attributes, kernel):
    axes = len(kernel)
    return (attributes.get("strides", [1] * axes), attributes.get("pads", [0] * 2 * axes),
            attributes.get("dilations", [1] * axes))


def conv(attributes, x, w, b=None):
    group, axes = attributes.get("group", 1), w.ndim - 2
    view = windows(x, w.shape[2:], *geometry(attributes, w.shape[2:]), 0)
    parts = []
    for g, filters in enumerate(np.split(w, group)):
        channels = view[:, g * w.shape[1]:(g + 1) * w.shape[1]]
        terms = channels[:, None] * filters.reshape(filters.shape[:2] + (1,) * axes + filters.shape[2:])
        terms = np.moveaxis(terms, 2, -1)  # N M outputs… kernel… C
        parts.append(terms.sum(axis=tuple(range(2 + axes, terms.ndim))))
    y = np.concatenate(parts, axis=1)
    return y if b is None else y + along(b, y.ndim, 1)


def pool(attributes, x, average):
    kernel = attributes["kernel_shape"]
    geo = geometry(attributes, kernel)
    last = tuple(range(x.ndim, x.ndim + len(kernel)))
    if not average:
        if any(geo[1]):
            raise Unknown
        return windows(x, kernel, *geo, 0).max(axis=last)
    ones = np.full(x.shape, 1, x.dtype)
    count = windows(ones, kernel, *geo, attributes.get("count_include_pad", 0)).sum(axis=last)
    return windows(x, kernel, *geo, 0).sum(axis=last) / count


def gemm(attributes, a, b, c=None):
    if attributes.get("alpha", 1.0) != 1.0 or attributes.get("beta", 1.0) != 1.0:
        raise Unknown
    a, b = (a.T if attributes.get("transA") else a), (b.T if attributes.get("transB") else b)
    return a @ b if c is None else a @ b + c


def reduce(function, mean=False):
    def run(attributes, x, axes=None):
        axes = tuple(int(a) for a in (attributes.get("axes", range(x.ndim)) if axes is None else axes))
        keep = bool(attributes.get("keepdims", 1))
        count = int(np.prod([x.shape[a] for a in axes]))
        if count == 0 or x.size == 0:
            raise Unknown
        y = np.asarray(function(x, axis=axes, keepdims=keep))
        return y / np.full((), count, x.dtype) if mean else y
    return run


def blocked(parameter, x, axis, size):
    """A parameter for each block of `size` elements, one for each element."""
    return np.repeat(parameter, size, axis=axis).take(np.arange(x.shape[axis]), axis=axis)


def integer_product(op, attributes, x, w, x_zero=None, w_zero=None):
    """int32 sums, exact."""
    left = x.astype(np.int64) - (0 if x_zero is None else x_zero.astype(np.int64))
    zero = 0 if w_zero is None else w_zero.astype(np.int64)
    right = w.astype(np.int64) - (along(np.asarray(zero), w.ndim, 0) if op == "ConvInteger" else zero)
    return (conv(attributes, left, right) if op == "ConvInteger" else left @ right).astype(np.int32)


def dynamic_quantize(x):
    """The three results, in float32 as the operator's text has them."""
    if not np.isfinite(x).all() or x.size == 0 or x.dtype != np.float32:
        raise Unknown
    low, high = min(np.float32(0), x.min()), max(np.float32(0), x.max())
    span = np.float32(high - low)
    if not np.isfinite(span) or span == 0:
        raise Unknown
    scale = np.float32(span / np.float32(255))
    if scale == 0:
        raise Unknown
    zero = np.uint8(np.clip(np.rint(np.float32(0 - low / scale)), 0, 255))
    return np.clip(np.rint(x / scale) + np.float32(zero), 0, 255).astype(np.uint8), np.asarray(scale), np.asarray(zero)


def resize(attributes, x, *rest):
    """By whole factors, nearest: each element so many times."""
    scales = rest[1]
    if attributes.get("mode", b"nearest") != b"nearest" or np.any(scales != np.rint(scales)):
        raise Unknown
    for axis, n in enumerate(scales):
        x = np.repeat(x, int(n), axis=axis)
    return x


def clip(_, x, low=None, high=None):
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def softmax(attributes, x):
    axis = attributes.get("axis", -1)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


EXACT = {
    "Add": lambda _, a, b: a + b, "Sub": lambda _, a, b: a - b, "Mul": lambda _, a, b: a * b,
    "Sum": lambda _, *v: sum(v[1:], v[0]), "Neg": lambda _, x: -x, "Abs": lambda _, x: abs(x), "Identity": lambda _, x: x,
    "Max": lambda _, a, b: np.maximum(a, b), "Min": lambda _, a, b: np.minimum(a, b),
    "Relu": lambda _, x: np.maximum(x, Fraction(0) if x.dtype == object else 0.0), "Clip": clip,
    "MatMul": lambda _, a, b: a @ b, "Gemm": gemm, "Conv": conv,
    "AveragePool": lambda a, x: pool(a, x, True), "MaxPool": lambda a, x: pool(a, x, False),
    "GlobalAveragePool": lambda _, x: reduce(np.sum, True)({"axes": range(2, x.ndim)}, x),
    "ReduceMean": reduce(np.sum, True), "ReduceSum": reduce(np.sum), "ReduceMax": reduce(np.max), "ReduceMin": reduce(np.min),
    "Concat": lambda a, *v: np.concatenate(v, axis=a["axis"]), "Transpose": lambda a, x: np.transpose(x, a["perm"]),
    "Reshape": lambda _, x, shape: x.reshape([int(n) for n in shape]), "Where": lambda _, c, a, b: np.where(c, a, b),
}
FLOAT = EXACT | {
    "Sigmoid": lambda _, x: 1 / (1 + np.exp(-x)), "Tanh": lambda _, x: np.tanh(x), "Exp": lambda _, x: np.exp(x),
    "Log": lambda _, x: np.log(x), "Sqrt": lambda _, x: np.sqrt(x), "Softmax": softmax, "Floor": lambda _, x: np.floor(x),
    "Erf": lambda _, x: np.tanh(1.2 * x), "HardSigmoid": lambda _, x: np.clip(0.2 * x + 0.5, 0, 1),
    "LeakyRelu": lambda _, x: np.where(x < 0, 0.01 * x, x), "Reciprocal": lambda _, x: 1 / x, "Cast": lambda _, x: x,
}


def run_node(node, values, numbers, table):
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    arguments = [values.get(name) if name else None for name in node.input]
    if any(value is None for name, value in zip(node.input, arguments) if name):
        raise Unknown
    if node.op_type == "DequantizeLinear":
        x, scale = arguments[:2]
        zero = arguments[2] if len(arguments) > 2 else np.zeros((), x.dtype)
        axis = attributes.get("axis", 1)
        if attributes.get("block_size"):
            scale, zero = (blocked(p, x, axis, attributes["block_size"]) for p in (scale, zero))
            return np.asarray((numbers(x) - numbers(zero)) * numbers(scale))
        return np.asarray((numbers(x) - numbers(along(zero, x.ndim, axis))) * numbers(along(scale, x.ndim, axis)))
    if node.op_type == "QuantizeLinear":
        x, scale = arguments[:2]
        zero = arguments[2] if len(arguments) > 2 else np.zeros((), np.uint8)
        return quantize(numbers(x), scale, zero, zero.dtype, attributes.get("axis", 1), numbers)
    if node.op_type in ("MatMulInteger", "ConvInteger"):
        return integer_product(node.op_type, attributes, *arguments)
    if node.op_type == "DynamicQuantizeLinear":
        return dynamic_quantize(*arguments)
    if node.op_type == "Stack":
        return np.stack(arguments)
    if node.op_type == "Resize":
        return resize(attributes, *arguments)
    if node.op_type not in table:
        raise Unknown
    integers = {"Reshape": (1,), "Where": (0,), "ReduceSum": (1,), "ReduceMean": (1,), "ReduceMax": (1,), "ReduceMin": (1,)}
    kept = integers.get(node.op_type, ())
    arguments = [a if a is None or i in kept else numbers(a) for i, a in enumerate(arguments)]
    return np.asarray(table[node.op_type](attributes, *arguments))


def renamed(node, names):
    """A copy of the node whose values have other names, where `names` has one."""
    copy = type(node)()
    copy.CopyFrom(node)
    for values in (copy.input, copy.output):
        for i, name in enumerate(values):
            values[i] = names.get(name, name)
    return copy


def iterations(node, trips):
    """The nodes of a Loop's body for each iteration; then, stacked, the outputs that it gives in each of them."""
    body = node.attribute[0].g
    carried, states = len(node.input) - 2, list(node.input[2:])
    stacked = [[] for _ in node.output[carried:]]
    for trip in range(trips):
        names = {name: f"{name}@{trip}" for inner in body.node for name in inner.output}
        names |= dict(zip([i.name for i in body.input[2:]], states))
        for inner in body.node:
            yield renamed(inner, names)
        results = [names.get(o.name, o.name) for o in body.output[1:]]
        states = results[:carried]
        for rows, name in zip(stacked, results[carried:]):
            rows.append(name)
    for name, result in zip(states, node.output):
        yield helper.make_node("Identity", [name], [result])
    for rows, result in zip(stacked, node.output[carried:]):
        yield helper.make_node("Stack", rows, [result])


def written_out(nodes, feeds):
    """The nodes without control flow: those of the chosen branch in place of each If, whose result then has the If's name,
    and those of each iteration in place of each Loop."""
    for node in nodes:
        if node.op_type == "If":
            branches = {a.name: a.g for a in node.attribute}
            chosen = branches["then_branch" if feeds[node.input[0]] else "else_branch"]
            for inner in chosen.node:
                yield renamed(inner, {chosen.output[0].name: node.output[0]})
        elif node.op_type == "Loop":
            yield from iterations(node, int(feeds[node.input[0]]))
        else:
            yield node


def evaluate(model, feeds, known=None, rational=True):
    """All values of the graph by name, None where there is no exact one. known: quantized values to go on with."""
    table = EXACT if rational else FLOAT
    numbers = exact if rational else lambda a: np.asarray(a).astype(np.float64)
    values = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer} | feeds
    results = {}
    for node in written_out(model.graph.node, feeds):
        try:
            with np.errstate(all="ignore"):
                result = run_node(node, values, numbers, table)
        except (Unknown, ZeroDivisionError, OverflowError, ValueError):
            result = None
        several = result if isinstance(result, tuple) else (result,) * len(node.output) if result is None else (result,)
        for name, one in zip(node.output, several):
            results[name] = one
            values[name] = known[name] if known and name in known else one
    return results
