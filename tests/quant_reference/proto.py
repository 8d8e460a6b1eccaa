# SPDX-License-Identifier: Apache-2.0
"""ONNX messages of one-node models, written byte by byte: the helpers of the onnx package are too slow for so many.

Field numbers are those of onnx.proto.
"""

import formats


def _varint(value):
    if value < 0:
        value += 1 << 64
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, data):
    if isinstance(data, str):
        data = data.encode()
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def tensor(value, name=""):
    """A TensorProto of a formats.Tensor."""
    body = b"".join(_number(1, d) for d in value.shape) + _number(2, value.type.code)
    if value.type.kind == "string":
        body += b"".join(_bytes(6, text) for text in value.codes.reshape(-1))
    else:
        body += _bytes(9, formats.pack(value))
    return body + (_bytes(8, name) if name else b"")


def _value_info(name, value, with_sizes):
    dims = b"".join(_bytes(1, _number(1, d) if with_sizes else b"") for d in value.shape)
    kind = _number(1, value.type.code) + _bytes(2, dims)
    return _bytes(1, name) + _bytes(2, _bytes(1, kind))


def _attribute(name, value):
    if isinstance(value, str):
        return _bytes(1, name) + _bytes(4, value) + _number(20, 3)
    if isinstance(value, int):
        return _bytes(1, name) + _number(3, value) + _number(20, 2)
    return _bytes(1, name) + b"".join(_number(8, v) for v in value) + _number(20, 7)


def ir_version(opset):
    """The IR version that came with an opset, or an older one that has its types."""
    for first, ir in ((28, 14), (25, 13), (24, 12), (23, 11), (21, 10), (19, 9), (15, 8)):
        if opset >= first:
            return ir
    return 5


def model(case):
    """A ModelProto of a cases.Case."""
    node, graph = b"", b""
    for name, value, constant in case.inputs:
        node += _bytes(1, name if value is not None else "")
    for name, _ in case.outputs:
        node += _bytes(2, name)
    node += _bytes(3, "node") + _bytes(4, case.op)
    for name, value in case.attributes.items():
        node += _bytes(5, _attribute(name, value))
    graph += _bytes(1, node) + _bytes(2, "graph")
    for name, value, constant in case.inputs:
        if value is not None and constant:
            graph += _bytes(5, tensor(value, name))
    for name, value, constant in case.inputs:
        if value is not None and not constant:
            graph += _bytes(11, _value_info(name, value, case.declare_sizes))
    for name, value in case.outputs:
        graph += _bytes(12, _value_info(name, value, case.declare_sizes))
    opset = _bytes(1, "") + _number(2, case.opset)
    return _number(1, ir_version(case.opset)) + _bytes(7, graph) + _bytes(8, opset)
