# SPDX-License-Identifier: Apache-2.0
"""The single operators of compare.py: name → a function that gives (domain, operator, attributes, operands, result
types). An operand is (array, whether it is constant); an array of None leaves an optional input out."""

import numpy as np
from onnx import TensorProto as T

MS = "com.microsoft"
random = np.random.default_rng(1)


def x(shape, dtype=np.float32):
    """An activation: an input of the model."""
    if dtype == np.float32:
        return random.standard_normal(shape).astype(dtype), False
    bounds = np.iinfo(dtype)
    return random.integers(bounds.min, bounds.max + 1, shape, dtype=dtype), False


def w(shape, dtype=np.int8, uniform=False):
    """A weight: Gaussian as trained weights are, or even over the whole range."""
    bounds = np.iinfo(dtype)
    middle = 0 if bounds.min else 128
    values = random.uniform(-128, 128, shape) if uniform else random.normal(0, 127 / 3.5, shape)
    return np.clip(np.rint(values + middle), bounds.min, bounds.max).astype(dtype), True


def f(value, count=None):
    return np.full([] if count is None else [count], value, np.float32), True


def z(value, dtype, count=None):
    return np.full([] if count is None else [count], value, dtype), True


def quantize(count):
    return lambda: ("", "QuantizeLinear", {}, [x([count]), f(0.05), z(128, np.uint8)], [T.UINT8])


def dequantize(count):
    return lambda: ("", "DequantizeLinear", {}, [x([count], np.uint8), f(0.05), z(128, np.uint8)], [T.FLOAT])


def dynamic(count):
    return lambda: ("", "DynamicQuantizeLinear", {}, [x([count])], [T.UINT8, T.FLOAT, T.UINT8])


def matmul_integer(m, k, n, a=np.uint8, b=np.int8, uniform=False):
    return lambda: ("", "MatMulInteger", {}, [x([m, k], a), w([k, n], b, uniform), z(7, a)], [T.INT32])


def middle(dtype):
    return 0 if dtype == np.int8 else 128


def qlinear_matmul(m, k, n, a=np.uint8, b=np.int8, uniform=False):
    result = T.INT8 if a == np.int8 else T.UINT8
    return lambda: ("", "QLinearMatMul", {}, [x([m, k], a), f(0.1), z(middle(a) - 8, a), w([k, n], b, uniform), f(0.01),
                                              z(middle(b), b), f(0.5), z(middle(a), a)], [result])


def q_gemm(m, k, n, a=np.uint8, b=np.int8, uniform=False):
    result = T.INT8 if a == np.int8 else T.UINT8
    return lambda: (MS, "QGemm", {}, [x([m, k], a), f(0.1), z(middle(a) - 8, a), w([k, n], b, uniform), f(0.01),
                                      z(middle(b), b), z(5, np.int32, n), f(0.5), z(middle(a), a)], [result])


def dynamic_matmul(m, k, n, uniform=False):
    return lambda: (MS, "DynamicQuantizeMatMul", {}, [x([m, k]), w([k, n], np.int8, uniform), f(0.01), z(0, np.int8)],
                    [T.FLOAT])


def matmul_integer_run(m, k, n):
    """The right operand is an input, too."""
    return lambda: ("", "MatMulInteger", {}, [x([m, k], np.uint8), (w([k, n])[0], False), z(7, np.uint8)], [T.INT32])


PAIRS = (("u8", "s8"), ("u8", "u8"), ("s8", "s8"))  # of the left and the right operand's type


def signs(make, name, *sizes, pairs=PAIRS):
    """A case for each combination of signs, and one of weights even over their range."""
    types = {"u8": np.uint8, "s8": np.int8}
    title = f"{name} {{}}{{}} " + "x".join(str(n) for n in sizes)
    cases = {title.format(a, b): make(*sizes, a=types[a], b=types[b])
             for a, b in pairs}
    return cases | {title.format("u8", "s8") + " uniform": make(*sizes, uniform=True)}


def n_bits(m, k, n, level=0):
    def make():
        blob = random.integers(0, 256, [n, k // 32, 16], dtype=np.uint8)
        scales = random.uniform(0.01, 0.1, [n * k // 32]).astype(np.float32)
        attributes = {"K": k, "N": n, "bits": 4, "block_size": 32, "accuracy_level": level}
        return MS, "MatMulNBits", attributes, [x([m, k]), (blob, True), (scales, True)], [T.FLOAT]
    return make


def conv(channels, side, out, kernel, stride=1, group=1):
    def make():
        pad = kernel // 2
        attributes = {"kernel_shape": [kernel, kernel], "pads": [pad] * 4, "strides": [stride, stride], "group": group}
        return "", "QLinearConv", attributes, [x([1, channels, side, side], np.uint8), f(0.1), z(120, np.uint8),
                                               w([out, channels // group, kernel, kernel]), f(0.01, out),
                                               z(0, np.int8, out), f(0.5), z(128, np.uint8)], [T.UINT8]
    return make


def matmul(m, k, n):
    return lambda: ("", "MatMul", {}, [x([m, k]), (x([k, n])[0], True)], [T.FLOAT])


def node(op, *operands, domain="", types=(T.FLOAT,), **attributes):
    """An operator whose operands are made when it is run."""
    return lambda: (domain, op, attributes, [make() for make in operands], list(types))


def a(*shape, dtype=np.float32):
    return lambda: x(list(shape), dtype)


def c(*shape):
    return lambda: (random.standard_normal(list(shape)).astype(np.float32), True)


def q8(*shape):
    """An activation of uint8 with its scale and zero point."""
    return a(*shape, dtype=np.uint8), lambda: f(0.05), lambda: z(120, np.uint8)


CASES = {
    "QuantizeLinear 64 K": quantize(1 << 16),
    "QuantizeLinear 16 M": quantize(1 << 24),
    "QuantizeLinear 4096x512, per axis": lambda: ("", "QuantizeLinear", {"axis": 1}, [
        x([4096, 512]), f(0.05, 512), z(128, np.uint8, 512)], [T.UINT8]),
    "DequantizeLinear 64 K": dequantize(1 << 16),
    "DequantizeLinear 16 M": dequantize(1 << 24),
    "DynamicQuantizeLinear 64 K": dynamic(1 << 16),
    "DynamicQuantizeLinear 16 M": dynamic(1 << 24),
    **signs(matmul_integer, "MatMulInteger", 256, 1024, 1024, pairs=PAIRS + (("s8", "u8"),)),
    **signs(matmul_integer, "MatMulInteger", 16, 384, 384, pairs=PAIRS + (("s8", "u8"),)),
    "MatMulInteger u8s8 1x4096x4096": matmul_integer(1, 4096, 4096),
    "MatMulInteger u8s8 1x4096x4096 uniform": matmul_integer(1, 4096, 4096, uniform=True),
    "MatMulInteger u8s8 128x768x768, weights not constant": matmul_integer_run(128, 768, 768),
    **signs(qlinear_matmul, "QLinearMatMul", 128, 768, 3072),
    **signs(q_gemm, "QGemm", 128, 768, 3072),
    "DynamicQuantizeMatMul 128x768x3072": dynamic_matmul(128, 768, 3072),
    "DynamicQuantizeMatMul 128x768x3072 uniform": dynamic_matmul(128, 768, 3072, uniform=True),
    "MatMulNBits 1x4096x4096": n_bits(1, 4096, 4096),
    "MatMulNBits 128x768x3072": n_bits(128, 768, 3072),
    "MatMulNBits 1x4096x4096, level 4": n_bits(1, 4096, 4096, level=4),
    "MatMulNBits 8x4096x4096, level 4": n_bits(8, 4096, 4096, level=4),
    "MatMulNBits 128x768x3072, level 4": n_bits(128, 768, 3072, level=4),
    "QLinearConv 3x3 64-64 at 56": conv(64, 56, 64, 3),
    "QLinearConv 3x3 stride 2 64-64 at 56": conv(64, 56, 64, 3, 2),
    "QLinearConv 1x1 256-64 at 56": conv(256, 56, 64, 1),
    "QLinearConv 1x1 512-2048 at 7": conv(512, 7, 2048, 1),
    "QLinearConv 7x7 stride 2 3-64 at 224": conv(3, 224, 64, 7, 2),
    "QLinearConv depthwise 3x3 144 at 56": conv(144, 56, 144, 3, group=144),
    "QLinearConv grouped 1x1 272-272 at 28": conv(272, 28, 272, 1, group=4),
    "MatMul float 128x768x3072": matmul(128, 768, 3072),
    "MatMul float 1x4096x4096": matmul(1, 4096, 4096),
    "DequantizeLinear 4096x512, per axis 0": lambda: ("", "DequantizeLinear", {"axis": 0}, [
        x([4096, 512], np.uint8), f(0.05, 4096), z(128, np.uint8, 4096)], [T.FLOAT]),
    "DequantizeLinear 4096x512, per axis 1": lambda: ("", "DequantizeLinear", {"axis": 1}, [
        x([4096, 512], np.uint8), f(0.05, 512), z(128, np.uint8, 512)], [T.FLOAT]),
    "DequantizeLinear 4096x512, blocks of 32": lambda: ("", "DequantizeLinear", {"axis": 1, "block_size": 32}, [
        x([4096, 512], np.uint8), (np.full([4096, 16], 0.05, np.float32), True),
        (np.full([4096, 16], 128, np.uint8), True)], [T.FLOAT]),
    "Softmax 12x128x128": node("Softmax", a(1, 12, 128, 128)),
    "Softmax 1x1000x49, axis 1": node("Softmax", a(1, 1000, 49), axis=1),
    "LayerNormalization 128x384": node("LayerNormalization", a(128, 384), c(384), c(384)),
    "InstanceNormalization 64x56x56": node("InstanceNormalization", a(1, 64, 56, 56), c(64), c(64)),
    "Erf 128x1536": node("Erf", a(128, 1536)),
    "Gelu 128x1536": node("Gelu", a(128, 1536), domain=MS),
    "FastGelu 128x1536": node("FastGelu", a(128, 1536), c(1536), domain=MS),
    "Tanh 128x1536": node("Tanh", a(128, 1536)),
    "Sigmoid 128x1536": node("Sigmoid", a(128, 1536)),
    "Exp 128x1536": node("Exp", a(128, 1536)),
    "Add 128x1536": node("Add", a(128, 1536), a(128, 1536)),
    "Add 128x1536, a row": node("Add", a(128, 1536), c(1536)),
    "Mul 64x56x56, a number a channel": node("Mul", a(1, 64, 56, 56), c(64, 1, 1)),
    "Div 128x1536, a number": node("Div", a(128, 1536), c(1)),
    "Relu 64x112x112": node("Relu", a(1, 64, 112, 112)),
    "Where 128x1536": node("Where", lambda: (random.integers(0, 2, [128, 1536]).astype(bool), False), a(128, 1536),
                           a(128, 1536)),
    "Transpose 128x12x64, 0213": node("Transpose", a(1, 128, 12, 64), perm=[0, 2, 1, 3]),
    "Transpose 12x128x64, 0132": node("Transpose", a(1, 12, 128, 64), perm=[0, 1, 3, 2]),
    "Transpose 64x56x56, 0231": node("Transpose", a(1, 64, 56, 56), perm=[0, 2, 3, 1]),
    "Transpose 56x56x64 uint8, 0312": node("Transpose", a(1, 56, 56, 64, dtype=np.uint8), types=[T.UINT8],
                                           perm=[0, 3, 1, 2]),
    "ReduceMean 128x384": node("ReduceMean", a(128, 384), lambda: (np.array([1]), True)),
    "ReduceSum 128x384, axis 0": node("ReduceSum", a(128, 384), lambda: (np.array([0]), True)),
    "ReduceMean 64x56x56, plane": node("ReduceMean", a(1, 64, 56, 56), lambda: (np.array([2, 3]), True)),
    "LRN 96x55x55": node("LRN", a(1, 96, 55, 55), size=5),
    "Resize 64x56x56 x2, nearest": node("Resize", a(1, 64, 56, 56), lambda: (None, False), lambda: (
        np.array([1, 1, 2, 2], np.float32), True), mode="nearest", nearest_mode="floor",
        coordinate_transformation_mode="asymmetric"),
    "Resize 64x56x56 x2, linear": node("Resize", a(1, 64, 56, 56), lambda: (None, False), lambda: (
        np.array([1, 1, 2, 2], np.float32), True), mode="linear"),
    "Concat 2x 64x56x56": node("Concat", a(1, 64, 56, 56), a(1, 64, 56, 56), axis=1),
    "MultiHeadAttention 12x128x64": node("MultiHeadAttention", a(1, 128, 768), a(1, 128, 768), a(1, 128, 768), domain=MS,
                                         num_heads=12),
    "GroupQueryAttention 1 of 512": lambda: (MS, "GroupQueryAttention", {"num_heads": 16, "kv_num_heads": 4}, [
        x([1, 1, 1024]), x([1, 1, 256]), x([1, 1, 256]), x([1, 4, 512, 64]), x([1, 4, 512, 64]),
        (np.array([511], np.int32), True), (np.array([512], np.int32), True)], [T.FLOAT, T.FLOAT, T.FLOAT]),
    "QLinearAdd 64x56x56": node("QLinearAdd", *q8(1, 64, 56, 56), *q8(1, 64, 56, 56), lambda: f(0.1),
                                lambda: z(128, np.uint8), domain=MS, types=[T.UINT8]),
    "QLinearSigmoid 64x56x56": node("QLinearSigmoid", *q8(1, 64, 56, 56), lambda: f(1 / 256), lambda: z(0, np.uint8),
                                    domain=MS, types=[T.UINT8]),
    "QLinearSoftmax 12x128x128": node("QLinearSoftmax", *q8(1, 12, 128, 128), lambda: f(1 / 256),
                                      lambda: z(0, np.uint8), domain=MS, types=[T.UINT8], opset=13, axis=-1),
    "QLinearGlobalAveragePool 512x7x7": node("QLinearGlobalAveragePool", *q8(1, 512, 7, 7), lambda: f(0.05),
                                             lambda: z(128, np.uint8), domain=MS, types=[T.UINT8]),
    "QLinearAveragePool 3x3 64x56x56": node("QLinearAveragePool", *q8(1, 64, 56, 56), lambda: f(0.05),
                                            lambda: z(128, np.uint8), domain=MS, types=[T.UINT8], kernel_shape=[3, 3],
                                            pads=[1, 1, 1, 1]),
    "MaxPool 3x3 64x112x112 uint8": node("MaxPool", a(1, 64, 112, 112, dtype=np.uint8), types=[T.UINT8],
                                         kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
}
