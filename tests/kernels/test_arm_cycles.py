#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/arm_cycles.py on a short disassembly. The last line is `N passed, N failed, N skipped`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))
import arm_cycles  # noqa: E402  pylint: disable=wrong-import-position

# Two nested loops; the code at 0x38 is a rare path of the outer one, which jumps back into it, as a loop without MACs does.
NESTED = """
kernel.o:     file format elf64-littleaarch64

Disassembly of section .text:

0000000000000000 <rows>:
   0:\tmov\tx4, x0
   4:\tcbz\tx2, 38 <rows+0x38>
   8:\tldp\tq0, q1, [x1], #32
   c:\tsdot\tv16.4s, v0.16b, v1.4b[0]
  10:\tsdot\tv17.4s, v0.16b, v1.4b[1]
  14:\tusmmla\tv18.4s, v0.16b, v1.16b
  18:\tfmla\tv19.4s, v0.4s, v1.s[0]
  1c:\tsubs\tx2, x2, #0x4
  20:\tb.ls\t28 <rows+0x28>  // b.plast
  24:\tb.ne\t8 <rows+0x8>  // b.any
  28:\tstr\tq16, [x3], #16
  2c:\tsubs\tx5, x5, #0x1
  30:\tb.ne\t4 <rows+0x4>
  34:\tret
  38:\tadd\tx2, x2, #0x1
  3c:\tb\t28 <rows+0x28>

0000000000000040 <halves>:
  40:\tldr\td0, [x1]
  44:\tld1r\t{v1.8h}, [x2]
  48:\tsmull\tv2.8h, v0.8b, v1.8b
  4c:\tsmlal2\tv2.8h, v0.16b, v1.16b
  50:\tsadalp\tv3.4s, v2.8h
  54:\tsmlal\tv4.4s, v0.4h, v1.h[0]
  58:\tst1\t{v3.4s}, [x3], #16
  5c:\tprfm\tpldl1keep, [x1, #256]
  60:\tmadd\tx0, x1, x2, x3
  64:\tcbnz\tx0, 40 <halves>
  68:\tfmla\tv0.2d, v1.2d, v2.2d
  6c:\tfmadd\ts0, s1, s2, s3
  70:\ttbnz\tw0, #3, 68 <halves+0x28>
  74:\tret
"""


def check(name, found, expected):
    if found == expected:
        return True
    print(f"{name}: {found}, expected {expected}")
    return False


def tests():
    """Yields whether each check passed."""
    functions = dict(arm_cycles.functions(NESTED))
    yield check("functions", {name: len(body) for name, body in functions.items()}, {"rows": 16, "halves": 14})
    loops = {name: [loop for loop in arm_cycles.inner_loops(body) if arm_cycles.counts(loop)["macs"]] for name, body in functions.items()}
    spans = {name: [(loop[0].address, loop[-1].address) for loop in of] for name, of in loops.items()}
    yield check("loops", spans, {"rows": [(0x8, 0x24)], "halves": [(0x40, 0x64), (0x68, 0x70)]})
    numbers = [tuple(arm_cycles.counts(loop).values()) for of in loops.values() for loop in of]
    # instructions, loads, stores, MAC instructions, MACs
    yield check("dot products", numbers[0], (8, 1, 0, 3, 16 + 16 + 32))
    yield check("halves", numbers[1], (10, 2, 1, 3, 8 + 8 + 4))
    yield check("float", numbers[2], (3, 0, 0, 2, 2 + 1))
    text = arm_cycles.assembly(loops["halves"][0]).splitlines()
    yield check("assembly", (text[0], text[2], text[-1]), ("loop:", "ld1r {v1.8h}, [x2]", "cbnz x0, loop"))
    yield check("branches", arm_cycles.assembly(loops["rows"][0]).splitlines()[-2:], ["b.ls loop", "b.ne loop"])
    yield check("test bit", arm_cycles.assembly(loops["halves"][1]).splitlines()[-1], "tbnz w0, #3, loop")
    peers = arm_cycles.read_peers()
    yield check("groups of peers", {peer["group"] for peer in peers} - set(arm_cycles.KERNELS), set())
    mca = arm_cycles.newest_mca()
    if not mca:
        yield None
        return
    sixteen = [arm_cycles.Instruction(0, "fmla", f"v{i}.4s, v30.4s, v31.4s") for i in range(16)]
    yield check("cycles", round(arm_cycles.cycles(sixteen, "cortex-a57", mca)), 16)


def main():
    results = list(tests())
    print(f"{results.count(True)} passed, {results.count(False)} failed, {results.count(None)} skipped")
    sys.exit(results.count(False) > 0)


main()
