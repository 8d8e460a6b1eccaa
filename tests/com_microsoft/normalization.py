# SPDX-License-Identifier: Apache-2.0
"""Cases of the operators that add rows up and normalize the sum, and of ONNX Runtime's own normalizations in the
standard's domain."""

import ml_dtypes
import numpy as np

from cases import Case

FLOATS = [np.float32, np.float32, np.float16, ml_dtypes.bfloat16]
WITH_DOUBLE = [np.float32, np.float16, ml_dtypes.bfloat16, np.float64]
# Of one rounding to the type, and a few of float32's for the order of sums.
RELATIVE = {np.float64: 2e-6, np.float32: 2e-6, np.float16: 1.1e-3, ml_dtypes.bfloat16: 8e-3}


def normal(rng, dtype, *shape):
    return rng.normal(size=shape).astype(np.float32).astype(dtype)


def wide(array):
    return None if array is None else array.astype(np.float64)


def normalize(x, gamma, beta, epsilon, centre=True):
    """Result, mean, 1 / deviation over the last axis in float64."""
    mean = x.mean(-1, keepdims=True)
    off = mean if centre else 0
    inverse = 1 / np.sqrt(((x - off) ** 2).mean(-1, keepdims=True) + epsilon)
    y = (x - off) * inverse * gamma
    return (y if beta is None else y + beta), mean, inverse


def skip_case(rng, centre):
    dtype = FLOATS[rng.integers(len(FLOATS))]
    batch, steps, n = rng.integers(1, 4), rng.integers(1, 6), rng.integers(2, 40)
    x = normal(rng, dtype, batch, steps, n)
    skip = normal(rng, dtype, *[(batch, steps, n), (1, steps, n), (steps, n)][rng.integers(3)])
    if rng.integers(4) == 0:
        x, skip = x[0], normal(rng, dtype, steps, n)
    gamma = normal(rng, dtype, n)
    beta = normal(rng, dtype, n) if centre and rng.integers(3) else None
    bias = normal(rng, dtype, n) if rng.integers(2) else None
    epsilon = float(np.float32([1e-12, 1e-5, 1e-3][rng.integers(3)]))
    total = wide(x) + wide(skip) + (0 if bias is None else wide(bias))
    y, mean, inverse = normalize(total, wide(gamma), wide(beta), epsilon, centre)
    stats = rng.integers(4) == 0  # ONNX Runtime's CPU kernel leaves them unwritten
    outputs = [dtype, np.float32 if stats else None, np.float32 if stats else None, dtype]
    name = "SkipLayerNormalization" if centre else "SkipSimplifiedLayerNormalization"
    reference = [y.astype(dtype), mean.astype(np.float32), inverse.astype(np.float32), total.astype(dtype)]
    relative = RELATIVE[dtype]
    return Case(name, [x, skip, gamma, *([beta] if centre else []), bias], outputs, {"epsilon": epsilon},
                reference=[r if t else None for r, t in zip(reference, outputs)], fed=(0, 1),
                ort=not stats and dtype != ml_dtypes.bfloat16, rtol=relative, atol=4 * relative)


def skip(rng):
    while True:
        yield skip_case(rng, True)


def skip_simplified(rng):
    while True:
        yield skip_case(rng, False)


def layer_case(rng, centre):
    """LayerNormalization before the standard had it, or SimplifiedLayerNormalization."""
    kind, result = (rng.choice([0, 0, 1, 2, 3], 2) if rng.integers(6) == 0 else [rng.choice([0, 0, 1, 2, 3])] * 2)
    kind, result = WITH_DOUBLE[kind], WITH_DOUBLE[result]
    shape = rng.integers(1, 9, rng.integers(1, 5))
    axis = int(rng.integers(-len(shape), len(shape)))
    x, n = normal(rng, kind, *shape), shape[axis:]
    gamma, beta = normal(rng, result, *n), normal(rng, result, *n) if centre and rng.integers(3) else None
    epsilon = float(np.float32([1e-12, 1e-5, 1e-3][rng.integers(3)]))
    rows = (-1, int(np.prod(n)))
    y, mean, inverse = normalize(wide(x).reshape(rows), wide(gamma).ravel(), None if beta is None else wide(beta).ravel(),
                                 epsilon, centre)
    some = [*shape[:axis if axis >= 0 else axis + len(shape)], *[1] * len(n)]
    stats = [np.float32 if rng.integers(2) else None for _ in "12"[not centre:]]
    reference = [y.reshape(shape).astype(result), *[v.reshape(some).astype(np.float32)
                                                    for v in ([mean, inverse] if centre else [inverse])]]
    relative = max(RELATIVE[kind], RELATIVE[result])
    return Case("LayerNormalization" if centre else "SimplifiedLayerNormalization",
                [x, gamma, *([beta] if centre else [])], [result, *stats], {"axis": axis, "epsilon": epsilon},
                reference=reference, ort=kind == result and len(shape) > 0, rtol=relative, atol=4 * relative, domain="",
                opset=13)


def layer(rng):
    while True:
        yield layer_case(rng, True)


def simplified(rng):
    while True:
        yield layer_case(rng, False)


def ids(rng):
    """Batch, steps, input ids, segment ids or None, mask or None."""
    shape = rng.integers(1, 4), rng.integers(1, 7)
    words = rng.integers(0, 11, shape, np.int32)
    segments = rng.integers(0, 2, shape, np.int32) if rng.integers(3) else None
    return *shape, words, segments, rng.integers(0, 2, shape, np.int32) if rng.integers(2) else None


def ones(mask, batch):
    return np.zeros(batch, np.int32) if mask is None else (mask == 1).sum(1).astype(np.int32)


def embed(rng):
    while True:
        dtype = [np.float32, np.float32, np.float16][rng.integers(3)]
        batch, steps, words, segments, mask = ids(rng)
        n = rng.integers(2, 40)
        tables = [normal(rng, dtype, r, n) for r in (11, 9, 2)]
        gamma, beta = normal(rng, dtype, n), normal(rng, dtype, n)
        positions = None
        if rng.integers(2):
            positions = rng.integers(0, 9, ([1, batch][rng.integers(2)], steps), np.int32)
        total = wide(tables[0])[words]
        total = total + wide(tables[1])[np.arange(steps) if positions is None else positions]
        if segments is not None:
            total = total + wide(tables[2])[segments]
        y, _, _ = normalize(total, wide(gamma), wide(beta), np.float32(1e-12))
        inputs = [words, segments, *tables[:2], None if segments is None else tables[2], gamma, beta, mask, positions]
        yield Case("EmbedLayerNormalization", inputs, [dtype, np.int32, dtype],
                   reference=[y.astype(dtype), ones(mask, batch), total.astype(dtype)], fed=(0, 1, 7, 8),
                   ort=dtype == np.float32, rtol=RELATIVE[dtype], atol=20 * RELATIVE[dtype])


def quantized_embed(rng):
    while True:
        kind = [np.uint8, np.int8][rng.integers(2)]
        batch, steps, words, segments, mask = ids(rng)
        n = rng.integers(2, 40)
        low, high = np.iinfo(kind).min, np.iinfo(kind).max + 1
        parts = [rng.integers(low, high, s).astype(kind) for s in ((11, n), (9, n), (2, n), n, n)]
        scales = [np.float32(s) for s in rng.uniform(0.003, 0.02, 5)]
        zeros = [rng.integers(low, high, dtype=kind) for _ in parts]
        plain = [(p.astype(np.float64) - z) * np.float64(s) for p, z, s in zip(parts, zeros, scales)]
        total = plain[0][words] + plain[1][np.arange(steps)]
        if segments is None:
            parts[2] = scales[2] = zeros[2] = None
        else:
            total = total + plain[2][segments]
        y, _, _ = normalize(total, plain[3], plain[4], np.float32(1e-12))
        yield Case("QEmbedLayerNormalization", [words, segments, *parts, mask, *scales, *zeros], [np.float32, np.int32],
                   reference=[y.astype(np.float32), ones(mask, batch)], fed=(0, 1, 7), rtol=2e-6, atol=2e-5)


OPERATORS = {
    "EmbedLayerNormalization": (embed, 200),
    "LayerNormalization": (layer, 200),
    "QEmbedLayerNormalization": (quantized_embed, 200),
    "SkipLayerNormalization": (skip, 200),
    "SimplifiedLayerNormalization": (simplified, 200),
    "SkipSimplifiedLayerNormalization": (skip_simplified, 200),
}
