# SPDX-License-Identifier: Apache-2.0
"""Runs a program so that it sees a processor of a lower ISA level (as_level.c), for compare.py --as LEVEL.

Where cpuid can fault, as_level.c alone does it. Elsewhere the engines are copied, and each cpuid in the copies becomes UD0, an invalid
instruction of the same size, which as_level.c answers. objdump (binutils) says where they are. dqrun itself is told by --isa."""

import importlib.util
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

LEVELS = {"avx2": "AVX2", "avxvnni": "AVX-VNNI", "avx512": "AVX-512", "avx512vnni": "AVX-512 VNNI", "avx512vbmi": "AVX-512 VBMI"}
LEVEL = "DQRUN_BENCH_AS"  # set in the processes that as_level.c is loaded into
COPIES = "DQRUN_BENCH_AS_COPIES"
CPUID, UD0 = b"\x0f\xa2", b"\x0f\xff"


def segments(data):
    """Address, offset and size of each executable segment of a 64-bit ELF file."""
    start, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for at in range(start, start + size * count, size):
        kind, flags, offset, address, _, bytes_of_file = struct.unpack_from("<IIQQQQ", data, at)
        if kind == 1 and flags & 1:
            yield address, offset, bytes_of_file


def replace_cpuid(path):
    data = bytearray(path.read_bytes())
    if data[:5] != b"\x7fELF\x02" or CPUID not in data:
        return
    code, text = list(segments(data)), subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True)
    for found in re.finditer(r"^ *([0-9a-f]+):\tcpuid", text.stdout, re.MULTILINE):
        address = int(found[1], 16)
        at = next(address - first + offset for first, offset, size in code if first <= address < first + size)
        assert data[at:at + 2] == CPUID
        data[at:at + 2] = UD0
    path.write_bytes(data)


def copy_packages(names, folder):
    """Copies of Python packages in which nothing asks the processor itself."""
    for name in names:
        copy = folder / name
        shutil.copytree(Path(importlib.util.find_spec(name).origin).parent, copy)
        for data in sorted(importlib.util.find_spec(name).submodule_search_locations):
            for info in Path(data).parent.glob(f"{name}-*.dist-info"):  # where the version stands
                shutil.copytree(info, folder / info.name)
        for path in copy.rglob("*.so*"):
            replace_cpuid(path)


def real_environment():
    """The environment of a process that sees the processor as it is, also where this one does not."""
    environment = {key: value for key, value in os.environ.items() if LEVEL not in os.environ or key not in ("LD_PRELOAD", LEVEL, COPIES)}
    if COPIES in os.environ:  # the copies come first
        environment["PYTHONPATH"] = environment["PYTHONPATH"].partition(os.pathsep)[2]
    return environment


def run(level, packages):
    """This command line again, in a process for which the processor has nothing above `level`. Returns its exit status."""
    with tempfile.TemporaryDirectory(prefix="dqrun-bench-") as folder:
        mask = Path(folder) / "as_level.so"
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-o", mask, Path(__file__).with_name("as_level.c")],
                       check=True)
        environment = {**os.environ, "LD_PRELOAD": str(mask), LEVEL: level}
        if subprocess.run(["true"], env=environment, stderr=subprocess.DEVNULL, check=False).returncode:
            copy_packages(packages, Path(folder))
            environment |= {COPIES: "1", "PYTHONPATH": os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])}
        return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode
