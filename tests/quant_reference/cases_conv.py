# SPDX-License-Identifier: Apache-2.0
"""Cases of ConvInteger and QLinearConv: ranks 1 to 3, groups, strides, dilations, every kind of padding."""

import numpy as np

import formats
import operators
import types_of
from cases import NEAR_TIES, TIE_SCALES, Spec, case, extreme_scales, integers, pick, scales
from formats import Tensor

# x's shape, w's shape, attributes
LAYOUTS = [
    ((1, 1, 3), (1, 1, 2), {}),
    ((2, 3, 9), (4, 3, 3), {"pads": [1, 2], "strides": [2]}),
    ((1, 4, 12), (6, 2, 3), {"group": 2, "dilations": [3]}),
    ((2, 4, 7), (8, 1, 4), {"group": 4, "auto_pad": "SAME_UPPER"}),
    ((1, 2, 11), (3, 2, 4), {"auto_pad": "SAME_LOWER", "strides": [3]}),
    ((1, 2, 8), (3, 2, 1), {"strides": [2]}),
    ((1, 1, 3, 3), (1, 1, 2, 2), {"pads": [1, 1, 1, 1]}),
    ((1, 3, 5, 6), (5, 3, 3, 3), {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}),
    ((2, 8, 6, 5), (16, 8, 1, 1), {}),
    ((2, 3, 8, 7), (4, 3, 3, 2), {"pads": [0, 1, 2, 0], "strides": [2, 1]}),
    ((1, 2, 9, 10), (4, 2, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    ((1, 6, 7, 7), (6, 1, 3, 3), {"group": 6, "pads": [1, 1, 1, 1]}),
    ((1, 6, 7, 7), (12, 1, 3, 3), {"group": 6, "pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ((1, 4, 6, 6), (6, 2, 2, 3), {"group": 2, "auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    ((1, 2, 7, 8), (3, 2, 4, 2), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    ((1, 2, 7, 8), (3, 2, 3, 3), {"auto_pad": "SAME_UPPER", "dilations": [2, 1]}),
    ((1, 2, 7, 8), (3, 2, 3, 3), {"auto_pad": "VALID", "strides": [2, 2]}),
    ((0, 2, 4, 4), (3, 2, 3, 3), {}),
    ((3, 16, 5, 5), (8, 16, 5, 5), {}),
    ((1, 5, 4, 4), (7, 5, 4, 4), {"pads": [3, 3, 3, 3]}),
    ((1, 32, 6, 6), (33, 32, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 1, 2, 2), (2, 1, 3, 3), {"pads": [2, 2, 2, 2], "strides": [3, 3]}),
    ((1, 2, 3, 4, 5), (3, 2, 2, 2, 2), {}),
    ((1, 3, 4, 4, 4), (2, 3, 3, 2, 3), {"pads": [1, 0, 1, 0, 1, 2], "strides": [2, 1, 2]}),
    ((2, 4, 4, 5, 3), (4, 1, 2, 3, 2), {"group": 4, "auto_pad": "SAME_UPPER"}),
    ((1, 4, 5, 5, 5), (6, 2, 2, 2, 2), {"group": 2, "dilations": [2, 1, 3], "pads": [1, 1, 1, 1, 1, 1]}),
    ((1, 2, 4, 4, 4), (2, 2, 1, 1, 1), {}),
    ((1, 3, 30, 31), (32, 3, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ((2, 64, 9, 8), (70, 64, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 72, 11, 13), (72, 1, 3, 3), {"group": 72, "pads": [1, 1, 1, 1]}),
    ((1, 72, 11, 13), (72, 1, 5, 5), {"group": 72, "pads": [2, 2, 2, 2], "strides": [2, 2]}),
    ((1, 33, 12, 12), (40, 33, 1, 1), {}),
    ((2, 64, 7, 7), (65, 64, 1, 1), {"strides": [2, 2], "pads": [0, 0, 1, 1]}),
    ((1, 48, 10, 10), (48, 12, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    ((1, 16, 300), (24, 16, 9), {"pads": [4, 4]}),
    ((1, 40, 90), (40, 1, 7), {"group": 40, "pads": [3, 3], "dilations": [2]}),
    ((1, 8, 9, 10, 11), (24, 8, 3, 3, 3), {"pads": [1, 1, 1, 1, 1, 1]}),
    ((1, 2, 3, 3, 3, 3), (3, 2, 2, 2, 2, 2), {"pads": [1, 0, 0, 1, 0, 0, 1, 0]}),
]
ZEROS = ["absent", "scalar", "one", "channel"]


def _operand(rng, type_name, shape):
    if rng.random() < 0.1:
        return Tensor(type_name, np.full(shape, formats.bounds(type_name)[int(rng.integers(2))]))
    return integers(rng, type_name, shape, pick(rng, ["full", "full", "small"]))


def _form(kind, channels):
    return {"scalar": (), "one": (1,), "channel": (channels,)}[kind]


def _attributes(rng, attributes, rank):
    """The attributes, now and then with a default written out."""
    attributes = dict(attributes)
    if rng.random() < 0.15:
        attributes.setdefault("group", 1)
        attributes.setdefault("strides", [1] * rank)
        attributes.setdefault("dilations", [1] * rank)
    return attributes


def conv_integer_specs():
    for version, names in types_of.CONV_INTEGER.items():
        for xt in names:
            for wt in names:
                for x_kind in ZEROS[:3]:
                    for w_kind in ZEROS:
                        for i in range(len(LAYOUTS)):
                            name = f"ConvInteger-{version} {xt}*{wt} x_zero_point={x_kind} w_zero_point={w_kind} layout={i}"
                            how = (version, xt, wt, x_kind, w_kind, i)
                            yield Spec("ConvInteger", version, name, lambda rng, how=how: make_integer(rng, *how))


def make_integer(rng, version, xt, wt, x_kind, w_kind, layout):
    x_shape, w_shape, attributes = LAYOUTS[layout]
    attributes = _attributes(rng, attributes, len(x_shape) - 2)
    x, w = _operand(rng, xt, x_shape), _operand(rng, wt, w_shape)
    x_zero = None if x_kind == "absent" else integers(rng, xt, _form(x_kind, 0))
    w_zero = None if w_kind == "absent" else integers(rng, wt, _form(w_kind, w_shape[0]))
    y = operators.conv_integer(x, w, x_zero, w_zero, **attributes)
    fixed = rng.random() < 0.6
    inputs = [("x", x, False), ("w", w, fixed), ("x_zero_point", x_zero, rng.random() < 0.5),
              ("w_zero_point", w_zero, fixed if rng.random() < 0.8 else not fixed)]
    while inputs[-1][1] is None:
        inputs.pop()
    return case(rng, "ConvInteger", version, inputs, attributes, [("y", y)])


def qlinear_conv_specs():
    for version, names in types_of.QLINEAR_CONV.items():
        for xt in names:
            for wt in names:
                for yt in names:
                    for kind in ZEROS[1:]:
                        for bias in ["no", "small", "large"]:
                            for i in range(len(LAYOUTS)):
                                name = f"QLinearConv-{version} {xt}*{wt}->{yt} w={kind} bias={bias} layout={i}"
                                how = (version, xt, wt, yt, kind, bias, i)
                                yield Spec("QLinearConv", version, name, lambda rng, how=how: make_qlinear(rng, *how))
                    for kind in ["ties", "near ties", "extreme"]:
                        for again in range(12):
                            name = f"QLinearConv-{version} {xt}*{wt}->{yt} scales={kind} #{again}"
                            how = (version, xt, wt, yt, kind)
                            yield Spec("QLinearConv", version, name, lambda rng, how=how: make_hard(rng, *how))


def make_hard(rng, version, xt, wt, yt, kind):
    """Sums that are biases, as x is its zero point, or small: each channel has a scale and a sum of its own."""
    channels, group = pick(rng, [(40, 1), (33, 33), (64, 1)])
    size = pick(rng, [(1, 1), (5, 7), (16, 16)])
    w_shape = (channels, 1 if group > 1 else 3, 1, 1)
    x_shape = (1, group if group > 1 else 3) + size
    x_zero, y_zero, w_zero = integers(rng, xt, ()), integers(rng, yt, ()), integers(rng, wt, ())
    x = Tensor(xt, np.full(x_shape, x_zero.codes) if kind == "near ties" or rng.random() < 0.5 else integers(rng, xt, x_shape).codes)
    w = integers(rng, wt, w_shape)
    if kind == "near ties":
        s, sa, sb, sy = pick(rng, NEAR_TIES)
        odd = rng.choice([1, 3, 5, -1, -3], channels)
        bias = np.where(np.abs(odd * s) < 2**31, odd * s, s)
        bias = bias + rng.integers(0, 2, channels) * rng.integers(-1, 2, channels)
        shift = 2.0 ** int(rng.integers(-30, 30))
        x_scale, w_scale, y_scale = sa * shift, np.full(channels, sb / shift), sy
    elif kind == "ties":
        sy = pick(rng, TIE_SCALES) * 2.0 ** int(rng.integers(-2, 8))
        x_scale, y_scale = 2.0 ** int(rng.integers(-3, 3)), sy
        w_scale = rng.integers(1, 8, channels) * 2.0 ** rng.integers(-4, 2, channels)
        bias = np.rint((rng.integers(-130, 260, channels) + 0.5) * sy / (x_scale * w_scale))
    else:
        bias = rng.integers(-2**31, 2**31, channels) >> rng.integers(0, 31, channels)
        x_scale, y_scale = formats.decode(extreme_scales(rng, ())), formats.decode(extreme_scales(rng, ()))
        w_scale = formats.decode(extreme_scales(rng, channels))
    x_scale, w_scale, y_scale = (formats.floats("float", np.asarray(v, dtype=np.float64)) for v in (x_scale, w_scale, y_scale))
    b = Tensor("int32", bias.astype(np.int32))
    y = operators.qlinear_conv(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b, group=group)
    fixed = rng.random() < 0.7
    inputs = [("x", x, False), ("x_scale", x_scale, fixed), ("x_zero_point", x_zero, fixed), ("w", w, fixed),
              ("w_scale", w_scale, fixed), ("w_zero_point", w_zero, fixed), ("y_scale", y_scale, fixed),
              ("y_zero_point", y_zero, fixed), ("bias", b, fixed)]
    return case(rng, "QLinearConv", version, inputs, {"group": group}, [("y", y)])


def make_qlinear(rng, version, xt, wt, yt, kind, bias, layout):
    x_shape, w_shape, attributes = LAYOUTS[layout]
    attributes = _attributes(rng, attributes, len(x_shape) - 2)
    x, w = _operand(rng, xt, x_shape), _operand(rng, wt, w_shape)
    one = () if rng.random() < 0.8 else (1,)
    x_zero, y_zero = integers(rng, xt, one), integers(rng, yt, one)
    w_zero = integers(rng, wt, _form(kind, w_shape[0]))
    x_scale, w_scale = scales(rng, "float", one), scales(rng, "float", _form(kind, w_shape[0]))
    spread = operators.reals(x_scale).mean() * operators.reals(w_scale).mean()
    spread *= 60 * np.sqrt(np.prod(w_shape[1:])) * np.exp(rng.uniform(-1, 2))
    y_scale = formats.floats("float", np.full(one, 2.0 ** np.rint(np.log2(spread)) if rng.random() < 0.3 else spread))
    b = None
    if bias != "no":
        limit = 10_000 if bias == "small" else 2**31 - 1
        b = Tensor("int32", rng.integers(-limit, limit, w_shape[0]))
    y = operators.qlinear_conv(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b, **attributes)
    fixed, fed = rng.random() < 0.6, rng.random() < 0.3
    inputs = [("x", x, False), ("x_scale", x_scale, not fed), ("x_zero_point", x_zero, not fed), ("w", w, fixed),
              ("w_scale", w_scale, not fed), ("w_zero_point", w_zero, not fed), ("y_scale", y_scale, not fed),
              ("y_zero_point", y_zero, not fed)]
    if b is not None:
        inputs.append(("bias", b, rng.random() < 0.6))
    return case(rng, "QLinearConv", version, inputs, attributes, [("y", y)])
