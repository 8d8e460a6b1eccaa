# SPDX-License-Identifier: Apache-2.0
"""Cases of the matrix products of integers. The references are the formulas, in numpy's integers and in float32 or
float64 as dqrun documents them. QGemm requantizes in double, where ONNX Runtime does so in float: they may differ by a
quantum near a tie."""

import itertools

import numpy as np

from cases import Case
from qlinear import codes, either

f32, f64 = np.float32, np.float64
TYPES = list(itertools.product([np.uint8, np.int8], repeat=2))


def sizes(rng):
    return (int(v) for v in rng.integers(1, 60, 3))


def weights(rng, type_a, type_b, shape):
    """Codes, and whether ONNX Runtime is exact for them: processors without VNNI add pairs of u8 * s8 with 16-bit
    saturation."""
    small = rng.random() < 0.7
    b = codes(rng, type_b, shape)
    if small and type_b == np.int8:
        b //= 2
    return b, small or type_a == type_b


def param(rng, dtype, count):
    """Scales (float32) or zero points of columns: a scalar, or one each."""
    shape = either(rng, (), (count,), (count,))
    return rng.uniform(0.005, 0.1, shape).astype(f32) if dtype == f32 else codes(rng, dtype, shape)


def wide(x):
    return 0 if x is None else x.astype(np.int64)


def maybe(rng, value, probability=0.7):
    return value if rng.random() < probability else None


def trim(inputs):
    while inputs[-1] is None:
        inputs.pop()
    return inputs


# ---- QGemm -------------------------------------------------------------------------------------------------------


def gemm_s8(rng):
    for number in itertools.count():
        type_a, type_b = TYPES[number % 4]
        m, k, n = sizes(rng)
        a = codes(rng, type_a, (m, k))
        b, exact = weights(rng, type_a, type_b, (k, n))
        trans_a, trans_b = (int(v) for v in rng.integers(0, 2, 2))
        alpha = f32(either(rng, 1, 1, 0.5, 0.7, 2.25))
        sa, za = f32(rng.uniform(0.005, 0.1)), codes(rng, type_a, ())
        per_column = rng.random() < 0.5
        sb = rng.uniform(0.005, 0.1, n if per_column else ()).astype(f32)
        zb = codes(rng, type_b, n if per_column else ())
        za, zb = maybe(rng, za, 0.9), maybe(rng, zb, 0.9)
        c = maybe(rng, rng.integers(-9999, 9999, either(rng, (), (n,), (m, 1), (m, n), (1, n))).astype(np.int32))
        total = (a.astype(np.int64) - wide(za)) @ (b.astype(np.int64) - wide(zb)) + wide(c)
        type_y = f32
        sy = zy = None
        if rng.random() < 0.7:
            type_y, sy = type_a, f32(either(rng, rng.uniform(0.02, 5), 0.5, 4))
            zy = codes(rng, type_y, ())
            info = np.iinfo(type_y)
            factor = f64(alpha) * f64(sa) * sb.astype(f64) / f64(sy)
            want = np.clip(np.rint(total * factor) + int(zy), info.min, info.max).astype(type_y)
        else:
            want = total.astype(f32) * (f32(alpha * sa) * sb)
        inputs = [a.T if trans_a else a, sa, za, b.T if trans_b else b, sb, zb, c, sy, zy]
        attrs = {"alpha": float(alpha), "transA": trans_a, "transB": trans_b}
        yield Case("QGemm", trim(inputs), [type_y], attrs, reference=[want], ort=exact, quantum=1,
                   fed=either(rng, (0,), (0, 3), (0, 2, 3, 4, 5)))


# ---- Float results -----------------------------------------------------------------------------------------------


def to_float(total, sa, sb, bias, dtype=f32):
    value = total.astype(f32) * (sa.astype(f32) * sb.astype(f32))
    return (value if bias is None else value + bias.astype(f32)).astype(dtype)


def batch_of(rng):
    return either(rng, ((), ()), ((2,), ()), ((2, 3), (2, 3)), ((3,), (2, 1)))


def one_matrix(batch_b, scale):
    """ONNX Runtime takes the scales of each further matrix from behind the end of those given."""
    return not batch_b or scale.ndim == 0


def matmul_integer_to_float(rng):
    for number in itertools.count():
        type_a, type_b = TYPES[number % 4]
        dtype = np.float16 if rng.random() < 0.15 else f32
        m, k, n = sizes(rng)
        batch_a, batch_b = batch_of(rng)
        a = codes(rng, type_a, (*batch_a, m, k))
        b, exact = weights(rng, type_a, type_b, (*batch_b, k, n))
        sa, za = rng.uniform(0.005, 0.1, ()), codes(rng, type_a, ())
        if rng.random() < 0.3:  # a scale and zero point a row: not in ONNX Runtime
            shape = (m,) if m != 1 and rng.random() < 0.5 else (*batch_a, m, 1)
            sa, za, exact = rng.uniform(0.005, 0.1, shape), codes(rng, type_a, shape), False
        sa, sb = sa.astype(dtype) if sa.ndim else np.array(sa, dtype), param(rng, f32, n).astype(dtype)
        za, zb = maybe(rng, za), maybe(rng, param(rng, type_b, n))
        bias = maybe(rng, rng.uniform(-1, 1, n).astype(dtype), 0.5)
        rows = [x[:, None] if x is not None and x.ndim == 1 else x for x in (sa, za)]
        total = (a.astype(np.int64) - wide(rows[1])) @ (b.astype(np.int64) - wide(zb))
        yield Case("MatMulIntegerToFloat", trim([a, b, sa, sb, za, zb, bias]), [dtype],
                   reference=[to_float(total, rows[0], sb, bias, dtype)], ort=exact and one_matrix(batch_b, sb),
                   fed=either(rng, (0,), (0, 1), range(7)))


def dynamic_quantize_matmul(rng):
    for number in itertools.count():
        type_b = (np.uint8, np.int8)[number % 2]
        m, k, n = sizes(rng)
        batch_a, batch_b = batch_of(rng)
        kind = number // 2 % 5
        a = rng.uniform(*[(-1, 1), (-3, 1), (2, 9), (-9, -2), (0, 0)][kind], (*batch_a, m, k)).astype(f32)
        b, exact = weights(rng, np.uint8, type_b, (*batch_b, k, n))
        sb, zb = param(rng, f32, n), maybe(rng, param(rng, type_b, n))
        bias = maybe(rng, rng.uniform(-1, 1, n).astype(f32), 0.5)
        low, high = min(a.min(), f32(0)), max(a.max(), f32(0))
        scale = f32(high - low) / f32(255) if high != low else f32(1)
        zero = np.rint(np.clip(f32(0) - low / scale, 0, 255))
        quantized = np.clip(np.rint(a / scale) + zero, 0, 255).astype(np.int64) - int(zero)
        total = quantized @ (b.astype(np.int64) - wide(zb))
        yield Case("DynamicQuantizeMatMul", trim([a, b, sb, zb, bias]), [f32],
                   reference=[to_float(total, np.array(scale, f32), sb, bias)],
                   ort=exact and one_matrix(batch_b, sb),
                   fed=either(rng, (0,), (0, 1), range(5)))


def matmul_integer16(rng):
    for number in itertools.count():
        types = [(np.int16, np.int16), (np.int16, np.int16), (np.uint16, np.int16), (np.int16, np.uint16),
                 (np.uint16, np.uint16)]
        type_a, type_b = types[number % 5]
        m, k, n = sizes(rng)
        batch_a, batch_b = batch_of(rng)
        a, b = codes(rng, type_a, (*batch_a, m, k)), codes(rng, type_b, (*batch_b, k, n))
        type_y = either(rng, np.int32, np.uint32) if type_a == type_b == np.uint16 else np.int32
        want = (a.astype(np.int64) @ b.astype(np.int64)).astype(type_y)  # modulo 2^32
        yield Case("MatMulInteger16", [a, b], [type_y], reference=[want], fed=either(rng, (0,), (0, 1)))


OPERATORS = {
    "QGemm": (gemm_s8, 300),
    "MatMulIntegerToFloat": (matmul_integer_to_float, 300),
    "DynamicQuantizeMatMul": (dynamic_quantize_matmul, 200),
    "MatMulInteger16": (matmul_integer16, 100),
}
