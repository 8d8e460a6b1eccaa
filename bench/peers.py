# SPDX-License-Identifier: Apache-2.0
"""The engines that compare.py holds dqrun against. Each is imported when it is first asked for."""

import functools
import importlib
import importlib.metadata
import statistics
import time

import numpy as np

PEERS = {"ort": ("onnxruntime", "ONNX Runtime"), "ort-exact": ("onnxruntime", "ORT exact"), "openvino": ("openvino", "OpenVINO")}


@functools.cache
def title(peer):
    """Name and version."""
    package, name = PEERS[peer]
    return f"{name} {importlib.metadata.version(package).split('-')[0]}"


def onnxruntime_runner(model, arrays, threads, exact):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if threads > 1 else "0")
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for i in session.get_inputs():
        binding.bind_cpu_input(i.name, arrays[i.name])
    for output in session.get_outputs():
        binding.bind_output(output.name)
    return lambda: session.run_with_iobinding(binding)


def openvino_runner(model, arrays, threads):
    import openvino
    compiled = openvino.Core().compile_model(str(model), "CPU", {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        request.set_tensor(port, openvino.Tensor(arrays[port.any_name]))
    return request.infer


def runner(peer, model, arrays, threads):
    """A session, as a function that runs it once."""
    if peer == "openvino":
        return openvino_runner(model, arrays, threads)
    return onnxruntime_runner(model, arrays, threads, peer == "ort-exact")


def arrays_of(inputs):
    with np.load(inputs) as file:
        return dict(file)


def time_load(peer, model, inputs, threads):
    """What making a session and running it once takes, in ms; the engine itself is loaded before."""
    importlib.import_module(PEERS[peer][0])
    arrays, start = arrays_of(inputs), time.perf_counter()
    runner(peer, model, arrays, threads)()
    return (time.perf_counter() - start) * 1e3


def time_run(peer, model, inputs, threads, seconds):
    """Median of a session's runs after the second, in ms."""
    run = runner(peer, model, arrays_of(inputs), threads)
    run()
    run()
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)
