# SPDX-License-Identifier: Apache-2.0
"""Cases of Cast and CastLike: every pair of types, with data whose result is defined."""

import numpy as np

import formats
import operators
import types_of
from cases import Spec, any_shape, case, integers, pick
from formats import FLOAT8, TINY, TYPES, Tensor, bounds

INTEGER_TEXTS = ["0", "1", "-1", "7", "100", "-100"]
FLOAT_TEXTS = ["3.14", "1000", "1e-5", "1E8", "-2.5", "0.1", "+INF", "INF", "-INF", "inf", "NaN", "nan", "65504", "-0.0",
               "1.00048828125", "6.5E1", "16777217", "0.333333333333333333333", "240", "1e-40"]
SHORT = [0.5, 1.5, 2.5, -3.5]  # the fewest digits that mean these are all their digits, in every type
ROUND_MODES = ["up", "down", "nearest"]


def specs_of(op, versions):
    for version, names in versions.items():
        for source in names:
            for target in names:
                if "bool" in (source, target) and "string" in (source, target):
                    continue  # the text does not say how a bool is written
                yield from _specs_of_types(op, version, source, target)


def _specs_of_types(op, version, source, target):
    saturates = [1, 0] if target in FLOAT8 or target == "float8e8m0" else [1]
    for saturate in saturates:
        for mode in ROUND_MODES if target == "float8e8m0" else ["up"]:
            for again in range(2):
                name = f"{op}-{version} {source}->{target} saturate={saturate} round_mode={mode} #{again}"
                how = (op, version, source, target, saturate, mode)
                yield Spec(op, version, name, lambda rng, how=how: make(rng, *how))


def cast_specs():
    return specs_of("Cast", types_of.CAST)


def cast_like_specs():
    return specs_of("CastLike", types_of.CAST_LIKE)


def make(rng, op, version, source, target, saturate, mode):
    shape = any_shape(rng)
    x = _input(rng, version, source, target, shape, saturate, mode)
    y = operators.cast(x, target, bool(saturate), mode, "nan" if version < 24 else "largest")
    attributes = {"to": TYPES[target].code} if op == "Cast" else {}
    if not saturate or (version >= 19 and rng.random() < 0.1):
        attributes["saturate"] = saturate
    if mode != "up" or (version >= 24 and rng.random() < 0.1):
        attributes["round_mode"] = mode
    inputs = [("x", x, rng.random() < 0.15)]
    if op == "CastLike":
        like = pick(rng, [(), (2,), (0,), (1, 3)])
        codes = np.full(like, "a", dtype=object) if target == "string" else np.zeros(like)
        inputs.append(("like", Tensor(target, codes), rng.random() < 0.5))
    return case(rng, op, version, inputs, attributes, [("y", y)])


def _input(rng, version, source, target, shape, saturate, mode):
    if source == "string":
        return _texts(rng, target, shape)
    kind = TYPES[source].kind
    if target == "string":
        if kind == "float":  # short decimals, which have one plain form in every type
            return _exact_only(source, rng.choice(SHORT, shape))
        return integers(rng, source, shape)
    if kind == "bool":
        low = 1 if target == "float8e8m0" and not _zero_is_defined(saturate, mode) else 0
        return Tensor("bool", rng.integers(low, 2, shape))
    if kind != "float":
        x = integers(rng, source, shape, pick(rng, ["full", "small"]))
        if target == "float8e8m0":  # negative values and 0 are not defined in every mode
            low = 0 if _zero_is_defined(saturate, mode) else 1
            return Tensor(source, np.maximum(x.codes, low))
        return x
    if target == "float8e8m0":
        return _powers(rng, source, shape, saturate, mode)
    if TYPES[target].kind in ("int", "uint"):
        return _in_range(rng, source, target, shape)
    return _floats(rng, source, target, shape)


def _zero_is_defined(saturate, mode):
    return (saturate, mode) in ((1, "up"), (0, "nearest"))


def _exact_only(type_name, values):
    """The values that the type holds; its 1 instead of the others."""
    x = formats.floats(type_name, values) if type_name != "float8e8m0" else Tensor(
        type_name, formats.encode_e8m0(np.abs(values), True, "nearest"))
    held = np.isin(formats.decode(x), SHORT)
    one = formats.encode(0.5, type_name) if type_name != "float8e8m0" else 126
    return Tensor(type_name, np.where(held, x.codes, one))


def _texts(rng, target, shape):
    texts = INTEGER_TEXTS if TYPES[target].kind in ("int", "uint") else FLOAT_TEXTS
    if TYPES[target].kind in ("int", "uint"):
        low, high = bounds(target)
        texts = [t for t in texts if low <= int(t) <= high] + [str(low), str(high)]
    elif target == "float8e8m0":
        texts = ["1", "2.0", "0.5", "1e0", "4", "0.25"]
    elif target == "string":
        texts = ["", "a", "żółć", "1.50", "a b"]
    elif target in TINY:
        texts = [t for t in texts if "nan" not in t.lower()]
    return Tensor("string", rng.choice(np.array(texts, dtype=object), shape))


def _powers(rng, source, shape, saturate, mode):
    """Positive values around powers of two that float8e8m0 has; 0, infinity and NaN where the table has them."""
    low = max(-127, int(np.log2(formats.smallest(source))))
    high = min(127, int(np.floor(np.log2(formats.largest(source)))))
    e = rng.integers(low, high + 1, shape)
    v = np.exp2(e.astype(float)) * rng.choice([1, 1, 1.25, 1.5, 1.75, 1.0078125, 1.9921875], shape)
    v = np.clip(v, 2.0**-127, min(2.0**127, formats.largest(source)))
    if source == "float8e8m0":
        return Tensor(source, formats.encode_e8m0(v, True, "nearest"))
    if _zero_is_defined(saturate, mode):
        more = [0.0] + ([] if source in TINY else [np.nan])
        if TYPES[source].special == "ieee":
            more.append(np.inf)
        v = np.where(rng.random(shape) < 0.15, rng.choice(more, shape), v)
    x = formats.floats(source, v, saturate=False)
    r = formats.decode(x)  # rounding may have left the range
    bad = (r < 2.0**-127) & (r > 0) | (r > 2.0**127) & np.isfinite(r)
    return Tensor(source, np.where(bad, formats.encode(1.0, source), x.codes))


def _in_range(rng, source, target, shape):
    """Floats whose whole part the integer type holds: beyond it the result is undefined."""
    low, high = bounds(target)
    if source == "float8e8m0":
        codes = rng.integers(110, 127 + min(TYPES[target].bits, 64) - (TYPES[target].kind == "int"), shape)
        codes = np.where(np.ldexp(1.0, codes - 127) > high, 126, codes)
        return Tensor(source, codes)
    wide = rng.random() < 0.5
    v = rng.uniform(max(low, -1e19) if wide else max(low, -9), min(high, 2e19) if wide else min(high, 9), shape)
    v = np.where(rng.random(shape) < 0.2, np.trunc(v) + 0.5, v)
    v = np.where(rng.random(shape) < 0.1, -0.0, v)
    x = formats.floats(source, v, saturate=False)
    r = np.nan_to_num(formats.decode(x), nan=np.inf)
    inside = (np.trunc(r) >= float(low)) & (np.trunc(r) < float(high + 1))
    return Tensor(source, np.where(inside, x.codes, formats.encode(1.0, source)))


def _floats(rng, source, target, shape):
    """Any bit pattern, values about the target's range and grid, ties of the target."""
    row = TYPES[source]
    codes = rng.integers(0, (1 << row.bits) - 1, shape, dtype=np.uint64, endpoint=True).astype(row.dtype)
    if target in TYPES and TYPES[target].kind == "float" and source != "float8e8m0" and rng.random() < 0.8:
        v = _grid(rng, target, shape)
        codes = np.where(rng.random(shape) < 0.8, formats.encode(v, source, saturate=False), codes)
    if row.special == "ieee" and rng.random() < 0.5:  # infinities, zeros of both signs
        special = formats.encode(rng.choice([np.inf, -np.inf, 0.0, -0.0], shape), source, saturate=False)
        codes = np.where(rng.random(shape) < 0.2, special, codes)
    x = Tensor(source, codes)
    if target in TINY:
        codes = np.where(np.isnan(formats.decode(x)), 0, x.codes)
        x = Tensor(source, codes)
    return x


def _grid(rng, target, shape):
    """Values of the target type, midpoints of its neighbours, and what lies just beside them."""
    row = TYPES[target]
    magnitude = rng.integers(0, 1 << (row.bits - (target != "float8e8m0")), shape, dtype=np.uint64)
    if row.bits > 16:  # not all of them are interesting: the middle of the range, short fractions
        v = np.ldexp(rng.integers(1 << 23, 1 << 25, shape) / 2.0 + rng.choice([0, 2.0**-20], shape), rng.integers(-40, 40, shape))
    else:
        values = formats.table(row)
        values = np.unique(np.abs(values[np.isfinite(values)]))
        i = (magnitude % np.uint64(values.size - 1)).astype(np.int64)
        part = rng.choice([0, 0.5, 0.5, 0.4999999, 0.5000001, 0.25], shape)
        v = values[i] + (values[i + 1] - values[i]) * part
        v = np.where(rng.random(shape) < 0.15, values[-1] * rng.uniform(0.95, 1.2, shape), v)
    return np.where(rng.random(shape) < 0.5, -v, v)
