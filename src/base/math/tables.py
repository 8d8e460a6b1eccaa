#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write math_tables.h: constants and tables of the elementary functions.

    src/base/math/tables.py OUTPUT

Every number is computed here in integers of PRECISION fraction bits, then rounded to the nearest double, so that the
header is the same on every machine. A real number that needs more than one double is a sum of several, each rounded to
nearest (or to a stated number of bits) after the ones before it are subtracted.
"""

import sys
from fractions import Fraction

PRECISION = 1400
ONE = 1 << PRECISION


def multiply(a, b):
    return a * b >> PRECISION


def exp(x):
    """e^x of a Fraction: the series of x / 2^16, squared 16 times."""
    reduced = x.numerator * ONE // (x.denominator << 16)
    total, term, n = 0, ONE, 0
    while term:
        total += term
        n += 1
        term = multiply(term, reduced) // n
    for _ in range(16):
        total = multiply(total, total)
    return total


def inverse_tangent(x):
    """atan(x) of a Fraction from 0 to 1, by Euler's series: all terms are positive."""
    square = x * x / (1 + x * x)
    numerator, denominator = square.numerator, square.denominator
    term, total, n = int(x / (1 + x * x) * ONE), 0, 0
    while term:
        total += term
        n += 1
        term = term * 2 * n * numerator // ((2 * n + 1) * denominator)
    return total


def logarithm(x):
    """log(x) of a positive Fraction: 2 artanh((x - 1) / (x + 1))."""
    t = (x - 1) / (x + 1)
    power, total, n = int(t * ONE), 0, 1
    square = t * t
    while power not in (0, -1):
        total += power // n
        power = power * square.numerator // square.denominator
        n += 2
    return 2 * total


def square_root(x):
    """The root of a fixed-point number."""
    from math import isqrt

    return isqrt(x << PRECISION)


def error_function(x, factor):
    """erf(x) of a Fraction: factor x e^(-x^2) (1 + 2 x^2 / 3 + 4 x^4 / 15 + ...), factor = 2 / sqrt(pi)."""
    square = 2 * x * x
    term, total, n = ONE, 0, 1
    while term:
        total += term
        n += 2
        term = term * square.numerator // (square.denominator * n)
    return multiply(multiply(total, exp(-x * x)), factor) * x.numerator // x.denominator


def as_double(fixed, bits=53):
    """The double of `bits` significant bits that is nearest to a fixed-point number, as a Fraction."""
    if fixed == 0:
        return Fraction(0)
    shift = abs(fixed).bit_length() - bits
    rounded = (abs(fixed) + (1 << (shift - 1))) >> shift
    return Fraction(rounded << shift, ONE) * (1 if fixed > 0 else -1)


def parts(fixed, *bits):
    """Doubles of `bits` bits each whose sum is a fixed-point number."""
    result = []
    for count in bits:
        result.append(as_double(fixed, count))
        fixed -= int(result[-1] * ONE)
    return result


def text(fraction):
    return float(fraction).hex()


def table(name, what, rows):
    lines = [f"/* {what} */", f"static const double {name}[{len(rows)}][{len(rows[0])}] = {{"]
    lines += ["    {" + ", ".join(map(text, row)) + "}," for row in rows]
    return lines + ["};"]


def define(names, values):
    return [f"#define {name} {text(value)}" for name, value in zip(names, values)]


def log_row(j):
    """c, a number of 12 bits near 128 / j, and -log(c) as a multiple of 2^-42 and the rest."""
    c = as_double(ONE * 128 // j, 12) if j != 128 else Fraction(1)
    value = -logarithm(c) if c != 1 else 0
    high = Fraction((value + (1 << (PRECISION - 43))) >> (PRECISION - 42), 1 << 42)
    return [c, high, as_double(value - int(high * ONE))]


def log2_row(j, ln2):
    """c of log_row and -128 log2(c)."""
    c = log_row(j)[0]
    return [c, as_double(-128 * logarithm(c) * ONE // ln2) if c != 1 else Fraction(0)]


def main():
    pi = 16 * inverse_tangent(Fraction(1, 5)) - 4 * inverse_tangent(Fraction(1, 239))
    ln2 = logarithm(Fraction(2))
    factor = 2 * ONE * ONE // square_root(pi)
    two_over_pi = 2 * ONE * ONE // pi

    lines = ["/* Made by base/math/tables.py. */", "#ifndef DQ_MATH_TABLES_H", "#define DQ_MATH_TABLES_H", ""]
    lines += ["#include <stdint.h>", ""]
    lines += define(["LN2_128_HIGH", "LN2_128_LOW"], parts(ln2 // 128, 33, 53))
    lines += define(["INVERSE_LN2_128"], parts(128 * ONE * ONE // ln2, 53))
    lines += define(["LN2_HIGH", "LN2_LOW"], parts(ln2, 42, 53))
    lines += define(["HALF_PI_1", "HALF_PI_2", "HALF_PI_3", "HALF_PI_4"], parts(pi // 2, 33, 33, 33, 53))
    lines += define(["HALF_PI_HIGH", "HALF_PI_LOW"], parts(pi // 2, 53, 53))
    lines += define(["HALF_PI_REST"], [as_double(pi // 2 - int(parts(pi // 2, 33)[0] * ONE))])
    lines += define(["TWO_OVER_PI"], parts(two_over_pi, 53))
    lines += define(["ERF_FACTOR_HIGH", "ERF_FACTOR_LOW"], parts(factor, 53, 53))
    lines += table("exp_table", "2^(j/128), the sum of two doubles", [
        parts(exp_of_ln2(ln2, j), 53, 53) if j else [Fraction(1), Fraction(0)] for j in range(128)])
    lines += table("log_table", "For j from 90 on: c near 128/j; -log(c), as a multiple of 2^-42 and the rest.",
                   [log_row(j) for j in range(90, 183)])
    lines += table("log2_table", "For j from 90 on: the same c, and -128 log2(c).",
                   [log2_row(j, ln2) for j in range(90, 183)])
    lines += table("atan_table", "atan(j/16), the sum of two doubles", [
        parts(inverse_tangent(Fraction(j, 16)), 53, 53) if j else [Fraction(0), Fraction(0)] for j in range(17)])
    erf_rows = []
    for j in range(96):
        x = Fraction(j, 16)
        value = error_function(x, factor) if j else 0
        erf_rows.append(parts(value, 53, 53) + [as_double(multiply(exp(-x * x), factor))])
    lines += table("erf_table", "erf(j/16), the sum of two doubles, and its derivative", erf_rows)
    words = [(two_over_pi >> (PRECISION - 32 * (i + 1))) & 0xFFFFFFFF for i in range(40)]
    lines += ["/* The fraction bits of 2/pi, after two words of its integer part. */",
              f"static const uint32_t two_over_pi_bits[{len(words) + 2}] = {{", "    0, 0,"]
    lines += ["    " + ", ".join(f"0x{word:08x}" for word in words[i:i + 8]) + "," for i in range(0, len(words), 8)]
    lines += ["};", "", "#endif", ""]
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("\n".join(lines))


def exp_of_ln2(ln2, j):
    return exp(Fraction(ln2 * j, 128 * ONE))


if __name__ == "__main__":
    main()
