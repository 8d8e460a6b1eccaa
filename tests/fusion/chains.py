# SPDX-License-Identifier: Apache-2.0
"""Patterns of more than one operator between DequantizeLinear and QuantizeLinear, and of several such in a row."""

import numpy as np
from onnx import helper

from patterns import MOVES, PRODUCT, S8, TABLE, U8, Case, moved, sum_scale, unary_chain


def parted(case, name, value, scale, dtype, zero="draw"):
    """Quantized and dequantized again, in the middle of a graph."""
    codes = case.quantize(name + "_q", value, scale, dtype, zero)
    case.outputs.pop()
    parameters = case.nodes[-1].input[1:]
    return case.node("DequantizeLinear", [codes, *parameters], name)


def moved_operand(case):
    """Moves between DequantizeLinear and operators; a product takes the last axis."""
    x, dtype, scale, zero = case.input("x", (2, 4, 6, 6))
    case.pad_value = 0 if zero is None else (np.float32(dtype.type(2)) - np.float32(zero)) * scale
    turned = case.node("Transpose", [moved(case, x)], "turned")
    kind = case.pick("Add", "Concat", "Sigmoid", "MatMul")
    if kind == "Sigmoid":
        y = case.node("Sigmoid", [turned], "op")
        case.quantize("y", y, 1 / 256, case.code_type())
        case.expect("y", TABLE)
        case.quanta = 0
    elif kind == "Add":
        y = case.node("Add", [turned, turned], "op")
        case.quantize("y", case.node("Add", [y, turned], "other"), scale * 2, dtype)
        case.expect("y", TABLE)
        case.quanta = 0
    elif kind == "MatMul":
        if case.note.strip() != "Reshape":
            turned = case.node("Transpose", [x], "again", perm=[3, 0, 1, 2])
        last = {"Reshape": 2}.get(case.note.strip(), 6)
        w, w_scales = case.weights((last, 5), 1, case.chance(0.5))
        y = case.node("MatMul", [turned, w], "op")
        case.quantize("y", y, sum_scale(case, last, scale, w_scales), case.code_type())
        case.expect("op", PRODUCT + "QLinearMatMul")
    else:
        y = case.node("Concat", [turned, turned], "op", axis=0)
        case.quantize("y", y, scale * 0.8, dtype)
        case.expect("op", MOVES)
        case.quanta = 0
    case.note += " " + kind


def moved_result(case):
    """Moves, Relu and Clip in any order between an operator and QuantizeLinear."""
    x, dtype, scale, _ = case.input("x", (2, 4, 6, 6))
    kind = case.pick("Conv", "Add", "Sigmoid", "AveragePool")
    out_scale, out_type = scale, dtype
    if kind == "Conv":
        w, w_scales = case.weights((4, 4, 1, 1), 0, case.chance(0.5))
        y = case.node("Conv", [x, w], "op")
        out_scale, out_type = sum_scale(case, 4, scale, w_scales), case.code_type()
        case.expect("op", PRODUCT + "QLinearConv")
    elif kind == "Add":
        other, _, other_scale, _ = case.input("other", (4, 1, 1), dtype)
        y = case.node("Add", [x, other], "op")
        out_scale = scale + other_scale
        case.expect("op", MOVES)
    elif kind == "Sigmoid":
        y = case.node("Sigmoid", [x], "op")
        out_scale, out_type, case.quanta = 1 / 256, case.code_type(), 0
        case.expect("y", TABLE)
    else:
        y = case.node("AveragePool", [x], "op", kernel_shape=[1, 1])
        case.expect("op", MOVES)
    case.pad_value = case.rng.uniform(-1, 1)
    y = moved(case, case.clip(y) if case.chance(0.5) else y)
    if case.chance(0.5):
        y = case.node("Clip", [y, case.constant("least", np.float32(-0.2)), case.constant("most", np.float32(2.5))],
                      "last")
    if case.note.split()[-1] in ("left", "Split"):
        case.expected.clear()  # one of two results: not behind an operator
    case.note += " " + kind
    case.quantize("y", y, out_scale, out_type)


def long_chain(case):
    """Functions of one value with QuantizeLinear and DequantizeLinear between them, and both ends of a gate."""
    x, dtype, scale, _ = case.input("x", (2, 3, case.size(1, 40)), scale=case.scale(0.01, 0.06))
    y = parted(case, "p", unary_chain(case, x), scale * 0.9, case.code_type())
    if case.chance(0.5):
        gate = parted(case, "g", case.node("Sigmoid", [y], "gate2"), 1 / 255, case.code_type())
        y = case.node("Mul", [y, gate], "gated")
    else:
        y = case.node("LeakyRelu", [y], "leaky", alpha=0.2)
    case.quantize("y", y, scale, dtype)
    case.quanta = 0
    case.expect("y", TABLE)


def two_readers(case):
    """A float value that two QuantizeLinear read, and a DequantizeLinear for each reader."""
    codes = case.codes(case.code_type(), (3, 50))
    fed, scale = case.fed("x_codes", codes), case.scale(0.01, 0.06)
    zero = case.zero(codes.dtype)
    first = case.dequantize("first", fed, scale, zero)
    second = case.dequantize("second", fed, scale, zero)
    y = case.node("Mul", [first, case.node("Sigmoid", [second], "gate")], "silu")
    case.quantize("y", y, scale, case.code_type())
    case.quantize("z", y, scale * 0.7, case.code_type())
    case.quanta = 0
    case.expect("y", TABLE)
    case.expect("z", TABLE)


def turned_weights(case):
    """Weights that are transposed between DequantizeLinear and MatMul."""
    m, k, n = case.size(1, 9), case.size(1, 70), case.size(1, 20)
    a, _, a_scale, _ = case.input("a", case.pick((m, k), (2, m, k)))
    w, w_scales = case.weights((n, k), 0, case.chance(0.5))
    turned = case.node("Transpose", [w], "turned", **case.pick({}, {"perm": [1, 0]}))
    y = case.node("MatMul", [a, turned], "matmul")
    case.quantize("y", case.clip(y), sum_scale(case, k, a_scale, w_scales), case.code_type())
    case.expect("matmul", PRODUCT + "QLinearMatMul")


def matmul_bias(case):
    """MatMul and an Add of a vector; sometimes a bias that is too large, or too fine for the result's scale."""
    m, k, n = case.size(1, 9), case.size(1, 70), case.size(1, 20)
    a, _, a_scale, _ = case.input("a", case.pick((m, k), (2, m, k), (2, 3, m, k), (k,)))
    w, w_scales = case.weights((k, n), 1, case.chance(0.5))
    sums = np.float64(a_scale) * w_scales
    bias = case.bias(n, sums) or [case.constant("bias", np.zeros(n, np.float32))]
    y = case.node("MatMul", [a, w], "matmul")
    y = case.node("Add", case.pick([y, *bias], [*bias, y]), "add")
    case.quantize("y", case.clip(y), sum_scale(case, k, a_scale, w_scales), case.code_type())
    case.expect("matmul", PRODUCT + "QGemm")


def gemm_forms(case):
    """Factors, and C in each shape that all rows share."""
    m, k, n = case.size(1, 9), case.size(1, 70), case.size(1, 20)
    alpha, beta = case.pick((1.0, 0.5), (0.25, 1.0), (2.0, 3.0), (-1.0, 1.0))
    turn_b = case.size(0, 1)
    a, _, a_scale, _ = case.input("a", (m, k))
    w, w_scales = case.weights((n, k) if turn_b else (k, n), 0 if turn_b else 1, case.chance(0.5))
    shape = case.pick((n,), (1, n), (1,), ())
    c = case.constant("c", (case.rng.normal(0, 20, shape) * float(a_scale) * w_scales.max()).astype(np.float32))
    y = case.node("Gemm", [a, w, c], "gemm", alpha=alpha, beta=beta, transB=turn_b)
    case.quantize("y", case.clip(y), sum_scale(case, k, a_scale, w_scales) * abs(alpha), case.code_type())
    case.expect("gemm", PRODUCT + "QGemm")


def conv_bias(case):
    """A bias that an Add behind Conv adds, one a channel."""
    x, _, x_scale, _ = case.input("x", (1, 3, 6, 5))
    w, w_scales = case.weights((4, 3, 2, 2), 0, case.chance(0.5))
    bias = (case.rng.normal(0, 20, case.pick((4, 1, 1), (1, 4, 1, 1), (1,))) * float(x_scale) * w_scales.max())
    y = case.node("Conv", [x, w], "conv")
    y = case.node("Add", [y, case.constant("bias", bias.astype(np.float32))], "add")
    case.quantize("y", case.clip(y), sum_scale(case, 12, x_scale, w_scales), case.code_type())
    case.expect("conv", PRODUCT + "QLinearConv")


def conv_transpose(case):
    groups, inner, outer = case.pick(1, 1, 2, 3), case.size(1, 5), case.size(1, 4)
    spatial = case.pick(1, 2, 2)
    stride = case.size(1, 3)
    kernel = [case.size(stride, 4) for _ in range(spatial)]
    pads = [case.size(0, k - 1) for k in kernel * 2]
    x, _, x_scale, _ = case.input("x", (case.size(1, 2), groups * inner, *[case.size(3, 6) for _ in range(spatial)]))
    w, w_scales = case.weights((groups * inner, outer, *kernel), 1, case.chance(0.5))
    sums = np.float64(x_scale) * w_scales
    bias = case.bias(groups * outer, np.tile(sums, groups) if sums.size > 1 else sums)
    attributes = case.pick({}, {"pads": pads}, {"pads": pads, "output_padding": [case.size(0, stride - 1)] * spatial})
    y = case.node("ConvTranspose", [x, w, *bias], "op", group=groups, strides=[stride] * spatial, **attributes)
    terms = inner * int(np.prod(kernel)) // stride**spatial + 1
    case.note += f" {kernel} stride {stride} group {groups} {attributes}"
    case.quantize("y", case.clip(y), sum_scale(case, terms, x_scale, w_scales), case.code_type())
    case.expect("op", PRODUCT + "QLinearConv")


def wide_bias(case):
    """A bias along another axis than that of channels: the product stays as written."""
    x, _, x_scale, _ = case.input("x", (1, 3, 4, 4))
    w, w_scales = case.weights((4, 3, 1, 1), 0, False)
    bias = case.constant("bias", case.rng.normal(0, 1, case.pick((4,), (1, 4), (4, 4), (1, 1, 4, 1))).astype(np.float32))
    y = case.node("Add", [case.node("Conv", [x, w], "conv"), bias], "add")
    case.quantize("y", y, sum_scale(case, 3, x_scale, w_scales), case.code_type())
    case.quanta = 0
    case.expect("conv", PRODUCT, told=False)


def softmax(case):
    shape = (case.size(1, 3), case.size(1, 5), case.size(1, 60))
    dtype = case.code_type()
    x, _, _, _ = case.input("x", shape, dtype, scale=case.scale(0.01, 0.3))
    y = case.node("Softmax", [x], "softmax", **case.pick({}, {"axis": case.size(-2, 2)}))
    case.quantize("y", y, case.pick(1 / 256, 1 / 255, case.scale(0.001, 0.4)), dtype)
    case.expect("softmax", MOVES)


def mean(case):
    dtype = case.code_type()
    x, _, scale, _ = case.input("x", (2, case.size(1, 6), case.size(1, 9), case.size(1, 9)), dtype)
    axes, keep = case.pick([2, 3], [-1], [1, 2], None), case.size(0, 1)
    if axes is not None and case.opset >= 18:
        y = case.node("ReduceMean", [x, case.constant("axes", np.array(axes, np.int64))], "mean", keepdims=keep)
    else:
        y = case.node("ReduceMean", [x], "mean", keepdims=keep, **({} if axes is None else {"axes": axes}))
    case.quantize("y", y, scale * case.rng.uniform(0.4, 1.2), dtype)
    case.expect("mean", MOVES)


def mixed_constant(case):
    """An 8-bit operand of the other sign that is constant."""
    dtype = case.code_type()
    other = np.dtype(np.int8) if dtype == np.uint8 else np.dtype(np.uint8)
    a, _, a_scale, _ = case.input("a", (2, 3, 8), dtype)
    scale, zero = case.scale(), case.zero(other)
    b = case.dequantize("b", case.constant("b_codes", case.codes(other, case.pick((3, 1), (8,), (1, 3, 8)))), scale, zero)
    op = case.pick("Add", "Mul")
    y = case.node(op, [a, b], "op")
    case.quantize("y", y, a_scale * scale * 90 if op == "Mul" else (a_scale + scale) * 0.8, dtype)
    case.expect("op", MOVES)


def inner(case):
    """Another pattern in a branch of an If, its constants there or outside."""
    pattern = case.pick(conv_bias, conv_transpose, long_chain, matmul_bias, moved_result, turned_weights, mean)
    branch = Case(case.prefix + "in_", case.opset, case.rng)
    pattern(branch)
    case.inputs, case.feeds, case.quanta = branch.inputs, branch.feeds, branch.quanta
    case.expected = [("in_" + node, sentence, told) for node, sentence, told in branch.expected]
    case.note = pattern.__name__ + branch.note
    inside = case.chance(0.5)
    case.constants = [] if inside else branch.constants
    done = helper.make_graph(branch.nodes, "then", [], branch.outputs, branch.constants if inside else [])
    other = [helper.make_node("Constant", [], [o.name + "_"], value=helper.make_tensor(
        "zero", o.type.tensor_type.elem_type, [1], [0])) for o in branch.outputs]
    none = helper.make_graph(other, "else", [], [helper.make_tensor_value_info(
        o.name + "_", o.type.tensor_type.elem_type, None) for o in branch.outputs])
    which = case.fed("which", np.array(True))
    names = [o.name + "_out" for o in branch.outputs]
    case.nodes.append(helper.make_node("If", [which], names, then_branch=done, else_branch=none))
    case.outputs = [helper.make_tensor_value_info(n, o.type.tensor_type.elem_type, None)
                    for n, o in zip(names, branch.outputs)]


FLOAT = np.dtype(np.float32)


def floats(case, name, shape):
    return case.fed(name, case.rng.normal(0, 2, shape).astype(np.float32))


def element_chain(case):
    """Operators that stay in float, from codes or floats to codes or floats, broadcasting in between."""
    shape = (case.size(1, 3), case.size(1, 4), case.size(1, 40) if case.chance(0.8) else 2500)
    if case.chance(0.3):  # rows that are joined
        shape = (shape[0], case.size(5, 400), min(shape[2], 256))
    case.quanta = 0
    trips = case.chance(0.5)

    def code_type():
        return case.pick(U8, S8, np.dtype(np.uint16), np.dtype(np.int16)) if case.opset >= 21 else case.code_type()

    if case.chance(0.6):
        y = case.input("x", shape, scale=case.scale(0.01, 0.06))[0]
    else:
        y = floats(case, "x", shape)
    for i in range(case.size(2, 7)):
        other = case.pick(shape, shape[2:], (shape[1], 1), (1,), ())
        operand = case.pick(lambda: case.constant(f"c{i}", case.rng.normal(0, 1, other).astype(np.float32)),
                            lambda: floats(case, f"f{i}", other), lambda: case.input(f"d{i}", other)[0], lambda: y)()
        op = case.pick("Add", "Mul", "Sub", "Sum", "Max", "Relu", "Erf", "LeakyRelu", "HardSigmoid", "Clip", "gate",
                       *(["Gelu"] if case.opset >= 20 else []))
        if op == "gate":
            y = case.node("Mul", [y, case.node("Sigmoid", [y], f"gate{i}")], f"n{i}")
        elif op == "Clip":
            least = case.constant(f"least{i}", np.float32(-1)) if case.chance(0.5) else ""
            y = case.node("Clip", [y, least, case.constant(f"most{i}", np.float32(3))], f"n{i}")
        elif op == "Gelu":
            y = case.node("Gelu", [y], f"n{i}", approximate=case.pick("none", "tanh"))
        elif op in ("Relu", "Erf", "LeakyRelu", "HardSigmoid"):
            y = case.node(op, [y], f"n{i}", **({"alpha": 0.3} if op[-1] != "f" and op != "Relu" else {}))
        else:
            y = case.node(op, [y, operand] if case.chance(0.7) else [operand, y], f"n{i}")
        case.note += " " + op
        if trips and case.chance(0.5):
            y = parted(case, f"r{i}", y, case.scale(0.001, 0.06), code_type())
            case.note += " rounded"
    if case.chance(0.6):
        case.quantize("y", y, 0.05, code_type(), None if case.opset >= 21 else "draw")
        return
    case.output(y, FLOAT)


def wide_chain(case):
    """Functions of one 16-bit value, of as many elements as are worth a table or not; sometimes between others."""
    dtype = case.pick(np.dtype(np.uint16), np.dtype(np.int16))
    scale = case.scale(0.00002, 0.0002)
    shape = (2, 4, case.pick(60, 2048, 3000))
    y = case.input("x", shape, dtype, scale)[0]
    if case.chance(0.4):
        row = case.constant("row", case.rng.normal(0, 1, (4, 1)).astype(np.float32))
        y = parted(case, "begun", case.node("Add", [y, row], "bias"), scale, dtype)
        case.note += " behind a row"
    for i in range(case.size(1, 3)):
        number = case.constant(f"c{i}", case.rng.normal(0, 1, case.pick((), (1,), (1, 1, 1))).astype(np.float32))
        op = case.pick("Add", "Mul", "gate")
        if op == "gate":
            y = case.node("Mul", [y, case.node("HardSigmoid", [y], f"gate{i}")], f"n{i}")
        else:
            y = case.node(op, case.pick([y, number], [number, y]), f"n{i}")
        y = parted(case, f"r{i}", y, scale * case.rng.uniform(0.3, 1.5), dtype)
    y = case.node("Sigmoid", [y], "last")
    if case.chance(0.4):
        other = case.input("other", shape, dtype, scale)[0]
        y = case.node("Add", [parted(case, "done", y, 1 / 60000, dtype), other], "sum")
        case.note += " before a sum"
    case.quantize("y", y, scale, dtype)
    case.quanta = 0
    case.expect("y", "runs strip by strip")


def moved_chain(case):
    """Moves, and bounds among them, between float operators and QuantizeLinear; sometimes read by others, too."""
    shape = (2, 4, 6, 6)
    x = case.input("x", shape)[0] if case.chance(0.5) else floats(case, "x", shape)
    y = case.node("Add", [x, floats(case, "f", case.pick(shape, (6,), (4, 1, 1)))], "sum")
    case.pad_value = case.rng.uniform(-1, 1)
    y = between = moved(case, case.node("Relu", [y], "relu") if case.chance(0.3) else y)
    compares = case.note.split()[-1] in ("MaxPool", "ReduceMax")  # of floats that may be NaN
    if case.chance(0.3):
        compares = True
        y = case.node("Clip", [y, case.constant("least", np.float32(-0.7)), case.constant("most", np.float32(2.5))],
                      "last")
    case.quantize("y", y, 0.05, case.code_type())
    case.quanta = 0
    shared = case.chance(0.2)
    if shared:
        case.also.append(between)
    split = case.note.split()[-1] in ("left", "Split")
    case.expect("y", "data movement between them works on the quantized values", told=not (shared or split or compares))


def residual(case):
    """A sum that is quantized for one reader and goes on in float for another."""
    shape = (1, 3, case.size(1, 50))
    case.quanta = 0
    a, dtype, scale, _ = case.input("a", shape)
    b = floats(case, "b", shape)
    y = case.node("Relu", [case.node("Add", [a, b], "sum")], "relu")
    case.quantize("q", y, scale, dtype)
    late = case.node("Add", [y, case.input("c", shape)[0]], "late")
    case.output(late, FLOAT)
    if case.chance(0.3):
        case.also.append(y)
    case.expect("q", "runs strip by strip")
    case.expect("late", "runs strip by strip")


def early_reader(case):
    """The float value before QuantizeLinear is read by a node that stands before it, and that it depends on."""
    x = floats(case, "x", (2, 30))
    y = case.node("Relu", [case.node("Neg", [x], "neg")], "relu")
    top = case.node("ReduceMax", [y], "top", keepdims=1)
    total = case.node("Add", [y, top], "total")
    case.quantize("y", total, 0.05, U8)
    case.quantize("z", y, 0.05, S8)
    case.quanta = 0
    case.expect("y", "runs strip by strip")


def row_of_constants(case):
    """As many constants along the last axis as a table has results: no function of the code alone."""
    x, _, scale, _ = case.input("x", (2, 256), scale=case.scale(0.01, 0.06))
    constants = case.constant("row", case.rng.uniform(-2, 2, 256).astype(np.float32))
    y = case.node(case.pick("Add", "Mul"), case.pick([x, constants], [constants, x]), "op")
    y = case.node("Sigmoid", [y], "gate")
    case.quantize("y", y, case.scale(0.003, 0.01), case.code_type())
    case.quanta = 0
    case.expect("y", TABLE, told=False)


def refused_pad(case):
    """A constant that has no code of its own is filled in before an operator: it stays as written."""
    x, dtype, scale, _ = case.input("x", (2, 5))
    filled = case.constant("filled", np.float32(scale * 1.5))
    y = case.node("Pad", [x, case.constant("pads", np.array([0, 1, 0, 1])), filled], "pad")
    y = case.node("Add", [y, case.input("b", (7,), dtype)[0]], "op")
    case.quantize("y", y, scale * 2, dtype)
    case.quanta = 0
    case.expect("op", MOVES, told=False)


def quantized_gates(case):
    """Quantized operators that all depend on the same codes; sometimes on others, too, or on a row of constants."""
    dtype = case.code_type()
    shape = (case.size(1, 3), case.size(1, 300))

    def parameters(name):
        zero = case.zero(dtype)
        return [case.constant(name + "_scale", case.scale(0.005, 0.05)),
                case.constant(name + "_zero", np.array(0, dtype) if zero is None else zero)]

    def unary(op, a, name, **attributes):
        known[name] = parameters(name)
        return case.node(op, [a[0], *known[a[1]], *known[name]], name, domain="com.microsoft", **attributes), name

    def binary(op, a, b, name):
        known[name] = parameters(name)
        return case.node(op, [a[0], *known[a[1]], b[0], *known[b[1]], *known[name]], name, domain="com.microsoft"), name

    known = {"x": parameters("x"), "other": parameters("other")}
    x = y = (case.fed("x", case.codes(dtype, shape)), "x")
    other = (case.pick(lambda: case.fed("other", case.codes(dtype, shape)),
                       lambda: case.constant("other", case.codes(dtype, (shape[1],))),
                       lambda: case.constant("other", case.codes(dtype, ())))(), "other")
    for i in range(case.size(1, 4)):
        kind = case.pick("gate", "gate", "leaky", "first", "other")
        before = y
        if kind == "gate":
            y = binary("QLinearMul", y, unary("QLinearSigmoid", y, f"s{i}"), f"y{i}")
        elif kind == "leaky":
            y = unary("QLinearLeakyRelu", y, f"y{i}", alpha=0.2)
        else:
            y = binary("QLinearAdd", x if kind == "first" else other, y, f"y{i}")
        case.note += " " + kind
        if case.chance(0.2) and before != x:
            case.also.append(before[0])
    case.output(y[0], dtype)
    case.quanta = 0
    if kind == "gate":
        case.expect(y[1], TABLE)


CHAINS = {p.__name__: p for p in (moved_operand, moved_result, long_chain, two_readers, turned_weights, matmul_bias,
                                  gemm_forms, conv_bias, conv_transpose, wide_bias, softmax, mean, mixed_constant, inner, element_chain,
                                  wide_chain, moved_chain, residual, early_reader, refused_pad, row_of_constants,
                                  quantized_gates)}
