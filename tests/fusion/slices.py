#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold networks over a batch, which run slice by slice (src/plan/batch_tiling.h), against the same pictures one by one.

    slices.py DQRUN [--cases N] [--seed N]

Random convolutional networks in float and with codes, each with a tail that must not run by slices, which numpy computes.
Bits must be the same with one thread, two and three. The last line is "N passed, N failed, N skipped".
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

TOLD = " nodes run in batch tiles, "


class Net:
    """A random network over pictures `x`, whose last value is `self.last`."""

    def __init__(self, rng, codes):
        self.rng, self.codes, self.nodes, self.constants, self.count = rng, codes, [], [], 0
        self.channels, self.side = int(rng.choice([8, 16])), int(rng.choice([48, 64])) * (3 if codes else 1)
        self.last = "x"

    def constant(self, array, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def node(self, op, inputs, domain="", outputs=1, **attributes):
        self.count += 1
        names = [f"v{self.count}_{i}" if i else f"v{self.count}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names[0]

    def coded(self, value):
        if not self.codes:
            return value
        params = [self.constant(1 / 16), self.constant(128, np.uint8)]
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [value, *params]), *params])

    def weights(self, shape):
        array = self.rng.integers(-127, 128, shape)
        if not self.codes:
            return self.constant(array / 500)
        scale = self.constant(1 / 500)
        return self.node("DequantizeLinear", [self.constant(array, np.int8), scale, self.constant(0, np.int8)])

    def conv(self, value):
        window = int(self.rng.choice([1, 3]))
        inputs = [value, self.weights((self.channels, self.channels, window, window))]
        return self.coded(self.node("Conv", inputs, pads=[window // 2] * 4))

    def stage(self):
        value, c = self.last, self.channels
        kind = self.rng.choice(["conv", "residual", "concat", "pool", "gate", "shuffle", "scaled"])
        if kind == "conv":
            self.last = self.coded(self.node("Relu", [self.conv(value)]))
        elif kind == "residual":
            self.last = self.coded(self.node("Add", [self.conv(value), value]))
        elif kind == "concat":
            both = self.coded(self.node("Concat", [value, self.conv(value)], axis=1))
            self.last = self.coded(self.node("Conv", [both, self.weights((c, 2 * c, 1, 1))]))
        elif kind == "pool":
            self.last = self.node("MaxPool", [value], kernel_shape=[3, 3], pads=[1] * 4)
        elif kind == "gate":
            mean = self.coded(self.node("GlobalAveragePool", [value]))
            self.last = self.coded(self.node("Mul", [value, self.coded(self.node("Sigmoid", [mean]))]))
        elif kind == "shuffle":
            shape = self.node("Shape", [value])
            parts = [self.node("Slice", [shape, self.constant([0], np.int64), self.constant([1], np.int64)]),
                     self.constant([2, c // 2, self.side, self.side], np.int64)]
            turned = self.node("Transpose", [self.node("Reshape", [value, self.node("Concat", parts, axis=0)])],
                               perm=[0, 2, 1, 3, 4])
            shape = self.constant([self.rng.choice([0, -1]), c, self.side, self.side], np.int64)
            self.last = self.node("Reshape", [turned, shape])
        else:
            self.last = self.coded(self.node("Mul", [value, self.constant(self.rng.random((c, 1, 1)) + 0.5)]))

    def save(self, path, outputs):
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "slices", [value("x", TensorProto.FLOAT, ["n", self.channels, self.side, self.side])],
            [helper.make_empty_tensor_value_info(o) for o in outputs], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        path.write_bytes(model.SerializeToString())


def by_length(h):
    return h / np.float32(len(h))


def tails(net, batch):
    """What mixes pictures, or cannot be cut into them: an output by name, and what numpy makes of the last value."""
    h, wide = net.last, np.arange(batch, dtype=np.float32).reshape(batch, 1, 1, 1)
    length = net.node("Gather", [net.node("Shape", [h]), net.constant(0, np.int64)])
    size = net.channels * net.side * net.side
    return {
        net.node("Add", [h, net.constant(wide)]): lambda a: a + wide,
        net.node("Transpose", [h], perm=[1, 0, 2, 3]): lambda a: a.transpose(1, 0, 2, 3),
        net.node("Div", [h, net.node("Cast", [length], to=TensorProto.FLOAT)]): by_length,
        net.node("Concat", [h, h], axis=0): lambda a: np.concatenate([a, a]),
        net.node("ReduceMax", [h], axes=[0], keepdims=0): lambda a: a.max(0),
        net.node("Reshape", [h, net.constant([batch, size], np.int64)]): lambda a: a.reshape(batch, -1),
        net.node("Reshape", [h, net.constant([size, -1], np.int64)]): lambda a: a.reshape(size, -1),
        net.node("Relu", [net.node("Flatten", [h])]): lambda a: np.maximum(a.reshape(batch, -1), 0),
    }


def run(program, folder, model, x, outputs, threads):
    np.savez(folder / "in.npz", x=x)
    command = [program, model, "in.npz", "-o", "out.npz", "--why", "--threads", threads]
    for name in outputs:
        command += ["--value", name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    with np.load(folder / "out.npz") as file:
        return dict(file), done.stderr


def check(program, folder, rng):
    net, batch = Net(rng, rng.random() < 0.5), int(rng.choice([6, 8, 9, 11]))
    for _ in range(int(rng.integers(4, 8))):
        net.stage()
    inner = net.nodes[len(net.nodes) // 2].output[0]
    x = rng.standard_normal((batch, net.channels, net.side, net.side)).astype(np.float32)
    last, others = net.last, tails(net, batch)
    kept = list(dict.fromkeys([last, *([inner] if rng.random() < 0.3 else [])]))  # what is kept is not fused
    requested = [*kept, *others]
    net.save(folder / "model.onnx", requested)
    got, why = run(program, folder, "model.onnx", x, requested, "1")
    problems = [] if TOLD in why else ["runs over all slices at once"]
    net.save(folder / "alone.onnx", kept)
    alone = [run(program, folder, "alone.onnx", x[i:i + 1], kept, "1")[0][last] for i in range(batch)]
    if np.concatenate(alone).tobytes() != got[last].tobytes():
        problems.append("pictures one by one have other bits")
    for name, expected in others.items():
        if not np.array_equal(expected(got[last]), got[name]):
            problems.append(f"{name} is not what numpy makes of {last}")
    for threads in ("2", "3"):
        again = run(program, folder, "model.onnx", x, requested, threads)[0]
        problems += [f"{n} has other bits with {threads} threads" for n in got if again[n].tobytes() != got[n].tobytes()]
    return problems


def main():
    parser = argparse.ArgumentParser(description="Hold networks over batches against pictures one by one.")
    parser.add_argument("dqrun", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="dqrun-slices-") as folder:
        for number in range(options.cases):
            rng = np.random.default_rng([options.seed, number])
            problems = check(options.dqrun.resolve(), pathlib.Path(folder), rng)
            failed += bool(problems)
            if problems:
                print(f"FAIL case {number}: {'; '.join(problems)}")
    print(f"{options.cases - failed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
