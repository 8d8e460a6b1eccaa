# SPDX-License-Identifier: Apache-2.0
"""Cases of the operators on 8-bit tensors with one scale and zero point, of the integer operators, of the domain's
QuantizeLinear and DequantizeLinear, and of the Gelus. The references are the formulas, written in numpy."""

import itertools
import math

import ml_dtypes
import numpy as np

from cases import Case

f32 = np.float32
CODES = [np.uint8, np.int8]
SHAPES = [
    ((7, 33), (7, 33)),
    ((40,), ()),
    ((), (40,)),
    ((2, 1), (2, 50)),
    ((2, 50), (2, 1)),
    ((3, 1, 4), (1, 30, 1)),
    ((1,), (1,)),
    ((), ()),
    ((50,), (3, 50)),
    ((4, 1, 1), (4, 1, 50)),
    ((0, 3), (1, 3)),
    ((2, 3, 1, 5), (3, 4, 1)),
]


# ---- The arithmetic ----------------------------------------------------------------------------------------------


def fma(a, b, c):
    """a * b + c of float32, rounded once: in float64 with the lost part kept as a sticky last bit."""
    a, b, c = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, c)))
    product = a * b  # exact
    total = np.array(product + c)
    back = total - product
    lost = (product - (total - back)) + (c - back)
    bits = total.view(np.int64)
    odd = np.where((lost > 0) == (total > 0), bits + 1, bits - 1)
    bits = np.where((lost != 0) & (bits & 1 == 0), odd, bits)
    return np.ascontiguousarray(bits).view(np.float64).astype(f32)


def saturate(v, dtype):
    """A rounded number as a code; NaN becomes the minimum."""
    info = np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(v), info.min, np.clip(np.rint(np.nan_to_num(v, nan=0.0)), info.min, info.max)).astype(
            dtype
        )


def code_of_multiple(v, zero):
    """Round, then add the zero point, then saturate."""
    dtype = np.asarray(zero).dtype
    info = np.iinfo(dtype)
    low, high = float(info.min) - float(zero), float(info.max) - float(zero)
    v = np.asarray(v, np.float64)
    v = np.clip(np.where(np.isnan(v), low, v), low, high)
    return (np.rint(v) + float(zero)).astype(dtype)


def quantize(v, scale, zero):
    with np.errstate(all="ignore"):
        return code_of_multiple(np.asarray(v, f32) / f32(scale), zero)


def dequantize(q, scale, zero):
    return (q.astype(np.int32) - np.int32(zero)).astype(f32) * f32(scale)


# ---- Random parts ------------------------------------------------------------------------------------------------


def codes(rng, dtype, shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def scale(rng):
    """Powers of two, where ties are common, and others; a scalar, seldom a vector of one, which ONNX Runtime refuses."""
    if rng.random() < 0.5:
        value = f32(rng.choice([1, 0.5, 0.25, 0.125, 0.0625]))
    else:
        value = f32(math.exp(rng.uniform(-5, 0)))
    return np.array(value, f32) if rng.random() < 0.95 else np.array([value], f32)


def zero_point(rng, dtype):
    info = np.iinfo(dtype)
    value = rng.choice([0, info.min, info.max, int(rng.integers(info.min, info.max))])
    return np.array(value, dtype)


def either(rng, *choices):
    return choices[rng.integers(len(choices))]


# ---- Two operands ------------------------------------------------------------------------------------------------


def add_reference(a, sa, za, b, sb, zb, sc, zc):
    dtype, shape = a.dtype, np.broadcast_shapes(a.shape, b.shape)
    # The operands change places where the first stays the same along the innermost axis.
    dims = [(x, y) for x, y in itertools.zip_longest(a.shape[::-1], b.shape[::-1], fillvalue=1) if x != 1 or y != 1]
    if not dims or (dims[0][0] == 1 and dims[0][1] != 1):
        a, sa, za, b, sb, zb = b, sb, zb, a, sa, za
    ra, rb = f32(sa / sc), f32(sb / sc)
    fixed = f32(f32(zc) - fma(ra, f32(za), f32(rb * f32(zb))))
    return saturate(fma(a.astype(f32), ra, fma(b.astype(f32), rb, fixed)), dtype).reshape(shape)


def mul_reference(a, sa, za, b, sb, zb, sc, zc):
    ratio = f32(f32(sa * sb) / sc)
    product = (a.astype(np.int32) - np.int32(za)) * (b.astype(np.int32) - np.int32(zb))
    return saturate(product.astype(f32) * ratio + f32(zc), a.dtype)


def binary(op, reference):
    def make(rng):
        for number in itertools.count():
            dtype = CODES[number % 2]
            shapes = SHAPES[number // 2 % len(SHAPES)]
            a, b = (codes(rng, dtype, s) for s in shapes)
            scales = [scale(rng) for _ in range(3)]
            zeros = [zero_point(rng, dtype) for _ in range(3)]
            given = [rng.random() < 0.95 for _ in range(3)]
            inputs = [a, scales[0], zeros[0], b, scales[1], zeros[1], scales[2], zeros[2]]
            for i, there in zip((2, 5, 7), given):
                if not there:
                    inputs[i] = None
            zeros = [z if there else np.array(0, dtype) for z, there in zip(zeros, given)]
            sa, sb, sc = (f32(s.reshape(())) for s in scales)
            want = reference(a, sa, zeros[0], b, sb, zeros[1], sc, zeros[2])
            if inputs[7] is None:
                inputs = inputs[:7]
            fed = either(rng, (0,), (0, 3), range(8))
            yield Case(op, inputs, [dtype], reference=[want], fed=fed)

    return make


def mul_integer(rng):
    for number in itertools.count():
        dtype = CODES[number % 2]
        a, b = (codes(rng, dtype, s) for s in SHAPES[number // 2 % len(SHAPES)])
        za, zb = (zero_point(rng, dtype) if rng.random() < 0.7 else None for _ in range(2))
        want = (a.astype(np.int32) - (0 if za is None else int(za))) * (
            b.astype(np.int32) - (0 if zb is None else int(zb))
        )
        yield Case("MulInteger", [a, za, b, zb], [np.int32], reference=[want], fed=(0, 2))


# ---- Tables ------------------------------------------------------------------------------------------------------


def unary(op, function):
    def make(rng):
        for number in itertools.count():
            dtype = CODES[number % 2]
            x = codes(rng, dtype, either(rng, (3, 5), (400,), (), (0, 2), (2, 3, 4, 5)))
            sx, sy = scale(rng), scale(rng)
            if op == "QLinearSigmoid" and rng.random() < 0.5:
                sy = np.array(1 / 256, f32)
            zx = zero_point(rng, dtype) if rng.random() < 0.85 else None
            zy = zero_point(rng, dtype) if rng.random() < 0.85 else None
            attrs = {"alpha": float(f32(rng.choice([0.01, 0.5, -0.25, 1.5])))} if op == "QLinearLeakyRelu" else {}
            if attrs and rng.random() < 0.3:
                attrs = {}
            real = dequantize(x, sx.reshape(()), 0 if zx is None else zx)
            want = quantize(function(real, attrs), sy.reshape(()), np.array(0, dtype) if zy is None else zy)
            inputs = [x, sx, zx, sy] + ([] if zy is None else [zy])
            fed = either(rng, (0,), range(5))
            # ONNX Runtime ends the process where the last input is left out.
            yield Case(op, inputs, [dtype], attrs, reference=[want], fed=fed, ort=zy is not None)

    return make


def leaky_relu(x, attrs):
    return np.where(x >= 0, x, f32(attrs.get("alpha", f32(0.01))) * x)


def sigmoid(x, attrs):
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-x.astype(np.float64)))).astype(f32)


def convert(x, sx, zx, sy, zy):
    if sx == sy and int(zx) == int(zy) and x.dtype == zy.dtype:
        return x
    return quantize(dequantize(x, sx, zx), sy, zy)


def concat(rng):
    for number in itertools.count():
        dtype = CODES[number % 2]
        rank = int(rng.integers(1, 5))
        shape = list(rng.integers(1, 5, rank))
        axis = int(rng.integers(-rank, rank))
        longest = 8
        if rng.random() < 0.1:  # many rows, of up to 200 codes
            shape, axis, longest = [int(rng.integers(100, 900)), 1], 1, 200
        sy, zy = scale(rng), zero_point(rng, dtype)
        inputs, parts = [sy, zy], []
        for _ in range(int(rng.integers(1, 5))):
            shape[axis] = int(rng.integers(0, longest))
            x = codes(rng, dtype, shape)
            sx, zx = (sy, zy) if rng.random() < 0.3 else (scale(rng), zero_point(rng, dtype))
            inputs += [x, sx, zx]
            parts.append(convert(x, sx.reshape(()), zx, sy.reshape(()), zy))
        want = np.concatenate(parts, axis)
        fed = either(rng, range(2, len(inputs), 3), range(len(inputs)))
        yield Case("QLinearConcat", inputs, [dtype], {"axis": axis}, reference=[want], fed=fed)


def where(rng):
    for number in itertools.count():
        dtype = CODES[number % 2]
        shapes = either(
            rng,
            ((3, 4), (3, 4), (3, 4)),
            ((3, 1), (1, 40), (3, 40)),
            ((), (5,), (2, 1)),
            ((2, 3, 4), (), (4,)),
            ((1,), (1,), (1,)),
            ((2, 1, 4), (3, 1), (2, 3, 1)),
            ((3000,), (3000,), (1,)),
            ((2, 1), (2, 1500), (1500,)),
        )
        condition = rng.random(shapes[0]) < 0.5
        x, y = (codes(rng, dtype, s) for s in shapes[1:])
        sz, zz = scale(rng), zero_point(rng, dtype)
        pairs = [(sz, zz) if rng.random() < 0.3 else (scale(rng), zero_point(rng, dtype)) for _ in range(2)]
        (sx, zx), (sy, zy) = pairs
        want = np.where(
            condition,
            convert(x, sx.reshape(()), zx, sz.reshape(()), zz),
            convert(y, sy.reshape(()), zy, sz.reshape(()), zz),
        )
        yield Case("QLinearWhere", [condition, x, sx, zx, y, sy, zy, sz, zz], [dtype], reference=[want], fed=(0, 1, 4))


# ---- Softmax -----------------------------------------------------------------------------------------------------


def softmax_reference(x, sx, sy, zy, axis, opset):
    axis %= x.ndim
    if opset < 13:
        rows = x.reshape(math.prod(x.shape[:axis]), -1)
    else:
        rows = np.moveaxis(x, axis, -1)
    length = rows.shape[-1]
    if x.size == 0:
        return x
    room = max(0.0, float(np.log(f32(np.finfo(f32).max / f32(length)))) - 5) / float(sx)
    table = np.exp((np.arange(256) - 255 + room) * float(sx)).astype(f32)
    index = rows.astype(np.int64) - rows.max(-1, keepdims=True).astype(np.int64) + 255
    e = table[index]
    total = np.add.accumulate(e, -1, dtype=f32)[..., -1:]  # in the row's order
    factor = f32(np.floor(f32(1) / f32(sy)))
    with np.errstate(over="ignore"):
        scaled = e * factor
    multiple = np.where(np.isinf(scaled), (e.astype(np.float64) * factor / total).astype(f32), scaled / total)
    q = code_of_multiple(multiple, zy)
    return q.reshape(x.shape) if opset < 13 else np.moveaxis(q, -1, axis)


def softmax(rng):
    for number in itertools.count():
        dtype = CODES[number % 2]
        shape = either(rng, (2, 10), (3, 100), (2, 3, 7), (1000,), (2, 3, 4, 5), (1, 1))
        x = codes(rng, dtype, shape)
        if rng.random() < 0.3:
            x //= 4
        sx = scale(rng)
        sy = np.array(either(rng, 1 / 256, 1 / 256, 0.0106, 0.0039, 1 / 100), f32)
        zy = zero_point(rng, dtype) if rng.random() < 0.5 else np.array(np.iinfo(dtype).min, dtype)
        opset, axis = either(rng, 11, 13), int(rng.integers(-len(shape), len(shape)))
        attrs = {"opset": opset, "axis": axis}
        if rng.random() < 0.2:
            axis = -1
            del attrs["axis"]
        zx = zero_point(rng, dtype) if rng.random() < 0.7 else None
        want = softmax_reference(x, sx.reshape(()), sy, zy, axis, opset)
        row = x.shape[axis] if opset >= 13 else math.prod(x.shape[axis % x.ndim :])
        yield Case(
            "QLinearSoftmax",
            [x, sx, zx, sy, zy],
            [dtype],
            attrs,
            reference=[want],
            fed=either(rng, (0,), range(5)),
            ort=row > 1,  # ONNX Runtime's product overflows in the shortest rows
        )


# ---- Pools and reductions ----------------------------------------------------------------------------------------


def windows(shape, kernel, strides, pads, ceil_mode, auto_pad, dilations=None):
    """For each axis: padding before, and the length of the result."""
    rank = len(shape)
    out, begin = [], []
    for i in range(rank):
        span = (kernel[i] - 1) * (dilations[i] if dilations else 1) + 1
        if auto_pad.startswith("SAME"):
            length = -(-shape[i] // strides[i])
            pad = max(0, (length - 1) * strides[i] + span - shape[i])
            begin.append(pad // 2 if auto_pad == "SAME_UPPER" else pad - pad // 2)
        else:
            first, last = (pads[i], pads[rank + i]) if auto_pad == "NOTSET" else (0, 0)
            room = shape[i] + first + last - span
            length = room // strides[i] + 1
            if ceil_mode and auto_pad == "NOTSET" and room % strides[i] and length * strides[i] < shape[i] + first:
                length += 1
            begin.append(first)
        out.append(length)
    return begin, out


def negative_padding(shape, kernel, strides, auto_pad, out):
    """Whether windows of SAME leave elements out between them; ONNX Runtime then shifts the first one inward."""
    return auto_pad.startswith("SAME") and any(
        (o - 1) * s + k < n for n, k, s, o in zip(shape, kernel, strides, out)
    )


def pool(x, kernel, strides, begin, out, dilations, reduce, fill):
    """`reduce` over the cells of each window inside x (batch, channels, spatial axes), in row-major order."""
    result = np.empty(x.shape[:2] + tuple(out), fill)
    for place in np.ndindex(*out):
        cells = []
        for offset in np.ndindex(*kernel):
            at = tuple(p * s - b + o * d for p, s, b, o, d in zip(place, strides, begin, offset, dilations))
            if all(0 <= a < n for a, n in zip(at, x.shape[2:])):
                cells.append(x[(slice(None), slice(None), *at)])
        result[(slice(None), slice(None), *place)] = reduce(cells, x)
    return result


def pool_shape(rng):
    rank = int(rng.integers(1, 4))
    spatial = [int(n) for n in rng.integers(4, 9, rank)]
    kernel = [int(n) for n in rng.integers(1, 4, rank)]
    strides = [int(n) for n in rng.integers(1, 4, rank)]
    pads = [int(rng.integers(0, k)) for k in kernel * 2]
    return [int(rng.integers(1, 3)), int(rng.integers(1, 5))] + spatial, kernel, strides, pads


def average_pool(rng):
    for number in itertools.count():
        dtype = CODES[number % 2]
        shape, kernel, strides, pads = pool_shape(rng)
        include, ceil_mode, last = (int(rng.random() < 0.4) for _ in range(3))
        auto_pad = either(rng, "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
        if auto_pad == "VALID":
            ceil_mode = 0  # the standard says that it plays no part, ONNX Runtime rounds up
        attrs = {"kernel_shape": kernel, "strides": strides, "auto_pad": auto_pad}
        attrs |= {"count_include_pad": include, "ceil_mode": ceil_mode, "channels_last": last}
        if auto_pad == "NOTSET":
            attrs["pads"] = pads
        x, sx, sy = codes(rng, dtype, shape), scale(rng), scale(rng)
        zx = zero_point(rng, dtype) if rng.random() < 0.8 else None
        zy = zero_point(rng, dtype) if rng.random() < 0.8 else None
        begin, out = windows(shape[2:], kernel, strides, pads, ceil_mode, auto_pad)

        def mean(cells, _, count=math.prod(kernel) if include else None):
            total = np.zeros(cells[0].shape, f32) if cells else f32(0)
            for cell in cells:
                total = total + cell
            return total / f32(count or len(cells)) if cells else f32(0)

        real = dequantize(x, sx.reshape(()), 0 if zx is None else zx)
        means = pool(real, kernel, strides, begin, out, [1] * len(out), mean, f32)
        want = saturate(means / f32(sy.reshape(())) + f32(0 if zy is None else zy), dtype)
        if last:
            x, want = np.moveaxis(x, 1, -1), np.moveaxis(want, 1, -1)
        inputs = [np.ascontiguousarray(x), sx, zx, sy] + ([] if zy is None else [zy])
        ort = not negative_padding(shape[2:], kernel, strides, auto_pad, out)
        yield Case(
            "QLinearAveragePool", inputs, [dtype], attrs, reference=[want], fed=either(rng, (0,), range(5)), ort=ort
        )


def global_average_pool(rng):
    for number in itertools.count():
        dtype = CODES[number % 2]
        shape = [int(n) for n in rng.integers(1, 9, int(rng.integers(3, 6)))]
        last = int(rng.random() < 0.5)
        x, sx, sy = codes(rng, dtype, shape), scale(rng), scale(rng)
        zx, zy = zero_point(rng, dtype), zero_point(rng, dtype)
        axes = tuple(range(1, len(shape) - 1)) if last else tuple(range(2, len(shape)))
        count = math.prod(shape[a] for a in axes)
        total = x.astype(np.int64).sum(axes, keepdims=True) - int(zx) * count
        ratio = f32(sx.reshape(())) / f32(f32(sy.reshape(())) * f32(count))
        want = code_of_multiple(total.astype(f32) * f32(ratio), zy)
        yield Case("QLinearGlobalAveragePool", [x, sx, zx, sy, zy], [dtype], {"channels_last": last}, reference=[want])


def max_pool(rng):
    for number in itertools.count():
        dtype = CODES[number % 2]
        shape, kernel, strides, pads = pool_shape(rng)
        ceil_mode = int(rng.random() < 0.4)
        dilations = [int(rng.integers(1, 3)) for _ in kernel]
        if any((k - 1) * d + 1 > n for k, d, n in zip(kernel, dilations, shape[2:])):
            continue
        auto_pad = either(rng, "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
        if auto_pad == "VALID":
            ceil_mode = 0  # the standard says that it plays no part, ONNX Runtime rounds up
        attrs = {"kernel_shape": kernel, "strides": strides, "auto_pad": auto_pad, "ceil_mode": ceil_mode}
        if auto_pad == "NOTSET":
            attrs |= {"pads": pads, "dilations": dilations}
        else:
            dilations = [1] * len(kernel)
        begin, out = windows(shape[2:], kernel, strides, pads, ceil_mode, auto_pad, dilations)
        x = codes(rng, dtype, shape)

        def greatest(cells, x):
            return np.max(cells, 0) if cells else np.full(x.shape[:2], np.iinfo(x.dtype).min, x.dtype)

        want = pool(x, kernel, strides, begin, out, dilations, greatest, dtype)
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        ort = not negative_padding(shape[2:], kernel, strides, auto_pad, out)
        yield Case("NhwcMaxPool", [x], [dtype], attrs, reference=[np.moveaxis(want, 1, -1)], ort=ort)


def reduced_axes(rng, rank):
    axes = [a for a in range(rank) if rng.random() < 0.5]
    given = {} if rng.random() < 0.15 else {"axes": [a - rank if rng.random() < 0.5 else a for a in axes]}
    if not axes:
        given = {}
    return given, tuple(axes) if given.get("axes") else tuple(range(rank))


def reduce_mean(rng):
    for number in itertools.count():
        dtype = CODES[number % 2]
        x = codes(rng, dtype, [int(n) for n in rng.integers(1, 7, int(rng.integers(1, 5)))])
        sx, sy = scale(rng), scale(rng)
        zx = zero_point(rng, dtype) if rng.random() < 0.8 else None
        zy = zero_point(rng, dtype) if rng.random() < 0.8 else None
        attrs, axes = reduced_axes(rng, x.ndim)
        keep = bool(rng.random() < 0.5)
        total = x.astype(np.int64).sum(axes, keepdims=keep)
        count = math.prod(x.shape[a] for a in axes)
        multiple = (total - (0 if zx is None else int(zx)) * count) * np.float64(sx.reshape(()))
        multiple = multiple / (np.float64(sy.reshape(())) * count)
        want = code_of_multiple(multiple, np.array(0, dtype) if zy is None else zy)
        inputs = [x, sx, zx, sy] + ([] if zy is None else [zy])
        attrs |= {"keepdims": int(keep)}
        # ONNX Runtime declares this operator and the next without a kernel.
        yield Case("QLinearReduceMean", inputs, [dtype], attrs, reference=[want], ort=False)


def reduce_sum_integer(rng):
    for number in itertools.count():
        dtype = CODES[number % 2]
        wide = np.int32 if dtype == np.int8 or rng.random() < 0.3 else np.uint32
        x = codes(rng, dtype, [int(n) for n in rng.integers(0, 7, int(rng.integers(1, 5)))])
        attrs, axes = reduced_axes(rng, x.ndim)
        keep = bool(rng.random() < 0.5)
        want = x.astype(wide).sum(axes, keepdims=keep, dtype=wide)
        yield Case("ReduceSumInteger", [x], [wide], attrs | {"keepdims": int(keep)}, reference=[want], ort=False)


# ---- QuantizeLinear, DequantizeLinear ----------------------------------------------------------------------------


INTEGERS = [np.uint8, np.int8, np.uint16, np.int16, ml_dtypes.uint4, ml_dtypes.int4]


def bounds(dtype):
    info = ml_dtypes.iinfo(dtype) if dtype in (ml_dtypes.uint4, ml_dtypes.int4) else np.iinfo(dtype)
    return int(info.min), int(info.max)


def granularity(rng, shape):
    """Attributes, the shape of scale and zero point, and that shape laid along x."""
    if rng.random() < 0.4 or not shape:
        return {}, either(rng, (), (1,)), ()
    axis = int(rng.integers(len(shape)))
    attrs = {"axis": axis - len(shape) if rng.random() < 0.5 else axis}
    if axis == 1 and rng.random() < 0.5:
        attrs = {}
    return attrs, (shape[axis],), (shape[axis],) + (1,) * (len(shape) - 1 - axis)


def quantize_linear(rng):
    for number in itertools.count():
        dtype = INTEGERS[number % len(INTEGERS)]
        real = f32 if rng.random() < 0.7 else np.float16
        shape = either(rng, (), (12,), (3, 5), (2, 3, 40), (2, 3, 2, 4), (0, 3))
        attrs, size, laid = granularity(rng, shape)
        low, high = bounds(dtype)
        s = np.exp(rng.uniform(-3, 0, size)).astype(real)
        if rng.random() < 0.4:
            s = np.full(size, 0.25, real)
        x = (rng.normal(0, 1, shape) * (high - low) * 0.4 * float(np.mean(s) if s.size else 1)).astype(real)
        if rng.random() < 0.5:
            x = (np.rint(x.astype(f32) * 8) / 8).astype(real)
        zero = rng.integers(low, high, size, endpoint=True).astype(dtype)
        given = dtype != np.uint8 or rng.random() < 0.7
        z = zero.astype(np.float64).reshape(laid) if given else 0.0
        q = np.rint(x.astype(f32) / s.astype(f32).reshape(laid)).astype(np.float64)
        want = np.clip(q + z, low, high).astype(np.int64).astype(dtype)
        inputs = [x, s] + ([zero] if given else [])
        yield Case("QuantizeLinear", inputs, [dtype], attrs, reference=[want], fed=either(rng, (0,), range(3)))


def dequantize_linear(rng):
    for number in itertools.count():
        dtype = (INTEGERS + [np.int32])[number % (len(INTEGERS) + 1)]
        real = f32 if rng.random() < 0.7 else np.float16
        shape = either(rng, (), (12,), (3, 5), (2, 3, 40), (2, 3, 2, 4), (0, 3))
        attrs, size, laid = granularity(rng, shape)
        low, high = bounds(dtype)
        s = np.exp(rng.uniform(-8, -6, size)).astype(real)
        x, zero = (rng.integers(low, high, n, endpoint=True).astype(dtype) for n in (shape, size))
        given = dtype != np.int32 and rng.random() < 0.7
        z = zero.astype(np.int64).reshape(laid) if given else 0
        with np.errstate(over="ignore"):
            difference = (x.astype(np.int64) - z).astype(f32)
            want = (difference * s.astype(f32).reshape(laid)).astype(real)
        inputs = [x, s] + ([zero] if given else [])
        yield Case("DequantizeLinear", inputs, [real], attrs, reference=[want], fed=either(rng, (0,), range(3)))


# ---- Gelus -------------------------------------------------------------------------------------------------------


def exact_gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[np.float64])(x / math.sqrt(2)))


def tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu(op, function, bias):
    """`bias`: whether there is one: "always", "maybe" or "never"."""

    def make(rng):
        for number in itertools.count():
            real = [f32, f32, np.float16, ml_dtypes.bfloat16, np.float64][number % 5]
            shape = either(rng, (30,), (3, 16), (2, 3, 70), (0, 4))
            x = rng.normal(0, 2.5, shape).astype(real)
            inputs, total = [x], x.astype(np.float64)
            if bias == "always" or (bias == "maybe" and rng.random() < 0.5):
                b = rng.normal(0, 1, shape[-1:]).astype(real)
                inputs, total = [x, b], total + b.astype(np.float64)
            attrs = {}
            if op == "QuickGelu" and rng.random() < 0.6:
                attrs = {"alpha": float(f32(rng.choice([1, 0.5, 1.5, -1])))}
            want = function(total, attrs).astype(real)
            tight = {f32: 1e-6, np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3, np.float64: 1e-14}[real]
            # ONNX Runtime computes float16 in float, refuses bfloat16, and its FastGelu of doubles computes in float.
            yield Case(
                op,
                inputs,
                [real],
                attrs,
                reference=[want],
                rtol=tight,
                atol=tight,
                fed=range(2),
                ort=(op, real) != ("FastGelu", np.float64),
            )

    return make


def quick(x, attrs):
    return x / (1 + np.exp(-float(f32(attrs.get("alpha", f32(1.702)))) * x))


OPERATORS = {
    "QLinearAdd": (binary("QLinearAdd", add_reference), 400),
    "QLinearMul": (binary("QLinearMul", mul_reference), 400),
    "QLinearAveragePool": (average_pool, 300),
    "QLinearGlobalAveragePool": (global_average_pool, 200),
    "QLinearConcat": (concat, 300),
    "QLinearSigmoid": (unary("QLinearSigmoid", sigmoid), 300),
    "QLinearLeakyRelu": (unary("QLinearLeakyRelu", leaky_relu), 300),
    "QLinearSoftmax": (softmax, 300),
    "QLinearWhere": (where, 300),
    "QLinearReduceMean": (reduce_mean, 300),
    "NhwcMaxPool": (max_pool, 200),
    "MulInteger": (mul_integer, 200),
    "ReduceSumInteger": (reduce_sum_integer, 200),
    "QuantizeLinear": (quantize_linear, 400),
    "DequantizeLinear": (dequantize_linear, 400),
    "Gelu": (gelu("Gelu", lambda x, _: exact_gelu(x), "never"), 200),
    "BiasGelu": (gelu("BiasGelu", lambda x, _: exact_gelu(x), "always"), 200),
    "FastGelu": (gelu("FastGelu", lambda x, _: tanh_gelu(x), "maybe"), 200),
    "QuickGelu": (gelu("QuickGelu", quick, "never"), 200),
}
