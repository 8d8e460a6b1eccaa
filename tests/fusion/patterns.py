# SPDX-License-Identifier: Apache-2.0
"""The patterns that check.py tries: each a function that builds one random case.

A pattern draws its shapes, types and parameters from case.rng, adds nodes, and says what is to come of it:
case.expect(node, sentence) for what --why must tell, case.expect(..., told=False) for what it must not, case.quanta
(0: exact), case.rtol and case.atol for floats, case.also for values inside the graph that the caller wants.
"""

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

U8, S8 = np.dtype(np.uint8), np.dtype(np.int8)
PRODUCT = "fused with its quantization into "
MOVES = "works on quantized values"
TABLE = "one look-up in a table"


class Case:
    def __init__(self, prefix, opset, rng):
        self.prefix, self.opset, self.rng = prefix, opset, rng
        self.nodes, self.inputs, self.outputs, self.constants = [], [], [], []
        self.feeds, self.expected, self.also = {}, [], []
        self.quanta, self.rtol, self.atol, self.note = 1, 0.0, 0.0, ""
        self.pad_value = 0.0

    def requested(self):
        return [o.name for o in self.outputs] + self.also

    def expect(self, node, sentence, told=True):
        self.expected.append((node, sentence, told))

    # ---- Drawing

    def chance(self, share):
        return self.rng.random() < share

    def pick(self, *options):
        return options[self.rng.integers(len(options))]

    def size(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def code_type(self):
        return self.pick(U8, S8)

    def codes(self, dtype, shape):
        info = np.iinfo(dtype)
        return self.rng.integers(info.min, info.max + 1, shape).astype(dtype)

    def zero(self, dtype):
        """A zero point, sometimes none, sometimes at an end of the range."""
        if self.chance(0.2):
            return None
        info = np.iinfo(dtype)
        if self.chance(0.2):
            return np.array(self.pick(info.min, info.max), dtype)
        return np.array(self.rng.integers(info.min // 2 + info.max // 4, info.max // 2 + 1), dtype)

    def scale(self, low=0.002, high=0.2):
        return np.float32(np.exp(self.rng.uniform(np.log(low), np.log(high))))

    # ---- Building

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), self.prefix + name))
        return self.prefix + name

    def fed(self, name, array):
        info = helper.make_tensor_value_info(self.prefix + name, helper.np_dtype_to_tensor_dtype(array.dtype),
                                             array.shape)
        self.inputs.append(info)
        self.feeds[self.prefix + name] = array
        return self.prefix + name

    def node(self, op, inputs, name, domain="", **attributes):
        """One node of one output; both have its name."""
        self.nodes.append(helper.make_node(op, inputs, [self.prefix + name], name=self.prefix + name, domain=domain,
                                           **attributes))
        return self.prefix + name

    def output(self, value, dtype):
        self.outputs.append(helper.make_tensor_value_info(value, helper.np_dtype_to_tensor_dtype(dtype), None))

    def parameters(self, name, scale, zero):
        inputs = [self.constant(name + "_scale", scale)]
        return inputs if zero is None else [*inputs, self.constant(name + "_zero", zero)]

    def dequantize(self, name, value, scale, zero, **attributes):
        return self.node("DequantizeLinear", [value, *self.parameters(name, scale, zero)], name, **attributes)

    def input(self, name, shape, dtype=None, scale=None, zero="draw"):
        """A fed tensor of codes, dequantized. Returns its float value, type, scale and zero point."""
        dtype = dtype or self.code_type()
        scale = scale or self.scale()
        zero = self.zero(dtype) if isinstance(zero, str) else zero
        value = self.fed(name + "_codes", self.codes(dtype, shape))
        return self.dequantize(name, value, scale, zero), dtype, scale, zero

    def quantize(self, name, value, scale, dtype, zero="draw"):
        """Quantized, and an output of the graph."""
        zero = self.zero(dtype) if isinstance(zero, str) else zero
        attributes = {}
        if zero is None and dtype != U8:
            if self.opset >= 21:
                attributes["output_dtype"] = helper.np_dtype_to_tensor_dtype(dtype)
            else:
                zero = np.array(0, dtype)
        result = self.node("QuantizeLinear", [value, *self.parameters(name, np.float32(scale), zero)], name,
                           **attributes)
        self.output(result, dtype)
        return result

    def quantize_half(self, name, value, scale):
        """Quantized to uint8 by a scale in half precision, and an output of the graph."""
        result = self.node("QuantizeLinear", [value, *self.parameters(name, scale, np.uint8(100))], name)
        self.output(result, U8)

    def clip(self, value):
        """Relu, Clip or nothing behind a product."""
        kind = self.pick("none", "Relu", "Clip", "Clip", "both")
        if kind in ("Relu", "both"):
            value = self.node("Relu", [value], "relu")
        if kind in ("Clip", "both"):
            low, high = sorted(self.rng.uniform(-3, 6, 2))
            bounds = [self.constant("low", np.float32(low)), self.constant("high", np.float32(high))]
            value = self.node("Clip", [value, *bounds], "clip")
        self.note += f" {kind}"
        return value

    def weights(self, shape, axis, per_channel):
        """Constant codes, dequantized; the float value and the scales."""
        dtype = self.code_type()
        count = shape[axis] if per_channel else 1
        scales = np.array([self.scale(0.002, 0.02) for _ in range(count)], np.float32)
        zero = self.pick(None, np.zeros(count, dtype), self.rng.integers(0, 9, count).astype(dtype))
        codes = self.codes(dtype, shape)
        self.note += f" {dtype} weights {list(shape)}{' per channel' if per_channel else ''}"
        if not per_channel:
            scales, zero = scales.reshape(()), None if zero is None else zero[0]
        along = {"axis": self.pick(axis, axis - len(shape))} if per_channel else {}
        kind = self.pick("codes", "codes", "codes", "quantized in the graph", "narrow")
        if kind == "narrow" and self.opset >= 21:
            self.note += " of 4 bits"
            return self.dequantize("w", *self.narrow(codes, scales, zero), **along), scales.reshape(-1)
        if kind == "quantized in the graph" and zero is not None:
            self.note += f" {kind}"
            turned = np.reshape(zero, [count if per_channel and i == axis else 1 for i in range(len(shape))])
            sizes = scales.reshape(turned.shape) if per_channel else scales
            value = self.constant("w_floats", ((codes.astype(np.float32) - turned) * sizes).astype(np.float32))
            value = self.node("QuantizeLinear", [value, *self.parameters("w_q", scales, zero)], "w_q", **along)
        else:
            value = self.constant("w_codes", codes)
        return self.dequantize("w", value, scales, zero, **along), scales.reshape(-1)

    def narrow(self, codes, scale, zero):
        """4 bits of these codes and zero points; the codes' name, scale and zero point."""
        dtype = ml_dtypes.uint4 if codes.dtype == U8 else ml_dtypes.int4
        self.constants.append(numpy_helper.from_array((codes >> 4).astype(dtype), self.prefix + "w_narrow"))
        return self.prefix + "w_narrow", scale, None if zero is None else (zero >> 1).astype(dtype)

    def bias(self, channels, scales):
        """Bias of a product as quantizers write it, or as floats, or none; scales are those of the sums."""
        kind = self.pick("none", "int32", "float", "int32")
        self.note += f" bias {kind}"
        if kind == "none":
            return []
        if kind == "float":
            return [self.constant("bias", (self.rng.normal(0, 20, channels) * scales.max()).astype(np.float32))]
        value = self.constant("bias_codes", self.rng.integers(-5000, 5000, channels).astype(np.int32))
        if scales.size == 1:
            return [self.dequantize("bias", value, scales.astype(np.float32).reshape(()), None)]
        zero = self.pick(None, np.zeros(channels, np.int32))
        return [self.dequantize("bias", value, scales.astype(np.float32), zero, axis=0)]


def sum_scale(case, terms, x_scale, w_scales):
    """A scale for the results of sums of products, that uses much of the range and is left at times."""
    return max(float(x_scale) * float(np.max(w_scales)) * 70 * 70 * np.sqrt(terms) / case.size(20, 120),
               float(x_scale) * float(np.max(w_scales)))


# ---- Products ----------------------------------------------------------------------------------------------------

def conv(case):
    spatial = case.pick(1, 2, 2, 2, 3)
    groups = case.pick(1, 1, 2, 3, 8)
    inner, outer = case.pick(1, 1, 2, 3, 5), case.pick(1, 1, 2, 4)
    depthwise = groups == 8
    channels, filters = (8, 8) if depthwise else (groups * inner, groups * outer)
    kernel = [case.size(1, 3) for _ in range(spatial)]
    x, _, x_scale, _ = case.input("x", (case.size(1, 2), channels, *[case.size(4, 9) for _ in range(spatial)]))
    shape = (filters, channels // groups, *kernel)
    w, w_scales = case.weights(shape, 0, case.chance(0.5))
    attributes = {"group": groups, "strides": [case.size(1, 2) for _ in kernel]}
    if case.chance(0.5):
        attributes["pads"] = [case.size(0, k - 1) for k in kernel * 2]
    elif case.chance(0.3):
        attributes["auto_pad"] = case.pick("SAME_UPPER", "SAME_LOWER", "VALID")
    sums = np.float64(x_scale) * w_scales
    y = case.node("Conv", [x, w, *case.bias(filters, sums)], "conv", **attributes)
    terms = int(np.prod(shape[1:]))
    case.quantize("y", case.clip(y), sum_scale(case, terms, x_scale, w_scales), case.code_type())
    case.expect("conv", PRODUCT + "QLinearConv")


def depthwise(case):
    """Scales of the channels before a depthwise convolution, whose filters take them."""
    dtype, channels, each = case.code_type(), case.size(1, 9), case.size(1, 2)
    scales = np.array([case.scale() for _ in range(channels)], np.float32)
    zero = case.pick(None, np.full(channels, case.size(0, 9), dtype), case.codes(dtype, channels))
    codes = case.fed("x_codes", case.codes(dtype, (case.size(1, 2), channels, case.size(4, 8), case.size(4, 8))))
    x = case.dequantize("x", codes, scales, zero, axis=case.pick(1, -3))
    w, w_scales = case.weights((channels * each, 1, 3, 3), 0, case.chance(0.5))
    products = np.repeat(scales, each).astype(np.float64) * w_scales
    y = case.node("Conv", [x, w, *case.bias(channels * each, products)], "conv", group=channels)
    case.quantize("y", case.clip(y), sum_scale(case, 9, scales.max(), w_scales), case.code_type())
    case.expect("conv", PRODUCT + "QLinearConv", zero is None or len(set(zero)) == 1)


def gemm(case):
    m, k, n = case.size(1, 9), case.size(1, 70), case.size(1, 20)
    turn_a, turn_b = case.size(0, 1), case.size(0, 1)
    a, _, a_scale, _ = case.input("a", (k, m) if turn_a else (m, k))
    w, w_scales = case.weights((n, k) if turn_b else (k, n), 0 if turn_b else 1, case.chance(0.5))
    y = case.node("Gemm", [a, w, *case.bias(n, np.float64(a_scale) * w_scales)], "gemm", transA=turn_a, transB=turn_b)
    case.quantize("y", case.clip(y), sum_scale(case, k, a_scale, w_scales), case.code_type())
    case.expect("gemm", PRODUCT + "QGemm")


def matmul_shapes(case):
    m, k, n = case.size(1, 9), case.size(1, 70), case.size(1, 20)
    batch = case.pick((), (), (2,), (2, 3))
    return (*batch, m, k), (k, n), k


def matmul(case):
    a_shape, b_shape, k = matmul_shapes(case)
    a, _, a_scale, _ = case.input("a", a_shape)
    b, scales = case.weights(b_shape, 1, case.chance(0.5))
    y = case.node("MatMul", [a, b], "matmul")
    case.quantize("y", case.clip(y), sum_scale(case, k, a_scale, scales), case.code_type())
    case.expect("matmul", PRODUCT + "QLinearMatMul")


def computed(case):
    """Products of two computed operands: of what length the sums are is known in a plan only."""
    if case.chance(0.7):
        a_shape, b_shape, k = matmul_shapes(case)
        op, b_shape, attributes = "MatMul", (*a_shape[:-2], *b_shape), {}
    else:
        m, k, n = case.size(1, 9), case.size(1, 70), case.size(1, 20)
        attributes = {"transA": case.size(0, 1), "transB": case.size(0, 1), "alpha": case.pick(1.0, 0.5)}
        op, a_shape, b_shape = "Gemm", (k, m) if attributes["transA"] else (m, k), (n, k) if attributes["transB"] else (k, n)
    a, _, a_scale, _ = case.input("a", a_shape)
    b, _, b_scale, _ = case.input("b", b_shape)
    y = case.node(op, [a, b], "product", **attributes)
    case.note = f"{op} {a_shape} {b_shape} {attributes}"
    if op == "MatMul" and case.chance(0.4):
        case.output(y, np.dtype(np.float32))
        case.rtol, case.atol = 1e-5, 1e-6 * float(a_scale * b_scale) * 70 * 70 * k
        case.expect("product", "fused with the dequantization of its operands into QLinearMatMul16")
    else:
        case.quantize("y", case.clip(y), sum_scale(case, k, a_scale, b_scale), case.code_type())
        case.expect("product", PRODUCT + "QLinearMatMul16")


def matmul_to_float(case):
    a_shape, b_shape, k = matmul_shapes(case)
    a, _, a_scale, _ = case.input("a", a_shape)
    b, scales = case.weights(b_shape, 1, case.chance(0.5))
    y = case.node("MatMul", [a, b], "matmul")
    if case.chance(0.6):
        bias = case.constant("bias", case.rng.normal(0, 1, b_shape[1]).astype(np.float32))
        y = case.node("Add", [y, bias] if case.chance(0.5) else [bias, y], "add")
    case.output(y, np.dtype(np.float32))
    case.rtol, case.atol = 1e-5, 1e-6 * float(a_scale) * float(np.max(scales)) * 70 * 70 * k
    case.expect("matmul", "into MatMulIntegerToFloat")


def gemm_to_float(case):
    m, k, n = case.size(1, 9), case.size(1, 70), case.size(1, 20)
    turn = case.size(0, 1)
    a, _, a_scale, _ = case.input("a", (m, k))
    w, scales = case.weights((n, k) if turn else (k, n), 0 if turn else 1, case.chance(0.5))
    y = case.node("Gemm", [a, w, *case.bias(n, np.float64(a_scale) * scales)], "gemm", transB=turn,
                  beta=case.pick(1.0, 0.5))
    case.output(y, np.dtype(np.float32))
    case.rtol, case.atol = 1e-5, 1e-6 * float(a_scale) * float(np.max(scales)) * 70 * 70 * k
    case.expect("gemm", "into MatMulIntegerToFloat")


def conv_to_float(case):
    """As quantizers leave it that quantize operands alone: sums with other images and functions stay float."""
    groups = case.pick(1, 1, 2, 8)
    channels, filters = (8, 8) if groups == 8 else (groups * case.size(1, 3), groups * case.size(1, 4))
    x, _, x_scale, _ = case.input("x", (case.size(1, 2), channels, case.size(4, 9), case.size(4, 9)))
    shape = (filters, channels // groups, case.size(1, 3), case.size(1, 3))
    w, scales = case.weights(shape, 0, case.chance(0.5))
    y = case.node("Conv", [x, w, *case.bias(filters, np.float64(x_scale) * scales)], "conv", group=groups)
    y = case.clip(y)
    kind = case.pick("nothing", "LeakyRelu", "Add")
    if kind != "nothing":
        y = case.node(kind, [y] if kind == "LeakyRelu" else [y, y], "behind")
    case.output(y, np.dtype(np.float32))
    case.rtol = 1e-5
    case.atol = 1e-6 * float(x_scale) * float(np.max(scales)) * 70 * 70 * int(np.prod(shape[1:]))
    case.expect("conv", "into ConvIntegerToFloat")


def product_wanted(case):
    """The float result of a product is requested, too, or read twice: it stays float."""
    a, _, a_scale, _ = case.input("a", (3, 20))
    w, w_scales = case.weights((20, 7), 1, False)
    y = case.node("Gemm", [a, w], "gemm")
    if case.chance(0.5):
        case.also.append(y)
    else:
        case.output(case.node("Neg", [y], "neg"), np.dtype(np.float32))
    case.quantize("y", y, sum_scale(case, 20, a_scale, w_scales), case.code_type())
    case.rtol, case.atol = 1e-5, 1e-6 * float(a_scale) * float(np.max(w_scales)) * 70 * 70 * 20
    case.expect("gemm", PRODUCT, told=False)
    case.expect("gemm", "into MatMulIntegerToFloat")


def huge_scales(case):
    """The product of the scales is no normal float: the sum is not multiplied by it."""
    scale = np.float32(case.pick(1e30, -1e30, 1e-30))
    x = case.input("x", (1, 2, 4), scale=scale)[0]
    w = case.dequantize("w", case.constant("w_codes", case.codes(U8, (3, 2, 1))), scale, None)
    bias = case.constant("bias", np.ones(3, np.float32))
    value = case.node("Conv", [x, w, bias], "conv", pads=[1, 0])
    case.quantize("y", value, 1.0, U8)
    case.expect("conv", "ConvIntegerToFloat", told=False)
    case.quanta = 0


def twins(case):
    """A product that is quantized for each of its readers, to the same codes or to others; sometimes a caller wants both,
    and sometimes a reader is there that nobody needs."""
    a, _, a_scale, _ = case.input("a", (3, 20))
    w, w_scales = case.weights((20, 7), 1, False)
    y = case.clip(case.node("MatMul", [a, w], "matmul"))
    scale, dtype = np.float32(sum_scale(case, 20, a_scale, w_scales)), case.code_type()
    zero, kind = case.zero(dtype), case.pick("same", "same", "one constant", "scale", "zero", "requested", "needless")
    zero = np.array(3, dtype) if zero is None else zero
    parameters = [], []
    for i in range(2):
        own_scale, own_zero = scale * (1 + i * (kind == "scale")), zero ^ dtype.type(i * (kind == "zero"))
        one = i and kind == "one constant"
        parameters[i].extend(parameters[0] if one else case.parameters(f"q{i}", np.float32(own_scale), own_zero))
        codes = case.node("QuantizeLinear", [y, *parameters[i]], f"q{i}")
        back = case.node("DequantizeLinear", [codes, *parameters[i]], f"back{i}")
        case.quantize(f"y{i}", case.node("Relu", [back], f"relu{i}"), own_scale, dtype, own_zero)
    if kind == "requested":
        case.also.append(codes)
    if kind == "needless":
        case.node("Exp", [y], "exp")
    case.note += f" {kind}"
    case.expect("matmul", PRODUCT + "QLinearMatMul", kind in ("same", "one constant", "needless"))


def shared(case):
    """One DequantizeLinear read by several nodes that fuse."""
    x, dtype, scale, zero = case.input("x", (2, 6, 5, 5))
    w, w_scales = case.weights((4, 6, 1, 1), 0, True)
    y = case.node("Conv", [x, w], "conv")
    case.quantize("y", y, sum_scale(case, 6, scale, w_scales), case.code_type())
    pooled = case.node("MaxPool", [x], "pool", kernel_shape=[2, 2])
    case.quantize("z", pooled, scale, dtype, zero)
    total = case.node("Add", [x, x], "add")
    case.quantize("t", total, scale * 2, dtype)
    case.expect("conv", PRODUCT + "QLinearConv")
    case.expect("pool", MOVES)
    case.expect("t", TABLE)


# ---- Elements ----------------------------------------------------------------------------------------------------

def binary(case):
    op = case.pick("Add", "Mul", "Sum")
    dtype = case.code_type()
    shape = (case.size(1, 3), case.size(1, 5), case.size(1, 40))
    other = case.pick(shape, shape, (1, shape[1], 1), shape[1:], shape[2:], (1,))
    a, _, a_scale, _ = case.input("a", shape, dtype)
    b, _, b_scale, _ = case.input("b", other, dtype)
    y = case.node(op, [a, b] if case.chance(0.5) else [b, a], "op")
    scale = a_scale * b_scale * 90 if op == "Mul" else (a_scale + b_scale) * 0.8
    case.note = op
    case.quantize("y", case.clip(y), scale, dtype)
    case.expect("op", MOVES)


def pool(case):
    dtype = case.code_type()
    x, _, scale, _ = case.input("x", (case.size(1, 2), case.size(1, 6), case.size(4, 9), case.size(4, 9)), dtype)
    ceil, include = case.size(0, 1), case.size(0, 1)
    if case.chance(0.3):
        ceil = 0
        y = case.node("GlobalAveragePool", [x], "pool")
    else:
        kernel = [case.size(1, 4), case.size(1, 4)]
        pads = [min(k - 1, case.size(0, 1)) for k in kernel]
        y = case.node("AveragePool", [x], "pool", kernel_shape=kernel, pads=pads * 2, strides=[case.size(1, 2)] * 2,
                      count_include_pad=include, ceil_mode=ceil)
    case.quantize("y", y, scale * case.rng.uniform(0.4, 1.2), dtype)
    # the two operators count otherwise where a window reaches beyond the padding
    case.expect("pool", MOVES, told=not (ceil and include))


def concat(case):
    dtype = case.code_type()
    axis = case.size(0, 2)
    parts = []
    for i in range(case.size(1, 4)):
        shape = [2, 3, 4]
        shape[axis] = case.size(1, 5)
        value, _, scale, _ = case.input(f"x{i}", tuple(shape), dtype)
        parts.append(value)
    y = case.node("Concat", parts, "concat", axis=case.pick(axis, axis - 3))
    case.quantize("y", case.clip(y), scale * case.rng.uniform(0.5, 1.5), dtype)
    case.expect("concat", MOVES)
    case.quanta = 0


def concat_of_codes(case):
    """Codes of one scale and zero point that meet before a product, with no quantization in between."""
    dtype, scale = case.code_type(), case.scale()
    zero = case.zero(dtype)
    parts = [case.input(f"x{i}", (1, case.size(1, 4), 5, 5), dtype, scale, zero)[0] for i in range(3)]
    channels = sum(case.feeds[name].shape[1] for name in case.feeds)
    x = case.node("Concat", parts, "concat", axis=case.pick(1, -3))
    w, w_scales = case.weights((6, channels, 2, 2), 0, case.chance(0.5))
    y = case.node("Conv", [x, w], "conv")
    case.quantize("y", y, sum_scale(case, channels * 4, scale, w_scales), case.code_type())
    case.expect("concat", MOVES)
    case.expect("conv", PRODUCT + "QLinearConv")


def where(case):
    dtype = case.code_type()
    condition = case.fed("condition", case.rng.integers(0, 2, case.pick((3, 5), (5,), (3, 1))).astype(bool))
    x, _, scale, _ = case.input("x", (3, 5), dtype)
    y, _, _, _ = case.input("y", case.pick((3, 5), (1,), (5,)), dtype)
    z = case.node("Where", [condition, x, y], "where")
    case.quantize("z", z, scale * case.rng.uniform(0.5, 1.5), dtype)
    case.expect("where", MOVES)
    case.quanta = 0


def moved(case, x):
    """One node that only moves elements of [2, 4, 6, 6]."""
    def ints(name, *values):
        return case.constant(name, np.array(values, np.int64))

    makers = {
        "Reshape": lambda: ([x, ints("shape", 2, -1, 4)], {}),
        "Transpose": lambda: ([x], {"perm": [0, 2, 3, 1]}),
        "Flatten": lambda: ([x], {"axis": 2}),
        "Unsqueeze": lambda: ([x, ints("axes", 1)], {}),
        "Slice": lambda: ([x, ints("from", 1, -1), ints("to", 4, -7), ints("axes", 1, 3), ints("step", 2, -2)], {}),
        "Gather": lambda: ([x, ints("at", 3, 0, -1)], {"axis": 1}),
        "Expand": lambda: ([x, ints("shape", 3, 2, 1, 1, 1)], {}),
        "Identity": lambda: ([x], {}),
        "Tile": lambda: ([x, ints("times", 1, 2, 1, 3)], {}),
        "MaxPool": lambda: ([x], {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [case.size(1, 2), 1]}),
        "DepthToSpace": lambda: ([x], {"blocksize": 2}),
        "SpaceToDepth": lambda: ([x], {"blocksize": 3}),
        "Split": lambda: ([x], {"axis": 1} if case.opset < 18 else {"axis": 1, "num_outputs": 2}),
        "Pad": lambda: ([x, ints("pads", 0, 1, 0, 2, 0, 0, 1, -1)], {}),
        "Pad a constant": lambda: ([x, ints("pads", 0, 0, 3, 0, 0, 0, 0, 1),
                                    case.constant("filled", np.float32(case.pad_value))], {}),
        "Pad reflecting": lambda: ([x, ints("pads", 0, 0, 1, 2, 0, 0, 1, 0)] + case.pick(
            [], [case.constant("ignored", np.float32(np.nan))]), {"mode": case.pick("reflect", "edge")}),
        "Resize": lambda: ([x, case.constant("roi", np.zeros(0, np.float32)),
                            case.constant("scales", np.array([1, 1, 2, case.pick(0.5, 1.7)], np.float32))],
                           {"mode": "nearest", "coordinate_transformation_mode": case.pick("asymmetric", "half_pixel"),
                            "nearest_mode": case.pick("floor", "round_prefer_floor")}),
        "ReduceMax": lambda: ([x], {"axes": [1, 2]}) if case.opset < 18 else ([x, ints("axes", 1, 2)], {}),
        "GatherElements": lambda: ([x, case.constant("at", case.rng.integers(-4, 4, (2, 3, 6, 6)))], {"axis": 1}),
    }
    name = case.pick(*makers)
    case.note += " " + name
    inputs, attributes = makers[name]()
    op = name.split()[0]
    if op != "Split":
        return case.node(op, inputs, "move", **attributes)
    outputs = [case.prefix + "left", case.prefix + "right"]
    case.nodes.append(helper.make_node(op, inputs, outputs, name=case.prefix + "move", **attributes))
    return case.pick(*outputs)


def move(case):
    x, dtype, scale, zero = case.input("x", (2, 4, 6, 6))
    fits = (0 if zero is None else int(zero)) - 3 >= np.iinfo(dtype).min
    case.pad_value = np.float32(-3) * scale if fits else 0
    y = moved(case, x)
    case.quanta = 0
    if case.chance(0.75):
        # a zero point left out is the same as one that is 0
        if zero is not None and zero == 0 and dtype == U8 and case.chance(0.5):
            zero = None
        case.quantize("y", y, scale, dtype, zero)
        case.expect("move", MOVES)
    else:
        case.quantize("y", y, scale * 1.5, dtype, zero)
        case.expect("y", TABLE)


# ---- Functions of one value --------------------------------------------------------------------------------------

def unary_chain(case, x):
    """Float nodes that depend on x and scalars alone."""
    def number(name, value):
        return case.constant(name, np.float32(value))

    def hard_swish():
        return case.node("Mul", [x, case.node("HardSigmoid", [x], "gate", alpha=1 / 6, beta=0.5)], "out")

    def gelu():
        erf = case.node("Erf", [case.node("Div", [x, number("root", np.sqrt(2))], "scaled")], "erf")
        product = case.node("Mul", [x, case.node("Add", [erf, number("one", 1)], "sum")], "product")
        return case.node("Mul", [product, number("half", 0.5)], "out")

    def relu6_add():
        raised = case.node("Add", [x, number("three", 3)], "raised")
        clipped = case.node("Clip", [raised, number("low", 0), number("high", 6)], "clipped")
        return case.node("Div", [case.node("Mul", [clipped, x], "product"), number("six", 6)], "out")

    def one(op, **attributes):
        return lambda: case.node(op, [x], "out", **attributes)

    makers = {"Relu": one("Relu"), "Sigmoid": one("Sigmoid"), "Tanh": one("Tanh"), "Abs": one("Abs"),
              "LeakyRelu": one("LeakyRelu", alpha=0.1), "HardSwish": one("HardSwish"), "Elu": one("Elu", alpha=0.7),
              "Softplus": one("Softplus"), "Exp": one("Exp"), "silu": lambda: case.node(
                  "Mul", [x, case.node("Sigmoid", [x], "gate")], "out"),
              "x * HardSigmoid(x)": hard_swish, "gelu": gelu, "relu6": relu6_add, "nothing": lambda: x,
              "square": lambda: case.node("Mul", [x, x], "out"),
              "affine": lambda: case.node("Add", [case.node("Mul", [x, number("factor", 0.37)], "m"),
                                                  number("shift", -0.2)], "out")}
    if case.opset < 14:
        makers.pop("HardSwish")
    name = case.pick(*makers)
    case.note = name
    return makers[name]()


def table(case):
    x, _, scale, _ = case.input("x", (2, 3, case.size(1, 300)), scale=case.scale(0.01, 0.06))
    y = unary_chain(case, x)
    case.quantize("y", y, scale * case.rng.uniform(0.5, 1.5), case.code_type())
    case.quanta = 0
    case.expect("y", TABLE)


def table_wanted(case):
    """A value inside the chain is requested, too: it is computed beside the table."""
    x, _, scale, _ = case.input("x", (2, 30))
    gate = case.node("Sigmoid", [x], "gate")
    y = case.node("Mul", [x, gate], "out")
    case.also.append(case.pick(gate, y))
    case.quantize("y", y, scale, case.code_type())
    case.quanta = 0
    case.expect("y", TABLE)


# ---- Dynamic quantization ----------------------------------------------------------------------------------------

def dynamic(case):
    m, k, n = case.size(1, 6), case.size(1, 70), case.size(1, 20)
    per_column = case.chance(0.5)
    x = case.fed("x", case.rng.normal(0, 1, case.pick((m, k), (2, m, k))).astype(np.float32))
    prefix = case.prefix
    case.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], [prefix + "q", prefix + "s", prefix + "z"],
                                       name=prefix + "quantize"))
    dtype = case.code_type()
    w = case.constant("w", case.codes(dtype, (k, n)))
    w_scale = case.constant("w_scale", np.array([case.scale() for _ in range(n if per_column else 1)], np.float32)
                            if per_column else np.float32(case.scale()))
    inputs = [prefix + "q", w, prefix + "z"]
    if case.chance(0.7):
        inputs.append(case.constant("w_zero", np.zeros(n if per_column and case.chance(0.5) else (), dtype)
                                    + dtype.type(case.pick(0, 3))))
    total = case.node("MatMulInteger", inputs, "product")
    floats = case.node("Cast", [total], "cast", to=TensorProto.FLOAT)
    scales = case.node("Mul", [prefix + "s", w_scale], "scales")
    y = case.node("Mul", [floats, scales], "scaled")
    if case.chance(0.6):
        bias = case.constant("bias", case.rng.normal(0, 1, n).astype(np.float32))
        y = case.node("Add", [y, bias] if case.chance(0.5) else [bias, y], "biased")
    case.output(y, np.dtype(np.float32))
    shared = case.chance(0.4)
    if shared:
        case.also.append(prefix + case.pick("q", "s", "z"))
    case.quanta = 0
    case.expect("product", "into MatMulIntegerToFloat" if shared else "into DynamicQuantizeMatMul")


# ---- Weights in codes --------------------------------------------------------------------------------------------

def packed(case, name, kind, shape):
    """Codes of 4 or 8 bits, any."""
    bits, low = (4, 8)[kind in (TensorProto.INT8, TensorProto.UINT8)], kind in (TensorProto.INT4, TensorProto.INT8)
    values = case.rng.integers(0, 1 << bits, shape) - (low << (bits - 1))
    case.constants.append(helper.make_tensor(case.prefix + name, kind, shape, values.flatten().tolist()))
    return case.prefix + name


def weights(case):
    """Weights of 4 and 8 bits with a scale for all of them, for columns or blocks; opset 21 has 4 bits and blocks."""
    wide = case.opset < 21 or case.chance(0.5)
    large, gemm, turned = wide and case.chance(0.8), case.chance(0.5), case.chance(0.5)
    m = case.size(1, 4) if case.chance(0.6) else case.size(5, 40)
    k, n = (case.size(256, 300), case.size(256, 300)) if large else (case.size(1, 100), case.size(1, 40))
    kind = case.pick(*((TensorProto.INT8, TensorProto.UINT8) if wide else (TensorProto.INT4, TensorProto.UINT4)))
    form = case.pick("all", "column") if case.opset < 21 else case.pick("all", "column", "block", "block")
    block, dtype = case.pick(16, 32, 40, 64), case.pick(np.float32, np.float32, np.float16) if case.opset >= 19 else np.float32
    x = case.fed("x", case.rng.normal(0, 1, (m, k) if gemm else case.pick((m, k), (2, m, k))).astype(dtype))
    shape = {"all": (), "column": (n,), "block": (-(-k // block), n)}[form]
    shape = shape[::-1] if turned else shape
    scales = np.exp(case.rng.normal(-3, 1, shape)).astype(dtype)
    inputs = [packed(case, "w", kind, (n, k) if turned else (k, n)), case.constant("scale", scales)]
    inputs += [packed(case, "zero", kind, shape)] if case.chance(0.6) else []
    w = case.node("DequantizeLinear", inputs, "weights",
                  **{"all": {}, "column": {"axis": int(not turned) - case.pick(0, 2)},
                     "block": {"axis": int(turned) - case.pick(0, 2), "block_size": block}}[form])
    if case.chance(0.3):
        w, turned = case.node("Transpose", [w], "moved", **case.pick({}, {"perm": [1, 0]})), not turned
    bias = [case.constant("bias", case.rng.normal(0, 1, n).astype(dtype))] if case.chance(0.6) else []
    if gemm:
        y = case.node("Gemm", [x, w, *bias], "product", transB=int(turned))
    else:
        w = case.node("Transpose", [w], "back") if turned else w
        y = case.node("MatMul", [x, w], "product")
        y = case.node("Add", case.pick([y, *bias], [*bias, y]), "biased") if bias else y
    case.output(y, np.dtype(dtype))
    size = np.sqrt(k) * float(scales.max()) * (256 if wide else 16)
    case.rtol, case.atol = (1e-5, 1e-6 * size) if dtype == np.float32 else (2e-3, 1e-3 * size)
    case.note = f"{m} {k} {n} {kind} {form} {block} {dtype.__name__} {gemm} {turned}"
    case.expect("product", "into DequantizeMatMul", large or not wide)


def blocks_in_codes(case):
    """Weights with a scale for each block, between codes: no product of integers."""
    k, n, block = case.size(2, 40), case.size(1, 20), case.size(1, 16)
    a, _, a_scale, _ = case.input("a", (case.size(1, 8), k))
    kind = case.pick(TensorProto.INT8, TensorProto.UINT4)
    shape = (-(-k // block), n)
    scales = np.exp(case.rng.normal(-3, 1, shape)).astype(np.float32)
    b = case.node("DequantizeLinear", [packed(case, "w", kind, (k, n)), case.constant("scale", scales)], "weights", axis=0,
                  block_size=block)
    y = case.node("MatMul", [a, b], "matmul")
    case.quantize("y", y, sum_scale(case, k, a_scale, scales), case.code_type())
    case.expect("matmul", PRODUCT + "QLinearMatMul", told=False)


PATTERNS = {p.__name__: p for p in (conv, depthwise, gemm, matmul, computed, matmul_to_float, gemm_to_float, conv_to_float, product_wanted, huge_scales,
                                    twins, shared, binary, pool, concat, concat_of_codes, where, move, table, table_wanted,
                                    dynamic, weights, blocks_in_codes)}
