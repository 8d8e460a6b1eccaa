# SPDX-License-Identifier: Apache-2.0
"""Element types from their definitions: what each bit pattern means, and which pattern a real number becomes.

A tensor here is a `Tensor`: a type, a shape and codes. Codes of float types are bit patterns (unsigned integers);
codes of integer types are the integers themselves (int8 holds int4 and int2). Strings are Python str.

Real numbers travel as float64, which holds every value of every float type here exactly. Where an exact number needs
more bits (64-bit integers, quotients), it travels rounded to odd: the lowest bit of the float64 is set when anything
was cut off. Rounding such a number to a format of at most 51 bits gives what one rounding of the exact number gives.
"""

from collections import namedtuple
from fractions import Fraction

import numpy as np

# exponent, mantissa: field widths. special: 'ieee' (infinities and NaNs at the top), 'fn' (all ones is NaN, nothing is
# infinite), 'fnuz' (the pattern of -0 is NaN), 'finite' (no infinity, no NaN), 'e8m0' (no sign, all ones is NaN).
Type = namedtuple("Type", "name code kind bits dtype exponent mantissa bias special")


def _float(name, code, bits, exponent, mantissa, bias, special):
    storage = np.dtype({64: np.uint64, 32: np.uint32, 16: np.uint16}.get(bits, np.uint8))
    return Type(name, code, "float", bits, storage, exponent, mantissa, bias, special)


def _integer(name, code, bits, dtype):
    kind = "int" if name.startswith("int") else "uint"
    return Type(name, code, kind, bits, np.dtype(dtype), 0, 0, 0, "")


_ROWS = [
    _float("float", 1, 32, 8, 23, 127, "ieee"),
    _integer("uint8", 2, 8, np.uint8),
    _integer("int8", 3, 8, np.int8),
    _integer("uint16", 4, 16, np.uint16),
    _integer("int16", 5, 16, np.int16),
    _integer("int32", 6, 32, np.int32),
    _integer("int64", 7, 64, np.int64),
    Type("string", 8, "string", 0, np.dtype(object), 0, 0, 0, ""),
    Type("bool", 9, "bool", 8, np.dtype(np.uint8), 0, 0, 0, ""),
    _float("float16", 10, 16, 5, 10, 15, "ieee"),
    _float("double", 11, 64, 11, 52, 1023, "ieee"),
    _integer("uint32", 12, 32, np.uint32),
    _integer("uint64", 13, 64, np.uint64),
    _float("bfloat16", 16, 16, 8, 7, 127, "ieee"),
    _float("float8e4m3fn", 17, 8, 4, 3, 7, "fn"),
    _float("float8e4m3fnuz", 18, 8, 4, 3, 8, "fnuz"),
    _float("float8e5m2", 19, 8, 5, 2, 15, "ieee"),
    _float("float8e5m2fnuz", 20, 8, 5, 2, 16, "fnuz"),
    _integer("uint4", 21, 4, np.uint8),
    _integer("int4", 22, 4, np.int8),
    _float("float4e2m1", 23, 4, 2, 1, 1, "finite"),
    _float("float8e8m0", 24, 8, 8, 0, 127, "e8m0"),
    _integer("uint2", 25, 2, np.uint8),
    _integer("int2", 26, 2, np.int8),
    _float("float6e2m3", 27, 6, 2, 3, 1, "finite"),
    _float("float6e3m2", 28, 6, 3, 2, 3, "finite"),
]
TYPES = {row.name: row for row in _ROWS}
FLOAT8 = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")
TINY = ("float4e2m1", "float6e2m3", "float6e3m2")


class Tensor:
    """A type name's row, a shape and codes of that shape."""

    __slots__ = ("type", "shape", "codes")

    def __init__(self, type_name, codes):
        self.type = TYPES[type_name]
        self.codes = np.asarray(codes, dtype=self.type.dtype)
        self.shape = self.codes.shape

    def __repr__(self):
        return f"Tensor({self.type.name}, {self.shape}, {self.codes.tolist()})"


def bounds(type_name):
    """Smallest and largest value of an integer type."""
    row = TYPES[type_name]
    if row.kind == "int":
        return -(1 << (row.bits - 1)), (1 << (row.bits - 1)) - 1
    return 0, (1 << row.bits) - 1


def exact_value(row, code):
    """The value of one bit pattern as a Fraction, or 'nan', 'inf', '-inf'. The definition, written slowly."""
    if row.special == "e8m0":
        return "nan" if code == 255 else Fraction(2) ** (code - 127)
    sign = -1 if code >> (row.exponent + row.mantissa) else 1
    field = code >> row.mantissa & ((1 << row.exponent) - 1)
    fraction = code & ((1 << row.mantissa) - 1)
    top = field == (1 << row.exponent) - 1
    if row.special == "ieee" and top:
        return ("nan" if fraction else "inf" if sign > 0 else "-inf")
    if row.special == "fn" and top and fraction == (1 << row.mantissa) - 1:
        return "nan"
    if row.special == "fnuz" and sign < 0 and field == 0 and fraction == 0:
        return "nan"
    if field == 0:
        return sign * Fraction(fraction, 1 << row.mantissa) * Fraction(2) ** (1 - row.bias)
    return sign * (1 + Fraction(fraction, 1 << row.mantissa)) * Fraction(2) ** (field - row.bias)


_tables = {}
_largest = {}


def table(row):
    """All values of a type of at most 16 bits, as float64."""
    if row.name not in _tables:
        values = np.empty(1 << row.bits)
        for code in range(1 << row.bits):
            values[code] = float(exact_value(row, code))
            if values[code] == 0 and code:
                values[code] = -0.0
        _tables[row.name] = values
    return _tables[row.name]


def largest(type_name):
    """The largest finite value of a float type."""
    if type_name not in _largest:
        row = TYPES[type_name]
        if row.bits <= 16:
            values = table(row)
            _largest[type_name] = float(values[np.isfinite(values)].max())
        else:
            top = (((1 << row.exponent) - 1) << row.mantissa) - 1
            _largest[type_name] = float(exact_value(row, top))
    return _largest[type_name]


def smallest(type_name):
    """The smallest positive value of a float type."""
    row = TYPES[type_name]
    return 2.0 ** (-127 if row.special == "e8m0" else 1 - row.bias - row.mantissa)


def decode(tensor):
    """The values of a float tensor as float64."""
    row = tensor.type
    if row.bits == 64:
        return tensor.codes.view(np.float64)
    if row.bits == 32:
        with np.errstate(invalid="ignore"):
            return tensor.codes.view(np.float32).astype(np.float64)
    return table(row)[tensor.codes]


def _nan_code(row):
    return {"ieee": ((1 << row.exponent) - 1) << row.mantissa | 1 << max(row.mantissa - 1, 0),
            "fn": (1 << (row.bits - 1)) - 1, "fnuz": 1 << (row.bits - 1)}[row.special]


def encode(values, type_name, saturate=True, infinite="largest"):
    """Bit patterns of float64 values (may be rounded to odd) in a float type: to nearest, ties to even.

    `saturate` matters for the float8 types: what rounds beyond the largest value becomes it, otherwise infinity or
    NaN. `infinite` says what an infinity becomes in a saturating conversion to the fnuz types, which changed between
    Cast-23 ("nan") and Cast-24 ("largest"). float6 and float4 always saturate, and NaN has no meaning there.
    """
    row = TYPES[type_name]
    values = np.asarray(values, dtype=np.float64)
    if row.bits == 64:
        return values.view(np.uint64)
    negative = np.signbit(values)
    a = np.abs(values)
    nan, infinity = np.isnan(a), np.isinf(a)
    a = np.where(nan | infinity, 0.0, a)
    _, e = np.frexp(a)
    emin = 1 - row.bias
    e = np.where(a == 0, emin, np.maximum(e - 1, emin))
    r = np.rint(np.ldexp(a, row.mantissa - e))
    with np.errstate(over="ignore"):
        over = (np.ldexp(r, e - row.mantissa) > largest(type_name)) | infinity
    codes = ((e - emin).astype(np.int64) << row.mantissa) + r.astype(np.int64)
    if row.special == "ieee" and not (row.bits == 8 and saturate):
        beyond = ((1 << row.exponent) - 1) << row.mantissa
    elif row.special == "finite" or saturate:
        beyond = int(np.flatnonzero(table(row) == largest(type_name))[0])
    else:
        beyond = None  # NaN
    if beyond is None:
        nan = nan | over
        codes = np.where(over, 0, codes)
    else:
        codes = np.where(over, beyond, codes)
    if row.special == "fnuz" and saturate and infinite == "nan":
        nan = nan | infinity
    sign = 1 << (row.bits - 1)
    codes = np.where(negative & ~((row.special == "fnuz") & (codes == 0)), codes | sign, codes)
    if nan.any():
        if row.special == "finite":
            raise ValueError(f"NaN has no {type_name}")
        codes = np.where(nan, _nan_code(row), codes)
    return codes.astype(row.dtype)


def floats(type_name, values, **how):
    """A tensor of a float type, values rounded to it."""
    return Tensor(type_name, encode(values, type_name, **how))


def rounded(values, type_name):
    """float64 values rounded once to a float type, as float64."""
    if type_name == "double":
        return np.asarray(values, dtype=np.float64)
    return decode(floats(type_name, values, saturate=False))


def odd_fraction(x):
    """A Fraction as a float64 rounded to odd."""
    near = float(x)
    if Fraction(near) == x:
        return near
    toward = np.inf if x > Fraction(near) else -np.inf
    odd_bit = np.float64(near).view(np.uint64) & np.uint64(1)
    return near if odd_bit else float(np.nextafter(near, toward))


def odd(integers):
    """64-bit integers as float64 rounded to odd."""
    integers = np.asarray(integers)
    magnitude = (np.where(integers < 0, -integers.astype(np.int64), integers).astype(np.uint64)
                 if integers.dtype != np.uint64 else integers)
    low = magnitude & np.uint64(0x7FF)
    cut = magnitude & ~np.uint64(0x7FF)
    large = magnitude >= np.uint64(1 << 53)
    sticky = np.where(low != 0, cut | np.uint64(0x800), cut)
    value = np.where(large, sticky, magnitude).astype(np.float64)
    return np.where(integers < 0, -value, value) if integers.dtype != np.uint64 else value


def encode_e8m0(values, saturate, round_mode):
    """Bit patterns of float8e8m0 of values >= 0 (or NaN), as Cast-24 and later describe it."""
    values = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(values) & (values > 0)
    m, e = np.frexp(np.where(finite, values, 1.0))  # m in [0.5, 1): the power of two below is 2^(e-1)
    up = {"up": m > 0.5, "down": np.zeros(m.shape, bool), "nearest": m >= 0.75}[round_mode]
    code = e - 1 + up + 127
    outside = ~finite | (code < 0) | (code > 254) | (values > 2.0**127) | (values < 2.0**-127)
    if saturate:
        code = np.clip(code, 0, 254)
        code = np.where(values == 0, 0, np.where(np.isinf(values), 254, code))
        code = np.where(np.isnan(values), 255, code)
    else:
        code = np.where(outside, 255, code)
    return code.astype(np.uint8)


def wrap(integers, type_name):
    """Integers reduced to a type by discarding high bits (two's complement)."""
    row = TYPES[type_name]
    integers = np.asarray(integers)
    raw = integers if integers.dtype == np.uint64 else integers.astype(np.int64).view(np.uint64)
    if row.bits == 64:
        return raw.view(np.int64) if row.kind == "int" else raw
    raw = raw & np.uint64((1 << row.bits) - 1)
    value = raw.astype(np.int64)
    if row.kind == "int":
        value = np.where(value >= 1 << (row.bits - 1), value - (1 << row.bits), value)
    return value.astype(row.dtype)


def pack(tensor):
    """The tensor's raw_data: little-endian, sub-byte elements from the low bits up."""
    row = tensor.type
    codes = tensor.codes
    if row.bits >= 8:
        return np.ascontiguousarray(codes.astype(row.dtype.newbyteorder("<"), copy=False)).tobytes()
    flat = codes.reshape(-1).astype(np.uint8) & np.uint8((1 << row.bits) - 1)
    bits = (flat[:, None] >> np.arange(row.bits, dtype=np.uint8)) & 1
    return np.packbits(bits.reshape(-1), bitorder="little").tobytes()
