# SPDX-License-Identifier: Apache-2.0
"""A decoder with random 4-bit weights in two formats: ONNX with the nodes that ONNX Runtime GenAI's model builder writes, and GGUF.

Both have the same layers, shapes and weights: blocks of 32 weights of 4 bits with one scale (MatMulNBits with accuracy_level 4; Q4_0),
grouped-query attention with rotary embeddings, and a gated feed-forward network. Needs the packages onnx and gguf."""

import dataclasses

import numpy as np
from onnx import TensorProto, helper, numpy_helper

MS = "com.microsoft"
BLOCK = 32


@dataclasses.dataclass
class Shape:
    layers: int = 8
    width: int = 2048
    inner: int = 5632
    heads: int = 16
    kv_heads: int = 4
    words: int = 32000
    positions: int = 8192

    @property
    def head(self):
        return self.width // self.heads

    def products(self):
        """Name in GGUF, rows and columns of each matrix of a layer; y = weights x."""
        kv = self.kv_heads * self.head
        return {"attn_q": (self.width, self.width), "attn_k": (kv, self.width), "attn_v": (kv, self.width),
                "attn_output": (self.width, self.width), "ffn_gate": (self.inner, self.width), "ffn_up": (self.inner, self.width),
                "ffn_down": (self.width, self.inner)}


def matrix(random, rows, columns):
    """Quantized values 0 to 15, whose zero point is 8, [rows, blocks, 32], and scales [rows, blocks] that float16 can hold."""
    values = np.clip(np.rint(random.normal(8, 2.5, (rows, columns // BLOCK, BLOCK))), 0, 15).astype(np.uint8)
    scales = (random.uniform(0.8, 1.2, values.shape[:2]) * columns**-0.5 / 2.5).astype(np.float16)
    return values, scales


def weights(shape):
    """Every matrix of the model by its name in GGUF; the same at each call."""
    for layer in range(shape.layers):
        for i, (name, size) in enumerate(shape.products().items()):
            yield f"blk.{layer}.{name}", matrix(np.random.default_rng([layer, i]), *size)
    yield "output", matrix(np.random.default_rng(shape.layers), shape.words, shape.width)


def embedding(shape):
    return np.random.default_rng(99).normal(0, 0.5, (shape.words, shape.width)).astype(np.float16)


# ---- ONNX -----------------------------------------------------------------------------------------------------------


class Graph:
    def __init__(self, shape, cache):
        self.shape, self.cache, self.nodes, self.constants, self.inputs, self.outputs = shape, cache, [], [], [], []

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op, inputs, outputs, domain="", **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def product(self, x, name, packed):
        (values, scales), y = packed, f"{name}.y"
        rows, blocks, _ = values.shape
        blob = self.constant(f"{name}.weight", values[..., 0::2] | values[..., 1::2] << 4)
        scale = self.constant(f"{name}.scale", scales.astype(np.float32).reshape(-1))
        return self.node("MatMulNBits", [x, blob, scale], [y], MS, K=blocks * BLOCK, N=rows, bits=4, block_size=BLOCK, accuracy_level=4)

    def attention(self, layer, q, k, v):
        s = self.shape
        dims, names = ["batch", s.kv_heads, "length", s.head], []
        for part in ("key", "value"):
            self.inputs.append(helper.make_tensor_value_info(f"past.{layer}.{part}", self.cache, dims))
            self.outputs.append(helper.make_tensor_value_info(f"present.{layer}.{part}", self.cache, dims))
            names.append(f"{layer}.{part}")
        return self.node("GroupQueryAttention", [q, k, v, *(f"past.{n}" for n in names), "seqlens_k", "total_sequence_length", "cos", "sin"],
                         [f"attention.{layer}", *(f"present.{n}" for n in names)], MS, num_heads=s.heads, kv_num_heads=s.kv_heads,
                         do_rotary=1)


def to_onnx(shape, cache=TensorProto.FLOAT):
    """The decoder as ONNX; `cache` is the type of cached keys and values."""
    g, packed = Graph(shape, cache), dict(weights(shape))
    angles = np.outer(np.arange(shape.positions), 1e4 ** (-np.arange(shape.head // 2) / (shape.head // 2)))
    g.constant("cos", np.cos(angles).astype(np.float32))
    g.constant("sin", np.sin(angles).astype(np.float32))
    g.constant("ones", np.ones(shape.width, np.float32))
    g.constant("embedding", embedding(shape).astype(np.float32))
    g.constant("last", np.array([-1], np.int64))
    for name, kind, dims in (("input_ids", TensorProto.INT64, ["batch", "sequence"]), ("seqlens_k", TensorProto.INT32, ["batch"]),
                             ("total_sequence_length", TensorProto.INT32, [])):
        g.inputs.append(helper.make_tensor_value_info(name, kind, dims))
    x = g.node("Gather", ["embedding", "input_ids"], ["embedded"])
    h = g.node("SimplifiedLayerNormalization", [x, "ones"], ["normalized"], axis=-1, epsilon=1e-5, stash_type=1)
    for layer in range(shape.layers):
        p = f"blk.{layer}."
        q, k, v = (g.product(h, p + n, packed[p + n]) for n in ("attn_q", "attn_k", "attn_v"))
        y = g.product(g.attention(layer, q, k, v), p + "attn_output", packed[p + "attn_output"])
        g.node("SkipSimplifiedLayerNormalization", [x, y, "ones"], [f"{p}h", "", "", f"{p}x"], MS, epsilon=1e-5)
        gate, up = (g.product(f"{p}h", p + n, packed[p + n]) for n in ("ffn_gate", "ffn_up"))
        g.node("Sigmoid", [gate], [f"{p}sigmoid"])
        g.node("Mul", [gate, f"{p}sigmoid"], [f"{p}silu"])
        g.node("Mul", [f"{p}silu", up], [f"{p}inner"])
        y = g.product(f"{p}inner", p + "ffn_down", packed[p + "ffn_down"])
        g.node("SkipSimplifiedLayerNormalization", [f"{p}x", y, "ones"], [f"{p}next", "", "", f"{p}sum"], MS, epsilon=1e-5)
        h, x = f"{p}next", f"{p}sum"
    g.node("Gather", [h, "last"], ["last_position"], axis=1)
    g.node("Identity", [g.product("last_position", "output", packed["output"])], ["logits"])
    g.outputs.insert(0, helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1, shape.words]))
    graph = helper.make_graph(g.nodes, "decoder", g.inputs, g.outputs, g.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)], ir_version=10)


# ---- GGUF -----------------------------------------------------------------------------------------------------------


def q4_0(packed):
    """Blocks as llama.cpp lays them out: a float16 scale, then bytes of values i (low half) and i + 16 (high half)."""
    values, scales = packed
    nibbles = values[..., :16] | values[..., 16:] << 4
    return np.concatenate([scales[..., None].view(np.uint8), nibbles], axis=-1).reshape(len(values), -1)


def interleave(packed, head):
    """Rows of queries and keys in the order of GGUF's "llama", which rotates neighbours and not halves of a head."""
    return tuple(a.reshape(-1, 2, head // 2, *a.shape[1:]).swapaxes(1, 2).reshape(a.shape) for a in packed)


def write_gguf(shape, path):
    import gguf
    w = gguf.GGUFWriter(path, "llama")
    w.add_context_length(shape.positions)
    w.add_embedding_length(shape.width)
    w.add_block_count(shape.layers)
    w.add_feed_forward_length(shape.inner)
    w.add_head_count(shape.heads)
    w.add_head_count_kv(shape.kv_heads)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(shape.head)
    w.add_vocab_size(shape.words)
    w.add_tokenizer_model("no_vocab")
    w.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
    w.add_tensor("token_embd.weight", embedding(shape))
    w.add_tensor("output_norm.weight", np.ones(shape.width, np.float32))
    for layer in range(shape.layers):
        for name in ("attn_norm", "ffn_norm"):
            w.add_tensor(f"blk.{layer}.{name}.weight", np.ones(shape.width, np.float32))
    for name, packed in weights(shape):
        rotated = name.endswith(("attn_q", "attn_k"))
        w.add_tensor(f"{name}.weight", q4_0(interleave(packed, shape.head) if rotated else packed), raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
