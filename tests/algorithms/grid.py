# SPDX-License-Identifier: Apache-2.0
"""Problems for each algorithm table: models of one node over a grid of shapes, with inputs."""

import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"


@dataclasses.dataclass
class Problem:
    """A model of one node of an algorithm table."""
    table: str
    label: str
    model: bytes
    feeds: dict
    outputs: list
    bound: float = 2e-5  # of the difference between rows of different results, relative to the largest


def build(table, label, nodes, feeds, constants, out_type, opset=21, **more):
    """`nodes`, the last of which gives the output "y", become one step; feeds are inputs of the graph, constants its initializers."""
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
              for name, array in feeds.items()]
    output = helper.make_tensor_value_info("y", out_type, None)
    graph = helper.make_graph(nodes if isinstance(nodes, list) else [nodes], "problem", inputs, [output],
                              [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)],
                              ir_version=10)
    return Problem(table, label, model.SerializeToString(), feeds, ["y"], **more)


@dataclasses.dataclass(frozen=True)
class Conv:
    """Shape of a two-dimensional convolution; pad None keeps the size at stride 1."""
    channels: int
    size: tuple
    out: int
    kernel: tuple = (3, 3)
    stride: int = 1
    dilation: int = 1
    group: int = 1
    batch: int = 1
    pad: int = None

    def label(self):
        return (f"{self.batch}x{self.channels}x{'x'.join(map(str, self.size))} to {self.out}, {'x'.join(map(str, self.kernel))} "
                f"s{self.stride} d{self.dilation} g{self.group}")

    def attributes(self):
        pads = [(k - 1) * self.dilation // 2 if self.pad is None else self.pad for k in self.kernel]
        rank = len(self.size)
        return dict(kernel_shape=list(self.kernel), strides=[self.stride] * rank, dilations=[self.dilation] * rank,
                    pads=pads + pads, group=self.group)

    def x_shape(self, nhwc=False):
        return (self.batch, *self.size, self.channels) if nhwc else (self.batch, self.channels, *self.size)

    def w_shape(self):
        return (self.out, self.channels // self.group, *self.kernel)


def conv_shapes(small):
    """Layers of classification networks, and odd shapes at which algorithms change."""
    shapes = [Conv(3, (32, 32), 16, (7, 7), 2), Conv(3, (33, 31), 24, (3, 3), 2), Conv(16, (30, 30), 16), Conv(20, (13, 17), 19),
              Conv(64, (14, 14), 64), Conv(32, (28, 28), 40, (1, 1)), Conv(24, (14, 15), 48, (1, 1), 2), Conv(96, (7, 7), 64, (1, 1)),
              Conv(32, (15, 15), 32, (5, 5)), Conv(16, (12, 12), 16, (3, 3), 1, 2), Conv(16, (16, 16), 4), Conv(5, (19, 19), 6),
              Conv(32, (14, 14), 32, group=4), Conv(32, (14, 14), 32, group=32), Conv(24, (17, 15), 24, (5, 5), group=24),
              Conv(48, (7, 7), 48, group=48), Conv(16, (9, 9), 32, group=16), Conv(16, (20, 20), 16, stride=2, group=16),
              Conv(32, (5, 5), 64, batch=3), Conv(64, (1, 1), 32, (1, 1), batch=4), Conv(16, (4, 1), 32, (1, 1)),
              Conv(24, (200,), 40, (5,)), Conv(16, (130,), 32, (3,)), Conv(8, (6, 5, 4), 12, (3, 3, 3)), Conv(130, (9, 9), 20)]
    if not small:
        shapes += [Conv(64, (56, 56), 64), Conv(128, (28, 28), 128), Conv(256, (14, 14), 256), Conv(512, (7, 7), 512),
                   Conv(64, (56, 56), 256, (1, 1)), Conv(256, (56, 56), 64, (1, 1)), Conv(512, (28, 28), 128, (1, 1)),
                   Conv(1024, (14, 14), 256, (1, 1)), Conv(512, (7, 7), 2048, (1, 1)), Conv(256, (56, 56), 512, (1, 1), 2),
                   Conv(3, (224, 224), 64, (7, 7), 2), Conv(3, (224, 224), 32, (3, 3), 2), Conv(16, (55, 55), 64),
                   Conv(64, (27, 27), 256), Conv(32, (112, 112), 16, (1, 1)), Conv(96, (56, 56), 24, (1, 1)),
                   Conv(144, (28, 28), 32, (1, 1)), Conv(32, (112, 112), 32, group=32), Conv(96, (112, 112), 96, stride=2, group=96),
                   Conv(192, (28, 28), 192, group=192), Conv(384, (14, 14), 384, group=384), Conv(960, (7, 7), 960, group=960),
                   Conv(96, (28, 28), 96, (5, 5), group=96), Conv(64, (28, 28), 64, group=4), Conv(32, (64, 64), 32, (5, 5)),
                   Conv(192, (35, 35), 64, (1, 1)), Conv(48, (35, 35), 64, (5, 5)), Conv(64, (400,), 64, (7,)), Conv(24, (48, 48), 4)]
    return shapes


def conv_s8(small):
    random = np.random.default_rng(1)
    for i, shape in enumerate(conv_shapes(small)):
        x_type, w_type = (np.uint8, np.int8) if i % 3 else (np.int8, np.int8)
        x_zero, w_zero = x_type(random.integers(1, 100)), w_type(0 if i % 4 else 3)
        w = np.clip(np.rint(random.normal(0, 36, shape.w_shape())), -127, 127).astype(w_type)  # as quantizers leave them
        bias = random.integers(-3000, 3000, shape.out).astype(np.int32)
        constants = dict(x_scale=np.float32(0.02), x_zero=x_zero, w=w, w_scale=np.float32(0.01), w_zero=w_zero,
                         y_scale=np.float32(0.3), y_zero=x_type(7), bias=bias)
        names = ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero", "bias"]
        low, high = np.iinfo(x_type).min, np.iinfo(x_type).max + 1
        out_type = helper.np_dtype_to_tensor_dtype(np.dtype(x_type))
        for nhwc in (False, True):
            node = helper.make_node("QLinearConv", names, ["y"], **shape.attributes())
            if nhwc:
                node.domain = MICROSOFT
                node.attribute.append(helper.make_attribute("channels_last", 1))
            x = random.integers(low, high, shape.x_shape(nhwc)).astype(x_type)
            yield build("conv_s8", ("nhwc " if nhwc else "") + shape.label(), node, {"x": x}, constants, out_type)
        x = random.integers(low, high, shape.x_shape()).astype(x_type)
        node = helper.make_node("ConvInteger", ["x", "w", "x_zero", "w_zero"], ["y"], **shape.attributes())
        yield build("conv_s8", "sums " + shape.label(), node, {"x": x}, {k: constants[k] for k in ("w", "x_zero", "w_zero")},
                    TensorProto.INT32)


def conv_f32(small):
    random = np.random.default_rng(2)
    for i, shape in enumerate(conv_shapes(small)):
        w = random.standard_normal(shape.w_shape()).astype(np.float32)
        bias = random.standard_normal(shape.out).astype(np.float32)
        x = random.standard_normal(shape.x_shape()).astype(np.float32)
        node = helper.make_node("Conv", ["x", "w", "bias"], ["y"], **shape.attributes())
        yield build("conv_f32", shape.label(), node, {"x": x}, {"w": w, "bias": bias}, TensorProto.FLOAT)
        if i % 3 == 0:
            yield build("conv_f32", "run-time weights " + shape.label(), node, {"x": x, "w": w}, {"bias": bias}, TensorProto.FLOAT)


def dequantized(name, scale, zero, axis=None):
    attributes = {} if axis is None else {"axis": axis}
    return helper.make_node("DequantizeLinear", [name, name + "_scale", name + "_zero"], [name + "_float"], **attributes)


def quantized(name):
    return helper.make_node("QuantizeLinear", [name, "y_scale", "y_zero"], ["y"])


def codes(random, dtype, shape):
    return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


def conv_s16(small):
    random = np.random.default_rng(3)
    for i, shape in enumerate(conv_shapes(small)):
        for w_type in (np.int8, np.int16):
            x_type = (np.uint16, np.int16)[i % 2]
            constants = dict(x_scale=np.float32(0.0003), x_zero=x_type(500), w=codes(random, w_type, shape.w_shape()),
                             w_scale=np.float32(0.01 if w_type == np.int8 else 0.00004), w_zero=w_type(0),
                             y_scale=np.float32(0.004), y_zero=x_type(7))
            nodes = [dequantized("x", "x_scale", "x_zero"), dequantized("w", "w_scale", "w_zero"),
                     helper.make_node("Conv", ["x_float", "w_float"], ["sums"], **shape.attributes()), quantized("sums")]
            yield build("conv_s16", f"{np.dtype(w_type)} weights {shape.label()}", nodes,
                        {"x": codes(random, x_type, shape.x_shape())}, constants, helper.np_dtype_to_tensor_dtype(np.dtype(x_type)))


def conv_transpose(small):
    random = np.random.default_rng(8)
    shapes = [Conv(16, (7, 7), 12, (3, 3), 2), Conv(8, (9, 5), 16, (4, 4), 2), Conv(12, (6, 6), 12, (3, 3), group=4),
              Conv(4, (10, 10), 5, (2, 2), 3), Conv(6, (20,), 4, (5,), 4)]
    if not small:
        shapes += [Conv(64, (14, 14), 32, (4, 4), 2), Conv(128, (16, 16), 64, (2, 2), 2), Conv(32, (28, 28), 32)]
    for shape in shapes:
        w = random.standard_normal((shape.channels, shape.out // shape.group, *shape.kernel)).astype(np.float32)
        x, bias = random.standard_normal(shape.x_shape()).astype(np.float32), random.standard_normal(shape.out).astype(np.float32)
        node = helper.make_node("ConvTranspose", ["x", "w", "bias"], ["y"], strides=[shape.stride] * len(shape.size), group=shape.group)
        yield build("conv_transpose", shape.label(), node, {"x": x}, {"w": w, "bias": bias}, TensorProto.FLOAT)


def matmul_shapes(small):
    """(M, K, N)"""
    shapes = [(1, 64, 96), (1, 33, 7), (5, 64, 96), (64, 64, 3), (128, 96, 1), (50, 77, 60), (32, 128, 128), (2, 256, 64), (9, 1, 20)]
    if not small:
        shapes += [(1, 768, 768), (1, 768, 3072), (1, 3072, 768), (1, 4096, 1024), (16, 768, 768), (128, 768, 768), (128, 768, 3072),
                   (128, 3072, 768), (512, 512, 512), (128, 64, 128), (128, 128, 64), (196, 512, 128), (1000, 64, 4), (2048, 256, 2),
                   (4, 1024, 4096), (64, 2048, 512)]
    return shapes


def matmul_s8(small):
    random = np.random.default_rng(6)
    shapes = matmul_shapes(small) + [(m, 48, 80) for m in (2, 3, 4, 7, 13)]
    if not small:
        shapes += [(m, k, n) for m in (2, 3, 4, 6, 8, 12, 24) for k, n in ((768, 768), (1024, 8192), (128, 64))] + [(1, 64, 64), (1, 512, 512)]
    for i, (m, k, n) in enumerate(shapes):
        a_type, b_type = ((np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8))[i % 3]
        a, b = codes(random, a_type, (m, k)), np.clip(np.rint(random.normal(0, 36, (k, n))), -127, 127).astype(np.int8)
        b = b if b_type == np.int8 else (b.astype(np.int16) + 128).astype(np.uint8)
        constants = dict(a_zero=a_type(3), b_zero=b_type(0 if b_type == np.int8 else 128))
        node = helper.make_node("MatMulInteger", ["a", "b", "a_zero", "b_zero"], ["y"])
        shape = f"{np.dtype(a_type)} {np.dtype(b_type)} {m}x{k}x{n}"
        yield build("matmul_s8", "constant " + shape, node, {"a": a}, {"b": b, **constants}, TensorProto.INT32)
        yield build("matmul_s8", "run-time " + shape, node, {"a": a, "b": b}, constants, TensorProto.INT32)


def matmul_s16(small):
    random = np.random.default_rng(4)
    for i, (m, k, n) in enumerate(matmul_shapes(small)):
        for x_type, w_type, y_type in ((np.uint16, np.int8, np.uint16), (np.int16, np.int16, np.int16), (np.uint16, np.uint16, np.uint8),
                                       (np.uint8, np.int8, np.uint16), (np.uint8, np.uint8, np.uint8)):
            constants = dict(x_scale=np.float32(0.001), x_zero=x_type(9), w=codes(random, w_type, (k, n)), w_scale=np.float32(0.01),
                             w_zero=w_type(32768 if w_type == np.uint16 else 0), y_scale=np.float32(0.05), y_zero=y_type(7))
            nodes = [dequantized("x", "x_scale", "x_zero"), dequantized("w", "w_scale", "w_zero"),
                     helper.make_node("MatMul", ["x_float", "w_float"], ["sums"]), quantized("sums")]
            types = " ".join(str(np.dtype(t)) for t in (x_type, w_type, y_type))
            feeds = {"x": codes(random, x_type, (m, k))}
            if x_type == w_type == y_type == np.uint8:
                feeds["w"] = constants.pop("w")
            yield build("matmul_s16", f"{types} {m}x{k}x{n}", nodes, feeds, constants,
                        helper.np_dtype_to_tensor_dtype(np.dtype(y_type)))


def matmul_f32(small):
    random = np.random.default_rng(5)
    for m, k, n in matmul_shapes(small):
        a, b = random.standard_normal((m, k)).astype(np.float32), random.standard_normal((k, n)).astype(np.float32)
        bias, shape = random.standard_normal(n).astype(np.float32), f"{m}x{k}x{n}"
        yield build("matmul_f32", "constant " + shape, helper.make_node("MatMul", ["a", "b"], ["y"]), {"a": a}, {"b": b}, TensorProto.FLOAT)
        yield build("matmul_f32", "run-time " + shape, helper.make_node("MatMul", ["a", "b"], ["y"]), {"a": a, "b": b}, {}, TensorProto.FLOAT)
        transposed = helper.make_node("Gemm", ["a", "b", "bias"], ["y"], transB=1)
        yield build("matmul_f32", "constant, transposed " + shape, transposed, {"a": a}, {"b": b.T.copy(), "bias": bias}, TensorProto.FLOAT)
        yield build("matmul_f32", "run-time, transposed " + shape, transposed, {"a": a, "b": b.T.copy()}, {"bias": bias}, TensorProto.FLOAT)


def matmul_weight_only(small):
    random = np.random.default_rng(7)
    shapes = [(1, 64, 96), (3, 128, 40), (8, 96, 33), (20, 64, 64)]
    if not small:
        shapes += [(m, k, n) for m in (1, 2, 4, 8, 16, 64, 256) for k, n in ((768, 768), (2048, 2048), (896, 4864))]
    for m, k, n in shapes:
        for bits in (4, 8):
            block = 32
            b = random.integers(0, 256, (n, k // block, block * bits // 8), np.uint8)
            scales = random.uniform(0.001, 0.01, (n, k // block)).astype(np.float32)
            zeros = random.integers(0, 256, (n, (k // block * bits + 7) // 8), np.uint8)
            a = random.standard_normal((m, k)).astype(np.float32)
            for level in (0, 4):
                node = helper.make_node("MatMulNBits", ["a", "b", "scales", "zeros"], ["y"], domain=MICROSOFT, K=k, N=n, bits=bits,
                                        block_size=block, accuracy_level=level)
                yield build("matmul_weight_only", f"{bits} bits, accuracy level {level}, {m}x{k}x{n}", node, {"a": a},
                            {"b": b, "scales": scales, "zeros": zeros}, TensorProto.FLOAT, bound=0.02 if level else 2e-5)


TABLES = {"conv_s8": conv_s8, "conv_f32": conv_f32, "conv_s16": conv_s16, "conv_transpose": conv_transpose, "matmul_s8": matmul_s8,
          "matmul_s16": matmul_s16, "matmul_f32": matmul_f32,
          "matmul_weight_only": matmul_weight_only}


def problems(table, small=True):
    """Problems of one table; `small` leaves out those that are for measuring."""
    return TABLES[table](small)
