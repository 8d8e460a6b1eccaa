# SPDX-License-Identifier: Apache-2.0
"""Cases of MatMulInteger and QLinearMatMul."""

import numpy as np

import formats
import operators
import types_of
from cases import TIE_SCALES, Spec, case, extreme_scales, integers, pick, scales
from formats import TYPES, Tensor

# Shapes of a and b: matrices, vectors, batches, broadcast batches, empty ones.
PLAIN = [((3, 4), (4, 5)), ((1, 1), (1, 1)), ((2, 17), (17, 9)), ((5, 64), (64, 3)), ((1, 33), (33, 16)),
         ((0, 4), (4, 3)), ((2, 0), (0, 3)), ((2, 3), (3, 0)), ((9, 5), (5, 1)), ((16, 32), (32, 24)),
         ((37, 129), (129, 67)), ((1, 513), (513, 40)), ((70, 31), (31, 130)), ((13, 260), (260, 16)), ((64, 64), (64, 64))]
VECTORS = [((4,), (4, 5)), ((3, 4), (4,)), ((6,), (6,)), ((5,), (2, 5, 3)), ((2, 3, 7), (7,))]
BATCHES = [((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (1, 3, 4, 2)), ((3, 2, 5), (5, 4)), ((4, 5), (2, 5, 3)),
           ((2, 2, 2, 2, 3), (3, 2)), ((0, 3, 4), (4, 2)), ((1, 3, 4), (2, 4, 5))]
ROWS = ["absent", "scalar", "one", "vector", "full"]


def shapes_for(a_kind, b_kind):
    """The shape pairs for which these kinds of scale or zero point mean something."""
    pairs = PLAIN + BATCHES
    if a_kind == "vector" or b_kind == "vector":
        pairs = PLAIN  # a vector goes with a matrix
    if a_kind not in ("vector", "full") and b_kind not in ("vector", "full"):
        pairs = pairs + VECTORS
    return pairs


def form(kind, shape, rows):
    """The shape of a zero point or scale of a (rows) or b (columns)."""
    if kind == "scalar":
        return ()
    if kind == "one":
        return (1,)
    length = shape[-2] if rows else shape[-1]
    if kind == "vector":
        return (length,)
    return shape[:-1] + (1,) if rows else shape[:-2] + (1, shape[-1])


# ---- MatMulInteger -------------------------------------------------------------------------------------------------

def matmul_integer_specs():
    for version, names in types_of.MATMUL_INTEGER.items():
        for at in names:
            for bt in names:
                for a_kind in ROWS:
                    for b_kind in ROWS:
                        for i, (a, b) in enumerate(shapes_for(a_kind, b_kind)):
                            name = f"MatMulInteger-{version} {at}*{bt} a_zero_point={a_kind} b_zero_point={b_kind} {a}x{b} #{i}"
                            how = (version, at, bt, a_kind, b_kind, a, b)
                            yield Spec("MatMulInteger", version, name, lambda rng, how=how: make_integer(rng, *how))
                name = f"MatMulInteger-{version} {at}*{bt} sums beyond 32 bits"
                yield Spec("MatMulInteger", version, name, lambda rng, how=(version, at, bt): make_beyond(rng, *how))


def make_beyond(rng, version, at, bt):
    """So many products of the largest size that their sum leaves 32 bits, and wraps."""
    a, b = (np.full(shape, max(formats.bounds(t), key=abs)) for t, shape in ((at, (3, 140_000)), (bt, (140_000, 2))))
    a[0, ::3], a[1, 70_000:] = formats.bounds(at)[0], 0
    a, b = Tensor(at, a), Tensor(bt, b)
    inputs = [("a", a, False), ("b", b, rng.random() < 0.5)]
    return case(rng, "MatMulInteger", version, inputs, {}, [("y", operators.matmul_integer(a, b))])


def make_integer(rng, version, at, bt, a_kind, b_kind, a_shape, b_shape):
    a, b = _operand(rng, at, a_shape), _operand(rng, bt, b_shape)
    a_zero = None if a_kind == "absent" else integers(rng, at, form(a_kind, a_shape, True))
    b_zero = None if b_kind == "absent" else integers(rng, bt, form(b_kind, b_shape, False))
    y = operators.matmul_integer(a, b, a_zero, b_zero)
    fixed = rng.random() < 0.5
    inputs = [("a", a, False), ("b", b, fixed), ("a_zero_point", a_zero, rng.random() < 0.5),
              ("b_zero_point", b_zero, fixed if rng.random() < 0.8 else not fixed)]
    while inputs[-1][1] is None:
        inputs.pop()
    return case(rng, "MatMulInteger", version, inputs, {}, [("y", y)])


def _operand(rng, type_name, shape):
    """Bytes of all sizes, or all at one end: sums of products at their largest."""
    if rng.random() < 0.15:
        end = formats.bounds(type_name)[int(rng.integers(2))]
        return Tensor(type_name, np.full(shape, end))
    return integers(rng, type_name, shape, pick(rng, ["full", "full", "small"]))


# ---- QLinearMatMul -------------------------------------------------------------------------------------------------

def qlinear_matmul_specs():
    for version, (names, scale_types) in types_of.QLINEAR_MATMUL.items():
        for at in names:
            for bt in names:
                for yt in names:
                    for st in scale_types:
                        yield from _qlinear_of_types(version, at, bt, yt, st)
                        for kind in ["ties", "extreme"] if st == "float" and "float" not in at + bt + yt else []:
                            for again in range(6):
                                name = f"QLinearMatMul-{version} {at}*{bt}->{yt} scales={kind} #{again}"
                                how = (version, at, bt, yt, kind)
                                yield Spec("QLinearMatMul", version, name, lambda rng, how=how: make_hard(rng, *how))


def make_hard(rng, version, at, bt, yt, kind):
    """Scales that make many ties, or of extreme sizes."""
    a_shape, b_shape = pick(rng, [((30, 4), (4, 40)), ((1, 16), (16, 70)), ((64, 3), (3, 8)), ((37, 129), (129, 67))])
    a, b = integers(rng, at, a_shape, "small"), integers(rng, bt, b_shape, "small")
    a_zero, b_zero, y_zero = integers(rng, at, (), "small"), integers(rng, bt, (), "small"), integers(rng, yt, ())
    columns, rows = pick(rng, [(), b_shape[1:]]), pick(rng, [(), (), a_shape[:1]])
    if kind == "ties":
        a_scale = rng.integers(1, 8, rows) * 2.0 ** int(rng.integers(-3, 3))
        b_scale = rng.integers(1, 8, columns) * 2.0 ** int(rng.integers(-3, 3))
        y_scale = np.asarray(pick(rng, TIE_SCALES) * 2.0 ** int(rng.integers(-3, 3)))
        a_scale, b_scale, y_scale = (formats.floats("float", v) for v in (a_scale, b_scale, y_scale))
    else:
        a_scale, b_scale, y_scale = (extreme_scales(rng, shape) for shape in (rows, columns, ()))
    y = operators.qlinear_matmul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)
    fixed = rng.random() < 0.7
    values = [("a", a, False), ("a_scale", a_scale, fixed), ("a_zero_point", a_zero, fixed), ("b", b, fixed),
              ("b_scale", b_scale, fixed), ("b_zero_point", b_zero, fixed), ("y_scale", y_scale, fixed),
              ("y_zero_point", y_zero, fixed)]
    return case(rng, "QLinearMatMul", version, values, {}, [("y", y)])


def _qlinear_of_types(version, at, bt, yt, st):
    whole = all(TYPES[t].kind != "float" for t in (at, bt, yt))
    for a_kind in ROWS[1:]:
        for b_kind in ROWS[1:]:
            for again in range(8 if version == 10 else 3 if whole else 1):
                name = f"QLinearMatMul-{version} {at}*{bt}->{yt} {st} a={a_kind} b={b_kind} #{again}"
                how = (version, at, bt, yt, st, a_kind, b_kind)
                yield Spec("QLinearMatMul", version, name, lambda rng, how=how: make_qlinear(rng, *how))


def make_qlinear(rng, version, at, bt, yt, st, a_kind, b_kind):
    a_shape, b_shape = pick(rng, shapes_for(a_kind, b_kind))
    exact = any(TYPES[t].kind == "float" for t in (at, bt, yt))
    a, a_zero = _quantized(rng, at, a_shape, form(a_kind, a_shape, True))
    b, b_zero = _quantized(rng, bt, b_shape, form(b_kind, b_shape, False))
    kind = "power" if exact and rng.random() < 0.5 else None
    a_scale = scales(rng, st, form(a_kind, a_shape, True), kind)
    b_scale = scales(rng, st, form(b_kind, b_shape, False), kind)
    y_scale = _output_scale(rng, st, a_scale, b_scale, a_shape, kind)
    one = () if rng.random() < 0.8 else (1,)
    y_scale = Tensor(st, y_scale.codes.reshape(one))
    y_zero = _zero(rng, yt, one)
    y = operators.qlinear_matmul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)
    fixed, fed = rng.random() < 0.5, rng.random() < 0.4
    values = [("a", a, False), ("a_scale", a_scale, not fed), ("a_zero_point", a_zero, not fed), ("b", b, fixed),
              ("b_scale", b_scale, not fed), ("b_zero_point", b_zero, not fed), ("y_scale", y_scale, not fed),
              ("y_zero_point", y_zero, not fed)]
    return case(rng, "QLinearMatMul", version, values, {}, [("y", y)])


def _quantized(rng, type_name, shape, zero_shape):
    """An operand and its zero point. float8 values are small halves, so that any order of summing is exact."""
    if TYPES[type_name].kind == "float":
        values = formats.floats(type_name, rng.integers(-7, 8, shape) / 2 + 0.0)
        return values, _zero(rng, type_name, zero_shape)
    return _operand(rng, type_name, shape), integers(rng, type_name, zero_shape)


def _zero(rng, type_name, shape):
    if TYPES[type_name].kind == "float":
        values = np.zeros(shape) if rng.random() < 0.7 else rng.integers(-2, 3, shape) + 0.0
        return formats.floats(type_name, values)
    return integers(rng, type_name, shape)


def _output_scale(rng, st, a_scale, b_scale, a_shape, kind):
    """A scale that brings the products into y's range, more or less."""
    sa, sb = operators.reals(a_scale), operators.reals(b_scale)
    typical = (sa.mean() if sa.size else 1.0) * (sb.mean() if sb.size else 1.0) * 60 * np.sqrt(max(a_shape[-1], 1))
    value = typical * np.exp(rng.uniform(-1, 2))
    if kind == "power":
        value = 2.0 ** np.rint(np.log2(value) - 4)
    return formats.floats(st, np.clip(value, 2.0**-14, 2.0**14))
