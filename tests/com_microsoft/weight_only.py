# SPDX-License-Identifier: Apache-2.0
"""Cases of the operators whose weights alone are quantized: MatMulNBits, MatMulBnb4, GatherBlockQuantized and QMoE.
The references dequantize with numpy and multiply in float64."""

import itertools

import ml_dtypes
import numpy as np

from cases import Case
from fused import bounds
from qlinear import either

f32, f64 = np.float32, np.float64
FLOATS = [f32, np.float16, ml_dtypes.bfloat16]


def pack(codes, bits):
    """Along the last axis, low bits first, padded with zeros to whole bytes."""
    each = 8 // bits
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % each)])
    codes = codes.reshape(*codes.shape[:-1], -1, each).astype(np.uint32) << (np.arange(each, dtype=np.uint32) * bits)
    return codes.sum(-1).astype(np.uint8)


def positive(rng, shape, dtype):
    return rng.uniform(0.01, 0.1, shape).astype(dtype)


# ---- MatMulNBits -------------------------------------------------------------------------------------------------


def rounded(a, groups):
    """Activations as accuracy_level 4 takes them: in 8 bits with a scale for each row and group; rows that are not
    finite as they are."""
    out = a.astype(f64)
    finite = np.isfinite(out).all(-1)
    for group in np.unique(groups):
        x = a.astype(f32)[..., groups == group]
        scale = np.abs(x).max(-1, keepdims=True) / f32(127)
        scale[scale == 0] = 1
        with np.errstate(invalid="ignore"):
            codes = np.rint(x / scale).astype(f64) * scale
        out[..., groups == group] = np.where(finite[..., None], codes, x)
    return out


def matmul_nbits(rng):
    sizes = [16, 32, 64, 128, 256, 512, 24, 8]  # the last three: not in ONNX Runtime
    for number in itertools.count():
        bits, block = (2, 4, 8)[number % 3], sizes[number // 3 % len(sizes)]
        dtype = FLOATS[0 if rng.random() < 0.5 else rng.integers(0, 3)]
        wide = rng.random() < 0.15  # several strips of columns
        n, k = int(rng.integers(*(65, 300) if wide else (1, 40))), int(
            either(rng, block, 2 * block, rng.integers(1, 3 * block + 1))
        )
        blocks = -(-k // block)
        rows = either(rng, (1,), (3,), (2, 7)) if wide else either(rng, (), (1,), (3,), (2, 5), (2, 67))
        a = rng.uniform(-1, 1, (*rows, k)).astype(dtype)
        factor = 1.0
        if dtype == f32 and rng.random() < 0.1:  # values that codes take out of the range of floats
            factor = either(rng, 1e34, 1e-38)
            a *= f32(factor)
        codes = rng.integers(0, 1 << bits, (n, blocks * block))
        scales = positive(rng, (n, blocks), dtype)
        kind = either(rng, None, "packed", "float")
        zeros = np.full((n, blocks), 1 << (bits - 1))
        given = None
        if kind == "packed":
            zeros = rng.integers(0, 1 << bits, (n, blocks))
            given = pack(zeros, bits)
        elif kind == "float":
            given = zeros = rng.uniform(0, (1 << bits) - 1, (n, blocks)).astype(dtype)
        groups = None
        if rng.random() < 0.25:
            groups = rng.integers(0, blocks, k).astype(np.int32)
        bias = rng.uniform(-1, 1, n).astype(dtype) if rng.random() < 0.3 else None
        at = np.arange(k) // block if groups is None else groups
        if kind != "float" and groups is None and factor == 1 and rng.random() < 0.1:
            # Values far above the others whose weights are 0: the others must not lose their own precision.
            high = rng.integers(0, k, 1 + k // 40)
            a[..., high] *= dtype(2.0 ** int(rng.integers(4, 15 if dtype == f32 else 6)))
            codes[:, high] = zeros[:, at[high]]
        weights = (codes[:, :k] - zeros.astype(f64)[:, at]) * scales.astype(f64)[:, at]
        level = 4 if bits != 2 and rng.random() < 0.4 else 0
        if factor == 1 and a.ndim > 1 and rng.random() < 0.1:  # a row of its own
            a[0, ..., k // 2] = either(rng, np.inf, -np.inf, np.nan)
        x = rounded(a, at) if level else a.astype(f64)
        with np.errstate(invalid="ignore"):
            want = (x[..., None, :] * weights).sum(-1) + (0 if bias is None else bias.astype(f64))
        if rng.random() < 0.2:
            scales = scales.reshape(-1)
        inputs = [a, pack(codes, bits).reshape(n, blocks, -1), scales, given, groups, bias]
        while inputs[-1] is None:
            inputs.pop()
        rtol, atol = bounds(dtype, 4 * (k * factor + (bias is not None)) * np.abs(weights).max(initial=0))
        # ONNX Runtime dequantizes to float16 first.
        ort_atol = 2e-3 * k * np.abs(weights).max(initial=0) if dtype == np.float16 else 0
        yield Case(
            "MatMulNBits",
            inputs,
            [dtype],
            {"K": k, "N": n, "bits": bits, "block_size": block, "accuracy_level": level},
            reference=[want.astype(dtype)],
            # With groups, even when all are 0, it multiplies something else for these. Of level 4 it multiplies with
            # 127 / max, so that what lies near a tie becomes another code.
            ort=not level and (groups is None or (kind != "packed" and bits != 2)),
            fed=either(rng, (0,), (0,), (0, 1, 2), (0, 4)),
            rtol=rtol,
            atol=atol + ort_atol,
        )


# ---- MatMulBnb4 --------------------------------------------------------------------------------------------------

FP4 = [0, 0.0052083333, 0.6666667, 1, 0.33333334, 0.5, 0.16666667, 0.25]
NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
       -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
       0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]
TABLES = [np.array(FP4 + [-v for v in FP4]), np.array(NF4)]


def matmul_bnb4(rng):
    for number in itertools.count():
        kind, transposed = number % 2, int(number // 2 % 3 > 0)
        dtype = FLOATS[0 if rng.random() < 0.6 else rng.integers(0, 3)]
        block = int(either(rng, 16, 32, 64, 128, 256, 24))
        n = int(rng.integers(*(65, 300) if rng.random() < 0.2 else (1, 40)))
        k = int(either(rng, 32, 64, rng.integers(1, 90)))
        a = rng.uniform(-1, 1, (*either(rng, (), (1,), (3,), (2, 5)), k)).astype(dtype)
        codes = rng.integers(0, 16, n * k)
        absmax = positive(rng, -(-n * k // block), dtype)
        weights = TABLES[kind][codes] * absmax.astype(f64)[np.arange(n * k) // block]
        weights = weights.reshape(n, k).T if transposed else weights.reshape(k, n)
        pairs = np.pad(codes, (0, n * k % 2)).reshape(-1, 2)
        rtol, atol = bounds(dtype, 4 * k)
        yield Case(
            "MatMulBnb4",
            [a, (pairs[:, 0] << 4 | pairs[:, 1]).astype(np.uint8), absmax],
            [dtype],
            {"K": k, "N": n, "block_size": block, "quant_type": kind, "transB": transposed},
            reference=[(a.astype(f64) @ weights).astype(dtype)],
            ort=bool(transposed),  # it reads B as [N, K] whatever transB says
            fed=either(rng, (0,), (0, 1)),
            rtol=rtol,
            atol=atol,
        )


# ---- GatherBlockQuantized ----------------------------------------------------------------------------------------


def gather_block_quantized(rng):
    for number in itertools.count():
        dtype = FLOATS[number % 3]
        rank = int(either(rng, 1, 2, 2, 3, 3, 3))
        dims = [int(v) for v in rng.integers(1, 7, rank)]
        block = int(either(rng, 16, 32, 128))
        bytes_of_codes = number // 3 % 2 == 0
        axis = rank - 1 if bytes_of_codes else int(rng.integers(0, rank))
        dims[axis] = int(either(rng, block, 2 * block, 8 * rng.integers(1, 9)))
        blocks = [-(-d // block) if i == axis else d for i, d in enumerate(dims)]
        scales = positive(rng, blocks, dtype)
        attrs = {"block_size": block, "quantize_axis": either(rng, axis, axis - rank)}
        zeros = None
        if bytes_of_codes:
            bits = int(either(rng, 2, 4, 8))
            codes, low = rng.integers(0, 1 << bits, dims), 1 << (bits - 1)
            data, attrs["bits"], gather = pack(codes, bits), bits, 0
            if rank == 1:
                continue  # the gathered axis would be the packed one
        else:
            kind = either(rng, ml_dtypes.int4, ml_dtypes.uint4)
            info = ml_dtypes.iinfo(kind)
            codes, low = rng.integers(info.min, info.max + 1, dims), 0
            data, gather = codes.astype(kind), int(rng.integers(0, rank))
        zero_codes = np.full(blocks, low)
        if rng.random() < 0.6:
            if bytes_of_codes:
                zero_codes = rng.integers(0, 1 << bits, blocks)
                zeros = pack(zero_codes, bits)
            else:
                zero_codes = rng.integers(info.min, info.max + 1, blocks)
                zeros = zero_codes.astype(kind)
        attrs["gather_axis"] = either(rng, gather, gather - rank) if not bytes_of_codes else 0
        spread = [np.repeat(x, block, axis).take(range(dims[axis]), axis) for x in (zero_codes, scales.astype(f32))]
        values = ((codes - spread[0]).astype(f32) * spread[1]).astype(dtype)
        index = rng.integers(-dims[gather], dims[gather], either(rng, (), (3,), (2, 2))).astype(
            either(rng, np.int32, np.int64)
        )
        inputs = [data, index, scales] + ([] if zeros is None else [zeros])
        yield Case("GatherBlockQuantized", inputs, [dtype], attrs, reference=[np.take(values, index, gather)],
                   fed=either(rng, (1,), (1,), (0, 1, 2)))


# ---- QMoE --------------------------------------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x * sigmoid(x),
    "identity": lambda x: x,
}


class Layer:
    """Random weights of a layer of every expert: the inputs, and what they stand for in float64."""

    def __init__(self, rng, dtype, bits, block, experts, rows, cols, with_zeros):
        codes = rng.integers(0, 1 << bits, (experts, rows, cols))
        groups = (experts, rows, cols // block) if block else (experts, rows)
        zeros = rng.integers(0, 1 << bits, groups) if with_zeros else np.full(groups, 1 << (bits - 1))
        scales = (rng.uniform(0.2, 1, groups) / (1 << bits)).astype(dtype)
        wide = [np.repeat(x, block, 2) if block else x[:, :, None] for x in (zeros, scales.astype(f64))]
        self.weights = (codes - wide[0]) * wide[1]
        bias = rng.uniform(-1, 1, (experts, rows)).astype(dtype) if rng.random() < 0.5 else None
        self.bias = np.zeros((experts, rows)) if bias is None else bias.astype(f64)
        self.inputs = [pack(codes, bits), scales, bias]
        self.zeros = pack(zeros, bits) if with_zeros else None

    def __call__(self, expert, x):
        return x @ self.weights[expert].T + self.bias[expert]


def swiglu(gate, value, attrs):
    limit = attrs.get("swiglu_limit", np.inf)
    after = attrs.get("swiglu_limit_after_activation", 0)
    gate, value = gate if after else np.minimum(gate, limit), np.clip(value, -limit, limit)
    gate *= sigmoid(attrs["activation_alpha"] * gate)
    return (np.minimum(gate, limit) if after else gate) * (value + attrs["activation_beta"])


def geglu(gate, value, _attrs):
    return FUNCTIONS["gelu"](gate) * value


def expert_output(layers, attrs, expert, x):
    first, second, third = layers
    h = first(expert, x)
    pair = {"swiglu": swiglu, "geglu": geglu}.get(attrs["activation_type"])
    if not pair:
        h = FUNCTIONS[attrs["activation_type"]](h) * (third(expert, x) if third else 1)
    elif third:
        h = pair(h, third(expert, x), attrs)
    elif attrs["swiglu_fusion"] == 1:
        h = pair(h[0::2], h[1::2], attrs)
    else:
        h = pair(*np.split(h, 2), attrs)
    return second(expert, h)


def qmoe(rng):
    names = [*FUNCTIONS, "swiglu", "swiglu", "swiglu", "geglu"]
    for number in itertools.count():
        name, bits = names[number % len(names)], (2, 4, 8)[number // 2 % 3]
        dtype = FLOATS[0 if rng.random() < 0.6 else rng.integers(0, 3)]
        block = int(either(rng, 0, 16, 32))
        experts, k = int(rng.integers(1, 7)), 0
        k = int(rng.integers(1, experts + 1))
        hidden, inter = (int(v) * (block or 4) for v in rng.integers(1, 4 if block else 12, 2))
        attrs = {"activation_type": name, "expert_weight_bits": bits, "k": k,
                 "normalize_routing_weights": int(rng.integers(0, 2))}
        attrs |= {"block_size": block} if block else {}
        with_zeros = rng.random() < 0.5
        gated = rng.random() < 0.2 and name != "geglu"
        pairs = name in ("swiglu", "geglu") and not gated
        if name == "geglu":
            attrs["swiglu_fusion"] = int(rng.integers(1, 3))
        if name == "swiglu":
            attrs["swiglu_fusion"] = 0 if gated else int(rng.integers(1, 3))
            attrs |= {"activation_alpha": float(f32(1.702)), "activation_beta": 1.0}
            attrs |= {"swiglu_limit": 2.5} if rng.random() < 0.5 else {}
            attrs |= {"swiglu_limit_after_activation": 1, "swiglu_limit": 0.3} if rng.random() < 0.2 else {}
        cuda_only = name in ("relu2", "geglu") or "swiglu_limit_after_activation" in attrs
        tokens = either(rng, (1,), (5,), (2, 3))
        x = rng.uniform(-1, 1, (*tokens, hidden)).astype(dtype)
        count = int(np.prod(tokens))
        # logits without ties in 16 bits
        logits = rng.permuted(np.tile(np.linspace(-2, 2, experts), (count, 1)), axis=1).astype(dtype)
        given = rng.uniform(0.1, 1, (count, experts)).astype(dtype) if rng.random() < 0.3 else None
        rows = inter * (2 if pairs else 1)
        make = lambda r, c: Layer(rng, dtype, bits, block, experts, r, c, with_zeros)  # noqa: E731
        layers = [make(rows, hidden), make(hidden, inter), make(inter, hidden) if gated else None]
        want = np.zeros((count, hidden))
        for t, row in enumerate(x.reshape(count, hidden).astype(f64)):
            chosen = np.argsort(-logits[t].astype(f64), kind="stable")[:k]
            weights = np.exp(logits[t].astype(f64)[chosen]) if given is None else given[t].astype(f64)[chosen]
            if given is None or attrs["normalize_routing_weights"]:
                weights = weights / weights.sum()
            want[t] = sum(w * expert_output(layers, attrs, e, row) for w, e in zip(weights, chosen))
        inputs = [x, logits, *layers[0].inputs, *layers[1].inputs, *(layers[2].inputs if gated else [None] * 3)]
        inputs += [*(l.zeros if l else None for l in layers), given]
        while inputs[-1] is None:
            inputs.pop()
        size = np.abs(want).max(initial=1) * hidden
        rtol, atol = bounds(dtype, 16 * size)
        if dtype != f32:  # ONNX Runtime rounds between the layers
            atol = 4 * rtol * np.abs(want).max(initial=1)
        yield Case(
            "QMoE",
            inputs,
            [dtype],
            attrs,
            reference=[want.reshape(x.shape).astype(dtype)],
            ort=not cuda_only and not (block and (bits == 8 or (bits == 2 and 0 in (rows % 128, hidden % 128)))),  # activations in 8 bits
            fed=(0, 1),
            rtol=rtol,
            atol=atol,
        )


OPERATORS = {
    "MatMulNBits": (matmul_nbits, 400),
    "MatMulBnb4": (matmul_bnb4, 200),
    "GatherBlockQuantized": (gather_block_quantized, 300),
    "QMoE": (qmoe, 250),
}
