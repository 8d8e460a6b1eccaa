#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of make_node_tests.py, update_expected.py and expected.tsv. The last line is `N passed, N failed, N skipped`."""

import fnmatch
import os
import subprocess
import sys
from pathlib import Path

import in_folders
import make_data_tests

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected.tsv"
MAKE = HERE / "make_node_tests.py"
UPDATE = HERE / "update_expected.py"
REPORT_HEADER = "case\top\tstatus\tseconds\tmessage\n"
EXPECTED_HEADER = "case\texpected\treason\n"

# The cases that a release must pass, none skipped: 45 of the quantization operators, 172 of Cast and CastLike.
QUANTIZATION = ("test_quantizelinear*", "test_dequantizelinear*", "test_dynamicquantizelinear*", "test_qlinearconv*",
                "test_qlinearmatmul*", "test_convinteger*", "test_basic_convinteger*", "test_matmulinteger*")
CASTS = ("test_cast_*", "test_castlike_*")


def start(script, *arguments, seed="0"):
    return subprocess.Popen([sys.executable, str(script), *map(str, arguments)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONHASHSEED": seed})


def finish(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def run(script, *arguments):
    return finish(start(script, *arguments))


def tree(folder):
    """Path and bytes of every file below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def expected_rows():
    return [line.split("\t") for line in EXPECTED.read_text(encoding="utf-8").splitlines()[1:]]


def matching(names, globs):
    return [name for name in names if any(fnmatch.fnmatchcase(name, glob) for glob in globs)]


def shipped_cases():
    """The cases that the onnx package ships as data, as dqrun-conformance names them."""
    data = make_data_tests.package_data()
    return [f"{name}/{case.name}" for name in make_data_tests.COPIED for case in (data / name).iterdir() if case.is_dir()]


def cases_are_those_of_the_package(folder):
    code, out, err = run(MAKE, "--list")
    assert code == 0, err
    listed, kept = out.split() + shipped_cases(), [row[0] for row in expected_rows()]
    assert kept == sorted(kept) and len(kept) == len(set(kept)), "expected.tsv is not sorted, or repeats a case"
    assert set(listed) == set(kept), f"only in one of the two: {sorted(set(listed) ^ set(kept))[:5]}"


def main_job_is_expected_to_pass(folder):
    rows = {row[0]: row for row in expected_rows()}
    assert len(matching(rows, QUANTIZATION)) >= 45, "fewer quantization cases than onnx 1.23.2 has"
    assert len(matching(rows, CASTS)) >= 172, "fewer Cast and CastLike cases than onnx 1.23.2 has"
    missing = [name for name in matching(rows, QUANTIZATION + CASTS) if rows[name][1] != "pass"]
    assert not missing, f"not expected to pass: {missing}"


def every_skip_has_a_reason(folder):
    for case, expected, reason in expected_rows():
        assert (expected == "skip") == bool(reason), f"{case}: {expected} with the reason '{reason}'"


def data_is_complete_and_repeatable(folder):
    """Tensors, packed tensors, sequences and optionals; twice the same bytes, and nothing is made a third time."""
    import onnx

    globs = ("test_cast_FLOAT_to_INT4", "test_identity*", "test_optional_has_element_empty*")
    filters = [word for glob in globs for word in ("--filter", glob)]
    one, two = folder / "one", folder / "two"
    both = [start(MAKE, one, *filters, seed="1"), start(MAKE, two, *filters, seed="2")]
    for code, _, err in map(finish, both):
        assert code == 0 and err == "", err
    files = tree(one)
    assert files == tree(two), "two runs differ"
    made = sorted(path.name for path in one.iterdir() if path.is_dir())
    assert made == matching([row[0] for row in expected_rows()], globs), made

    def data(case, name):
        return files[f"{case}/test_data_set_0/{name}_0.pb"]

    onnx.checker.check_model(onnx.load_from_string(files["test_cast_FLOAT_to_INT4/model.onnx"]))
    codes = onnx.TensorProto.FromString(data("test_cast_FLOAT_to_INT4", "output"))
    assert (codes.data_type, list(codes.dims), len(codes.raw_data)) == (onnx.TensorProto.INT4, [5, 5], 13), codes
    assert len(onnx.SequenceProto.FromString(data("test_identity_sequence", "input")).tensor_values) > 0
    assert onnx.OptionalProto.FromString(data("test_identity_opt", "input")).HasField("sequence_value")
    empty = [name for name in made if name.startswith("test_optional_has_element_empty_optional")]
    assert empty, "no case with an empty optional"
    assert not onnx.OptionalProto.FromString(data(empty[0], "input")).HasField("tensor_value")

    model = one / "test_identity" / "model.onnx"
    model.write_bytes(b"touched")
    code, _, err = run(MAKE, one, *filters)
    assert code == 0 and model.read_bytes() == b"touched", f"made again though the stamp is good: {err}"
    (one / "dqrun-node-tests.json").write_text('{"complete": false}', encoding="utf-8")
    code, _, err = run(MAKE, one, *filters)
    assert code == 0 and tree(one) == files, f"an unfinished folder was not made again: {err}"


def foreign_folder_is_left_alone(folder):
    (folder / "test_mine").mkdir()
    (folder / "test_mine" / "notes.txt").write_text("keep", encoding="utf-8")
    code, _, err = run(MAKE, folder, "--filter", "test_identity")
    assert code == 2 and "neither an empty folder nor made by this script" in err, err
    assert (folder / "test_mine" / "notes.txt").read_text(encoding="utf-8") == "keep"


def write_tables(folder, expected, report):
    (folder / "expected.tsv").write_text(EXPECTED_HEADER + expected, encoding="utf-8")
    (folder / "report.tsv").write_text(REPORT_HEADER + report, encoding="utf-8")
    return [folder / "report.tsv", "--expected", folder / "expected.tsv"]


def update_keeps_reasons_and_names_losses(folder):
    arguments = write_tables(
        folder,
        "test_a\tpass\t\ntest_b\tskip\tsequence type\ntest_c\tskip\toperator not implemented: C\ntest_gone\tskip\tby hand\n",
        "test_a\tA\tfail\t0.1\toutput 0 differs\ntest_b\tB\tskip\t0\tno sequences\n"
        "test_c\tC\tpass\t0.1\t\ntest_new\tN\tfail\t0.1\tno operator N\n")
    code, out, _ = run(UPDATE, *arguments)
    assert code == 1 and "changed from pass to fail: test_a: output 0 differs" in out, out
    assert "5 cases, 2 expected to pass (1 new), 1 lost" in out, out
    rows = (folder / "expected.tsv").read_text(encoding="utf-8")
    assert rows == EXPECTED_HEADER + ("test_a\tpass\t\ntest_b\tskip\tsequence type\ntest_c\tpass\t\n"
                                      "test_gone\tskip\tby hand\ntest_new\tskip\tno operator N\n"), rows


def update_names_missing_operators_again(folder):
    from onnx import TensorProto, helper

    for case, operators in (("test_a", ["Abs"]), ("test_b", ["Abs", "Neg"]), ("test_c", ["Abs"])):
        nodes = [helper.make_node(op, [f"v{i}"], [f"v{i + 1}"]) for i, op in enumerate(operators)]
        ends = [helper.make_tensor_value_info(f"v{i}", TensorProto.FLOAT, [1]) for i in (0, len(nodes))]
        (folder / case).mkdir()
        model = helper.make_model(helper.make_graph(nodes, case, ends[:1], ends[1:]))
        (folder / case / "model.onnx").write_bytes(model.SerializeToString())
    arguments = write_tables(
        folder,
        "test_a\tskip\toperator not implemented: Abs\ntest_b\tskip\toperator not implemented: Abs, Neg\n"
        "test_c\tskip\toperator not implemented: Abs\n",
        "test_a\tAbs\tpass\t0.1\t\ntest_b\tNeg\tskip\t0\tno Neg\ntest_c\tAbs\tfail\t0\tAbs of int4 is refused\n")
    code, out, err = run(UPDATE, *arguments, "--data", folder)
    assert code == 0, out + err
    rows = (folder / "expected.tsv").read_text(encoding="utf-8")
    assert rows == EXPECTED_HEADER + ("test_a\tpass\t\ntest_b\tskip\toperator not implemented: Neg\n"
                                      "test_c\tskip\tAbs of int4 is refused\n"), rows


def check_tells_every_difference(folder):
    same = write_tables(folder, "test_a\tpass\t\ntest_b\tskip\twhy\n", "test_a\tA\tpass\t0\t\ntest_b\tB\tfail\t0\tx\n")
    code, out, err = run(UPDATE, "--check", *same)
    assert (code, out, err) == (0, "", ""), out + err
    arguments = write_tables(folder, "test_a\tpass\t\ntest_b\tskip\twhy\ntest_c\tpass\t\n",
                             "test_a\tA\tskip\t0\tno A\ntest_b\tB\tpass\t0\t\ntest_d\tD\tpass\t0\t\n")
    before = (folder / "expected.tsv").read_bytes()
    code, out, _ = run(UPDATE, "--check", *arguments)
    assert code == 1 and out.splitlines() == [
        "expected to pass: test_a: skip no A", "passes, though not expected to: test_b (why)",
        "not in the report: test_c", "not in expected.tsv: test_d"], out
    assert (folder / "expected.tsv").read_bytes() == before, "--check wrote"


def bad_tables_are_refused(folder):
    for report, sentence in (("test_a\tA\tok\t0\t\n", "line 2 has 'ok'"), ("test_a\tA\tpass\n", "line 2 has 3 columns"),
                             ("test_a\tA\tpass\t0\t\n" * 2, "line 3 repeats the case test_a")):
        code, _, err = run(UPDATE, *write_tables(folder, "test_a\tpass\t\n", report))
        assert code == 2 and sentence in err, err
    code, _, err = run(UPDATE, folder / "absent.tsv")
    assert code == 2 and "absent.tsv" in err, err


CHECKS = (cases_are_those_of_the_package, main_job_is_expected_to_pass, every_skip_has_a_reason,
          data_is_complete_and_repeatable, foreign_folder_is_left_alone, update_keeps_reasons_and_names_losses,
          update_names_missing_operators_again, check_tells_every_difference, bad_tables_are_refused)


if __name__ == "__main__":
    sys.exit(in_folders.run(CHECKS))
