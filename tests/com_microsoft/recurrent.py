# SPDX-License-Identifier: Apache-2.0
"""Cases of DynamicQuantizeLSTM."""

import numpy as np

from cases import Case


def quantize(x):
    """Codes less their zero point, and the scale."""
    low, high = min(x.min(initial=0), np.float32(0)), max(x.max(initial=0), np.float32(0))
    scale = np.float32(high - low) / np.float32(255) if high != low else np.float32(1)
    zero = np.rint(np.clip(-low / scale, 0, 255))
    return np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.int64) - zero.astype(np.int64), scale


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {
    "Sigmoid": sigmoid,
    "Tanh": np.tanh,
    "Relu": lambda x: np.maximum(x, 0),
    "HardSigmoid": lambda x: np.clip(np.float64(np.float32(0.2)) * x + 0.5, 0, 1),
    "Softsign": lambda x: x / (1 + np.abs(x)),
}

GATES = ["Sigmoid", "HardSigmoid"]  # without a bound the state grows, and a last bit with it


def forward(x, w, r, bias, lengths, h, c, peep, scales, functions, clip, coupled, backward):
    """One direction: w and r are codes less their zero points."""
    steps, batch, _ = x.shape
    n = h.shape[1]
    longest = max(lengths)
    codes, sx = quantize(x[:longest])
    sums = (codes @ w).astype(np.float32) * (sx * scales[0])
    y = np.zeros((steps, batch, n), np.float32)
    c, last_h = c.astype(np.float64), h.copy()
    f, g, last = (FUNCTIONS[name] for name in functions)
    for step in range(longest):
        codes, sh = quantize(h)
        recurrent = (codes @ r).astype(np.float32) * (sh * scales[1])
        h = np.zeros_like(h)  # sequences that are over count as zeros
        for b in range(batch):
            if step >= lengths[b]:
                continue
            t = lengths[b] - 1 - step if backward else step
            gates = sums[t, b].astype(np.float64) + recurrent[b] + bias
            i, o, fg, cell = np.split(gates, 4)
            i = f(np.clip(i + peep[0] * c[b], -clip, clip))
            fg = 1 - i if coupled else f(np.clip(fg + peep[2] * c[b], -clip, clip))
            c[b] = fg * c[b] + i * g(np.clip(cell, -clip, clip))
            h[b] = last_h[b] = f(np.clip(o + peep[1] * c[b], -clip, clip)) * last(c[b])
            y[t, b] = h[b]
    return y, last_h, c.astype(np.float32)


def weights(rng, kind, shape, per_column):
    signed = kind == np.int8
    codes = rng.integers(-128 if signed else 0, 128 if signed else 256, shape).astype(kind)
    form = (shape[0], shape[2]) if per_column else (shape[0],)
    scale = rng.uniform(0.001, 0.006, form).astype(np.float32)
    zero = np.zeros(form, kind) if per_column and signed else np.full(form, rng.integers(0, 20), kind)
    broad = (shape[0], 1, form[1] if per_column else 1)
    return codes, scale, zero, codes.astype(np.int64) - zero.reshape(broad).astype(np.int64), scale.reshape(broad)


def lstm(rng):
    while True:
        direction = ["forward", "reverse", "bidirectional"][rng.integers(3)]
        d = 2 if direction == "bidirectional" else 1
        steps, batch, inputs, n = (int(rng.integers(1, top)) for top in (6, 4, 20, 24))
        kind, per_column = [np.int8, np.uint8][rng.integers(2)], bool(rng.integers(2))
        x = rng.normal(size=(steps, batch, inputs)).astype(np.float32)
        w, w_scale, w_zero, w_plain, w_broad = weights(rng, kind, (d, inputs, 4 * n), per_column)
        r, r_scale, r_zero, r_plain, r_broad = weights(rng, kind, (d, n, 4 * n), per_column)
        bias = rng.normal(size=(d, 8 * n)).astype(np.float32) if rng.integers(3) else None
        lengths = rng.integers(1, steps + 1, batch).astype(np.int32) if rng.integers(3) == 0 else None
        h = rng.uniform(-1, 1, (d, batch, n)).astype(np.float32) if rng.integers(2) else None
        c = rng.normal(size=(d, batch, n)).astype(np.float32) if rng.integers(2) else None
        peep = rng.normal(size=(d, 3 * n)).astype(np.float32) if rng.integers(3) == 0 else None
        attrs = {"direction": direction, "hidden_size": n}
        names = ["Sigmoid", "Tanh", "Tanh"]
        if rng.integers(4) == 0:
            names = [str(name) for name in (rng.choice(GATES), *rng.choice(list(FUNCTIONS), 2))]
            attrs["activations"] = names * d
        if rng.integers(4) == 0:
            attrs["clip"] = float(np.float32(rng.uniform(0.5, 2)))
        if rng.integers(4) == 0:
            attrs["input_forget"] = 1
        got = []
        for i in range(d):
            b = 0 if bias is None else np.add(*np.split(bias[i].astype(np.float64), 2))
            nothing = np.zeros((batch, n), np.float32)
            got.append(forward(
                x, w_plain[i], r_plain[i], b, [steps] * batch if lengths is None else lengths,
                nothing if h is None else h[i], nothing if c is None else c[i],
                [0] * 3 if peep is None else np.split(peep[i].astype(np.float64), 3),
                (w_broad[i], r_broad[i]), names, attrs.get("clip", np.inf), "input_forget" in attrs,
                direction == "reverse" or i == 1))
        reference = [np.stack([g[0] for g in got], 1), np.stack([g[1] for g in got]), np.stack([g[2] for g in got])]
        yield Case("DynamicQuantizeLSTM", [x, w, r, bias, lengths, h, c, peep, w_scale, w_zero, r_scale, r_zero],
                   [np.float32] * 3, attrs, reference, fed=[(0,), (0, 1, 2, 3, 5, 6)][rng.integers(2)], rtol=2e-6,
                   atol=2e-6)


OPERATORS = {"DynamicQuantizeLSTM": (lstm, 200)}
