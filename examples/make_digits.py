#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the example: a small classifier of handwritten digits, quantized in three ways.

    python3 examples/make_digits.py [FOLDER]        (default: the folder of this script)

Trains a convolutional network in float32 with numpy alone on the 8x8 digits that scikit-learn carries,
measures the range of every activation on the training images, quantizes weights and activations, and writes

    digits_qoperator.onnx   QLinearConv and QLinearMatMul: integers from the first operator to the last
    digits_qdq.onnx         the same numbers, as float operators between QuantizeLinear and DequantizeLinear
    digits_dynamic.onnx     ConvInteger and MatMulInteger; activation ranges are measured while running
    digits_test.npz         image: the held-out images, float32 [450, 1, 8, 8], 0 (paper) to 1 (ink)
    digits_labels.npz       labels: what they show, int64 [450]

No held-out image is seen in training or in calibration. Needs numpy, onnx and scikit-learn; takes some seconds.
The same versions on the same kind of CPU write the same bytes; elsewhere numpy's float sums may differ in the last bit.
"""

import os
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # a sum split over threads would depend on the machine

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

SEED = 20
HELD_OUT = 450
EPOCHS = 40
BATCH = 32
OPSET = 13
IR_VERSION = 8


def load_split():
    """Images as float32 [N,1,8,8] in 0..1, split by a seeded permutation."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    order = np.random.default_rng(SEED).permutation(len(labels))
    held_out, train = order[:HELD_OUT], order[HELD_OUT:]
    return images[train], labels[train], images[held_out], labels[held_out]


class Conv:
    """A 3x3 convolution with a border of one zero, followed by Relu."""

    def __init__(self, rng, channels_in, channels_out, stride):
        deviation = np.sqrt(2 / (9 * channels_in))
        self.weight = rng.normal(0, deviation, (channels_out, channels_in, 3, 3)).astype(np.float32)
        self.bias = np.zeros(channels_out, np.float32)
        self.stride = stride

    def parameters(self):
        return [self.weight, self.bias]

    def forward(self, x):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        windows = windows[:, :, :: self.stride, :: self.stride]
        n, channels, height, width = windows.shape[:4]
        self.input_shape = x.shape
        self.columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * height * width, channels * 9)
        y = self.columns @ self.weight.reshape(len(self.bias), -1).T + self.bias
        self.active = y > 0
        self.output_shape = (n, height, width, len(self.bias))
        return np.maximum(y, 0).reshape(self.output_shape).transpose(0, 3, 1, 2)

    def backward(self, gradient):
        """Return the gradients of the parameters and of the input."""
        rows = gradient.transpose(0, 2, 3, 1).reshape(-1, len(self.bias)) * self.active
        of_weight = (rows.T @ self.columns).reshape(self.weight.shape)
        n, height, width, _ = self.output_shape
        channels, size = self.input_shape[1:3]
        columns = (rows @ self.weight.reshape(len(self.bias), -1)).reshape(n, height, width, channels, 3, 3)
        padded = np.zeros((n, channels, size + 2, size + 2), np.float32)
        step = self.stride
        for i in range(3):
            for j in range(3):
                window = padded[:, :, i : i + step * height : step, j : j + step * width : step]
                window += columns[..., i, j].transpose(0, 3, 1, 2)
        return [of_weight, rows.sum(0)], padded[:, :, 1:-1, 1:-1]


class Network:
    """Two convolutions and a matrix; the matrix has no bias because QLinearMatMul has none."""

    def __init__(self, rng):
        self.convs = [Conv(rng, 1, 8, 1), Conv(rng, 8, 16, 2)]
        self.matrix = rng.normal(0, 1 / 16, (256, 10)).astype(np.float32)

    def parameters(self):
        return [p for conv in self.convs for p in conv.parameters()] + [self.matrix]

    def forward(self, x):
        """Return the activations: the images, what each convolution gives, the scores."""
        activations = [x]
        for conv in self.convs:
            activations.append(conv.forward(activations[-1]))
        return [*activations, activations[-1].reshape(len(x), -1) @ self.matrix]

    def gradients(self, activations, labels):
        """Gradients of the mean cross entropy, in the order of parameters()."""
        features, scores = activations[-2:]
        gradient = np.exp(scores - scores.max(1, keepdims=True))
        gradient /= gradient.sum(1, keepdims=True)
        gradient[np.arange(len(labels)), labels] -= 1
        gradient /= len(labels)
        found = [features.reshape(len(labels), -1).T @ gradient]
        gradient = (gradient @ self.matrix.T).reshape(features.shape)
        for conv in reversed(self.convs):
            of_parameters, gradient = conv.backward(gradient)
            found = of_parameters + found
        return found


def shifted(rng, images):
    """Move every image by at most one pixel, so that the network does not learn positions by heart."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    result = np.empty_like(images)
    for index, (row, column) in enumerate(rng.integers(0, 3, (len(images), 2))):
        result[index] = padded[index, :, row : row + 8, column : column + 8]
    return result


def train(images, labels):
    """Adam with a rate that falls to zero along a half cosine."""
    rng = np.random.default_rng(SEED + 1)
    network = Network(rng)
    parameters = network.parameters()
    first = [np.zeros_like(p) for p in parameters]
    second = [np.zeros_like(p) for p in parameters]
    steps = EPOCHS * (len(labels) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(labels))
        for start in range(0, len(labels) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            activations = network.forward(shifted(rng, images[chosen]))
            rate = 0.003 * (1 + np.cos(np.pi * step / steps))
            step += 1
            for p, g, m, v in zip(parameters, network.gradients(activations, labels[chosen]), first, second):
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                p -= (rate * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)).astype(np.float32)
    return network


def activation_range(values):
    """Scale and zero point that map the range of the values, widened to hold zero, onto uint8."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    scale = np.float32((high - low) / 255)
    return scale, np.uint8(np.clip(np.rint(-low / float(scale)), 0, 255))


def quantize_weight(weight, axis):
    """Symmetric int8 with a scale for each index of the axis; -128 is left out."""
    others = tuple(a for a in range(weight.ndim) if a != axis)
    scale = (np.abs(weight).max(others) / 127).astype(np.float32)
    shape = [-1 if a == axis else 1 for a in range(weight.ndim)]
    codes = np.rint(weight.astype(np.float64) / scale.astype(np.float64).reshape(shape))
    return np.clip(codes, -127, 127).astype(np.int8), scale


class Builder:
    """Collects nodes and constants. Every node has one output, unless told otherwise, named like the node."""

    def __init__(self):
        self.nodes, self.constants = [], {}

    def constant(self, name, value):
        self.constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def node(self, op_type, inputs, name, outputs=None, **attributes):
        outputs = outputs or [name]
        self.nodes.append(helper.make_node(op_type, inputs, outputs, name=name, **attributes))
        return outputs if len(outputs) > 1 else outputs[0]

    def write(self, path, about):
        image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])
        scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", 10])
        graph = helper.make_graph(self.nodes, "digits", [image], [scores], list(self.constants.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                                  ir_version=IR_VERSION, producer_name="make_digits.py", doc_string=about)
        onnx.checker.check_model(model, full_check=True)
        path.write_bytes(model.SerializeToString(deterministic=True))


class Quantized:
    """The numbers that the static forms share: activation ranges, weight codes, weight scales, bias codes."""

    def __init__(self, network, images):
        activations = network.forward(images)
        self.ranges = dict(zip(("image", "conv1", "conv2", "scores"), map(activation_range, activations)))
        self.weights, self.biases = {}, {}
        before = "image"
        for name, conv in zip(("conv1", "conv2"), network.convs):
            self.weights[name] = quantize_weight(conv.weight, 0)
            step = float(self.ranges[before][0]) * self.weights[name][1].astype(np.float64)
            self.biases[name] = np.rint(conv.bias / step).astype(np.int32), step.astype(np.float32)
            before = name
        self.weights["dense"] = quantize_weight(network.matrix, 1)


def conv_attributes(conv):
    return {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [conv.stride, conv.stride]}


def add_range(build, name, numbers):
    scale, zero_point = numbers.ranges[name]
    return [build.constant(f"{name}_scale", scale), build.constant(f"{name}_zero_point", zero_point)]


def add_weight(build, name, numbers):
    codes, scale = numbers.weights[name]
    return [build.constant(f"{name}_weight", codes), build.constant(f"{name}_weight_scale", scale),
            build.constant(f"{name}_weight_zero_point", np.zeros(len(scale), np.int8))]


def write_qoperator(path, network, numbers):
    """Relu needs no operator: the outputs of the convolutions have zero point 0, and saturation cuts below it."""
    build = Builder()
    before = add_range(build, "image", numbers)
    value = build.node("QuantizeLinear", ["image", *before], "image_codes")
    for name, conv in zip(("conv1", "conv2"), network.convs):
        after = add_range(build, name, numbers)
        bias = build.constant(f"{name}_bias", numbers.biases[name][0])
        inputs = [value, *before, *add_weight(build, name, numbers), *after, bias]
        value = build.node("QLinearConv", inputs, f"{name}_codes", **conv_attributes(conv))
        before = after
    value = build.node("Flatten", [value], "features")
    after = add_range(build, "scores", numbers)
    inputs = [value, *before, *add_weight(build, "dense", numbers), *after]
    value = build.node("QLinearMatMul", inputs, "scores_codes")
    build.node("DequantizeLinear", [value, *after], "scores")
    build.write(path, "Handwritten digits 8x8, static int8, QOperator form.")


def write_qdq(path, network, numbers):
    build = Builder()

    def through_codes(value, name, parameters):
        codes = build.node("QuantizeLinear", [value, *parameters], f"{name}_codes")
        return build.node("DequantizeLinear", [codes, *parameters], name)

    parameters = add_range(build, "image", numbers)
    value = through_codes("image", "image_rounded", parameters)
    for name, conv in zip(("conv1", "conv2"), network.convs):
        weight = build.node("DequantizeLinear", add_weight(build, name, numbers), f"{name}_weight_real", axis=0)
        codes, step = numbers.biases[name]
        bias = [build.constant(f"{name}_bias", codes), build.constant(f"{name}_bias_scale", step)]
        bias = build.node("DequantizeLinear", bias, f"{name}_bias_real", axis=0)
        value = build.node("Conv", [value, weight, bias], f"{name}_sum", **conv_attributes(conv))
        value = build.node("Relu", [value], f"{name}_relu")
        parameters = add_range(build, name, numbers)
        value = through_codes(value, f"{name}_rounded", parameters)
    value = build.node("Flatten", [value], "features")
    value = through_codes(value, "features_rounded", parameters)
    weight = build.node("DequantizeLinear", add_weight(build, "dense", numbers), "dense_weight_real", axis=1)
    value = build.node("MatMul", [value, weight], "scores_sum")
    through_codes(value, "scores", add_range(build, "scores", numbers))
    build.write(path, "Handwritten digits 8x8, static int8, QDQ form.")


def write_dynamic(path, network, numbers):
    build = Builder()

    def scaled(name, value, codes, scale, op_type, **attributes):
        """Quantize the value as it comes, sum integers, and multiply the sum by both scales."""
        outputs = [f"{name}_in_codes", f"{name}_in_scale", f"{name}_in_zero_point"]
        x, x_scale, x_zero_point = build.node("DynamicQuantizeLinear", [value], f"{name}_in", outputs)
        weight = build.constant(f"{name}_weight", codes)
        total = build.node(op_type, [x, weight, x_zero_point], f"{name}_total", **attributes)
        total = build.node("Cast", [total], f"{name}_total_real", to=TensorProto.FLOAT)
        step = build.node("Mul", [x_scale, build.constant(f"{name}_weight_scale", scale)], f"{name}_step")
        return [total, step]

    value = "image"
    for name, conv in zip(("conv1", "conv2"), network.convs):
        codes, scale = numbers.weights[name]
        product = scaled(name, value, codes, scale.reshape(-1, 1, 1), "ConvInteger", **conv_attributes(conv))
        value = build.node("Mul", product, f"{name}_scaled")
        bias = build.constant(f"{name}_bias", conv.bias.reshape(-1, 1, 1))
        value = build.node("Add", [value, bias], f"{name}_sum")
        value = build.node("Relu", [value], f"{name}_relu")
    value = build.node("Flatten", [value], "features")
    build.node("Mul", scaled("dense", value, *numbers.weights["dense"], "MatMulInteger"), "scores")
    build.write(path, "Handwritten digits 8x8, int8 weights, activations quantized while running.")


def main():
    if len(sys.argv) > 2 or any(argument.startswith("-") for argument in sys.argv[1:]):
        print(__doc__)
        return 0 if sys.argv[1:] == ["--help"] else 2
    folder = Path(sys.argv[1]) if len(sys.argv) == 2 else Path(__file__).parent
    folder.mkdir(parents=True, exist_ok=True)
    images, labels, test_images, test_labels = load_split()
    network = train(images, labels)
    right = (network.forward(test_images)[-1].argmax(1) == test_labels).sum()
    print(f"float32: {right} of {len(test_labels)} held-out images right")
    numbers = Quantized(network, images)
    write_qoperator(folder / "digits_qoperator.onnx", network, numbers)
    write_qdq(folder / "digits_qdq.onnx", network, numbers)
    write_dynamic(folder / "digits_dynamic.onnx", network, numbers)
    np.savez_compressed(folder / "digits_test.npz", image=test_images)
    np.savez_compressed(folder / "digits_labels.npz", labels=test_labels)
    return 0


if __name__ == "__main__":
    sys.exit(main())
