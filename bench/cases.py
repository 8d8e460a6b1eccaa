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


def qlinear_matmul(m, k, n):
    return lambda: ("", "QLinearMatMul", {}, [x([m, k], np.uint8), f(0.1), z(120, np.uint8), w([k, n]), f(0.01),
                                              z(0, np.int8), f(0.5), z(128, np.uint8)], [T.UINT8])


def dynamic_matmul(m, k, n):
    return lambda: (MS, "DynamicQuantizeMatMul", {}, [x([m, k]), w([k, n]), f(0.01), z(0, np.int8)], [T.FLOAT])


def n_bits(m, k, n):
    def make():
        blob = random.integers(0, 256, [n, k // 32, 16], dtype=np.uint8)
        scales = random.uniform(0.01, 0.1, [n * k // 32]).astype(np.float32)
        return MS, "MatMulNBits", {"K": k, "N": n, "bits": 4, "block_size": 32}, [x([m, k]), (blob, True), (scales, True)], [T.FLOAT]
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


CASES = {
    "QuantizeLinear 64 K": quantize(1 << 16),
    "QuantizeLinear 16 M": quantize(1 << 24),
    "QuantizeLinear 4096x512, per axis": lambda: ("", "QuantizeLinear", {"axis": 1}, [
        x([4096, 512]), f(0.05, 512), z(128, np.uint8, 512)], [T.UINT8]),
    "DequantizeLinear 64 K": dequantize(1 << 16),
    "DequantizeLinear 16 M": dequantize(1 << 24),
    "DynamicQuantizeLinear 64 K": dynamic(1 << 16),
    "DynamicQuantizeLinear 16 M": dynamic(1 << 24),
    "MatMulInteger u8s8 256x1024x1024": matmul_integer(256, 1024, 1024),
    "MatMulInteger u8s8 256x1024x1024 uniform": matmul_integer(256, 1024, 1024, uniform=True),
    "MatMulInteger u8u8 256x1024x1024": matmul_integer(256, 1024, 1024, b=np.uint8),
    "MatMulInteger s8s8 256x1024x1024": matmul_integer(256, 1024, 1024, a=np.int8),
    "MatMulInteger u8s8 16x384x384": matmul_integer(16, 384, 384),
    "MatMulInteger u8s8 1x4096x4096": matmul_integer(1, 4096, 4096),
    "QLinearMatMul 128x768x3072": qlinear_matmul(128, 768, 3072),
    "DynamicQuantizeMatMul 128x768x3072": dynamic_matmul(128, 768, 3072),
    "MatMulNBits 1x4096x4096": n_bits(1, 4096, 4096),
    "MatMulNBits 128x768x3072": n_bits(128, 768, 3072),
    "QLinearConv 3x3 64-64 at 56": conv(64, 56, 64, 3),
    "QLinearConv 3x3 stride 2 64-64 at 56": conv(64, 56, 64, 3, 2),
    "QLinearConv 1x1 256-64 at 56": conv(256, 56, 64, 1),
    "QLinearConv 1x1 512-2048 at 7": conv(512, 7, 2048, 1),
    "QLinearConv 7x7 stride 2 3-64 at 224": conv(3, 224, 64, 7, 2),
    "QLinearConv depthwise 3x3 144 at 56": conv(144, 56, 144, 3, group=144),
    "QLinearConv grouped 1x1 272-272 at 28": conv(272, 28, 272, 1, group=4),
    "MatMul float 128x768x3072": matmul(128, 768, 3072),
    "MatMul float 1x4096x4096": matmul(1, 4096, 4096),
}
