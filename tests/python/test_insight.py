# SPDX-License-Identifier: Apache-2.0
"""dqrun.inspect and dqrun.compare."""

import json
import math
import subprocess
import sys

import numpy as np
import onnx
import pytest

import dqrun
from conftest import EXAMPLES, ROOT

sys.path.append(str(ROOT / "tests" / "insight"))
import models  # noqa: E402

DIGITS = EXAMPLES / "digits_qdq.onnx"


@pytest.fixture(scope="module")
def float_digits():
    return models.float_digits(DIGITS)


@pytest.fixture(scope="module")
def labels():
    with np.load(EXAMPLES / "digits_labels.npz") as arrays:
        return arrays["labels"]


def clipped():
    """A model with a range that is far too narrow, its float form and an input."""
    model = models.small_conv()
    feed = {"image": np.random.default_rng(0).normal(0, 1, (8, 3, 12, 12)).astype(np.float32)}
    quantizer = models.Quantizer(model, models.observe(model, feed))
    quantizer.activations["relu1"][0] *= np.float32(0.25)
    return quantizer, model, feed


# ---- inspect ---------------------------------------------------------------------------------------------------------


def test_inspect():
    found = dqrun.inspect(DIGITS)
    assert found.model == str(DIGITS) and len(found.nodes) == 21
    assert found.computes["integer"] == 19 and found.integer_share > 0.9
    conv = next(node for node in found.nodes if node.op == "Conv-11")
    assert conv.computes == "integer" and conv.why_float is None and conv.outputs == ["conv1_sum"]
    tensor = next(tensor for tensor in found.tensors if tensor.name == "conv1_weight")
    assert (tensor.type, tensor.shape, tensor.kind, tensor.bytes) == ("int8", [8, 1, 3, 3], "initializer", 72)
    assert tensor.quantization["granularity"] == "axis"
    assert found.problems == [] and found.activation_bytes >= found.peak_bytes > 0
    assert json.loads(found.to_json())["model"] == str(DIGITS)
    assert "work on integers" in repr(found)


def test_inspect_shapes(digits):
    def shape(**options):
        return next(t for t in dqrun.inspect(DIGITS, **options).tensors if t.name == "conv1_sum").shape
    assert shape() == [1, 8, 8, 8]
    assert shape(dims={"N": 5}) == [5, 8, 8, 8]
    assert shape(inputs={"image": digits[:7]}) == [7, 8, 8, 8]
    with pytest.raises(dqrun.InvalidArgument, match="no input 'picture'"):
        dqrun.inspect(DIGITS, {"picture": digits})


def test_inspect_of_what_cannot_run():
    node = onnx.helper.make_node("Nonsense", ["x"], ["y"], domain="absent")
    info = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1]) for n in "xy"]
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", info[:1], info[1:]),
                                   opset_imports=[onnx.helper.make_opsetid("absent", 1)], ir_version=8)
    found = dqrun.inspect(model)
    assert found.problems and math.isnan(found.integer_share)
    assert "cannot run" in repr(found) and "<!doctype html>" in found.to_html()


def test_inspect_equals_the_command():
    done = subprocess.run([sys.executable, "-m", "dqrun", "inspect", str(DIGITS), "--json"], capture_output=True, check=True)
    assert json.loads(done.stdout) == json.loads(dqrun.inspect(DIGITS).to_json())


def test_pages(tmp_path):
    found = dqrun.inspect(DIGITS)
    text = found.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == text and text.startswith("<!doctype html>")
    assert "http" + "://" not in text and "https" + "://" not in text
    shown = found._repr_html_()
    assert "srcdoc=" in shown and shown.count("<iframe") == 1 and "sandbox" in shown
    found.to_json(tmp_path / "found.json")
    assert json.loads((tmp_path / "found.json").read_text())["nodes"]


# ---- compare ---------------------------------------------------------------------------------------------------------


def test_compare(digits, float_digits, labels):
    found = dqrun.compare(DIGITS, {"image": digits}, float=float_digits, labels=labels)
    assert found.matched == 7 and found.unmatched == []
    assert 40 < found.sqnr_db < 44 and found.flips == [88]
    assert found.accuracy == 439 / 450 and found.float_accuracy == 440 / 450
    assert found.verdicts == [] and found.nodes_to_exclude == [] and found.scales == {}
    relu = next(tensor for tensor in found.tensors if tensor.name == "conv1_relu")
    assert relu.floor.sqnr_db > 40 and relu.range.quantized_values == 256 and relu.range.clipped_low == 0
    assert next(tensor for tensor in found.tensors if tensor.name == "features").own.sqnr_db == math.inf
    weight = next(weight for weight in found.weights if weight.name == "conv1_weight")
    assert weight.per_channel and len(weight.channel_range) == 8
    assert [node.name for node in found.nodes if any(w.name == "dense_weight" for w in node.weights)] == ["scores_sum"]
    assert "SQNR of the outputs" in repr(found) and "<iframe" in found._repr_html_()


def test_compare_finds_and_mends(tmp_path):
    quantizer, model, feed = clipped()
    quantizer.write(tmp_path / "clipped.onnx")
    seen = []
    found = dqrun.compare(tmp_path / "clipped.onnx", [feed, feed], float=model, leave_one_out=True, fix=tmp_path / "fixed.onnx",
                          progress=lambda phase, done: seen.append((phase, done)))
    assert (found.verdicts[0].cause, found.verdicts[0].value) == ("clipped", "relu1")
    assert "relu1_scale" in found.scales and found.scales["relu1_scale"]["scale"] > 0
    assert next(t for t in found.tensors if t.name == "relu1").gain_db > 1
    assert seen and all(isinstance(phase, str) and 0 <= done <= 1 for phase, done in seen)
    mended = dqrun.compare(tmp_path / "fixed.onnx", feed, float=model)
    assert mended.sqnr_db > found.sqnr_db + 5 and "clipped" not in [verdict.cause for verdict in mended.verdicts]


def test_compare_from_memory_and_by_values(tmp_path):
    quantizer, model, feed = clipped()
    quantizer.write(tmp_path / "clipped.onnx")
    values = models.observe(model, feed)
    by_model = dqrun.compare((tmp_path / "clipped.onnx").read_bytes(), feed, float=model)
    by_values = dqrun.compare(dqrun.Model(tmp_path / "clipped.onnx"), feed, reference=values)
    assert by_model.verdicts[0].value == by_values.verdicts[0].value == "relu1"
    assert by_values.float_model is None or isinstance(by_values.float_model, str)
    assert by_values.sqnr_db == pytest.approx(by_model.sqnr_db, abs=0.1)


class Loaded:
    """Inputs that are made when they are asked for."""

    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return {"image": self.images[i:i + 1]}


def test_inputs_of_many_kinds(digits, float_digits):
    one_by_one = [{"image": digits[i:i + 1]} for i in range(4)]
    expected = dqrun.compare(DIGITS, one_by_one, float=float_digits).to_json()
    assert dqrun.compare(DIGITS, iter(one_by_one), float=float_digits).to_json() == expected
    from collections.abc import Sequence

    Sequence.register(Loaded)
    assert dqrun.compare(DIGITS, Loaded(digits[:4]), float=float_digits).to_json() == expected


def test_errors(digits, float_digits):
    feed = {"image": digits[:2]}
    with pytest.raises(dqrun.InvalidArgument, match="either float"):
        dqrun.compare(DIGITS, feed)
    with pytest.raises(dqrun.InvalidArgument, match="inputs is empty"):
        dqrun.compare(DIGITS, [], float=float_digits)
    with pytest.raises(dqrun.InvalidArgument, match="map names 'absent'"):
        dqrun.compare(DIGITS, feed, float=float_digits, map={"scores": "absent"})
    with pytest.raises(dqrun.InvalidArgument, match="expected integers"):
        dqrun.compare(DIGITS, feed, float=float_digits, labels=[0.5, 1])
    with pytest.raises(dqrun.InvalidArgument, match="no input 'picture'"):
        dqrun.compare(DIGITS, {"picture": digits}, float=float_digits)
    with pytest.raises(dqrun.BadInput):
        dqrun.compare(DIGITS, {"image": digits[:, :, :3]}, float=float_digits)


def test_exceptions_of_callbacks(digits, float_digits):
    def fail(phase, done):
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        dqrun.compare(DIGITS, {"image": digits[:2]}, float=float_digits, progress=fail)

    def feeds():
        yield {"image": digits[:1]}
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        dqrun.compare(DIGITS, feeds(), float=float_digits)
