# SPDX-License-Identifier: Apache-2.0
"""--json of every command: its members, as dqrun(1) describes them, and values that JSON has no numbers for."""

import json
import re

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from harness import save_identity, save_model, save_quantize

# A shape: {member: shape}, [shape of all items], or a type or tuple of types.
NUMBER = (int, float)
OUTPUT = {"name": str, "kind": str, "type": str, "shape": [int], "min": (int, float, str, bool, type(None)),
          "max": (int, float, str, bool, type(None)), "mean": (int, float, str, type(None)), "nan": int,
          "first": [(int, float, str, bool)]}
RUN = {"model": str, "isa": str, "threads": int, "outputs": [OUTPUT]}
COMPARISON = {"equal": bool, "outputs": [{"name": str, "equal": bool, "count": int, "message": str}]}
DECLARATION = {"name": str, "type": str, "shape": ([(int, str, type(None))], type(None)), "optional": bool}
CHECK = {"model": str, "can_run": bool, "problems": [{"status": str, "message": str}], "inputs": [DECLARATION],
         "outputs": [DECLARATION]}
BENCH = {"model": str, "load_ms": NUMBER, "first_run_ms": NUMBER, "min_ms": NUMBER, "median_ms": NUMBER, "mean_ms": NUMBER,
         "p90_ms": NUMBER, "p99_ms": NUMBER, "runs": int, "peak_rss_kib": int, "threads": int, "isa": str,
         "made_up_inputs": bool}
OPS = [{"domain": str, "name": str, "since_version": int, "deprecated": bool, "implemented": bool, "types": dict}]
SAME = {"model": str, "differs": bool, "nodes_before": int, "candidates": int}
ISA = {"used": str, "set_by": (str, type(None)), "levels": [{"name": str, "available": bool}]}


def has_shape(value, shape, where="document"):
    if isinstance(shape, tuple):
        errors = []
        for alternative in shape:
            try:
                return has_shape(value, alternative, where)
            except AssertionError as error:
                errors.append(str(error))
        raise AssertionError("; ".join(errors))
    if isinstance(shape, dict):
        assert isinstance(value, dict) and set(value) == set(shape), f"{where} has the members {value}"
        for key, member in shape.items():
            has_shape(value[key], member, f"{where}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), f"{where} is {value}"
        for i, item in enumerate(value):
            has_shape(item, shape[0], f"{where}[{i}]")
    else:
        assert type(value) is shape, f"{where} is {value!r}, expected {shape}"
    return True


def document(h, args, code=0):
    return json.loads(h.expect([*args, "--json"], code=code, out=None))


def shapes(h):
    def documents(name, args, shape, code=0):
        h.case(f"shape of {name}", lambda: has_shape(document(h, args, code), shape))
    run = ["model.onnx", "inputs.npz"]
    documents("a run", run, RUN)
    documents("a run compared", [*run, "--expect", "good.npz"], RUN | {"comparison": COMPARISON})
    documents("a run that differs", [*run, "--expect", "wrong.npz"], RUN | {"comparison": COMPARISON}, code=1)
    documents("a run with hashes", [*run, "--hash"], RUN | {"outputs": [OUTPUT | {"sha256": str}]})
    documents("a run with labels", ["scores.onnx", "scores.npz", "--labels", "labels.npy"],
              RUN | {"labels": {"correct": int, "rows": int, "accuracy": NUMBER, "confusion": [[int]]}})
    documents("a batch", ["model.onnx", "batch"], {"model": str, "isa": str, "threads": int, "failed": int,
                                                   "different": int, "runs": [{"input": str, "outputs": [OUTPUT]}]})
    documents("reduce, nothing differs", ["reduce", "model.onnx", "inputs.npz", "--output", "part"], SAME)
    documents("reduce", ["reduce", "model.onnx", "inputs.npz", "--output", "part", "--ref", "wrong.npz"], SAME | {
        "nodes_after": int, "operators": [str], "difference": str, "folder": str, "command": str}, code=1)
    documents("check", ["check", "model.onnx"], CHECK)
    documents("check of what cannot run", ["check", "cannot.onnx"], CHECK, code=5)
    documents("bench", ["bench", "model.onnx", "--runs", "2"], BENCH)
    documents("bench --profile", ["bench", "model.onnx", "inputs.npz", "--runs", "2", "--profile"],
              BENCH | {"steps": [{"node": str, "op": str, "algorithm": (str, type(None)), "ms": NUMBER, "macs": int, "bytes": int}],
                       "machine": {"integer_macs_per_s": NUMBER, "float_macs_per_s": NUMBER, "bytes_per_s": NUMBER}})
    documents("ops", ["ops"], OPS)
    documents("ops of a domain", ["ops", "com.microsoft"], OPS)
    documents("isa", ["isa"], ISA)

    def described():
        """The page names each member."""
        page = h.expect(["man"], out=None).split(".SH JSON")[1].split("\n.SH ")[0]
        named = set(re.findall(r"\\\(dq(\w+)\\\(dq", page))

        def members(shape):
            if isinstance(shape, dict):
                return set(shape).union(*map(members, shape.values()))
            return set().union(*map(members, shape)) if isinstance(shape, (list, tuple)) else set()
        all_members = members([{"sha256": str}, SAME, RUN, COMPARISON, CHECK, BENCH, OPS, ISA])
        assert all_members <= named, f"the page does not name {all_members - named}"
    h.case("the page names each member", described)


def values(h):
    def one_output(onnx_type, array):
        name = TensorProto.DataType.Name(onnx_type).lower()
        save_identity(h.path(f"{name}.onnx"), onnx_type, None)
        np.save(h.path(f"{name}.npy"), array)
        (output,) = document(h, [f"{name}.onnx", f"x={name}.npy"])["outputs"]
        has_shape(output, OUTPUT)
        assert (output["name"], output["kind"], output["type"]) == ("y", "tensor", name), output
        return [output[key] for key in ("shape", "min", "max", "mean", "nan", "first")]

    def check(name, onnx_type, array, *expected):
        def same():
            got = one_output(onnx_type, array)
            assert got == list(expected), f"{got} expected {list(expected)}"
        h.case(name, same)
    check("floats", TensorProto.FLOAT, np.array([[0.1, -2], [3, 4]], "f4"), [2, 2], -2, 4,
          (float(np.float32(0.1)) + 5) / 4, 0, [float(f"{np.float32(0.1):.9g}"), -2, 3, 4])
    check("NaN and infinities", TensorProto.FLOAT, np.array([np.nan, np.inf, -np.inf], "f4"), [3], "-Infinity", "Infinity",
          "NaN", 1, ["NaN", "Infinity", "-Infinity"])
    check("nothing but NaN", TensorProto.DOUBLE, np.array([np.nan]), [1], None, None, None, 1, ["NaN"])
    check("no elements", TensorProto.FLOAT, np.zeros((0, 3), "f4"), [0, 3], None, None, None, 0, [])
    check("a scalar", TensorProto.DOUBLE, np.array(1 / 3), [], 1 / 3, 1 / 3, 1 / 3, 0, [1 / 3])
    check("integers at the ends", TensorProto.INT64, np.array([2**63 - 1, -2**63]), [2], -2**63, 2**63 - 1, 0, 0,
          [2**63 - 1, -2**63])
    check("unsigned integers at the end", TensorProto.UINT64, np.array([2**64 - 1], "u8"), [1], 2**64 - 1, 2**64 - 1,
          float(2**64), 0, [2**64 - 1])
    check("bools", TensorProto.BOOL, np.array([True, False]), [2], False, True, 0.5, 0, [True, False])
    check("strings", TensorProto.STRING, np.array(["a\"b\\", "line\nbreak", "ü"]), [3], None, None, None, 0,
          ["a\"b\\", "line\nbreak", "ü"])
    check("complex numbers", TensorProto.COMPLEX64, np.array([1 - 2j], "c8"), [1], None, None, None, 0, ["1-2i"])
    check("no more than five values", TensorProto.UINT8, np.arange(9, dtype="u1"), [9], 0, 8, 4, 0, [0, 1, 2, 3, 4])

    def sequence():
        kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
        graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "test", [helper.make_value_info("x", kind)],
                                  [helper.make_value_info("y", kind)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        h.path("sequence.onnx").write_bytes(model.SerializeToString())
        h.path("set").mkdir()
        message = numpy_helper.from_list([np.array([1, 2], "f4"), np.array([[3]], "f4")])
        h.path("set/input_0.pb").write_bytes(message.SerializeToString())
        (output,) = document(h, ["sequence.onnx", "set"])["outputs"]
        items = output.pop("items")
        assert output == {"name": "y", "kind": "sequence", "type": "float"}, output
        assert [(i["name"], i["shape"], i["first"]) for i in items] == [("y[0]", [2], [1, 2]), ("y[1]", [1, 1], [3])], items
        has_shape(items, [OUTPUT])
    h.case("a sequence", sequence)


def results(h):
    def labels():
        got = document(h, ["scores.onnx", "scores.npz", "--labels", "labels.npy"])["labels"]
        assert got == {"correct": 2, "rows": 3, "accuracy": 2 / 3, "confusion": [[1, 0, 0], [0, 1, 1], [0, 0, 0]]}, got
    h.case("labels", labels)

    def many_classes():
        save_identity(h.path("many.onnx"), TensorProto.FLOAT, ["N", 21])
        np.savez(h.path("many.npz"), np.eye(21, dtype="f4"))
        np.save(h.path("many.npy"), np.arange(21))
        got = document(h, ["many.onnx", "many.npz", "--labels", "many.npy"])["labels"]
        assert got == {"correct": 21, "rows": 21, "accuracy": 1, "confusion": None}, got
    h.case("labels of many classes", many_classes)

    def declarations():
        nodes = [helper.make_node("Identity", [f"x{i}"], [f"y{i}"]) for i in range(3)]
        types = [(TensorProto.FLOAT, ["N", 4, None]), (TensorProto.UINT8, None), (TensorProto.INT8, [1])]
        save_model(h.path("shapes.onnx"), nodes, [(f"x{i}", *declared) for i, declared in enumerate(types)],
                   [(f"y{i}", dtype, None) for i, (dtype, _) in enumerate(types)],
                   [helper.make_tensor("x2", TensorProto.INT8, [1], [1])])
        got = document(h, ["check", "shapes.onnx"])
        assert got["inputs"] == [
            {"name": "x0", "type": "tensor(float)", "shape": ["N", 4, None], "optional": False},
            {"name": "x1", "type": "tensor(uint8)", "shape": None, "optional": False},
            {"name": "x2", "type": "tensor(int8)", "shape": [1], "optional": True}], got["inputs"]
        assert got["can_run"] is True and got["problems"] == [], got
    h.case("declarations", declarations)

    def problems():
        got = document(h, ["check", "cannot.onnx"], code=5)
        (problem,) = got["problems"]
        assert got["can_run"] is False and problem["status"] == "DQ_UNSUPPORTED", got
        assert problem["message"].startswith("cannot.onnx: node 'first' (Frobnicate-25): "), problem
    h.case("problems", problems)

    def levels():
        got = document(h, ["isa", "--isa", "c"])
        assert got["used"] == "c" and got["set_by"] == "--isa" and got["levels"][0] == {"name": "c", "available": True}, got
        got = document(h, ["isa"])
        available = [level["name"] for level in got["levels"] if level["available"]]
        assert got["used"] == available[-1] and got["set_by"] is None, got
        run = document(h, ["model.onnx", "inputs.npz"])
        assert run["isa"] == got["used"], (run["isa"], got["used"])
    h.case("the level that isa names is that of a run", levels)

    def a_failed_command():
        for args, code in (["absent.onnx"], 3), (["model.onnx", "absent.npz"], 4), (["check", "absent.onnx"], 3), (
                ["ops", "Frobnicate"], 2), (["model.onnx", "inputs.npz", "--expect", "absent.npz"], 4), (
                ["bench", "model.onnx", "absent.npz"], 4):
            assert h.expect([*args, "--json"], code=code, out=None, err=None) == "", args
    h.case("a command that fails prints no document", a_failed_command)

    def and_a_file():
        document(h, ["model.onnx", "inputs.npz", "-o", "out.npz"])
        with np.load(h.path("out.npz")) as outputs:
            assert outputs.files == ["codes"]
    h.case("a document and a file", and_a_file)


def run(h):
    save_quantize(h.path("model.onnx"))
    image = np.array([[0, 1, 2, 3], [-10, 0.25, 0.75, 200]], "f4")
    codes = np.array([[10, 12, 14, 16], [0, 10, 12, 255]], "u1")
    np.savez(h.path("inputs.npz"), image=image)
    np.savez(h.path("good.npz"), codes=codes)
    np.savez(h.path("wrong.npz"), codes=codes + 1)
    h.path("batch").mkdir()
    np.savez(h.path("batch/one.npz"), image=image)
    save_model(h.path("cannot.onnx"), [helper.make_node("Frobnicate", ["x"], ["y"], name="first")],
               [("x", TensorProto.FLOAT, ["N"])], [("y", TensorProto.FLOAT, ["N"])])
    save_identity(h.path("scores.onnx"), TensorProto.FLOAT, ["N", 3])
    np.savez(h.path("scores.npz"), np.array([[3, 1, 2], [0, 5, 4], [1, 2, 3]], "f4"))
    np.save(h.path("labels.npy"), np.array([0, 1, 1]))
    for part in shapes, values, results:
        part(h)
