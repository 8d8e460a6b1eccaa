#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run costs whose input shapes a session has not seen, beside one of the same shapes, in dqrun and ONNX Runtime.

    lengths.py LIBDQRUN MODEL DIM=FROM:TO[:STEP] [DIM=SIZE …] [--rounds N] [--isa LEVEL]

DIM is a symbolic dimension of the model, or INPUT.AXIS where it has no name; several that vary do so together, others are 1. Each length is
run twice in each engine, with one thread: the first run has shapes that are new (a session of dqrun keeps plans of four), the second the same
ones. Figures are medians in milliseconds; the last column is that of the differences."""

import argparse
import statistics
import sys
import time

import numpy as np
import onnxruntime as ort

import library

TYPES = {"tensor(float)": np.float32, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(int32)": np.int32,
         "tensor(int64)": np.int64, "tensor(bool)": np.bool_, "tensor(float16)": np.float16}


class Dqrun(library.Session):
    def prepare(self, feed):
        for name, array in feed.items():
            self.set(name, array)


class Ort:
    def __init__(self, model):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def prepare(self, feed):
        self.feed = feed

    def run(self):
        self.session.run(None, self.feed)


def make_feed(inputs, sizes):
    random, feed = np.random.default_rng(0), {}
    for i in inputs:
        dims = [d if isinstance(d, int) and d > 0 else sizes.get(d, sizes.get(f"{i.name}.{k}", 1)) for k, d in enumerate(i.shape)]
        kind = TYPES[i.type]
        values = random.random(dims) if np.issubdtype(kind, np.floating) else np.ones(dims)
        feed[i.name] = np.ascontiguousarray(values, kind)
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
