#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The engines that compare.py measures beside dqrun, and one of them as a program.

    peers.py PEER MODEL INPUTS.npz [--threads N] [--seconds S] [--load] [--outputs FILE.npz]

Prints {"ms": …}: the median time of a session's runs after the second, or with --load the time to make a session and run it once. With
--outputs it runs once and writes the outputs, in their order. compare.py starts it anew for each measurement: a peer that crashes or hangs
then loses its cell of the table, and the other measurements go on. "reference" is the peer that errors are measured against."""

import argparse
import functools
import importlib
import importlib.metadata
import json
import os
import signal
import statistics
import subprocess
import sys
import time

import numpy as np

import as_level

PEERS = {"ort": ("onnxruntime", "ONNX Runtime"), "ort-exact": ("onnxruntime", "ORT exact"), "openvino": ("openvino", "OpenVINO"),
         "openvino-default": ("openvino", "OpenVINO default"), "openvino-float": ("openvino", "OpenVINO float")}
REFERENCE = "reference"  # ONNX Runtime running the graph as written, without optimizations


class NoResult(Exception):
    """A peer gave no result; the text says how: refused, crashed or timed out."""


@functools.cache
def title(peer):
    """Name and version."""
    package, name = PEERS[peer]
    return f"{name} {importlib.metadata.version(package).split('-')[0]}"


# ---- As a program ---------------------------------------------------------------------------------------------------


def onnxruntime_runner(peer, model, arrays, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if threads > 1 else "0")
    if peer == "ort-exact":
        options.add_session_config_entry("session.x64quantprecision", "1")
    if peer == REFERENCE:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for i in session.get_inputs():
        binding.bind_cpu_input(i.name, arrays[i.name])
    for output in session.get_outputs():
        binding.bind_output(output.name)
    return lambda: session.run_with_iobinding(binding), binding.copy_outputs_to_cpu


def openvino_runner(peer, model, arrays, threads):
    import openvino
    options = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
    if peer != "openvino-default":
        options["INFERENCE_PRECISION_HINT"] = "f32"
    if peer == "openvino-float":
        options["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
    compiled = openvino.Core().compile_model(str(model), "CPU", options)
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        request.set_tensor(port, openvino.Tensor(arrays[port.any_name]))
    return request.infer, lambda: [request.get_tensor(port).data for port in compiled.outputs]


def runner(peer, model, arrays, threads):
    """A session as two functions: one runs it, the other gives the outputs of the last run."""
    make = openvino_runner if peer.startswith("openvino") else onnxruntime_runner
    return make(peer, model, arrays, threads)


def time_load(options, arrays):
    """Milliseconds of making a session and running it once; the engine's library is loaded before."""
    importlib.import_module(PEERS[options.peer][0])
    start = time.perf_counter()
    runner(options.peer, options.model, arrays, options.threads)[0]()
    return (time.perf_counter() - start) * 1e3


def time_run(options, arrays):
    """Median milliseconds of a session's runs after the second."""
    run, _ = runner(options.peer, options.model, arrays, options.threads)
    run()
    run()
    times, end = [], time.perf_counter() + options.seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def save_outputs(options, arrays):
    run, outputs = runner(options.peer, options.model, arrays, options.threads)
    run()
    np.savez(options.outputs, *outputs())


def main():
    p = argparse.ArgumentParser(description="Time one engine on one model.")
    p.add_argument("peer", choices=[*PEERS, REFERENCE])
    p.add_argument("model")
    p.add_argument("inputs")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--load", action="store_true")
    p.add_argument("--outputs")
    options = p.parse_args()
    with np.load(options.inputs) as file:
        arrays = dict(file)
    if options.outputs:
        save_outputs(options, arrays)
    else:
        print(json.dumps({"ms": (time_load if options.load else time_run)(options, arrays)}))
    return 0


# ---- Started by compare.py ------------------------------------------------------------------------------------------


def run_process(words, timeout, environment=None):
    """Standard output of a process, or NoResult."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False, env=environment)
    except subprocess.TimeoutExpired:
        raise NoResult("timed out") from None
    if done.returncode < 0:
        raise NoResult("crashed", signal.Signals(-done.returncode).name)
    if done.returncode:
        raise NoResult("refused", done.stderr)
    return done.stdout


def command(peer, model, inputs, *arguments):
    return [sys.executable, __file__, peer, str(model), str(inputs), *map(str, arguments)]


def measure(peer, model, inputs, options):
    """Milliseconds of a peer, in a process of its own; options are those of compare.py."""
    arguments = ["--threads", options.threads, "--seconds", options.seconds, *(["--load"] if options.load else [])]
    printed = run_process(command(peer, model, inputs, *arguments), options.timeout)
    return json.loads(printed.splitlines()[-1])["ms"]  # an engine may print something of its own before


def outputs(peer, model, inputs, file, options):
    """The outputs of a peer, in their order; `file` is where its process writes them. The reference sees the processor as it is: where
    8-bit products have no instruction of their own, it saturates."""
    environment = as_level.real_environment() if peer == REFERENCE else dict(os.environ)
    run_process(command(peer, model, inputs, "--threads", options.threads, "--outputs", file), options.timeout, environment)
    return load_outputs(file)


def load_outputs(file):
    with np.load(file) as got:
        return list(got.values())


if __name__ == "__main__":
    sys.exit(main())
