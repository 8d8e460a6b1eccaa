#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run costs whose input shapes a session has not seen, beside one of the same shapes, in dqrun and ONNX Runtime.

    lengths.py LIBDQRUN MODEL DIM=FROM:TO[:STEP] [DIM=SIZE …] [--rounds N] [--isa LEVEL]

DIM is a symbolic dimension of the model, or INPUT.AXIS where it has no name; several that vary do so together, others are 1. Each length is
run twice in each engine, with one thread: the first run has shapes that are new (a session of dqrun keeps plans of four), the second the same
ones. Figures are medians in milliseconds; the last column is that of the differences."""

import argparse
import ctypes as c
import statistics
import sys
import time

import numpy as np
import onnxruntime as ort

TYPES = {"tensor(float)": (np.float32, 1), "tensor(uint8)": (np.uint8, 2), "tensor(int8)": (np.int8, 3), "tensor(int32)": (np.int32, 6),
         "tensor(int64)": (np.int64, 7), "tensor(bool)": (np.bool_, 9), "tensor(float16)": (np.float16, 10)}


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("threads", c.c_uint), ("isa", c.c_char_p), ("no_fuse", c.c_bool), ("honor_accuracy_level", c.c_bool),
                ("trace", c.c_void_p), ("why", c.c_void_p), ("arg", c.c_void_p), ("pool", c.c_void_p)]


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("message", c.c_char * 1024)]


class Dqrun:
    def __init__(self, path, model, isa):
        self.lib, self.error, self.tensors = c.CDLL(path), Error(), []
        handle, self.session = c.c_void_p(), c.c_void_p()
        self.must(self.lib.dq_model_load(model.encode(), None, c.byref(handle), c.byref(self.error)))
        options = Options(size=c.sizeof(Options), threads=1, isa=isa.encode() if isa else None)
        self.must(self.lib.dq_session_create(handle, c.byref(options), c.byref(self.session), c.byref(self.error)))

    def must(self, status):
        if status:
            sys.exit(self.error.message.decode())

    def prepare(self, feed):
        old, self.tensors = self.tensors, []
        for name, (array, dtype) in feed.items():
            t, dims = c.c_void_p(), (c.c_int64 * max(array.ndim, 1))(*array.shape)
            self.must(self.lib.dq_tensor_wrap(dtype, c.c_size_t(array.ndim), dims, c.c_void_p(array.ctypes.data), c.c_size_t(array.nbytes),
                                              c.byref(t), c.byref(self.error)))
            self.must(self.lib.dq_session_set_input(self.session, name.encode(), t, c.byref(self.error)))
            self.tensors.append((t, array))
        for t, _ in old:
            self.lib.dq_tensor_free(t)

    def run(self):
        self.must(self.lib.dq_session_run(self.session, c.byref(self.error)))


class Ort:
    def __init__(self, model):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def prepare(self, feed):
        self.feed = {name: array for name, (array, _) in feed.items()}

    def run(self):
        self.session.run(None, self.feed)


def make_feed(inputs, sizes):
    random, feed = np.random.default_rng(0), {}
    for i in inputs:
        dims = [d if isinstance(d, int) and d > 0 else sizes.get(d, sizes.get(f"{i.name}.{k}", 1)) for k, d in enumerate(i.shape)]
        kind, dtype = TYPES[i.type]
        values = random.random(dims) if np.issubdtype(kind, np.floating) else np.ones(dims)
        feed[i.name] = (np.ascontiguousarray(values, kind), dtype)
    return feed


def span(text):
    first, *rest = (int(x) for x in text.split(":"))
    return range(first, rest[0] + 1, *rest[1:]) if rest else [first]


def timed(engine):
    start = time.perf_counter()
    engine.run()
    return 1e3 * (time.perf_counter() - start)


def main():
    p = argparse.ArgumentParser(description="Measure runs of shapes that are new.")
    p.add_argument("library")
    p.add_argument("model")
    p.add_argument("dims", nargs="*", metavar="DIM=FROM:TO[:STEP]")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--isa")
    o = p.parse_args()
    spans = {name: span(text) for name, text in (d.split("=") for d in o.dims)}
    count = min((len(s) for s in spans.values() if len(s) > 1), default=1)
    engines = {"dqrun": Dqrun(o.library, o.model, o.isa), "ONNX Runtime": Ort(o.model)}
    inputs, rows = engines["ONNX Runtime"].session.get_inputs(), {name: [] for name in engines}
    for k in [k for _ in range(o.rounds) for k in range(count)]:
        feed = make_feed(inputs, {name: s[k if len(s) > 1 else 0] for name, s in spans.items()})
        for name, engine in engines.items():
            engine.prepare(feed)
            first, again = timed(engine), timed(engine)
            rows[name].append((first, again, first - again))
    print(f"{'':14} {'new':>9} {'again':>9} {'more':>9}")
    for name, times in rows.items():
        print(f"{name:14} " + " ".join(f"{statistics.median(t):9.3f}" for t in zip(*times[min(4, len(times) - 1):])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
