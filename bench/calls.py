#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the time of a call from Python with onnxruntime's: bench/calls.py [MODEL [ROWS]]

Both sessions have one thread and the same input of zeros, of ROWS rows (default 1). They take turns of 500 calls for some seconds; printed
are the medians of each and their ratio. Needs pip install dqrun onnxruntime."""

import statistics
import sys
import time

import numpy as np
import onnxruntime

import dqrun

TURNS, CALLS = 60, 500


def main(model="examples/digits_qdq.onnx", rows="1"):
    ours = dqrun.Session(model, threads=1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    theirs = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {info.name: np.zeros((int(rows), *info.shape[1:]), info.dtype) for info in ours.inputs}
    times = {"dqrun": [], "onnxruntime": []}
    for _ in range(TURNS):
        for name, session in (("dqrun", ours), ("onnxruntime", theirs)):
            begin = time.perf_counter()
            for _ in range(CALLS):
                session.run(None, feeds)
            times[name].append((time.perf_counter() - begin) / CALLS)
    dqrun_us, ort_us = (1e6 * statistics.median(of) for of in times.values())
    print(f"dqrun {dqrun_us:.1f} us, onnxruntime {onnxruntime.__version__} {ort_us:.1f} us a call, ratio {dqrun_us / ort_us:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
