# SPDX-License-Identifier: Apache-2.0
"""Random graphs of quantized patterns.

A graph is a chain of blocks DequantizeLinear … operator … QuantizeLinear. Each block draws its operands from the
quantized values so far or from new inputs; every quantized value is an output of the graph. `rows` names, by output, the
row of docs/rewrites.md that bounds it.
"""

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from formula import evaluate

EXTREME = [2.0 ** -149, 1e-45, 2.0 ** -126, 1e-38, 1e-20, 1e20, 1e38, 3.4e38, np.inf, np.nan, 0.0, -0.05, -1e30]
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 2.0 ** -149, -2.0 ** -130, 3.4e38, -3.4e38, 0.5, 1.5, -2.5], np.float32)
EIGHT, SIXTEEN = (np.uint8, np.int8), (np.uint16, np.int16)
UNARY = ("Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Relu", "Neg", "Abs", "HardSigmoid", "LeakyRelu", "Erf", "Reciprocal", "Floor")


class Graph:
    def __init__(self, seed):
        self.seed, self.rng = seed, np.random.default_rng(seed)
        self.opset = int(self.rng.choice([13, 17, 19, 21, 23]))
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []
        self.feeds, self.rows, self.pool, self.narrow, self.count = {}, {}, [], set(), 0
        self.mode = self.pick("ordinary", "ordinary", "ordinary", "ties", "extreme")
        self.empty = self.chance(0.04)
        halves = {19: [np.float16], 21: [np.float16], 23: [np.float16, ml_dtypes.bfloat16]}.get(self.opset, [])
        self.real = np.dtype(self.pick(*halves)) if halves and self.chance(0.2) else np.dtype(np.float32)

    # ---- Drawing

    def chance(self, share):
        return self.rng.random() < share

    def pick(self, *options):
        return options[self.rng.integers(len(options))]

    def size(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def name(self, what):
        self.count += 1
        return f"{what}{self.count}"

    def scale(self, natural=None, count=None):
        """A scale, or a vector of them, near the natural one unless the graph's mode says otherwise."""
        def one():
            if self.mode == "extreme" and self.chance(0.35):
                return self.pick(*EXTREME)
            if self.mode == "ties":
                return float(2.0 ** self.size(-6, 1) * self.pick(1, 1, 3, 98))
            base = natural if natural and np.isfinite(natural) and natural > 0 else np.exp(self.rng.uniform(-6, -1.5))
            return float(base * np.exp(self.rng.normal(0, 0.4)))
        with np.errstate(all="ignore"):
            return np.asarray(one() if count is None else [one() for _ in range(count)]).astype(self.real)

    def zero(self, dtype):
        info = np.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        return np.array(self.pick((low + high + 1) // 2, 0, low, high, self.size(low, high)), dtype)

    def quantized(self, dtype, shape):
        info = np.iinfo(dtype)
        values = self.rng.integers(info.min, info.max + 1, shape).astype(dtype)
        if values.size and self.chance(0.1):
            values[...] = self.pick(info.min, info.max)
        return values

    # ---- Building

    def constant(self, array, what="c"):
        name = self.name(what)
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, **attributes):
        name = self.name(op.lower())
        attributes = {a: v for a, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def fed(self, array, what="x"):
        name = self.name(what)
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        self.feeds[name] = array
        return name

    def output(self, name, dtype, row):
        self.outputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None))
        self.rows[name] = row

    def model(self, outputs=None):
        chosen = [o for o in self.outputs if outputs is None or o.name in outputs]
        graph = helper.make_graph(self.nodes, "differential", self.inputs, chosen, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                 ir_version=11 if self.opset >= 23 else 9)

    def operand(self, shape, dtype=None):
        """A dequantized value of this shape: from the pool where one fits, else a new input."""
        fitting = [p for p in self.pool if p[1] == tuple(shape) and dtype in (None, p[2])]
        if fitting and self.chance(0.7):
            name, _, dtype, scale, zero = fitting[self.rng.integers(len(fitting))]
        else:
            dtype = dtype or self.pick(*EIGHT)
            name, scale, zero = self.fed(self.quantized(dtype, shape)), self.scale(), self.zero(dtype)
        return self.node("DequantizeLinear", [name, self.constant(scale, "scale"), self.constant(zero, "zero")])

    def weights(self, shape, axis, dtype=None):
        if self.opset >= 21 and not dtype and self.chance(0.15):
            return self.narrow_weights(shape, axis)
        dtype = dtype or self.pick(*EIGHT)
        count = shape[axis] if self.chance(0.5) and shape[axis] else None
        zero = np.zeros(count or (), dtype) if self.chance(0.5) else self.quantized(dtype, count or ())
        along = {"axis": axis} if count else {}
        return self.node("DequantizeLinear", [self.constant(self.quantized(dtype, shape), "w"),
                                              self.constant(self.scale(0.01, count), "scale"),
                                              self.constant(zero, "zero")], **along)

    def narrow_weights(self, shape, axis, block=None):
        """Of 4 bits; `block`: scales of blocks of so many elements along the other axis of a matrix."""
        dtype = self.pick(ml_dtypes.int4, ml_dtypes.uint4)
        low, high = (-8, 8) if dtype == ml_dtypes.int4 else (0, 16)
        count = shape[axis] if self.chance(0.5) and shape[axis] else None
        along = {"axis": axis} if count else {}
        scale = self.scale(0.1, count)
        if block:
            blocks = (-(-shape[0] // block), shape[1])
            scale = self.scale(0.1, blocks[0] * blocks[1]).reshape(blocks)
            along = {"axis": 0, "block_size": block}
        zero = self.rng.integers(low, high, scale.shape).astype(np.int8).astype(dtype)
        values = self.rng.integers(low, high, shape).astype(np.int8).astype(dtype)
        name = self.node("DequantizeLinear", [self.constant(values, "w"), self.constant(scale, "scale"),
                                              self.constant(zero, "zero")], **along)
        self.narrow.add(name)
        return name

    def magnitude(self, name):
        """The shape of a value, and the largest size of its finite elements."""
        value = (self.feeds | evaluate(self.model([]), self.feeds, rational=False))[name]
        if value is not None and value.dtype != np.float64:
            value = value.astype(np.float64)
        finite = np.abs(value[np.isfinite(value)]) if value is not None else np.zeros(0)
        return (None if value is None else value.shape), (float(finite.max()) if finite.size else 1.0)

    def finish(self, value, row, dtype):
        """Sometimes Relu or Clip, then QuantizeLinear, whose result goes to the pool."""
        shape, largest = self.magnitude(value)
        if self.chance(0.2):
            value = self.node("Relu", [value])
        if self.chance(0.15):
            low, high = sorted(self.rng.uniform(-largest, largest, 2)) if np.isfinite(largest) else (-1, 1)
            with np.errstate(all="ignore"):
                bounds = [self.constant(np.asarray(b).astype(self.real), "bound") for b in (low, high)]
            value = self.node("Clip", [value, *bounds])
        info = np.iinfo(dtype)
        scale, zero = self.scale(largest / (int(info.max) - int(info.min)) * 2), self.zero(dtype)
        name = self.node("QuantizeLinear", [value, self.constant(scale, "scale"), self.constant(zero, "zero")])
        self.output(name, dtype, row if self.real == np.float32 else "half precision")
        if shape is not None:
            self.pool.append((name, shape, dtype, scale, zero))
        if self.chance(0.06):
            self.leave(value)

    def leave(self, value):
        """The float value is read by a caller, too."""
        if self.real == np.float32:
            self.output(value, np.float32, "float results of 8-bit operands")
        else:
            row = "weight-only products in half precision" if self.is_weight_only(value) else "half precision that leaves"
            self.output(self.node("Cast", [value], to=TensorProto.FLOAT), np.float32, row)

    def is_weight_only(self, value):
        """A matrix product of weights of 4 bits, perhaps with bounds."""
        givers = {name: node for node in self.nodes for name in node.output}
        while value in givers and givers[value].op_type in ("Relu", "Clip"):
            value = givers[value].input[0]
        giver = givers.get(value)  # None: an input of the graph
        return giver is not None and giver.op_type in ("MatMul", "Gemm") and giver.input[1] in self.narrow


# ---- Blocks: each adds nodes and ends in graph.finish

def shape_of(graph, rank=None):
    if graph.pool and rank is None and graph.chance(0.7):
        return graph.pool[graph.rng.integers(len(graph.pool))][1]
    shape = [graph.size(1, 5) for _ in range(graph.size(0, 4) if rank is None else rank)]
    if shape and graph.empty and graph.chance(0.5):
        shape[graph.rng.integers(len(shape))] = 0
    return tuple(shape)


def ranked(graph):
    return shape_of(graph) or shape_of(graph, graph.size(1, 3))


def matmul(graph):
    wide = graph.opset >= 21 and graph.real == np.float32 and graph.chance(0.2)
    types = SIXTEEN if wide else EIGHT
    shape = next((p[1] for p in graph.pool if len(p[1]) == 2 and graph.chance(0.6)), (graph.size(1, 4), graph.size(1, 40)))
    a = graph.operand(shape, graph.pick(*types))
    k, n = shape[1], graph.size(1, 9)
    kind = graph.pick("MatMul", "Gemm", "computed")
    b = graph.operand((k, n)) if kind == "computed" else graph.weights((k, n), 1)
    if kind == "Gemm":
        value = graph.node("Gemm", [a, b, *bias(graph, n)])
    else:
        value = graph.node("MatMul", [a, b])
    graph.finish(value, "products of 16 bits" if wide else "products", graph.pick(*types))


def bias(graph, count):
    if graph.chance(0.5):
        return []
    with np.errstate(all="ignore"):
        return [graph.constant(graph.rng.normal(0, 1, count).astype(graph.real), "bias")]


def conv(graph):
    wide = graph.opset >= 21 and graph.real == np.float32 and graph.chance(0.2)
    types, axes = SIXTEEN if wide else EIGHT, graph.size(1, 2)
    group = graph.pick(1, 1, 2, 3)
    channels, filters = group * graph.size(1, 3), group * graph.size(1, 3)
    kernel = [graph.size(1, 3) for _ in range(axes)]
    x = graph.operand((graph.size(1, 2), channels, *[graph.size(3, 6) for _ in range(axes)]), graph.pick(*types))
    w = graph.weights((filters, channels // group, *kernel), 0)
    value = graph.node("Conv", [x, w, *bias(graph, filters)], group=group, strides=[graph.size(1, 2) for _ in range(axes)],
                       pads=[graph.size(0, 1) for _ in range(2 * axes)], kernel_shape=kernel)
    graph.finish(value, "products of 16 bits" if wide else "products", graph.pick(*types))


def binary(graph):
    shape, op, dtype = shape_of(graph), graph.pick("Add", "Mul", "Sum", "Sub", "Max", "Min"), graph.pick(*EIGHT)
    other = shape if graph.chance(0.7) else tuple(1 if graph.chance(0.4) else n for n in shape)
    value = graph.node(op, [graph.operand(shape, dtype), graph.operand(other, dtype)])
    graph.finish(value, "sums and products of two" if op in ("Add", "Mul", "Sum") else "element by element",
                 dtype if graph.chance(0.8) else graph.pick(*EIGHT))


def pooling(graph):
    dtype, axes = graph.pick(*EIGHT), graph.size(1, 2)
    x = graph.operand((1, graph.size(1, 20), *[graph.size(2, 6) for _ in range(axes)]), dtype)
    op = graph.pick("AveragePool", "MaxPool", "GlobalAveragePool")
    attributes = {} if op == "GlobalAveragePool" else {"kernel_shape": [graph.size(1, 2) for _ in range(axes)]}
    if attributes and op == "AveragePool" and graph.chance(0.4):
        attributes |= {"pads": [graph.size(0, min(attributes["kernel_shape"]) - 1) for _ in range(2 * axes)],
                       "count_include_pad": graph.size(0, 1)}
    value = graph.node(op, [x], **attributes)
    graph.finish(value, "moves" if op == "MaxPool" else "means", dtype if graph.chance(0.9) else graph.pick(*EIGHT))


def reduction(graph):
    shape = ranked(graph)
    op, axes = graph.pick("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum"), [graph.size(0, len(shape) - 1)]
    x, dtype = graph.operand(shape), graph.pick(*EIGHT)
    if op == "ReduceSum" or graph.opset >= 18:
        value = graph.node(op, [x, graph.constant(np.array(axes), "axes")], keepdims=graph.size(0, 1))
    else:
        value = graph.node(op, [x], axes=axes, keepdims=graph.size(0, 1))
    graph.finish(value, {"ReduceMean": "means", "ReduceSum": "element by element"}.get(op, "moves"), dtype)


def function(graph):
    value = first = graph.operand(shape_of(graph), graph.pick(*EIGHT))
    for _ in range(graph.size(1, 4)):
        op = graph.pick(*UNARY, "Mul", "Add")
        if op in ("Mul", "Add"):
            other = first if graph.chance(0.4) else graph.constant(np.asarray(graph.rng.normal(), graph.real))
            value = graph.node(op, [value, other])
        else:
            value = graph.node(op, [value])
    graph.finish(value, "tables", graph.pick(*EIGHT))


def softmax(graph):
    shape = ranked(graph)
    graph.finish(graph.node("Softmax", [graph.operand(shape)], axis=len(shape) - 1), "Softmax", graph.pick(*EIGHT))


def concat(graph):
    shape, dtype = list(ranked(graph)), graph.pick(*EIGHT)
    axis, parts = graph.size(0, len(shape) - 1), []
    for _ in range(graph.size(1, 3)):
        parts.append(graph.operand([graph.size(1, 4) if i == axis else n for i, n in enumerate(shape)], dtype))
    graph.finish(graph.node("Concat", parts, axis=axis), "Concat and Where", dtype)


def move(graph):
    shape = ranked(graph)
    x = graph.operand(shape)
    if graph.chance(0.5):
        value = graph.node("Transpose", [x], perm=[int(i) for i in graph.rng.permutation(len(shape))])
    else:
        value = graph.node("Reshape", [x, graph.constant(np.array([int(np.prod(shape))]), "shape")])
    graph.finish(value, "moves", graph.pick(*EIGHT))


def where(graph):
    shape, dtype = shape_of(graph), graph.pick(*EIGHT)
    condition = graph.fed(graph.rng.random(shape) < 0.5, "condition")
    value = graph.node("Where", [condition, graph.operand(shape, dtype), graph.operand(shape, dtype)])
    graph.finish(value, "Concat and Where", dtype)


def floats(graph):
    """A float input with NaN, infinities and denormals, through a chain."""
    values = graph.rng.normal(0, 1, shape_of(graph))
    values = np.where(graph.rng.random(values.shape) < 0.2, graph.rng.choice(SPECIAL, values.shape), values)
    with np.errstate(all="ignore"):
        value = graph.fed(np.asarray(values).astype(graph.real))
    for _ in range(graph.size(0, 3)):
        value = graph.node(graph.pick(*UNARY), [value])
    graph.finish(value, "element by element", graph.pick(*EIGHT))


def weight_only(graph):
    """Floats times weights of 4 bits in blocks."""
    if graph.opset < 21 or graph.real != np.float32:
        matmul(graph)
        return
    rows, k, n = graph.size(1, 5), 16 * graph.size(1, 4), graph.size(1, 12)
    x = graph.fed(graph.rng.normal(0, 1, (rows, k)).astype(np.float32))
    w = graph.narrow_weights((k, n), 1, block=graph.pick(16, 32, 64))
    graph.output(graph.node("MatMul", [x, w]), np.float32, "weight-only products")


def dynamic(graph):
    """DynamicQuantizeLinear, an integer product, and its sums scaled to floats."""
    conv_integer = graph.chance(0.5)
    channels, filters = graph.size(1, 4), graph.size(1, 6)
    shape = (graph.size(1, 2), channels, graph.size(3, 7), graph.size(3, 7)) if conv_integer else (graph.size(1, 5), graph.size(1, 50))
    x = graph.fed((graph.rng.normal(graph.pick(0, 1, -3), 1, shape) * np.exp(graph.rng.normal(0, 3))).astype(np.float32))
    quantized, scale, zero = (graph.name("dynamic") for _ in range(3))
    graph.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], [quantized, scale, zero], name=quantized))
    dtype = graph.pick(*EIGHT)
    w_shape = (filters, channels, graph.size(1, 3), graph.size(1, 3)) if conv_integer else (shape[1], filters)
    w = graph.constant(graph.quantized(dtype, w_shape), "w")
    w_zero = graph.constant(graph.pick(np.array(0, dtype), graph.quantized(dtype, ())), "zero")
    sums = graph.node("ConvInteger" if conv_integer else "MatMulInteger", [quantized, w, zero, w_zero])
    if graph.chance(0.3):
        graph.output(sums, np.int32, "dynamic quantization")
    scales = graph.node("Mul", [scale, graph.constant(np.float32(np.exp(graph.rng.uniform(-6, -1))), "scale")])
    value = graph.node("Mul", [graph.node("Cast", [sums], to=TensorProto.FLOAT), scales])
    if graph.chance(0.5):
        term = graph.rng.normal(0, 1, (filters, 1, 1) if conv_integer else filters).astype(np.float32)
        value = graph.node("Add", [value, graph.constant(term, "bias")])
    graph.output(value, np.float32, "dynamic quantization")


def resize(graph):
    x = graph.operand((1, graph.size(1, 4), graph.size(2, 5), graph.size(2, 5)), graph.pick(*EIGHT))
    mode, whole = graph.pick("nearest", "nearest", "linear", "cubic"), graph.chance(0.6)
    scales = [1, 1, *(graph.size(1, 3) if whole else float(graph.rng.uniform(0.4, 2.6)) for _ in range(2))]
    where = graph.pick("asymmetric", "half_pixel", "align_corners")
    rounding = graph.pick("floor", "round_prefer_floor")
    if mode == "nearest" and whole:
        where, rounding = "asymmetric", "floor"
    value = graph.node("Resize", [x, "", graph.constant(np.array(scales, np.float32), "scales")], mode=mode,
                       coordinate_transformation_mode=where, nearest_mode=rounding if mode == "nearest" else None)
    graph.finish(value, "element by element", graph.pick(*EIGHT))


def branch(graph):
    """Another block inside an If, whose other branch gives a constant."""
    begin, outputs = len(graph.nodes), len(graph.outputs)
    graph.pick(matmul, conv, binary, pooling, function, concat, move)(graph)
    if len(graph.outputs) != outputs + 1 or graph.outputs[-1].name not in [n.output[0] for n in graph.nodes[begin:]]:
        return # a float value leaves, too
    nodes, graph.nodes = graph.nodes[begin:], graph.nodes[:begin]
    inside, result = graph.outputs[-1], graph.name("if")
    kind = inside.type.tensor_type.elem_type
    shape = next((p[1] for p in graph.pool if p[0] == inside.name), (1,))
    other = graph.name("other")
    constant = helper.make_node("Constant", [], [other], value=numpy_helper.from_array(
        graph.quantized(helper.tensor_dtype_to_np_dtype(kind), shape), other))
    condition = graph.fed(np.array(graph.chance(0.8)), "condition")
    value = helper.make_tensor_value_info
    graph.nodes.append(helper.make_node(
        "If", [condition], [result], name=result,
        then_branch=helper.make_graph(nodes, "then", [], [value(inside.name, kind, None)]),
        else_branch=helper.make_graph([constant], "else", [], [value(other, kind, None)])))
    graph.outputs[-1] = value(result, kind, None)
    graph.rows[result] = graph.rows.pop(inside.name)
    graph.pool = [(result, *p[1:]) if p[0] == inside.name else p for p in graph.pool]


def loop(graph):
    """Another block inside a Loop, whose results are stacked. It reads a quantized value that changes from iteration to
    iteration by an integer operator, so that no rounding of one iteration reaches the next."""
    begin, outputs = len(graph.nodes), len(graph.outputs)
    graph.pick(matmul, conv, binary, pooling, function, concat, move, where)(graph)
    if len(graph.outputs) != outputs + 1:
        return  # a float value leaves, too
    available = {p[0]: p[2] for p in graph.pool} | {n: a.dtype for n, a in graph.feeds.items()}
    readers = [n for n in graph.nodes[begin:] if n.op_type == "DequantizeLinear" and n.input[0] in available]
    if not readers:
        return
    nodes, graph.nodes = graph.nodes[begin:], graph.nodes[:begin]
    inside, result, start = graph.outputs[-1], graph.name("loop"), readers[0].input[0]
    other, trips = graph.constant(graph.quantized(available[start], ()), "other"), graph.size(1, 3)
    iteration, go, state, go_on, changed = (graph.name("body") for _ in range(5))
    readers[0].input[0] = state
    nodes += [helper.make_node("Identity", [go], [go_on]), helper.make_node(graph.pick("Max", "Min"), [state, other], [changed])]
    value, kind = helper.make_tensor_value_info, inside.type.tensor_type.elem_type
    carried = helper.np_dtype_to_tensor_dtype(np.dtype(available[start]))
    body = helper.make_graph(
        nodes, "body", [value(iteration, TensorProto.INT64, []), value(go, TensorProto.BOOL, []), value(state, carried, None)],
        [value(go_on, TensorProto.BOOL, []), value(changed, carried, None), value(inside.name, kind, None)])
    inputs = [graph.fed(np.array(trips), "trips"), graph.pick("", graph.fed(np.array(True), "go")), start]
    graph.nodes.append(helper.make_node("Loop", inputs, [graph.name("last"), result], name=result, body=body))
    graph.outputs[-1] = value(result, kind, None)
    graph.rows[result] = graph.rows.pop(inside.name)
    graph.pool = [(result, (trips, *p[1]), *p[2:]) if p[0] == inside.name else p for p in graph.pool]


BLOCKS = [matmul, matmul, conv, conv, binary, binary, pooling, reduction, function, function, softmax, concat, move, where, floats,
          resize, dynamic, weight_only, branch, loop]


def draw(seed):
    graph = Graph(seed)
    for _ in range(graph.pick(1, 1, 1, 2, 3, 5)):
        graph.pick(*BLOCKS)(graph)
    return graph
