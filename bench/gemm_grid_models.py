# SPDX-License-Identifier: Apache-2.0
"""The matrix products of gemm_grid.py: a model of M×K×N with constant B for each, its bytes, and the limit of its register tile."""

from dataclasses import dataclass
from typing import Callable

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

MS = "com.microsoft"
POOL = np.random.default_rng(1).integers(0, 256, (1 << 20) + 11, dtype=np.uint8)  # not a multiple of any row


def values(shape, dtype):
    """Numbers over the whole range of an integer type, or floats from -1 to 1."""
    count = int(np.prod(shape))
    if dtype == np.float32:
        return np.resize((POOL.astype(np.float32) - 128) / 128, count).reshape(shape)
    return np.frombuffer(np.resize(POOL, count * np.dtype(dtype).itemsize).tobytes(), dtype).reshape(shape)


def weights(shape, dtype):
    """As trained weights are: most of them small."""
    v = values(shape, dtype)
    return v // 3 if np.issubdtype(dtype, np.signedinteger) else v


def number(value, dtype=np.float32):
    return np.array(value, dtype)


def save(nodes, x_type, m, k, n, y_type, constants, opset=21):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", x_type, [m, k])],
                              [helper.make_tensor_value_info("y", y_type, [m, n])],
                              [numpy_helper.from_array(v, name) for name, v in constants.items()])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()


def node(op, inputs, outputs="y", domain="", **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), domain=domain, **attributes)


def matmul_integer(m, k, n):
    return save([node("MatMulInteger", "x b az")], T.UINT8, m, k, n, T.INT32, {"b": weights([k, n], np.int8), "az": number(7, np.uint8)})


def qlinear_matmul(m, k, n):
    return save([node("QLinearMatMul", "x xs xz b bs bz ys yz")], T.UINT8, m, k, n, T.UINT8, {
        "xs": number(0.1), "xz": number(120, np.uint8), "b": weights([k, n], np.int8), "bs": number(0.01), "bz": number(0, np.int8),
        "ys": number(0.5), "yz": number(128, np.uint8)})


def dynamic_matmul(m, k, n):
    return save([node("DynamicQuantizeMatMul", "x b bs bz", domain=MS)], T.FLOAT, m, k, n, T.FLOAT, {
        "b": weights([k, n], np.int8), "bs": number(0.01), "bz": number(0, np.int8)})


def matmul_integer16(m, k, n):
    return save([node("MatMulInteger16", "x b", domain=MS)], T.INT16, m, k, n, T.INT32, {"b": weights([k, n], np.int16)})


def qdq16(b_type):
    def model(m, k, n):
        nodes = [node("DequantizeLinear", "x xs xz", "xf"), node("DequantizeLinear", "b bs bz", "bf"), node("MatMul", "xf bf", "yf"),
                 node("QuantizeLinear", "yf ys yz")]
        return save(nodes, T.UINT16, m, k, n, T.UINT16, {
            "xs": number(1e-4), "xz": number(32000, np.uint16), "b": weights([k, n], b_type), "bs": number(0.01),
            "bz": number(0, b_type), "ys": number(0.01), "yz": number(32768, np.uint16)})
    return model


def matmul(m, k, n):
    return save([node("MatMul", "x b")], T.FLOAT, m, k, n, T.FLOAT, {"b": values([k, n], np.float32)})


def n_bits(level):
    def model(m, k, n):
        blob, scales = values([n, k // 32, 16], np.uint8), np.resize((POOL.astype(np.float32) + 1) / 1000, n * k // 32)
        return save([node("MatMulNBits", "x b s", domain=MS, K=k, N=n, bits=4, block_size=32, accuracy_level=level)], T.FLOAT, m, k, n, T.FLOAT,
                    {"b": blob, "s": scales})
    return model


@dataclass
class Product:
    """`limit` is the multiply-adds in GMAC/s of the register tile for M rows, from those of bytes, words and floats."""
    title: str
    model: Callable
    dtype: type
    bytes: tuple  # of an element of A, B and C
    limit: Callable
    level: bool = False  # whether dqrun honors accuracy_level
    block: int = 1       # K is a multiple of it

    @property
    def least(self):
        return 1, self.block, 1

    def takes(self, m, k, n):
        return k % self.block == 0

    def input(self, m, k, n):
        return np.ascontiguousarray(values([m, k], self.dtype))

    def size(self, m, k, n):
        a, b, c = self.bytes
        return a * m * k + b * k * n + c * m * n


def of_bytes(parts):
    return lambda macs, m: macs["bytes"] / parts


PRODUCTS = {
    "s8": Product("MatMulInteger u8s8", matmul_integer, np.uint8, (1, 1, 4), of_bytes(1)),
    "qlinear": Product("QLinearMatMul u8s8", qlinear_matmul, np.uint8, (1, 1, 1), of_bytes(1)),
    "dynamic": Product("DynamicQuantizeMatMul", dynamic_matmul, np.float32, (4, 1, 4), of_bytes(1)),
    "s16": Product("MatMulInteger16", matmul_integer16, np.int16, (2, 2, 4), lambda macs, m: macs["words"]),
    # Two bytes of A by one of B.
    "a16w8": Product("QDQ MatMul u16s8", qdq16(np.int8), np.uint16, (2, 1, 2), lambda macs, m: max(macs["bytes"] / 2, macs["words"])),
    # B as high and low bytes, each a product of words.
    "a16w16": Product("QDQ MatMul u16s16", qdq16(np.int16), np.uint16, (2, 2, 2), lambda macs, m: macs["words"] / 2),
    "f32": Product("MatMul float", matmul, np.float32, (4, 4, 4), lambda macs, m: macs["floats"]),
    # Up to eight rows are three bytes a number, more are floats. A scale for 32 weights of half a byte.
    "nbits": Product("MatMulNBits", n_bits(0), np.float32, (4, 0.625, 4), lambda macs, m: max(macs["bytes"] / 3, macs["floats"]) if m <= 8
                     else macs["floats"], block=32),
    # A conversion and a multiply-add for each eight products of bytes.
    "nbits4": Product("MatMulNBits level 4", n_bits(4), np.float32, (4, 0.625, 4), of_bytes(1.25), level=True, block=32),
}
