# SPDX-License-Identifier: Apache-2.0
"""The types that each version's schema allows, and the versions themselves. test_reference.py compares them with onnx."""

from formats import FLOAT8

_BYTES = ["int8", "uint8"]
_FLOATS = ["float", "float16", "bfloat16"]
_F8 = list(FLOAT8)
_INT4 = ["int4", "uint4"]
_INT2 = ["int2", "uint2"]
_INT16 = ["int16", "uint16"]
_F6 = ["float6e2m3", "float6e3m2"]

_Q19 = _BYTES + _F8
_Q21 = _Q19 + _INT16 + _INT4
_Q23 = _Q21 + ["float4e2m1"]
_Q25 = _Q23 + _INT2
_Q28 = _Q25 + _F6
_X23 = _FLOATS + ["int32"]

# version: types of x, of y_scale (None: that of x), of y
QUANTIZE = {
    10: (["float", "int32"], ["float"], _BYTES),
    13: (["float", "int32"], ["float"], _BYTES),
    19: (_X23, None, _Q19),
    21: (_X23, None, _Q21),
    23: (_X23, _X23, _Q23),
    24: (_X23, _X23 + ["float8e8m0"], _Q23),
    25: (_X23, _X23 + ["float8e8m0"], _Q25),
    28: (_X23, _X23 + ["float8e8m0"], _Q28),
}

# version: types of x, of x_scale, of y (None: that of x_scale)
DEQUANTIZE = {
    10: (_BYTES + ["int32"], ["float"], None),
    13: (_BYTES + ["int32"], ["float"], None),
    19: (_Q19 + ["int32"], _FLOATS, None),
    21: (_Q21 + ["int32"], _FLOATS, None),
    23: (_Q23 + ["int32"], _FLOATS, _FLOATS),
    24: (_Q23 + ["int32"], _FLOATS + ["float8e8m0"], _FLOATS),
    25: (_Q25 + ["int32"], _FLOATS + ["float8e8m0"], _FLOATS),
    28: (_Q28 + ["int32"], _FLOATS + ["float8e8m0"], _FLOATS),
}

_C9 = ["bool", "double", "float", "float16", "int16", "int32", "int64", "int8", "string", "uint16", "uint32", "uint64",
       "uint8"]
_C13 = _C9 + ["bfloat16"]
_C19 = _C13 + _F8
_C21 = _C19 + _INT4
_C23 = _C21 + ["float4e2m1"]
_C24 = _C23 + ["float8e8m0"]
_C25 = _C24 + _INT2

# version: types that Cast converts from and to
CAST = {9: _C9, 13: _C13, 19: _C19, 21: _C21, 23: _C23, 24: _C24, 25: _C25, 28: _C25 + _F6}
CAST_LIKE = {15: _C13, 19: _C19, 21: _C21, 23: _C23, 24: _C24, 25: _C25}

MATMUL_INTEGER = {10: _BYTES}
CONV_INTEGER = {10: _BYTES}
QLINEAR_CONV = {10: _BYTES}
# version: types of a, b and y, and of the scales
QLINEAR_MATMUL = {10: (_BYTES, ["float"]), 21: (_Q19, _FLOATS)}
