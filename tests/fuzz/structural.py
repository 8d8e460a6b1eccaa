#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes models where a byte does not reach: attributes, dimensions, element types, names, constants, versions, and
gives them to the fuzz target.

    structural.py REPLAY_MODEL FOLDER [--each N] [--seed S] [--keep FOLDER]

FOLDER holds node tests, as tests/onnx_backend/make_node_tests.py makes them. Each of their models, and a few of each operator
of com.microsoft as tests/com_microsoft makes them, is changed N times, 1 to 3 things at a time. A model that ends the target (a crash, a report of a sanitizer, no end within a minute) is kept and named. Prints
"N passed, N failed, N skipped"."""

import argparse
import importlib
import itertools
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

BATCH = 250
CASES = 5  # of each operator of com.microsoft
MODEL_BYTES = 20000  # larger ones take their time and tell no more
INTS = [0, 1, -1, 2, 3, 7, 16, 255, -2, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 40]
FLOATS = [0.0, -1.0, 1e30, -1e30, float("nan"), float("inf"), float("-inf"), 1e-40]
STRINGS = [b"", b"X", b"SAME_UPPER", b"linear", b"reflect", b"NOTSET", b"\xff\xfe", b"ij,jk->ik", b"round_prefer_floor"]


def change_attribute(node, graph, rng):
    if not node.attribute:
        return
    attribute = rng.choice(node.attribute)
    if rng.random() < 0.15:
        node.attribute.remove(attribute)
    elif attribute.type == AttributeProto.INT:
        attribute.i = rng.choice(INTS)
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = rng.choice(FLOATS)
    elif attribute.type == AttributeProto.STRING:
        attribute.s = rng.choice(STRINGS)
    elif attribute.type == AttributeProto.INTS:
        change_list(attribute.ints, INTS, rng)
    elif attribute.type == AttributeProto.FLOATS:
        change_list(attribute.floats, FLOATS, rng)
    elif attribute.type == AttributeProto.STRINGS:
        change_list(attribute.strings, STRINGS, rng)
    elif attribute.type == AttributeProto.GRAPH and attribute.g.node:
        change_node(attribute.g, rng)


def change_list(values, choice, rng):
    way = rng.randrange(4)
    if way == 0 or not values:
        values.append(rng.choice(choice))
    elif way == 1:
        values.pop()
    else:
        values[rng.randrange(len(values))] = rng.choice(choice)


def change_names(node, graph, rng):
    names = rng.choice([node.input, node.output])
    if not names:
        return
    at = rng.randrange(len(names))
    way = rng.randrange(5)
    if way == 0:
        names[at] = ""
    elif way == 1:
        names[at] = names[rng.randrange(len(names))]
    elif way == 2:
        names.append(rng.choice(list(names)))
    elif way == 3:
        names.pop()
    else:
        other = rng.choice(graph.node)
        names[at] = rng.choice([*other.input, *other.output, *(i.name for i in graph.input), "nowhere"])


def change_dims(dims, rng):
    way = rng.randrange(4)
    if way == 0 and dims:
        dims.pop()
    elif way == 1:
        dims.add().dim_value = rng.choice([0, 1, 2, 5])
    elif dims:
        dim = rng.choice(dims)
        size = rng.choice([0, 1, 2, 3, 4, 7, 64, 1 << 40])
        if way == 2:
            dim.dim_value = size
        else:
            dim.dim_param = "N"


def change_input(node, graph, rng):
    if not graph.input:
        return
    value = rng.choice(graph.input)
    if not value.type.HasField("tensor_type"):
        return
    if rng.random() < 0.25:
        value.type.tensor_type.elem_type = rng.randrange(1, 29)
    else:
        change_dims(value.type.tensor_type.shape.dim, rng)


def change_outputs(node, graph, rng):
    """Others of the node's values are requested: what nobody wants is not computed."""
    if not graph.output:
        return
    if len(graph.output) > 1 and rng.random() < 0.5:
        graph.output.pop(rng.randrange(len(graph.output)))
    elif node.output:
        graph.output[0].name = rng.choice(list(node.output))
        graph.output[0].ClearField("type")


def make_constant(node, graph, rng):
    """An input becomes an initializer of odd values."""
    inputs = [i for i in graph.input if i.type.HasField("tensor_type") and i.name in node.input]
    if not inputs:
        return
    value = rng.choice(inputs)
    dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
    elem = value.type.tensor_type.elem_type
    if np.prod(dims, dtype=float) > 4096 or elem in (TensorProto.STRING, 0):
        return
    dtype = onnx.helper.tensor_dtype_to_np_dtype(elem)
    choice = FLOATS + [1.0, 2.0, 0.5] if np.issubdtype(dtype, np.floating) else INTS
    draw = np.array([rng.choice(choice) for _ in range(int(np.prod(dims)))], dtype=object).reshape(dims)
    with np.errstate(all="ignore"):
        array = draw.astype(np.float64).astype(dtype) if dtype.kind not in "iu" else \
            np.array([int(v) & (2 ** (8 * dtype.itemsize) - 1) for v in draw.ravel()], np.uint64).astype(dtype).reshape(dims)
    graph.initializer.append(numpy_helper.from_array(array, value.name))
    graph.input.remove(value)


CHANGES = [change_attribute] * 4 + [change_names] * 2 + [change_input] * 3 + [change_outputs] + [make_constant] * 3


def change_node(graph, rng):
    rng.choice(CHANGES)(rng.choice(graph.node), graph, rng)


def mutant(model, rng):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.05:
            rng.choice(copy.opset_import).version = rng.randint(1, 29)
        elif copy.graph.node:
            change_node(copy.graph, rng)
    return copy.SerializeToString()


def survives(replay, files):
    try:
        done = subprocess.run([replay, *files], capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return "does not end within a minute"
    if done.returncode == 0:
        return None
    lines = done.stderr.decode(errors="replace").splitlines()
    told = [line for line in lines if "SUMMARY" in line or "runtime error" in line]
    return (told or lines or [f"exit code {done.returncode}"])[0]


def node_tests(folder):
    for path in sorted(folder.glob("*/model.onnx")):
        if path.stat().st_size <= MODEL_BYTES:
            yield path.parent.name, onnx.load(path)


def microsoft():
    """A few models of each operator of com.microsoft."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "com_microsoft"))
    import cases
    import compare
    for module in compare.MODULES:
        for name, (make, _) in importlib.import_module(module).OPERATORS.items():
            for i, case in enumerate(itertools.islice(make(np.random.default_rng(1)), CASES)):
                yield f"{name}_{i}", cases.model_of([case])[0]


def mutants(folder, rng, each):
    for name, model in itertools.chain(node_tests(folder), microsoft()):
        for i in range(each):
            try:
                yield f"{name}-{i}.onnx", mutant(model, rng)
            except (ValueError, OverflowError, TypeError):  # protobuf and numpy refuse some values
                continue


def batches(items):
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def main():
    parser = argparse.ArgumentParser(description="Give changed models to the fuzz target.")
    parser.add_argument("replay")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--each", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("."), help="where models that fail go")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    passed = failed = 0
    for batch in batches(mutants(options.folder, rng, options.each)):
        with tempfile.TemporaryDirectory() as folder:
            for name, data in batch:
                (pathlib.Path(folder) / name).write_bytes(data)
            files = [str(pathlib.Path(folder) / name) for name, _ in batch]
            bad = []
            if survives(options.replay, files):
                bad = [(f, why) for f in files if (why := survives(options.replay, [f]))]
            for file, why in bad:
                shutil.copy(file, options.keep)
                print(f"FAILED: {options.keep / pathlib.Path(file).name}: {why}", flush=True)
            passed += len(batch) - len(bad)
            failed += len(bad)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
