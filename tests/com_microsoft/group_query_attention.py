# SPDX-License-Identifier: Apache-2.0
"""Cases of RotaryEmbedding and GroupQueryAttention."""

import ml_dtypes
import numpy as np

from attention import FLOATS, RELATIVE, heads_first, normal, softmax, wide
from cases import Case


def rotate(x, cos, sin, interleaved):
    """x: [..., size]; cos and sin: [..., pairs], those of each row."""
    pairs = cos.shape[-1]
    turned, rest = x[..., : 2 * pairs], x[..., 2 * pairs :]
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else (turned[..., :pairs], turned[..., pairs:])
    first, second = a * cos - b * sin, b * cos + a * sin
    joined = np.stack([first, second], -1).reshape(turned.shape) if interleaved else np.concatenate([first, second], -1)
    return np.concatenate([joined, rest], -1)


def tables(rng, dtype, rows, pairs):
    angles = rng.uniform(0, 6.3, (rows, pairs))
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


def rotary(rng):
    while True:
        dtype = FLOATS[rng.integers(len(FLOATS))]
        batch, rows, heads = (int(n) for n in rng.integers(1, 5, 3))
        size = int(rng.choice([8, 16, 32]))
        partial = rng.integers(3) == 0
        pairs = size // 4 if partial else size // 2
        cos, sin = tables(rng, dtype, 9, pairs)
        first = int(rng.integers(0, 9 - rows))
        positions = rng.integers(0, 9, (batch, rows)) if rng.integers(2) else np.array([first])
        where = positions if positions.ndim == 2 else np.broadcast_to(first + np.arange(rows), (batch, rows))
        attrs = {"interleaved": int(rng.integers(2))}
        if partial:
            attrs |= {"rotary_embedding_dim": 2 * pairs, "num_heads": heads}
        x = normal(rng, dtype, batch, heads, rows, size)
        y = rotate(wide(x), wide(cos)[where][:, None], wide(sin)[where][:, None], attrs["interleaved"]).astype(dtype)
        if partial or rng.integers(2):
            x, y = (t.transpose(0, 2, 1, 3).reshape(batch, rows, heads * size) for t in (x, y))
        yield Case("RotaryEmbedding", [x, positions, cos, sin], [dtype], attrs, [y], fed=(0, 1),
                   ort=dtype == np.float32, rtol=RELATIVE[dtype], atol=RELATIVE[dtype])


class Cache:
    """How keys or values are kept: as they are, as float16, or quantized."""

    def __init__(self, rng, dtype, heads, size, kind):
        self.dtype, self.kind, self.heads, self.size, self.scale = dtype, kind, heads, size, None
        self.store = {None: dtype, "half": np.float16, "int8": np.int8, "int4": np.uint8, "fp8": ml_dtypes.float8_e4m3fn}[kind]
        self.is_quantized = kind not in (None, "half")
        if self.is_quantized:
            self.per_channel = bool(rng.integers(2))
            least = {"int8": 0.02, "int4": 0.3, "fp8": 0.1}[kind]
            form = (heads, 1, size) if self.per_channel else (1,)
            self.scale = rng.uniform(least, 2 * least, form).astype(np.float32)

    def quantized(self):
        return "NONE" if not self.is_quantized else "PER_CHANNEL" if self.per_channel else "PER_TENSOR"

    def put(self, x):
        """[batch, heads, positions, size] as it is kept."""
        if not self.is_quantized:
            return x.astype(self.store)
        q = x.astype(np.float32) / self.scale
        if self.kind == "fp8":
            return np.clip(q, -448, 448).astype(self.store)
        if self.kind == "int8":
            return np.clip(np.rint(q), -128, 127).astype(np.int8)
        q = (np.clip(np.rint(q), -8, 7) + 8).astype(np.uint8)
        return q[..., ::2] | q[..., 1::2] << 4

    def get(self, kept):
        if not self.is_quantized:
            return wide(kept)
        if self.kind == "int4":
            kept = np.stack([kept & 15, kept >> 4], -1).reshape(*kept.shape[:-1], -1).astype(np.float64) - 8
        return kept.astype(np.float64) * self.scale


def root_mean_square(x, weight, epsilon):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * wide(weight)


def group_query(rng):
    while True:
        dtype = FLOATS[rng.integers(len(FLOATS))]
        kv, size = int(rng.integers(1, 4)), int(rng.choice([8, 16, 32]))
        heads, batch = kv * int(rng.integers(1, 4)), int(rng.integers(1, 4))
        fresh = rng.integers(2) == 0
        rows = int(rng.integers(1, 7)) if fresh else int(rng.choice([1, 1, 3]))
        most = 80 if rng.integers(4) == 0 else 8  # a long past is read in several parts
        before = np.zeros(batch, int) if fresh else rng.integers(1, most, batch)
        lengths = before + rows
        total = int(lengths.max())
        kind = [None, None, "half", "int8", "int4", "fp8"][rng.integers(6)]
        if kind == "half":
            dtype = np.float32
        caches = [Cache(rng, dtype, kv, size, kind) for _ in range(2)]
        if kind and rng.integers(4):  # ONNX Runtime wants keys and values alike
            caches[1] = caches[0]
        room = 0 if fresh and (kind is None or rng.integers(2)) else int(before.max()) + int(rng.integers(3))
        attrs = {"num_heads": heads, "kv_num_heads": kv, "k_quant_type": caches[0].quantized(),
                 "v_quant_type": caches[1].quantized()}
        if caches[0].is_quantized:
            attrs["kv_cache_bit_width"] = 4 if kind == "int4" else 8
        q, k, v = (normal(rng, dtype, batch, rows, n * size) for n in (heads, kv, kv))
        inputs = [np.concatenate([q, k, v], -1), None, None] if rng.integers(3) == 0 else [q, k, v]
        past = [None, None]
        if room or kind:
            past = [c.put(normal(rng, np.float32, batch, kv, room, size)) for c in caches]
        rest = past[0] is not None and rng.integers(3) == 0  # the past has something behind its sequences' ends
        for b in range(batch):
            for old in past:
                if old is not None and not rest:
                    old[b, :, before[b] :] = 0
        valid, counts = np.full(batch, rows), None
        if past[0] is not None and rng.integers(4) == 0:  # padded behind
            valid = np.array([rng.integers(0 if b else 1, rows + 1) for b in before])
            counts, lengths, total = valid.astype(np.int32), before + valid, int(before.max()) + rows
        q, k, v = heads_first(wide(q), heads), heads_first(wide(k), kv), heads_first(wide(v), kv)
        where = before[:, None] + np.arange(rows)
        norms = [None, None]
        if rng.integers(6) == 0:
            norms = [normal(rng, dtype, size) for _ in range(2)]
            both, own_q, own_k = np.float32(rng.uniform(1e-6, 1, 3))
            attrs |= {name: float(e) for name, e in (("qk_norm_epsilon", both), ("q_norm_epsilon", own_q),
                                                     ("k_norm_epsilon", own_k)) if rng.integers(2)}
            both = attrs.get("qk_norm_epsilon", np.float32(1e-6))
            q = root_mean_square(q, norms[0], attrs.get("q_norm_epsilon", both))
            k = root_mean_square(k, norms[1], attrs.get("k_norm_epsilon", both))
        cos = sin = positions = None
        if rng.integers(2) and size >= 16:
            cos, sin = tables(rng, dtype, most + 16, size // 2)
            attrs |= {"do_rotary": 1, "rotary_interleaved": int(rng.integers(2))}
            if rng.integers(3) == 0:
                positions = where = rng.integers(0, 18, (batch, rows))
                if rows == total and counts is None:  # of sequences that begin, only the first position counts
                    where = np.broadcast_to(positions[0, 0] + np.arange(rows), (batch, rows))
            q, k = (rotate(x, wide(cos)[where][:, None], wide(sin)[where][:, None], attrs["rotary_interleaved"]) for x in (q, k))
        capacity = max(total, room)
        presents = []
        for cache, old, new in zip(caches, past, (k, v)):
            kept = cache.put(new)
            present = np.zeros((batch, kv, capacity, kept.shape[3]), kept.dtype)
            for b in range(batch):
                if old is not None:
                    present[b, :, :room] = old[b]
                present[b, :, before[b] : lengths[b]] = kept[b, :, : valid[b]]
            presents.append(present)
        bias = sink = None
        if rng.integers(4) == 0:
            bias = normal(rng, dtype, rng.choice([1, batch]), rng.choice([1, heads]), rows, total)
        if rng.integers(4) == 0:
            sink = normal(rng, dtype, heads)
        elif rng.integers(4) == 0:
            attrs["smooth_softmax"] = 1
        if rng.integers(4) == 0:
            attrs["softcap"] = float(np.float32(rng.uniform(0.5, 3)))
        if rng.integers(4) == 0:
            attrs["scale"] = float(np.float32(rng.uniform(0.1, 0.5)))
        t = np.arange(total)
        own = before[:, None, None] + np.arange(rows)[:, None]
        seen = t <= own
        if rng.integers(4) == 0:
            attrs["local_window_size"] = int(rng.integers(1, 6))
            seen = seen & (t > own - attrs["local_window_size"])
        elif rng.integers(4) == 0 and counts is None:
            attrs["causal"] = 0
            seen = np.broadcast_to(t < lengths[:, None, None], seen.shape)
        keys, values = (c.get(p)[:, :, :total].repeat(heads // kv, 1) for c, p in zip(caches, presents))
        scores = q @ keys.swapaxes(-1, -2) * attrs.get("scale", 1 / np.sqrt(size))
        if "softcap" in attrs:
            scores = attrs["softcap"] * np.tanh(scores / attrs["softcap"])
        scores = scores if bias is None else scores + wide(bias)
        below = None
        if sink is not None or "smooth_softmax" in attrs:
            below = np.zeros((1, heads, 1, 1)) if sink is None else wide(sink)[None, :, None, None]
        weights = softmax(np.where(seen[:, None], scores, -np.inf), below)
        out = (weights @ values).transpose(0, 2, 1, 3).reshape(batch, rows, -1)
        out[np.arange(rows) >= valid[:, None]] = 0
        look = int(rng.integers(3)) if rng.integers(4) == 0 and counts is None else 0
        attrs["qk_output"] = look
        looked = [None, np.where(seen[:, None], scores, 0), weights][look]
        types = [dtype, caches[0].store, caches[1].store, dtype if look else None]
        reference = [out.astype(dtype), *presents, looked.astype(dtype) if look else None]
        refused = kind in ("half", "fp8") or norms[0] is not None or dtype != np.float32 or (rows > 1 and batch > 1 and not fresh)
        refused |= rest  # it has zeros there, but for a past and present of one buffer
        refused |= counts is not None  # padding's results are left unwritten
        refused |= look and lengths.min() < total  # its scores behind a sequence's end are left unwritten
        relative = RELATIVE[np.float16 if kind == "half" else dtype]
        inputs += [*past, (lengths - 1).astype(np.int32), np.array(total, np.int32), cos, sin, positions, bias, sink,
                   caches[0].scale, caches[1].scale, *norms, counts]
        while inputs[-1] is None:
            inputs.pop()
        yield Case("GroupQueryAttention", inputs, types, attrs, reference, ort=not refused, fed=[(0, 1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 5, 6)][rng.integers(2)],
                   quantum=1 if caches[0].is_quantized else 0, rtol=relative,
                   atol=(2000 if caches[0].is_quantized else 20) * relative)


def resident(positions, capacity, window):
    """How many of so many positions a sliding cache still has, as the schema says."""
    step = capacity - window + 1
    return positions if positions <= capacity else positions - step * -(-(positions - capacity) // step)


def sliding(rng):
    """Caches that hold the last positions of a window."""
    while True:
        dtype = FLOATS[rng.integers(len(FLOATS))]
        kv, size, batch = int(rng.integers(1, 3)), int(rng.choice([8, 16])), int(rng.integers(1, 4))
        heads, window = kv * int(rng.integers(1, 3)), int(rng.integers(1, 7))
        capacity = window + int(rng.integers(0, 5))
        fresh = rng.integers(3) == 0
        rows = int(rng.integers(1, 15)) if fresh else int(rng.choice([1, 1, 4, 9]))
        before = np.zeros(batch, int) if fresh else rng.integers(1, 20, batch)
        valid = np.array([rng.integers(1, rows + 1) for _ in before]) if fresh else np.full(batch, rows)
        total = rows if fresh else int(before.max()) + rows
        kind = [None, None, "int8", "int4"][rng.integers(4)]
        cache = Cache(rng, dtype, kv, size, kind)
        q, k, v = (normal(rng, dtype, batch, rows, n * size) for n in (heads, kv, kv))
        cos, sin = tables(rng, dtype, 40, size // 2) if size >= 16 else (None, None)
        attrs = {"num_heads": heads, "kv_num_heads": kv, "local_window_size": window, "sliding_window_cache": 1,
                 "do_rotary": int(cos is not None), "k_quant_type": cache.quantized(), "v_quant_type": cache.quantized()}
        if kind:
            attrs["kv_cache_bit_width"] = 4 if kind == "int4" else 8
        pasts, presents = ([np.zeros((batch, kv, capacity, size // 2 if kind == "int4" else size), cache.store)
                            for _ in "kv"] for _ in range(2))
        out = np.zeros((batch, heads, rows, size))
        for b in range(batch):
            where = before[b] + np.arange(valid[b])
            turn = [lambda x: x, lambda x: rotate(x, wide(cos)[where], wide(sin)[where], 0)][cos is not None]
            whole, had, has = [], resident(before[b], capacity, window), resident(before[b] + valid[b], capacity, window)
            for i, (x, change) in enumerate(((k, turn), (v, lambda x: x))):
                new = cache.put(change(heads_first(wide(x[b:b + 1, :valid[b]]), kv)))
                every = np.concatenate([cache.put(normal(rng, np.float32, 1, kv, before[b], size)), new], 2)[0]
                pasts[i][b, :, :had] = every[:, before[b] - had:before[b]]
                presents[i][b, :, :has] = every[:, every.shape[1] - has:]
                whole.append(cache.get(every[None])[0].repeat(heads // kv, 0))
            scores = turn(heads_first(wide(q[b:b + 1, :valid[b]]), heads))[0] @ whole[0].swapaxes(1, 2) / np.sqrt(size)
            t = np.arange(scores.shape[2])
            seen = (t <= where[:, None]) & (t > where[:, None] - window)
            out[b, :, :valid[b]] = softmax(np.where(seen, scores, -np.inf)) @ whole[1]
        out = out.transpose(0, 2, 1, 3).reshape(batch, rows, -1)
        inputs = [q, k, v, *pasts, (before + valid - 1).astype(np.int32), np.array(total, np.int32), cos, sin, None, None,
                  None, cache.scale, cache.scale]
        while inputs[-1] is None:
            inputs.pop()
        relative = RELATIVE[dtype]
        # ONNX Runtime leaves what is behind positions and sequences unwritten, and takes several rows of one sequence.
        ort = dtype == np.float32 and (valid == rows).all() and (before + valid >= capacity).all() and capacity == window
        yield Case("GroupQueryAttention", inputs, [dtype, cache.store, cache.store], attrs, [out.astype(dtype), *presents],
                   ort=ort and (fresh or rows == 1 or batch == 1), fed=(0, 1, 2, 3, 4, 5), quantum=1 if kind else 0,
                   rtol=relative, atol=(20 if kind is None else 2000) * relative)


OPERATORS = {
    "RotaryEmbedding": (rotary, 200),
    "GroupQueryAttention": (group_query, 300),
    "GroupQueryAttention, sliding": (sliding, 200),
}
