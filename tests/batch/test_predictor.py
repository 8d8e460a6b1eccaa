# SPDX-License-Identifier: Apache-2.0
"""dqrun.batch.Predictor: kinds of batches, rows that fail, fixed batch dimensions, one load a process."""

import multiprocessing
import os
import pickle
import subprocess
import sys

import numpy as np
import onnx
import pandas as pd
import pyarrow as pa
import pytest
from onnx import TensorProto, numpy_helper

import dqrun
from conftest import EXAMPLES, add_models, identity, one_node
from dqrun.batch import Predictor

DIGITS = EXAMPLES / "digits_qdq.onnx"


@pytest.fixture(scope="module")
def scores(digits):
    return dqrun.Session(DIGITS)(image=digits)


def gather(rows="N"):
    """y = table[x]: rows with an index out of range fail."""
    table = numpy_helper.from_array(np.arange(10, dtype=np.float32) * 2, "table")
    node = onnx.helper.make_node("Gather", ["table", "x"], ["y"])
    graph = onnx.helper.make_graph([node], "gather", [onnx.helper.make_tensor_value_info("x", TensorProto.INT64, [rows, 2])],
                                   [onnx.helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 2])], [table])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


def images_as(kind, images):
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(images)
    lists = pa.array(list(images.reshape(len(images), -1)))
    return {
        "dict": lambda: {"image": images},
        "object": lambda: {"image": pd.Series(list(images)).to_numpy()},
        "pandas": lambda: pd.DataFrame({"image": list(images)}, index=range(7, 7 + len(images))),
        "table": lambda: pa.table({"image": tensors}),
        "chunks": lambda: pa.concat_tables([pa.table({"image": tensors[:100]}), pa.table({"image": tensors[100:]})]),
        "record_batch": lambda: pa.record_batch({"image": tensors}),
        "slice": lambda: pa.concat_tables([pa.table({"image": tensors[:5]}), pa.table({"image": tensors})]).combine_chunks()[5:],
        "list": lambda: pa.table({"image": lists}),
        "large_list": lambda: pa.table({"image": lists.cast(pa.large_list(pa.float32()))}),
        "nested": lambda: pa.table({"image": pa.array(images.tolist(), pa.list_(pa.list_(pa.list_(pa.float32()))))}),
    }[kind]()


def array_of(result, name):
    if isinstance(result, dict):
        return result[name]
    if isinstance(result, pd.DataFrame):
        return np.stack(result[name].to_list())
    column = result.column(name)
    return (column.combine_chunks().chunk(0) if isinstance(column, pa.ChunkedArray) and column.num_chunks != 1
            else column.chunk(0) if isinstance(column, pa.ChunkedArray) else column).to_numpy_ndarray()


@pytest.mark.parametrize("kind", ["dict", "object", "pandas", "table", "chunks", "record_batch", "slice", "list", "large_list", "nested"])
def test_kinds_of_batches(kind, digits, scores):
    batch = images_as(kind, digits)
    result = Predictor(DIGITS)(batch)
    assert type(result) is type(batch)
    np.testing.assert_array_equal(array_of(result, "scores"), scores)
    if kind == "pandas":
        assert list(result.index) == list(batch.index)


def test_tensor_columns_are_not_copied(digits, monkeypatch):
    seen = []
    run = dqrun.Session.run
    monkeypatch.setattr(dqrun.Session, "run", lambda self, outputs, feeds: seen.append(feeds) or run(self, outputs, feeds))
    batch = images_as("table", digits)
    result = Predictor(DIGITS)(batch)
    address = batch["image"].chunk(0).storage.flatten().buffers()[1].address
    assert seen[0]["image"].ctypes.data == address
    out = array_of(result, "scores")
    assert out.base is not None and out.ctypes.data == result["scores"].chunk(0).storage.flatten().buffers()[1].address


def test_names_and_columns_that_are_kept(digits, scores):
    predict = Predictor(DIGITS, {"image": "pixels"}, {"scores": "logits"}, keep=["id"])
    result = predict({"id": np.arange(450), "pixels": digits, "other": digits})
    assert list(result) == ["id", "logits"]
    np.testing.assert_array_equal(result["logits"], scores)
    assert predict.inputs == {"image": "pixels"} and predict.outputs == {"scores": "logits"}
    assert list(Predictor(DIGITS, ["image"], "scores")({"image": digits})) == ["scores"]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 9])
def test_fixed_batch_dimension(count):
    x = np.random.default_rng(count).standard_normal((count, 4)).astype(np.float32)
    result = Predictor(add_models((4, 4)))({"x": x})
    np.testing.assert_array_equal(result["y"], x + x)


def test_fixed_batch_dimension_with_rows_that_fail():
    x = np.array([[i, 1] for i in range(7)])
    x[[2, 6]] = 99
    result = Predictor(gather(3), on_error="column")({"x": x})
    assert [row for row, message in enumerate(result["error"]) if message] == [2, 6]
    np.testing.assert_array_equal(result["y"][[0, 1, 3, 4, 5]], [[0, 2], [2, 2], [6, 2], [8, 2], [10, 2]])


def test_only_rows_that_fail_do():
    x = np.tile(np.array([[1, 2]]), (100, 1))
    bad = [0, 17, 18, 99]
    x[bad, 1] = 10
    result = Predictor(gather(), on_error="column")({"x": x})
    assert [row for row, message in enumerate(result["error"]) if message is not None] == bad
    assert "10" in result["error"][17]
    good = np.setdiff1d(np.arange(100), bad)
    assert (result["y"][good] == [2, 4]).all() and np.isnan(result["y"][bad]).all()
    with pytest.raises(dqrun.Error, match="^row 16: "):
        Predictor(gather())({"x": x[1:]})


def test_nulls_and_rows_of_other_shapes(digits, scores):
    rows = [digits[0], None, digits[1][0, 0], digits[2].astype(np.float64), "text", digits[3].reshape(64)]
    expected = [None, "null", "shape is (8), expected (1, 8, 8)", "dtype is float64, expected float32", "not an array", None]
    lists = pa.array([digits[0].reshape(64).tolist(), None, [1.0], [None] * 64], pa.list_(pa.float32()))
    predict = Predictor(DIGITS, on_error="column")
    for batch in (pd.DataFrame({"image": rows}), {"image": pd.Series(rows).to_numpy()}):
        result = predict(batch)
        for row, text in enumerate(expected):
            assert (result["error"][row] is None or result["error"][row] != result["error"][row]) if text is None \
                else text in result["error"][row]
        np.testing.assert_array_equal(np.stack(list(result["scores"]))[[0, 5]], scores[[0, 3]])
        with pytest.raises(dqrun.BadInput, match="^row 1: column 'image': the value is null"):
            Predictor(DIGITS)(batch)
    result = predict(pa.table({"image": lists}))
    assert [message and message.split(": ")[1] for message in result["error"].to_pylist()] == [
        None, "the value is null", "the shape is (1), expected (1, 8, 8)", "an element is null"]
    assert result["scores"].is_valid().to_pylist() == [True, False, False, False]
    np.testing.assert_array_equal(result["scores"].chunk(0).storage[0].as_py(), scores[0])


def test_null_tensors(digits, scores):
    storage = pa.array([digits[0].reshape(64), None, digits[1].reshape(64)], pa.list_(pa.float32(), 64))
    tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), (1, 8, 8)), storage)
    result = Predictor(DIGITS, on_error="column")(pa.table({"image": tensors}))
    assert result["error"].to_pylist() == [None, "column 'image': the value is null", None]
    np.testing.assert_array_equal(result["scores"].chunk(0).storage[2].as_py(), scores[1])


def test_rows_of_free_lengths():
    model = add_models(("N", "M")).SerializeToString()
    table = pa.table({"x": pa.array([[1, 2], [3, 4, 5], [6, 7]], pa.list_(pa.float32()))})
    result = Predictor(model, on_error="column")(table)
    assert result["y"].chunk(0).storage.to_pylist() == [[2, 4], None, [12, 14]]
    assert "shape (3,)" in result["error"][1].as_py()
    with pytest.raises(dqrun.BadInput, match=r"^row 1: output 'y' has shape \(3,\)"):
        Predictor(model)(table)


def test_scalar_columns_and_strings():
    model = one_node("Identity", [("x", TensorProto.STRING, ["N"])], [("y", TensorProto.STRING, ["N"])]).SerializeToString()
    predict = Predictor(model, on_error="column")
    for batch in (pd.DataFrame({"x": ["a", None, "c"]}), pa.table({"x": ["a", None, "c"]})):
        result = predict(batch)
        values = list(result["y"]) if isinstance(result, pd.DataFrame) else result["y"].to_pylist()
        assert values[0] == "a" and values[2] == "c" and "null" in str(result["error"][1])
    predict = Predictor(add_models(("N", 1)).SerializeToString())
    result = predict(pd.DataFrame({"x": np.float32([1, 2])}))
    assert np.stack(result["y"]).tolist() == [[2], [4]]


@pytest.mark.parametrize("batch, message", [
    ({}, "the batch has no column 'image': it has none"),
    ({"pixels": np.zeros(3)}, "the batch has no column 'image': it has pixels"),
    ({"image": np.zeros((2, 1, 8, 8))}, "column 'image' has dtype float64, input 'image' expects float32"),
    ({"image": np.zeros((2, 1, 8, 4), np.float32)}, r"column 'image' has rows of shape \(1, 8, 4\), input 'image' expects \(1, 8, 8\)"),
    ({"image": np.float32(1)}, "column 'image' is a scalar, expected an array of rows"),
    (pa.table({"image": pa.array([[1.0] * 64])}), "column 'image' has dtype float64, input 'image' expects float32"),
])
@pytest.mark.parametrize("on_error", ["raise", "column"])
def test_messages_of_whole_columns(batch, message, on_error):
    with pytest.raises(dqrun.BadInput, match=message):
        Predictor(DIGITS, on_error=on_error)(batch)


def test_messages_of_arguments(digits, twice):
    for arguments, message in [(dict(inputs=["pixels"]), "the model has no input 'pixels': it has image"),
                               (dict(outputs={"logits": "x"}), "the model has no output 'logits': it has scores"),
                               (dict(keep=["scores"]), "the result would have two columns 'scores'"),
                               (dict(outputs={"scores": "error"}, on_error="column"), "two columns 'error'"),
                               (dict(on_error="skip"), "on_error is 'skip', expected 'raise' or 'column'")]:
        with pytest.raises(dqrun.InvalidArgument, match=message):
            Predictor(DIGITS, **arguments)
    with pytest.raises(dqrun.InvalidArgument, match="a batch is given as ndarray"):
        Predictor(DIGITS)(digits)
    two = one_node("Concat", [("a", 1, [2, 3]), ("b", 1, [4, 3])], [("y", 1, [6, 3])], axis=0)
    with pytest.raises(dqrun.InvalidArgument, match="different fixed numbers of rows: 'a' 2, 'b' 4"):
        Predictor(two)
    mean = one_node("ReduceSum", [("x", 1, ["N", 4])], [("y", 1, None)], keepdims=0).SerializeToString()
    with pytest.raises(dqrun.InvalidArgument, match="expected a result a row"):
        Predictor(mean)({"x": np.zeros((3, 4), np.float32)})
    both = one_node("Add", [("a", 1, ["N"]), ("b", 1, ["N"])], [("y", 1, ["N"])])
    with pytest.raises(dqrun.BadInput, match="the columns have different numbers of rows: 'a' 2, 'b' 3"):
        Predictor(both)({"a": np.zeros(2, np.float32), "b": np.zeros(3, np.float32)})
    with pytest.raises(FileNotFoundError):
        Predictor("no-such-file.onnx")


@pytest.mark.parametrize("kind", ["dict", "pandas", "table", "record_batch"])
def test_no_rows(kind, digits):
    result = Predictor(DIGITS, on_error="column")(images_as(kind, digits)[:0] if kind != "dict" else {"image": digits[:0]})
    if kind == "dict":
        assert result["scores"].shape == (0, 10) and result["scores"].dtype == np.float32 and len(result["error"]) == 0
    else:
        assert len(result) == 0 and list(result.columns if kind == "pandas" else result.schema.names) == ["scores", "error"]
    lists = pa.table({"image": pa.array([], pa.list_(pa.float32()))})
    assert Predictor(DIGITS)(lists).schema.field("scores").type == pa.fixed_shape_tensor(pa.float32(), (10,))


@pytest.mark.parametrize("dtype, onnx_type", [(np.bool_, 9), (np.float16, 10), (np.int8, 3), (np.uint64, 13)])
def test_types_through_arrow(dtype, onnx_type):
    x = np.arange(6).reshape(3, 2).astype(dtype)
    predict = Predictor(identity(onnx_type, ("N", 2)).SerializeToString())
    flat = pa.array(x.reshape(-1))
    storage = pa.FixedSizeListArray.from_arrays(flat, 2)
    result = predict(pa.table({"x": storage}))["y"].chunk(0)
    assert result.storage.to_pylist() == storage.to_pylist()


def load_here(pickled):
    predict = pickle.loads(pickled)
    predict({"image": np.zeros((1, 1, 8, 8), np.float32)})
    return os.getpid(), id(predict.session)


@pytest.mark.parametrize("source", ["path", "bytes", "Model"])
def test_one_load_a_process(source):
    model = {"path": DIGITS, "bytes": DIGITS.read_bytes(), "Model": dqrun.Model(DIGITS)}[source]
    assert Predictor(model).session is Predictor(model).session
    assert Predictor(model).session is not Predictor(model, threads=2).session
    pickled = pickle.dumps(Predictor(model))
    assert len(pickled) < 2000 or source == "bytes"
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        loads = pool.map(load_here, [pickled] * 20, chunksize=1)
    assert len(set(loads)) == len({pid for pid, _ in loads})


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(add_models(("N", 2)).SerializeToString())
    pickled = pickle.dumps(Predictor(path))
    path.write_bytes(add_models(("N", 3)).SerializeToString())
    code = "import pickle, sys, dqrun\ntry: pickle.load(sys.stdin.buffer).session\nexcept dqrun.BadModel as why: print(why)"
    done = subprocess.run([sys.executable, "-c", code], input=pickled, stdout=subprocess.PIPE, check=True)
    assert b"SHA-256 is" in done.stdout
    assert Predictor(path)({"x": np.zeros((1, 3), np.float32)})["y"].shape == (1, 3)


def test_numpy_is_enough():
    code = ("import sys; sys.modules.update(pandas=None, pyarrow=None, ray=None); import dqrun, dqrun.batch, numpy as np; "
            f"print(dqrun.batch.Predictor({str(DIGITS)!r})({{'image': np.zeros((2, 1, 8, 8), np.float32)}})['scores'].shape)")
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout == "(2, 10)\n"
