# SPDX-License-Identifier: Apache-2.0
"""Patterns for check.py: codes of 16 bits."""

import numpy as np

from patterns import MOVES, PRODUCT, S8, U8

U16, S16 = np.dtype(np.uint16), np.dtype(np.int16)
OPSETS = (21, 23)


def draw(case):
    """Types of both operands and of the result, one of 16 bits at least."""
    while True:
        types = [case.pick(U8, S8, U16, S16) for _ in range(3)]
        if any(t in (U16, S16) for t in types):
            return types


def operand(case, name, shape, dtype, axis=None):
    """Dequantized codes, of constants with an axis; the float value and the scales as one-byte codes have them."""
    step = 256 if dtype in (U16, S16) else 1
    if axis is None:
        value, _, scale, _ = case.input(name, shape, dtype, scale=case.scale() / np.float32(step))
        return value, np.float64(scale) * step
    per_channel = case.chance(0.5)
    scales = np.array([case.scale(0.002, 0.02) / step for _ in range(shape[axis] if per_channel else 1)], np.float32)
    zeros = case.pick(None, np.zeros_like(scales, dtype), case.codes(dtype, scales.shape))
    value = case.constant(name + "_codes", case.codes(dtype, shape))
    case.note += f" {dtype} weights {list(shape)}{' per channel' if per_channel else ''}"
    if per_channel:
        return case.dequantize(name, value, scales, zeros, axis=axis), scales.astype(np.float64) * step
    return case.dequantize(name, value, scales[0], None if zeros is None else zeros[0]), scales.astype(np.float64) * step


def result(case, value, scales, terms, dtype):
    scale = np.max(scales) * 70 * 70 * np.sqrt(terms) / case.size(20, 120) / (256 if dtype in (U16, S16) else 1)
    case.quantize("y", case.clip(value), scale, dtype)


def bias(case, channels, scales):
    if case.chance(0.4):
        return []
    values = case.rng.normal(0, 20, channels) * np.max(scales)
    if case.chance(0.5):
        return [case.constant("bias", values.astype(np.float32))]
    step = np.float32(np.max(scales) / 512)
    return [case.dequantize("bias", case.constant("bias_codes", np.rint(values / step).astype(np.int32)), step, None)]


def qconv16(case):
    x_type, w_type, y_type = draw(case)
    spatial, groups = case.pick(1, 2, 2, 2, 3), case.pick(1, 1, 2, 3)
    inner, filters = case.pick(1, 2, 3, 5, 20), groups * case.pick(1, 2, 5)
    kernel = [case.size(1, 3) for _ in range(spatial)]
    least, most = case.pick((3, 5), (4, 9), (4, 9)) if spatial > 1 else case.pick((3, 6), (4, 400), (4, 400))
    extent = [case.size(least, most) for _ in range(spatial)]
    x, x_scale = operand(case, "x", (case.size(1, 2), groups * inner, *extent), x_type)
    w, w_scales = operand(case, "w", (filters, inner, *kernel), w_type, 0)
    attributes = {"group": groups, "strides": [case.size(1, 2) for _ in kernel]}
    if case.chance(0.5):
        attributes["pads"] = [case.size(0, k - 1) for k in kernel * 2]
    if case.chance(0.3):
        attributes["dilations"] = [case.size(1, 2 if min(extent) > 5 else 1) for _ in kernel]
    y = case.node("Conv", [x, w, *bias(case, filters, x_scale * w_scales)], "conv", **attributes)
    result(case, y, x_scale * w_scales, inner * np.prod(kernel), y_type)
    case.expect("conv", PRODUCT + "QLinearConv16")


def wide_gemm(case):
    a_type, b_type, y_type = draw(case)
    m, k, n = case.pick(1, case.size(2, 80)), case.size(1, 70), case.size(1, 40)
    turned = case.size(0, 1)
    a, a_scale = operand(case, "a", (m, k), a_type)
    b, b_scales = operand(case, "b", (n, k) if turned else (k, n), b_type, 0 if turned else 1)
    y = case.node("Gemm", [a, b, *bias(case, n, a_scale * b_scales)], "gemm", transB=turned,
                  alpha=case.pick(1.0, 1.0, 0.5))
    result(case, y, a_scale * b_scales, k, y_type)
    case.expect("gemm", PRODUCT + "QLinearMatMul16")


def qmatmul16(case):
    a_type, b_type, y_type = draw(case)
    m, k, n = case.size(1, 9), case.size(1, 700), case.size(1, 40)
    batch = case.pick((), (), (2,), (2, 3))
    a, a_scale = operand(case, "a", (*batch, m, k), a_type)
    constant = case.chance(0.6)
    if constant:
        b, b_scales = operand(case, "b", (k, n), b_type, 1)
    else:
        b, b_scales = operand(case, "b", (*batch, k, n), b_type)
    y = case.node("MatMul", [a, b], "matmul")
    if constant and case.chance(0.5):
        y = case.node("Add", [y, case.constant("bias", case.rng.normal(0, 1, n).astype(np.float32))], "add")
    result(case, y, a_scale * b_scales, k, y_type)
    case.expect("matmul", PRODUCT + "QLinearMatMul16")


def qmatmul16_to_float(case):
    a_type, b_type, _ = draw(case)
    if S8 in (a_type, b_type) or U8 in (a_type, b_type):
        a_type = case.pick(U16, S16)
    k, n = case.size(1, 300), case.size(1, 40)
    a, a_scale = operand(case, "a", (*case.pick((), (2,)), case.size(1, 9), k), a_type)
    b, b_scales = operand(case, "b", (k, n), b_type, 1)
    y = case.node("MatMul", [a, b], "matmul")
    if case.chance(0.6):
        y = case.node("Add", [y, case.constant("bias", case.rng.normal(0, 1, n).astype(np.float32))], "add")
    case.output(y, np.dtype(np.float32))
    case.rtol, case.atol = 1e-5, 1e-6 * float(np.max(a_scale * b_scales)) * 256 * 256 * k
    case.expect("matmul", "into QLinearMatMul16")


def wide_concat(case):
    """Parts with the result's parameters, and others; behind some of them a move."""
    dtype, axis, scale = case.pick(U16, S16), case.size(0, 2), np.float32(case.scale() / 256)
    zero = case.codes(dtype, ())
    parts = []
    for i in range(case.size(1, 4)):
        shape = [2, 3, 4]
        shape[axis] = case.size(1, 5)
        if case.chance(0.5):
            value = case.dequantize(f"x{i}", case.fed(f"x{i}_codes", case.codes(dtype, tuple(shape))), scale, zero)
        else:
            value, _ = operand(case, f"x{i}", tuple(shape), case.pick(U8, S8, U16, S16))
        if case.chance(0.3):
            value = case.node("Reshape", [value, case.constant(f"shape{i}", np.array(shape, np.int64))], f"reshape{i}")
        parts.append(value)
    y = case.node("Concat", parts, "concat", axis=case.pick(axis, axis - 3))
    case.quantize("y", case.clip(y), scale, dtype, zero)
    case.expect("concat", MOVES)
    case.quanta = 0


def sliced(case):
    """Operators without a form on these codes, that work on one plane, row or place after the other."""
    wide = case.chance(0.6)
    types = (U16, S16) if wide else (U8, S8)
    shape = (case.size(1, 3), case.size(1, 7), case.size(2, 9), case.size(2, 9))
    if case.chance(0.15):
        shape = (2, 3, 200, 130) # several chunks
    dtype = case.pick(*types)
    x, _, scale, zero = case.input("x", shape, dtype, scale=case.scale(0.01, 0.06) / np.float32(256 if wide else 1))
    kernel = {"kernel_shape": [2, 2], "strides": [case.size(1, 3), 1], "pads": [1, 0, 0, 1]}
    ends = {"Resize scales": 4, "Resize sizes": 4, "Resize of images": 4, "LRN": 1, "LayerNormalization": 3, "SimplifiedLayerNormalization": 2, "LogSoftmax": 1}
    if wide:
        ends |= {"MaxPool": 1, "AveragePool": 1, "GlobalAveragePool": 1, "Softmax": 1, "GlobalMaxPool": 1}
    kind = case.pick(*ends)
    mode = {"mode": case.pick("linear", "cubic"), "coordinate_transformation_mode": case.pick("half_pixel", "asymmetric")}
    twice = (*shape[:2], 2 * shape[2], shape[3] + 3)
    stopped = case.chance(0.15)
    last = case.constant("gamma", case.rng.normal(1, 0.3, shape[3]).astype(np.float32))
    fixed = case.constant("last", case.rng.normal(0, 1, shape[3]).astype(np.float32)) if not stopped else case.fed(
        "last", case.rng.normal(0, 1, shape[3]).astype(np.float32))
    forms = {
        "Resize scales": lambda: case.node("Resize", [x, "", case.constant("scales", np.array(
            [1, 1, 2, 1.5], np.float32))], "op", **mode),
        "Resize sizes": lambda: case.node("Resize", [x, "", "", case.constant("sizes", np.array(twice, np.int64))], "op", **mode),
        "Resize of images": lambda: case.node("Resize", [x, "", case.constant("scales", np.array(
            case.pick([1.4, 1, 2, 1], [1, 1.4, 2, 1]), np.float32))], "op", **mode),
        "LRN": lambda: case.node("LRN", [x], "op", size=case.pick(3, 5), alpha=case.pick(1e-4, 0.9),
                                 beta=case.pick(0.75, 0.5)),
        "LayerNormalization": lambda: case.node("LayerNormalization", [x, last, fixed], "op"),
        "SimplifiedLayerNormalization": lambda: case.node("SimplifiedLayerNormalization", [x, fixed], "op"),
        "MaxPool": lambda: case.node("MaxPool", [x], "op", **kernel),
        "AveragePool": lambda: case.node("AveragePool", [x], "op", count_include_pad=case.size(0, 1), **kernel)}
    y = forms[kind]() if kind in forms else case.node(kind, [x], "op")
    case.note = f"{kind} {shape} {np.dtype(dtype)} {stopped}"
    same = kind == "MaxPool" and case.chance(0.5)
    if kind.endswith("LayerNormalization"):
        case.expect("op", "tile by tile", told=not stopped)
    elif kind == "Resize of images":  # results depend on several planes
        case.expect("op", "tile by tile", told=False)
    elif stopped:
        case.also.append(y)
        case.expect("op", "tile by tile", told=False)
    elif not same:
        case.expect("op", "tile by tile")
    if kind != "MaxPool":
        y = case.clip(y)
    dtype = dtype if same else case.pick(*types)
    case.quantize("y", y, scale if same else scale * case.rng.uniform(0.5, 2), dtype, zero if same else "draw")
    case.quanta = 0


WIDE = {name.__name__: name for name in (sliced, qconv16, wide_gemm, qmatmul16, qmatmul16_to_float, wide_concat)}
