# SPDX-License-Identifier: Apache-2.0
"""dqrun.compat.onnxruntime against onnxruntime itself: the same calls give the same answers."""

import numpy as np
import onnxruntime
import pytest

import dqrun
import dqrun.compat.onnxruntime as compat
from conftest import EXAMPLES, add_models

MODELS = [EXAMPLES / f"digits_{form}.onnx" for form in ("qdq", "qoperator", "dynamic")]


@pytest.fixture(params=MODELS, ids=lambda path: path.stem)
def sessions(request):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.x64quantprecision", "1")  # products of uint8 and int8 that do not saturate
    ours = compat.SessionOptions()
    ours.intra_op_num_threads = 1
    return (onnxruntime.InferenceSession(str(request.param), options, providers=["CPUExecutionProvider"]),
            compat.InferenceSession(str(request.param), ours, providers=["CPUExecutionProvider"]))


def test_descriptions(sessions):
    theirs, ours = sessions
    for name in ("get_inputs", "get_outputs"):
        assert [(arg.name, arg.type, arg.shape) for arg in getattr(ours, name)()] == \
            [(arg.name, arg.type, arg.shape) for arg in getattr(theirs, name)()]
    assert ours.get_providers() == theirs.get_providers() == ["CPUExecutionProvider"]
    a, b = ours.get_modelmeta(), theirs.get_modelmeta()
    assert (a.producer_name, a.graph_name, a.domain, a.description, a.version, a.custom_metadata_map) == \
        (b.producer_name, b.graph_name, b.domain, b.description, b.version, b.custom_metadata_map)


def test_a_hundred_calls(sessions, digits):
    theirs, ours = sessions
    random = np.random.default_rng(5)
    for _ in range(100):
        images = digits[random.integers(0, len(digits), random.integers(1, 9))]
        expected, = theirs.run(None, {"image": images})
        got, = ours.run(["scores"], {"image": images})
        assert got.dtype == expected.dtype and got.shape == expected.shape
        np.testing.assert_array_equal(got, expected)


def test_ort_values(twice):
    session = compat.InferenceSession(twice)
    value = compat.OrtValue.ortvalue_from_numpy(np.ones((2, 4), np.float32))
    result, = session.run_with_ort_values(None, {"x": value})
    assert (result.numpy() == 2).all() and result.shape() == [2, 4] and result.data_type() == "tensor(float)" and result.is_tensor()


def test_optimization_level(twice):
    options = compat.SessionOptions()
    options.graph_optimization_level = compat.GraphOptimizationLevel.ORT_DISABLE_ALL
    assert (compat.InferenceSession(twice, options).run(None, {"x": np.ones((1, 4), np.float32)})[0] == 2).all()


def test_refusals(twice):
    with pytest.raises(dqrun.Unsupported, match="CUDAExecutionProvider"):
        compat.InferenceSession(twice, providers=["CUDAExecutionProvider"])
    with pytest.raises(ValueError):
        compat.InferenceSession(twice).run(None, {})


def test_names():
    for name in compat.__all__:
        assert hasattr(onnxruntime, name), name
    assert add_models() is not None and compat.get_device() == "CPU"
