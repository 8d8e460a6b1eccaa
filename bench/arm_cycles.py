#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of inner loops for ARM and estimates their cycles with llvm-mca. Writes the tables of bench/arm.md.

    meson setup build-aarch64 --cross-file tools/cross/aarch64-linux-gnu.ini -Donly_kernels=true && ninja -C build-aarch64
    bench/arm_cycles.py build-aarch64 [--peers DIR]
    bench/arm_cycles.py --loops OBJECT...     prints every loop of object files that multiplies and accumulates

--peers measures the loops of other libraries anew: bench/arm_peers.tsv names them, and DIR holds the objects. llvm-mca has models of
Neoverse N1 and V1 from version 17 on.

An inner loop is the code from the target of a backward branch to that branch, without another such branch inside. Forward branches count as
not taken. Of the loops of a function, the one with the most multiply-accumulates (MACs) is measured, and of equal ones the shortest.
"""

import argparse
import csv
import dataclasses
import pathlib
import re
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parent
PAGE, PEERS = BENCH / "arm.md", BENCH / "arm_peers.tsv"
BEGIN, END = "<!-- {}: written by bench/arm_cycles.py -->\n", "<!-- end of {} -->\n"
# The columns of the tables, and the processors of llvm-mca. Cortex-A76 has no model there and gets that of Cortex-A57.
CPUS = {"A55": "cortex-a55", "A57, A72": "cortex-a57", "N1": "neoverse-n1", "V1": "neoverse-v1"}
COUNTS = ("instructions", "loads", "stores", "mac_instructions", "macs")

# Group of peers -> our kernels: name, folder and file in src/kernels, function. Where a function has several loops or some weights are
# always zero, also: the MACs of the loop's instructions, and those that have a weight.
KERNELS = {
    "8 bits, NEON": [("dq_gemm_s8_neon", "neon_gemm", "gemm_s8/gemm_s8_neon", "tile")],
    "8 bits, dot products": [("dq_gemm_s8_dotprod", "dotprod", "gemm_s8/gemm_s8_dotprod", "tile")],
    "8 bits, i8mm": [("dq_gemm_s8_i8mm", "i8mm", "gemm_s8/gemm_s8_i8mm", "tile")],
    "float": [("dq_gemm_block_f32_neon", "neon_f32", "gemm_f32/gemm_f32_neon", "strip_whole")],
    "weights of 4 bits, x rounded to 8 bits": [
        ("dq_nbits_s8_dotprod", "dotprod_nbits", "weight_only/nbits_dotprod", "multiply_tile"),
        ("dq_nbits_s8_i8mm", "i8mm", "weight_only/nbits_i8mm", "multiply_tile"),
    ],
    "weights of 4 bits, x as it is": [
        ("dq_nbits_s32_dotprod", "dotprod_nbits", "weight_only/nbits_dotprod", "dq_nbits_s32_dotprod"),
        ("dq_nbits_s32_neon", "neon", "weight_only/nbits_neon", "dq_nbits_s32_neon"),
    ],
    "depthwise, 8 bits": [
        ("dq_dwconv_rows_s8_neon", "neon", "dwconv/dwconv_row_s8_neon", "row"),
        ("dq_dwconv_3x3_s8_neon", "neon", "dwconv/dwconv_row_s8_neon", "rows_of_bytes"),
        ("dq_dwconv_3x3_s8_dotprod", "dotprod_dwconv", "dwconv/dwconv_s8_dotprod", "rows_of_bytes", 192, 144),
        ("dq_dwconv_requantize_s8_neon", "neon", "dwconv/dwconv_requantize_neon", "put"),
        ("dq_dwconv_requantize_s8_dotprod", "dotprod_dwconv", "dwconv/dwconv_s8_dotprod", "put", 192, 144),
    ],
    "depthwise, float": [("dq_dwconv_nchwc_f32_neon", "neon", "elementwise/float_rows_neon", "fconv_vectors")],
    "no peer": [
        ("dq_conv_nc4hw4_s8_neon", "neon", "conv_nc4hw4/nc4hw4_neon", "tile"),
        ("dq_conv_nc4hw4_s8_dotprod", "dotprod", "conv_nc4hw4/nc4hw4_dotprod", "sums"),
        ("dq_winograd_s8_neon", "neon", "winograd/winograd_neon", "product"),
        ("dq_gemm_s16_neon", "neon", "gemm_s16/gemm_s16_neon", "dq_gemm_s16_neon"),
        ("dq_gemv_s16s8_neon", "neon", "gemm_s16/gemm_s16_neon", "dq_gemv_s16s8_neon"),
        ("dq_dwconv_rows_s16_neon", "neon", "gemm_s16/gemm_s16_neon", "dq_dwconv_rows_s16_neon"),
    ],
}

LINE = re.compile(r"^\s*([0-9a-f]+):\s+([a-z][a-z0-9.]*)\s*(.*?)\s*(?://.*)?$")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
TARGET = re.compile(r"(?:0x)?\b([0-9a-f]+)(?:\s+<[^>]*>)?$")
BRANCH = re.compile(r"^(b\.[a-z]+|bl?|cbn?z|tbn?z)$")
INTEGER_MAC = re.compile(r"^[us]m(?:la|ul)l2?$")


@dataclasses.dataclass
class Instruction:
    address: int
    name: str
    operands: str

    @property
    def target(self):
        """The address that a branch jumps to; None for other instructions."""
        found = TARGET.search(self.operands) if BRANCH.match(self.name) else None
        return int(found[1], 16) if found else None

    @property
    def lanes(self):
        """Lanes of the destination; 1 for scalars."""
        found = re.match(r"v\d+\.(\d+)[bhsd]\b", self.operands)
        return int(found[1]) if found else 1

    @property
    def integer_macs(self):
        """Integer multiplications whose products are added up. smull counts: a pairwise addition follows it."""
        if self.name in ("smmla", "ummla", "usmmla"):
            return 8 * self.lanes
        if self.name in ("sdot", "udot", "usdot", "sudot"):
            return 4 * self.lanes
        return self.lanes if INTEGER_MAC.match(self.name) and self.lanes > 1 else 0

    @property
    def float_macs(self):
        return self.lanes if self.name in ("fmla", "fmls", "fmadd") else 0

    @property
    def loads(self):
        return bool(re.match(r"ldp|ldu?r$|ld[1-4]", self.name))

    @property
    def stores(self):
        return bool(re.match(r"stp|stu?r$|st[1-4]", self.name))


def functions(disassembly):
    """Yields (name, instructions) from the text of 'objdump -d --no-show-raw-insn'."""
    name, body = None, []
    for line in disassembly.splitlines():
        if found := FUNCTION.match(line):
            if body:
                yield name, body
            name, body = found[1], []
        elif found := LINE.match(line):
            body.append(Instruction(int(found[1], 16), found[2], found[3]))
    if body:
        yield name, body


def inner_loops(body):
    """The innermost loops of a function, in their order."""
    at = {each.address: i for i, each in enumerate(body)}
    spans = {}
    for i, each in enumerate(body):
        if each.target in at and each.target <= each.address:
            spans[at[each.target]] = i  # of several branches to one place, the last closes the loop
    spans = sorted(spans.items())
    return [body[first:last + 1] for first, last in spans if not any(first < head and end <= last for head, end in spans)]


def counts(loop):
    """The counts of a loop. The epilogue of integer sums may have float MACs, which then do not count."""
    macs = [each.integer_macs for each in loop]
    if not any(macs):
        macs = [each.float_macs for each in loop]
    return dict(zip(COUNTS, (len(loop), sum(each.loads for each in loop), sum(each.stores for each in loop),
                             sum(count > 0 for count in macs), sum(macs))))


def assembly(loop):
    """The loop as llvm-mca reads it: all branches go to its beginning."""
    lines = ["loop:"]
    for each in loop:
        operands = re.sub(r"\s*<[^>]*>", "", each.operands)
        if BRANCH.match(each.name):
            operands = TARGET.sub("loop", operands)
        lines.append(f"{each.name} {operands}")
    return "\n".join(lines) + "\n"


def newest_mca():
    """The llvm-mca of the highest version, or None."""
    tools = [path for folder in ("/usr/bin", "/usr/local/bin") for path in pathlib.Path(folder).glob("llvm-mca-*")]
    return str(max(tools, key=lambda path: int(re.sub(r"\D", "", path.name) or 0))) if tools else None


def cycles(loop, cpu, mca):
    """Cycles of an iteration: the difference between 300 and 100 of them, which leaves out how the first ones begin."""
    def total(iterations):
        command = [mca, "-mtriple=aarch64", f"-mcpu={cpu}", "-mattr=+dotprod,+i8mm", f"-iterations={iterations}", "-instruction-info=0",
                   "-resource-pressure=0"]
        out = subprocess.run(command, input=assembly(loop), capture_output=True, text=True)
        if out.returncode:
            sys.exit(f"{' '.join(command)}:\n{out.stderr}")
        return int(re.search(r"Total Cycles:\s+(\d+)", out.stdout)[1])
    return (total(300) - total(100)) / 200


def measured(loop, mca, macs=None):
    """Counts, and MACs a cycle of each processor. macs: how many count, if not all."""
    row = counts(loop)
    row["macs"] = macs or row["macs"]
    for name, cpu in CPUS.items():
        row[name] = row["macs"] / cycles(loop, cpu, mca)
    return row


def disassembled(path, *options):
    command = ["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", *options, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def loop_of(path, where, macs=None):
    """The measured loop: of a function, or, for a stripped library, the one at an address. macs: its MACs, where several loops differ."""
    if where.startswith("0x"):
        text = disassembled(path, f"--start-address={where}", f"--stop-address={int(where, 16) + 0x2000:#x}")
        found = [loop for _, body in functions(text) for loop in inner_loops(body) if loop[0].address == int(where, 16)]
    else:
        found = [loop for name, body in functions(disassembled(path)) if name == where for loop in inner_loops(body)]
    found = [loop for loop in found if macs in (None, counts(loop)["macs"])]
    if not found:
        sys.exit(f"{path}: no loop in {where}")
    return max(found, key=lambda loop: (counts(loop)["macs"], -len(loop)))


def ours(build, mca):
    """Yields (group, name, row)."""
    for group, kernels in KERNELS.items():
        for name, level, source, function, *macs in kernels:
            library = f"libkernels_{level}.a"
            path = build / "src" / (library + ".p") / f"kernels_{source.replace('/', '_')}.c.o"
            yield group, name, measured(loop_of(path, function, *macs[:1]), mca, *macs[1:])


def read_peers():
    with PEERS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def measure_peers(folder, mca):
    peers = read_peers()
    for peer in peers:
        row = measured(loop_of(folder / peer["object"], peer["loop"]), mca)
        peer.update({key: f"{value:.2f}" if key in CPUS else str(value) for key, value in row.items()})
    with PEERS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, peers[0].keys(), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(peers)


def cells(name, row):
    estimates = "".join(f" {float(row[cpu]):.1f} |" for cpu in CPUS)
    return f"| {name} | {row['instructions']} | {row['loads']} | {row['stores']} | {row['mac_instructions']} | {row['macs']} |{estimates}"


def table(rows):
    """The Markdown table of all groups."""
    yield "| loop | instructions | loads | stores | MAC instructions | MACs | " + " | ".join(CPUS) + " |"
    yield "| --- |" + " --- |" * (len(COUNTS) + len(CPUS))
    group = None
    for each, name, row in rows:
        if each != group:
            yield f"| **{each}** |" + " |" * (len(COUNTS) + len(CPUS))
            group = each
        yield cells(name, row)


def all_rows(build, mca):
    peers = read_peers()
    own = list(ours(build, mca))
    for group in KERNELS:
        yield from ((group, f"`{name}`", row) for each, name, row in own if each == group)
        yield from ((group, f"{peer['library']} `{peer['kernel']}`", peer) for peer in peers if peer["group"] == group)


def print_loops(paths, mca):
    for path in paths:
        for name, body in functions(disassembled(path)):
            for loop in inner_loops(body):
                if counts(loop)["macs"] >= 16:
                    print(f"{loop[0].address:#x}", cells(name, measured(loop, mca)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path)
    parser.add_argument("--peers", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--loops", nargs="+", metavar="OBJECT")
    args = parser.parse_args()
    if not args.build and not args.loops:
        parser.error("a build for aarch64, or --loops")
    mca = newest_mca()
    if not mca:
        sys.exit("there is no llvm-mca-VERSION, of a package llvm-VERSION")
    if args.loops:
        print_loops(args.loops, mca)
        return
    if args.peers:
        measure_peers(args.peers, mca)
    page = PAGE.read_text(encoding="utf-8")
    begin, end = BEGIN.format("loops"), END.format("loops")
    before, after = page.index(begin) + len(begin), page.index(end)
    PAGE.write_text(page[:before] + "\n".join(table(all_rows(args.build, mca))) + "\n" + page[after:], encoding="utf-8")


if __name__ == "__main__":
    main()
