# SPDX-License-Identifier: Apache-2.0
"""Small decoders of seeded random weights, with the nodes that ONNX Runtime's model builder writes for language models.

Each has some layers, a cache for each, and inputs for a prompt, for one token behind it (of two sequences of different
lengths), and for several tokens at once. Products are plain MatMuls, which the quantizers then replace.
"""

import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

MS = "com.microsoft"
WORDS, WIDTH, INNER, HEADS, KV_HEADS, SIZE, POSITIONS = 384, 128, 256, 4, 2, 32, 64
# What the families differ in: caps of scores and logits, a window in every other layer, how values are gated …
DECODERS = {
    "llama": {},
    "gemma": {"cap": 20.0, "window": 8, "gelu": True, "after": True},
    "phi": {"centred": True, "partial": True, "packed": True},
    "qwen": {"bias": True, "head_norm": True, "recurrent": True},
}


class Writer:
    """A graph as it grows."""

    def __init__(self, rng):
        self.rng, self.nodes, self.constants, self.inputs, self.outputs, self.caches = rng, [], [], [], [], []

    def constant(self, array):
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def floats(self, *shape, spread=1.0, middle=0.0):
        return self.constant(self.rng.normal(middle, spread, shape).astype(np.float32))

    def node(self, op, inputs, count=1, domain="", outputs=None, **attrs):
        outputs = outputs or [f"{op}_{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(op, inputs, outputs, f"{op}_{len(self.nodes)}", domain=domain, **attrs))
        return outputs[0] if len(outputs) == 1 else outputs

    def product(self, x, rows, columns, bias=False):
        y = self.node("MatMul", [x, self.floats(rows, columns, spread=rows**-0.5)])
        return self.node("Add", [y, self.floats(columns, spread=0.1)]) if bias else y

    def cache(self, name, *shape):
        """Names of a past and a present; None in the shape: positions."""
        for side, values in (("past", self.inputs), ("present", self.outputs)):
            dims = ["batch", *(side if n is None else n for n in shape)]
            values.append(helper.make_tensor_value_info(f"{side}.{name}", TensorProto.FLOAT, dims))
        self.caches.append((f"past.{name}", shape))
        return f"past.{name}", f"present.{name}"

    def cut(self, x, heads):
        return self.node("Reshape", [x, self.ints(0, 0, heads, SIZE)])

    def join(self, x, heads):
        return self.node("Reshape", [x, self.ints(0, 0, heads * SIZE)])


def normalize(w, x, skip, form):
    """The normalized sum of both, and the sum."""
    factors = [w.floats(WIDTH, spread=0.1, middle=1)] + ([w.floats(WIDTH, spread=0.1)] if form.get("centred") else [])
    op = "LayerNormalization" if form.get("centred") else "SimplifiedLayerNormalization"
    if skip is None:
        return w.node(op, [x, *factors], axis=-1, epsilon=1e-5, stash_type=1), x
    names = [f"normalized_{len(w.nodes)}", "", "", f"sum_{len(w.nodes)}"]
    w.node(f"Skip{op}", [x, skip, *factors], outputs=names, domain=MS, epsilon=1e-5)
    return names[0], names[3]


def head_norm(w, x, heads):
    y = w.node("SimplifiedLayerNormalization", [w.cut(x, heads), w.floats(SIZE, spread=0.1, middle=1)], axis=-1,
               epsilon=1e-6, stash_type=1)
    return w.join(y, heads)


def attend(w, x, layer, form, lengths):
    wide, narrow = HEADS * SIZE, KV_HEADS * SIZE
    bias = form.get("bias", False)
    if form.get("packed"):
        q, k, v = w.product(x, WIDTH, wide + 2 * narrow, bias), "", ""
    else:
        q, k, v = (w.product(x, WIDTH, n, bias) for n in (wide, narrow, narrow))
    if form.get("head_norm"):
        q, k = head_norm(w, q, HEADS), head_norm(w, k, KV_HEADS)
    pairs = SIZE // 4 if form.get("partial") else SIZE // 2
    angles = np.outer(np.arange(POSITIONS), 1e4 ** (-np.arange(pairs) / pairs))
    tables = [w.constant(f(angles).astype(np.float32)) for f in (np.cos, np.sin)]
    (past_k, k_out), (past_v, v_out) = (w.cache(f"{layer}.{c}", KV_HEADS, None, SIZE) for c in ("key", "value"))
    attrs = {"num_heads": HEADS, "kv_num_heads": KV_HEADS, "do_rotary": 1, "softcap": form.get("cap", 0.0)}
    if layer % 2 == 0:
        attrs["local_window_size"] = form.get("window", -1)
    names = [f"attention_{layer}", k_out, v_out]
    w.node("GroupQueryAttention", [q, k, v, past_k, past_v, *lengths, *tables], outputs=names, domain=MS, **attrs)
    return w.product(names[0], wide, WIDTH)


def recur(w, x, layer):
    """A gated delta net in the place of attention: as many heads of queries and keys as attention has of keys."""
    keys, values, taps = KV_HEADS * SIZE, HEADS * SIZE, 4
    channels = 2 * keys + values
    (past, out), (past_state, state) = w.cache(f"{layer}.conv", channels, taps - 1), w.cache(
        f"{layer}.state", HEADS, SIZE, SIZE)
    turned = w.node("Transpose", [w.product(x, WIDTH, channels)], perm=[0, 2, 1])
    w.node("CausalConvWithState", [turned, w.floats(channels, 1, taps, spread=0.5), "", past],
           outputs=[f"conv_{layer}", out], domain=MS, activation="silu")
    q, k, v = w.node("Split", [w.node("Transpose", [f"conv_{layer}"], perm=[0, 2, 1]), w.ints(keys, keys, values)], 3,
                     axis=-1)
    q, k = (w.join(w.node("LpNormalization", [w.cut(t, KV_HEADS)], axis=-1, p=2), KV_HEADS) for t in (q, k))
    fade = w.node("Softplus", [w.product(x, WIDTH, HEADS, True)])
    fade = w.node("Mul", [fade, w.constant(-np.exp(w.rng.normal(size=HEADS)).astype(np.float32))])
    rate = w.node("Sigmoid", [w.product(x, WIDTH, HEADS)])
    w.node("LinearAttention", [q, k, v, past_state, fade, rate], outputs=[f"recurrence_{layer}", state], domain=MS,
           q_num_heads=KV_HEADS, kv_num_heads=HEADS, update_rule="gated_delta")
    gate = w.product(x, WIDTH, values)
    gate = w.node("Mul", [gate, w.node("Sigmoid", [gate])])
    return w.product(w.node("Mul", [head_norm(w, f"recurrence_{layer}", HEADS), gate]), values, WIDTH)


def feed_forward(w, x, form):
    gate, value = w.product(x, WIDTH, INNER), w.product(x, WIDTH, INNER)
    if form.get("gelu"):
        gate = w.node("FastGelu", [gate], domain=MS)
    else:
        gate = w.node("Mul", [gate, w.node("Sigmoid", [gate])])
    return w.product(w.node("Mul", [gate, value]), INNER, WIDTH)


def count_positions(w):
    """seqlens_k and total_sequence_length, out of the mask."""
    one = w.ints(1)
    counted = w.node("Sub", [w.node("ReduceSum", ["attention_mask", one], keepdims=0), one])
    total = w.node("Gather", [w.node("Shape", ["attention_mask"]), w.constant(np.int64(1))], axis=0)
    return [w.node("Cast", [n], to=TensorProto.INT32) for n in (counted, total)]


def write(name, form, layers=3):
    w = Writer(np.random.default_rng(zlib.crc32(name.encode())))
    for value, last in (("input_ids", "sequence"), ("attention_mask", "total")):
        w.inputs.append(helper.make_tensor_value_info(value, TensorProto.INT64, ["batch", last]))
    lengths = count_positions(w)
    x, skip = w.node("Gather", [w.floats(WORDS, WIDTH, spread=0.5), "input_ids"]), None
    for layer in range(layers):
        h, x = normalize(w, x, skip, form)
        recurrent = form.get("recurrent") and layer != layers - 1
        y = recur(w, h, layer) if recurrent else attend(w, h, layer, form, lengths)
        if form.get("after"):
            y = normalize(w, y, None, form)[0]
        h, x = normalize(w, x, y, form)
        skip = feed_forward(w, h, form)
    y = w.product(normalize(w, x, skip, form)[0], WIDTH, WORDS)
    if "cap" in form:
        cap = w.constant(np.float32(form["cap"]))
        y = w.node("Mul", [w.node("Tanh", [w.node("Div", [y, cap])]), cap])
    w.node("Identity", [y], outputs=["logits"])
    w.outputs.insert(0, helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "sequence", WORDS]))
    graph = helper.make_graph(w.nodes, name, w.inputs, w.outputs, w.constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), w.caches


def feed(rng, caches, batch, past, rows):
    lengths = [past - 5 * b for b in range(batch)]  # of what is in the caches
    mask = np.array([[t < n + rows for t in range(past + rows)] for n in lengths], np.int64)
    feeds = {"input_ids": rng.integers(0, WORDS, (batch, rows)), "attention_mask": mask}
    for name, shape in caches:
        values = rng.normal(0, 0.5, (batch, *(past if n is None else n for n in shape))).astype(np.float32)
        feeds[name] = values if past else np.zeros_like(values)
    return feeds


def make(name):
    """The model, and feeds: a prompt, a token behind caches of two sequences, four tokens at once."""
    model, caches = write(name, DECODERS[name])
    rng = np.random.default_rng(zlib.crc32(f"{name} words".encode()))
    return model, [feed(rng, caches, *sizes) for sizes in ((1, 0, 24), (2, 20, 1), (1, 20, 4))]
