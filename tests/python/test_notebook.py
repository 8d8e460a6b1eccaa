# SPDX-License-Identifier: Apache-2.0
"""The example notebook runs from its first cell to its last, and what it shows has a form for notebooks."""

import ast
import json

import pytest

from conftest import EXAMPLES, ROOT


def cells():
    notebook = json.loads((EXAMPLES / "python" / "digits.ipynb").read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_notebook(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    names, shown = {}, []
    for source in cells():
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), names)
        if last:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            if value is not None:
                shown.append(value._repr_html_())
    out = capsys.readouterr().out
    assert "accuracy: 97." in out and "True" in out and "per tensor" in out and "QLinearConv" in out
    assert len(shown) == 3 and all(text.startswith("<table>") for text in shown)


def test_graph_of_the_example(digits):
    import dqrun

    model = dqrun.Model(EXAMPLES / "digits_qdq.onnx")
    graph = model.graph
    conv = next(node for node in graph.nodes if node.op_type == "Conv")
    assert conv.op == "Conv-11" and conv.attributes["group"] == 1 and isinstance(conv.attributes["pads"], list)
    weight = conv.inputs[1].producer
    assert weight.op_type == "DequantizeLinear"
    quantized = weight.inputs[0]
    assert quantized.initializer.dtype.name == "int8" and quantized.quantization.granularity == "per axis"
    assert quantized.quantization.axis == 0 and quantized.quantization.scale.shape == (quantized.initializer.shape[0],)
    assert quantized.consumers == [weight] and conv in conv.inputs[0].consumers
    assert graph.values["scores"].is_output and graph.inputs[0].is_input and graph.inputs[0].shape == ("N", 1, 8, 8)
    assert model.metadata.producer_name == "make_digits.py" and model.metadata.opsets == {"": 13}
    session = dqrun.Session(model)
    steps = session.steps({"image": digits})
    written = [node for step in steps for node in step.written]
    assert len(written) == len(set(written)) >= 15
    memory = session.memory({"image": digits})
    assert memory.activation_bytes > 0 and memory.weight_bytes > 0
    with pytest.raises(dqrun.BadInput):
        session.memory({})
