# SPDX-License-Identifier: Apache-2.0
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

# Sums and scales sa, sb and sy whose quotient lies so near a tie that double cannot tell: s * sa * sb and half an odd
# number of sy differ in one unit of numbers of 65 to 75 bits. Found by factoring such numbers.
NEAR_TIES = [(s, float(sa), float(sb), sy * 2.0**-e) for s, sa, sb, sy, e in [
    (1444170209, 75641, 1242601, 10287889, -43),
    (1034367589, 16171333, 453623, 8540919, -44),
    (2442547, 14225711, 1504501, 11886379, -43),
    (838226245, 8844685, 13313, 11220953, -44),
    (1276840313, 660023, 5469439, 13100523, -47),
    (157717361, 3873061, 10872061, 11937005, -42),
    (504755651, 9642877, 416903, 11534613, -46),
    (30032581, 417983, 14604851, 13895281, -43),
    (504409751, 5265727, 621031, 15627303, -46),
    (1433231027, 8679221, 18705, 15115649, -42),
    (928990319, 969611, 2007667, 16284679, -41),
    (1580781061, 51659, 878905, 10879491, -42),
    (1762120453, 57397, 359993, 16557281, -42),
    (140172943, 887657, 8514071, 10036345, -46),
    (1662078157, 1249251, 13114121, 15324953, -45),
    (13484077, 2155163, 2972351, 15712005, -41),
    (24505343, 10313987, 3820117, 9147301, -46),
    (83024493, 4155607, 1038813, 10186577, -46),
    (745091321, 399667, 361363, 13981495, -41),
    (1533681035, 6078451, 20753, 14663167, -43),
    (1784366317, 3150093, 237255, 10829413, -45),
    (1493820149, 866619, 8023623, 9335051, -43),
    (683522231, 2933323, 4789, 8732881, -41),
    (726528359, 14670171, 87989, 15230995, -44),
]]

# Denominators that make ties with whole numbers, times any power of two; scales at the ends of their range.
TIE_SCALES = [98, 10, 6, 1.5, 0.75, 14, 22, 100, 250, 1]
EXTREME_SCALES = [0.0, -0.0, 1e-45, 1e-42, 1e-38, 3e38, np.inf, -np.inf, np.nan, -1.0, 1.0]


def extreme_scales(rng, shape):
    values = np.where(rng.random(shape) < 0.6, rng.choice(EXTREME_SCALES, shape), np.exp2(rng.uniform(-149, 128, shape)))
    return formats.floats("float", values)


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
