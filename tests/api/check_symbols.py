# SPDX-License-Identifier: Apache-2.0
"""Holds three lists of the public functions against each other: the header's DQ_API declarations, src/dqrun.map, and
the symbols that libdqrun.so defines, each under its version node.

usage: check_symbols.py BUILD   (from the root of the sources)
The last line is `N passed, N failed, N skipped`.
"""

import pathlib
import re
import subprocess
import sys


def declared():
    header = re.sub(r"/\*.*?\*/", "", pathlib.Path("include/dqrun/dqrun.h").read_text(), flags=re.DOTALL)
    names = re.findall(r"^DQ_API\s[^;(]*?\b(dq_\w+)\s*\(", header, re.MULTILINE)
    assert len(names) == len(re.findall(r"^DQ_API\s", header, re.MULTILINE)), "a DQ_API declaration was not understood"
    return names


def listed():
    """(name, node) of each symbol of the version script."""
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path("src/dqrun.map").read_text(), flags=re.DOTALL)
    symbols = []
    for node, body in re.findall(r"(\w+)\s*\{(.*?)\}", text, re.DOTALL):
        exported = re.search(r"global:(.*?)(?:local:|$)", body, re.DOTALL).group(1)
        symbols += [(name, node) for name in re.findall(r"(\w+);", exported)]
    return symbols


def defined(build):
    """(name, node) of each symbol that programs can link to; version nodes themselves are left out."""
    lines = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", f"{build}/src/libdqrun.so"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.splitlines()
    symbols = [line.split()[-2:] for line in lines]
    return [tuple(re.split("@+", name + ("" if "@" in name else "@"))) for kind, name in symbols if kind != "A"]


def main():
    passed = failed = 0

    def check(what, good):
        nonlocal passed, failed
        passed, failed = passed + good, failed + (not good)
        if not good:
            print(f"FAILED: {what}")

    def same(what, got, expected):
        extra, missing = sorted(set(got) - set(expected)), sorted(set(expected) - set(got))
        check(f"{what}: only in the first: {extra}, only in the second: {missing}", not extra and not missing)

    header, script, library = declared(), listed(), defined(sys.argv[1])
    same("src/dqrun.map and the header", [name for name, _ in script], header)
    same("libdqrun.so and src/dqrun.map", library, script)
    names = [name for name, _ in script]
    check("src/dqrun.map is sorted, each name once", names == sorted(set(names)))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
