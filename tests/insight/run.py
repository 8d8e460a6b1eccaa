#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dqrun compare finds planted faults: the faulty value first, the right cause, and --fix brings the accuracy back. dqrun
inspect agrees with the models that it shows.

usage: run.py DQRUN [MODELS]

Six faults (clipped range, far too wide range, channels of different ranges, wrong zero point, overflowed bias, one bad
layer) are planted into quantized forms of three models: the digits of examples/, a convolutional network and a
transformer. MODELS is a folder of tests/models/make_models.py, whose models get faults too. The last line is 'N passed, N failed, N skipped'; the exit code is 1 when something failed."""

import copy
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
from onnx import helper, numpy_helper

import models

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
CLIP, WIDEN, OUTLIER, ZERO_POINT, MISMATCH, NOISE = 0.25, 30, 40, 128, 20, 12


class Case:
    """A model with its names: where a range, a weight and a bias get their faults."""

    def __init__(self, name, model, feed, activation, weight, weight_value, bias=None, dead=None, labels=None):
        self.name, self.model, self.feed, self.labels = name, model, feed, labels
        self.activation = activation      # a result of Relu
        self.weight, self.weight_value = weight, weight_value  # and the value that it gives
        self.bias = bias                  # (weight, bias, value) of a convolution
        self.dead = dead                  # change(arrays): a channel that is always 0, and a huge weight that reads it


def change(model, arrays):
    changed = copy.deepcopy(model)
    for t in changed.graph.initializer:
        if t.name in arrays:
            t.CopyFrom(numpy_helper.from_array(np.asarray(arrays[t.name], np.float32), t.name))
    return changed


def dead_conv(first, bias, second):
    def apply(arrays):
        arrays[first][1], arrays[bias][1] = 0, -0.01
        arrays[second][2, 1] = OUTLIER * np.abs(arrays[second]).max()
    return apply


def dead_hidden(arrays):
    arrays["up0"][:, 1] = 0
    arrays["down0"][1, 2] = OUTLIER * np.abs(arrays["down0"]).max()


def make_cases():
    rng = np.random.default_rng(1)
    digits = models.float_digits(EXAMPLES / "digits_qdq.onnx")
    yield Case("digits", digits, dict(np.load(EXAMPLES / "digits_test.npz")), "conv1_relu", "conv2_weight_real", "conv2_sum",
               ("conv2_weight_real", "conv2_bias_real", "conv2_sum"),
               dead_conv("conv1_weight_real", "conv1_bias_real", "conv2_weight_real"), EXAMPLES / "digits_labels.npz")
    yield Case("conv", models.small_conv(), {"image": rng.normal(0, 1, (64, 3, 12, 12)).astype("f4")}, "relu1", "w2", "conv2",
               ("w2", "b2", "conv2"), dead_conv("w1", "b1", "w2"))
    yield Case("transformer", models.small_transformer(), {"tokens": rng.normal(0, 1, (64, 12, 32)).astype("f4")}, "hidden0",
               "down0", "down_out0", None, dead_hidden)


# ---- Faults: each returns (float model, Quantizer, expected value, expected cause) ----------------------------------

def ranged(case, plant, cause):
    values = models.observe(case.model, case.feed)
    quantizer = models.Quantizer(case.model, values)
    plant(quantizer.activations[case.activation], values[case.activation])
    quantizer.quantize_biases()
    return case.model, quantizer, case.activation, cause


def clipped(case):
    return ranged(case, lambda a, v: a.__setitem__(0, np.float32(a[0] * CLIP)), "clipped")


def wide(case):
    return ranged(case, lambda a, v: a.__setitem__(0, np.float32(a[0] * WIDEN)), "wide_range")


def zero_point(case):
    return ranged(case, lambda a, v: a.__setitem__(1, ZERO_POINT), "zero_point")


def mismatch(case):
    return ranged(case, lambda a, v: a.append(MISMATCH), "mismatch")


def channel_spread(case):
    arrays = {n: a.copy() for n, a in models.arrays_of(case.model).items()}
    case.dead(arrays)
    model = change(case.model, arrays)
    quantizer = models.Quantizer(model, models.observe(model, case.feed))
    axis = quantizer.weights[case.weight][2]
    quantizer.per_channel = False
    quantizer.quantize_weight(case.weight, axis)
    quantizer.quantize_biases()
    return model, quantizer, case.weight_value, "channel_spread"


def bias_overflow(case):
    weight, bias, value = case.bias
    arrays = {n: a.copy() for n, a in models.arrays_of(case.model).items()}
    arrays[weight][3] *= 1e-12
    arrays[bias][3] = 2 * np.abs(models.observe(case.model, case.feed)[value]).max()
    model = change(case.model, arrays)
    return model, models.Quantizer(model, models.observe(model, case.feed)), value, "bias_overflow"


def bad_layer(case):
    quantizer = models.Quantizer(case.model, models.observe(case.model, case.feed))
    q = quantizer.weights[case.weight][0]
    noise = np.random.default_rng(2).normal(0, NOISE, q.shape)
    quantizer.weights[case.weight][0] = np.clip(np.round(q + noise), -127, 127).astype(np.int8)
    return case.model, quantizer, case.weight_value, "weights_differ"


FAULTS = [clipped, wide, zero_point, mismatch, channel_spread, bias_overflow, bad_layer]
RANGE_FAULTS = [clipped, wide, zero_point, mismatch]


# ---- Checks ---------------------------------------------------------------------------------------------------------

class Suite:
    def __init__(self, program, folder):
        self.program, self.folder = str(Path(program).resolve()), Path(folder)
        self.passed = self.failed = self.skipped = 0

    def case(self, name, work):
        try:
            work()
            self.passed += 1
        except Exception as why:
            self.failed += 1
            print(f"FAILED: {name}: {type(why).__name__}: {why}")

    def dqrun(self, *arguments, code=0):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, check=False, cwd=self.folder,
                              timeout=300)
        assert done.returncode == code, f"exit code {done.returncode}, expected {code}: {done.stderr.decode()}"
        return done.stdout.decode()

    def compare(self, quantized, case, *more, reference="float.onnx"):
        labels = ["--labels", case.labels] if case.labels else []
        return json.loads(self.dqrun("compare", quantized, f"{case.name}.npz", "--float", reference, "--json", *labels, *more))

    def write(self, case, model, quantizer, quantized):
        np.savez(self.folder / f"{case.name}.npz", **case.feed)
        onnx.save(model, str(self.folder / "float.onnx"))
        quantizer.write(self.folder / quantized)


def quality(result):
    """SQNR of the outputs, and the accuracy where labels are given."""
    output = result["outputs"][0]
    return float(output["error"]["sqnr_db"]), output.get("correct", 0) / output.get("labelled", 1)


def check_fault(suite, case, fault):
    model, quantizer, value, cause = fault(case)
    suite.write(case, model, quantizer, "faulty.onnx")
    result = suite.compare("faulty.onnx", case, *(["--fix", "fixed.onnx"] if fault in RANGE_FAULTS else []))
    assert result["verdicts"], "no verdict"
    first = result["verdicts"][0]
    assert (first["value"], first["cause"]) == (value, cause), \
        f"the first verdict is {first['cause']} at {first['value']}, expected {cause} at {value}: {first['why']}"
    if fault not in RANGE_FAULTS:
        return
    models.Quantizer(model, models.observe(model, case.feed)).write(suite.folder / "good.onnx")
    good, faulty, fixed = (quality(suite.compare(f, case)) for f in ("good.onnx", "faulty.onnx", "fixed.onnx"))
    assert fixed[0] > good[0] - 1.5 and fixed[1] >= good[1] - 0.005, f"fixed {fixed}, good {good}, faulty {faulty}"
    assert faulty[0] < good[0] - 3, f"the fault does no harm: faulty {faulty}, good {good}"
    onnx.checker.check_model(str(suite.folder / "fixed.onnx"))


def check_sound(suite, case):
    """A well quantized model has no verdict about a single node."""
    model = case.model
    suite.write(case, model, models.Quantizer(model, models.observe(model, case.feed)), "good.onnx")
    result = suite.compare("good.onnx", case)
    assert not [v for v in result["verdicts"] if v["cause"] != "accumulation"], result["verdicts"]
    assert result["matched"] == result["float_values"] and not result["unmatched"], result["unmatched"]
    for value in result["values"]:
        assert 0.25 < value["floor"]["rmse_over_scale"] < 0.31 or value["range"]["at_zero_point"] > 0.2 or \
            value["name"] == "image" and case.name == "digits", (value["name"], value["floor"])
    for weight in result["weights"]:
        assert 0.2 < weight["rmse_over_scale"] < 0.4 or case.name == "digits", weight


def check_leave_one_out(suite, case):
    model, quantizer, value, _ = clipped(case)
    suite.write(case, model, quantizer, "faulty.onnx")
    result = suite.compare("faulty.onnx", case, "--leave-one-out")
    gains = {v["name"]: v["gain_db"] for v in result["values"] if v["gain_db"] is not None}
    gains |= {w["name"]: w["gain_db"] for w in result["weights"] if w["gain_db"] is not None}
    best = max(gains, key=gains.get)
    assert best == value and gains[best] > 3, (best, gains)
    assert result["leave_one_out_runs"] <= len(gains) + 1 or len(gains) < len(result["values"]), result["leave_one_out_runs"]


def quantized_operators(suite, plant):
    """The shipped QOperator form; plant(arrays) changes its initializers."""
    model = onnx.load(EXAMPLES / "digits_qoperator.onnx")
    arrays = {n: a.copy() for n, a in models.arrays_of(model).items()}
    plant(arrays)
    for t in model.graph.initializer:
        t.CopyFrom(numpy_helper.from_array(arrays[t.name], t.name))
    onnx.save(model, str(suite.folder / "qoperator.onnx"))


def check_qoperator(suite, case):
    def clip(arrays):  # biases have the scale of the input times that of the weights
        arrays["conv1_scale"] = np.float32(arrays["conv1_scale"] * CLIP)
        arrays["conv2_bias"] = np.round(arrays["conv2_bias"] / CLIP).astype(np.int32)

    onnx.save(case.model, str(suite.folder / "float.onnx"))
    np.savez(suite.folder / "digits.npz", **case.feed)
    quantized_operators(suite, lambda arrays: None)
    good = suite.compare("qoperator.onnx", case)
    assert not good["verdicts"] and good["matched"] == 5 and not good["unmatched"], (good["matched"], good["unmatched"])
    quantized_operators(suite, clip)
    result = suite.compare("qoperator.onnx", case, "--fix", "fixed.onnx", "--leave-one-out")
    gains = {v["name"]: v["gain_db"] for v in result["values"]}
    assert max(gains, key=gains.get) == "conv1_relu" and gains["conv1_relu"] > 5, gains
    assert min(gains.values()) > -1, gains
    first = result["verdicts"][0]
    assert (first["value"], first["cause"]) == ("conv1_relu", "clipped"), first
    fixed = suite.compare("fixed.onnx", case)
    assert quality(fixed)[0] > quality(good)[0] - 1.5, (quality(result), quality(fixed), quality(good))


    move_conv1(suite.folder / "qoperator.onnx")
    moved = suite.compare("qoperator.onnx", case, "--leave-one-out")
    assert abs({v["name"]: v["gain_db"] for v in moved["values"]}["conv1_relu"] - gains["conv1_relu"]) < 0.1, moved["values"]


def move_conv1(path):
    """Moves quantized values between two convolutions, there and back."""
    model = onnx.load(path)
    convs = [i for i, n in enumerate(model.graph.node) if n.op_type == "QLinearConv"]
    before, after = (model.graph.node[i] for i in convs[:2])
    after.input[0] = "moved"
    model.graph.node.insert(convs[0] + 1, helper.make_node("SpaceToDepth", [before.output[0]], ["deep"], blocksize=2))
    model.graph.node.insert(convs[0] + 2, helper.make_node("DepthToSpace", ["deep"], ["moved"], blocksize=2))
    onnx.save(model, str(path))


def check_movements():
    """The list of float_forms.c has the operators that the library's table says to move or to select elements."""
    rows = re.findall(r'^DQ_OP\("", (\w+),.*DQ_TRAIT_(?:DATA_MOVEMENT|SELECTS)', (ROOT / "src/ops/ops.def").read_text(), re.MULTILINE)
    listed = re.search(r"movements\[\] = \{(.*?)\}", (ROOT / "tools/insight/float_forms.c").read_text(), re.DOTALL)[1]
    assert re.findall(r'"(\w+)"', listed) == rows, set(re.findall(r'"(\w+)"', listed)) ^ set(rows)


def check_reference_file(suite, case):
    model, quantizer, value, cause = clipped(case)
    suite.write(case, model, quantizer, "faulty.onnx")
    np.savez(suite.folder / "reference.npz", **models.observe(model, case.feed))
    result = json.loads(suite.dqrun("compare", "faulty.onnx", f"{case.name}.npz", "--ref", "reference.npz", "--json"))
    first = result["verdicts"][0]
    assert (first["value"], first["cause"]) == (value, cause), first


def check_map(suite, case):
    """A float model with other names: structure matches its values, --map overrides."""
    model, quantizer, value, cause = clipped(case)
    suite.write(case, model, quantizer, "faulty.onnx")
    renamed = copy.deepcopy(model)
    outputs = {o.name for o in renamed.graph.output} | {i.name for i in renamed.graph.input}
    for n in renamed.graph.node:
        n.input[:] = [i if i in outputs or i in models.arrays_of(model) else "other_" + i for i in n.input]
        n.output[:] = [o if o in outputs else "other_" + o for o in n.output]
    onnx.save(renamed, str(suite.folder / "renamed.onnx"))
    for more in ([], ["--map", f"other_{value}={value}"]):
        result = suite.compare("faulty.onnx", case, *more, reference="renamed.onnx")
        first = result["verdicts"][0]
        assert (first["value"], first["cause"]) == ("other_" + value, cause), (more, first)
        assert result["matched"] == result["float_values"], result["unmatched"]


def check_limits(suite, case):
    """--fail-above, and inputs that are several files."""
    model, quantizer, _, _ = clipped(case)
    suite.write(case, model, quantizer, "faulty.onnx")
    arguments = ["compare", "faulty.onnx", f"{case.name}.npz", "--float", "float.onnx", "--json"]
    result = json.loads(suite.dqrun(*arguments))
    ratio = 10 ** (-quality(result)[0] / 10)
    suite.dqrun(*arguments, "--fail-above", f"{ratio * 1.1:.6f}")
    suite.dqrun(*arguments, "--fail-above", f"{ratio * 0.9:.6f}", code=1)
    name, array = next(iter(case.feed.items()))
    for i in range(4):
        np.savez(suite.folder / f"part{i}.npz", **{name: array[i::4]})
    parts = json.loads(suite.dqrun("compare", "faulty.onnx", *[f"part{i}.npz" for i in range(4)], "--float", "float.onnx", "--json"))
    assert parts["inputs"] == 4
    for whole, part in zip(result["values"], parts["values"]):
        for key in ("own", "so_far", "floor"):
            a, b = (float(v[key]["sqnr_db"]) for v in (whole, part))
            assert a == b or abs(a - b) < 0.01, (whole["name"], key, a, b)
        assert whole["range"]["quantized_counts"] == part["range"]["quantized_counts"], whole["name"]


def sqnr(reference, got):
    noise = ((got.astype(np.float64) - reference) ** 2).sum()
    return np.inf if noise == 0 else 10 * np.log10((reference.astype(np.float64) ** 2).sum() / noise)


def close(got, expected, tolerance=1e-4):
    got = float(got)
    return got == expected or abs(got - expected) <= tolerance * max(1, abs(expected))


def check_numbers(suite, case):
    """Floors, ranges and weights as numpy computes them."""
    values = models.observe(case.model, case.feed)
    quantizer = models.Quantizer(case.model, values, per_channel=False)
    suite.write(case, case.model, quantizer, "tensor.onnx")
    result = suite.compare("tensor.onnx", case)
    for value in result["values"]:
        x, (scale, zero) = values[value["name"]], quantizer.activations[value["name"]]
        q = np.round(x / np.float32(scale)) + zero
        codes = np.clip(q, 0, 255).astype(int)
        floor = ((codes - zero) * np.float32(scale)).astype(np.float32)
        counts = np.bincount(codes.ravel(), minlength=256)
        shares = counts[counts > 0] / x.size
        got = value["range"]
        assert close(value["floor"]["sqnr_db"], sqnr(x, floor)), (value["name"], value["floor"], sqnr(x, floor))
        # Float sums of the two runtimes differ in the last bit, which moves values near a tie.
        assert np.abs(counts - got["quantized_counts"]).sum() <= 1e-4 * x.size and \
            abs(got["quantized_values_used"] - (counts > 0).sum()) <= 2, value["name"]
        assert close(got["entropy_bits"], -(shares * np.log2(shares)).sum(), 1e-3), value["name"]
        assert (got["clipped_low"], got["clipped_high"]) == ((q < 0).sum(), (q > 255).sum()), value["name"]
        assert close(got["min"], x.min()) and close(got["max"], x.max()), value["name"]
        assert sum(got["histogram"]["counts"]) == x.size, value["name"]
    arrays = models.arrays_of(case.model)
    for weight in result["weights"]:
        if weight["is_bias"]:
            continue
        w, (q, scale, _) = arrays[weight["float_name"]], quantizer.weights[weight["float_name"]]
        axis = 0 if w.ndim == 4 else w.ndim - 1
        channels, got = np.moveaxis(w, axis, 0).reshape(w.shape[axis], -1), q.astype(np.float64) * scale
        ranges = np.abs(channels).max(axis=1)
        by_channel = [sqnr(a, b) for a, b in zip(channels, np.moveaxis(got, axis, 0).reshape(channels.shape))]
        assert close(weight["error"]["sqnr_db"], sqnr(w, got)), weight["name"]
        assert close(weight["rmse_over_scale"], np.sqrt((((got - w) / scale) ** 2).mean())), weight["name"]
        assert close(weight["channel_ratio"], ranges.max() / ranges.min()), weight["name"]
        assert np.allclose([float(v) for v in weight["channel_sqnr_db"]], by_channel, rtol=1e-4), weight["name"]
        assert weight["worst_channel"] == int(np.argmin(by_channel)), weight["name"]


def check_inspect(suite, path):
    """The JSON agrees with itself and with the file; the drawing has a box for each node that is drawn, none over another."""
    m = json.loads(suite.dqrun("inspect", path, "--json"))
    graph = onnx.load(str(path)).graph
    assert {n["name"] for n in m["nodes"]} >= {n.name for n in graph.node if n.name}, "nodes are missing"
    assert sum(w["bytes"] for w in m["weights"]) == m["weight_bytes"] == sum(v["bytes"] for v in m["values"])
    assert sum(m["computes"].values()) == len(m["nodes"]) == sum(o["nodes"] for o in m["operators"])
    for i, step in enumerate(m["steps"]):
        assert all(m["nodes"][n]["step"] == i for n in step["nodes"]), step
        assert step["live_bytes"] <= m["memory"]["peak_bytes"] <= m["memory"]["activation_bytes"], step
    for i, n in enumerate(m["nodes"]):
        assert all(m["values"][v]["producer"] == i for v in n["outputs"] if v is not None), n
        assert (n["why_float"] is None) == (n["computes"] != "float"), n
    for value in m["values"]:
        assert value["shape"] is None or all(isinstance(d, int) for d in value["shape"]), value
    svg = ElementTree.fromstring(suite.dqrun("inspect", path, "--svg"))
    space = "{http://www.w3.org/2000/svg}"
    boxes = [tuple(float(g.find(space + "rect").get(k)) for k in ("x", "y", "width")) for g in svg.iter(space + "g")]
    assert len(boxes) >= len(graph.input) + len(graph.output) + len(m["steps"]), len(boxes)
    rows = {}
    for x, y, width in boxes:
        rows.setdefault(y, []).append((x, width))
    for row in rows.values():
        row.sort()
        assert all(b[0] >= a[0] + a[1] for a, b in zip(row, row[1:])), row
    width = float(svg.get("width"))
    assert all(x >= 0 and x + w <= width for x, _, w in boxes), width


def deep_chain(path, layers=500):
    """A quantized network of many nodes, for the drawing."""
    rng = np.random.default_rng(6)
    arrays, nodes, x = {}, [], "x"
    for i in range(layers // 4):
        arrays[f"w{i}"] = rng.normal(0, 0.1, (4, 4))
        nodes += [models.node("MatMul", [x, f"w{i}"], f"m{i}"), models.node("Relu", [f"m{i}"], f"r{i}"),
                  models.node("Add", [x, f"r{i}"], f"y{i}")]
        x = f"y{i}"
    nodes.append(models.node("Relu", [x], "out"))
    model = models.make_model("deep", nodes, arrays, [("x", ["N", 4])], [("out", ["N", 4])])
    feed = {"x": rng.normal(0, 1, (2, 4)).astype("f4")}
    models.Quantizer(model, models.observe(model, feed)).write(path)


def check_reasons(suite):
    """Why a node computes in float: from the rewriter where it says so, else from the graph."""
    arrays = {"w": np.eye(8), "gamma": np.ones(8), "beta": np.zeros(8)}
    nodes = [models.node("LayerNormalization", ["x", "gamma", "beta"], "norm"), models.node("MatMul", ["norm", "w"], "y")]
    model = models.make_model("norm", nodes, arrays, [("x", ["N", 8])], [("y", ["N", 8])])
    feed = {"x": np.random.default_rng(8).normal(0, 1, (4, 8)).astype("f4")}
    onnx.save(model, str(suite.folder / "norm.onnx"))
    quantizer = models.Quantizer(model, models.observe(model, feed))
    del quantizer.activations["x"]
    quantizer.write(suite.folder / "norm_q.onnx")

    def reasons(path):
        nodes = json.loads(suite.dqrun("inspect", path, "--json"))["nodes"]
        return {n["name"]: n["why_float"] for n in nodes if n["why_float"]}

    assert reasons("norm.onnx") == {n.name: "neither its inputs nor its results are quantized" for n in nodes}
    found = reasons("norm_q.onnx")
    assert found == {"norm_node": "this operator has no form for quantized values"}, found


def check_all_inspect(suite):
    suite.case("inspect: why float", lambda: check_reasons(suite))
    deep_chain(suite.folder / "deep.onnx")
    paths = [*sorted(EXAMPLES.glob("*.onnx")), suite.folder / "good.onnx", suite.folder / "deep.onnx"]
    for path in paths:
        suite.case(f"inspect {path.name}", lambda path=path: check_inspect(suite, path))


# ---- Models of onnxruntime's quantizer, where they have been made --------------------------------------------------

def plant_initializers(path, changes):
    """A model with changed initializers: changes maps names to functions of the array."""
    model = onnx.load(path)
    for t in model.graph.initializer:
        if t.name in changes:
            old = numpy_helper.to_array(t)
            t.CopyFrom(numpy_helper.from_array(np.asarray(changes[t.name](old), old.dtype), t.name))
    return model


def noisy(q):
    noise = np.random.default_rng(5).normal(0, 60, q.shape)
    return np.clip(np.round(q.astype(np.float64) + noise), -127, 127)


def coarse(q):
    return np.round(q / 16.0)


# model, form: faults as (name, initializers, value, cause, whether --fix mends it). MiniLM has no int32 bias that could overflow.
LARGE = {
    ("squeezenet", "qdq_u8s8"): [
        ("channel spread", {"conv10_w_0_quantized": coarse, "conv10_w_0_quantized_scale": lambda s: s * 16}, "r64", "channel_spread", False),
    ],
    ("minilm", "qdq_u8s8"): [
        ("channel spread, as onnxruntime quantizes it", {}, "encoder.layer.3.output.dense.product", "channel_spread", False),
    ],
    ("squeezenet", "qdq_u8s8_channel"): [
        ("clipped", {"r19_scale": lambda s: s / 16}, "r19", "clipped", True),
        ("wide", {"r19_scale": lambda s: s * 100}, "r19", "wide_range", True),
        ("zero point", {"r4_zero_point": lambda z: 200}, "r4", "zero_point", True),
        ("bias overflow", {"fire4/expand3x3_b_0_quantized": lambda b: np.where(b < 0, -2**31, 2**31 - 1),
                           "fire4/expand3x3_b_0_quantized_scale": lambda s: s * 1e-8}, "r23", "bias_overflow", False),
        ("bad layer", {"fire4/expand3x3_w_0_quantized": noisy}, "r23", "weights_differ", False),
    ],
    ("minilm", "qdq_u8s8_channel"): [
        ("clipped", {"encoder.layer.2.attention.q.heads_scale": lambda s: s / 16}, "encoder.layer.2.attention.q.heads", "clipped", True),
        ("wide", {"encoder.layer.2.attention.q.heads_scale": lambda s: s * 100}, "encoder.layer.2.attention.q.heads", "wide_range", True),
        ("zero point", {"encoder.layer.2.attention.q.heads_zero_point": lambda z: 240}, "encoder.layer.2.attention.q.heads", "zero_point", True),
        ("bad layer", {"encoder.layer.2.attention.self.query.weight_quantized": noisy},
         "encoder.layer.2.attention.self.query.product", "weights_differ", False),
    ],
}


def check_large(suite, folder, form, fault):
    _, changes, value, cause, mends = fault
    onnx.save(plant_initializers(folder / f"{form}.onnx", changes), str(suite.folder / "faulty.onnx"))
    inputs = sorted(folder.glob("input_*.npz"))
    common = [*inputs, "--float", folder / "float.onnx", "--json"]
    result = json.loads(suite.dqrun("compare", "faulty.onnx", *common, *(["--fix", "fixed.onnx"] if mends else [])))
    first = result["verdicts"][0]
    assert (first["value"], first["cause"]) == (value, cause), (first["value"], first["cause"], first["why"])
    if mends:
        good, fixed = (json.loads(suite.dqrun("compare", f, *common)) for f in (folder / f"{form}.onnx", "fixed.onnx"))
        assert quality(fixed)[0] > quality(good)[0] - 1.5, (quality(good), quality(result), quality(fixed))


def check_all_large(suite, folder):
    for (name, form), faults in LARGE.items():
        if not (folder / name / f"{form}.onnx").exists():
            suite.skipped += len(faults)
            continue
        for fault in faults:
            suite.case(f"{name}, {form}: {fault[0]}",
                       lambda name=name, form=form, fault=fault: check_large(suite, folder / name, form, fault))


def main(arguments):
    if len(arguments) not in (1, 2):
        sys.exit("usage: run.py DQRUN [MODELS]")
    with tempfile.TemporaryDirectory(prefix="dqrun-insight-") as folder:
        suite = Suite(arguments[0], folder)
        for case in make_cases():
            suite.case(f"{case.name}: sound", lambda case=case: check_sound(suite, case))
            for fault in FAULTS:
                if fault is bias_overflow and not case.bias:
                    continue
                suite.case(f"{case.name}: {fault.__name__}", lambda case=case, fault=fault: check_fault(suite, case, fault))
            for check in (check_leave_one_out, check_reference_file, check_map, check_limits):
                suite.case(f"{case.name}: {check.__name__}", lambda case=case, check=check: check(suite, case))
            suite.case(f"{case.name}: measures", lambda case=case: check_numbers(suite, case))
            if case.name == "digits":
                suite.case("digits: QOperator", lambda case=case: check_qoperator(suite, case))
        suite.case("operators of data movement", check_movements)
        check_all_inspect(suite)
        if len(arguments) > 1:
            check_all_large(suite, Path(arguments[1]).resolve())
    print(f"{suite.passed} passed, {suite.failed} failed, {suite.skipped} skipped")
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
