# SPDX-License-Identifier: Apache-2.0
"""Cases of MultiHeadAttention."""

import numpy as np

from attention import FLOATS, RELATIVE, attend, heads_first, mask_case, normal, self_attrs, sizes, slack, wide
from cases import Case


def padding(rng, batch, rows, keys):
    """The forms of a mask that this operator has."""
    while True:
        mask, away = mask_case(rng, batch, rows, keys)
        if mask is None or mask.shape not in [(2 * batch,), (batch, 1)]:
            return mask, away


def operands(rng, dtype, form, batch, rows, heads, size, attrs):
    """The first three inputs, and queries, keys and values as [batch, heads, positions, size]."""
    width, added = heads * size, rows if form == "qkv" else int(rng.integers(1, 7))
    if form == "qkv":
        x = normal(rng, dtype, batch, rows, heads, 3, size)
        return [x, None, None], [wide(x)[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3)]
    q = normal(rng, dtype, batch, rows, width)
    if form == "kv":
        x = normal(rng, dtype, batch, added, heads, 2, size)
        return [q, x, None], [heads_first(wide(q), heads)] + [wide(x)[:, :, :, i].transpose(0, 2, 1, 3) for i in range(2)]
    if form == "heads":
        k, v = (normal(rng, dtype, batch, heads, added, size) for _ in range(2))
        return [q, k, v], [heads_first(wide(q), heads), wide(k), wide(v)]
    v_size = size if rng.integers(3) else int(rng.integers(1, 9))
    k, v = normal(rng, dtype, batch, added, width), normal(rng, dtype, batch, added, heads * v_size)
    return [q, k, v], [heads_first(wide(x), heads) for x in (q, k, v)]


def multi_head(rng):
    while True:
        dtype = FLOATS[rng.integers(len(FLOATS))]
        batch, rows, heads, size = sizes(rng)
        attrs, scale, filter_value = self_attrs(rng, heads, size)
        form = ["apart", "apart", "apart", "heads", "kv", "qkv"][rng.integers(6)]
        inputs, (q, k, v) = operands(rng, dtype, form, batch, rows, heads, size, attrs)
        bias = normal(rng, dtype, heads * (2 * size + v.shape[3])) if rng.integers(2) else None
        if bias is not None:
            parts = np.split(wide(bias), [heads * size, 2 * heads * size])
            parts = parts[:1] if form == "heads" else parts  # keys of another node have theirs
            q, k, v, *_ = (*(x + p.reshape(heads, 1, -1) for x, p in zip((q, k, v), parts)), *(k, v))
        before = int(rng.integers(1, 5)) if rng.integers(3) == 0 else 0
        shared = before and rng.integers(3) == 0
        past = [None, None]
        added = k.shape[2]
        if before:
            length = before + (added + 2 if shared else 0)
            past = [normal(rng, dtype, batch, heads, length, x.shape[3]) for x in (k, v)]
            k, v = (np.concatenate([wide(p)[:, :, :before], x], 2) for p, x in zip(past, (k, v)))
        keys = before + added
        mask, away = padding(rng, batch, rows, keys)
        added_bias = None
        if rng.integers(3) == 0:
            added_bias = normal(rng, dtype, rng.choice([1, batch]), rng.choice([1, heads]), rows, keys)
        if "unidirectional" in attrs and not before and added != rows:
            del attrs["unidirectional"]  # a query's own position is not among the keys
        causal = "unidirectional" in attrs and added == rows
        if not causal:
            attrs.pop("unidirectional", None)
        out, scores = attend(q, k, v, scale, away, filter_value, causal, added_bias)
        presents = list(past) if shared else [k, v]
        if shared:
            for p, (whole, x) in enumerate(zip(past, (k, v))):
                presents[p] = whole.copy()
                presents[p][:, :, :keys] = x.astype(dtype)
        kept = bool(before or rng.integers(3) == 0)
        # lowest floats do not survive the test's own rounding to a narrower type
        looked = rng.integers(4) == 0 and kept and filter_value > -1e9 and not causal
        types = [dtype] + [dtype if kept else None] * 2 + [dtype if looked else None]
        reference = [x.astype(dtype) if t else None for x, t in zip([out, *presents, scores], types)]
        length = np.array([before], np.int32) if shared else None
        yield Case("MultiHeadAttention", [*inputs, bias, mask, added_bias, *past, length], types, attrs, reference,
                   ort=dtype == np.float32 and not shared, fed=range(9), rtol=RELATIVE[dtype],
                   atol=slack(dtype, away, attrs) if away is None or rows == keys or not causal else 3e-2)


OPERATORS = {"MultiHeadAttention": (multi_head, 300)}
