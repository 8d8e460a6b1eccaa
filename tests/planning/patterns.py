# SPDX-License-Identifier: Apache-2.0
"""Models whose nodes stand in one pattern, of any length: what planning may take longer than linear for."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL, UINT8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.UINT8
PATTERNS = {}


def pattern(make):
    PATTERNS[make.__name__] = make
    return make


class Graph:
    """Nodes and initializers that become a model of one input and one output."""

    def __init__(self):
        self.nodes, self.inits, self.names = [], [], 0
        self.functions = []

    def name(self):
        self.names += 1
        return f"v{self.names}"

    def const(self, array, name=None):
        name = name or self.name()
        self.inits.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, *ins, out=None, outs=1, domain="", **attrs):
        names = [out] if out else [self.name() for _ in range(outs)]
        self.nodes.append(helper.make_node(op, list(ins), names, domain=domain, **attrs))
        return names[0] if len(names) == 1 else names

    def model(self, outputs, dims=(2, 4), dtype=FLOAT, types=None):
        outputs = [outputs] if isinstance(outputs, str) else outputs
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info("x", FLOAT, dims)],
            [helper.make_tensor_value_info(o, (types or {}).get(o, dtype), None) for o in outputs], self.inits)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("own", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=self.functions)


def chain(g, n, step, v="x"):
    for i in range(n):
        v = step(g, v, i)
    return v


def quantization(g):
    return g.const(np.float32(0.05)), g.const(np.uint8(3))


# ---- Chains --------------------------------------------------------------------------------------------------


@pattern
def relus(n):
    g = Graph()
    return g.model(chain(g, n, lambda g, v, i: g.node("Relu" if i % 2 else "Neg", v)))


@pattern
def identities(n):
    g = Graph()
    return g.model(chain(g, n, lambda g, v, i: g.node("Identity", v)))


@pattern
def transposes(n):
    g = Graph()
    return g.model(chain(g, n, lambda g, v, i: g.node("Transpose", v, perm=[1, 0])))


@pattern
def quantized_moves(n):
    """A chain of moves each of which a QuantizeLinear reads, too."""
    g = Graph()
    s, z = quantization(g)
    v = g.node("DequantizeLinear", g.node("QuantizeLinear", "x", s, z), s, z)
    last = None
    for _ in range(n // 3):
        v = g.node("Transpose", v, perm=[1, 0])
        last = g.node("QuantizeLinear", v, s, z)
        g.node("DequantizeLinear", last, s, z, out=g.name())
    outs = [node.output[0] for node in g.nodes if node.op_type == "QuantizeLinear"][1:]
    return g.model(outs, dtype=UINT8)


@pattern
def matmuls(n):
    g = Graph()
    w = g.const(np.eye(4, dtype=np.float32))
    return g.model(chain(g, n, lambda g, v, i: g.node("MatMul", v, w)))


@pattern
def quantized_matmuls(n):
    g = Graph()
    s, z = quantization(g)
    w = g.const(np.eye(4, dtype=np.uint8))

    def step(g, v, i):
        dq = g.node("DequantizeLinear", v, s, z)
        return g.node("QuantizeLinear", g.node("MatMul", dq, g.node("DequantizeLinear", w, s, z)), s, z)

    return g.model(chain(g, n // 4, step, g.node("QuantizeLinear", "x", s, z)), dtype=UINT8)


@pattern
def biased_matmuls(n):
    """Each becomes several nodes."""
    g = Graph()
    s, z = quantization(g)
    w, b = g.const(np.eye(4, dtype=np.uint8)), g.const(np.zeros(4, np.float32))

    def step(g, v, i):
        dq = g.node("DequantizeLinear", v, s, z)
        product = g.node("MatMul", dq, g.node("DequantizeLinear", w, s, z))
        return g.node("QuantizeLinear", g.node("Add", product, b), s, z)

    return g.model(chain(g, n // 5, step, g.node("QuantizeLinear", "x", s, z)), dtype=UINT8)


@pattern
def quantized_residuals(n):
    g = Graph()
    s, z = quantization(g)

    def qdq(v):
        return g.node("DequantizeLinear", g.node("QuantizeLinear", v, s, z), s, z)

    def step(g, v, i):
        return qdq(g.node("Add", v, qdq(g.node("Relu", v))))

    return g.model(chain(g, n // 6, step, qdq("x")))


@pattern
def residuals(n):
    g = Graph()
    return g.model(chain(g, n // 2, lambda g, v, i: g.node("Add", v, g.node("Sigmoid", v))))


@pattern
def quantized_relus(n):
    g = Graph()
    s, z = quantization(g)

    def step(g, v, i):
        return g.node("DequantizeLinear", g.node("QuantizeLinear", g.node("Relu", v), s, z), s, z)

    return g.model(chain(g, n // 3, step))


@pattern
def shapes(n):
    """Reshape to a shape computed from the Shape, again and again."""
    g = Graph()
    one, axis = g.const(np.int64(1)), g.const(np.array([4], np.int64))

    def step(g, v, i):
        rows = g.node("Shape", v)
        rows = g.node("Gather", rows, g.const(np.array([0], np.int64)))
        return g.node("Reshape", v, g.node("Concat", rows, axis, axis=0))

    return g.model(chain(g, n // 4, step))


@pattern
def reshapes(n):
    g = Graph()
    return g.model(chain(g, n // 2, lambda g, v, i: g.node("Reshape", v, g.node("Shape", v))))


@pattern
def late_shapes(n):
    """No shape is known before a run."""
    g = Graph()
    v = g.node("Transpose", g.node("NonZero", "x"), perm=[1, 0])
    v = g.node("Cast", v, to=FLOAT)
    return g.model(chain(g, n // 2, lambda g, v, i: g.node("Reshape", v, g.node("Shape", v)), v))


@pattern
def convs(n):
    g = Graph()
    w = g.const(np.ones((1, 1, 1, 1), np.float32))
    return g.model(chain(g, n // 2, lambda g, v, i: g.node("Relu", g.node("Conv", v, w))), dims=(1, 1, 2, 2))


@pattern
def quantized_pools(n):
    """One region of layout."""
    g = Graph()
    s, z = quantization(g)

    def step(g, v, i):
        v = g.node("MaxPool", g.node("DequantizeLinear", v, s, z), kernel_shape=[1, 1])
        return g.node("QuantizeLinear", v, s, z)

    v = g.node("QuantizeLinear", "x", s, z)
    return g.model(chain(g, n // 3, step, v), dims=(1, 8, 2, 2), dtype=UINT8)


@pattern
def halves(n):
    g = Graph()
    s, z = g.const(np.float16(0.05)), g.const(np.uint8(3))

    def step(g, v, i):
        return g.node("QuantizeLinear", g.node("Relu", g.node("DequantizeLinear", v, s, z)), s, z)

    v = g.node("QuantizeLinear", g.node("Cast", "x", to=TensorProto.FLOAT16), s, z)
    return g.model(chain(g, n // 3, step, v), dtype=UINT8)


# ---- Many of one ---------------------------------------------------------------------------------------------


@pattern
def readers(n):
    """Many nodes read one value, one node all of theirs."""
    g = Graph()
    return g.model(g.node("Concat", *[g.node("Relu", "x") for _ in range(n)], axis=0))


@pattern
def quantized_readers(n):
    g = Graph()
    s, z = quantization(g)
    v = g.node("Relu", "x")
    outs = [g.node("DequantizeLinear", g.node("QuantizeLinear", v, g.const(np.float32(0.01 + i)), z), s, z)
            for i in range(n // 2)]
    return g.model(g.node("Sum", *outs))


@pattern
def far_readers(n):
    """All convolutions before all that reads them."""
    g = Graph()
    w = g.const(np.ones((1, 1, 1, 1), np.float32))
    products = [g.node("Conv", "x", w) for _ in range(n // 2)]
    return g.model(g.node("Concat", *[g.node("Relu", v) for v in products], axis=0), dims=(1, 1, 2, 2))


@pattern
def far_quantizers(n):
    """All floats before their QuantizeLinear, each read by another node, too."""
    g = Graph()
    s, z = quantization(g)
    sums = [g.node("Sigmoid", "x") for _ in range(n // 3)]
    codes = [g.node("QuantizeLinear", v, s, z) for v in sums]
    return g.model([g.node("Concat", *codes, axis=0), g.node("Sum", *sums)], dtype=TensorProto.UNDEFINED)


@pattern
def concats(n):
    """Concat of what a Split gives, and of quantized values."""
    g = Graph()
    parts = [g.node("Slice", "x", g.const(np.array([i % 2], np.int64)), g.const(np.array([i % 2 + 1], np.int64)))
             for i in range(n)]
    return g.model(g.node("Concat", *parts, axis=0))


@pattern
def small_parts(n):
    """Small parts of one large value, which are read at the end."""
    g = Graph()
    v = g.node("Relu", "x")
    parts = [g.node("Slice", v, g.const(np.array([0], np.int64)), g.const(np.array([1], np.int64)))
             for i in range(n // 2)]
    more = [g.node("Relu", p) for p in parts]
    return g.model(g.node("Concat", *more, axis=0), dims=(32, 1024))


@pattern
def growing_concats(n):
    g = Graph()
    return g.model(chain(g, n // 2, lambda g, v, i: g.node(
        "Slice", g.node("Concat", v, "x", axis=0), g.const(np.array([0], np.int64)), g.const(np.array([2], np.int64)))))


@pattern
def same_sums(n):
    g = Graph()
    v = g.node("Relu", "x")
    return g.model(g.node("Sum", *[v] * n))


@pattern
def initializers(n):
    g = Graph()
    return g.model(chain(g, n, lambda g, v, i: g.node("Add", v, g.const(np.float32(i)))))


@pattern
def outputs(n):
    g = Graph()
    return g.model([g.node("Relu", "x") for _ in range(n)])


@pattern
def given_outputs(n):
    """Outputs that are the input."""
    g = Graph()
    return g.model([g.node("Identity", "x") for _ in range(n)])


@pattern
def folded(n):
    g = Graph()
    c = g.const(np.ones(4, np.float32))
    return g.model(g.node("Add", "x", chain(g, n, lambda g, v, i: g.node("Neg", v), c)))


@pattern
def folded_weights(n):
    """Weights that the model quantizes itself."""
    g = Graph()
    s, z = quantization(g)

    def step(g, v, i):
        w = g.node("QuantizeLinear", g.const(np.eye(4, dtype=np.float32)), s, z)
        product = g.node("MatMul", g.node("DequantizeLinear", v, s, z), g.node("DequantizeLinear", w, s, z))
        return g.node("QuantizeLinear", product, s, z)

    return g.model(chain(g, n // 5, step, g.node("QuantizeLinear", "x", s, z)), dtype=UINT8)


@pattern
def functions(n):
    g = Graph()
    body = [helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Neg", ["b"], ["c"])]
    g.functions.append(helper.make_function("own", "Pair", ["a"], ["c"], body, [helper.make_opsetid("", 21)]))
    return g.model(chain(g, n // 2, lambda g, v, i: g.node("Pair", v, domain="own")))


# ---- Inner graphs --------------------------------------------------------------------------------------------


def branch(reads, i, op="Relu"):
    node = helper.make_node(op, [reads], [f"b{i}{op}"])
    return helper.make_graph([node], f"b{i}{op}", [], [helper.make_tensor_value_info(f"b{i}{op}", FLOAT, None)])


@pattern
def ifs(n):
    g = Graph()
    yes = g.const(np.array(True))
    return g.model(chain(g, n // 3, lambda g, v, i: g.node(
        "If", yes, then_branch=branch(v, i), else_branch=branch(v, i, "Neg"))))


def loop_body(i):
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Identity", [f"c{i}"], [f"d{i}"]), helper.make_node("Relu", [f"s{i}"], [f"t{i}"])]
    return helper.make_graph(nodes, f"l{i}", [info(f"n{i}", INT64, []), info(f"c{i}", BOOL, []), info(f"s{i}", FLOAT, None)],
                             [info(f"d{i}", BOOL, []), info(f"t{i}", FLOAT, None)])


@pattern
def loops(n):
    g = Graph()
    two = g.const(np.int64(2))
    return g.model(chain(g, n // 3, lambda g, v, i: g.node("Loop", two, "", v, body=loop_body(i))))


@pattern
def scans(n):
    g = Graph()
    info = helper.make_tensor_value_info

    def step(g, v, i):
        body = helper.make_graph([helper.make_node("Relu", [f"s{i}"], [f"t{i}"])], f"l{i}", [info(f"s{i}", FLOAT, None)],
                                 [info(f"t{i}", FLOAT, None)])
        return g.node("Scan", v, body=body, num_scan_inputs=1)

    return g.model(chain(g, n // 2, step))


@pattern
def captures(n):
    """One value that many inner graphs take."""
    g = Graph()
    yes, v = g.const(np.array(True)), g.node("Relu", "x")
    outs = [g.node("If", yes, then_branch=branch(v, i), else_branch=branch(v, i, "Neg")) for i in range(n // 3)]
    return g.model(g.node("Sum", *outs))


@pattern
def captured(n):
    """Many values that one inner graph takes."""
    g = Graph()
    yes = g.const(np.array(True))
    values = [g.node("Relu", "x") for i in range(n)]
    info = helper.make_tensor_value_info
    then = helper.make_graph([helper.make_node("Sum", values, ["a"])], "a", [], [info("a", FLOAT, None)])
    other = helper.make_graph([helper.make_node("Max", values, ["b"])], "b", [], [info("b", FLOAT, None)])
    return g.model(g.node("If", yes, then_branch=then, else_branch=other))


@pattern
def nested(n):
    """Nodes at the bottom of 30 levels."""
    g = Graph()
    yes = g.const(np.array(True))
    names, nodes = "x", []
    for i in range(n):
        nodes.append(helper.make_node("Relu", [names], [f"i{i}"]))
        names = f"i{i}"
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "inner", [], [info(names, FLOAT, None)])
    for level in range(30):
        node = helper.make_node("If", [yes], [f"o{level}"], then_branch=graph, else_branch=branch("x", level))
        if level == 29:
            g.nodes.append(node)
            break
        graph = helper.make_graph([node], f"g{level}", [], [info(f"o{level}", FLOAT, None)])
    return g.model("o29")


@pattern
def inlined_graphs(n):
    """A function with an inner graph, called by functions, called by …: few bytes, many graphs."""
    g = Graph()
    own = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    yes = helper.make_node("Constant", [], ["yes"], value=numpy_helper.from_array(np.array(True)))
    inner = helper.make_node("If", ["yes"], ["c"], then_branch=branch("a", 0), else_branch=branch("a", 1, "Neg"))
    g.functions.append(helper.make_function("own", "f0", ["a"], ["c"], [yes, inner], own))
    level = 0
    while 4 * 2 ** (level + 1) <= n:
        level += 1
        body = [helper.make_node(f"f{level - 1}", ["a"], ["b"], domain="own"),
                helper.make_node(f"f{level - 1}", ["b"], ["c"], domain="own")]
        g.functions.append(helper.make_function("own", f"f{level}", ["a"], ["c"], body, own))
    return g.model(g.node(f"f{level}", "x", domain="own"))


# ---- Operators -----------------------------------------------------------------------------------------------


@pattern
def stop_words(n):
    g = Graph()
    words = g.const(np.array([f"word{i}" for i in range(n)], dtype=object))
    y = g.node("StringNormalizer", words, stopwords=[f"Stop{i}" for i in range(n)])
    return g.model([y, g.node("Relu", "x")], types={y: TensorProto.STRING})


def collecting(n, position):
    """A Loop that collects as many tensors as it has iterations."""
    g = Graph()
    info, sequence = helper.make_tensor_value_info, helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))
    trips, at = g.const(np.int64(n)), g.const(np.int64(position))
    where = [at] if position else []
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("SequenceInsert", ["s", "x"] + where, ["t"])], "body",
        [info("i", INT64, []), info("c", BOOL, []), helper.make_value_info("s", sequence)],
        [info("d", BOOL, []), helper.make_value_info("t", sequence)])
    y = g.node("Loop", trips, "", g.node("SequenceConstruct", "x", "x"), body=body)
    return g.model(g.node("SequenceLength", y), dtype=INT64)


@pattern
def collected_behind(n):
    return collecting(n, 0)


@pattern
def collected_before_the_last(n):
    return collecting(n, -1)


@pattern
def outer_sums(n):
    """Einsum of vectors, each of which is summed up."""
    g = Graph()
    v = g.const(np.ones(n, np.float32))
    return g.model(g.node("Add", "x", g.node("Einsum", v, v, v, equation="a,b,c->")))


@pattern
def region_samples(n):
    g = Graph()
    image = g.node("Reshape", "x", g.const(np.array([1, 1, 2, 4], np.int64)))
    rois, batch = g.const(np.array([[0, 0, 3, 2]], np.float32)), g.const(np.array([0], np.int64))
    return g.model(g.node("RoiAlign", image, rois, batch, sampling_ratio=n))
