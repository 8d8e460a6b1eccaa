# SPDX-License-Identifier: Apache-2.0
"""Cases of attention operators: Attention and QAttention."""

import ml_dtypes
import numpy as np

from cases import Case

FLOATS = [np.float32, np.float32, np.float32, np.float16, ml_dtypes.bfloat16]
RELATIVE = {np.float32: 4e-6, np.float16: 2e-3, ml_dtypes.bfloat16: 1.6e-2}
LOWEST = np.finfo(np.float32).min


def normal(rng, dtype, *shape):
    return rng.normal(size=shape).astype(np.float32).astype(dtype)


def wide(array):
    return None if array is None else array.astype(np.float64)


def softmax(x, sink=None):
    most = x.max(-1, keepdims=True)
    if sink is not None:
        most = np.maximum(most, sink)
    e = np.exp(x - most)
    return e / (e.sum(-1, keepdims=True) + (0 if sink is None else np.exp(sink - most)))


def mask_case(rng, batch, rows, keys, square=False):
    """A mask input and what it hides, [batch, rows, keys]; or None and None."""
    kind = rng.integers(8)
    t = np.arange(keys)
    if kind == 0:
        lengths = rng.integers(1, keys + 1, batch).astype(np.int32)
        return lengths, np.broadcast_to((t >= lengths[:, None])[:, None], (batch, rows, keys))
    if kind == 1:
        begins = rng.integers(0, keys, batch).astype(np.int32)
        ends = (begins + rng.integers(1, keys + 1, batch)).clip(0, keys).astype(np.int32)
        away = (t >= ends[:, None]) | (t < begins[:, None])
        return np.concatenate([ends, begins]), np.broadcast_to(away[:, None], (batch, rows, keys))
    if kind == 2:
        mask = rng.integers(0, 2, (batch, keys)).astype(np.int32)
        return mask, np.broadcast_to((mask == 0)[:, None], (batch, rows, keys))
    if kind == 3:
        mask = rng.integers(0, 2, (batch, rows, keys)).astype(np.int32)
        return mask, mask == 0
    if kind == 4 and square:
        mask = rng.integers(0, 2, (batch, 1, keys + 2, keys + 2)).astype(np.int32)
        return mask, mask[:, 0, keys - rows : keys, :keys] == 0
    if kind == 5:
        return np.ones((batch, 1), np.int32), np.zeros((batch, rows, keys), bool)
    return None, None


def heads_first(x, heads):
    batch, rows, width = x.shape
    return x.reshape(batch, rows, heads, width // heads).transpose(0, 2, 1, 3)


def causal_mask(rows, keys):
    """Adds the lowest float to keys after a query's own, the queries being the last positions."""
    return np.where(np.arange(keys) > np.arange(rows)[:, None] + keys - rows, float(LOWEST), 0.0)


def attend(q, k, v, scale, away, filter_value, causal, bias=None):
    """Result as [batch, rows, heads * size], and the scores before softmax."""
    rows, keys = q.shape[2], k.shape[2]
    add = np.zeros((1, 1, rows, keys))
    if away is not None:
        add = add + np.where(away, float(filter_value), 0.0)[:, None]
    if causal:
        late = causal_mask(rows, keys)
        add = np.where(late != 0, late, add)
    if bias is not None:
        add = add + wide(bias)
    scores = q @ k.swapaxes(-1, -2) * scale + add
    out = softmax(scores) @ v
    return out.transpose(0, 2, 1, 3).reshape(q.shape[0], rows, -1), scores


def slack(dtype, away, attrs):
    """Absolute tolerance. Where nothing is to be seen, -10000 + score has lost the score's last bits in float."""
    blind = away is not None and attrs.get("mask_filter_value", -10000) == -10000 and np.any(
        (away | (causal_mask(*away.shape[1:]) != 0 if "unidirectional" in attrs else False)).all(-1))
    return 10 * RELATIVE[dtype] + (2e-3 if blind else 0)


def sizes(rng):
    """batch, rows, heads, head size."""
    return (int(n) for n in (rng.integers(1, 4), rng.integers(1, 7), rng.integers(1, 4), rng.choice([4, 8, 12, 17])))


def self_attrs(rng, heads, size):
    attrs = {"num_heads": heads}
    if rng.integers(2):
        attrs["unidirectional"] = 1
    if rng.integers(3) == 0:
        attrs["scale"] = float(np.float32(rng.uniform(0.1, 0.6)))
    if rng.integers(3) == 0:
        attrs["mask_filter_value"] = float([np.float32(-3.4028234663852886e38), np.float32(-50.0)][rng.integers(2)])
    return attrs, attrs.get("scale", 1 / np.sqrt(size)), attrs.get("mask_filter_value", -10000.0)


def rest(projected, past, present, heads, widths, attrs, scale, filter_value, away, bias, dtype):
    """What follows the projection: result and present."""
    q, k, v = (heads_first(p, heads) for p in np.split(projected, np.cumsum(widths)[:2], -1))
    if past is not None:
        k, v = np.concatenate([wide(past[0]), k], 2), np.concatenate([wide(past[1]), v], 2)
    out, _ = attend(q, k, v, scale, away, filter_value, "unidirectional" in attrs, bias)
    return [out.astype(dtype), np.stack([k, v]).astype(dtype) if present else None]


def attention(rng):
    while True:
        dtype = FLOATS[rng.integers(len(FLOATS))]
        batch, rows, heads, size = sizes(rng)
        inputs = int(rng.integers(1, 20))
        attrs, scale, filter_value = self_attrs(rng, heads, size)
        widths = [heads * size] * 3
        if rng.integers(4) == 0:
            widths[2] = heads * int(rng.integers(1, 9))
            attrs["qkv_hidden_sizes"] = widths
        alike = widths[0] == widths[2]
        x = normal(rng, dtype, batch, rows, inputs)
        w, b = normal(rng, dtype, inputs, sum(widths)), normal(rng, dtype, sum(widths))
        before = int(rng.integers(1, 5)) if alike and rng.integers(3) == 0 else 0
        past = normal(rng, dtype, 2, batch, heads, before, size) if before else None
        present = bool(before or (alike and rng.integers(3) == 0))
        keys = before + rows
        mask, away = mask_case(rng, batch, rows, keys, square="unidirectional" not in attrs)
        bias = None
        if rng.integers(3) == 0:
            bias = normal(rng, dtype, rng.choice([1, batch]), rng.choice([1, heads]), rows, keys)
        without = rng.integers(6) == 0
        projected = wide(x) @ wide(w) + (0 if without else wide(b))
        reference = rest(projected, past, present, heads, widths, attrs, scale, filter_value, away, bias, dtype)
        yield Case("Attention", [x, w, None if without else b, mask, past, bias], [dtype, dtype if present else None],
                   attrs, reference, ort=dtype == np.float32 and not without, fed=(0, 3, 4, 5),
                   rtol=RELATIVE[dtype], atol=slack(dtype, away, attrs))


def shared_attention(rng):
    """Past and present of the longest length, and how much of it there is as an input."""
    while True:
        batch, rows, heads, size = sizes(rng)
        attrs, scale, filter_value = self_attrs(rng, heads, size)
        attrs["past_present_share_buffer"] = 1
        width, most = heads * size, rows + int(rng.integers(1, 6))
        before = int(rng.integers(0, most - rows + 1))
        x, w, b = normal(rng, np.float32, batch, rows, 6), normal(rng, np.float32, 6, 3 * width), None
        b = normal(rng, np.float32, 3 * width)
        past = normal(rng, np.float32, 2, batch, heads, most, size)
        mask, away = mask_case(rng, batch, rows, before + rows)
        projected = wide(x) @ wide(w) + wide(b)
        out, new = rest(projected, past[:, :, :, :before], True, heads, [width] * 3, attrs, scale, filter_value, away,
                        None, np.float32)
        present = past.copy()
        present[:, :, :, : before + rows] = new
        yield Case("Attention", [x, w, b, mask, past, None, np.array([before], np.int32)], [np.float32] * 2, attrs,
                   [out, present], ort=False, fed=(0, 3, 4, 6), rtol=4e-6, atol=slack(np.float32, away, attrs))


def qattention(rng):
    while True:
        dtype = [np.float32, np.float32, np.float16][rng.integers(3)]
        batch, rows, heads, size = sizes(rng)
        inputs, width = int(rng.integers(1, 20)), heads * size
        attrs, scale, filter_value = self_attrs(rng, heads, size)
        kinds = [[np.uint8, np.uint8, np.uint8, np.int8][rng.integers(4)], [np.uint8, np.int8][rng.integers(2)]]
        form = (3 * width,) if rng.integers(2) else [(), (1,)][rng.integers(2)]
        ranges = [(np.iinfo(k).min, np.iinfo(k).max + 1) for k in kinds]
        x = rng.integers(*ranges[0], (batch, rows, inputs)).astype(kinds[0])
        w = rng.integers(*ranges[1], (inputs, 3 * width)).astype(kinds[1])
        x_scale = dtype(rng.uniform(0.005, 0.02))
        w_scale = rng.uniform(0.001, 0.01, form).astype(dtype)
        x_zero = rng.integers(*ranges[0], dtype=kinds[0]) if rng.integers(4) else None
        w_zero = rng.integers(*ranges[1], form).astype(kinds[1]) if rng.integers(4) else None
        b = normal(rng, dtype, 3 * width)
        before = int(rng.integers(1, 5)) if rng.integers(3) == 0 else 0
        past = normal(rng, dtype, 2, batch, heads, before, size) if before else None
        present = bool(before or rng.integers(3) == 0)
        mask, away = mask_case(rng, batch, rows, before + rows)
        sums = (x.astype(np.int64) - int(x_zero or 0)) @ (w.astype(np.int64) - (0 if w_zero is None else w_zero.astype(np.int64)))
        projected = sums * (wide(x_scale) * wide(w_scale)) + wide(b)
        reference = rest(projected, past, present, heads, [width] * 3, attrs, scale, filter_value, away, None, dtype)
        yield Case("QAttention", [x, w, b, x_scale, w_scale, mask, x_zero, w_zero, past],
                   [dtype, dtype if present else None], attrs, reference,
                   ort=dtype == np.float32 and kinds[0] == np.uint8, fed=[(0, 5, 8), (0, 1, 2, 3, 4, 5, 6, 7, 8)][rng.integers(2)],
                   rtol=RELATIVE[dtype], atol=slack(dtype, away, attrs))


OPERATORS = {
    "Attention": (attention, 300),
    "Attention, one buffer": (shared_attention, 60),
    "QAttention": (qattention, 300),
}
