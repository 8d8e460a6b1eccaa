# SPDX-License-Identifier: Apache-2.0
"""Runs each node of a model alone, in dqrun, on the values that ONNX Runtime has there with optimizations off.

usage: nodewise.py DQRUN MODEL.onnx INPUTS.npz

A whole model passes a difference of one quantum on, and random weights let it grow; this shows where differences begin. Prints
for each operator: nodes, elements, elements that differ, and the largest difference (of floats as a share of the largest value).
"""

import collections
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper


def all_values(model, feed):
    """The value of every name, by ONNX Runtime."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    outputs = {o.name for o in copy.graph.output}
    for node in model.graph.node:
        copy.graph.output.extend(helper.make_empty_tensor_value_info(o) for o in node.output if o and o not in outputs)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return {**feed, **dict(zip(names, session.run(None, feed)))}


def info(name, value, shape=True):
    dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(name, dtype, value.shape if shape else None)


def run_node(dqrun, folder, model, node, initializers, values):
    """The node's outputs by name, or the sentence of a refusal."""
    names = [n for n in dict.fromkeys(node.input) if n]
    fed = [n for n in names if n not in initializers]
    graph = helper.make_graph([node], "node", [info(n, values[n]) for n in fed],
                              [info(o, values[o], shape=False) for o in node.output if o],
                              [initializers[n] for n in names if n in initializers])
    path = os.path.join(folder, "node.onnx")
    onnx.save(helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version), path)
    inputs, outputs = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
    np.savez(inputs, **{n: values[n] for n in fed})
    command = [dqrun, path] + ([inputs] if fed else []) + ["-o", outputs]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return dict(np.load(outputs)) if done.returncode == 0 else done.stderr.strip()


def difference(got, expected):
    """Elements that differ, and the largest difference."""
    apart = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    if not apart.size:
        return 0, 0.0
    largest = np.abs(expected.astype(np.float64)).max() if expected.dtype.kind == "f" else 1
    return int((apart > 0).sum()), apart.max() / (largest or 1)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    dqrun, path, inputs = sys.argv[1:]
    model, feed = onnx.load(path), dict(np.load(inputs))
    values = all_values(model, feed)
    initializers = {i.name: i for i in model.graph.initializer}
    table = collections.defaultdict(lambda: [0, 0, 0, 0.0])
    with tempfile.TemporaryDirectory() as folder:
        for node in model.graph.node:
            row = table[f"{node.domain or 'ai.onnx'} {node.op_type}"]
            row[0] += 1
            outputs = run_node(dqrun, folder, model, node, initializers, values)
            if isinstance(outputs, str):
                print(f"{node.name}: {outputs}")
                continue
            for name, got in outputs.items():
                count, largest = difference(got, values[name])
                row[1:] = row[1] + got.size, row[2] + count, max(row[3], largest)
    print(f"{'operator':42}{'nodes':>7}{'elements':>12}{'differ':>9}  largest")
    for op, (nodes, elements, differ, largest) in sorted(table.items()):
        print(f"{op:42}{nodes:>7}{elements:>12}{differ:>9}  {largest:.2g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
