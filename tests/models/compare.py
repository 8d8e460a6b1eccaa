#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare dqrun with ONNX Runtime on whole quantized models, as make_models.py makes them.

    compare.py DQRUN OUT [--model NAME]… [--form NAME]… [--floor SHARE]

DQRUN is the program; the shared library is looked for beside it in the build. Every engine runs in a process of its
own, with one thread: dqrun fused and with no_fuse, ONNX Runtime without optimizations, with its defaults, and with
session.x64quantprecision=1. A row a model and form:

    differences   largest (mean) absolute difference of an output from ONNX Runtime's without optimizations, over the
                  largest absolute output there
    top           inputs whose largest output is at the same place, for dqrun fused and as written, and for ONNX
                  Runtime's two other modes; where several are equally large (codes), one of them is at the same place
    float         steps left in float by dqrun's planner, between a DequantizeLinear and what reads it
    memory        peak resident megabytes that loading and running added
    time          median milliseconds of a run after the first

The exit code is 1 when a model does not run, when dqrun is further away than both of ONNX Runtime's modes by more
than --floor, or when it has another top where those modes agree.
"""

import argparse
import collections
import ctypes
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ENGINES = ["dqrun", "written", "ort_off", "ort", "ort_exact"]
RUNS = 5
MINILM = "minilm"


# ---- Engines, in a process of their own ---------------------------------------------------------------------------

class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 1024)]




class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_uint), ("isa", ctypes.c_char_p), ("no_fuse", ctypes.c_bool),
                ("honor_accuracy_level", ctypes.c_bool), ("trace", ctypes.c_void_p), ("why", ctypes.c_void_p), ("arg", ctypes.c_void_p),
                ("pool", ctypes.c_void_p)]


class Dqrun:
    """A session of dqrun through its C API."""

    def __init__(self, library, model, fuse):
        self.api = ctypes.CDLL(str(library))
        self.api.dq_tensor_data.restype = self.api.dq_tensor_dims.restype = ctypes.c_void_p
        self.api.dq_tensor_rank.restype = self.api.dq_tensor_size.restype = ctypes.c_size_t
        self.api.dq_dtype_name.restype = ctypes.c_char_p
        self.error = Error()
        self.model, self.session = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("dq_model_load", str(model).encode(), None, ctypes.byref(self.model))
        options = Options(size=ctypes.sizeof(Options), threads=1, no_fuse=not fuse)
        self.call("dq_session_create", self.model, ctypes.byref(options), ctypes.byref(self.session))
        self.kept = {}

    def call(self, name, *arguments):
        if getattr(self.api, name)(*arguments, ctypes.byref(self.error)) != 0:
            raise RuntimeError(self.error.message.decode())

    def run(self, feeds, outputs):
        for name, array in feeds.items():
            array = np.ascontiguousarray(array)
            dims = (ctypes.c_int64 * array.ndim)(*array.shape)
            tensor = ctypes.c_void_p()
            dtype = self.api.dq_dtype_from_name(array.dtype.name.replace("float32", "float").encode()) or \
                self.api.dq_dtype_from_name(array.dtype.name.encode())
            self.call("dq_tensor_wrap", dtype, ctypes.c_size_t(array.ndim), dims, ctypes.c_void_p(array.ctypes.data),
                      ctypes.c_size_t(array.nbytes), ctypes.byref(tensor))
            self.kept[name] = (array, tensor)
            self.call("dq_session_set_input", self.session, name.encode(), tensor)
        self.call("dq_session_run", self.session)
        return [self.output(name) for name in outputs]

    def output(self, name):
        tensor = ctypes.c_void_p()
        self.call("dq_session_get_output", self.session, name.encode(), ctypes.byref(tensor))
        rank, size = self.api.dq_tensor_rank(tensor), self.api.dq_tensor_size(tensor)
        dims = (ctypes.c_int64 * rank).from_address(self.api.dq_tensor_dims(tensor)) if rank else []
        data = ctypes.string_at(self.api.dq_tensor_data(tensor), size)
        dtype = self.api.dq_dtype_name(self.api.dq_tensor_dtype(tensor)).decode()
        return np.frombuffer(data, {"float": "float32"}.get(dtype, dtype)).reshape(tuple(dims))


class OnnxRuntime:
    def __init__(self, model, engine):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        if engine == "ort_off":
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        if engine == "ort_exact":
            options.add_session_config_entry("session.x64quantprecision", "1")
        self.session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])

    def run(self, feeds, outputs):
        return self.session.run(outputs, feeds)


def resident(key):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key)) / 1024


def work(engine, library, model, out):
    import onnx
    outputs = [o.name for o in onnx.load(model).graph.output]
    if engine.startswith("ort"):
        import onnxruntime  # noqa: F401  the library's own size does not count
    inputs = [dict(np.load(p)) for p in sorted(model.parent.glob("input_*.npz"))]
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the peak counts from here
    before = resident("VmRSS")
    session = OnnxRuntime(model, engine) if engine.startswith("ort") else Dqrun(library, model, engine == "dqrun")
    results = [session.run(feeds, outputs) for feeds in inputs]
    peak = resident("VmHWM") - before
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        session.run(inputs[0], outputs)
        times.append(1000 * (time.perf_counter() - begin))
    np.savez(out, **{f"{i}/{j}": y for i, ys in enumerate(results) for j, y in enumerate(ys)})
    print(json.dumps({"peak": peak, "time": statistics.median(times)}))


# ---- Comparison ---------------------------------------------------------------------------------------------------

def run_engine(engine, options, model, folder):
    out = pathlib.Path(folder) / f"{engine}.npz"
    command = [sys.executable, __file__, str(options.dqrun), str(model), "--work", engine, "--to", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["no word"])[-1]
    with np.load(out) as file:
        return dict(file), json.loads(done.stdout.strip().splitlines()[-1])


def difference(got, want):
    largest = mean = 0.0
    for key, w in want.items():
        apart = np.abs(got[key].astype(np.float64) - w) / max(np.abs(w).max(), 1e-30)
        largest, mean = max(largest, apart.max()), max(mean, apart.mean())
    return largest, mean


def tops(arrays):
    """By output the places of its largest element: a quantized softmax often gives several the same code."""
    return {k: set(np.flatnonzero(a == a.max())) for k, a in arrays.items()}


def order_of_pairs(arrays):
    """Pairs of sentences by their similarity: by place the pair there."""
    e = np.concatenate([arrays[k].reshape(1, -1) for k in sorted(arrays)])
    pairs = np.triu_indices(len(e), 1)
    return {place: {pair} for place, pair in enumerate(np.argsort(-(e @ e.T)[pairs], kind="stable"))}


def agreements(model, results):
    """How many of how many agree with ONNX Runtime without optimizations, and whether it counts against dqrun."""
    answer = order_of_pairs if model == MINILM else tops
    want = answer(results["ort_off"])
    same = {e: {k for k, v in answer(results[e]).items() if v & want[k]} for e in results}
    bad = (same["ort"] & same["ort_exact"]) - same["dqrun"]
    words = " ".join(str(len(same[e])) for e in ("dqrun", "written", "ort", "ort_exact"))
    return f"{words} of {len(want)}", bool(bad)


def left_in_float(options, model):
    """Operators between DequantizeLinear and their readers that still run, by the verbose steps of a run."""
    feed = sorted(model.parent.glob("input_*.npz"))[0]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([str(options.dqrun.resolve()), str(model), str(feed), "-v", "-o", f"{folder}/o.npz"],
                              capture_output=True, text=True, timeout=600, check=False)
    counts = collections.Counter()
    for line in done.stderr.splitlines():
        words = line.split()
        if len(words) >= 3 and words[1] == "ms" and "-" in words[2]:
            counts[words[2].rsplit("-", 1)[0].removeprefix("com.microsoft.")] += 1
    shown = [f"{n} {op}" for op, n in counts.most_common()
             if not op.startswith(("QLinear", "QGemm", "Table", "MatMulInteger", "ConvInteger"))]
    return ", ".join(shown[:6])


def row(options, path):
    model, form = path.parent.name, path.stem
    with tempfile.TemporaryDirectory() as folder:
        results = {e: run_engine(e, options, path, folder) for e in ENGINES}
    for engine in ("dqrun", "written"):
        if isinstance(results[engine], str):
            return [model, form, f"{engine}: {results[engine]}"], True
    ran = {e: r for e, r in results.items() if not isinstance(r, str)}
    if len(ran) < len(ENGINES):
        refused = next(r for r in results.values() if isinstance(r, str))
        return [model, form, f"ONNX Runtime: {refused[:150]}"], False
    arrays = {e: r[0] for e, r in ran.items()}
    apart = {e: difference(arrays[e], arrays["ort_off"]) for e in ENGINES if e != "ort_off"}
    top, bad = agreements(model, arrays)
    allowed = max(apart["ort"][0], apart["ort_exact"][0]) + options.floor
    cells = [f"{apart[e][0]:.1e} ({apart[e][1]:.0e})" for e in apart]
    peak = [f"{ran[e][1]['peak']:.0f}" for e in ("dqrun", "ort", "ort_exact")]
    times = [f"{ran[e][1]['time']:.1f}" for e in ("dqrun", "written", "ort", "ort_exact")]
    bad = bad or apart["dqrun"][0] > allowed
    return [model, form, *cells, top, " ".join(peak), " ".join(times), left_in_float(options, path)], bad


HEAD = ["model", "form", "dqrun", "as written", "ORT", "ORT exact", "same top", "MB dqrun/ORT/exact",
        "ms dqrun/written/ORT/exact", "steps not in integers"]


def main():
    parser = argparse.ArgumentParser(description="Compare dqrun with ONNX Runtime on whole quantized models.")
    parser.add_argument("dqrun", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--model", action="append")
    parser.add_argument("--form", action="append")
    parser.add_argument("--floor", type=float, default=1e-4, help="how much further away never counts")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--to", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        library = options.dqrun.resolve().parent.parent / "src/libdqrun.so"
        work(options.work, library, options.out.resolve(), options.to)
        return 0
    worse = 0
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    for path in sorted(options.out.glob("*/*.onnx")):
        if (options.model and path.parent.name not in options.model) or (options.form and path.stem not in options.form):
            continue
        cells, bad = row(options, path)
        worse += bad
        print("| " + " | ".join(cells) + (" ✗ |" if bad else " |"), flush=True)
    print(f"{worse} rows are worse than ONNX Runtime's modes or do not run")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
