# SPDX-License-Identifier: Apache-2.0
"""Cases of FusedMatMul, FusedGemm, FusedConv and QLinearConv, and of Trilu, with references in float64 and in integers."""

import itertools

import ml_dtypes
import numpy as np

from cases import Case
from qlinear import codes, either, scale, zero_point

f32 = np.float32
EPSILON = {np.dtype(np.float64): 2.0**-52, np.dtype(f32): 2.0**-23, np.dtype(np.float16): 2.0**-10,
           np.dtype(ml_dtypes.bfloat16): 2.0**-7}


def bounds(dtype, terms):
    """rtol and atol of a sum of so many terms of the size of 1, in float32 at least, rounded once."""
    return EPSILON[np.dtype(dtype)], terms * min(EPSILON[np.dtype(f32)], EPSILON[np.dtype(dtype)])


# ---- FusedMatMul -------------------------------------------------------------------------------------------------


def stand(x, swap, rotate):
    """The array that becomes x when the operator moves its axes."""
    if x.ndim < 2:
        return x
    if swap:
        x = np.swapaxes(x, -1, -2)
    return np.moveaxis(x, -2, 0) if rotate else x


def fused_matmul(rng):
    batches = [((), ()), ((3,), (3,)), ((2, 3), (2, 3)), ((2, 1, 3), (4, 3)), ((), (2,)), ((5, 2), (2,)), ((1,), (3,))]
    types = [f32, f32, np.float64, np.float16, ml_dtypes.bfloat16]
    for number in itertools.count():
        dtype = types[number % len(types)]
        batch_a, batch_b = batches[number // 2 % len(batches)]
        m, k, n = (int(v) for v in rng.integers(1, 40, 3))
        shape_a, shape_b = (*batch_a, m, k), (*batch_b, k, n)
        if rng.random() < 0.1:
            shape_a = (k,)
        elif rng.random() < 0.1:
            shape_b = (k,)
        a, b = (rng.uniform(-1, 1, s).astype(dtype) for s in (shape_a, shape_b))
        flags = dict(zip(("transA", "transB", "transBatchA", "transBatchB"), (int(v) for v in rng.integers(0, 2, 4))))
        # ONNX Runtime moves the first axis of operands of the same rank alone.
        if a.ndim != b.ndim or a.ndim < 3:
            flags["transBatchA"] = flags["transBatchB"] = 0
        alpha = f32(either(rng, 1, 0.125, -2.5, 0.3))
        want = float(alpha) * (a.astype(np.float64) @ b.astype(np.float64))
        rtol, atol = bounds(dtype, 4 * k)
        yield Case(
            "FusedMatMul",
            [stand(a, flags["transA"], flags["transBatchA"]), stand(b, flags["transB"], flags["transBatchB"])],
            [dtype],
            {**flags, "alpha": float(alpha)},
            reference=[want.astype(dtype)],
            ort=not (flags["transA"] and b.ndim == 1),  # there it multiplies something else
            fed=either(rng, (0,), (0, 1)),
            rtol=rtol,
            atol=atol,
        )


def transpose_matmul(rng):
    """FusedMatMul's older name, which moves no first axes."""
    for case in fused_matmul(rng):
        if not case.attrs.pop("transBatchA") and not case.attrs.pop("transBatchB"):
            case.op, case.ort = "TransposeMatMul", case.ort and case.inputs[0].dtype == f32
            yield case


FUNCTIONS = {
    "Relu": (0, lambda x, a, b, c: np.maximum(x, 0)),
    "Tanh": (0, lambda x, a, b, c: np.tanh(x)),
    "Sigmoid": (0, lambda x, a, b, c: 1 / (1 + np.exp(-x))),
    "Softplus": (0, lambda x, a, b, c: np.log1p(np.exp(x))),
    "Softsign": (0, lambda x, a, b, c: x / (1 + np.abs(x))),
    "Elu": (1, lambda x, a, b, c: np.where(x < 0, a * np.expm1(x), x)),
    "LeakyRelu": (1, lambda x, a, b, c: np.where(x < 0, a * x, x)),
    "ThresholdedRelu": (1, lambda x, a, b, c: np.where(x > a, x, 0)),
    "HardSigmoid": (2, lambda x, a, b, c: np.clip(a * x + b, 0, 1)),
    "Selu": (3, lambda x, a, b, c: c * np.where(x < 0, a * np.expm1(x), x)),
    "": (0, lambda x, a, b, c: x),
}


def fused_gemm(rng):
    for number in itertools.count():
        dtype = [f32, f32, np.float16][number % 3]
        name, (given, function) = list(FUNCTIONS.items())[number % len(FUNCTIONS)]
        m, k, n = (int(v) for v in rng.integers(1, 40, 3))
        a, b = rng.uniform(-1, 1, (m, k)).astype(dtype), rng.uniform(-1, 1, (k, n)).astype(dtype)
        c = [None, (n,), (m, n), (m, 1), ()][rng.integers(5)]
        c = None if c is None else rng.uniform(-1, 1, c).astype(dtype)
        alpha, beta = (float(f32(either(rng, 1, 0.3))) for _ in "ab")
        turns = {"transA": int(rng.integers(2)), "transB": int(rng.integers(2))}
        params = dict(zip(("alpha", "beta", "gamma"), (float(f32(v)) for v in (0.3, 0.4, 1.2))))
        with_beta = name == "HardSigmoid"
        attrs = {f"activation_{p}": v for p, v in params.items()
                 if given and (p == "alpha" or (p == "beta") == with_beta and given > 1)}
        total = alpha * (a.astype(np.float64) @ b) + (0 if c is None else beta * c.astype(np.float64))
        want = function(total, *params.values())
        rtol, atol = bounds(dtype, 4 * k)
        if name == "ThresholdedRelu" and np.abs(total - params["alpha"]).min() < 1e-3:
            continue  # on either side of the step
        yield Case("FusedGemm", [a.T if turns["transA"] else a, b.T if turns["transB"] else b, c], [dtype],
                   {**turns, **attrs, "alpha": alpha, "beta": beta, "activation": name}, reference=[want.astype(dtype)],
                   ort=dtype == f32 and name != "", fed=either(rng, (0,), (0, 1)), rtol=2 * rtol, atol=2 * atol)


def trilu(rng):
    types = [f32, np.float64, np.int64, np.int8, np.float16, np.bool_]
    while True:
        x = rng.integers(-9, 9, rng.integers(1, 6, rng.integers(2, 4))).astype(types[rng.integers(len(types))])
        k, upper = int(rng.integers(-6, 7)), int(rng.integers(2))
        given = None if rng.integers(4) == 0 else np.array(k, np.int64)
        want = (np.triu if upper else np.tril)(x, 0 if given is None else k)
        yield Case("Trilu", [x, given], [x.dtype.type], {"upper": upper}, reference=[want], ort=x.dtype in types[:3])


# ---- Convolutions ------------------------------------------------------------------------------------------------


def geometry(rng, axes):
    """Attributes, and the shapes of x and w."""
    while True:
        group = int(either(rng, 1, 1, 2, 3))
        if rng.random() < 0.3:  # depthwise
            group, group_in, group_out = int(rng.integers(2, 70)), 1, int(either(rng, 1, 1, 2))
        else:
            group_in, group_out = (int(v) for v in rng.integers(1, 9, 2))
        space = [int(v) for v in rng.integers(1, 11, axes)]
        kernel = [int(v) for v in rng.integers(1, 4, axes)]
        strides = [int(v) for v in rng.integers(1, 4, axes)]
        dilations = [int(v) for v in rng.integers(1, 3, axes)]
        pads = [int(v) for v in rng.integers(0, 3, 2 * axes)]
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
        if all(i + b + e >= s for i, b, e, s in zip(space, pads[:axes], pads[axes:], spans)):
            attrs = {"group": group, "kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads}
            x = (int(rng.integers(1, 3)), group * group_in, *space)
            return attrs, x, (group * group_out, group_in, *kernel)


def convolve(x, w, attrs):
    """The sums of products of arrays of one wide type."""
    axes = x.ndim - 2
    group, strides, dilations, pads = (attrs[n] for n in ("group", "strides", "dilations", "pads"))
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:axes], pads[axes:])])
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    out = [(i - s) // t + 1 for i, s, t in zip(x.shape[2:], spans, strides)]
    x = x.reshape(x.shape[0], group, -1, *x.shape[2:])
    w = w.reshape(group, -1, *w.shape[1:])
    total = np.zeros((x.shape[0], group, w.shape[1], *out), x.dtype)
    for tap in itertools.product(*(range(k) for k in w.shape[3:])):
        ranges = [slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, dilations, out, strides)]
        total += np.einsum("bgc...,gmc->bgm...", x[(..., *ranges)], w[(..., *tap)])
    return total.reshape(x.shape[0], -1, *out)


def channel(values, axes):
    """Of each output channel, or one for all."""
    return np.reshape(values, (-1,) + (1,) * axes)


ACTIVATIONS = {
    "Relu": (0, lambda v, p: np.maximum(v, 0)),
    "Tanh": (0, lambda v, p: np.tanh(v)),
    "Sigmoid": (0, lambda v, p: 1 / (1 + np.exp(-v))),
    "LeakyRelu": (1, lambda v, p: np.where(v < 0, p[0] * v, v)),
    "Clip": (2, lambda v, p: np.minimum(np.maximum(v, p[0]), p[1])),
    "HardSigmoid": (2, lambda v, p: np.clip(p[0] * v + p[1], 0, 1)),
}


def fused_conv(rng):
    names = [*ACTIVATIONS, None]
    types = [f32, f32, f32, np.float64, np.float16]
    for number in itertools.count():
        dtype, name = types[number % len(types)], names[number // 3 % len(names)]
        attrs, shape_x, shape_w = geometry(rng, 1 + number % 3)
        x, w = (rng.uniform(-1, 1, s).astype(dtype) for s in (shape_x, shape_w))
        bias = rng.uniform(-1, 1, shape_w[0]).astype(dtype) if rng.random() < 0.7 else None
        want = convolve(x.astype(np.float64), w.astype(np.float64), attrs)
        want = want if bias is None else want + channel(bias.astype(np.float64), x.ndim - 2)
        inputs = [x, w, bias]
        if rng.random() < 0.4:
            inputs.append(rng.uniform(-1, 1, want.shape).astype(dtype))
            want = want + inputs[3].astype(np.float64)
        if name:
            count, function = ACTIVATIONS[name]
            params = [float(v) for v in np.sort(rng.uniform(-1, 1, count)).astype(f32)]
            want = function(want, params)
            attrs = {**attrs, "activation": name} | ({"activation_params": params} if count else {})
        while inputs[-1] is None:
            inputs.pop()
        terms = int(np.prod(shape_w[1:])) + 2
        rtol, atol = bounds(dtype, 4 * terms)
        # its sigmoid and tanh are approximations in float32
        atol += 2e-6 if name in ("Tanh", "Sigmoid") and dtype != np.float64 else 0
        yield Case("FusedConv", inputs, [dtype], attrs, reference=[want.astype(dtype)], fed=either(rng, (0,), (0, 1)),
                   rtol=rtol, atol=atol)


def qlinear_conv(rng):
    """Weights stay within what ONNX Runtime's instructions add without saturation on every processor."""
    pairs = list(itertools.product([np.uint8, np.int8], repeat=3))
    for number in itertools.count():
        tx, tw, ty = pairs[number % len(pairs)]
        last = number // len(pairs) % 3 > 0
        attrs, shape_x, shape_w = geometry(rng, 1 + number % 3)
        axes = len(shape_x) - 2
        x, w = codes(rng, tx, shape_x), codes(rng, tw, shape_w)
        if tx == np.uint8 and tw == np.int8:
            w //= 2
        sx, sy, zx, zy = scale(rng), scale(rng), zero_point(rng, tx), zero_point(rng, ty)
        channels = shape_w[0] if rng.random() < 0.5 else 1
        sw = rng.uniform(0.001, 0.1, channels).astype(f32) if rng.random() < 0.5 else scale(rng)
        zw = codes(rng, tw, channels) if rng.random() < 0.3 else zero_point(rng, tw)
        bias = rng.integers(-5000, 5000, shape_w[0]).astype(np.int32) if rng.random() < 0.5 else None
        total = convolve(x.astype(np.int64) - int(zx), w.astype(np.int64) - channel(zw.astype(np.int64), axes + 1), attrs)
        total = total if bias is None else total + channel(bias.astype(np.int64), axes)
        factor = np.float64(sx) * np.asarray(sw, np.float64) / np.float64(sy)
        info = np.iinfo(ty)
        want = np.clip(np.rint(total * channel(factor, axes)) + int(zy), info.min, info.max).astype(ty)
        if last:
            x, want = np.moveaxis(x, 1, -1), np.moveaxis(want, 1, -1)
        inputs = [x, sx, zx, w, sw, zw, sy, zy] + ([] if bias is None else [bias])
        yield Case("QLinearConv", inputs, [ty], {**attrs, "channels_last": int(last)}, reference=[want],
                   fed=either(rng, (0,), (0, 3)), quantum=1)


OPERATORS = {
    "FusedConv": (fused_conv, 300),
    "FusedGemm": (fused_gemm, 300),
    "FusedMatMul": (fused_matmul, 300),
    "QLinearConv": (qlinear_conv, 400),
    "TransposeMatMul": (transpose_matmul, 100),
    "Trilu": (trilu, 100),
}
