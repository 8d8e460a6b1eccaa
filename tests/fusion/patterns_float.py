# SPDX-License-Identifier: Apache-2.0
"""Patterns of floats, as patterns.py has those of codes: what follows convolutions, dynamically quantized ones and others.

Exact where nothing else is said: the same bits as the graph as written.
"""

import numpy as np
from onnx import TensorProto, helper

FLOAT, HALF = np.dtype(np.float32), np.dtype(np.float16)


def quantized_input(case, name, value):
    """DynamicQuantizeLinear: codes, scale, zero point."""
    prefix = case.prefix + name
    case.nodes.append(helper.make_node("DynamicQuantizeLinear", [value], [prefix + "_q", prefix + "_s", prefix + "_z"],
                                       name=prefix))
    return prefix + "_q", prefix + "_s", prefix + "_z"


def image(case, name, shape):
    return case.fed(name, case.rng.normal(0, 2, shape).astype(np.float32))


def along_channels(case, name, values, rank):
    """Values of channels as broadcasting wants them: reshaped in the graph, or a constant of that shape."""
    if case.chance(0.5):
        shape = case.constant(name + "_shape", np.array([1, -1] + [1] * (rank - 2), np.int64))
        return case.node("Reshape", [case.constant(name + "_flat", values), shape], name)
    ones = [1] * (rank - 2)
    return case.constant(name, values.reshape(case.pick([1, len(values), *ones], [len(values), *ones])))


def integer_conv(case, name, value, filters, channels, spatial, **attributes):
    """ConvInteger of a dynamically quantized value, with its scaling and a bias."""
    dtype, groups = case.code_type(), attributes.get("group", 1)
    rank, codes = spatial + 2, quantized_input(case, name + "_x", value)
    kernel = attributes.pop("kernel", [1] * spatial)
    inputs = [codes[0], case.constant(name + "_w", case.codes(dtype, (filters, channels // groups, *kernel))), codes[2]]
    per_channel = case.chance(0.4)
    if case.chance(0.6):
        zero = case.codes(dtype, (filters,) if per_channel else ())
        inputs.append(case.constant(name + "_wz", zero))
    y = case.node("ConvInteger", inputs, name, **attributes)
    scale = np.array([case.scale() for _ in range(filters if per_channel else 1)], np.float32)
    scale = (along_channels(case, name + "_ws", scale, rank) if per_channel else
             case.constant(name + "_ws", scale.reshape(case.pick((), (1,)))))
    y = case.node("Cast", [y], name + "_cast", to=TensorProto.FLOAT)
    both = case.node("Mul", case.pick([codes[1], scale], [scale, codes[1]]), name + "_scales")
    y = case.node("Mul", [y, both], name + "_scaled")
    if case.chance(0.7):
        bias = along_channels(case, name + "_b", case.rng.normal(0, 50, filters).astype(np.float32), rank)
        y = case.node("Add", case.pick([y, bias], [bias, y]), name + "_biased")
    return y


def dynamic_conv(case):
    spatial, groups = case.pick(1, 2, 2, 3), case.pick(1, 1, 2, 6)
    channels, filters = 6, case.pick(6, 12)
    shape = (case.size(1, 2), channels, *[case.size(3, 9) for _ in range(spatial)])
    kernel = [case.pick(1, 3) for _ in range(spatial)]
    y = integer_conv(case, "conv", image(case, "x", shape), filters, channels, spatial, kernel=kernel, group=groups,
                     pads=[(k - 1) // 2 for k in kernel] * 2)
    shared = case.chance(0.3)
    if shared:
        case.also.append(case.prefix + "conv_x_" + case.pick("q", "s", "z"))
    case.expect("conv", "into ConvIntegerToFloat")
    case.expect("conv", "operand's quantization", told=not shared)
    rest = case.pick("nothing", "other", "same", "spread", "larger")
    if rest == "other": # both are sums that could take the other one in
        z = integer_conv(case, "branch", image(case, "x2", shape), filters, channels, spatial)
        case.expect("branch", "into ConvIntegerToFloat")
        y = case.node(case.pick("Add", "Sum"), case.pick([y, z], [z, y]), "sum")
    elif rest == "same": # through a function that keeps the shape
        z = case.node("MaxPool", [image(case, "x2", (shape[0], filters, *shape[2:]))], "pool",
                      kernel_shape=[1] * spatial)
        y = case.node("Add", case.pick([y, z], [z, y]), "sum")
        case.expect("conv", ", sum")
    elif rest == "spread": # one a channel of each image
        z = case.node("MaxPool", [image(case, "x2", (shape[0], filters, *[1] * spatial))], "pool",
                      kernel_shape=[1] * spatial)
        y = case.node("Add", case.pick([y, z], [z, y]), "sum")
    elif rest == "larger":
        z = image(case, "x2", (3, 1, filters, *shape[2:]))
        y = case.node("Add", case.pick([y, z], [z, y]), "sum")
        case.expect("conv", ", sum", told=False)
    case.note = f"{rest} {shape}"
    case.output(case.clip(y), FLOAT)


def dynamic_conv_wanted(case):
    """A value inside the chain is requested, or read twice: what is behind it stays as written."""
    y = integer_conv(case, "conv", image(case, "x", (1, 4, 5, 5)), 8, 4, 2)
    if case.chance(0.5):
        case.also.append(case.pick(case.prefix + "conv", case.prefix + "conv_cast", y))
    else:
        case.output(case.node("Neg", [y], "neg"), FLOAT)
    case.output(case.node("Relu", [y], "relu"), FLOAT)
    case.expect("conv", "bounds", told=False)


def dynamic_conv_spread(case):
    """The convolution's result is spread by what is added to it: the model is planned as written."""
    y = integer_conv(case, "conv", image(case, "x", (1, 4, 1, 1)), 8, 4, 2)
    z = case.node("MaxPool", [image(case, "x2", (1, 8, 5, 5))], "pool", kernel_shape=[1, 1])
    case.output(case.node("Add", [y, z], "sum"), FLOAT)
    case.expect("conv", ", sum")


def normalize(case, value, channels):
    """BatchNormalization, or a factor and a term; sometimes a statistic that is not constant."""
    def vector(name, low, high):
        return case.constant(name, case.rng.uniform(low, high, channels).astype(np.float32))

    if case.chance(0.5):
        inputs = [value, vector("n_scale", -2, 2), vector("n_bias", -2, 2), vector("n_mean", -3, 3),
                  vector("n_var", 0.1, 4)]
        return case.node("BatchNormalization", inputs, "normal", epsilon=case.pick(1e-5, 1e-3))
    factor = along_channels(case, "factor", case.rng.uniform(-2, 2, channels).astype(np.float32), 4)
    value = case.node("Mul", case.pick([value, factor], [factor, value]), "scaled")
    return case.node("Add", [value, case.constant("shift", np.float32(case.rng.normal()))], "shifted")


def gate(case, x):
    """A value times its hard sigmoid, in the ways that models write it, and numbers behind that."""
    def number(name, value):
        return case.constant(name, np.float32(value).reshape(case.pick((), (1,), (1, 1, 1))))

    way = case.pick("whole" if case.opset >= 14 else "sigmoid", "sigmoid", "bounds", "bounds")
    if way == "whole":
        y = case.node("HardSwish", [x], "swish")
    else:
        if way == "sigmoid":
            t = case.node("HardSigmoid", [x], "t", alpha=case.pick(0.2, 1 / 6), beta=0.5)
        else:
            shift = number("shift3", 3)
            t = case.node("Add", case.pick([x, shift], [shift, x]), "t0")
            t = case.node("Clip", [t, case.constant("zero", np.float32(0)), case.constant("six", np.float32(6))], "t")
        y = case.node("Mul", case.pick([x, t], [t, x]), "gated")
    if case.chance(0.5):
        y = case.node("Div", [y, number("divisor", 6)], "divided")
    if case.chance(0.3):
        y = case.node("Mul", case.pick(lambda *both: list(both), lambda a, b: [b, a])(y, number("gain", 0.7)), "gained")
    if case.chance(0.3):
        y = case.node("Add", [y, number("offset", -0.3)], "offset_by")
    return y


def float_conv(case):
    groups, channels, filters = case.pick((1, 3, 8), (1, 8, 8), (2, 4, 6), (6, 6, 6), (1, 16, 40))
    kernel, size = case.pick(1, 3), case.size(3, 12)
    w = case.constant("w", case.rng.normal(0, 1, (filters, channels // groups, kernel, kernel)).astype(np.float32))
    inputs = [image(case, "x", (case.size(1, 2), channels, size, size)), w]
    if case.chance(0.6):
        inputs.append(case.constant("b", case.rng.normal(0, 1, filters).astype(np.float32)))
    y = case.node("Conv", inputs, "conv", group=groups, pads=[kernel // 2] * 4)
    steps = case.pick((), ("normal",), ("sum",), ("normal", "sum"), ("term",), ("sum", "normal"))
    for step in steps:
        if step == "normal":
            y = normalize(case, y, filters)
            # products that cancel: a share of their magnitudes, not of the result
            case.rtol, case.atol = 1e-5, 1e-6 * 8 * channels * kernel * kernel
        elif step == "sum":
            z = case.node("MaxPool", [image(case, "x2", (*case.feeds[inputs[0]].shape[:1], filters, size, size))],
                          "pool", kernel_shape=[1, 1])
            y = case.node(case.pick("Add", "Sum"), case.pick([y, z], [z, y]), "sum")
        else:
            y = case.node("Add", [y, along_channels(case, "term", case.rng.normal(0, 1, filters).astype(np.float32),
                                                    4)], "moved")
            case.rtol, case.atol = 1e-6, 1e-5
    gated = steps != ("sum", "normal") and case.chance(0.4)
    end = gate(case, y) if gated else case.clip(y)
    case.note = f"{steps} {end}"
    if gated:
        case.expect("conv", "a hard sigmoid")
    if steps and steps[0] != "sum":
        case.expect("conv", "factors and terms")
    if "sum" in steps:
        case.expect("conv", "a sum")
    case.output(end, FLOAT)


def many_bounds(case):
    """As many bounds in a row as a chain takes and more, some apart; sometimes one of them is read twice, and the chain
    ends there, wherever its other reader stands."""
    w = case.constant("w", case.rng.normal(0, 1, (4, 3, 1, 1)).astype(np.float32))
    y = case.node("Conv", [image(case, "x", (1, 3, 5, 5)), w], "conv")
    count, shared, late = case.pick(2, 9, 12, 13, 16), case.size(0, 20), case.chance(0.5)
    clips = [y]
    for i in range(count):
        low, high = sorted(case.rng.uniform(-3, 3, 2) / np.sqrt(i + 1))
        bounds = [case.constant(f"low{i}", np.float32(low)), case.constant(f"high{i}", np.float32(high))]
        y = case.node("Clip", [y, *bounds], f"clip{i}")
        clips.append(y)
        if i + 1 == shared and not late:
            case.output(case.node("Neg", [y], "negative"), FLOAT)
    if shared < len(clips) and (late or not shared):
        case.output(case.node("Neg", [clips[shared]], "negative"), FLOAT)
    case.note = f"{count} {shared} {late}"
    case.expect("conv", "bounds after it", told=shared > 0)
    case.output(y, FLOAT)


def half_conv(case):
    """Convolutions of float16 with bounds behind them, and a sum, which stops fusion: rounded before it is added."""
    channels, filters, kernel, half = case.size(1, 9), case.size(1, 9), case.pick(1, 3), np.dtype(np.float16)
    w = case.constant("w", case.rng.normal(0, 1, (filters, channels, kernel, kernel)).astype(half))
    x = case.fed("x", case.rng.normal(0, 1, (1, channels, 6, case.size(3, 12))).astype(half))
    y = case.node("Conv", [x, w], "conv")
    bounded = case.chance(0.7)
    if not bounded:
        y = case.node("Add", [y, y], "sum")
    if case.chance(0.5):
        y = case.node("Relu", [y], "relu")
    else:
        low, high = (case.constant(name, half.type(case.rng.normal(at, 0.3))) for name, at in (("low", -2), ("high", 2)))
        y = case.node("Clip", [y, low, high], "clip")
    case.output(y, half)
    case.note = "bounds" if bounded else "sum"
    case.expect("conv", "bounds after it into FusedConv", told=bounded)


def gemm_driver_f32(case):
    """MatMul, Gemm or ConvTranspose of constant weights; then factors and terms of the columns or channels, and bounds;
    sometimes the product is requested itself, or a term is not constant: fusion stops there."""
    kind = case.pick("MatMul", "Gemm", "ConvTranspose")
    groups, lies = case.pick(1, 1, 2, 3), True
    m, k, n = case.size(1, 9), 6 * case.size(1, 12), 6 * case.size(1, 7)

    def weights(*shape):
        return case.constant("w", case.rng.normal(0, 1, shape).astype(np.float32))

    if kind == "MatMul":
        shape, last = case.pick((m, k), (2, m, k), (k,), (1, k)), (n,)
        y = case.node(kind, [image(case, "x", shape), weights(k, n)], "product")
    elif kind == "Gemm":
        turned, shape, last = case.chance(0.5), (m, k), (n,)
        inputs = [image(case, "x", shape), weights(n, k) if turned else weights(k, n)]
        if case.chance(0.6):
            own = case.pick((n,), (1, n), (1,), (m, 1))
            inputs.append(case.constant("c", case.rng.normal(0, 1, own).astype(np.float32)))
            lies = own != (m, 1) or m == 1 # along the columns
        y = case.node(kind, inputs, "product", transB=int(turned), alpha=case.pick(1.0, 0.5), beta=case.pick(1.0, 3.0))
    else:
        shape, last = (2, k, case.size(2, 5), case.size(2, 5)), (n, 1, 1)
        inputs = [image(case, "x", shape), weights(k, n // groups, case.size(1, 3), case.size(1, 3))]
        if case.chance(0.5):
            inputs.append(case.constant("b", case.rng.normal(0, 1, n).astype(np.float32)))
        y = case.node(kind, inputs, "product", group=groups, strides=case.pick([1, 1], [2, 2]))
    product, stopped = y, case.chance(0.2)
    steps = case.pick((), ("term",), ("factor",), ("factor", "term"), ("normal",), ("fed",))
    if steps == ("normal",) and kind == "MatMul":
        steps = ("term",)
    for step in steps:
        values = case.rng.normal(0, 1, n).astype(np.float32)
        if step == "normal":
            four = [case.constant(f"n{i}", case.rng.uniform(0.2, 2, n).astype(np.float32)) for i in range(4)]
            y = case.node("BatchNormalization", [y, *four], "normal")
        elif step == "fed":
            y = case.node("Add", [y, image(case, "other", last)], "fed")
        else:
            other = case.constant(step + "_values", case.pick(values.reshape(last), values[:1], values[0]))
            y = case.node("Add" if step == "term" else "Mul", case.pick([y, other], [other, y]), step)
    end = case.clip(y)
    if stopped and end != product:
        case.also.append(product)
    case.rtol, case.atol = (0, 0) if steps in ((), ("fed",)) or (steps == ("term",) and kind == "MatMul") else (1e-5, 2e-4)
    case.note = f"{kind} {shape} {n} {steps} {end} {stopped} {lies}"
    joined = steps not in ((), ("fed",)) and not stopped and lies
    case.expect("product", "factors and terms", told=joined)
    case.expect("product", "bounds after it", told=end != y and not stopped and (joined or not steps))
    case.output(end, FLOAT)


def written_norm(case):
    """Layer or root-mean-square normalization as exporters write it out."""
    axes = case.size(1, 2)
    shape = (2, case.size(1, 5), case.size(2, 6), case.size(2, 70))
    x = case.node("Neg", [image(case, "x", shape)], "neg")
    centred, twice = case.chance(0.7), case.chance(0.3)

    def mean(name, value, before=0):
        last = list(range(-axes - before, -before))
        if case.opset >= 18:
            return case.node("ReduceMean", [value, case.constant(name + "_axes", np.array(last, np.int64))], name)
        return case.node("ReduceMean", [value], name, axes=last)

    d = above = x
    if centred:
        average = mean("average", x)
        d = above = case.node("Sub", [x, average], "centred")
        above = case.node("Sub", [x, average], "again") if twice else d
    square = (case.node("Pow", [d, case.constant("two", np.float32(2))], "square") if case.chance(0.6)
              else case.node("Mul", [d, d], "square"))
    odd = case.chance(0.15)  # the variance of other axes
    inner = mean("variance", square, int(odd))
    if case.chance(0.2):
        case.also.append(case.pick(inner, square, d))
    epsilon = case.constant("epsilon", np.float32(case.pick(1e-5, 1e-3)))
    root = case.node("Sqrt", [case.node("Add", case.pick([inner, epsilon], [epsilon, inner]), "raised")], "root")
    kind = case.pick("Div", "Reciprocal", "one")
    if kind == "Div":
        y = case.node("Div", [above, root], "normal")
    else:
        inverse = (case.node("Reciprocal", [root], "inverse") if kind == "Reciprocal"
                   else case.node("Div", [case.constant("one", np.float32(1)), root], "inverse"))
        y = case.node("Mul", case.pick([above, inverse], [inverse, above]), "normal")
    own = shape[-axes:]
    gamma = case.constant("gamma", case.rng.normal(1, 0.3, own).astype(np.float32))
    y = case.node("Mul", case.pick([y, gamma], [gamma, y]), "scaled")
    end = "scaled"
    if case.chance(0.7):
        beta = case.constant("beta", case.rng.normal(0, 1, own).astype(np.float32))
        y = case.node("Add", case.pick([y, beta], [beta, y]), "shifted")
        end = "shifted" if centred else end
    case.note = f"{shape} {axes} {kind} {centred} {twice}"
    case.rtol, case.atol = 2e-5, 2e-5
    case.output(y, FLOAT)
    if not case.also:
        kind = "LayerNormalization" if centred else "RMSNormalization"
        case.expect(end, "become one " + kind, told=not odd)


def moved_keys(case):
    """Products of float matrices whose right operand is shared by heads, turned, and has a factor, in some order; or a
    factor for each column, which stays where it is."""
    batch, heads, times, m, k, n = (case.size(1, high) for high in (2, 3, 4, 3, 40, 40))
    turned, factor, more = case.chance(0.7), case.chance(0.6), case.pick("", "", "reader", "requested", "flat")
    shape = (batch, heads, n, k) if turned else (batch, heads, k, n)
    half, columns = case.chance(0.3), factor and case.chance(0.25)

    def operand(name, shape):
        return case.fed(name, case.rng.normal(0, 2, shape).astype(HALF if half else FLOAT))

    y = operand("keys", shape)
    if case.chance(0.8):
        y = case.node("Unsqueeze", [y, case.constant("axis", np.array([2], np.int64))], "apart")
        wide = np.array([case.pick(1, batch), heads, times, *shape[2:]], np.int64)
        y = case.node("Expand", [y, case.constant("wide", wide)], "spread")
        heads *= times
        if more == "reader":
            case.output(case.node("Neg", [y], "other"), HALF if half else FLOAT)
        elif more == "requested":
            case.also.append(y)
        joined = np.array([batch, heads, *shape[2:]], np.int64)
        y = case.node("Reshape", [y, case.constant("joined", joined)], "shared")
    scale = case.rng.uniform(0.1, 1, n) if columns else np.array(0.3)
    scale = case.constant("scale", scale.astype(HALF if half else FLOAT))
    if turned:
        y = case.node("Transpose", [y], "turned", perm=[0, 1, 3, 2])
    if factor:
        y = case.node("Mul", case.pick([y, scale], [scale, y]), "scaled")
    if more == "flat":  # runs that are no whole matrices
        y = case.node("Reshape", [y, case.constant("flat", np.array([-1, n], np.int64))], "flattened")
        a = operand("a", (m, batch * heads * k))
    else:
        a = operand("a", (batch, heads, m, k) if case.chance(0.8) else (m, k))
    case.note = f"{shape} {times} {m} turned {turned} factor {factor} {columns} {more}"
    case.rtol, case.atol = 0, 0
    case.output(case.node("MatMul", [a, y], "product"), HALF if half else FLOAT)
    case.expect("product", "Transpose of its right operand", told=more != "flat" and turned and not columns)


PATTERNS = {p.__name__: p for p in (gemm_driver_f32, moved_keys, written_norm, dynamic_conv, dynamic_conv_wanted, dynamic_conv_spread, float_conv,
                                    many_bounds, half_conv)}
