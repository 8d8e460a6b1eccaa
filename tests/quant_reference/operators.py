# SPDX-License-Identifier: Apache-2.0
"""The quantization operators, computed from their text in onnx.defs.

All functions take and return formats.Tensor. Integers are exact; a real number is rounded where the text rounds it
and nowhere else. Where the text leaves a result open, undefined.md says so, and the cases keep away from it.
"""

from fractions import Fraction

import numpy as np

import formats
from formats import Tensor, bounds, decode, encode


def reals(tensor):
    """The values of a float tensor, or of an integer tensor of at most 32 bits, as float64."""
    return decode(tensor) if tensor.type.kind == "float" else tensor.codes.astype(np.float64)


# ---- granularity ---------------------------------------------------------------------------------------------------

def spread(values, shape, axis, block_size):
    """A scale's or zero point's values, one for each element of x: scalar, one per index of the axis, or blocked."""
    values = np.asarray(values)
    if values.ndim == 0 or values.size == 1 and values.ndim == 1 and not block_size:
        return np.broadcast_to(values.reshape(()), shape)
    if block_size:
        axis %= len(shape)
        index = np.arange(shape[axis]) // block_size
        return np.take(values, index, axis=axis)
    form = [1] * len(shape)
    form[axis] = values.size
    return np.broadcast_to(values.reshape(form), shape)


# ---- QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear --------------------------------------------------------

def quotients(x, scale, precision, axis=1, block_size=0):
    """x / scale as the operator divides: both operands in the type of the scale (or `precision`), rounded once.

    A scale of type int32 has no fractions to round a quotient to: the ratio is exact. One of type float8e8m0 is a
    power of two, and divides in float.
    """
    with np.errstate(all="ignore"):
        s = spread(reals(scale), x.shape, axis, block_size)
        precision = precision or {"float8e8m0": "float"}.get(scale.type.name, scale.type.name)
        if precision == "int32":
            return reals(x) / s
        return formats.rounded(formats.rounded(reals(x), precision) / formats.rounded(s, precision), precision)


def exact_quotients(x, scale, axis=1, block_size=0):
    """x / scale in float64: what the formula means when no precision is named."""
    with np.errstate(all="ignore"):
        return reals(x) / spread(reals(scale), x.shape, axis, block_size)


def saturated(values, zero_point, type_name):
    """Round to nearest even, add the zero point, saturate. NaN gives the smallest value."""
    low, high = bounds(type_name)
    y = np.clip(np.rint(values) + zero_point, low, high)
    return np.where(np.isnan(y), low, y).astype(np.int64)


def quantize_linear(x, scale, zero_point=None, output="uint8", axis=1, block_size=0, saturate=True, precision=None,
                    infinite="largest"):
    q = quotients(x, scale, precision, axis, block_size)
    zero = 0.0
    if zero_point is not None:
        output = zero_point.type.name
        zero = spread(reals(zero_point), x.shape, axis, block_size)
    with np.errstate(invalid="ignore"):
        if formats.TYPES[output].kind != "float":
            return Tensor(output, saturated(q, zero, output))
        return Tensor(output, encode(np.where(zero == 0, q, q + zero), output, saturate, infinite))


def dequantize_linear(x, scale, zero_point=None, output=None, axis=1, block_size=0):
    """(x - zero_point) * scale: the difference in float, the product rounded once to the output's type."""
    d = reals(x)
    if zero_point is not None:
        d = d - spread(reals(zero_point), x.shape, axis, block_size)
    output = output or scale.type.name
    with np.errstate(all="ignore"):
        return formats.floats(output, formats.rounded(d, "float") * spread(reals(scale), x.shape, axis, block_size))


def dynamic_quantize_linear(x):
    """y, y_scale, y_zero_point; every step of the text is one operation in float."""
    v = x.codes.view(np.float32)
    zero, qmax = np.float32(0), np.float32(255)
    low, high = np.minimum(zero, v.min()), np.maximum(zero, v.max())
    scale = np.float32(np.float32(high - low) / qmax)
    z = np.rint(np.clip(np.float32(zero - np.float32(low / scale)), zero, qmax))
    with np.errstate(over="ignore"):
        y = np.clip(np.rint((v / scale).astype(np.float32)).astype(np.float64) + float(z), 0, 255)
    return (Tensor("uint8", y.astype(np.uint8)), Tensor("float", np.asarray(scale).view(np.uint32)),
            Tensor("uint8", np.uint8(z)))


# ---- Cast ----------------------------------------------------------------------------------------------------------

def plain_text(value):
    """A number that has a short decimal form, without an exponent."""
    if isinstance(value, int):
        return str(value)
    text = format(value, "f").rstrip("0")
    return text + "0" if text.endswith(".") else text


def parse_text(text):
    low = text.lower().lstrip("+")
    return float("-inf" if low == "-inf" else low)


def cast(x, to, saturate=True, round_mode="up", infinite="largest"):
    source, target = x.type, formats.TYPES[to]
    if source.kind == "string":
        return _cast_text(x, to, saturate, infinite)
    codes = x.codes
    if target.kind == "string":
        values = decode(x) if source.kind == "float" else codes
        texts = [plain_text(float(v) if source.kind == "float" else int(v)) for v in values.reshape(-1)]
        return Tensor(to, np.array(texts, dtype=object).reshape(x.shape))
    if target.kind == "float":
        return _cast_to_float(x, to, saturate, round_mode, infinite)
    if target.kind == "bool":
        return Tensor(to, (decode(x) != 0) if source.kind == "float" else codes != 0)
    if source.kind == "float":
        whole = np.trunc(decode(x))
        large = whole >= 2.0**63  # these fit uint64 only
        codes = np.where(large, whole - 2.0**63, whole).astype(np.int64).view(np.uint64)
        codes = codes + np.where(large, np.uint64(1 << 63), np.uint64(0))
    return Tensor(to, formats.wrap(codes, to))


def _cast_to_float(x, to, saturate, round_mode, infinite):
    if x.type.kind == "float":
        values = decode(x)
    elif to == "double":
        values = x.codes.astype(np.float64)
    else:
        values = formats.odd(x.codes)
    if to == "float8e8m0":
        return Tensor(to, formats.encode_e8m0(values, saturate, round_mode))
    return formats.floats(to, values, saturate=saturate, infinite=infinite)


def _cast_text(x, to, saturate, infinite):
    texts = list(x.codes.reshape(-1))
    target = formats.TYPES[to]
    if target.kind == "string":
        return Tensor(to, x.codes)
    if target.kind == "float":
        values = np.array([parse_text(t) for t in texts], dtype=np.float64).reshape(x.shape)
        return formats.floats(to, values, saturate=saturate, infinite=infinite)
    return Tensor(to, np.array([int(t) for t in texts], dtype=target.dtype).reshape(x.shape))


# ---- matrix products -----------------------------------------------------------------------------------------------

def per_row(values, a_shape):
    """A zero point or scale of A, shaped to broadcast: a scalar, M values, or [..., M, 1]."""
    values = np.asarray(values)
    if values.ndim == 1 and values.size != 1:
        return values.reshape(-1, 1)
    return values.reshape(()) if values.ndim < 2 else values


def per_column(values):
    """A zero point or scale of B: a scalar, N values, or [..., 1, N]; numpy broadcasts them all."""
    values = np.asarray(values)
    return values.reshape(()) if values.ndim == 1 and values.size == 1 else values


def product_form(values, a_shape, b_shape, of_rows):
    """A scale, given as for A or B, shaped to broadcast over the product."""
    values = per_row(values, a_shape) if of_rows else per_column(values)
    if values.ndim >= 2 and of_rows and len(b_shape) == 1:
        values = values[..., 0]
    if values.ndim >= 2 and not of_rows and len(a_shape) == 1:
        values = values[..., 0, :]
    return values


def int32(sums):
    return Tensor("int32", formats.wrap(sums, "int32"))


def integer_sums(a, b, a_zero, b_zero):
    wide_a, wide_b = a.codes.astype(np.int64), b.codes.astype(np.int64)
    if a_zero is not None:
        wide_a = wide_a - per_row(a_zero.codes.astype(np.int64), a.shape)
    if b_zero is not None:
        wide_b = wide_b - per_column(b_zero.codes.astype(np.int64))
    return np.matmul(wide_a, wide_b)


def matmul_integer(a, b, a_zero=None, b_zero=None):
    return int32(integer_sums(a, b, a_zero, b_zero))


def requantize(sums, sa, sb, sy, zero_point):
    """sums * sa * sb / sy in real numbers, rounded once to the output's type.

    float64 is off by less than 2^-50 of a product: it decides what is farther from a tie, Fractions the rest.
    """
    output = zero_point.type.name
    sums, sa, sb, sy = (np.array(v, dtype=np.float64) for v in np.broadcast_arrays(sums, sa, sb, sy))
    zero = float(reals(zero_point).reshape(()))

    def exactly(at):
        return Fraction(sums[at]) * Fraction(sa[at]) * Fraction(sb[at]) / Fraction(sy[at])

    with np.errstate(all="ignore"):
        v = np.array(sums * (sa * sb / sy))
        if zero_point.type.kind == "float":
            error = (np.abs(v) + abs(zero)) * 2.0**-48
            below, above = encode(v + zero - error, output), encode(v + zero + error, output)
            v = np.array(v + zero)
            for at in map(tuple, np.argwhere((below != above) & np.isfinite(v))):
                v[at] = formats.odd_fraction(exactly(at) + Fraction(zero))
            return Tensor(output, encode(v, output))
        near = np.abs(v - np.rint(v)) > 0.5 - 2.0**-20
        for at in map(tuple, np.argwhere(near & (np.abs(v) < 2.0**20))):
            v[at] = round(exactly(at))  # ties to even
        return Tensor(output, saturated(v, int(zero), output))


def qlinear_matmul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):
    if a.type.kind == "float" or b.type.kind == "float":
        sums = np.matmul(reals(a) - per_row(reals(a_zero), a.shape), reals(b) - per_column(reals(b_zero)))
    else:
        sums = int32(integer_sums(a, b, a_zero, b_zero)).codes.astype(np.float64)
    sa = product_form(reals(a_scale), a.shape, b.shape, True)
    sb = product_form(reals(b_scale), a.shape, b.shape, False)
    return requantize(sums, sa, sb, reals(y_scale).reshape(()), y_zero)


# ---- convolutions --------------------------------------------------------------------------------------------------

def conv_padding(spatial, kernel, strides, dilations, auto_pad, pads):
    """Begin and end padding of each axis, from pads or auto_pad."""
    n = len(spatial)
    if auto_pad in ("NOTSET", "VALID"):
        pads = pads if pads and auto_pad == "NOTSET" else [0] * (2 * n)
        return pads[:n], pads[n:]
    begin, end = [], []
    for d, k, s, r in zip(spatial, kernel, strides, dilations):
        total = max((-(-d // s) - 1) * s + (k - 1) * r + 1 - d, 0)
        small, large = total // 2, total - total // 2
        begin.append(large if auto_pad == "SAME_LOWER" else small)
        end.append(small if auto_pad == "SAME_LOWER" else large)
    return begin, end


def conv_sums(x, w, group, strides, dilations, auto_pad, pads):
    """The convolution of int64 arrays whose zero points are taken off already (padding then is 0)."""
    rank = x.ndim - 2
    kernel = w.shape[2:]
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    begin, end = conv_padding(x.shape[2:], kernel, strides, dilations, auto_pad, pads)
    x = np.pad(x, [(0, 0), (0, 0)] + list(zip(begin, end)))
    size = [(d - (k - 1) * r - 1) // s + 1 for d, k, s, r in zip(x.shape[2:], kernel, strides, dilations)]
    n, m, c = x.shape[0], w.shape[0], w.shape[1]
    y = np.zeros([n, group, m // group] + size, dtype=np.int64)
    xg = x.reshape([n, group, c] + list(x.shape[2:]))
    wg = w.reshape([group, m // group, c] + list(kernel))
    for at in np.ndindex(*kernel):
        window = tuple(slice(i * r, i * r + (o - 1) * s + 1, s)
                       for i, r, o, s in zip(at, dilations, size, strides))
        part = xg[(slice(None),) * 3 + window]
        y += np.einsum("ngc...,gmc->ngm...", part, wg[(slice(None),) * 3 + at])
    return y.reshape([n, m] + size)


def per_channel(values, rank):
    """Values of the output channels (or one for all), shaped to broadcast over w or y of a rank."""
    values = np.asarray(values)
    return values.reshape(()) if values.size == 1 else values.reshape([-1] + [1] * (rank - 1))


def _conv(x, w, x_zero, w_zero, group=1, strides=None, dilations=None, auto_pad="NOTSET", pads=None,
          kernel_shape=None):
    wide_x, wide_w = x.codes.astype(np.int64), w.codes.astype(np.int64)
    if x_zero is not None:
        wide_x = wide_x - int(x_zero.codes.reshape(()))
    if w_zero is not None:
        wide_w = wide_w - per_channel(w_zero.codes.astype(np.int64), wide_w.ndim)
    return conv_sums(wide_x, wide_w, group, strides, dilations, auto_pad, pads)


def conv_integer(x, w, x_zero=None, w_zero=None, **attributes):
    return int32(_conv(x, w, x_zero, w_zero, **attributes))


def qlinear_conv(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias=None, **attributes):
    sums = _conv(x, w, x_zero, w_zero, **attributes)
    if bias is not None:
        sums = sums + bias.codes.astype(np.int64).reshape([-1] + [1] * (sums.ndim - 2))
    sums = int32(sums).codes.astype(np.float64)
    w_scales = per_channel(reals(w_scale), sums.ndim - 1)
    return requantize(sums, reals(x_scale).reshape(()), w_scales, reals(y_scale).reshape(()), y_zero)
