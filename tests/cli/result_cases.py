# SPDX-License-Identifier: Apache-2.0
"""What a run does with inputs and outputs: the table, -o, --expect, --labels, --random and misfits."""

import math
import os
import re
import resource
import signal
import subprocess
import time
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from harness import Skip, save_identity, save_model, save_quantize

CODES = np.array([[10, 12, 14, 16], [0, 10, 12, 255]], "u1")
FLOAT = TensorProto.FLOAT


def table(h):
    h.check("table", ["q.onnx", "q.npz"], out="output  type   shape  range    mean    first values\n"
            "codes   uint8  [2,4]  0 … 255  41.125  10 12 14 16 0 …\n")
    h.check("a value inside the graph too", ["q.onnx", "q.npz", "--value", "image", "--value", "codes"],
            out="output  type   shape  range      mean    first values\n"
                "image   float  [2,4]  -10 … 200  24.625  0 1 2 3 -10 …\n"
                "codes   uint8  [2,4]  0 … 255    41.125  10 12 14 16 0 …\n")
    save_identity(h.path("float.onnx"), FLOAT, None)
    cases = [("NaN and infinity", np.array([np.nan, -np.inf, 2.5, np.nan], "f4"),
              "y       float  [4]    -inf … 2.5, 2 NaN  -inf  nan -inf 2.5 nan\n"),
             ("infinities and a negative NaN", np.array([np.inf, -np.inf, np.copysign(np.nan, -1)], "f4"),
              "y       float  [3]    -inf … inf, 1 NaN  nan   inf -inf nan\n"),
             ("nothing but NaN", np.array([np.nan], "f4"), "y       float  [1]    1 NaN  -     nan\n"),
             ("empty", np.zeros((0, 2), "f4"), "y       float  [0,2]  -      -     \n"),
             ("scalar", np.array(0.1, "f4"), "y       float  []     0.1 … 0.1  0.1   0.1\n")]
    for name, array, row in cases:
        np.savez(h.path("t.npz"), array)
        h.case(f"table of {name}", lambda: check_row(h, ["float.onnx", "t.npz"], row))
    save_identity(h.path("int64.onnx"), TensorProto.INT64, None)
    np.savez(h.path("t.npz"), np.array([2**63 - 1, -2**63]))
    h.case("table of integers at the ends", lambda: check_row(
        h, ["int64.onnx", "t.npz"],
        "y       int64  [2]    -9223372036854775808 … 9223372036854775807  0     9223372036854775807 "
        "-9223372036854775808\n"))
    save_identity(h.path("string.onnx"), TensorProto.STRING, None)
    np.savez(h.path("t.npz"), np.array(["a\x1b[31mb", "x" * 50]))
    h.case("table of strings, harmless to a terminal", lambda: check_row(
        h, ["string.onnx", "t.npz"], f"y       string  [2]    -      -     'a?[31mb' '{'x' * 40}…'\n"))


def check_row(h, args, row):
    got = h.expect(args, out=None).splitlines(keepends=True)
    assert len(got) == 2 and got[1] == row, f"{got[1]!r} expected {row!r}"


def expect(h):
    np.savez(h.path("good.npz"), codes=CODES)
    h.check("--expect, equal", ["q.onnx", "q.npz", "--expect", "good.npz"], out="codes: equal (8 elements)\n")
    np.savez(h.path("position.npz"), CODES)
    h.check("--expect by position", ["q.onnx", "q.npz", "--expect", "position.npz"], out="codes: equal (8 elements)\n")
    wrong = CODES.copy()
    wrong[0, 1], wrong[1, 3] = 13, 250
    np.savez(h.path("wrong.npz"), codes=wrong)
    sentence = "codes: 2 of 8 elements differ; the largest difference is 5 quanta, at [1,3]: got 255, expected 250\n"
    h.check("--expect, quanta", ["q.onnx", "q.npz", "--expect", "wrong.npz"], code=1, out=sentence)
    h.check("integers know no tolerance", ["q.onnx", "q.npz", "--expect", "wrong.npz", "--atol", "100"], code=1,
            out=sentence)
    h.check("--expect -q", ["q.onnx", "q.npz", "--expect", "wrong.npz", "-q"], code=1)
    np.savez(h.path("shape.npz"), codes=CODES[:1])
    h.check("--expect, shape", ["q.onnx", "q.npz", "--expect", "shape.npz"], code=1,
            out="codes: got uint8[2,4], expected uint8[1,4]\n")
    np.savez(h.path("type.npz"), codes=CODES.astype("i4"))
    h.check("--expect, type", ["q.onnx", "q.npz", "--expect", "type.npz"], code=1,
            out="codes: got uint8[2,4], expected int32[2,4]\n")
    np.savez(h.path("more.npz"), codes=CODES, other=CODES)
    h.check("--expect of an output that is not", ["q.onnx", "q.npz", "--expect", "more.npz"], code=4, out=None,
            err="more.npz: array 'other' is none of the outputs, which are 'codes'")
    h.check("--expect without an output", ["q.onnx", "q.npz", "--expect", "good.npz", "--value", "codes",
                                           "--value", "image"], code=4, out=None,
            err="good.npz: holds nothing for output 'image'")
    h.path("set").mkdir()
    h.path("set/input_0.pb").write_bytes(
        numpy_helper.from_array(np.load(h.path("q.npz"))["image"]).SerializeToString())
    h.check("--expect of a folder without outputs", ["q.onnx", "set", "--expect", "set"], code=4,
            err="set: holds no output_0.pb, output_1.pb…")
    h.path("set/output_0.pb").write_bytes(numpy_helper.from_array(CODES).SerializeToString())
    h.check("--expect of a folder", ["q.onnx", "set", "--expect", "set"], out="codes: equal (8 elements)\n")


def tolerance(h):
    """Floats against numpy.allclose on its edge, and what counts as equal without a number."""
    def pair(name, got, want, same, extra=()):
        np.savez(h.path("got.npz"), np.array(got, "f8"))
        np.savez(h.path("want.npz"), np.array(want, "f8"))
        args = ["double.onnx", "got.npz", "--expect", "want.npz", *extra]
        h.check(name, args, code=0 if same else 1, out=None)

    save_identity(h.path("double.onnx"), TensorProto.DOUBLE, None)
    pair("NaN equals NaN", [math.nan, 1], [math.nan, 1], True)
    pair("NaN is no number", [math.nan], [1], False)
    pair("infinities", [math.inf, -math.inf], [math.inf, -math.inf], True)
    pair("opposite infinities", [math.inf], [-math.inf], False)
    pair("infinity is out of every tolerance", [1], [math.inf], False, ["--rtol", "1"])
    pair("zeros of both signs", [0.0], [-0.0], True, ["--atol", "0"])
    pair("rtol is of the expected value", [1.5], [2.0], True, ["--rtol", "0.25", "--atol", "0"])
    pair("and not of the other", [2.0], [1.5], False, ["--rtol", "0.25", "--atol", "0"])
    pair("atol at its edge", [1.5], [1.0], True, ["--rtol", "0", "--atol", "0.5"])
    pair("atol past its edge", [1.5000001], [1.0], False, ["--rtol", "0", "--atol", "5e-1"])
    np.savez(h.path("got.npz"), np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.savez(h.path("want.npz"), np.array([[1.0, 2.5], [3.0, 4.125]]))
    h.check("the largest difference and where", ["double.onnx", "got.npz", "--expect", "want.npz"], code=1,
            out="y: 2 of 4 elements differ; the largest difference is 0.5, at [0,1]: got 2, expected 2.5\n")


def labels(h):
    save_identity(h.path("scores.onnx"), FLOAT, ["N", 3])
    scores = np.array([[3, 1, 2], [0, 5, 5], [1, 2, 3], [np.nan, -1, -2]], "f4")
    np.savez(h.path("scores.npz"), scores)
    np.savez(h.path("labels.npz"), labels=np.array([0, 2, 2, 1]))
    confusion = ("rows: label; columns: class with the largest score\n         0    1    2\n    0    1    0    0\n"
                 "    1    0    1    0\n    2    0    1    1\n")
    run = ["scores.onnx", "scores.npz", "--labels"]
    h.check("--labels .npz", [*run, "labels.npz"], out="accuracy: 75.0 % (3 of 4)\n" + confusion)
    np.save(h.path("labels.npy"), np.array([[0], [2], [2], [1]], "u1"))
    h.check("--labels .npy", [*run, "labels.npy"], out="accuracy: 75.0 % (3 of 4)\n" + confusion)
    np.save(h.path("short.npy"), np.array([0, 1]))
    h.check("--labels of another number", [*run, "short.npy"], code=4,
            err="short.npy: the labels are int64[2], expected one integer for each of 4 rows")
    np.save(h.path("far.npy"), np.array([0, 1, -1, 0]))
    h.check("a label that is no class", [*run, "far.npy"], code=4, err="far.npy: label 2 is -1, expected 0 to 2")
    np.savez(h.path("two.npz"), a=np.zeros(4, int), b=np.zeros(4, int))
    h.check("two arrays of labels", [*run, "two.npz"], code=4, err="two.npz: holds 2 arrays, expected one with the labels")
    np.savez(h.path("v.npz"), np.zeros(3, "f4"))
    h.check("--labels without scores", ["float.onnx", "v.npz", "--labels", "labels.npz"], code=4,
            err="--labels needs an output of numbers with the shape [rows, classes]")


def misfits(h):
    expects = "expects image: float[N,4]"
    np.savez(h.path("name.npz"), picture=np.zeros((2, 4), "f4"))
    h.check("no array of that name", ["q.onnx", "name.npz"], code=4,
            err=f"name.npz: array 'picture' is not an input of the model, which {expects}")
    np.savez(h.path("shape_in.npz"), image=np.zeros((2, 5), "f4"))
    h.check("wrong shape", ["q.onnx", "shape_in.npz"], code=4,
            err=f"shape_in.npz: array 'image' is float[2,5], and the model {expects}")
    np.savez(h.path("type_in.npz"), image=np.zeros((2, 4)))
    h.check("wrong type", ["q.onnx", "type_in.npz"], code=4,
            err=f"type_in.npz: array 'image' is double[2,4], and the model {expects}")
    h.check("nothing given", ["q.onnx"], code=4, err=f"nothing is given for input 'image'; the model {expects}")
    h.check("given twice", ["q.onnx", "q.npz", "q.npz"], code=4, err="q.npz: input 'image' is given a second time; "
            "for one run of each file use --batch")
    np.save(h.path("a.npy"), np.zeros((1, 4), "f4"))
    h.check("unknown NAME=", ["q.onnx", "picture=a.npy"], code=4,
            err=f"a.npy: its name 'picture' is not an input of the model, which {expects}")
    h.path("empty_set").mkdir()
    h.check("a folder without inputs", ["q.onnx", "empty_set"], code=4,
            err="empty_set: holds no input_0.pb, input_1.pb…")
    zero = numpy_helper.from_array(np.zeros((1, 4), "f4")).SerializeToString()
    h.path("empty_set/input_1.pb").write_bytes(zero)
    h.check("a folder with too many", ["q.onnx", "empty_set"], code=4,
            err=f"empty_set: file 'input_1.pb' is not an input of the model, which {expects}")
    add = [helper.make_node("Add", ["left", "right=1"], ["sum"])]
    save_model(h.path("add.onnx"), add, [("left", FLOAT, ["N"]), ("right=1", FLOAT, ["N"])], [("sum", FLOAT, ["N"])])
    np.savez(h.path("left.npz"), left=np.zeros(2, "f4"))
    h.check("one of two given", ["add.onnx", "left.npz"], code=4, err="left.npz: no array for input 'right=1'; "
            "the model expects left: float[N], right=1: float[N]")
    np.save(h.path("right.npy"), np.ones(2, "f4"))
    h.check("a name with an equals sign", ["add.onnx", "left.npz", "right=1=right.npy"],
            out=re.compile(r"[^\n]+\nsum     float  \[2\]    1 … 1  1     1 1\n"))
    start = helper.make_tensor("right=1", FLOAT, [2], [10, 20])
    save_model(h.path("default.onnx"), add, [("left", FLOAT, ["N"]), ("right=1", FLOAT, ["N"])],
               [("sum", FLOAT, ["N"])], [start])
    h.check("an input with a default", ["default.onnx", "left.npz"],
            out=re.compile(r"[^\n]+\nsum     float  \[2\]    10 … 20  15    10 20\n"))
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, None)
    graph = helper.make_graph([helper.make_node("SequenceLength", ["s"], ["n"])], "g", [sequence],
                              [helper.make_tensor_value_info("n", TensorProto.INT64, [])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    h.path("sequence.onnx").write_bytes(model.SerializeToString())
    np.save(h.path("s.npy"), np.zeros(2, "f4"))
    h.check("an input that is no tensor", ["sequence.onnx", "s=s.npy"], code=5, err=None)


def scans(h):
    """What only a run can refuse: two inputs of a Scan that have not the same length, here none and two."""
    body = helper.make_graph([helper.make_node("Add", ["left", "right"], ["both"])], "body",
                             [helper.make_tensor_value_info(name, FLOAT, []) for name in ("left", "right")],
                             [helper.make_tensor_value_info("both", FLOAT, [])])
    save_model(h.path("scan.onnx"), [helper.make_node("Scan", ["a", "b"], ["sums"], "sum", body=body, num_scan_inputs=2)],
               [("a", FLOAT, ["N"]), ("b", FLOAT, ["M"])], [("sums", FLOAT, ["K"])])
    np.savez(h.path("scan.npz"), a=np.zeros(0, "f4"), b=np.zeros(2, "f4"))
    h.check("scans of two lengths", ["scan.onnx", "scan.npz"], code=3,
            err="scan.onnx: node 'sum' (Scan-25): input 1 'initial_state_and_scan_inputs' has shape [2], and the scan is 0 long")
    np.savez(h.path("scan.npz"), a=np.ones(2, "f4"), b=np.array([1, 2], "f4"))
    h.check("a scan of two inputs", ["scan.onnx", "scan.npz"], out=re.compile(r"[^\n]+\nsums  .* 2 3\n"))
    row = helper.make_tensor("row", FLOAT, [3], [1, 2, 3])
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Identity", ["i"], ["at"]),
                              helper.make_node("Constant", [], ["row"], value=row)],
                             "body", [helper.make_tensor_value_info("i", TensorProto.INT64, []),
                                      helper.make_tensor_value_info("go", TensorProto.BOOL, [])],
                             [helper.make_tensor_value_info("on", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("at", TensorProto.INT64, []),
                              helper.make_tensor_value_info("row", FLOAT, [3])])
    save_model(h.path("loop.onnx"), [helper.make_node("Loop", ["trips", ""], ["places", "rows"], body=body)],
               [("trips", TensorProto.INT64, [])], [("places", TensorProto.INT64, ["N"]), ("rows", FLOAT, ["N", 3])])
    for trips, shape in ((0, "0,3"), (2, "2,3")):
        np.savez(h.path("trips.npz"), trips=np.int64(trips))
        h.check(f"rows of a loop of {trips} iterations", ["loop.onnx", "trips.npz"],
                out=re.compile(rf"[^\n]+\nplaces +int64 +\[{trips}\] .*\nrows +float +\[{shape}\] .*\n"))


def optionals(h):
    """A Loop's value that goes in as an optional and comes back plain: the body hands the optional on, so that what it
    held must still be there when the value itself has gone on."""
    n, rounds = 6, 5
    plain = helper.make_tensor_type_proto(FLOAT, [n])
    optional = helper.make_optional_type_proto(plain)

    def held(value, name):
        """Nodes for the tensor in an optional, or zeros."""
        branches = [helper.make_graph([node], f"{name}_{kind}", [], [helper.make_tensor_value_info(node.output[0], FLOAT, [n])])
                    for kind, node in (("there", helper.make_node("OptionalGetElement", [value], [f"{name}_got"])),
                                       ("none", helper.make_node("Constant", [], [f"{name}_zero"], value_floats=[0.0] * n)))]
        return [helper.make_node("OptionalHasElement", [value], [f"{name}_is"]),
                helper.make_node("If", [f"{name}_is"], [name], then_branch=branches[0], else_branch=branches[1])]
    body = helper.make_graph(
        [*held("state", "now"), *held("before", "old"), helper.make_node("Add", ["now", "x"], ["next"]),
         helper.make_node("Identity", ["state"], ["passed"]), helper.make_node("Identity", ["go"], ["on"]),
         helper.make_node("Identity", ["old"], ["row"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_value_info("state", optional), helper.make_value_info("before", optional)],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("next", FLOAT, [n]),
         helper.make_value_info("passed", optional), helper.make_tensor_value_info("row", FLOAT, [n])])
    nodes = [helper.make_node("Optional", [], ["nothing"], type=plain),
             helper.make_node("Loop", ["trips", "", "nothing", "nothing"], ["last", "handed", "rows"], body=body)]
    save_model(h.path("handed.onnx"), nodes, [("trips", TensorProto.INT64, []), ("x", FLOAT, [n])],
               [("last", FLOAT, None), ("rows", FLOAT, None)])
    x = np.arange(1, n + 1, dtype="f4")
    np.savez(h.path("handed.npz"), trips=np.int64(rounds), x=x)
    np.savez(h.path("expected.npz"), last=rounds * x, rows=np.array([max(i - 1, 0) * x for i in range(rounds)]))
    h.check("an optional that a loop hands on", ["handed.onnx", "handed.npz", "--expect", "expected.npz"],
            out="last: equal (6 elements)\nrows: equal (30 elements)\n")


def random(h):
    """--random against SplitMix64 and FNV-1a written anew."""
    mask = 2**64 - 1

    def numbers(name, seed, count):
        state = 0xCBF29CE484222325
        for byte in name.encode():
            state = (state ^ byte) * 0x100000001B3 & mask
        state ^= seed
        for _ in range(count):
            state = state + 0x9E3779B97F4A7C15 & mask
            z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & mask
            z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
            yield z ^ z >> 31

    units = np.array([(n >> 40) / 2**23 - 1 for n in numbers("x", 42, 60)])
    assert (abs(units) <= 1).all() and units.std() > 0.5
    digits = [(n >> 32) * 10 >> 32 for n in numbers("x", 42, 60)]
    expected = {"FLOAT": units.astype("f4"), "DOUBLE": units, "INT64": np.array(digits), "INT32": np.array(digits, "i4"),
              "UINT8": np.array([n >> 56 for n in numbers("x", 42, 60)], "u1"),
              "INT16": np.array([n >> 48 for n in numbers("x", 42, 60)], "u2").view("i2"),
              "BOOL": np.array([n >> 63 for n in numbers("x", 42, 60)], bool),
              "UINT4": np.array([n >> 60 for n in numbers("x", 42, 60)], "u1").view("V1"),
              "STRING": np.array([f"s{d}" for d in digits])}
    for dtype in "float16", "bfloat16", "float8_e4m3fn", "float4_e2m1fn":
        kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
        codes = np.arange(2 ** {"float4_e2m1fn": 4}.get(dtype, 8 * kind.itemsize))
        values = codes.astype(f"u{kind.itemsize}").view(kind)
        with np.errstate(invalid="ignore"):
            finite = values[np.isfinite(values.astype("f8"))]
        floor = [finite[finite.astype("f8") <= u] for u in units]
        best = np.array([f[np.argmax(f.astype("f8"))] for f in floor], kind) + kind.type(0)
        expected[dtype.upper().split("_")[0] + dtype.upper().partition("_")[2].removesuffix("FN")
               if dtype == "float4_e2m1fn" else dtype.upper().replace("_", "")] = (
            best if dtype == "float16" else best.view(f"V{kind.itemsize}"))
    for name, values in expected.items():
        def same(name=name, values=values):
            save_identity(h.path("random.onnx"), TensorProto.DataType.Value(name), [3, "N", 5])
            h.expect(["random.onnx", "--random", "42", "--dim", "N=4", "-o", "random.npz"])
            got = np.load(h.path("random.npz"))["y"]
            assert got.shape == (3, 4, 5), got.shape
            assert got.tobytes() == values.tobytes(), f"{got} expected {values}"
        h.case(f"--random for {name}", same)

    def follows():
        h.expect(["add.onnx", "left.npz", "--random", "1", "-o", "sum.npz"])
        assert np.load(h.path("sum.npz"))["sum"].shape == (2,)
    h.case("a made-up input takes a symbol's size from a given one", follows)
    save_identity(h.path("any.onnx"), FLOAT, None)
    h.check("a shape that is not declared", ["any.onnx", "--random", "1"], code=4,
            err="an input without a declared element type and rank cannot be made up: x: float of any shape")
    h.check("a made-up input over the limit", ["q.onnx", "--random", "1", "--dim", "N=9223372036854775807"], code=6,
            err="image: has type float[9223372036854775807,4], over the limit of 17179869184 bytes for one tensor")


def pipes(h):
    """Archives that are larger than a pipe holds, and that come in pieces."""
    array = np.arange(1_000_000, dtype="f4")
    np.savez(h.path("large.npz"), x=array)

    def through():
        done = h.run(["big.onnx", "-", "-o", "-"], input=h.path("large.npz").read_bytes())
        assert done.returncode == 0 and not done.stderr, done.stderr
        h.path("piped.npz").write_bytes(done.stdout)
        assert (np.load(h.path("piped.npz"))["y"] == array).all()
    h.case("inputs and outputs through pipes", through)

    def in_pieces():
        command = f"(head -c 100000 large.npz; sleep 0.2; tail -c +100001 large.npz) | '{h.program}' big.onnx - --quiet -o pieces.npz"
        subprocess.run(command, shell=True, cwd=h.folder, check=True)
        assert (np.load(h.path("pieces.npz"))["y"] == array).all()
    h.case("inputs in pieces", in_pieces)

    def a_model():
        weights = numpy_helper.from_array(np.arange(100_000, dtype="f4"), "w")
        save_model(h.path("large.onnx"), [helper.make_node("Add", ["x", "w"], ["y"])], [("x", FLOAT, [1])], [("y", FLOAT, [100_000])],
                   [weights])
        h.expect(["-", "--random", "1", "-o", "a.npz"], input=h.path("large.onnx").read_bytes())
        h.expect(["large.onnx", "--random", "1", "--expect", "a.npz", "--rtol", "0", "--atol", "0", "--quiet"])
        h.expect(["-", "--quiet", "--limit", "file=100K"], code=6, err=None, input=h.path("large.onnx").read_bytes())
        h.expect(["-"], code=3, err=None, input=h.path("large.onnx").read_bytes()[:200_000])
    h.case("a model through a pipe", a_model)
    h.check("a cut archive", ["big.onnx", "-"], code=4, input=h.path("large.npz").read_bytes()[:5000],
            err="standard input: is no .npz archive: its zip directory is missing or damaged")
    h.check("an archive without the input", ["q.onnx", "-"], code=4, input=h.path("large.npz").read_bytes(),
            err="standard input: array 'x' is not an input of the model, which expects image: float[N,4]")


def files_left(h, folder):
    return sorted(p.name for p in h.path(folder).iterdir())


def writing(h):
    args = ["q.onnx", "q.npz", "-o"]

    def reproducible():
        h.expect([*args, "one.npz"])
        time.sleep(0.01)
        h.expect([*args, "two.npz"])
        assert h.path("one.npz").read_bytes() == h.path("two.npz").read_bytes()
        with zipfile.ZipFile(h.path("one.npz")) as archive:
            assert archive.testzip() is None
            assert archive.infolist()[0].date_time == (1980, 1, 1, 0, 0, 0)
    h.case("the same bytes for the same outputs", reproducible)

    def permissions():
        h.expect([*args, "mode.npz"])
        mask = os.umask(0)
        os.umask(mask)
        assert h.path("mode.npz").stat().st_mode & 0o777 == 0o666 & ~mask
    h.case("permissions of a new file", permissions)
    h.path("folder").mkdir()
    h.check("a folder that is not there", [*args, "nowhere/out.npz"], code=74,
            err="nowhere/out.npz: cannot be written: No such file or directory")
    h.check("a folder as the file", [*args, "folder"], code=74, err="folder: cannot be written: it is a folder")

    def untouched():
        h.path("folder/old.npz").write_text("old")
        h.expect(["q.onnx", "shape_in.npz", "-o", "folder/old.npz"], code=4, err=None)
        assert h.path("folder/old.npz").read_text() == "old"
        assert files_left(h, "folder") == ["old.npz"], files_left(h, "folder")
    h.case("a failed run leaves the old file", untouched)


def full_disk(h):
    def full():
        folder = h.path("tiny")
        folder.mkdir()
        mounted = os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False).returncode == 0
        if not mounted:
            raise Skip("mounting a small file system takes root")
        try:
            h.expect(["big.onnx", "--random", "1", "-o", "tiny/out.npz"], code=74,
                     err=re.compile(r"dqrun: tiny/out\.npz: cannot be written: .*No space left on device\n"))
            assert files_left(h, "tiny") == [], files_left(h, "tiny")
        finally:
            subprocess.run(["umount", folder], check=True)
    h.case("a full disk", full)

    def limited():
        folder = h.path("limited")
        folder.mkdir()
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        h.expect(["big.onnx", "--random", "1", "-o", "limited/out.npz"], code=74, preexec_fn=limit,
                 err=re.compile(r"dqrun: limited/out\.npz: cannot be written: .*File too large\n"))
        assert files_left(h, "limited") == [], files_left(h, "limited")
    h.case("a limit on the size of files", limited)


def targets(h):
    """What -o may name besides a file: links, which stay links, pipes and devices; and what cannot be written."""
    run = ["q.onnx", "q.npz", "-o"]
    for folder in "links", "far":
        h.path(folder).mkdir()
    expected = h.path("one.npz").read_bytes()

    def through(link, to, real):
        h.path(link).symlink_to(to)
        h.expect([*run, link])
        assert h.path(link).is_symlink(), f"{link} is no link any more"
        assert h.path(real).read_bytes() == expected
        h.path(real).write_text("old")
        h.expect([*run, h.path(link)])  # the same from elsewhere
        assert h.path(real).read_bytes() == expected
    h.path("far/old.npz").write_text("old")
    h.path("far/old.npz").chmod(0o640)
    h.case("a link", lambda: through("links/one", "../far/old.npz", "far/old.npz"))
    h.case("a link to a link", lambda: through("two", "links/one", "far/old.npz"))
    h.case("a link to a file that is not there yet", lambda: through("links/new", "../far/new.npz", "far/new.npz"))
    h.case("a link with a whole path", lambda: through("links/whole", h.path("far/whole.npz"), "far/whole.npz"))

    def as_before():
        assert h.path("far/old.npz").stat().st_mode & 0o777 == 0o640
        assert files_left(h, "links") == ["new", "one", "whole"] and len(files_left(h, "far")) == 3
    h.case("a link's file keeps its permissions, and nothing else is left", as_before)
    for name, to, why in (("itself", "itself", "Too many levels of symbolic links"), ("up", "far", "it is a folder"),
                          ("lost", "nowhere/out.npz", "No such file or directory"),
                          ("under", "one.npz/out.npz", "Not a directory")):
        h.path(name).symlink_to(to)
        h.check(f"a link to {to}", [*run, name], code=74, err=f"{name}: cannot be written: {why}")

    def long_name():
        name = "n" * 251 + ".npz"
        h.expect([*run, name])
        assert h.path(name).read_bytes() == expected
    h.case("a name as long as names may be", long_name)
    h.check("/dev/null", [*run, "/dev/null"])
    h.check("/dev/full", [*run, "/dev/full"], code=74, err="/dev/full: cannot be written: No space left on device")

    def standard_output():
        assert h.run([*run, "/dev/stdout"]).stdout == expected
        with open(h.path("appended"), "wb") as file:
            file.write(b"before")
            file.flush()
            assert h.run([*run, "/dev/stdout"], stdout=file).returncode == 0
        assert h.path("appended").read_bytes() == b"before" + expected
    h.case("the standard output, a pipe or a file", standard_output)

    def pipe():
        os.mkfifo(h.path("pipe"))
        with subprocess.Popen([h.program, *run, "pipe"], cwd=h.folder) as process:
            assert h.path("pipe").read_bytes() == expected
        assert process.returncode == 0
    h.case("a pipe", pipe)


def interrupted(h):
    """A signal while the file is made, while it goes to the disk, when it takes its place; while a pipe takes no more."""
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", h.path("signal_at.so"),
                    Path(__file__).with_name("signal_at.c"), "-ldl"], check=True)

    def run_with(number, place, handler, name):
        """The folder and the process of a run that gets the signal, which is handled so when the process begins."""
        folder = h.path(f"stop{number}{place}{name}")
        folder.mkdir()
        (folder / "out.npz").write_text("old")
        environment = {**os.environ, "LD_PRELOAD": str(h.path("signal_at.so")), "SIGNAL_AT": place,
                       "SIGNAL_NUMBER": str(number)}
        done = subprocess.run([h.program, "q.onnx", "q.npz", "-o", folder / "out.npz"], cwd=h.folder, env=environment,
                              capture_output=True, timeout=60, check=False,
                              preexec_fn=lambda: signal.signal(number, handler))
        return folder, done

    def stop(number, place):
        folder, done = run_with(number, place, signal.SIG_DFL, "")
        assert done.returncode == -number and not done.stdout and not done.stderr, done
        assert files_left(h, folder.name) == ["out.npz"], files_left(h, folder.name)
        assert (folder / "out.npz").read_bytes() == b"old"

    def ignore(number):
        """As below nohup."""
        folder, done = run_with(number, "fsync", signal.SIG_IGN, "ignored")
        assert done.returncode == 0 and not done.stdout and not done.stderr, done
        assert files_left(h, folder.name) == ["out.npz"], files_left(h, folder.name)
        assert (folder / "out.npz").read_bytes() == h.path("one.npz").read_bytes()

    def stop_in_pipe(number):
        pipe = h.path(f"pipe{number}")
        os.mkfifo(pipe)
        with subprocess.Popen([h.program, "big.onnx", "--random", "1", "-o", pipe], cwd=h.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as process, open(pipe, "rb") as reader:
            assert reader.read(1)
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
        assert process.returncode == -number and not out and not err, (process.returncode, out, err)

    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        name = signal.Signals(number).name
        for place in "fchmod", "fsync", "rename":
            h.case(f"{name} at {place}", lambda place=place: stop(number, place))
        h.case(f"{name} while a pipe is full", lambda: stop_in_pipe(number))
        h.case(f"{name} where it is ignored", lambda: ignore(number))


def save_endless(path):
    """A loop whose body adds 1 for ever."""
    one = helper.make_tensor("one", FLOAT, [], [1.0])
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["v", "one"], ["w"])],
                             "body", [helper.make_tensor_value_info("i", TensorProto.INT64, []),
                                      helper.make_tensor_value_info("go", TensorProto.BOOL, []),
                                      helper.make_tensor_value_info("v", FLOAT, [])],
                             [helper.make_tensor_value_info("on", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("w", FLOAT, [])], [one])
    save_model(path, [helper.make_node("Loop", ["", "", "x"], ["y"], name="endless", body=body)], [("x", FLOAT, [])],
               [("y", FLOAT, [])])


def cancelled(h):
    """--timeout, Ctrl-C and the limit of work end a run that would never end."""
    save_endless(h.path("endless.onnx"))
    run = ["endless.onnx", "--random", "1"]
    for name, args in (("a run", run), ("bench", ["bench", *run])):
        def timeout(args=args):
            begin = time.monotonic()
            h.expect([*args, "--timeout", "0.3"], code=124, err="the time of --timeout is up")
            assert 0.3 <= time.monotonic() - begin < 30

        def press(args=args):
            with subprocess.Popen([h.program, *args], cwd=h.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)) as process:
                handled = f"/proc/{process.pid}/status"
                caught = 0
                while not caught & 1 << signal.SIGINT - 1:  # the run has begun
                    assert process.poll() is None, process.communicate()
                    caught = int(re.search(r"SigCgt:\s*(\w+)", Path(handled).read_text()).group(1), 16)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)
            assert (process.returncode, out, err) == (130, b"", b"dqrun: interrupted\n"), (process.returncode, out, err)

        h.case(f"--timeout of {name}", timeout)
        h.case(f"Ctrl-C in {name}", press)
        h.check(f"--limit work of {name}", [*args, "--limit", "work=1000"], code=6,
                err="endless.onnx: node 'endless' (Loop-25): the run takes more work than the limit of 1000")
    h.check("--timeout that is not needed", ["q.onnx", "q.npz", "--quiet", "--timeout", "60"])
    h.check("--limit work that suffices", ["q.onnx", "q.npz", "--quiet", "--limit", "work=9"])
    h.check("--limit work that does not", ["q.onnx", "q.npz", "--quiet", "--limit", "work=8"], code=6,
            err="q.onnx: node 'quantize' (QuantizeLinear-25): the run takes more work than the limit of 8")


def run(h):
    save_quantize(h.path("q.onnx"))
    np.savez(h.path("q.npz"), image=np.array([[0, 1, 2, 3], [-10, 0.25, 0.75, 200]], "f4"))
    save_identity(h.path("big.onnx"), FLOAT, [1_000_000])
    for part in table, expect, tolerance, labels, misfits, scans, optionals, random, pipes, writing, targets, full_disk, interrupted, cancelled:
        part(h)
