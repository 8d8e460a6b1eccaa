#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold fused 8-bit operators against the real-number formula, computed with rationals.

    exact.py DQRUN [--cases N] [--seed N] [-v]

Add, Mul, AveragePool, GlobalAveragePool and ReduceMean between DequantizeLinear and QuantizeLinear, with any scales, with
decimal fractions, and with scales whose quotients make ties (powers of two, small ratios, odd zero points). All pairs of
quantized values are tried for Add and Mul. Results must be equal at every instruction set level that the processor has.
The last line is "N passed, N failed, N skipped".
"""

import argparse
import fractions
import pathlib
import sys
import tempfile

import numpy as np

import check
from patterns import S8, U8, Case

F = fractions.Fraction


def nearest(numerator, denominator):
    """The quotients of arrays of Python integers, to nearest, ties to even."""
    quotient = numerator // denominator
    twice = 2 * (numerator - quotient * denominator)
    return quotient + ((twice > denominator) | ((twice == denominator) & (quotient % 2 == 1)))


def quantized(multiples, by, zero, dtype):
    """Integers times a rational, rounded once, and the zero point, saturated."""
    info = np.iinfo(dtype)
    values = nearest(multiples.astype(object) * by.numerator, by.denominator) + int(zero)
    return np.clip(values, info.min, info.max).astype(dtype)


def scales(case):
    kind = case.pick("any", "powers of two", "ratios", "decimals", "equal")
    case.note += f" {kind}"
    if kind == "powers of two":
        return [np.float32(2.0 ** -case.size(3, 6)) for _ in range(3)]
    if kind == "ratios":
        return [np.float32(case.size(1, 99) / 64) for _ in range(3)]
    if kind == "decimals":  # many sums are near a tie, where floats do not tell on which side
        return [np.float32(case.size(20, 99) / 1000) for _ in range(3)]
    if kind == "equal":
        return [case.scale()] * 3
    return [case.scale() for _ in range(3)]


def zero_of(case, dtype):
    return np.array(case.rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1), dtype)


def binary(case, op):
    dtype = case.code_type()
    sa, sb, sy = scales(case)
    if op == "Mul" and "decimals" not in case.note:
        sy = np.float32(sa * sb * case.pick(1, 64, 98, 150.3))
    za, zb, zy = (zero_of(case, dtype) for _ in range(3))
    every = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype)
    flat = case.chance(0.5)  # as rows of one b each, or with both operands whole
    a = np.repeat(every[None], 256, 0)
    b = every[:, None] if flat else np.repeat(every[:, None], 256, 1)
    inputs = [case.dequantize("a", case.fed("a_codes", a), sa, za), case.dequantize("b", case.fed("b_codes", b), sb, zb)]
    if case.chance(0.5):
        inputs.reverse()
    y = case.quantize("y", case.node(op, inputs, "op"), sy, dtype, zy)
    left, right = a.astype(int) - int(za), b.astype(int) - int(zb)
    if op == "Mul":
        return y, quantized(left * right, F(float(sa)) * F(float(sb)) / F(float(sy)), zy, dtype)
    ra, rb = F(float(sa)) / F(float(sy)), F(float(sb)) / F(float(sy))
    common = ra.denominator * rb.denominator
    sums = left.astype(object) * (ra.numerator * rb.denominator) + right.astype(object) * (rb.numerator * ra.denominator)
    return y, quantized(sums, F(1, common), zy, dtype)


def pool(case, op):
    dtype = case.code_type()
    sx, sy, _ = scales(case)
    if case.chance(0.3):
        sy = np.float32(sx / 2)
    zx, zy = zero_of(case, dtype), zero_of(case, dtype)
    shape = (1, 3, case.size(2, 14), case.size(2, 14))
    codes = case.codes(dtype, shape)
    x = case.dequantize("x", case.fed("x_codes", codes), sx, zx)
    values = codes.astype(int) - int(zx)
    if op == "AveragePool":
        kernel, strides = [case.size(1, 2), case.size(1, 2)], [case.size(1, 2)] * 2
        include = case.size(0, 1)
        pads = [k // 2 for k in kernel]
        y = case.node(op, [x], "op", kernel_shape=kernel, strides=strides, pads=pads * 2, count_include_pad=include)
        padded = np.pad(values, [(0, 0), (0, 0), (pads[0],) * 2, (pads[1],) * 2])
        inside = np.pad(np.ones_like(values), [(0, 0), (0, 0), (pads[0],) * 2, (pads[1],) * 2])
        sums, counts = (np.lib.stride_tricks.sliding_window_view(t, kernel, (2, 3)).sum((4, 5))[:, :, ::strides[0], ::strides[1]]
                        for t in (padded, inside))
        counts = np.full_like(counts, np.prod(kernel)) if include else counts
    else:
        axes = {"GlobalAveragePool": (2, 3), "ReduceMean": case.pick((2, 3), (1,), (3,))}[op]
        y = (case.node(op, [x], "op") if op == "GlobalAveragePool" else
             case.node(op, [x, case.constant("axes", np.array(axes, np.int64))], "op"))
        sums = values.sum(axes, keepdims=True)
        counts = np.full_like(sums, np.prod([shape[a] for a in axes]))
    y = case.quantize("y", y, sy, dtype, zy)
    expected = np.empty(sums.shape, dtype)
    for count in np.unique(counts):
        at = counts == count
        expected[at] = quantized(sums[at], F(float(sx)) / (F(float(sy)) * int(count)), zy, dtype)
    return y, expected


PATTERNS = {op: lambda case, op=op: binary(case, op) for op in ("Add", "Mul")} | {
    op: lambda case, op=op: pool(case, op) for op in ("AveragePool", "GlobalAveragePool", "ReduceMean")}


def run_pattern(op, options, runner):
    rng = np.random.default_rng([options.seed, len(op)])
    cases = []
    for number in range(options.cases):
        case = Case(f"c{number}_", 21, rng)
        cases.append((case, *PATTERNS[op](case)))
    (runner.folder / "model.onnx").write_bytes(check.model_of([c for c, _, _ in cases], 21).SerializeToString())
    np.savez(runner.folder / "in.npz", **{n: x for case, _, _ in cases for n, x in case.feeds.items()})
    failed = 0
    levels = check.levels(options.dqrun)
    for level in levels:
        arrays, why = runner.run(["--isa", level], [y for _, y, _ in cases])
        if arrays is None:
            print(f"FAIL {op}, {level}: {why}")
            return 0, len(cases)
        for case, y, expected in cases:
            bad = arrays[y] != expected
            failed += bool(bad.any())
            if bad.any() and (options.verbose or failed <= 3):
                at = tuple(np.argwhere(bad)[0])
                print(f"FAIL {op} {case.prefix}, {level} ({case.note}): {bad.sum()} of {bad.size} are wrong, first "
                      f"{at}: {arrays[y][at]}, expected {expected[at]}")
            fused = any(f"'{case.prefix}op'" in line and "works on the quantized codes" in line
                        for line in why.splitlines())
            if not fused:
                failed += 1
                print(f"FAIL {op} {case.prefix}: not fused")
    return len(levels) * len(cases) - failed, failed


def main():
    parser = argparse.ArgumentParser(description="Hold fused 8-bit operators against the real-number formula.")
    parser.add_argument("dqrun", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=12, help="of each operator")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-v", "--verbose", action="store_true", help="print every failure")
    options = parser.parse_args()
    counts = np.zeros(2, int)
    with tempfile.TemporaryDirectory() as folder:
        runner = check.Runner(options.dqrun, folder)
        for op in PATTERNS:
            counts += run_pattern(op, options, runner)
    print(f"{counts[0]} passed, {counts[1]} failed, 0 skipped")
    return 1 if counts[1] or not counts[0] else 0


if __name__ == "__main__":
    sys.exit(main())
