#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold a library against the list of functions whose bits depend on the processor or the C library.

    tests/math/imports.py LIBRARY...

Reads the undefined symbols of each shared library with nm. Elementary functions are those of base/math.h; what IEEE 754 or
C fix to the bit (roots, remainders, rounding, fma, scaling by powers of two) may come from the C library. Ends with
`N passed, N failed, N skipped`; the exit code is 1 when something failed.
"""

import re
import subprocess
import sys

INEXACT = """acos acosh acospi asin asinh asinpi atan atan2 atan2pi atanh atanpi cbrt compoundn cos cosh cospi erf erfc exp
exp10 exp10m1 exp2 exp2m1 expm1 gamma hypot j0 j1 jn lgamma lgamma_r log log10 log10p1 log1p log2 log2p1 logp1 pow pow10 pown
powr rootn rsqrt sin sincos sinh sinpi tan tanh tanpi tgamma y0 y1 yn cabs cacos cacosh carg casin casinh catan catanh ccos
ccosh cexp clog cpow csin csinh csqrt ctan ctanh""".split()
# Types' suffixes, names that -ffast-math gives, and vector functions: all begin or end in a known way.
NAME = re.compile(r"^_*(?:" + "|".join(INEXACT) + r")(?:f|l|f16|f32|f32x|f64|f64x|f128)?(?:_r)?(?:_finite)?$|^_ZGV")


def inexact_imports(library):
    out = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1].split("@")[0] for line in out.splitlines() if line.strip()]
    if "malloc" not in names:
        raise SystemExit(f"{library}: no import of malloc found: is this a shared library?")
    return sorted(name for name in names if NAME.match(name))


def main(libraries):
    # The pattern itself: these are found, those are not.
    assert all(NAME.match(n) for n in ("exp", "powf", "sincosf", "__exp_finite", "_ZGVbN2v_sin", "lgammal_r", "tanhf32x"))
    assert not any(NAME.match(n) for n in ("fma", "sqrt", "fmodf", "ldexp", "expand", "logging", "floor", "_exit"))
    failed = 0
    for library in libraries:
        found = inexact_imports(library)
        if found:
            failed += 1
            print(f"FAILED: {library} imports {', '.join(found)}; base/math.h has its own")
    print(f"{len(libraries) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not libraries else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
