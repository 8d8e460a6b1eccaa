#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold the elementary functions against mpmath.

    tests/math/compare.py EVALUATE [EMULATOR...] [--samples N] [--seed N] [--only NAME]

EVALUATE is the program made of evaluate.c. Every function is evaluated at random arguments (of its whole domain, of the
range where its result varies, and around points that are hard for it) and at special values. Prints the largest error
of each function in units in the last place, which must not be more than BOUNDS says, and
`N passed, N failed, N skipped` as the last line; the exit code is 1 when something failed.
"""

import argparse
import math
import random
import struct
import subprocess
import sys

import mpmath

INFINITE, NONE = math.inf, math.nan
# name: function of mpmath, the range in which results vary, the largest error in units in the last place
UNARY = {
    "exp": (mpmath.exp, (-745.2, 709.8), 0.75),
    "expm1": (mpmath.expm1, (-40, 709.8), 0.55),
    "log": (mpmath.log, (0, 100), 0.55),
    "log1p": (mpmath.log1p, (-1, 100), 0.55),
    "sin": (mpmath.sin, (-100, 100), 0.8),
    "cos": (mpmath.cos, (-100, 100), 0.8),
    "tan": (mpmath.tan, (-100, 100), 0.8),
    "asin": (mpmath.asin, (-1, 1), 0.55),
    "acos": (mpmath.acos, (-1, 1), 0.55),
    "atan": (mpmath.atan, (-30, 30), 0.55),
    "sinh": (mpmath.sinh, (-20, 20), 0.8),
    "cosh": (mpmath.cosh, (-20, 20), 0.65),
    "tanh": (mpmath.tanh, (-20, 20), 0.55),
    "asinh": (mpmath.asinh, (-20, 20), 0.55),
    "acosh": (mpmath.acosh, (1, 20), 0.55),
    "atanh": (mpmath.atanh, (-1, 1), 0.55),
    "erf": (mpmath.erf, (-6, 6), 0.65),
}
# Functions of floats are rounded correctly but for what lies within 2^-13 units of a tie.
FLOATS = ("sin", "cos", "tan", "sinh", "cosh", "asinh", "acosh", "atanh")
FLOAT_BOUND = 0.5001

# Special values: name, arguments, result.
SPECIAL = [
    ("exp", 0, 1), ("exp", -0.0, 1), ("exp", INFINITE, INFINITE), ("exp", -INFINITE, 0.0), ("exp", 1000, INFINITE),
    ("exp", -1000, 0.0), ("exp", 709.7827128933841, INFINITE),
    ("exp", -745.1332191019411, 5e-324), ("exp", -745.1332191019412, 0.0),
    ("expm1", 0.0, 0.0), ("expm1", -0.0, -0.0), ("expm1", INFINITE, INFINITE), ("expm1", -INFINITE, -1),
    ("expm1", 5e-324, 5e-324),
    ("log", 1, 0.0), ("log", 0.0, -INFINITE), ("log", -0.0, -INFINITE), ("log", -1, NONE), ("log", -INFINITE, NONE),
    ("log", INFINITE, INFINITE), ("log1p", 0.0, 0.0), ("log1p", -0.0, -0.0), ("log1p", -1, -INFINITE),
    ("log1p", -1.5, NONE), ("log1p", INFINITE, INFINITE), ("log1p", -INFINITE, NONE), ("log1p", 5e-324, 5e-324),
    ("sin", 0.0, 0.0), ("sin", -0.0, -0.0), ("sin", INFINITE, NONE), ("sin", -INFINITE, NONE), ("cos", 0, 1),
    ("cos", -0.0, 1), ("cos", INFINITE, NONE), ("tan", 0.0, 0.0), ("tan", -0.0, -0.0), ("tan", INFINITE, NONE),
    ("sin", 5e-324, 5e-324), ("tan", -5e-324, -5e-324),
    ("asin", 0.0, 0.0), ("asin", -0.0, -0.0), ("asin", 1.0000000000000002, NONE), ("asin", -INFINITE, NONE),
    ("acos", 1, 0.0), ("acos", -2, NONE), ("acos", INFINITE, NONE), ("acos", -1, math.pi), ("acos", 0, math.pi / 2),
    ("atan", 0.0, 0.0), ("atan", -0.0, -0.0), ("atan", INFINITE, math.pi / 2), ("atan", -INFINITE, -math.pi / 2),
    ("sinh", 0.0, 0.0), ("sinh", -0.0, -0.0), ("sinh", INFINITE, INFINITE), ("sinh", -INFINITE, -INFINITE),
    ("sinh", 720, INFINITE), ("sinh", -1e300, -INFINITE), ("cosh", 0, 1), ("cosh", -INFINITE, INFINITE),
    ("cosh", -720, INFINITE), ("cosh", 1e300, INFINITE), ("tanh", 0.0, 0.0), ("tanh", -0.0, -0.0),
    ("tanh", INFINITE, 1), ("tanh", -INFINITE, -1), ("tanh", 25, 1),
    ("asinh", 0.0, 0.0), ("asinh", -0.0, -0.0), ("asinh", INFINITE, INFINITE), ("asinh", -INFINITE, -INFINITE),
    ("acosh", 1, 0.0), ("acosh", 0.5, NONE), ("acosh", -INFINITE, NONE), ("acosh", INFINITE, INFINITE),
    ("atanh", 0.0, 0.0), ("atanh", -0.0, -0.0), ("atanh", 1, INFINITE), ("atanh", -1, -INFINITE), ("atanh", 1.5, NONE),
    ("erf", 0.0, 0.0), ("erf", -0.0, -0.0), ("erf", INFINITE, 1), ("erf", -INFINITE, -1), ("erf", 6, 1),
]
POWERS = [
    (0.0, -1, INFINITE), (-0.0, -1, -INFINITE), (0.0, -3, INFINITE), (-0.0, -3, -INFINITE), (0.0, -2, INFINITE),
    (-0.0, -2, INFINITE), (-0.0, -1.5, INFINITE), (0.0, -INFINITE, INFINITE), (-0.0, -INFINITE, INFINITE),
    (0.0, 3, 0.0), (-0.0, 3, -0.0), (-0.0, 2, 0.0), (0.0, 0.5, 0.0), (-0.0, 0.5, 0.0), (-1, INFINITE, 1),
    (-1, -INFINITE, 1), (1, NONE, 1), (1, INFINITE, 1), (NONE, 0.0, 1), (NONE, -0.0, 1), (INFINITE, 0, 1), (0, 0, 1),
    (NONE, 1, NONE), (2, NONE, NONE), (-2, 0.5, NONE), (-2, -1.5, NONE), (0.5, -INFINITE, INFINITE),
    (-0.5, -INFINITE, INFINITE), (2, -INFINITE, 0.0), (0.5, INFINITE, 0.0), (2, INFINITE, INFINITE),
    (-2, INFINITE, INFINITE), (-INFINITE, -3, -0.0), (-INFINITE, -2, 0.0), (-INFINITE, -0.5, 0.0),
    (-INFINITE, 3, -INFINITE), (-INFINITE, 2, INFINITE), (-INFINITE, 0.5, INFINITE), (INFINITE, -0.5, 0.0),
    (INFINITE, 0.5, INFINITE), (-2, 3, -8), (-2, 10, 1024), (3, 5, 243), (10, 15, 1e15), (2, -10, 2.0**-10),
    (-2, -3, -0.125), (9, 0.5, 3), (8, 1e300, INFINITE), (-8, 1e300, INFINITE), (8, -1e300, 0.0),
    (-3, 1e15, INFINITE), (-1, 2.0**53 - 1, -1), (-1, 2.0**53, 1), (2, 5e-324, 1), (1.5, 2, 2.25),
]


class Kind:
    """double or float: its numbers and the distance between them."""

    def __init__(self, single):
        self.single, self.bits, self.least = single, 24 if single else 53, -149 if single else -1074
        self.code, self.integer = ("<f", "<I") if single else ("<d", "<Q")
        self.size = 32 if single else 64

    def of_bits(self, bits):
        return struct.unpack(self.code, struct.pack(self.integer, bits))[0]

    def nearest(self, x):
        if not self.single:
            return float(x)
        try:
            return struct.unpack("<f", struct.pack("<f", float(x)))[0]
        except OverflowError:
            return math.copysign(INFINITE, x)

    def around(self, x, steps):
        bits = struct.unpack(self.integer, struct.pack(self.code, x))[0]
        return self.of_bits(max(0, bits + steps))

    def error(self, got, exact):
        """|got - exact| in units in the last place of the exact value."""
        unit = mpmath.mpf(2) ** max(int(mpmath.floor(mpmath.log(abs(exact), 2))) + 1 - self.bits, self.least)
        if math.isinf(got):
            largest = mpmath.mpf(2) ** (128 if self.single else 1024)
            got = largest if got > 0 else -largest
        return float(abs(got - exact) / unit)


def arguments(name, limits, kind, count, random_of):
    low, high = limits
    for _ in range(count):
        yield kind.of_bits(random_of.getrandbits(kind.size))
        yield kind.nearest(random_of.uniform(low, high))
        yield kind.nearest(2.0 ** random_of.uniform(-30, 5) * random_of.choice((-1, 1)))
        yield kind.nearest((1 + 2.0 ** random_of.uniform(-kind.bits, -1) * random_of.choice((-1, 1))) *
                           random_of.choice((-1, 1)))
        if name in ("sin", "cos", "tan"):
            multiple = random_of.randrange(1, 2 ** random_of.randrange(1, 80)) * mpmath.pi / 2
            yield kind.around(kind.nearest(multiple), random_of.randrange(-1, 2))
        else:  # where reductions of arguments change from one table entry to the next, and denormals
            yield kind.around(kind.nearest((random_of.randrange(1, 512) + 0.5) / 256), random_of.randrange(-2, 3))
            yield kind.of_bits(random_of.getrandbits(kind.bits - 1))
    if name in ("sin", "cos", "tan") and not kind.single:
        yield from (math.ldexp(6381956970095103, 797), math.ldexp(5261692873635770, 499), 1e22, 1.7976931348623157e308)


def power_arguments(kind, count, random_of):
    for _ in range(count):
        x = abs(kind.of_bits(random_of.getrandbits(kind.size)))
        if 0 < x < INFINITE and x != 1:
            yield x, kind.nearest(random_of.uniform(-1.05, 1.05) * (128 if kind.single else 1075) / math.log2(x))
        x = kind.nearest(1 + random_of.uniform(-1, 1) * 2.0 ** random_of.uniform(-kind.bits, -1))
        if x != 1:
            yield x, kind.nearest(random_of.uniform(-1, 1) * (128 if kind.single else 1024) / math.log2(x))
        yield random_of.choice((-1, 1)) * kind.nearest(random_of.uniform(0, 10)), float(random_of.randrange(-30, 30))
        yield kind.nearest(random_of.uniform(0, 100)), kind.nearest(random_of.uniform(-10, 10))
        base, exponent = random_of.randrange(1, 20), random_of.randrange(1, 12)
        if base**exponent < 2**kind.bits:
            yield float(base**exponent), kind.nearest(1 / exponent)


def number(x):
    return "nan" if math.isnan(x) else str(x) if math.isinf(x) else x.hex()


def evaluate(command, lines):
    out = subprocess.run(command, input="".join(lines), capture_output=True, text=True, check=True).stdout.split()
    return [float.fromhex(word) for word in out]


def same(got, expected):
    return (math.isnan(got) and math.isnan(expected)) or (
        got == expected and math.copysign(1, got) == math.copysign(1, expected))


def real(function, *args):
    """The exact result, or None where it is no number or its size has no meaning here."""
    try:
        exact = function(*args)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return exact if isinstance(exact, mpmath.mpf) and mpmath.isfinite(exact) and exact != 0 else None


def largest_error(command, name, function, kind, cases):
    cases = [case for case in cases if all(math.isfinite(x) for x in case)]
    results = evaluate(command, [" ".join([name, *map(number, case)]) + "\n" for case in cases])
    worst, at, count = 0, None, 0
    for case, got in zip(cases, results):
        exact = real(function, *map(mpmath.mpf, case))
        if exact is None:
            continue
        count += 1
        if abs(exact) < mpmath.mpf(2) ** (kind.least - 1):
            error = 0 if got == 0 else INFINITE
        elif abs(exact) >= mpmath.mpf(2) ** (128 if kind.single else 1024):
            error = 0 if math.isinf(got) and (got > 0) == (exact > 0) else INFINITE
        else:
            error = INFINITE if math.isnan(got) else kind.error(got, exact)
        if error > worst:
            worst, at = error, case
    return worst, at, count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", nargs="+", help="an emulator and its arguments, if any, and the program evaluate")
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    options = parser.parse_args()
    mpmath.mp.prec = 200
    double, single, passed, failed = Kind(False), Kind(True), 0, 0

    def judge(good, sentence):
        nonlocal passed, failed
        passed, failed = passed + good, failed + (not good)
        print(sentence if good else f"FAILED: {sentence}")

    jobs = [(name, name, double, bound) for name, (_, _, bound) in UNARY.items()]
    jobs += [(name + "f", name, single, FLOAT_BOUND) for name in FLOATS]
    for name, base, kind, bound in jobs:
        if options.only in (None, name):
            function, limits, _ = UNARY[base]
            cases = [(x,) for x in arguments(base, limits, kind, options.samples, random.Random(options.seed))]
            worst, at, count = largest_error(options.command, name, function, kind, cases)
            judge(worst <= bound and count > 0,
                  f"{name}: {worst:.4f} units of {bound}" + (f" at {at[0].hex()}" if at else "") + f", {count} arguments")
    for name, kind, bound in (("pow", double, 0.75), ("powf", single, FLOAT_BOUND)):
        if options.only in (None, name):
            cases = list(power_arguments(kind, options.samples, random.Random(options.seed)))
            worst, at, count = largest_error(options.command, name, mpmath.power, kind, cases)
            judge(worst <= bound and count > 0, f"{name}: {worst:.4f} units of {bound} at {at}, {count} arguments")

    special = [(name, (x,), result) for name, x, result in SPECIAL]
    special += [(name, (NONE,), NONE) for name in UNARY]
    special += [(name + "f", args, single.nearest(result)) for name, args, result in special
                if name in FLOATS and args[0] in (0, 1, -1, 0.5, 1.5, INFINITE, -INFINITE) or args[0] != args[0]
                and name in FLOATS]
    special += [(name, (x, y), kind.nearest(result)) for x, y, result in POWERS
                for name, kind in (("pow", double), ("powf", single)) if name == "pow" or kind.nearest(y) == y or y != y]
    special = [(name, args, result) for name, args, result in special if options.only in (None, name)]
    results = evaluate(options.command, [" ".join([name, *map(lambda x: number(float(x)), args)]) + "\n"
                                         for name, args, _ in special])
    for (name, args, expected), got in zip(special, results):
        if same(got, expected):
            passed += 1
        else:
            judge(False, f"{name}{args} is {got}, expected {expected}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
