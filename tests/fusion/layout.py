# SPDX-License-Identifier: Apache-2.0
"""Patterns for check.py: nets of quantized operators, parts of which get channels last. All are exact."""

import numpy as np
from onnx import helper

LAST = "has channels last"
MS = "com.microsoft"


class Net:
    """Values of one net: name, channels, height and width."""

    def __init__(self, case):
        self.case, self.dtype, self.batch = case, case.code_type(), case.size(1, 2)
        self.scale = case.constant("scale", np.float32(0.05))
        self.zero = case.constant("zero", np.array(case.size(0, 20), self.dtype))
        self.other = case.constant("other", np.float32(0.07))
        self.count, self.values = 0, []

    def parameters(self):
        return [self.case.pick(self.scale, self.other), self.zero]

    def name(self, kind):
        self.count += 1
        return f"{kind}{self.count}"

    def add(self, op, inputs, place, domain=MS, **attributes):
        value = self.case.node(op, inputs, self.name(op), domain, **attributes)
        self.values.append((value, *place))
        return value

    def some(self, kernel=1):
        """A value that is large enough, one of the last ones."""
        large = [v for v in self.values if min(v[2:]) >= kernel]
        return large[-1 - min(self.case.size(0, 2), len(large) - 1)]

    # ---- Operators

    def conv(self):
        case, kernel = self.case, self.case.pick(1, 1, 3, 5)
        x, channels, height, width = self.some(kernel)
        stride, pad = case.pick(1, 1, 2), case.size(0, kernel // 2)
        group = case.pick(1, 1, *[g for g in (2, channels) if channels % g == 0])
        out = group * case.size(1, 40 // group + 1)
        name = self.name("w")
        weights = case.constant(name, case.codes(np.dtype(np.int8), (out, channels // group, kernel, kernel)) // 2)
        scale = case.constant(name + "_scale", np.float32(0.3 / np.sqrt(channels // group) / kernel / 64) *
                              np.ones(case.pick(1, out), np.float32))
        zero = case.constant(name + "_zero", np.array(0, np.int8))
        bias = [case.constant(name + "_bias", case.rng.integers(-999, 999, out).astype(np.int32))] * case.size(0, 1)
        place = (out, (height + 2 * pad - kernel) // stride + 1, (width + 2 * pad - kernel) // stride + 1)
        self.add("QLinearConv", [x, *self.parameters(), weights, scale, zero, *self.parameters(), *bias], place, "",
                 group=group, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def pool(self):
        case, kernel = self.case, self.case.pick(2, 3)
        x, channels, height, width = self.some(kernel)
        stride, pad, average = case.pick(1, 1, 2), case.size(0, 1), case.chance(0.4)
        place = (channels, (height + 2 * pad - kernel) // stride + 1, (width + 2 * pad - kernel) // stride + 1)
        window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        if average:
            window["count_include_pad"] = case.size(0, 1)
        value = self.add("QLinearAveragePool" if average else "MaxPool",
                         [x, *self.parameters(), *self.parameters()] if average else [x], place,
                         MS if average else "", **window)
        if average or stride == 1:  # such a one pays in any case
            case.expect(value[len(case.prefix):], LAST)

    def sum(self):
        case, (x, *place) = self.case, self.some()
        same = [v for v, *p in self.values if p == place]
        kind = case.pick("same", "same", "scalar", "channels")
        other = same[case.size(0, len(same) - 1)]
        if kind != "same":
            shape = () if kind == "scalar" else (1, place[0], 1, 1)
            other = case.constant(self.name("c"), case.codes(self.dtype, shape))
        self.add(case.pick("QLinearAdd", "QLinearMul"), [x, *self.parameters(), other, *self.parameters(),
                                                         *self.parameters()], place)

    def concat(self):
        case, (_, _, height, width) = self.case, self.some()
        parts = [v for v in self.values if v[2:] == (height, width)][-4:]
        inputs = [i for v in parts for i in (v[0], *self.parameters())]
        self.add("QLinearConcat", [*self.parameters(), *inputs], (sum(v[1] for v in parts), height, width),
                 axis=case.pick(1, -3))

    def table(self):
        x, *place = self.some()
        self.add("QLinearLeakyRelu", [x, *self.parameters(), *self.parameters()], place, alpha=0.1)

    def outside(self):
        """A reader that wants channels first."""
        case, (x, *place) = self.case, self.some()
        kind = case.pick("requested", "float", "turned", "inner", "mean")
        if kind == "requested":
            case.also.append(x)
        elif kind == "float":
            value = case.node("DequantizeLinear", [x, self.scale, self.zero], self.name("f"))
            case.output(value, np.dtype(np.float32))
        elif kind == "turned":
            case.output(case.node("Transpose", [x], self.name("t"), perm=[0, 1, 3, 2]), self.dtype)
        elif kind == "mean":
            value = case.node("QLinearGlobalAveragePool", [x, *self.parameters(), *self.parameters()], self.name("m"), MS)
            case.output(value, self.dtype)
        else:
            name, element = self.name("i"), helper.np_dtype_to_tensor_dtype(self.dtype)
            bodies = [helper.make_graph([helper.make_node(op, [x], [f"{case.prefix}{name}_{op}"], **more)], op, [], [
                helper.make_tensor_value_info(f"{case.prefix}{name}_{op}", element, None)])
                for op, more in (("Flatten", {}), ("MaxPool", {"kernel_shape": [1, 1]}))]
            value = case.node("If", [case.fed(name + "_which", np.array(case.chance(0.5)))], name,
                              then_branch=bodies[0], else_branch=bodies[1])
            case.output(value, self.dtype)


def channels_last(case):
    """Convolutions, pools, sums, concatenations and tables of codes, some values read outside."""
    net = Net(case)
    place = (case.pick(3, 8, 16, 20), case.size(5, 14), case.size(5, 14))
    net.values.append((case.fed("x", case.codes(net.dtype, (net.batch, *place))), *place))
    net.conv()
    case.quanta = 0
    for _ in range(case.size(3, 12)):
        case.pick(net.conv, net.conv, net.conv, net.pool, net.pool, net.sum, net.concat, net.concat, net.table,
                  net.outside)()
    case.note += f" {' '.join(n.op_type for n in case.nodes)}"
    read = {i for node in case.nodes for i in node.input}
    for value in [v[0] for v in net.values if v[0] not in read]:
        case.output(value, net.dtype)
    case.also = [v for v in dict.fromkeys(case.also) if v not in {o.name for o in case.outputs}]


LAYOUT = {"channels_last": channels_last}
