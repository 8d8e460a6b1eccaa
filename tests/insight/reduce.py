#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dqrun reduce finds the nodes that two ways compute differently, and what it writes still shows the difference.

usage: reduce.py DQRUN

Differences are rewrites that are inexact by their bounds, in longer graphs of nodes that are exact, and reference values with a
planted fault. The last line is 'N passed, N failed, N skipped'; the exit code is 1 when something failed."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import models

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
EXACT = ["--rtol", "0", "--atol", "0"]


class Suite:
    def __init__(self, program, folder):
        self.program, self.folder, self.passed, self.failed = program, Path(folder), 0, 0

    def run(self, *args):
        return subprocess.run([self.program, *map(str, args)], cwd=self.folder, capture_output=True, text=True, check=False, timeout=300)

    def case(self, name, check):
        try:
            check()
            self.passed += 1
        except Exception as error:  # pylint: disable=broad-except
            self.failed += 1
            print(f"FAILED {name}: {error}")

    def save(self, name, model, feed, **options):
        onnx.save(model, str(self.folder / f"{name}.onnx"), **options)
        np.savez(self.folder / f"{name}.npz", **feed)

    def reduce(self, name, *args, code=1):
        """The document of --json. The part must show the difference by the command that the document has."""
        shutil.rmtree(self.folder / f"{name}-part", ignore_errors=True)
        done = self.run("reduce", f"{name}.onnx", f"{name}.npz", "--output", f"{name}-part", "--json", *args)
        assert done.returncode == code, f"exit code {done.returncode}: {done.stderr}{done.stdout}"
        document = json.loads(done.stdout)
        assert document["differs"] == (code == 1), document
        if not code:
            assert not (self.folder / f"{name}-part").exists(), "a part is written though nothing differs"
            return document
        words = document["command"].split()
        assert words[0] == "dqrun" and words[1] == f"{name}-part/model.onnx", words
        again = self.run(*words[1:])
        assert again.returncode == 1, f"{document['command']}: exit code {again.returncode}: {again.stdout}{again.stderr}"
        assert document["difference"] in again.stdout, (document["difference"], again.stdout)
        part = onnx.load(str(self.folder / f"{name}-part" / "model.onnx"))
        onnx.checker.check_model(part)
        assert [n.op_type for n in part.graph.node] == document["operators"], document
        assert len(part.graph.node) == document["nodes_after"], document
        return document | {"part": part}


def make(nodes, arrays, inputs, outputs, opset=21, **more):
    graph = helper.make_graph(nodes, "test", [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
                              [helper.make_tensor_value_info(n, t, s) for n, t, s in outputs],
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in arrays.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("local", 1)], ir_version=10, **more)


def around(rng, middle, arrays, channels=8, before=10, after=10):
    """The nodes `middle`, from "in" to "out", in a chain of nodes that every way computes alike."""
    nodes, x = [], "x"
    for i in range(before):
        nodes.append(models.node("Neg", [x], f"a{i}"))
        x = f"a{i}"
    nodes += [models.node("Identity", [x], "in"), *middle]
    x = "out"
    for i in range(after):
        nodes.append(models.node("Neg", [x], f"z{i}"))
        x = f"z{i}"
    return (make(nodes, arrays, [("x", FLOAT, ["N", channels, 6, 6])], [(x, FLOAT, None)]),
            {"x": rng.normal(0, 1, (3, channels, 6, 6)).astype("f4")})


def batch_norm(rng, channels=8):
    arrays = {"w": rng.normal(0, 0.3, (channels, channels, 3, 3)).astype("f4"), "s": rng.uniform(0.5, 2, channels).astype("f4"),
              "b": rng.normal(0, 1, channels).astype("f4"), "m": rng.normal(0, 1, channels).astype("f4"),
              "v": rng.uniform(0.5, 2, channels).astype("f4")}
    return [models.node("Conv", ["in", "w"], "conv", pads=[1, 1, 1, 1]),
            models.node("BatchNormalization", ["conv", "s", "b", "m", "v"], "out")], arrays


def rewrites(s):
    rng = np.random.default_rng(5)

    def epilogue():
        s.save("bn", *around(rng, *batch_norm(rng)))
        found = s.reduce("bn", *EXACT)
        assert found["operators"] == ["Conv", "BatchNormalization"] and found["nodes_before"] == 23, found
        assert [i.name for i in found["part"].graph.input] == ["in"], found["part"].graph.input
        assert sorted(t.name for t in found["part"].graph.initializer) == ["b", "m", "s", "v", "w"]
    s.case("an epilogue of a convolution", epilogue)

    def half():
        q = {"scale": np.array(0.05, "f2"), "zero": np.array(128, "u1"), "low": np.array(0.02, "f2"),
             "w": rng.normal(0, 0.3, (8, 8)).astype("f2"), "scale32": np.array(0.05, "f4")}
        middle = [models.node("Transpose", ["in"], "last", perm=[0, 2, 3, 1]),
                  models.node("Cast", ["last"], "in16", to=HALF),
                  models.node("QuantizeLinear", ["in16", "scale", "zero"], "q0"),
                  models.node("DequantizeLinear", ["q0", "scale", "zero"], "d0"),
                  models.node("MatMul", ["d0", "w"], "product"), models.node("Sigmoid", ["product"], "gate"),
                  models.node("Mul", ["product", "gate"], "swish"), models.node("Mul", ["swish", "d0"], "weighed"),
                  models.node("QuantizeLinear", ["weighed", "low", "zero"], "q1"),
                  models.node("DequantizeLinear", ["q1", "scale32", "zero"], "out")]
        model, feed = around(rng, middle, q)
        s.save("half", model, {"x": np.tile(feed["x"], (20, 1, 1, 1))})
        found = s.reduce("half")
        assert "quant" in found["difference"] and found["operators"][-1] == "QuantizeLinear", found
        assert found["operators"][0] == "DequantizeLinear" and found["nodes_after"] <= 6, found
    s.case("half precision that is promoted", half)

    def quantum():
        """16 bits: a quantum. The float before QuantizeLinear is rounded in another way, too, but is no result of the whole model."""
        q = {"scale": np.array(1e-4, "f4"), "zero": np.array(32768, "u2"), "w": rng.integers(-127, 128, (8, 8)).astype("i1"),
             "w_scale": np.array(0.01, "f4"), "out_scale": np.array(2e-4, "f4")}
        middle = [models.node("Transpose", ["in"], "last", perm=[0, 2, 3, 1]), models.node("QuantizeLinear", ["last", "scale", "zero"], "q0"),
                  models.node("DequantizeLinear", ["q0", "scale", "zero"], "d0"), models.node("DequantizeLinear", ["w", "w_scale"], "weight"),
                  models.node("MatMul", ["d0", "weight"], "product"), models.node("QuantizeLinear", ["product", "out_scale", "zero"], "q1"),
                  models.node("DequantizeLinear", ["q1", "out_scale", "zero"], "out")]
        model, feed = around(rng, middle, q)
        s.save("quantum", model, {"x": rng.normal(0, 1, (200, *feed["x"].shape[1:])).astype("f4")})
        found = s.reduce("quantum", *EXACT)
        assert sorted(found["operators"]) == ["DequantizeLinear", "DequantizeLinear", "MatMul", "QuantizeLinear"], found
        assert found["difference"].startswith("q1: ") and "is 1 quantum" in found["difference"], found
    s.case("the end is a quantized value", quantum)

    def two_branches():
        middle, arrays = batch_norm(rng)
        middle += [models.node("Relu", ["in"], "side"), models.node("Add", ["out", "side"], "both")]
        model, feed = around(rng, middle, arrays, after=0)
        model.graph.output[0].name = "both"
        s.save("branch", model, feed)
        found = s.reduce("branch", *EXACT)
        assert found["operators"][:1] == ["Conv"] and found["nodes_after"] <= 3, found
    s.case("another branch is left out", two_branches)

    def norm():
        arrays = {"two": np.array(2, "f4"), "eps": np.array(1e-5, "f4"), "g": np.ones(6, "f4"), "o": np.zeros(6, "f4") + 0.1}
        arrays = {k: v.astype("f4") for k, v in arrays.items()}
        middle = [helper.make_node("ReduceMean", ["in", "axes"], ["mean"], name="mean_node"), models.node("Sub", ["in", "mean"], "d"),
                  models.node("Pow", ["d", "two"], "squares"), helper.make_node("ReduceMean", ["squares", "axes"], ["variance"], name="v"),
                  models.node("Add", ["variance", "eps"], "safe"), models.node("Sqrt", ["safe"], "root"),
                  models.node("Div", ["d", "root"], "normal"), models.node("Mul", ["normal", "g"], "scaled"),
                  models.node("Add", ["scaled", "o"], "out")]
        s.save("norm", *around(rng, middle, arrays | {"axes": np.array([-1])}))
        found = s.reduce("norm", *EXACT)
        assert found["nodes_after"] <= 9 and "Sqrt" in found["operators"] and "Neg" not in found["operators"], found
    s.case("a layer normalization", norm)


def references(s):
    rng = np.random.default_rng(6)
    model = models.small_conv()
    feed = {"image": rng.normal(0, 1, (2, 3, 12, 12)).astype("f4")}
    s.save("ref", model, feed)
    done = s.run("ref.onnx", "ref.npz", "--hash-values", "-o", "values.npz")
    assert done.returncode == 0, done.stderr
    values = dict(np.load(s.folder / "values.npz"))

    def planted():
        wrong = dict(values, relu2=values["relu2"].copy())
        wrong["relu2"][1, 3, 4, 5] += 1
        np.savez(s.folder / "wrong.npz", **wrong)
        found = s.reduce("ref", "--ref", "wrong.npz")
        assert found["operators"] == ["Relu"] and found["nodes_before"] == 12, found
        assert found["difference"].startswith("relu2: 1 of ") and "[1,3,4,5]" in found["difference"], found
    s.case("a planted reference value", planted)
    s.case("right reference values", lambda: s.reduce("ref", "--ref", "values.npz", code=0) and None)

    def few():
        """Only every third value has a reference: the part lies between two of them."""
        wrong = {name: values[name].copy() for name in ("relu0", "relu2", "logits")}
        wrong["logits"][0, 0] += 1
        np.savez(s.folder / "few.npz", **wrong)
        found = s.reduce("ref", "--ref", "few.npz")
        assert found["operators"] == ["Add", "Conv", "Relu", "GlobalAveragePool", "Flatten", "MatMul"], found
        assert sorted(i.name for i in found["part"].graph.input) == ["relu0", "relu2"], found
    s.case("few reference values", few)

    def complain(arrays, text):
        np.savez(s.folder / "bad.npz", **arrays)
        done = s.run("reduce", "ref.onnx", "ref.npz", "--output", "bad-part", "--ref", "bad.npz")
        assert done.returncode == 4 and done.stderr == f"dqrun: bad.npz: {text}\n", done.stderr
    s.case("no name of the model", lambda: complain({"nothing": values["relu0"]}, "none of the 1 arrays has the name of a node's result"))
    s.case("another shape", lambda: complain(
        {"logits": values["logits"][:1]}, "array 'logits' is float[1,10], expected float[2,10]"))


def forms(s):
    """Files of every form: the part is complete, and the difference is found."""
    rng = np.random.default_rng(7)
    middle, arrays = batch_norm(rng)

    def external():
        model, feed = around(rng, middle, arrays)
        s.save("external", model, feed, save_as_external_data=True, location="weights.bin", size_threshold=0)
        found = s.reduce("external", *EXACT)
        assert found["nodes_after"] == 2 and not any(t.external_data for t in found["part"].graph.initializer), found
    s.case("weights in another file", external)

    def old():
        model, feed = around(rng, middle, arrays)
        model.ir_version = 3
        model.opset_import[0].version = 14
        model.graph.input.extend(helper.make_tensor_value_info(n, FLOAT, a.shape) for n, a in arrays.items())
        s.save("old", model, feed)
        found = s.reduce("old", *EXACT)
        assert found["nodes_after"] == 2 and len(found["part"].graph.input) == 1 + len(arrays), found
    s.case("IR version 3", old)

    def function():
        body = helper.make_function("local", "Normed", ["f", "w", "s", "b", "m", "v"], ["g"], [
            helper.make_node("Conv", ["f", "w"], ["c"], pads=[1, 1, 1, 1]),
            helper.make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["g"])], [helper.make_opsetid("", 21)])
        call = helper.make_node("Normed", ["in", "w", "s", "b", "m", "v"], ["out"], domain="local")
        model, feed = around(rng, [call], arrays)
        model.functions.append(body)
        s.save("function", model, feed)
        assert s.reduce("function", *EXACT)["operators"] == ["Normed"]
    s.case("functions", function)

    def captured():
        """The convolution reads a value that only a branch knows by its name."""
        then = helper.make_graph([models.node("Conv", ["in", "w"], "c", pads=[1, 1, 1, 1]),
                                  models.node("BatchNormalization", ["c", "s", "b", "m", "v"], "t")], "then", [],
                                 [helper.make_tensor_value_info("t", FLOAT, None)])
        other = helper.make_graph([models.node("Neg", ["in"], "e")], "else", [], [helper.make_tensor_value_info("e", FLOAT, None)])
        branch = [models.node("ReduceMax", ["x"], "top", keepdims=0), models.node("Greater", ["top", "limit"], "high"),
                  helper.make_node("If", ["high"], ["out"], then_branch=then, else_branch=other)]
        s.save("captured", *around(rng, branch, arrays | {"limit": np.array(-9, "f4")}))
        found = s.reduce("captured", *EXACT)
        assert found["operators"] == ["If"] and sorted(i.name for i in found["part"].graph.input) == ["high", "in"], found
    s.case("values that inner graphs read", captured)

    def sequence():
        """A sequence cannot be an input of the part, so its producer stays."""
        nodes = [models.node("Neg", ["in"], "n"), helper.make_node("SequenceConstruct", ["n", "in"], ["list"]),
                 helper.make_node("SequenceAt", ["list", "one"], ["item"]), models.node("Conv", ["item", "w"], "conv", pads=[1, 1, 1, 1]),
                 models.node("BatchNormalization", ["conv", "s", "b", "m", "v"], "bn"),
                 helper.make_node("SequenceInsert", ["list", "bn"], ["longer"]), helper.make_node("SequenceAt", ["longer", "two"], ["out"])]
        s.save("sequence", *around(rng, nodes, arrays | {"one": np.array(1), "two": np.array(2)}))
        assert s.reduce("sequence", *EXACT)["operators"] == ["Conv", "BatchNormalization"]
    s.case("sequences inside the graph", sequence)

    def constants():
        """Weights that Constant nodes give stay constants of the part."""
        given = [helper.make_node("Constant", [], [n], value=numpy_helper.from_array(a)) for n, a in arrays.items()]
        s.save("constant", *around(rng, given + middle, {}))
        found = s.reduce("constant", *EXACT)
        assert sorted(found["operators"]) == ["BatchNormalization"] + ["Constant"] * 5 + ["Conv"], found
    s.case("Constant nodes", constants)


def usage(s):
    def refuse(args, text, code=2):
        done = s.run("reduce", "bn.onnx", *args)
        assert done.returncode == code and done.stderr == f"dqrun: {text}\n", (done.returncode, done.stderr)
    folder = ["bn.npz", "--output", "part"]
    s.case("no folder", lambda: refuse(["bn.npz"], "'reduce' needs a folder for the part of the model: --output FOLDER"))
    s.case("no inputs", lambda: refuse(["--output", "part"], "'reduce' needs inputs: INPUTS, or --random SEED"))
    s.case("two references", lambda: refuse([*folder, "--ref", "values.npz", "--against-isa", "c"],
                                            "--ref and --against-isa exclude each other"))
    s.case("as written against as written", lambda: refuse(
        [*folder, "--no-fuse"], "--no-fuse leaves nothing to compare the graph as written with: expected --against-isa or --ref, too"))

    def a_file():
        (s.folder / "taken").write_text("")
        refuse(["bn.npz", *EXACT, "--output", "taken"], "taken: is a file, expected a folder or nothing", 74)
    s.case("a file with the folder's name", a_file)

    def script():
        done = subprocess.run(["sh", str(s.folder / "bn-part" / "rerun.sh")], capture_output=True, text=True, check=False,
                              env={"PATH": f"{Path(s.program).resolve().parent}:/usr/bin:/bin"})
        assert done.returncode == 1 and done.stdout.startswith("out: "), done

    def levels():
        done = s.run("reduce", "bn.onnx", "bn.npz", "--against-isa", "c", "-o", "part")
        assert done.returncode == 0 and done.stdout == "nothing differs between the two levels (23 nodes)\n", done
    s.case("levels agree", levels)
    s.case("rerun.sh", script)
    s.case("the tolerance of --expect hides it", lambda: s.reduce("bn", "--rtol", "1e-3", "--atol", "1e-3", code=0) and None)


def main():
    with tempfile.TemporaryDirectory() as folder:
        s = Suite(str(Path(sys.argv[1]).resolve()), folder)
        for group in (rewrites, references, forms, usage):
            group(s)
    print(f"{s.passed} passed, {s.failed} failed, 0 skipped")
    return s.failed > 0


if __name__ == "__main__":
    sys.exit(main())
