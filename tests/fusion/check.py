#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold fused models against the same models run as they are written.

    check.py DQRUN [--cases N] [--seed N] [--pattern NAME]… [-v]

Random small quantized graphs, the same for the same seed, many in one model. Each pattern says what --why must tell
about it, and how far the fused result may be from the result with --no-fuse: nothing where docs/rewrites.md calls a
pattern exact, else one quantum (floats: the rounding of a sum). The fused result must also have the same bits with one
thread, with two, and with portable C. Some patterns are tried once more with schemas that lack a type (narrowed.py),
and many in half floats (half.py).
The last line is "N passed, N failed, N skipped".
"""

import argparse
import functools
import pathlib
import subprocess
import sys
import tempfile
import zlib

import numpy as np
from onnx import helper

import patterns
import patterns_float
from chains import CHAINS
from flow import FLOW
from half import EXACT as HALF_EXACT
from half import HALF, halve
from layout import LAYOUT
from narrowed import NARROWED, expect_narrowed, write_narrowed
from patterns import Case
from wide import OPSETS as WIDE_OPSETS
from wide import WIDE

OPSETS = {"softmax": (11, 13, 21),  # its axis means something else before 13
          "blocks_in_codes": (21, 23),
          "wide_chain": WIDE_OPSETS,
          **dict.fromkeys(HALF_EXACT, (19, 23)),
          **dict.fromkeys(WIDE, WIDE_OPSETS)}

TIMEOUT = 300
PATTERNS = patterns.PATTERNS | patterns_float.PATTERNS | CHAINS | FLOW | WIDE | LAYOUT | HALF_EXACT
RUNS = {"fused": ["--threads", "2"], "one thread": ["--threads", "1"],
        "portable C": ["--threads", "2", "--isa", "c"], "as written": ["--threads", "2", "--no-fuse"]}


def model_of(cases, opset):
    parts = {"nodes": [], "inputs": [], "outputs": [], "constants": []}
    for case in cases:
        for key, items in parts.items():
            items.extend(getattr(case, key))
    graph = helper.make_graph(parts["nodes"], "patterns", parts["inputs"], parts["outputs"], parts["constants"])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=11 if opset >= 23 else 10 if opset >= 21 else 9)


def levels(program):
    """Instruction set levels that this processor has."""
    lister = program.resolve().parent / "dqrun-conformance"
    return subprocess.run([str(lister), "--list-isa"], capture_output=True, text=True, check=True).stdout.split()


class Runner:
    def __init__(self, program, folder):
        self.program, self.folder, self.options = program.resolve(), pathlib.Path(folder).resolve(), []

    def run(self, options, requested):
        """Arrays by name, and what was said."""
        command = [str(self.program), "model.onnx", "in.npz", "-o", "out.npz", "--why", *self.options, *options]
        for name in requested:
            command += ["--value", name]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        if done.returncode != 0:
            return None, f"exit code {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
        with np.load(self.folder / "out.npz") as file:
            return dict(file), done.stderr

    def run_all(self, cases, opset):
        """By run its arrays and text, all cases in one model."""
        (self.folder / "model.onnx").write_bytes(model_of(cases, opset).SerializeToString())
        np.savez(self.folder / "in.npz", **{n: x for case in cases for n, x in case.feeds.items()})
        requested = [name for case in cases for name in case.requested()]
        return {name: self.run(options, requested) for name, options in RUNS.items()}


def bits(array):
    return array.view(f"u{array.dtype.itemsize}")


def compare(case, name, fused, written):
    """The sentence of a difference, or None."""
    if fused.shape != written.shape or fused.dtype != written.dtype:
        return f"{name} is {fused.dtype}{list(fused.shape)} fused, {written.dtype}{list(written.shape)} as written"
    if fused.dtype.kind in "fV" and case.rtol == case.atol == 0:
        bad = (bits(fused) != bits(written)) & ~((fused != fused) & (written != written))
    elif fused.dtype.kind == "f":
        bad = ~np.isclose(fused, written, rtol=case.rtol, atol=case.atol, equal_nan=True)
    else:
        bad = np.abs(fused.astype(np.int64) - written.astype(np.int64)) > case.quanta
    if not bad.any():
        return None
    at = tuple(np.argwhere(bad)[0])
    return f"{name} has {bad.sum()} of {bad.size} apart, first {at}: {fused[at]} fused, {written[at]} as written"


def judge(case, results):
    """Problems of a case."""
    problems = []
    fused, why = results["fused"]
    for name in case.requested():
        problems.append(compare(case, name, fused[name], results["as written"][0][name]))
        for other in results.keys() - {"fused", "as written"}:
            if fused[name].tobytes() != results[other][0][name].tobytes():
                problems.append(f"{name} has other bits with {other}")
    for node, sentence, told in case.expected:
        found = any(f"'{case.prefix}{node}'" in line and sentence in line for line in why.splitlines())
        if found != told:
            problems.append(f"--why {'does not tell' if told else 'tells'} \"{sentence}\" of {node}")
    return [p for p in problems if p]


def run_pattern(name, make, opset, options, runner, prepare=lambda case: None):
    rng = np.random.default_rng([options.seed, opset, zlib.crc32(name.encode())])
    cases = []
    for number in range(options.cases):
        case = Case(f"c{number}_", opset, rng)
        make(case)
        prepare(case)
        cases.append(case)
    results = runner.run_all(cases, opset)
    refused = [f"{run}: {text}" for run, (arrays, text) in results.items() if arrays is None]
    if not refused and name != "dynamic_conv_spread" and "planned as written" in results["fused"][1]:
        refused = ["its fused nodes cannot be planned"]
    if refused:
        print(f"FAIL {name}, opset {opset}: {refused[0]}")
        return 0, len(cases)
    failed = 0
    for case in cases:
        problems = judge(case, results)
        failed += bool(problems)
        if problems and (options.verbose or failed <= 2):
            print(f"FAIL {name}, opset {opset}, {case.prefix} ({case.note}): {'; '.join(problems)}")
    return len(cases) - failed, failed


def run_narrowed(names, options, runner):
    """The patterns of these names with narrowed schemas."""
    counts = [0, 0]
    for name in names:
        folder = runner.folder / "narrowed"
        write_narrowed(NARROWED[name], folder)
        runner.options = ["--schema-dir", str(folder)]
        passed, failed = run_pattern(name, PATTERNS[name], 19, options, runner, expect_narrowed)
        counts = [counts[0] + passed, counts[1] + failed]
    runner.options = []
    return counts


def run_half(names, options, runner):
    """The patterns of these names in half floats."""
    counts = [0, 0]
    for name, dtype, opset, quanta in HALF:
        make, prepare = PATTERNS[name], functools.partial(halve, dtype=dtype, quanta=quanta)
        if name in names:
            passed, failed = run_pattern(name, make, opset, options, runner, prepare)
            counts = [counts[0] + passed, counts[1] + failed]
    return counts


def main():
    parser = argparse.ArgumentParser(description="Hold fused models against the same models as they are written.")
    parser.add_argument("dqrun", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=24, help="of each pattern and opset")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pattern", action="append", choices=PATTERNS)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the last model and its inputs")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every failure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(options.dqrun, options.keep or folder)
        total_passed, total_failed = run_narrowed([n for n in options.pattern or NARROWED if n in NARROWED], options, runner)
        passed, failed = run_half(options.pattern or PATTERNS, options, runner)
        total_passed, total_failed = total_passed + passed, total_failed + failed
        for name in options.pattern or PATTERNS:
            for opset in OPSETS.get(name, (13, 19, 23)):
                passed, failed = run_pattern(name, PATTERNS[name], opset, options, runner)
                total_passed, total_failed = total_passed + passed, total_failed + failed
    print(f"{total_passed} passed, {total_failed} failed, 0 skipped")
    return 1 if total_failed or not total_passed else 0


if __name__ == "__main__":
    sys.exit(main())
