#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare dqrun's operators of domain com.microsoft with ONNX Runtime and with formulas written in numpy.

    compare.py DQRUN [--module NAME] [--operator NAME] [--cases N] [--seed N] [-v]

Random one-node models, the same for the same seed. Each runs on dqrun with the best kernels of this CPU and with
portable C (integers must have the same bits), and is held against ONNX Runtime where it has a kernel that does not
refuse the case, and against numpy where the case has a reference. A case that nothing can be held against has failed.
A line an operator counts cases, elements and elements that differ beyond what the case allows. The last line is
"N passed, N failed, N skipped".
"""

import argparse
import importlib
import itertools
import pathlib
import sys
import tempfile
import zlib

import numpy as np

import cases as harness

MODULES = [
    "attention",
    "fused",
    "group_query_attention",
    "hybrid",
    "multi_head_attention",
    "normalization",
    "products",
    "qlinear",
    "recurrent",
    "weight_only",
]
TOGETHER = 100  # cases in one model


class Side:
    """Counts of a comparison with one of the peers."""

    def __init__(self, peer):
        self.peer = peer
        self.cases = self.elements = self.differing = self.refused = self.near = 0

    def compare(self, case, got, want):
        """The sentence of a difference, or None."""
        self.cases += 1
        for i, (g, w) in enumerate(zip(got, want)):
            if g is None or w is None:
                continue
            quantum = case.quantum if self.peer == "ort" else 0
            mask = case.close(g, w, quantum)
            if mask is None:
                w = np.asarray(w)
                return f"output {i} is {g.dtype}{list(g.shape)}, expected {w.dtype}{list(w.shape)}"
            self.elements += mask.size
            bad = np.argwhere(~mask)
            self.differing += len(bad)
            self.near += int((mask & (g != w)).sum()) if quantum else 0
            if len(bad):
                at = tuple(bad[0])
                return f"output {i} has {len(bad)} of {mask.size} wrong, first {at}: {g[at]}, expected {np.asarray(w)[at]}"
        return None


def describe(case):
    words = ["-" if x is None else f"{x.dtype}{list(x.shape)}" for x in case.inputs]
    return f"{case.op}({', '.join(words)}) {case.attrs or ''}"


def same_bits(first, second):
    return all(
        a is None or harness.is_float(a.dtype) or np.array_equal(a, b) for a, b in zip(first, second, strict=True)
    )


def judge(case, best, portable, sides, verbose):
    """Problems of a case."""
    for got in (best, portable):
        if isinstance(got, str):
            return [f"dqrun: {got}"]
    problems = [] if same_bits(best, portable) else ["portable C gives other integers than the best kernels"]
    compared = case.reference is not None
    if compared:
        problems.append(sides["numpy"].compare(case, best, case.reference))
    if case.ort:
        want = harness.run_ort(case)
        if isinstance(want, str):
            sides["ort"].refused += 1
            if verbose:
                print(f"refused by ONNX Runtime: {describe(case)}: {want}")
        else:
            compared = True
            problems.append(sides["ort"].compare(case, best, want))
    if not compared:
        problems.append("there is nothing to compare with")
    return [p for p in problems if p]


def run_operator(name, make, count, options, runners):
    rng = np.random.default_rng([options.seed, zlib.crc32(name.encode())])
    todo = list(itertools.islice(make(rng), options.cases or count))
    sides = {peer: Side(peer) for peer in ("ort", "numpy")}
    passed = failed = 0
    for begin in range(0, len(todo), TOGETHER):
        chunk = todo[begin : begin + TOGETHER]
        for number, (case, best, portable) in enumerate(zip(chunk, *(r.run(chunk) for r in runners)), begin):
            problems = judge(case, best, portable, sides, options.verbose)
            passed, failed = passed + (not problems), failed + bool(problems)
            if problems and (options.verbose or failed <= 3):
                print(f"FAIL {name} {number}: {describe(case)}: {'; '.join(problems)}")
    near = f" ({sides['ort'].near} more by a quantum)" if sides["ort"].near else ""
    print(
        f"{name:32} {passed + failed:5} cases | ONNX Runtime: {sides['ort'].cases:5} cases {sides['ort'].elements:8}"
        f" elements {sides['ort'].differing:6} differ{near}, {sides['ort'].refused:4} refused |"
        f" numpy: {sides['numpy'].cases:5} cases {sides['numpy'].elements:8} elements"
        f" {sides['numpy'].differing:6} differ",
        flush=True,
    )
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description="Compare the operators of com.microsoft with ONNX Runtime and numpy.")
    parser.add_argument("dqrun", type=pathlib.Path)
    parser.add_argument("--module", action="append", help="only this module; may be given several times")
    parser.add_argument("--operator", action="append", help="only this operator; may be given several times")
    parser.add_argument("--cases", type=int, help="cases an operator, instead of what its module says")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-v", "--verbose", action="store_true", help="print every failure")
    options = parser.parse_args()
    total_passed = total_failed = 0
    with tempfile.TemporaryDirectory() as folder:
        program = options.dqrun.resolve()
        runners = [harness.Dqrun(program, folder), harness.Dqrun(program, folder, "c")]
        for module in options.module or MODULES:
            for name, (make, count) in importlib.import_module(module).OPERATORS.items():
                if options.operator and name not in options.operator:
                    continue
                passed, failed = run_operator(name, make, count, options, runners)
                total_passed, total_failed = total_passed + passed, total_failed + failed
    print(f"{total_passed} passed, {total_failed} failed, 0 skipped")
    return 1 if total_failed or not total_passed else 0


if __name__ == "__main__":
    sys.exit(main())
