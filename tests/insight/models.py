# SPDX-License-Identifier: Apache-2.0
"""Float models and their quantized forms, with faults planted at will.

A quantized model is written by Quantizer, as QDQ: each activation that `ranges` names goes through QuantizeLinear and
DequantizeLinear; weights and biases are stored as integers. Names are those of onnxruntime's quantizer."""

import copy

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

WEIGHT_OPS = {"Conv": 0, "MatMul": -1, "Gemm": -1}  # the axis of output channels of the weight


def arrays_of(model):
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def float_digits(path):
    """The digits network in float: quantizers removed, weights and biases dequantized."""
    model = onnx.load(path)
    arrays, replaced, nodes = arrays_of(model), {}, []
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear":
            replaced[node.output[0]] = replaced.get(node.input[0], node.input[0])
        elif node.op_type == "DequantizeLinear" and node.input[0] in arrays:
            q, scale = arrays[node.input[0]], arrays[node.input[1]]
            axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
            shape = [1] * q.ndim
            if scale.ndim:
                shape[axis if q.ndim > 1 else 0] = -1
            arrays[node.output[0]] = (q.astype(np.float32) * scale.reshape(shape if scale.ndim else ())).astype(np.float32)
        elif node.op_type == "DequantizeLinear":
            replaced[node.output[0]] = replaced[node.input[0]]
        else:
            kept = copy.deepcopy(node)
            kept.input[:] = [replaced.get(i, i) for i in node.input]
            nodes.append(kept)
    for node in nodes:
        node.output[:] = ["scores" if o == "scores_sum" else o for o in node.output]
    used = {i for n in nodes for i in n.input}
    graph = helper.make_graph(nodes, "digits", model.graph.input, model.graph.output,
                              [numpy_helper.from_array(arrays[n], n) for n in sorted(used & set(arrays))])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def make_model(name, nodes, arrays, inputs, outputs):
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs],
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs],
                              [numpy_helper.from_array(np.asarray(a, np.float32), n) for n, a in arrays.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def node(op, inputs, name, **attributes):
    return helper.make_node(op, inputs, [name], name=name + "_node", **attributes)


def small_conv(seed=3):
    """Four convolutions with a residual sum, then a classifier."""
    rng = np.random.default_rng(seed)
    arrays, nodes, x, channels = {}, [], "image", 3
    for i, width in enumerate((16, 16, 16, 24)):
        arrays[f"w{i}"] = rng.normal(0, np.sqrt(2 / (9 * channels)), (width, channels, 3, 3))
        arrays[f"b{i}"] = rng.normal(0, 0.1, width)
        nodes.append(node("Conv", [x, f"w{i}", f"b{i}"], f"conv{i}", pads=[1, 1, 1, 1]))
        nodes.append(node("Relu", [f"conv{i}"], f"relu{i}"))
        x, channels = f"relu{i}", width
        if i == 2:
            nodes.append(node("Add", ["relu0", "relu2"], "sum"))
            x = "sum"
    nodes += [node("GlobalAveragePool", [x], "pooled"), node("Flatten", ["pooled"], "features"),
              node("MatMul", ["features", "dense"], "logits")]
    arrays["dense"] = rng.normal(0, 0.3, (channels, 10))
    return make_model("conv", nodes, arrays, [("image", ["N", 3, 12, 12])], [("logits", ["N", 10])])


def small_transformer(seed=4, width=32, length=12):
    """Two layers: attention of one head, a residual sum, a feed-forward part of Relu."""
    rng = np.random.default_rng(seed)
    arrays, nodes, x = {"root": np.sqrt(width)}, [], "tokens"
    for i in range(2):
        for part in "qkv":
            arrays[f"w{part}{i}"] = rng.normal(0, 1 / np.sqrt(width), (width, width))
            nodes.append(node("MatMul", [x, f"w{part}{i}"], f"{part}{i}"))
        arrays[f"up{i}"] = rng.normal(0, np.sqrt(2 / width), (width, 2 * width))
        arrays[f"down{i}"] = rng.normal(0, np.sqrt(0.5 / width), (2 * width, width))
        nodes += [node("Transpose", [f"k{i}"], f"kt{i}", perm=[0, 2, 1]), node("MatMul", [f"q{i}", f"kt{i}"], f"dots{i}"),
                  node("Div", [f"dots{i}", "root"], f"scaled{i}"), node("Softmax", [f"scaled{i}"], f"shares{i}", axis=-1),
                  node("MatMul", [f"shares{i}", f"v{i}"], f"mixed{i}"), node("Add", [x, f"mixed{i}"], f"attended{i}"),
                  node("MatMul", [f"attended{i}", f"up{i}"], f"up_out{i}"), node("Relu", [f"up_out{i}"], f"hidden{i}"),
                  node("MatMul", [f"hidden{i}", f"down{i}"], f"down_out{i}"),
                  node("Add", [f"attended{i}", f"down_out{i}"], f"out{i}")]
        x = f"out{i}"
    nodes += [helper.make_node("ReduceMean", [x], ["mean"], name="mean_node", axes=[1], keepdims=0),
              node("MatMul", ["mean", "head"], "logits")]
    arrays["head"] = rng.normal(0, 1 / np.sqrt(width), (width, 10))
    return make_model("transformer", nodes, arrays, [("tokens", ["N", length, width])], [("logits", ["N", 10])])


def run(model, feed, outputs=None):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(outputs, feed)


def observe(model, feed):
    """All values of a float model on one input, by name."""
    shown = copy.deepcopy(model)
    names = [o for n in shown.graph.node for o in n.output]
    del shown.graph.output[:]
    shown.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in names)
    return {**feed, **dict(zip(names, run(shown, feed, names)))}


class Quantizer:
    """Makes a QDQ model. Change scales, zero points and integers between `calibrate` and `write` to plant faults."""

    def __init__(self, model, values, per_channel=True):
        self.model, self.per_channel = model, per_channel
        self.arrays = arrays_of(model)
        self.activations = {}  # name -> [scale, zero point]
        self.weights = {}      # name -> [integers, scales, axis or None]
        for n in model.graph.node:
            for name in n.input:
                if name in values and name not in self.activations:
                    self.activations[name] = self.fit(values[name].min(), values[name].max())
            if n.op_type in WEIGHT_OPS and n.input[1] in self.arrays:
                self.quantize_weight(n.input[1], WEIGHT_OPS[n.op_type])
        for output in model.graph.output:
            self.activations[output.name] = self.fit(values[output.name].min(), values[output.name].max())
        self.quantize_biases()

    @staticmethod
    def fit(low, high):
        low, high = min(float(low), 0.0), max(float(high), 0.0)
        scale = np.float32((high - low) / 255 or 1)
        return [scale, int(np.clip(np.round(-low / scale), 0, 255))]

    def quantize_weight(self, name, axis):
        w = self.arrays[name]
        axis %= w.ndim
        others = tuple(a for a in range(w.ndim) if a != axis)
        limit = np.abs(w).max(axis=others, keepdims=True) if self.per_channel else np.abs(w).max()
        scale = np.maximum(np.asarray(limit, np.float32) / np.float32(127), np.float32(1e-30))
        q = np.clip(np.round(w / scale), -127, 127).astype(np.int8)
        self.weights[name] = [q, scale.reshape(-1) if self.per_channel else np.float32(scale), axis if self.per_channel else None]

    def quantize_biases(self):
        self.biases = {}
        for n in self.model.graph.node:
            if n.op_type == "Conv" and len(n.input) > 2:
                scale = (np.float64(self.activations[n.input[0]][0]) * np.asarray(self.weights[n.input[1]][1], np.float64))
                scale = np.broadcast_to(scale, self.arrays[n.input[2]].shape).astype(np.float32)
                q = np.clip(np.round(self.arrays[n.input[2]].astype(np.float64) / scale), -2**31, 2**31 - 1)
                self.biases[n.input[2]] = [q.astype(np.int32), scale]

    def write(self, path):
        nodes, made, initializers = [], {}, []

        def constant(name, array):
            initializers.append(numpy_helper.from_array(np.asarray(array), name))
            return name

        def dequantized(name, q, scale, axis):
            attributes = {} if axis is None else {"axis": axis}
            nodes.append(helper.make_node(
                "DequantizeLinear", [constant(name + "_quantized", q), constant(name + "_scale", scale)],
                [name + "_DequantizeLinear_Output"], name=name + "_DequantizeLinear", **attributes))
            return name + "_DequantizeLinear_Output"

        def quantize(name, source=None, output=None):
            scale, zero_point = self.activations[name][:2]
            parameters = [constant(name + "_scale", np.float32(scale)), constant(name + "_zero_point", np.uint8(zero_point))]
            q = name + "_QuantizeLinear_Output"
            nodes.append(helper.make_node("QuantizeLinear", [source or name, *parameters], [q], name=name + "_QuantizeLinear"))
            made[name] = output or name + "_DequantizeLinear_Output"
            if len(self.activations[name]) > 2:
                parameters[1] = constant(name + "_other_zero_point", np.uint8(self.activations[name][2]))
            nodes.append(helper.make_node("DequantizeLinear", [q, *parameters], [made[name]], name=name + "_DequantizeLinear"))

        for name, (q, scale, axis) in self.weights.items():
            made[name] = dequantized(name, q, scale, axis)
        for name, (q, scale) in self.biases.items():
            made[name] = dequantized(name, q, scale, 0)
        for name in self.arrays:
            if name not in made:
                constant(name, self.arrays[name])
        for i in self.model.graph.input:
            if i.name in self.activations:
                quantize(i.name)
        outputs = {o.name for o in self.model.graph.output}
        for n in self.model.graph.node:
            kept = copy.deepcopy(n)
            kept.input[:] = [made.get(i, i) for i in n.input]
            name = n.output[0]
            if name in outputs:
                kept.output[0] = name + "_before"
            nodes.append(kept)
            if name in self.activations:
                quantize(name, kept.output[0], name if name in outputs else None)
        graph = helper.make_graph(nodes, "quantized", self.model.graph.input, self.model.graph.output, initializers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
