#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds quantizing and dequantizing of 16 M elements against plain loops over the same bytes.

    streams.py DQRUN TEST_KERNELS [--rounds N] [--seconds S]

TEST_KERNELS is the program tests/kernels/test_kernels: its loops only read, or read and write one vector for four, with the better
of two kinds of stores, on the memory that dqrun's own tensors have. DynamicQuantizeLinear, which must know the range before it
quantizes, is held against a loop that reads and, behind it, one that reads and writes. Both programs run in turn; the least times
count. A ratio is the loop's time by dqrun's."""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from cases import dequantize, dynamic, quantize
from compare import save_case

COUNT = 1 << 24


def loop_times(program):
    """Milliseconds of reading 4 bytes an element, of that while writing one, of reading one while writing 4."""
    text = subprocess.run([program, "--limits"], capture_output=True, text=True, check=True).stdout
    reads = float(re.search(r"^memory: reads ([\d.]+)", text, re.M)[1])
    join, spread = (float(g) for g in re.search(r"one written ([\d.]+), one read and four written ([\d.]+)", text).groups())
    return [1e-6 * COUNT * size / rate for size, rate in ((4, reads), (5, join), (5, spread))]


def operator_time(program, model, inputs, seconds):
    done = subprocess.run([program, "bench", str(model), str(inputs), "--json", "--threads", "1", "--seconds", str(seconds)],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["min_ms"]


def main():
    p = argparse.ArgumentParser(description="Hold quantizing against plain loops over the same bytes.")
    p.add_argument("dqrun")
    p.add_argument("test_kernels")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.3)
    options = p.parse_args()
    makers = {"QuantizeLinear": quantize, "DequantizeLinear": dequantize, "DynamicQuantizeLinear": dynamic}
    loops, ours = [], {name: [] for name in makers}
    with tempfile.TemporaryDirectory(prefix="dqrun-bench-") as folder:
        saved = {}
        for name, make in makers.items():
            place = Path(folder, name)
            place.mkdir()
            saved[name] = save_case(make(COUNT)(), place)
        for _ in range(options.rounds):
            loops.append(loop_times(options.test_kernels))
            for name, files in saved.items():
                ours[name].append(operator_time(options.dqrun, *files, options.seconds))
    read, join, spread = (min(times) for times in zip(*loops))
    print(f"{'16 M elements, ms':24} {'dqrun':>8} {'loop':>8} {'ratio':>6}")
    for name, loop in zip(makers, (join, spread, read + join)):
        print(f"{name:24} {min(ours[name]):8.3f} {loop:8.3f} {loop / min(ours[name]):6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
