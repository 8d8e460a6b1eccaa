# SPDX-License-Identifier: Apache-2.0
"""Cases of the operators that decoders of recurrent and attending layers are made of."""

import ml_dtypes
import numpy as np

from cases import Case
from normalization import FLOATS, RELATIVE, normal, normalize, wide


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def causal_conv(rng):
    while True:
        dtype = FLOATS[rng.integers(len(FLOATS))]
        last = int(rng.integers(3) == 0)
        batch, channels, steps, taps, dilation = (int(v) for v in rng.integers(1, [4, 20, 12, 6, 3]))
        steps -= rng.integers(8) == 0
        x, w = normal(rng, dtype, batch, channels, steps), normal(rng, dtype, channels, 1, taps)
        bias = normal(rng, dtype, channels) if rng.integers(2) else None
        carried = (taps - 1) * dilation
        past = normal(rng, dtype, batch, channels, carried) if rng.integers(3) else None
        before = np.zeros((batch, channels, carried)) if past is None else wide(past)
        signal = np.concatenate([before, wide(x)], 2)
        y = np.zeros(x.shape) + (0 if bias is None else wide(bias)[:, None])
        for k in range(taps):
            y += signal[:, :, k * dilation:k * dilation + steps] * wide(w)[:, 0, k, None]
        activation = ["none", "silu", "swish"][rng.integers(3)]
        y = y if activation == "none" else y * sigmoid(y)
        arrays = [x, past, y, signal[:, :, steps:]]
        if last:
            arrays = [None if a is None else np.ascontiguousarray(np.swapaxes(a, 1, 2)) for a in arrays]
        yield Case("CausalConvWithState", [arrays[0], w, bias, arrays[1]], [dtype, dtype],
                   {"activation": activation, "dilation": dilation, "channels_last": last},
                   reference=[a.astype(dtype) for a in arrays[2:]], ort=dtype == np.float32, fed=(0, 3),
                   rtol=RELATIVE[dtype], atol=8 * RELATIVE[dtype])


def recurrence(rule, q, k, v, state, decay, beta, scale):
    """The schema's formulas, a step at a time: [batch, steps, heads, size]; as many heads of all."""
    out = []
    for t in range(q.shape[1]):
        key, value = k[:, t, :, :, None], v[:, t, :, None, :]
        if "gated" in rule:
            state = state * np.exp(decay[:, t, :, :, None])
        if "delta" in rule:
            value = beta[:, t, :, None, None] * (value - (state * key).sum(2, keepdims=True))
        state = state + key * value
        out.append(scale * (state * q[:, t, :, :, None]).sum(2))
    return np.stack(out, 1), state


def linear_attention(rng):
    while True:
        dtype = FLOATS[rng.integers(len(FLOATS))]
        batch, steps, size, value_size = (int(v) for v in rng.integers(1, [3, 5, 7, 9]))
        heads, keys, kv = [(2, 2, 2), (2, 2, 4), (4, 2, 2), (1, 1, 3), (2, 4, 4), (2, 1, 4), (4, 1, 2)][rng.integers(7)]
        rule = ["linear", "gated", "delta", "gated_delta"][rng.integers(4)]
        q, k = normal(rng, dtype, batch, steps, heads * size), normal(rng, dtype, batch, steps, keys * size)
        k = (wide(k).reshape(-1, size) / np.linalg.norm(wide(k).reshape(-1, size), axis=1)[:, None]).reshape(k.shape)
        k, v = k.astype(dtype), normal(rng, dtype, batch, steps, kv * value_size)
        past = normal(rng, dtype, batch, kv, size, value_size) if rng.integers(3) else None
        decays, betas = [1, size][rng.integers(2)], [1, kv][rng.integers(2)]
        decay = (-rng.uniform(0, 2, (batch, steps, kv * decays))).astype(dtype) if "gated" in rule else None
        beta = rng.uniform(0, 1, (batch, steps, betas)).astype(dtype) if "delta" in rule else None
        scale = float(np.float32([0, 1, 0.3][rng.integers(3)]))
        out_heads = max(heads, kv)

        def spread(a, count, n):
            a = np.zeros((batch, steps, kv, n)) if a is None else wide(a).reshape(batch, steps, count, n)
            return np.repeat(a, out_heads // count, 2)

        start = np.zeros((batch, kv, size, value_size)) if past is None else wide(past)
        b = np.zeros((batch, steps, 1)) if beta is None else wide(beta)
        y, state = recurrence(rule, spread(q, heads, size), spread(k, keys, size), spread(v, kv, value_size),
                              np.repeat(start, out_heads // kv, 1),
                              spread(decay, kv, decays if decay is not None else 1),
                              np.repeat(b, out_heads // b.shape[2], 2), scale or 1 / np.sqrt(size))
        yield Case("LinearAttention", [q, k, v, past, decay, beta], [dtype, dtype],
                   {"q_num_heads": heads, "kv_num_heads": kv, "update_rule": rule, "scale": scale},
                   reference=[y.reshape(batch, steps, -1).astype(dtype), state[:, ::out_heads // kv].astype(dtype)],
                   ort=dtype == np.float32, fed=(0, 1, 2, 3), rtol=4 * RELATIVE[dtype], atol=30 * RELATIVE[dtype])


def gated_add(rng):
    while True:
        dtype = FLOATS[rng.integers(len(FLOATS))]
        shape = rng.integers(1, 8, rng.integers(1, 5))
        if rng.integers(4) == 0:
            shape[-1] = 300 * rng.integers(1, 3)
        x, y, gate = normal(rng, dtype, *shape), normal(rng, dtype, *shape), normal(rng, dtype, *shape[:-1], 1)
        want = x.astype(np.float32) + (y.astype(np.float32) * gate.astype(np.float32)).astype(dtype).astype(np.float32)
        yield Case("GatedAdd", [x, y, gate], [dtype], reference=[want.astype(dtype)], ort=dtype != ml_dtypes.bfloat16,
                   fed=(0, 1, 2), atol=1e-6 if dtype == np.float32 else 0)


def gate(rng):
    while True:
        dtype = FLOATS[rng.integers(len(FLOATS))]
        shape = rng.integers(1, 20, 3)
        a, b = normal(rng, dtype, *shape), normal(rng, dtype, *shape) if rng.integers(3) else None
        bias, scale = normal(rng, np.float32, shape[-1]), normal(rng, np.float32, shape[-1])
        decay = wide(scale) * np.log1p(np.exp(wide(a) + wide(bias)))
        outputs = [dtype] if b is None else [dtype, dtype]
        yield Case("LinearAttentionGate", [a, bias, scale, b], outputs,
                   reference=[decay.astype(dtype), b if b is None else sigmoid(wide(b)).astype(dtype)], fed=(0, 3),
                   rtol=RELATIVE[dtype], atol=RELATIVE[dtype])


def gated_norm(rng):
    while True:
        dtype = FLOATS[rng.integers(len(FLOATS))]
        n, (batch, steps, heads) = int(rng.integers(1, 40)), (int(v) for v in rng.integers(1, 5, 3))
        x, z = (normal(rng, dtype, batch, steps, heads * n) for _ in "xz")
        scale, epsilon = normal(rng, dtype, n), float(np.float32([1e-6, 1e-3][rng.integers(2)]))
        activation = ["silu", "swish", "sigmoid"][rng.integers(3)]
        y, _, _ = normalize(wide(x).reshape(batch, steps, heads, n), wide(scale), None, epsilon, False)
        y = y.reshape(x.shape) * sigmoid(wide(z)) * (1 if activation == "sigmoid" else wide(z))
        yield Case("GatedRMSNorm", [x, scale, z], [dtype], {"activation": activation, "epsilon": epsilon},
                   reference=[y.astype(dtype)], fed=(0, 2), rtol=4 * RELATIVE[dtype], atol=8 * RELATIVE[dtype])


OPERATORS = {
    "CausalConvWithState": (causal_conv, 300),
    "GatedAdd": (gated_add, 100),
    "GatedRMSNorm": (gated_norm, 200),
    "LinearAttention": (linear_attention, 300),
    "LinearAttentionGate": (gate, 100),
}
