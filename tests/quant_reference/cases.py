"""What a case is, and the data and names that all generators share.

A generator yields `Spec`s, which are cheap; `build` makes the case of one. The data of a case depend only on the
seed and the spec's name, so that a sample has the same cases as the whole.
"""

import zlib
from collections import namedtuple

import numpy as np

import formats
from formats import Tensor, bounds

# make(rng) -> Case; version is the operator's since_version.
Spec = namedtuple("Spec", "op version name make")

# inputs: (name, Tensor or None for an absent one, whether it is an initializer); outputs: (name, Tensor).
Case = namedtuple("Case", "op opset inputs attributes outputs declare_sizes")

# since_versions that opsets 10 to 28 can mean, each with the last opset that means it.
LAST_OPSET = {
    "QuantizeLinear": {10: 12, 13: 18, 19: 20, 21: 22, 23: 23, 24: 24, 25: 27, 28: 28},
    "DequantizeLinear": {10: 12, 13: 18, 19: 20, 21: 22, 23: 23, 24: 24, 25: 27, 28: 28},
    "DynamicQuantizeLinear": {11: 28},
    "Cast": {9: 12, 13: 18, 19: 20, 21: 22, 23: 23, 24: 24, 25: 27, 28: 28},
    "CastLike": {15: 18, 19: 20, 21: 22, 23: 23, 24: 24, 25: 28},
    "MatMulInteger": {10: 28},
    "QLinearMatMul": {10: 20, 21: 28},
    "ConvInteger": {10: 28},
    "QLinearConv": {10: 28},
}

SHAPES = [(), (1,), (7,), (33,), (3, 5), (1, 4), (2, 3, 4), (2, 1, 3, 4), (1, 3, 2, 2, 3), (0,), (2, 0, 3), (70,), (4, 9)]
LONG = [(1000,), (259,), (3, 131), (65, 17), (2, 33, 9), (2, 3, 5, 40), (1, 64, 7), (4100,)]  # whole vectors and rests


def case(rng, op, version, inputs, attributes, outputs):
    """A Case at an opset that means this version; two of three declare the sizes of inputs and outputs."""
    first, last = max(version, 10), LAST_OPSET[op][version]
    return Case(op, int(rng.integers(first, last + 1)), inputs, attributes, outputs, rng.random() < 0.67)


def build(spec, seed):
    return spec.make(np.random.default_rng([seed, zlib.crc32(f"{spec.op}{spec.name}".encode())]))


def pick(rng, items):
    return items[int(rng.integers(len(items)))]


def any_shape(rng, empty=True):
    shape = pick(rng, SHAPES if rng.random() < 0.85 else LONG)
    return shape if empty or 0 not in shape else (2, 5)


def integers(rng, type_name, shape, data="full"):
    """Integers over the whole range (its ends among them), or small ones."""
    low, high = bounds(type_name)
    if data == "small":
        low, high = max(low, -4), min(high, 5)
    if formats.TYPES[type_name].bits == 64:
        values = rng.integers(low, high, shape, dtype=formats.TYPES[type_name].dtype, endpoint=True)
    else:
        values = rng.integers(low, high + 1, shape)
    if data == "full" and values.ndim:
        ends = rng.random(shape)
        values = np.where(ends < 0.08, low, np.where(ends > 0.92, high, values))
    return Tensor(type_name, values.astype(formats.TYPES[type_name].dtype))


def odd_scales(rng, type_name, shape):
    """Scales now and then negative, or tiny: subnormal in most types."""
    if rng.random() < 0.06 and type_name != "float8e8m0":
        scale = scales(rng, type_name, shape)
        if type_name == "int32":
            return Tensor(type_name, np.where(rng.random(shape) < 0.5, -scale.codes, scale.codes))
        values = formats.decode(scale)
        return formats.floats(type_name, np.where(rng.random(shape) < 0.5, -values, values))
    if rng.random() < 0.06 and type_name not in ("float8e8m0", "int32"):
        step = formats.smallest(type_name)
        return formats.floats(type_name, rng.integers(1, 200, shape) * step)
    return scales(rng, type_name, shape)


def scales(rng, type_name, shape, kind=None):
    """Positive scales: powers of two (ties are then exact), one digit fractions, or any."""
    kind = kind or pick(rng, ["power", "digit", "any"])
    if type_name == "int32":
        return Tensor(type_name, rng.integers(1, 9 if kind != "any" else 1000, shape))
    if type_name == "float8e8m0" or kind == "power":
        values = np.exp2(rng.integers(-6, 4, shape).astype(np.float64))
    elif kind == "digit":
        values = rng.integers(1, 30, shape) / 10
    else:
        values = np.exp(rng.uniform(-5, 2, shape))
    if type_name == "float8e8m0":
        return Tensor(type_name, formats.encode_e8m0(values, True, "nearest"))
    return formats.floats(type_name, values)
