#!/usr/bin/env python3
"""Times dqrun against ONNX Runtime on single operators and on models, alternating in one run.

usage: compare.py DQRUN [--threads N] [--rounds N] [--seconds S] [--only TEXT] [--isa LEVEL] [--history] [MODEL:INPUTS.npz …]

Each line is the ratio ONNX Runtime time / dqrun time of medians: above 1, dqrun is faster. ONNX Runtime runs in its
default mode. With --history the ratios are added to history.tsv beside this file, with the processor's name.
Needs the Python packages onnx, onnxruntime and numpy."""

import argparse
import datetime
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
import onnx
from onnx import helper, numpy_helper

from cases import CASES


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def save_case(case, folder):
    """A model of one node whose operands with values are initializers, and a file with its inputs."""
    domain, op, attributes, operands, result = case
    inputs = {f"x{i}": array for i, (array, constant) in enumerate(operands) if array is not None and not constant}
    constants = [numpy_helper.from_array(array, f"x{i}") for i, (array, constant) in enumerate(operands)
                 if array is not None and constant]
    names = [f"x{i}" if array is not None else "" for i, (array, _) in enumerate(operands)]
    outputs = [f"y{i}" for i in range(len(result))]
    node = helper.make_node(op, names, outputs, domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "case",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()],
        [helper.make_tensor_value_info(o, t, None) for o, t in zip(outputs, result)], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), folder / "case.onnx")
    np.savez(folder / "case.npz", **inputs)
    return folder / "case.onnx", folder / "case.npz"


def time_peer(model, inputs, threads, seconds):
    """Median of an ONNX Runtime session's runs, in ms."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if threads > 1 else "0")
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    with np.load(inputs) as arrays:
        values = {i.name: arrays[i.name] for i in session.get_inputs()}
    binding = session.io_binding()
    for name, array in values.items():
        binding.bind_cpu_input(name, array)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    session.run_with_iobinding(binding)
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        session.run_with_iobinding(binding)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def time_dqrun(program, model, inputs, arguments):
    done = subprocess.run([program, "bench", str(model), str(inputs), "--json", *arguments],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def compare(name, model, inputs, options):
    arguments = ["--threads", str(options.threads), "--seconds", str(options.seconds)]
    if options.isa:
        arguments += ["--isa", options.isa]
    ours, peers = [], []
    for _ in range(options.rounds):
        got = time_dqrun(options.dqrun, model, inputs, arguments)
        ours.append(got["median_ms"])
        peers.append(time_peer(model, inputs, options.threads, options.seconds))
    mine, peer = min(ours), min(peers)
    print(f"{name:44} {mine:10.3f} {peer:10.3f} {peer / mine:7.2f}", flush=True)
    return {"case": name, "isa": got["isa"], "ratio": peer / mine}


def add_history(rows, options):
    path = Path(__file__).with_name("history.tsv")
    new = not path.exists()
    today = datetime.date.today().isoformat()
    with open(path, "a", encoding="utf-8") as f:
        if new:
            f.write("date\tprocessor\tthreads\tisa\tonnxruntime\tcase\tratio\n")
        for r in rows:
            f.write(f"{today}\t{processor()}\t{options.threads}\t{r['isa']}\t{onnxruntime.__version__}\t"
                    f"{r['case']}\t{r['ratio']:.2f}\n")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dqrun")
    p.add_argument("models", nargs="*")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--only", default="")
    p.add_argument("--isa")
    p.add_argument("--history", action="store_true")
    options = p.parse_intermixed_args()
    rows, failed = [], 0
    print(f"{processor()}, {options.threads} thread(s), ONNX Runtime {onnxruntime.__version__}")
    print(f"{'':44} {'dqrun ms':>10} {'peer ms':>10} {'ratio':>7}")
    with tempfile.TemporaryDirectory(prefix="dqrun-bench-") as folder:
        for name, make in CASES.items():
            if options.models or options.only not in name:
                continue
            try:
                rows.append(compare(name, *save_case(make(), Path(folder)), options))
            except Exception as why:  # a case that one of the two refuses is reported, the others still run
                failed += 1
                print(f"{name:44} {type(why).__name__}: {str(why).splitlines()[0][:90]}")
        for pair in options.models:
            model, _, inputs = pair.rpartition(":")
            rows.append(compare(Path(model).name, model, inputs, options))
    if rows:
        print(f"{'geometric mean':44} {'':10} {'':10} {statistics.geometric_mean(r['ratio'] for r in rows):7.2f}")
    if options.history:
        add_history(rows, options)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
