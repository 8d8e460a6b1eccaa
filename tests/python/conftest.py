# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share, and the closing line of their run."""

import pathlib

import numpy as np
import pytest
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"


def one_node(op, inputs, outputs, *, opset=21, domain="", initializers=(), **attributes):
    """A model of one node: inputs and outputs are (name, onnx type, shape)."""
    infos = [[helper.make_tensor_value_info(*value) for value in values] for values in (inputs, outputs)]
    names = [value[0] for value in inputs] + [tensor.name for tensor in initializers]
    node = helper.make_node(op, names, [value[0] for value in outputs], domain=domain, **attributes)
    graph = helper.make_graph([node], op, *infos, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, opset)], ir_version=10)


def identity(dtype, shape=("N", "M"), opset=25):
    return one_node("Identity", [("x", dtype, shape)], [("y", dtype, shape)], opset=opset)


def add_models(rows=("N", 4)):
    """y = x + x, of floats."""
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "twice",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, rows)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, rows)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.fixture(scope="session")
def digits():
    with np.load(EXAMPLES / "digits_test.npz") as arrays:
        return arrays[arrays.files[0]]


@pytest.fixture
def twice():
    return add_models().SerializeToString()


def pytest_terminal_summary(terminalreporter):
    count = {key: len(terminalreporter.stats.get(key, [])) for key in ("passed", "xfailed", "failed", "error", "xpassed", "skipped")}
    terminalreporter.write_line(f"{count['passed'] + count['xfailed']} passed, "
                                f"{count['failed'] + count['error'] + count['xpassed']} failed, {count['skipped']} skipped")




def pytest_collection_modifyitems(config, items):
    """The backend suite has each case for CUDA, too, which dqrun says that it does not support."""
    cuda = [item for item in items if item.name.endswith("_cuda")]
    items[:] = [item for item in items if not item.name.endswith("_cuda")]
    config.hook.pytest_deselected(items=cuda)
