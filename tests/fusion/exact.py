#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold fused 8-bit operators against the real-number formula, computed with rationals.

    exact.py DQRUN [--cases N] [--seed N] [-v]

Add, Mul, AveragePool, GlobalAveragePool and ReduceMean between DequantizeLinear and QuantizeLinear, with any scales, with
decimal fractions, and with scales whose quotients make ties (powers of two, small ratios, odd zero points). All pairs of
quantized values are tried for Add and Mul. Conv, ConvTranspose, Gemm and MatMul have a bias of floats in any relation to
the scale of the products: random, such that a sum is at a tie or beside it, tiny, large. Results must be equal at every instruction set level that the processor has.
The last line is "N passed, N failed, N skipped".
"""

import argparse
import fractions
import pathlib
import sys
import tempfile
import zlib

import numpy as np

import check
from exact_sums import FORMS, conv_sums
from patterns import MOVES, PRODUCT, S8, U8, Case

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


def float_bias(case, sums, products, sy, zy):
    """A bias for each channel, the last axis of these sums; products are the scales of the channels' sums."""
    kind = case.pick("any", "any", "ties", "ties", "tiny", "large", "some zeros", "beyond int32")
    case.note += f" bias {kind}"
    channels, bias = sums.shape[-1], np.empty(sums.shape[-1], np.float32)
    for j in range(channels):
        column = sums[..., j].reshape(-1)
        total = F(int(column[case.size(0, column.size - 1)]))
        tie = (F(2 * case.size(0, 254) + 1, 2) - 127 - (int(zy) if case.chance(0.5) else 0)) * F(float(sy))
        near = np.float32(float(tie - total * products[j]))
        bias[j] = {"any": case.rng.normal(0, 1) * float(products[j]) * float(column.std() + 1),
                   "ties": np.nextafter(near, np.float32(case.pick(-np.inf, np.inf))) if case.chance(0.5) else near,
                   "tiny": case.rng.normal(0, 1) * 2.0 ** case.size(-148, -40),
                   "large": case.rng.normal(0, 1) * float(sy) * 400,
                   "some zeros": case.rng.normal(0, 1) * float(sy) * 20 if case.chance(0.5) else 0,
                   "beyond int32": float(products[j]) * 2.0**31 * case.rng.normal(0, 1)}[kind]
    return bias


def product(case, op, form=None):
    """Of constant weights, per channel or not, with a float bias."""
    dtype, w_dtype = case.code_type(), case.code_type()
    zx, zw = zero_of(case, dtype), (np.array(0, S8) if w_dtype == S8 else np.array(case.size(100, 150), U8))
    if op in ("Conv", "ConvTranspose"):
        channels, filters, groups, kernel, stride, extent = form
        shape = (1, channels, *extent)
        w_shape = (channels, filters, *kernel) if op == "ConvTranspose" else (filters, channels // groups, *kernel)
        attributes = {"group": groups, "strides": [stride, stride]}
    else:
        rows, inner, filters = case.size(1, 40), case.size(1, 90), case.size(1, 40)
        shape, w_shape, attributes = (rows, inner), (inner, filters), {}
        if op == "Gemm":
            attributes = {"alpha": case.pick(1.0, 1.0, 0.7)}
    per_channel = case.chance(0.5)
    sx, sw = case.scale(), np.array([case.scale(0.002, 0.02) for _ in range(filters if per_channel else 1)], np.float32)
    if case.chance(0.4):
        case.note += " powers of two"
        sx, sw = np.float32(2.0 ** -case.size(2, 8)), np.exp2(np.floor(np.log2(sw))).astype(np.float32)
    codes, weights = case.codes(dtype, shape), case.codes(w_dtype, w_shape)
    x, w = codes.astype(np.int64) - int(zx), weights.astype(np.int64) - int(zw)
    if op == "Conv":
        sums = np.moveaxis(conv_sums(x, w, groups, stride), 1, -1)
    elif op == "ConvTranspose": # each element of x spreads the kernel, `stride` apart
        sums = np.zeros((1, filters, *[(e - 1) * stride + k for e, k in zip(extent, kernel)]), np.int64)
        for i, j in np.ndindex(*kernel):
            ends = (i + (extent[0] - 1) * stride + 1, j + (extent[1] - 1) * stride + 1)
            sums[:, :, i:ends[0]:stride, j:ends[1]:stride] += np.einsum("nchw,co->nohw", x, w[:, :, i, j])
        sums = np.moveaxis(sums, 1, -1)
    else:
        sums = x @ w
    alpha = F(float(np.float32(attributes.get("alpha", 1.0))))
    products = [alpha * F(float(sx)) * F(float(sw[j % sw.size])) for j in range(filters)]
    wide = op != "ConvTranspose" and case.chance(0.1) # a result finer than the products
    sy = np.float32(float(max(products)) * (0.7 if wide else max(1.1, sums.std() / 40)))
    if "powers" in case.note and not wide:
        sy = np.float32(2.0 ** np.ceil(np.log2(sy)))
    zy = zero_of(case, dtype)
    bias = float_bias(case, sums, products, sy, zy)
    if op == "ConvTranspose" and "beyond" in case.note:
        bias = (bias * np.float32(2.0**-8)).astype(np.float32)
    left = case.dequantize("x", case.fed("x_codes", codes), sx, zx)
    right = case.dequantize("w", case.constant("w_codes", weights), sw if per_channel else sw.reshape(()),
                            np.full(filters, zw) if per_channel else zw,
                            **({"axis": 0 if op == "Conv" else 1} if per_channel else {}))
    constant = case.constant("bias", bias)
    if op == "MatMul":
        y = case.node("Add", [case.node("MatMul", [left, right], "op"), constant], "add")
    else:
        y = case.node(op, [left, right, constant], "op", **attributes)
    y = case.quantize("y", y, sy, dtype, zy)
    expected = np.empty(sums.shape, dtype)
    for j in range(filters):
        scale, shift = products[j] / F(float(sy)), F(float(bias[j])) / F(float(sy))
        common = scale.denominator * shift.denominator
        multiples = sums[..., j].astype(object) * (scale.numerator * shift.denominator) + shift.numerator * scale.denominator
        expected[..., j] = quantized(multiples, F(1, common), zy, dtype)
    return y, np.moveaxis(expected, -1, 1) if form else expected


PATTERNS = {op: lambda case, op=op: binary(case, op) for op in ("Add", "Mul")} | {
    op: lambda case, op=op: pool(case, op) for op in ("AveragePool", "GlobalAveragePool", "ReduceMean")}
PRODUCTS = {f"Conv {name}": lambda case, form=form: product(case, "Conv", form) for name, form in FORMS.items()} | {
    "ConvTranspose": lambda case: product(case, "ConvTranspose", (5, 6, 1, (4, 4), 2, (7, 8))),
    "Gemm": lambda case: product(case, "Gemm"), "MatMul": lambda case: product(case, "MatMul")}


def run_pattern(op, options, runner):
    rng = np.random.default_rng([options.seed, len(op), zlib.crc32(op.encode())])
    cases = []
    for number in range(options.cases):
        case = Case(f"c{number}_", 21, rng)
        cases.append((case, *(PATTERNS | PRODUCTS)[op](case)))
    told = PRODUCT if op in PRODUCTS else MOVES
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
            fused = any(f"'{case.prefix}op'" in line and told in line for line in why.splitlines())
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
        for op in PATTERNS | PRODUCTS:
            counts += run_pattern(op, options, runner)
    print(f"{counts[0]} passed, {counts[1]} failed, 0 skipped")
    return 1 if counts[1] or not counts[0] else 0


if __name__ == "__main__":
    sys.exit(main())
