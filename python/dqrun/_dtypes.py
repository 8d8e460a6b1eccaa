# SPDX-License-Identifier: Apache-2.0
"""ONNX element types and numpy dtypes.

Types that numpy lacks are those of ml_dtypes, which is imported when the first one is met. Types under 8 bits take one
byte an element in numpy and are packed in dqrun: `pack` and `unpack` convert between the two."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ._native import lib

_NUMPY: dict[int, Any] = {
    lib.DQ_FLOAT: np.float32,
    lib.DQ_UINT8: np.uint8,
    lib.DQ_INT8: np.int8,
    lib.DQ_UINT16: np.uint16,
    lib.DQ_INT16: np.int16,
    lib.DQ_INT32: np.int32,
    lib.DQ_INT64: np.int64,
    lib.DQ_STRING: np.object_,
    lib.DQ_BOOL: np.bool_,
    lib.DQ_FLOAT16: np.float16,
    lib.DQ_DOUBLE: np.float64,
    lib.DQ_UINT32: np.uint32,
    lib.DQ_UINT64: np.uint64,
    lib.DQ_COMPLEX64: np.complex64,
    lib.DQ_COMPLEX128: np.complex128,
}

_ML_DTYPES: dict[int, str] = {
    lib.DQ_BFLOAT16: "bfloat16",
    lib.DQ_FLOAT8E4M3FN: "float8_e4m3fn",
    lib.DQ_FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    lib.DQ_FLOAT8E5M2: "float8_e5m2",
    lib.DQ_FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
    lib.DQ_UINT4: "uint4",
    lib.DQ_INT4: "int4",
    lib.DQ_FLOAT4E2M1: "float4_e2m1fn",
    lib.DQ_FLOAT8E8M0: "float8_e8m0fnu",
    lib.DQ_UINT2: "uint2",
    lib.DQ_INT2: "int2",
    lib.DQ_FLOAT6E2M3: "float6_e2m3fn",
    lib.DQ_FLOAT6E3M2: "float6_e3m2fn",
}

BITS: dict[int, int] = {dtype: lib.dq_dtype_bits(dtype) for dtype in (*_NUMPY, *_ML_DTYPES)}
"""Bits of an element in dqrun, by ONNX type; 0 for strings."""

PLAIN: dict[Any, int] = {np.dtype(numpy): dtype for dtype, numpy in _NUMPY.items() if dtype != lib.DQ_STRING}
"""ONNX types of numpy's own numbers in native byte order."""

_BY_NAME = {name: dtype for dtype, name in _ML_DTYPES.items()}
_BY_NUMPY: dict[Any, int] = {np.dtype(numpy): dtype for dtype, numpy in _NUMPY.items()}


@functools.lru_cache(maxsize=None)
def to_numpy(dtype: int) -> np.dtype[Any]:
    """The numpy dtype of an ONNX type: ``float32`` of ``DQ_FLOAT``, ml_dtypes' ``int4`` of ``DQ_INT4``, ``object`` of strings."""
    scalar = _NUMPY.get(dtype)
    if scalar is None:
        import ml_dtypes

        scalar = getattr(ml_dtypes, _ML_DTYPES[dtype])
    result: np.dtype[Any] = np.dtype(scalar)
    return result


def from_numpy(dtype: np.dtype[Any]) -> int:
    """The ONNX type of a numpy dtype in any byte order; ``DQ_UNDEFINED`` where ONNX has none."""
    found = _BY_NUMPY.get(dtype)
    if found is not None:
        return found
    if dtype.kind in "USO" or dtype.kind == "T":
        found = lib.DQ_STRING
    elif dtype.byteorder not in "=|":
        found = from_numpy(dtype.newbyteorder("="))
    else:
        found = _BY_NAME.get(dtype.name, lib.DQ_UNDEFINED)
    _BY_NUMPY[dtype] = found
    return int(found)


def pack(array: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The packed bytes of a contiguous array of a type of 2, 4 or 6 bits: the first element in the lowest bits,
    four elements of 6 bits in three bytes, as in ONNX's raw_data."""
    values = array.reshape(-1).view(np.uint8) & np.uint8((1 << bits) - 1)
    group = 4 if bits == 6 else 8 // bits
    if values.size % group:
        values = np.concatenate([values, np.zeros(group - values.size % group, np.uint8)])
    columns = values.reshape(-1, group).astype(np.uint32)
    words = np.zeros(len(columns), np.uint32)
    for i in range(group):
        words |= columns[:, i] << np.uint32(bits * i)
    packed = words.astype("<u4").view(np.uint8).reshape(-1, 4)[:, : group * bits // 8]
    return np.ascontiguousarray(packed).reshape(-1)[: (array.size * bits + 7) // 8]


def unpack(packed: np.ndarray[Any, np.dtype[np.uint8]], count: int, dtype: int) -> np.ndarray[Any, Any]:
    """`count` elements of a type of 2, 4 or 6 bits from packed bytes, as an array of ml_dtypes' type."""
    bits = BITS[dtype]
    group, size = (4, 3) if bits == 6 else (8 // bits, 1)
    padded = np.zeros((count + group - 1) // group * size, np.uint8)
    padded[: packed.size] = packed
    words = np.zeros((padded.size // size, 4), np.uint8)
    words[:, :size] = padded.reshape(-1, size)
    whole = words.view("<u4")
    columns = [(whole >> np.uint32(bits * i)) & np.uint32((1 << bits) - 1) for i in range(group)]
    values = np.concatenate(columns, axis=1).astype(np.uint8).reshape(-1)[:count]
    if dtype in (lib.DQ_INT4, lib.DQ_INT2):  # how ml_dtypes keeps a negative number in a byte is its own matter
        return ((values << np.uint8(8 - bits)).view(np.int8) >> np.int8(8 - bits)).astype(to_numpy(dtype))
    return values.view(to_numpy(dtype))
