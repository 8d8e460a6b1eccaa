# SPDX-License-Identifier: Apache-2.0
"""Cases of QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear."""

import itertools

import numpy as np

import formats
import operators
import types_of
from cases import Spec, any_shape, case, integers, odd_scales, pick, scales
from formats import FLOAT8, TINY, TYPES, Tensor, bounds

GRANULARITIES = ["tensor", "first", "last", "negative", "default", "blocked"]


def granularities(version):
    return GRANULARITIES[:1] if version < 13 else GRANULARITIES[:5] if version < 21 else GRANULARITIES


def layout(rng, kind, version):
    """A shape of x, the shape of its scale, the attributes that say so, the axis and the block size."""
    if kind == "tensor":
        shape, attributes = any_shape(rng), {}
        if version >= 13 and shape and rng.random() < 0.3:
            attributes["axis"] = int(rng.integers(-len(shape), len(shape)))
        return shape, () if rng.random() < 0.8 else (1,), attributes, 1, 0
    if kind == "blocked":
        return _blocked(rng)
    shape = any_shape(rng, empty=kind != "default")
    while len(shape) < (2 if kind in ("default", "negative") else 1):
        shape = any_shape(rng)
    rank = len(shape)
    axis = {"first": 0, "last": rank - 1, "default": 1, "negative": -int(rng.integers(1, rank + 1))}[kind]
    attributes = {} if kind == "default" else {"axis": axis}
    if version >= 21 and rng.random() < 0.2:
        attributes["block_size"] = 0
    return shape, (shape[axis],), attributes, axis, 0


def _blocked(rng):
    shape = any_shape(rng, empty=False)
    while not shape:
        shape = any_shape(rng, empty=False)
    axis = int(rng.integers(-len(shape), len(shape)))
    length = shape[axis]
    block = int(pick(rng, [1, 2, 3, 4, max(1, length - 1), length, length + 3, 16]))
    form = list(shape)
    form[axis] = -(-length // block)
    attributes = {"axis": axis, "block_size": block}
    if axis % len(shape) == 1 and rng.random() < 0.3:
        del attributes["axis"]
        axis = 1
    return shape, tuple(form), attributes, axis, block


# ---- QuantizeLinear ------------------------------------------------------------------------------------------------

def quantize_specs():
    turn = itertools.cycle(GRANULARITIES[1:5])  # the many combinations since 23 take these by turns
    for version, (x_types, scale_types, y_types) in types_of.QUANTIZE.items():
        precisions = [None, "float", "float16", "bfloat16", "double"] if version >= 23 else [None]
        for xt in x_types:
            for st in scale_types or [xt]:
                for yt in y_types:
                    kinds = granularities(version) if version < 23 else ["tensor", turn, "blocked"]
                    yield from _quantize_of_types(version, xt, st, yt, kinds, precisions)


def _quantize_of_types(version, xt, st, yt, kinds, precisions):
    for kind in kinds:
        for zero in ["absent", "zero", "any"]:
            if zero == "absent" and yt != "uint8" and version < 21:
                continue  # without a zero point and output_dtype, y is uint8
            for saturate in [1, 0] if yt in FLOAT8 else [1]:
                for precision in precisions:
                    for again in range(1 if version >= 23 else 3 if version >= 19 else 12):
                        which = kind if isinstance(kind, str) else next(kind)
                        name = (f"QuantizeLinear-{version} {xt}/{st}->{yt} {which} zero_point={zero} "
                                f"saturate={saturate} precision={precision} #{again}")
                        how = (version, xt, st, yt, which, zero, saturate, precision)
                        yield Spec("QuantizeLinear", version, name, lambda rng, how=how: make_quantize(rng, *how))


def make_quantize(rng, version, xt, st, yt, kind, zero, saturate, precision):
    shape, scale_shape, attributes, axis, block = layout(rng, kind, version)
    if TYPES[yt].kind == "float" and zero == "any":
        scale = scales(rng, st, scale_shape, "power")
    else:  # a tiny scale may be 0 in a narrower precision
        scale = (odd_scales if precision in (None, "double") else scales)(rng, st, scale_shape)
    zero_point = None
    if zero != "absent":
        zero_point = _zero_point(rng, yt, scale_shape, zero)
    x = _quantize_input(rng, xt, scale, zero_point, shape, yt, axis, block, zero)
    x = _without_open_results(version, x, scale, yt, axis, block, saturate, precision, zero)
    if version >= 21 and (zero == "absent" and (yt != "uint8" or rng.random() < 0.5) or rng.random() < 0.2):
        attributes["output_dtype"] = TYPES[yt].code
    if not saturate or (version >= 19 and rng.random() < 0.1):
        attributes["saturate"] = saturate
    if precision:
        attributes["precision"] = TYPES[precision].code
    y = operators.quantize_linear(x, scale, zero_point, yt, axis, block, bool(saturate), precision,
                                  "nan" if version < 24 else "largest")
    constant = rng.random() < 0.5
    inputs = [("x", x, False), ("y_scale", scale, constant)]
    if zero_point is not None:
        inputs.append(("y_zero_point", zero_point, constant if rng.random() < 0.8 else not constant))
    return case(rng, "QuantizeLinear", version, inputs, attributes, [("y", y)])


def _zero_point(rng, type_name, shape, kind):
    if kind == "zero":
        return Tensor(type_name, np.zeros(shape, dtype=TYPES[type_name].dtype))
    if TYPES[type_name].kind == "float":  # small halves: sums with small multiples of a quarter are exact
        return formats.floats(type_name, rng.integers(-3, 4, shape) / 2 + 0.0)
    return integers(rng, type_name, shape)


def _quantize_input(rng, xt, scale, zero_point, shape, yt, axis, block, zero):
    """x from quotients: over and around y's range, ties, and their neighbours."""
    s = operators.spread(operators.reals(scale), shape, axis, block)
    if TYPES[yt].kind == "float":
        if zero == "any":  # quotients whose sum with the zero point is exact in every precision
            t = rng.integers(-16, 17, shape) / (1 if "int32" in (xt, scale.type.name) else 4)
            return _x_of(xt, t * s)
        t = _around_float(rng, yt, shape)
        if "int32" in (xt, scale.type.name):
            t = np.rint(np.clip(t, -2e4, 2e4))
        return _x_of(xt, t * s, not (xt == "int32" or scale.type.name == "int32"), rng, yt)
    low, high = bounds(yt)
    z = 0 if zero_point is None else operators.spread(operators.reals(zero_point), shape, axis, block)
    t = rng.uniform(low - z - 3, high - z + 3 + 0 * s)
    t = np.where(rng.random(shape) < 0.4, np.floor(t) + 0.5, t)
    t = np.where(rng.random(shape) < 0.2, np.rint(t * 0.05) + 0.5, t)
    return _x_of(xt, t * s, xt != "int32", rng, yt)


def _around_float(rng, yt, shape):
    """Values of a float type, midpoints of neighbours, just beside them, and beyond its range."""
    values = formats.table(TYPES[yt])
    values = np.unique(values[np.isfinite(values)])
    i = rng.integers(0, values.size - 1, shape)
    t = values[i] + (values[i + 1] - values[i]) * pick(rng, [0.0, 0.5, 0.5, 0.49, 0.51])
    top = formats.largest(yt)
    far = top * rng.uniform(0.9, 1.3, shape) * np.where(rng.random(shape) < 0.5, -1, 1)
    return np.where(rng.random(shape) < 0.2, far, t)


def _x_of(xt, values, specials=False, rng=None, yt=None):
    if xt == "int32":
        return Tensor(xt, np.clip(np.rint(values), -2**31, 2**31 - 1))
    top = formats.largest(xt)
    values = np.clip(values, -top, top)
    if specials and values.ndim and rng.random() < 0.5:
        odd = [np.inf, -np.inf, -0.0, top, -top, formats.smallest(xt), -formats.smallest(xt)]
        odd += [] if yt in TINY else [np.nan]
        values = np.where(rng.random(values.shape) < 0.15, rng.choice(odd, values.shape), values)
    return formats.floats(xt, values)


def _without_open_results(version, x, scale, yt, axis, block, saturate, precision, zero):
    """x with 0 in the places whose result the text leaves open (undefined.md)."""
    q = operators.quotients(x, scale, precision, axis, block)
    exact = operators.exact_quotients(x, scale, axis, block)
    drop = np.zeros(x.shape, dtype=bool)
    if yt in FLOAT8:
        if version < 24 and saturate:  # infinity as a fnuz type: Cast's table changed in version 24
            drop |= np.isinf(q) & (TYPES[yt].special == "fnuz")
        if "int32" == scale.type.name and not precision:  # what an inexact ratio is rounded to first
            drop |= q != np.rint(q)
        if zero == "any":
            drop |= ~np.isfinite(q)
    elif yt in TINY:
        drop |= np.isnan(q)
        if "int32" == scale.type.name and not precision:
            drop |= q != np.rint(q)
    if version < 23 and x.type.name == "int32":  # no word about the precision of a quotient of integers
        if TYPES[yt].kind != "float":
            drop |= np.rint(q) != np.rint(exact)
    return Tensor(x.type.name, np.where(drop, 0, x.codes))


# ---- DequantizeLinear ----------------------------------------------------------------------------------------------

def dequantize_specs():
    for version, (x_types, scale_types, y_types) in types_of.DEQUANTIZE.items():
        for xt in x_types:
            for st in scale_types:
                for yt in [None] + (y_types or []):
                    if yt is None and st == "float8e8m0":
                        continue  # y then would be float8e8m0, which the schema does not allow
                    yield from _dequantize_of_types(version, xt, st, yt)


def _dequantize_of_types(version, xt, st, yt):
    for kind in granularities(version):
        for zero in ["absent", "zero", "any"]:
            if zero == "any" and xt == "int32":
                continue  # the text: no zero point, or 0
            for again in range(1 if version >= 23 else 3 if version >= 19 else 12):
                name = f"DequantizeLinear-{version} {xt}*{st}->{yt} {kind} zero_point={zero} #{again}"
                how = (version, xt, st, yt, kind, zero)
                yield Spec("DequantizeLinear", version, name, lambda rng, how=how: make_dequantize(rng, *how))


def make_dequantize(rng, version, xt, st, yt, kind, zero):
    shape, scale_shape, attributes, axis, block = layout(rng, kind, version)
    scale = odd_scales(rng, st, scale_shape)
    zero_point = None if zero == "absent" else _zero_point(rng, xt, scale_shape, zero)
    if TYPES[xt].kind == "float":
        codes = rng.integers(0, 1 << TYPES[xt].bits, shape).astype(np.uint8)
        if zero == "any":  # differences that every precision holds
            codes = formats.encode(rng.integers(-16, 17, shape) / 2 + 0.0, xt)
        x = Tensor(xt, codes)
    else:
        x = integers(rng, xt, shape, pick(rng, ["full", "small"]))
    if yt:
        attributes["output_dtype"] = TYPES[yt].code
    y = operators.dequantize_linear(x, scale, zero_point, yt, axis, block)
    constant = rng.random() < 0.5
    inputs = [("x", x, False), ("x_scale", scale, constant)]
    if zero_point is not None:
        inputs.append(("x_zero_point", zero_point, constant if rng.random() < 0.8 else not constant))
    return case(rng, "DequantizeLinear", version, inputs, attributes, [("y", y)])


# ---- DynamicQuantizeLinear -----------------------------------------------------------------------------------------

def dynamic_specs():
    for data in ["both", "positive", "negative", "tiny", "huge", "ties", "whole", "one", "skewed"]:
        for again in range(40):
            name = f"DynamicQuantizeLinear-11 {data} #{again}"
            yield Spec("DynamicQuantizeLinear", 11, name, lambda rng, data=data: make_dynamic(rng, data))


def make_dynamic(rng, data):
    shape = any_shape(rng, empty=False) if data != "one" else ()
    x = rng.normal(0, 3, shape)
    if data == "positive":
        x = np.abs(x) + 1
    elif data == "negative":
        x = -np.abs(x) - 1
    elif data == "tiny":
        x = x * 1e-36
    elif data == "huge":
        x = np.clip(x * 3e37, -1.6e38, 1.6e38)
    elif data == "ties":  # a range of 255 quanta of 1/4: x / scale hits ties
        x = rng.integers(-255, 256, shape) / 8
        x = np.where(np.arange(x.size).reshape(shape) == 0, 31.875, np.maximum(x, -31.875))
    elif data == "whole":
        x = rng.integers(-300, 300, shape) + 0.5
    elif data == "skewed":
        x = x + rng.uniform(-20, 20)
    x = formats.floats("float", x)
    y = operators.dynamic_quantize_linear(x)
    return case(rng, "DynamicQuantizeLinear", 11, [("x", x, False)], {},
                list(zip(["y", "y_scale", "y_zero_point"], y)))
