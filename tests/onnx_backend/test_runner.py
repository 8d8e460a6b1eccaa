#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of dqrun-conformance on cases made here: folders, batch files, expectations, reports, exit codes.

    python3 tests/onnx_backend/test_runner.py DQRUN_CONFORMANCE

The last line is `N passed, N failed, N skipped`.
"""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import batch
import in_folders

RUNNER = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else sys.exit("test_runner.py: which dqrun-conformance?")
X = np.array([[1, 2, 3]], dtype=np.float32)


def run(*arguments, code, cwd=None, environment=None):
    """Lines of stdout, after a run that must end with this exit code."""
    done = subprocess.run([RUNNER, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False,
                          cwd=cwd, env=os.environ | (environment or {}))
    assert done.returncode == code, f"exit code {done.returncode}, expected {code}: {done.stdout}{done.stderr}"
    run.stderr = done.stderr
    return done.stdout.splitlines()


def model(op="Identity", element=TensorProto.FLOAT, **attributes):
    node = helper.make_node(op, ["x"], ["y"], **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", element, ["n", 3])],
                              [helper.make_tensor_value_info("y", element, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def write_case(folder, made, sets):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    for number, (x, y) in enumerate(sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir()
        for name, value in (("input_0", x), ("output_0", y)):
            (data / f"{name}.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())


def four_cases(folder):
    """One that passes twice, one with a wrong second set, one of another type, one that no build has."""
    write_case(folder / "good", model(), [(X, X), (2 * X, 2 * X)])
    write_case(folder / "wrong", model(), [(X, X), (X, X + 1)])
    write_case(folder / "in" / "typed", model(), [(X, X.astype(np.float64))])
    write_case(folder / "absent", model("NoSuchOperator"), [(X, X)])


def folders_are_counted(folder):
    four_cases(folder)
    out = run(folder, code=1)
    assert out[-1] == "1 passed, 3 failed, 0 skipped", out[-1]
    failures = [line for line in out if line.startswith("  ")]
    assert [line.split()[0] for line in failures] == ["absent", "in/typed", "wrong"], failures
    assert "NoSuchOperator" in failures[0], failures[0]
    assert "output 'y': got float[1,3], expected double[1,3]" in failures[1], failures[1]
    assert "3 of 3 elements differ" in failures[2], failures[2]
    table = {line.split()[0]: line.split()[1:] for line in out[1:3]}
    assert table == {"Identity": ["1", "2", "0"], "NoSuchOperator": ["0", "1", "0"]}, table
    assert run(folder, "--filter", "go*", code=0)[-1] == "1 passed, 0 failed, 0 skipped"
    assert run(folder / "good", folder / "wrong", "--jobs", 1, "-v", code=1)[:1] == ["passed   good"]
    assert run("good", "in/typed/", "--jobs", 1, "-v", code=1, cwd=folder)[:1] == ["passed   good"]


def tolerance_is_that_of_onnx(folder):
    write_case(folder / "near", model(), [(X, X * np.float32(1.0009))])
    write_case(folder / "far", model(), [(X, X * np.float32(1.0011))])
    nan = np.array([[np.nan, np.inf, -np.inf]], dtype=np.float32)
    write_case(folder / "nan", model(), [(nan, nan)])
    write_case(folder / "not_nan", model(), [(nan, np.array([[0, np.inf, -np.inf]], dtype=np.float32))])
    whole = np.array([[1000000, 2, 3]], dtype=np.int32)
    write_case(folder / "whole", model(element=TensorProto.INT32), [(whole, whole + np.int32([[1, 0, 0]]))])
    out = run(folder, "--report", folder / "r.tsv", code=1)
    assert out[-1] == "2 passed, 3 failed, 0 skipped", out[-1]
    rows = [line.split("\t") for line in (folder / "r.tsv").read_text().splitlines()]
    assert [row[0] for row in rows if row[2] == "fail"] == ["far", "not_nan", "whole"], rows


def names_decide_which_input(folder):
    """Values in another order than the model's inputs, tensors and sequences: each goes where its name says."""
    kinds = {"tensor": (helper.make_tensor_type_proto(TensorProto.FLOAT, None), numpy_helper.from_array),
             "sequence": (helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None)),
                          lambda array, name: numpy_helper.from_list([array], name))}
    for name, (kind, write) in kinds.items():
        inputs = [helper.make_value_info("a", kind), helper.make_value_info("b", kind)]
        graph = helper.make_graph([helper.make_node("Identity", ["a"], ["y"])], "g", inputs,
                                  [helper.make_value_info("y", kind)])
        data = folder / name / "test_data_set_0"
        data.mkdir(parents=True)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        (folder / name / "model.onnx").write_bytes(made.SerializeToString())
        for file, value in (("input_0", write(-X, "b")), ("input_1", write(X, "a")), ("output_0", write(X, "y"))):
            (data / f"{file}.pb").write_bytes(value.SerializeToString())
    assert run(folder, code=0)[-1] == "2 passed, 0 failed, 0 skipped"


def expectations_excuse(folder):
    four_cases(folder / "cases")
    table = folder / "expected.tsv"
    table.write_text("case\texpected\treason\nabsent\tskip\tnobody has it\nin/typed\tskip\tdouble\n"
                     "good\tskip\tcannot be\nwrong\tskip\tit is\n")
    report = folder / "r.tsv"
    out = run(folder / "cases", "--expected", table, "--report", report, code=0)
    assert out[-1] == "1 passed, 0 failed, 3 skipped", out[-1]
    assert "  good (Identity): cannot be" in out[out.index("passed, though expected to be skipped:"):], out
    rows = {row[0]: row[1:] for row in (line.split("\t") for line in report.read_text().splitlines())}
    assert rows["case"] == ["op", "status", "seconds", "message"], rows["case"]
    assert rows["absent"][:2] == ["NoSuchOperator", "skip"] and rows["absent"][3] == "nobody has it", rows["absent"]
    assert rows["good"][1] == "pass", rows["good"]
    table.write_text("case\texpected\treason\nabsent\tmaybe\t\n")
    run(folder / "cases", "--expected", table, code=2)
    assert "line 2 is not" in run.stderr, run.stderr


def reports_can_be_read(folder):
    four_cases(folder / "cases")
    run(folder / "cases", "--report", folder / "r.json", code=1)
    report = json.loads((folder / "r.json").read_text())
    assert (report["passed"], report["failed"], report["skipped"]) == (1, 3, 0), report
    assert [case["case"] for case in report["cases"]] == ["absent", "good", "in/typed", "wrong"], report
    run(folder / "cases", "--report", folder / "r.xml", code=1)
    suite = ElementTree.parse(folder / "r.xml").getroot()
    assert suite.get("tests") == "4" and suite.get("failures") == "3", suite.attrib
    assert len(suite.findall("testcase/failure")) == 3
    run(folder / "cases", "--report", folder / "none" / "r.xml", code=74)
    run(folder / "cases", "--report", folder / "r.csv", code=2)


def batches_are_run(folder):
    path = folder / "a.dqb"
    with batch.Writer(path) as writer:
        for number in range(700):
            writer.add(f"case_{number}", model(), [X * number], [X * number + (number % 100 == 3)], rtol=0, atol=0)
        writer.add("bytes", model().SerializeToString(), [numpy_helper.from_array(X)], [X])
        writer.add("near", model(), [X], [X * np.float32(1.0009)])
        writer.add("exact", model(), [X], [X * np.float32(1.0009)], rtol=0, atol=0)
        writer.add("loose", model(), [X], [X + 1], rtol=0, atol=1)
        writer.add("broken", b"\xff\xff", [X], [X])
    out = run("--batch", path, "--report", folder / "r.tsv", code=1)
    assert out[-1] == "696 passed, 9 failed, 0 skipped", out[-1]
    rows = [line.split("\t") for line in (folder / "r.tsv").read_text().splitlines()[1:]]
    failed = [row[0] for row in rows if row[2] == "fail"]
    assert failed == [f"case_{number}" for number in range(3, 700, 100)] + ["exact", "broken"], failed
    assert [record[0] for record in batch.read(path)] == [row[0] for row in rows]


def mistakes_are_named(folder):
    for arguments, sentence in (((), "no folder of cases is named"),
                                ((folder / "none",), "none: No such file or directory; expected a folder of cases"),
                                ((folder,), "no folder below it holds a model.onnx"),
                                (("--jobs", "0", folder), "--jobs is '0', expected a whole number from 1 to 1024"),
                                (("--timeout", "-1", folder), "--timeout is '-1'"),
                                (("--isa", "z80", folder), "--isa is 'z80', expected one of c"),
                                (("--batch", __file__), "does not begin with DQCASES1"),
                                (("--unknown",), "--help lists the options")):
        assert run(*arguments, code=2) == [] and sentence in run.stderr, (sentence, run.stderr)
    unknown = {"DQRUN_ISA": "z80"}
    assert run(folder, code=2, environment=unknown) == []
    assert "environment variable DQRUN_ISA is 'z80', expected one of c" in run.stderr, run.stderr
    write_case(folder / "bare", model(), [])
    out = run(folder / "bare", code=1)
    assert any("there is no folder test_data_set_0" in line for line in out), out
    run(folder / "bare", "--isa", "c", code=1, environment=unknown)  # the option comes first
    run(folder / "bare", "--filter", "other", code=2)
    assert run("--list-isa", code=0)[0] == "c"
    assert run("--help", code=0)[0].startswith("usage: dqrun-conformance")


CHECKS = (folders_are_counted, tolerance_is_that_of_onnx, names_decide_which_input, expectations_excuse,
          reports_can_be_read, batches_are_run, mistakes_are_named)


if __name__ == "__main__":
    sys.exit(in_folders.run(CHECKS))
