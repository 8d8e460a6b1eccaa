#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold the integer sums of fused products, at and around the ends of int32 and beyond, against exact integers.

    exact_sums.py DQRUN [--isa NAME]… [-v]

Each case is a quantized product whose data reach the largest sums that its weights allow. A fused product gives the
formula's result, rounded once, at every instruction set: by int32 sums where they always fit, else by wider ones (or it
stays as it is written); --why tells which. Operators as written whose text lets 32 bits overflow wrap modulo 2^32.
The last line is "N passed, N failed, N skipped".
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
from fractions import Fraction

import numpy as np

from check import Runner, model_of
from patterns import MOVES, PRODUCT, S8, U8, Case
from wide import S16, U16

MOST = 2**31 - 1
IN_16_BITS = r"into QLinear(Conv|MatMul)16"  # what --why tells


# ---- The formulas, in exact numbers -------------------------------------------------------------------------------

def requantized(sums, scale, dtype, zero):
    """Integers, or fractions, times a scale, rounded once."""
    info = np.iinfo(dtype)
    codes = [min(max(round(s * Fraction(scale)) + int(zero), info.min), info.max) for s in np.asarray(sums).flat]
    return np.array(codes, dtype).reshape(np.shape(sums))


def products(a, a_zero, b, b_zero):
    """Sums of whole numbers of any size."""
    return (a.astype(object) - int(a_zero)) @ (b.astype(object) - int(b_zero))


def wrapped(sums):
    return (np.asarray(sums, object) + 2**31) % 2**32 - 2**31


# ---- What is common ------------------------------------------------------------------------------------------------

def full(dtype, shape, value):
    return np.full(shape, value, dtype)


def dequantized(c, name, array, scale, zero, fed):
    value = (c.fed if fed else c.constant)(name + "_q", array)
    return c.dequantize(name, value, np.float32(scale), None if zero is None else np.array(zero, array.dtype))


def finish(c, node, value, sums, product_scale, dtype, told):
    """Quantized such that the largest sum is code 200 of 8 bits (100 of int8), or float."""
    c.expect(node, told)
    if dtype is None:
        c.output(value, np.dtype(np.float32))
        c.exact[value] = np.array([float(s * Fraction(product_scale)) for s in np.asarray(sums).flat]).reshape(np.shape(sums))
        return
    largest = max(abs(s) for s in np.asarray(sums).flat)
    scale = np.float32(float(largest * Fraction(product_scale)) / (200 if dtype == U8 else 100 if dtype == S8 else 30000))
    zero = 10 if dtype == U8 else 0
    y = c.quantize("y", value, scale, dtype, np.array(zero, dtype))
    c.exact[y] = requantized(sums, Fraction(product_scale) / Fraction(float(scale)), dtype, zero)


def matmul(c, a, a_zero, b, b_zero, dtype, told, fed=False, op="MatMul", **attributes):
    """A product of these quantized values; scales are powers of two."""
    x = dequantized(c, "a", a, 2**-7, a_zero, True)
    w = dequantized(c, "b", b, 2**-9, b_zero, fed)
    y = c.node(op, [x, w], "product", **attributes)
    left, right = (a.T if attributes.get("transA") else a), (b.T if attributes.get("transB") else b)
    finish(c, "product", y, products(left, a_zero or 0, right, b_zero or 0), Fraction(1, 2**16), dtype, told)


# ---- Products of 8 bits at the end of int32 ------------------------------------------------------------------------

LENGTHS = {  # the longest sums that int32 holds, by types: of 255 * 255, of 255 * 128
    "u8u8": (U8, 255, 0, U8, 255, 0, 33025), "u8s8": (U8, 255, 0, S8, -128, 0, 65793),
    "s8s8": (S8, 127, -128, S8, -128, 0, 65793), "s8u8": (S8, -128, 127, U8, 255, 0, 33025)}


def length_cases():
    for name, (ta, a, az, tb, b, bz, longest) in LENGTHS.items():
        for more in (0, 1):
            def build(c, op, fed, dtype, ta=ta, a=a, az=az, tb=tb, b=b, bz=bz, k=longest + more, more=more):
                left, right = full(ta, (3, k), a), full(tb, (k, 5), b)
                right[:, 1:] = c.codes(tb, (k, 4))
                if op == "Gemm":
                    right = right.T.copy()
                told = IN_16_BITS if fed or more else "into MatMulIntegerToFloat" if dtype is None else PRODUCT + (
                    "QGemm" if op == "Gemm" else "QLinearMatMul")
                matmul(c, left, az, right, bz, dtype, told, fed, op, **({"transB": 1} if op == "Gemm" else {}))
            for op in ("MatMul", "Gemm"):
                for fed in (False, True):
                    for dtype in (U8, None):
                        if not (fed and op == "Gemm" and dtype is None): # float as written
                            yield f"{op} {name} {'fed' if fed else 'constant'} {dtype} +{more}", build, (op, fed, dtype)


def matmul_with_constant_left(c):
    """The constant operand may be the left one."""
    k = 33026
    weights = full(U8, (2, k), 255)
    x = dequantized(c, "a", weights, 2**-7, 0, False)
    w = dequantized(c, "b", full(U8, (k, 3), 255), 2**-9, 0, True)
    y = c.node("MatMul", [x, w], "product")
    finish(c, "product", y, products(weights, 0, full(U8, (k, 3), 255), 0), Fraction(1, 2**16), S8, "into QLinearMatMul16")


def gemm_of_columns(c):
    """transA, of two computed operands."""
    k = 33026
    matmul(c, full(U8, (k, 2), 255), 0, full(U8, (k, 3), 255), 0, U8, "into QLinearMatMul16", True, "Gemm", transA=1)


def batches(c):
    """Batches of computed operands."""
    k = 33026
    a, b = c.codes(U8, (2, 3, k)), c.codes(U8, (2, k, 4))
    a[0], b[1] = 255, 255
    matmul(c, a, 0, b, 0, U8, "into QLinearMatMul16", True)


def bias_cases():
    """Sums of x = 255 and a bias that reach an end of int32, or the next number."""
    for op in ("MatMul", "Gemm", "Conv", "depthwise", "ConvTranspose"):
        for total, weights in ((MOST, [1, 0]), (MOST + 1, [64, 64]), (-MOST - 1, [-64, -64]), (-MOST - 2, [-100, -27])):
            def build(c, op=op, total=total, weights=weights):
                biased(c, op, total, weights)
            yield f"{op} with a bias to {total}", build, ()


def biased(c, op, total, weights):
    scale, k = 2.0**-16, len(weights)
    bias = (total - 255 * sum(weights)) * scale
    assert float(np.float32(bias)) == bias
    columns = op in ("MatMul", "Gemm")
    shapes = {"Conv": ((2, k, 1, 1), (1, k, 1, 1)), "depthwise": ((2, 1, 1, k), (1, 1, 1, k)),
              "ConvTranspose": ((2, k, 1, 1), (k, 1, 1, 1))}
    x_shape, w_shape = ((2, k), (k, 1)) if columns else shapes[op]
    x = dequantized(c, "a", full(U8, x_shape, 255), 2**-7, 0, True)
    w = dequantized(c, "b", np.array(weights, S8).reshape(w_shape), 2**-9, 0, False)
    constant = c.constant("bias", np.array([bias], np.float32))
    y = c.node("Conv" if op == "depthwise" else op, [x, w] + [constant] * (op != "MatMul"), "product")
    y = c.node("Add", [y, constant], "add") if op == "MatMul" else y
    told = PRODUCT + ("QGemm" if columns else "QLinearConv")
    if not -2**31 <= total <= MOST:
        told = "not fused" if op == "ConvTranspose" else IN_16_BITS
    finish(c, "product", y, np.full((2, 1) if columns else (2, 1, 1, 1), total, object), Fraction(scale),
           U8 if total > 0 else S8, told)


def conv_cases():
    """Many channels, or a large window, of which the padding sees less; in groups; to floats."""
    for name, channels, kernel, group, dtype in (
            ("pointwise", 33026, (1, 1), 1, U8), ("pointwise", 33025, (1, 1), 1, U8), ("3x3", 3670, (3, 3), 1, U8),
            ("groups", 2 * 8257, (2, 2), 2, S8), ("depthwise", 1, (182, 182), 1, U8), ("depthwise", 1, (181, 182), 1, U8),
            ("to float", 3670, (3, 3), 1, None), ("to float", 3669, (3, 3), 1, None)):
        def build(c, channels=channels, kernel=kernel, group=group, dtype=dtype):
            each = channels // group
            x = full(U8, (1, channels, kernel[0] + 1, kernel[1]), 255)
            w = full(U8, (2 * group, each, *kernel), 255)
            w[1] = c.codes(U8, w[1].shape)
            value = dequantized(c, "a", x, 2**-7, 0, True)
            weights = dequantized(c, "b", w, 2**-9, 0, False)
            y = c.node("Conv", [value, weights], "product", group=group, pads=[1, 0, 0, 0])
            whole = 255 * w.astype(np.int64).sum((1, 2, 3))
            first = 255 * w[:, :, 1:].astype(np.int64).sum((1, 2, 3))
            sums = np.stack([first, whole, whole], 1).reshape(1, 2 * group, 3, 1)
            fits = whole.max() <= MOST
            told = ("into ConvIntegerToFloat" if fits else "not fused") if dtype is None else PRODUCT + (
                "QLinearConv" if fits else "QLinearConv16")
            c.rtol = 3e-7 if fits else 1e-4  # a float sum, as written
            finish(c, "product", y, sums, Fraction(1, 2**16), dtype, told)
        yield f"Conv {name} {channels} {kernel} {group}", build, ()


FORMS = {  # input channels, filters, groups, kernel, stride, extent: each has kernels of its own
    "depthwise 3x3": (16, 16, 16, (3, 3), 1, (20, 20)), "depthwise 3x3 by 2": (24, 24, 24, (3, 3), 2, (21, 20)),
    "depthwise 5x5": (16, 16, 16, (5, 5), 1, (20, 20)), "depthwise line": (8, 8, 8, (1, 9), 1, (1, 60)),
    "3x3": (32, 32, 1, (3, 3), 1, (20, 20)), "3x3 by 2": (3, 32, 1, (3, 3), 2, (24, 24)),
    "pointwise": (64, 48, 1, (1, 1), 1, (20, 20)), "groups": (16, 32, 4, (3, 3), 1, (12, 12)),
    "few outputs": (512, 10, 1, (1, 1), 1, (1, 1)), "one channel": (1, 1, 1, (7, 7), 1, (20, 20))}


def conv_sums(x, w, groups, stride):
    """Exact sums of a convolution without padding."""
    each, per = x.shape[1] // groups, w.shape[0] // groups
    views = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    parts = [np.einsum("nchwij,ocij->nohw", views[:, g * each:(g + 1) * each], w[g * per:(g + 1) * per])
             for g in range(groups)]
    return np.concatenate(parts, 1)


def form_cases():
    """A bias with which the weights' largest sum, or the smallest, is the last one that int32 holds; as written, one with
    which they wrap."""
    for name, form in FORMS.items():
        for written in (False, True):
            def build(c, form=form, written=written):
                channels, filters, groups, kernel, stride, extent = form
                x = c.codes(U8, (2, channels, *extent))
                x[0] = c.pick(0, 255)
                w = c.codes(S8, (filters, channels // groups, *kernel))
                sums = conv_sums(x.astype(np.int64), w.astype(np.int64), groups, stride)
                positive = 255 * np.maximum(w, 0).sum((1, 2, 3), np.int64)
                negative = 255 * np.minimum(w, 0).sum((1, 2, 3), np.int64)
                # a multiple of 128, as float32 holds it
                bias = np.where(np.arange(filters) % 2, (MOST - positive) // 128 * 128, -((2**31 + negative) // 128 * 128))
                dtype = U8 if c.chance(0.5) else S8
                attributes = {"group": groups, "strides": [stride, stride]}
                if written:
                    bias = np.where(np.arange(filters) % 2, MOST, -MOST - 1)
                    y = c.node("QLinearConv", [
                        c.fed("a", x), c.constant("a_scale", np.float32(2**-7)), c.constant("a_zero", np.array(0, U8)),
                        c.constant("b", w), c.constant("b_scale", np.float32(2**-9)), c.constant("b_zero", np.array(0, S8)),
                        c.constant("y_scale", np.float32(2**9)), c.constant("y_zero", np.array(0, dtype)),
                        c.constant("bias", bias.astype(np.int32))], "product", **attributes)
                    c.output(y, dtype)
                    wrapping = wrapped(sums + bias.reshape(1, -1, 1, 1))
                    c.exact[y] = requantized(wrapping, Fraction(1, 2**25), dtype, 0)
                    return
                a = dequantized(c, "a", x, 2**-7, 0, True)
                b = dequantized(c, "b", w, 2**-9, 0, False)
                constant = c.constant("bias", (bias * 2.0**-16).astype(np.float32))
                y = c.node("Conv", [a, b, constant], "product", **attributes)
                finish(c, "product", y, sums + bias.reshape(1, -1, 1, 1), Fraction(1, 2**16), dtype,
                       PRODUCT + "QLinearConv")
            yield f"{'QLinearConv' if written else 'Conv'} {name}", build, ()


def transposed_cases():
    """Each phase has its own sums: of a stride of 2 a fourth of the weights."""
    for channels, told in ((8256, PRODUCT + "QLinearConv"), (8257, "int32 holds")):
        def build(c, channels=channels, told=told):
            x = full(U8, (1, channels, 2, 2), 255)
            w = full(U8, (channels, 1, 4, 4), 255)
            value = dequantized(c, "a", x, 2**-7, 0, True)
            weights = dequantized(c, "b", w, 2**-9, 0, False)
            y = c.node("ConvTranspose", [value, weights], "product", strides=[2, 2], pads=[2, 2, 2, 2])
            sums = np.full((1, 1, 2, 2), 4 * channels * 255 * 255, object)
            finish(c, "product", y, sums, Fraction(1, 2**16), U8, told)
        yield f"ConvTranspose {channels}", build, ()


# ---- 16 bits -------------------------------------------------------------------------------------------------------

def bias_16_cases():
    """A bias that is far below one product, where these cancel out, or x is its zero point."""
    for op in ("Conv", "depthwise", "few", "MatMul"):
        for scale in (2.0**28, 2.0**20, 2.0**-20):
            for dtype in (U16, S16, U8):
                def build(c, op=op, scale=scale, dtype=dtype):
                    x_zero, k = (40000 if dtype == U16 else 77), 40
                    extent = (1, 1) if op == "few" else (9, 9)
                    x_shape, w_shape = ((3, k), (k, 5)) if op == "MatMul" else ((1, k, *extent), (5, k, 1, 1))
                    w_shape = (k, 1, 1, 1) if op == "depthwise" else w_shape
                    x = dequantized(c, "a", full(dtype, x_shape, x_zero), scale, x_zero, True)
                    w = dequantized(c, "b", c.codes(U16 if dtype == U8 else S8, w_shape), scale,
                                    None if dtype != U8 else 3, False)
                    channels = w_shape[1] if op == "MatMul" else w_shape[0]
                    bias = np.arange(1, channels + 1, dtype=np.float32)
                    constant = c.constant("bias", bias)
                    if op == "MatMul":
                        y = c.node("Add", [c.node("MatMul", [x, w], "product"), constant], "add")
                    else:
                        y = c.node("Conv", [x, w, constant], "product", group=k if op == "depthwise" else 1)
                    sums = np.broadcast_to(bias if op == "MatMul" else bias.reshape(1, -1, 1, 1),
                                           (3, 5) if op == "MatMul" else (1, channels, *extent))
                    finish(c, "product", y, sums.astype(np.int64), 1, S16, IN_16_BITS)
                yield f"{op} of {dtype} with a bias, scale {scale}", build, ()


# ---- Other sums ----------------------------------------------------------------------------------------------------

def mean_cases():
    """Means of as many elements as int32 does not count the sums of."""
    for op in ("GlobalAveragePool", "ReduceMean"):
        for dtype, value in ((U8, 255), (S8, -128)):
            def build(c, op=op, dtype=dtype, value=value):
                x = dequantized(c, "a", full(dtype, (1, 1, 4200, 4100), value), 2**-7, 0, True)
                y = c.node(op, [x], "mean", **({"axes": [2, 3]} if op == "ReduceMean" and c.opset < 18 else {}))
                finish(c, "mean", y, np.full((1, 1, 1, 1), value, object), Fraction(1, 128), dtype, MOVES)
            yield f"{op} {dtype}", build, ()


# ---- As written ----------------------------------------------------------------------------------------------------

def written_cases():
    """Sums beyond 32 bits wrap, with bias; also where dequantization is fused with them, which is exact to the bit."""
    k = 33300

    def operands(c):
        a, b = full(U8, (2, k), 255), full(U8, (k, 3), 255)
        b[:, 1] = c.codes(U8, k)
        return a, b, wrapped(products(a, 0, b, 0))

    def result(c, value, sums, scale):
        c.output(value, U8)
        c.exact[value] = requantized(sums, scale, U8, 128)

    def parameters(c):
        return [c.constant("y_scale", np.float32(2**-4)), c.constant("y_zero", np.array(128, U8))]

    def quantized(c, name, array, fed):
        return [(c.fed if fed else c.constant)(name, array), c.constant(name + "_scale", np.float32(2**-14)),
                c.constant(name + "_zero", np.array(0, U8))]

    def integer(c, op):
        a, b, sums = operands(c)
        if op == "ConvInteger":
            a, b, sums = a[:1].reshape(1, k, 1, 1), b.T.reshape(3, k, 1, 1).copy(), sums[:1].reshape(1, 3, 1, 1)
        y = c.node(op, [c.fed("a", a), c.constant("b", b)], "product")
        c.output(y, np.dtype(np.int32))
        c.exact[y] = sums.astype(np.int32)

    def scaled(c, op):
        a, b, sums = operands(c)
        if op == "ConvInteger":
            a, b, sums = a[:1].reshape(1, k, 1, 1), b.T.reshape(3, k, 1, 1).copy(), sums[:1].reshape(1, 3, 1, 1)
        y = c.node("Cast", [c.node(op, [c.fed("a", a), c.constant("b", b)], "product")], "cast", to=1)
        scales = c.node("Mul", [c.constant("s", np.float32(2**-7)), c.constant("t", np.float32(2**-9))], "scales")
        y = c.node("Mul", [y, scales], "scaled")
        c.output(y, np.dtype(np.float32))
        c.exact[y] = sums.astype(np.float32).astype(np.float64) * 2.0**-16
        c.expect("product", "fused with its")

    def qlinear_matmul(c):
        a, b, sums = operands(c)
        result(c, c.node("QLinearMatMul", [*quantized(c, "a", a, True), *quantized(c, "b", b, False), *parameters(c)],
                         "product"), sums, Fraction(1, 2**24))

    def qlinear_conv(c):
        a, b, _ = operands(c)
        bias = np.array([MOST, -MOST, 5], np.int32)
        sums = wrapped(products(a, 0, b, 0)[:1] + bias.astype(object)).reshape(1, 3, 1, 1)
        w = b.T.reshape(3, k, 1, 1).copy()
        result(c, c.node("QLinearConv", [*quantized(c, "a", a[:1].reshape(1, k, 1, 1), True), *quantized(c, "b", w, False),
                                         *parameters(c), c.constant("bias", bias)], "product"), sums, Fraction(1, 2**24))

    def gemm_s8(c):
        a, b, _ = operands(c)
        bias = np.array([MOST, -MOST, 5], np.int32)
        sums = wrapped(products(a, 0, b, 0) + bias.astype(object))
        result(c, c.node("QGemm", [*quantized(c, "a", a, True), *quantized(c, "b", b, False), c.constant("bias", bias),
                                   *parameters(c)], "product", domain="com.microsoft"), sums, Fraction(1, 2**24))

    def to_float(c):
        a, b, sums = operands(c)
        a, b = quantized(c, "a", a, True), quantized(c, "b", b, False)
        y = c.node("MatMulIntegerToFloat", [a[0], b[0], a[1], b[1], a[2], b[2]], "product", domain="com.microsoft")
        c.output(y, np.dtype(np.float32))
        c.exact[y] = sums.astype(np.float32).astype(np.float64) * 2.0**-28

    for op in ("MatMulInteger", "ConvInteger"):
        yield op, integer, (op,)
        yield op + " and its scaling", scaled, (op,)
    for build in (qlinear_matmul, qlinear_conv, gemm_s8, to_float):
        yield build.__name__, build, ()


# ---- The run -------------------------------------------------------------------------------------------------------

def all_cases():
    for group in (length_cases, bias_cases, conv_cases, form_cases, transposed_cases, bias_16_cases, mean_cases, written_cases):
        yield from group()
    for build in (matmul_with_constant_left, gemm_of_columns, batches):
        yield build.__name__, build, ()


def problems_of(case, arrays, why):
    for name, exact in case.exact.items():
        got = arrays[name]
        if got.dtype.kind == "f":
            right = got.shape == exact.shape and np.allclose(got, exact, rtol=case.rtol, atol=0)
        else:
            right = np.array_equal(got, exact)
        if not right:
            at = tuple(np.argwhere(got != exact)[0]) if got.shape == exact.shape else ()
            yield f"{name}: {got[at]}, expected {exact[at]}"
    for node, text, _ in case.expected:
        lines = [line for line in why.splitlines() if f"'{case.prefix}{node}'" in line]
        if not any(re.search(text, line) for line in lines):
            yield f"--why does not tell \"{text}\" of {node}, but {lines}"


def levels(dqrun):
    """The instruction sets of this processor; the program that tells them stands next to dqrun."""
    told = subprocess.run([dqrun.resolve().with_name("dqrun-conformance"), "--list-isa"], capture_output=True, text=True,
                          check=True)
    return told.stdout.split()


def main():
    parser = argparse.ArgumentParser(description="Hold the sums of fused products against exact integers.")
    parser.add_argument("dqrun", type=pathlib.Path)
    parser.add_argument("--isa", action="append", help="an instruction set; default: each that the processor has")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every case")
    options = parser.parse_args()
    cases, rng = [], np.random.default_rng(1)
    for number, (name, build, arguments) in enumerate(all_cases()):
        made = Case(f"c{number}_", 21, rng)
        made.exact, made.note, made.rtol = {}, name, 3e-7
        build(made, *arguments)
        cases.append(made)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(options.dqrun, folder)
        (runner.folder / "model.onnx").write_bytes(model_of(cases, 21).SerializeToString())
        np.savez(runner.folder / "in.npz", **{n: x for case in cases for n, x in case.feeds.items()})
        requested = [name for case in cases for name in case.exact]
        for isa in options.isa or levels(options.dqrun):
            arrays, why = runner.run(["--threads", "2", "--isa", isa], requested)
            if arrays is None:
                print(f"FAIL {isa}: {why}")
                failed += len(cases)
                continue
            for made in cases:
                problems = list(problems_of(made, arrays, why))
                failed, passed = failed + bool(problems), passed + (not problems)
                if problems or options.verbose:
                    print(f"{'FAIL' if problems else 'ok'} {made.note}, {isa}: {'; '.join(problems)}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
