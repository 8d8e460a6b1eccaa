# SPDX-License-Identifier: Apache-2.0
"""Sessions and models from Python."""

import gc
import hashlib
import multiprocessing
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dqrun
from conftest import EXAMPLES, ROOT, identity, one_node

DIGITS = EXAMPLES / "digits_qdq.onnx"


# ---- Loading and describing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [str(DIGITS), DIGITS, DIGITS.read_bytes(), bytearray(DIGITS.read_bytes()),
                                    memoryview(DIGITS.read_bytes()), onnx.load(DIGITS), dqrun.Model(DIGITS)],
                         ids=["str", "path", "bytes", "bytearray", "memoryview", "ModelProto", "Model"])
def test_sources(source, digits):
    session = dqrun.Session(source)
    np.testing.assert_array_equal(session(image=digits), dqrun.Session(DIGITS)(image=digits))


def test_description():
    session = dqrun.Session(DIGITS)
    (image,), (scores,) = session.inputs, session.outputs
    assert (image.name, image.type, image.dtype, image.shape) == ("image", "tensor(float)", np.dtype(np.float32), ("N", 1, 8, 8))
    assert (scores.name, scores.dtype, scores.shape, scores.optional) == ("scores", np.dtype(np.float32), ("N", 10), False)
    assert repr(session) == f"<dqrun.Session '{DIGITS}': (image: float[N,1,8,8]) -> (scores: float[N,10])>"
    assert "<table>" in session._repr_html_() and "image" in session._repr_html_()
    assert session.threads >= 1 and isinstance(session.isa, str)
    assert dqrun.Session(DIGITS, threads=1).threads == 1
    assert dqrun.Session(DIGITS, isa="c").isa == "c"
    assert dqrun.__version__.count(".") == 2


def test_results_do_not_depend_on_isa_threads_or_fusion(digits):
    hashes = {hashlib.sha256(dqrun.Session(DIGITS, **options)(image=digits).tobytes()).hexdigest()
              for options in ({}, {"isa": "c"}, {"threads": 2}, {"threads": 1}, {"fuse": False, "isa": "c"}, {"fuse": False})}
    assert len(hashes) == 1


def test_labels_of_the_example(digits):
    with np.load(EXAMPLES / "digits_labels.npz") as arrays:
        labels = arrays[arrays.files[0]]
    scores = dqrun.Session(DIGITS)(image=digits)
    assert (scores.argmax(axis=1) == labels).mean() > 0.97


# ---- Types --------------------------------------------------------------------------------------------------------

TYPES = [np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_,
         np.complex64, np.complex128, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2,
         ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e8m0fnu, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2,
         ml_dtypes.float4_e2m1fn]


def values_of(dtype, shape):
    if np.dtype(dtype).kind in "biu" and np.dtype(dtype).isbuiltin == 1:
        return np.random.default_rng(1).integers(0, 2 if dtype == np.bool_ else 100, shape).astype(dtype)
    if dtype in (ml_dtypes.int4, ml_dtypes.int2):
        low = -8 if dtype == ml_dtypes.int4 else -2
        return np.random.default_rng(2).integers(low, -low, shape).astype(np.int8).astype(dtype)
    if dtype in (ml_dtypes.uint4, ml_dtypes.uint2):
        return np.random.default_rng(3).integers(0, 16 if dtype == ml_dtypes.uint4 else 4, shape).astype(np.uint8).astype(dtype)
    return np.abs(np.random.default_rng(4).normal(size=shape)).astype(np.float32).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("shape", [(3, 5), (0, 5), (1, 1), (4, 8)], ids=str)
def test_every_type_in_and_out(dtype, shape):
    array = values_of(dtype, shape)
    model = identity(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    got = dqrun.Session(model)(x=array)
    assert got.dtype == np.dtype(dtype) and got.shape == shape
    assert got.tobytes() == array.tobytes()


@pytest.mark.parametrize("bits,name", [(6, "float6_e2m3fn"), (6, "float6_e3m2fn"), (4, "int4"), (4, "uint4"), (2, "int2"), (2, "uint2"),
                                       (4, "float4_e2m1fn")])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 9])
def test_packing(bits, name, count):
    from dqrun import _dtypes

    dtype = np.dtype(getattr(ml_dtypes, name))
    raw = (np.arange(count) * 7 + 3).astype(np.uint8) & ((1 << bits) - 1)
    number = sum(int(value) << bits * i for i, value in enumerate(raw))
    packed = _dtypes.pack(raw.view(dtype), bits)
    assert packed.tobytes() == number.to_bytes((count * bits + 7) // 8, "little")
    again = _dtypes.unpack(packed, count, _dtypes.from_numpy(dtype))
    assert again.dtype == dtype
    assert [int(value) & ((1 << bits) - 1) for value in again.view(np.uint8)] == raw.tolist()
    if name.startswith("int"):
        assert again.astype(np.int32).tolist() == [int(v) - (1 << bits if v >> (bits - 1) else 0) for v in raw]


def test_strings():
    texts = np.array([["ein", "käse"], ["", "日本"]], object)
    got = dqrun.Session(identity(TensorProto.STRING))(x=texts)
    assert got.dtype == object and got.tolist() == texts.tolist()
    assert dqrun.Session(identity(TensorProto.STRING))(x=[["a", b"b"]]).tolist() == [["a", "b"]]
    assert dqrun.Session(identity(TensorProto.STRING))(x=np.array([["abc", "d"]])).tolist() == [["abc", "d"]]
    with pytest.raises(dqrun.BadInput, match="element 1 of an array of strings is int, expected str or bytes"):
        dqrun.Session(identity(TensorProto.STRING))(x=np.array([["a", 1]], object))


# ---- Layouts ------------------------------------------------------------------------------------------------------

BASE = np.arange(48, dtype=np.float32).reshape(6, 8)
LAYOUTS = {
    "contiguous": BASE[:, :4].copy(), "strided": BASE[::2, ::2], "negative": BASE[::-1, 4:], "fortran": np.asfortranarray(BASE[:, :4]),
    "big-endian": BASE[:, :4].astype(">f4"), "broadcast": np.broadcast_to(np.float32(7), (3, 4)),
    "unaligned": np.frombuffer(b"\0" + BASE[:2, :4].tobytes(), np.float32, offset=1).reshape(2, 4) if False else
                 np.frombuffer(bytearray(b"\0" + BASE[:2, :4].tobytes()), np.uint8)[1:].view(np.float32).reshape(2, 4),
    "transposed": BASE[:4, :4].T,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, twice):
    array = LAYOUTS[layout]
    before = array.copy()
    np.testing.assert_array_equal(dqrun.Session(twice)(x=array), before + before)
    np.testing.assert_array_equal(array, before)


def test_read_only_arrays(twice):
    array = np.ones((2, 4), np.float32)
    array.flags.writeable = False
    np.testing.assert_array_equal(dqrun.Session(twice)(x=array), 2 * array)


def test_lists_numbers_and_scalars(twice):
    session = dqrun.Session(twice)
    np.testing.assert_array_equal(session(x=[[1, 2, 3, 4]]), [[2, 4, 6, 8]])
    np.testing.assert_array_equal(session(x=((1.5, 2, 3, 4), (0, 0, 0, 1))), [[3, 4, 6, 8], [0, 0, 0, 2]])
    scalar = dqrun.Session(one_node("Identity", [("x", TensorProto.INT64, ())], [("y", TensorProto.INT64, ())]))
    assert scalar(x=7) == 7 and scalar(x=np.int64(8)) == 8 and scalar(x=np.array(9)).shape == ()


def test_dlpack(twice):
    class Exports:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    array = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(dqrun.Session(twice)(x=Exports(array)), 2 * array)


def test_array_protocol(twice):
    class Exports:
        def __array__(self, dtype=None, copy=None):
            return np.ones((2, 4), np.float32)

    np.testing.assert_array_equal(dqrun.Session(twice)(x=Exports()), np.full((2, 4), 2))


def test_torch(twice):
    torch = pytest.importorskip("torch")
    session = dqrun.Session(twice)
    np.testing.assert_array_equal(session(x=torch.ones((2, 4), requires_grad=True)), np.full((2, 4), 2))
    half = torch.arange(8, dtype=torch.float32).reshape(2, 4).to(torch.bfloat16)
    got = dqrun.Session(identity(TensorProto.BFLOAT16))(x=half)
    assert got.astype(np.float32).tolist() == half.to(torch.float32).tolist()


# ---- Sequences and optionals ----------------------------------------------------------------------------------------


def sequence_model():
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("SequenceInsert", ["s", "x"], ["t"])], "insert",
                              [sequence, helper.make_tensor_value_info("x", TensorProto.FLOAT, None)],
                              [helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_sequences():
    session = dqrun.Session(sequence_model())
    a, b = np.ones((2, 3), np.float32), np.zeros((1,), np.float32)
    got = session(s=[a, b], x=a + 1)
    assert [item.tolist() for item in got] == [a.tolist(), b.tolist(), (a + 1).tolist()]
    assert session(s=[], x=a)[0].shape == (2, 3)
    assert session.inputs[0].type == "seq(tensor(float))" and session.inputs[0].dtype == np.float32
    with pytest.raises(dqrun.BadInput, match="a sequence is given as int, expected a list of arrays"):
        session(s=3, x=a)


def test_optionals():
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    graph = helper.make_graph([helper.make_node("OptionalHasElement", ["o"], ["y"])], "has", [helper.make_value_info("o", kind)],
                              [helper.make_tensor_value_info("y", TensorProto.BOOL, ())])
    session = dqrun.Session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))
    assert session(o=None) == False and session(o=np.ones(2, np.float32)) == True  # noqa: E712


def test_default_of_an_input():
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "default",
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "w")],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
                              [numpy_helper.from_array(np.array([10, 20], np.float32), "w")])
    session = dqrun.Session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    ones = np.ones(2, np.float32)
    assert session(x=ones).tolist() == [11, 21]
    assert session(x=ones, w=ones).tolist() == [2, 2]
    assert session(x=ones, w=None).tolist() == [11, 21]
    assert session.inputs[1].optional and not session.inputs[0].optional


# ---- Running --------------------------------------------------------------------------------------------------------


def test_run_takes_onnxruntimes_arguments(digits):
    session = dqrun.Session(DIGITS)
    everything = session.run(None, {"image": digits})
    assert isinstance(everything, list) and len(everything) == 1
    np.testing.assert_array_equal(session.run(["scores"], {"image": digits})[0], everything[0])
    np.testing.assert_array_equal(session.run("scores", {"image": digits})[0], everything[0])


def test_values_inside_the_graph(digits):
    session = dqrun.Session(DIGITS)
    name = onnx.load(DIGITS).graph.node[0].output[0]
    inner, scores = session.run([name, "scores"], {"image": digits[:2]})
    assert len(inner) == 2 and scores.shape == (2, 10)
    np.testing.assert_array_equal(session(image=digits[:2]), scores)
    with pytest.raises(dqrun.InvalidArgument, match="nosuch"):
        session.run(["nosuch"], {"image": digits})


def test_results_stay_valid(twice):
    session = dqrun.Session(twice)
    results = [session(x=np.full((2, 4), i, np.float32)) for i in range(20)]
    shapes = [session(x=np.full((rows, 4), rows, np.float32)) for rows in range(1, 8)]
    del session
    gc.collect()
    for i, result in enumerate(results):
        assert (result == 2 * i).all()
    for rows, result in enumerate(shapes, 1):
        assert result.shape == (rows, 4) and (result == 2 * rows).all()
    results[0][0, 0] = 5  # writable


def test_out(twice):
    session = dqrun.Session(twice)
    x, y = np.ones((2, 4), np.float32), np.zeros((2, 4), np.float32)
    result, = session.run(None, {"x": x}, out={"y": y})
    assert result is y and (y == 2).all()
    session.run(None, {"x": x}, out={"y": x})  # in place
    assert (x == 2).all()
    assert session(x=y) is not y
    for bad, message in ((np.zeros((4, 2), np.float32).T, "expected a writable, aligned, C-contiguous array"),
                         (np.zeros((2, 4)), "tensor(double)"), (np.zeros((3, 4), np.float32), "[3,4]")):
        with pytest.raises(dqrun.Error) as caught:
            session.run(None, {"x": x}, out={"y": bad})
        assert message in str(caught.value)
    assert (session(x=y) == 4).all()  # still usable


def test_results_in_the_memory_of_inputs_are_not():
    session = dqrun.Session(identity(TensorProto.FLOAT))
    x = np.ones((2, 3), np.float32)
    y = session(x=x)
    x[:] = 7
    assert (y == 1).all()


def test_inputs_are_let_go(twice):
    session = dqrun.Session(twice)

    class Array(np.ndarray):
        pass

    x = np.ones((2, 4), np.float32).view(Array)
    gone = weakref.ref(x)
    session(x=x)
    del x
    gc.collect()
    assert gone() is None


def test_many_threads(digits):
    session = dqrun.Session(DIGITS, threads=1)
    expected = session(image=digits)
    failures = []

    def work(seed):
        order = np.random.default_rng(seed)
        for _ in range(30):
            rows = order.integers(0, len(digits), order.integers(1, 40))
            if not np.array_equal(session(image=digits[rows]), expected[rows]):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_gil_is_released():
    size = 700
    weights = numpy_helper.from_array(np.ones((size, size), np.float32), "w")
    model = one_node("MatMul", [("x", TensorProto.FLOAT, ["N", size])], [("y", TensorProto.FLOAT, ["N", size])], initializers=[weights])
    session = dqrun.Session(model, threads=1)
    x = np.ones((4000, size), np.float32)
    session(x=x)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    watcher = threading.Thread(target=tick)
    watcher.start()
    begin = time.monotonic()
    session(x=x)
    end = time.monotonic()
    done.set()
    watcher.join()
    assert len([t for t in ticks if begin < t < end]) >= 2


def test_close_and_context_manager(twice):
    with dqrun.Session(twice) as session:
        assert (session(x=np.ones((1, 4), np.float32)) == 2).all()
    assert "(closed)" in repr(session)
    session.close()
    with pytest.raises(dqrun.InvalidArgument, match="the session is closed"):
        session(x=np.ones((1, 4), np.float32))


def test_ctrl_c_ends_a_run(tmp_path):
    program = f"""
import numpy as np, onnx, sys, time
sys.path.insert(0, {str(ROOT / "tests" / "python")!r})
from onnx import TensorProto, helper
import dqrun
body = helper.make_graph([helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Sin", ["v"], ["w"])], "body",
    [helper.make_tensor_value_info("i", TensorProto.INT64, ()), helper.make_tensor_value_info("c", TensorProto.BOOL, ()),
     helper.make_tensor_value_info("v", TensorProto.FLOAT, [64])],
    [helper.make_tensor_value_info("d", TensorProto.BOOL, ()), helper.make_tensor_value_info("w", TensorProto.FLOAT, [64])])
graph = helper.make_graph([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)] +
    [helper.make_node("Loop", ["n", "", "y"], ["z"], body=body)], "long",
    [helper.make_tensor_value_info("n", TensorProto.INT64, ()), helper.make_tensor_value_info("x", TensorProto.FLOAT, [64])],
    [helper.make_tensor_value_info("z", TensorProto.FLOAT, [64])])
session = dqrun.Session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
print("running", flush=True)
try:
    session(n=10**9, x=np.ones(64, np.float32))
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(session(n=2, x=np.ones(64, np.float32)).shape)
"""
    # a shell ignores Ctrl-C in what it runs in the background, and Python inherits that
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    assert process.stdout.readline() == "running\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out == "interrupted\n(64,)\n"


# ---- Errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error,builtin", [(dqrun.InvalidArgument, ValueError), (dqrun.BadModel, ValueError), (dqrun.BadInput, ValueError),
                                           (dqrun.Unsupported, NotImplementedError), (dqrun.OutOfMemory, MemoryError),
                                           (dqrun.IOFailed, OSError), (dqrun.InternalError, RuntimeError),
                                           (dqrun.Cancelled, InterruptedError)])
def test_classes_of_errors(error, builtin):
    assert issubclass(error, dqrun.Error) and issubclass(error, builtin) and error.status.startswith("DQ_")


def test_messages(twice, tmp_path):
    session = dqrun.Session(twice)
    ones = np.ones((1, 4), np.float32)
    cases = [
        (dqrun.BadInput, lambda: session(), "input 'x' is missing"),
        (dqrun.BadInput, lambda: session(z=ones), "no input 'z'"),
        (dqrun.BadInput, lambda: session(x=ones.astype(np.float64)), "has type double"),
        (dqrun.BadInput, lambda: session(x=np.ones((1, 5), np.float32)), "[1,5]"),
        (dqrun.BadInput, lambda: session(x=np.array(["2020-01-01"], "datetime64[D]")), "for which ONNX has no type"),
        (dqrun.InvalidArgument, lambda: dqrun.Session(twice, isa="pentium"), "pentium"),
        (dqrun.InvalidArgument, lambda: dqrun.Session(twice, threads=-1), "threads is -1"),
        (dqrun.InvalidArgument, lambda: dqrun.Session(5), "a model is given as int"),
        (dqrun.BadModel, lambda: dqrun.Session(b"no model"), "model"),
        (dqrun.OutOfMemory, lambda: dqrun.Session(twice, limits=dqrun.Limits(work=1))(x=ones), "work"),
        (dqrun.InvalidArgument, lambda: dqrun.Session(twice, limits=dqrun.Limits(nodes=-1)), "limits.nodes is -1"),
    ]
    for error, call, text in cases:
        with pytest.raises(error) as caught:
            call()
        assert text in str(caught.value), caught.value
    with pytest.raises(FileNotFoundError):
        dqrun.Session(tmp_path / "none.onnx")
    assert (session(x=ones) == 2).all()


def test_check_lists_what_cannot_run():
    model = dqrun.Model(one_node("NoSuchOperator", [("x", TensorProto.FLOAT, [1])], [("y", TensorProto.FLOAT, [1])]))
    problem, = model.check()
    assert isinstance(problem, dqrun.Error) and "NoSuchOperator" in str(problem)
    with pytest.raises(type(problem)):
        dqrun.Session(model)
    assert dqrun.Session(DIGITS).check() == []


# ---- Schemas, limits, saving ------------------------------------------------------------------------------------------


def test_saving(tmp_path, digits):
    dqrun.Model(DIGITS).save(tmp_path / "again.onnx")
    np.testing.assert_array_equal(dqrun.Session(tmp_path / "again.onnx")(image=digits), dqrun.Session(DIGITS)(image=digits))
    with pytest.raises(OSError):
        dqrun.Model(DIGITS).save(tmp_path / "no" / "folder.onnx")


def test_packed_weights(tmp_path, digits):
    packed = tmp_path / "digits.packed"
    session = dqrun.Session(DIGITS)
    session.save_packed(packed, {"image": digits})
    again = dqrun.Session(dqrun.Model(DIGITS, packed=packed))
    again = pickle.loads(pickle.dumps(again))
    assert (again(image=digits) == session(image=digits)).all()
    packed.write_bytes(packed.read_bytes()[:-1])
    with pytest.raises(dqrun.BadInput, match="the file was cut off"):
        dqrun.Model(DIGITS, packed=packed)


def test_external_data_of_models_in_memory(tmp_path):
    weights = numpy_helper.from_array(np.arange(400, dtype=np.float32).reshape(4, 100), "w")
    model = one_node("MatMul", [("x", TensorProto.FLOAT, ["N", 4])], [("y", TensorProto.FLOAT, ["N", 100])], initializers=[weights])
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    x = np.ones((1, 4), np.float32)
    expected = dqrun.Session(tmp_path / "m.onnx")(x=x)
    data = (tmp_path / "m.onnx").read_bytes()
    np.testing.assert_array_equal(dqrun.Session(dqrun.Model(data, base_dir=tmp_path))(x=x), expected)
    with pytest.raises(dqrun.BadModel):
        dqrun.Session(data)


# ---- Looking inside -----------------------------------------------------------------------------------------------------


def test_why_and_profile(digits):
    session = dqrun.Session(DIGITS)
    assert any("QLinear" in line or "Conv" in line for line in session.why({"image": digits}))
    profile = session.profile({"image": digits}, runs=3)
    assert len(profile) >= 2 and all(step.seconds >= 0 for step in profile) and profile.runs == 3
    assert abs(sum(profile.by_op().values()) - profile.seconds) < 1e-9
    assert "ms" in repr(profile) and "<table>" in profile._repr_html_()
    with pytest.raises(dqrun.InvalidArgument, match="runs is 0"):
        session.profile({"image": digits}, runs=0)


# ---- Processes ----------------------------------------------------------------------------------------------------------


def test_pickle_by_path_and_by_bytes(tmp_path, digits, twice):
    expected = dqrun.Session(DIGITS)(image=digits)
    again = pickle.loads(pickle.dumps(dqrun.Session(DIGITS, threads=1, isa="c")))
    np.testing.assert_array_equal(again(image=digits), expected)
    assert again.threads == 1 and again.isa == "c"
    assert len(pickle.dumps(dqrun.Session(DIGITS))) < 2000
    again = pickle.loads(pickle.dumps(dqrun.Session(twice)))
    assert (again(x=np.ones((1, 4), np.float32)) == 2).all()
    path = tmp_path / "model.onnx"
    path.write_bytes(twice)
    pickled = pickle.dumps(dqrun.Session(path))
    path.write_bytes(DIGITS.read_bytes())
    with pytest.raises(dqrun.BadModel, match="SHA-256"):
        pickle.loads(pickled)


def run_in_process(session, array, queue):
    queue.put(session(image=array).tobytes())


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes(method, digits):
    session = dqrun.Session(DIGITS, threads=2)
    expected = session(image=digits[:20]).tobytes()
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    processes = [context.Process(target=run_in_process, args=(session, digits[:20], queue)) for _ in range(2)]
    for process in processes:
        process.start()
    assert [queue.get(timeout=120) for _ in processes] == [expected] * 2
    for process in processes:
        process.join(60)
        assert process.exitcode == 0


# ---- The command --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [[sys.executable, "-m", "dqrun"], [str(pathlib.Path(sys.executable).with_name("dqrun"))]])
def test_command(command):
    run = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert dqrun.__version__ in run.stdout
    run = subprocess.run([*command, str(EXAMPLES / "digits_qoperator.onnx"), str(EXAMPLES / "digits_test.npz"), "--labels",
                          str(EXAMPLES / "digits_labels.npz")], capture_output=True, text=True, check=True)
    assert "accuracy: 97.6 %" in run.stdout
    run = subprocess.run([*command, "no.onnx"], capture_output=True, text=True, check=False)
    assert run.returncode == 3 and "no.onnx" in run.stderr


def test_command_starts_without_numpy():
    code = "import sys, dqrun.__main__; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- Memory -------------------------------------------------------------------------------------------------------------


def resident():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


def test_memory_stays_flat(digits):
    session = dqrun.Session(DIGITS, threads=1)
    for _ in range(200):
        session(image=digits)
    before = resident()
    for i in range(2000):
        session(image=digits[: 1 + i % 40])
    for _ in range(20):
        dqrun.Session(DIGITS, threads=1)(image=digits)
    gc.collect()
    assert resident() - before < 16 << 20
