#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rates of matrix products over a grid of M, K and N, held against the machine's limits and ONNX Runtime.

    gemm_grid.py LIBDQRUN TEST_KERNELS [--only NAME,…] [--isa LEVEL | --as LEVEL] [--before LIBDQRUN] [--save TSV] [--plot SVG]
    gemm_grid.py --read TSV [--plot SVG]

LIBDQRUN is libdqrun.so of a release. TEST_KERNELS is the program tests/kernels/test_kernels, which measures the limits. Both engines
have one thread and run in turn in this process, point by point. gemm-grid.md explains the columns and how to read the plot.
With --before, another build of dqrun takes the place of ONNX Runtime."""

import argparse
import ctypes
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from datetime import date
from pathlib import Path

import numpy as np

import as_level
import processors
from gemm_grid_models import PRODUCTS
from gemm_grid_plot import draw

SIZES_M = (1, 2, 4, 8, 9, 16, 17, 64, 256, 1024, 4096, 8192)
SIZES_N = (1, 8, 16, 17, 64, 256, 384, 1024, 4096, 8192)
SIZES_K = (1, 8, 17, 64, 256, 1024, 4096, 8192)
MOST_MACS, FEWEST_MACS = 1 << 32, 1 << 12
CLIFF = 0.9        # of the rate of a smaller neighbour
GOAL = 0.85        # of the limit
SMALL = 1 << 20    # multiply-adds of a product whose time is mostly that of the call

Point = namedtuple("Point", "product m k n us ort_us limit_us bound")


def rate(p):
    return 1e-3 * p.m * p.k * p.n / p.us


def share(p):
    return p.limit_us / p.us


def grid():
    """M and N take all sizes where K is one of a few, and few sizes at the other K."""
    for k in SIZES_K:
        for m in SIZES_M:
            for n in SIZES_N:
                dense = k in (64, 1024) or {m, n} <= {1, 16, 17, 256, 1024, 8192} or (k == 4096 and m <= 64 and n >= 1024)
                if dense and FEWEST_MACS <= m * k * n <= MOST_MACS and (n > 1 or m > 1):
                    yield m, k, n


# ---- Limits ----


class Limits:
    def __init__(self, program, isa):
        text = subprocess.run([program, "--limits"], capture_output=True, text=True, check=True).stdout
        self.reads = [(int(b), float(r)) for b, r in re.findall(r"^reads of (\d+) bytes: ([\d.]+)", text, re.M)]
        levels = re.findall(r"^products of (\w+): bytes ([\d.]+), words ([\d.]+), floats ([\d.]+)", text, re.M)
        names = [name for name, *_ in levels]
        row = levels[names.index(isa) if isa in names else -1]
        self.level, self.macs = row[0], dict(zip(("bytes", "words", "floats"), map(float, row[1:])))

    def read_rate(self, size):
        """GB/s of reading `size` bytes again and again: between the measured sizes, by the logarithm of the size."""
        sizes, rates = [math.log(b) for b, _ in self.reads], [r for _, r in self.reads]
        return float(np.interp(math.log(max(size, 1)), sizes, rates))

    def of(self, product, m, k, n):
        """Microseconds that the register tile and the memory need at least, and which of the two it is."""
        compute = 1e-3 * m * k * n / product.limit(self.macs, m)
        size = product.size(m, k, n)
        memory = 1e-3 * size / self.read_rate(size)
        return (compute, "compute") if compute >= memory else (memory, "memory")


# ---- Engines ----


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_uint), ("isa", ctypes.c_char_p), ("no_fuse", ctypes.c_bool),
                ("honor_accuracy_level", ctypes.c_bool), ("trace", ctypes.c_void_p), ("why", ctypes.c_void_p), ("arg", ctypes.c_void_p),
                ("pool", ctypes.c_void_p)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 1024)]


TYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5}  # dq_dtype


class Dqrun:
    """A session of dqrun over a file with one input."""

    def __init__(self, library, path, array, isa, level):
        self.lib, self.error, self.array = library, Error(), array
        self.model, self.session, self.tensor = (ctypes.c_void_p() for _ in range(3))
        self.must(library.dq_model_load(str(path).encode(), None, ctypes.byref(self.model), ctypes.byref(self.error)))
        options = Options(size=ctypes.sizeof(Options), threads=1, isa=isa.encode() if isa else None, honor_accuracy_level=level)
        self.must(library.dq_session_create(self.model, ctypes.byref(options), ctypes.byref(self.session), ctypes.byref(self.error)))
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.must(library.dq_tensor_wrap(TYPES[array.dtype.name], ctypes.c_size_t(array.ndim), dims, ctypes.c_void_p(array.ctypes.data),
                                         ctypes.c_size_t(array.nbytes), ctypes.byref(self.tensor), ctypes.byref(self.error)))
        self.must(library.dq_session_set_input(self.session, b"x", self.tensor, ctypes.byref(self.error)))

    def must(self, status):
        if status:
            raise RuntimeError(self.error.message.decode())

    def run(self):
        self.must(self.lib.dq_session_run(self.session, ctypes.byref(self.error)))

    def close(self):
        self.lib.dq_session_free(self.session)
        self.lib.dq_tensor_free(self.tensor)
        self.lib.dq_model_free(self.model)


class Ort:
    def __init__(self, path, array):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.binding.bind_cpu_input("x", array)
        self.binding.bind_output("y")

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def close(self):
        del self.binding, self.session


def timed(run, calls):
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return 1e6 * (time.perf_counter() - start) / calls


def least_times(engines, seconds):
    """The least time of each engine in microseconds, of rounds in which each runs for about half a millisecond, or once."""
    calls, least = [], []
    for engine in engines:
        engine.run()
        once = min(timed(engine.run, 1) for _ in range(2))
        calls.append(max(1, int(500 / once)))
        least.append(once)
    end = time.perf_counter() + seconds * len(engines)
    rounds = 0
    while rounds < 3 or time.perf_counter() < end:
        for i, engine in enumerate(engines):
            least[i] = min(least[i], timed(engine.run, calls[i]))
        rounds += 1
    return least


def measure(library, product, name, size, options, folder):
    path = folder / "model.onnx"
    path.write_bytes(product.model(*size))
    array = product.input(*size)
    engines = [Dqrun(library, path, array, options.isa, product.level)]
    try:
        if options.before:
            engines.append(Dqrun(ctypes.CDLL(str(options.before)), path, array, options.isa, product.level))
        elif options.peer:
            engines.append(Ort(path, array))
        times = least_times(engines, options.seconds)
    finally:
        for engine in engines:
            engine.close()
    return times[0], times[1] if len(times) > 1 else math.nan


def run_grid(options):
    library, limits, points = ctypes.CDLL(str(options.library)), Limits(options.test_kernels, options.isa), []
    with tempfile.TemporaryDirectory(prefix="dqrun-bench-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        for name in options.only:
            product = PRODUCTS[name]
            call_us, _ = measure(library, product, name, product.least, options, Path(folder))
            for m, k, n in options.sizes or grid():
                if not product.takes(m, k, n):
                    continue
                us, ort_us = measure(library, product, name, (m, k, n), options, Path(folder))
                limit_us, bound = limits.of(product, m, k, n)
                points.append(Point(name, m, k, n, us, ort_us, min(call_us + limit_us, us) if m * k * n < SMALL else limit_us, bound))
            print(f"{name}: {sum(p.product == name for p in points)} points, a call takes {call_us:.1f} us", file=sys.stderr, flush=True)
    return points, limits


# ---- What is short ----


def neighbours(p, by_size):
    """Points that are one step smaller in one dimension, and equal in the others."""
    for i in range(3):
        size = [p.m, p.k, p.n]
        smaller = [s[i] for s in by_size if s[i] < size[i] and s[:i] + s[i + 1:] == tuple(size[:i] + size[i + 1:])]
        if smaller:
            size[i] = max(smaller)
            yield by_size[tuple(size)]


def cliffs(points):
    """Points whose rate is below CLIFF of a smaller neighbour's, although the limits let them be as fast: {point: neighbour}."""
    found = {}
    for name in dict.fromkeys(p.product for p in points):
        by_size = {(p.m, p.k, p.n): p for p in points if p.product == name}
        for p in by_size.values():
            best = max(neighbours(p, by_size), key=rate, default=None)
            if best and rate(p) < CLIFF * rate(best) and share(p) < CLIFF * share(best) and share(p) < GOAL:
                found[p] = best
    return found


def geomean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


REGIONS = {"M = 1": lambda p: p.m == 1, "M 2 to 17": lambda p: 2 <= p.m <= 17, "M 64 up": lambda p: p.m >= 64,
           "K ≤ 17": lambda p: p.k <= 17, "N ≤ 17": lambda p: p.n <= 17}


def report(points, worst):
    fallen = cliffs(points)
    large = [p for p in points if p.m * p.k * p.n >= SMALL]
    print(f"{'':16} {'points':>6} {'large':>6} {'of limit':>9} {'least':>6} {'≥ .85':>6} {'cliffs':>6} {'to ORT':>7} {'least':>6}")
    for name in dict.fromkeys(p.product for p in points):
        for region, holds in {"": lambda p: True, **REGIONS}.items():
            mine = [p for p in large if p.product == name and holds(p)]
            every = [p for p in points if p.product == name and holds(p)]
            ratios = [p.ort_us / p.us for p in every if p.ort_us == p.ort_us]
            if mine:
                print(f"{region and '  ' + region or name:16} {len(every):6} {len(mine):6} {geomean(map(share, mine)):9.2f} {min(map(share, mine)):6.2f} "
                      f"{sum(share(p) >= GOAL for p in mine) / len(mine):6.0%} {sum(p in fallen for p in every):6} "
                      + (f"{geomean(ratios):7.2f} {min(ratios):6.2f}" if ratios else ""))
        rows = sorted((p for p in large if p.product == name), key=share)[:worst]
        rows += sorted((p for p in fallen if p.product == name and p not in rows), key=lambda p: rate(p) / rate(fallen[p]))[:worst]
        print(f"\n  {'M×K×N':16} {'us':>9} {'GMAC/s':>7} {'of limit':>8} {'bound':7} {'to ORT':>6} of the neighbour")
        for p in rows:
            best = fallen.get(p)
            print(f"  {f'{p.m}×{p.k}×{p.n}':16} {p.us:9.1f} {rate(p):7.1f} {share(p):8.2f} {p.bound:7} {p.ort_us / p.us:6.2f}"
                  + (f" {rate(p) / rate(best):.2f}, {best.m}×{best.k}×{best.n}" if best else ""))
        print()


def save(points, path, heading):
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"# {heading}\n" + "\t".join(Point._fields) + "\n")
        for p in points:
            f.write("\t".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in p) + "\n")


def load(path):
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines[2:]]
    return [Point(r[0], *map(int, r[1:4]), *map(float, r[4:7]), r[7]) for r in rows], lines[0][2:]


def names_of(text):
    names = text.split(",")
    for name in names:
        if name not in PRODUCTS:
            raise argparse.ArgumentTypeError(f"no product {name}, expected {', '.join(PRODUCTS)}")
    return names


def main():
    p = argparse.ArgumentParser(description="Rates of matrix products over a grid of sizes.")
    p.add_argument("library", nargs="?", type=Path)
    p.add_argument("test_kernels", nargs="?", type=Path)
    p.add_argument("--only", type=names_of, default=list(PRODUCTS), metavar="NAME,…", help=", ".join(PRODUCTS))
    p.add_argument("--sizes", type=lambda text: [tuple(map(int, s.split("x"))) for s in text.split(",")], metavar="MxKxN,…", help="instead of the grid")
    p.add_argument("--isa")
    p.add_argument("--as", dest="level", choices=as_level.LEVELS, help="hide from both engines what the processor has above a level")
    p.add_argument("--before", type=Path, metavar="LIBDQRUN")
    p.add_argument("--no-peer", dest="peer", action="store_false")
    p.add_argument("--seconds", type=float, default=0.03, help="of each engine at each point")
    p.add_argument("--worst", type=int, default=12, help="points that are listed")
    p.add_argument("--read", type=Path, metavar="TSV", help="report an earlier run")
    p.add_argument("--save", type=Path, metavar="TSV")
    p.add_argument("--plot", type=Path, metavar="SVG")
    options = p.parse_args()
    if options.level and as_level.LEVEL not in os.environ:
        return as_level.run(options.level, ["onnxruntime"])
    options.isa = options.isa or options.level
    if options.read:
        points, heading = load(options.read)
    elif not options.test_kernels:
        p.error("LIBDQRUN and TEST_KERNELS, or --read TSV, are needed")
    else:
        points, limits = run_grid(options)
        heading = f"{processors.processor(level=None)}, {limits.level}, one thread, {date.today()}"
    print(heading)
    report(points, options.worst)
    if options.save:
        save(points, options.save, heading)
    if options.plot:
        options.plot.write_text(draw(points, cliffs(points), share, heading), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
