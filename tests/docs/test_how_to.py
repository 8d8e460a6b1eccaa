#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The worked examples of docs/how-to fit the tree: their diffs apply to it, and their new C files compile.

    tests/docs/test_how_to.py

A page's diffs and files (<!-- file: NAME -->) are put into a copy of the sources. Files of instruction sets that this compiler does
not know are only applied. Without git, which applies the diffs, the pages are skipped. The last line is `N passed, N failed, N skipped`.
"""

import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("src", "include", "tests", "schemas", "tools")
DIFF = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = {"_sse41.c": "-msse4.1", "_avx2.c": "-mavx2", "_vsx.c": None}  # None: of another processor
COMPILE = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L", "-DDQ_BUILDING", "-Iinclude", "-Isrc", "-Itests",
           "-fsyntax-only"]


def compiles(name, folder):
    flags = next((flag for end, flag in FLAGS.items() if name.endswith(end)), "")
    if flags is None or (flags and platform.machine() != "x86_64"):
        return ""
    done = subprocess.run([*COMPILE, *([flags] if flags else []), name], cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr


def problem(page):
    """What is wrong with the page's example; empty: nothing."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for name in COPIED:
            shutil.copytree(ROOT / name, Path(folder) / name, ignore=shutil.ignore_patterns("__pycache__"))
        files = FILE.findall(text)
        for name, content in files:
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")
        for diff in DIFF.findall(text):
            done = subprocess.run(["git", "apply", "-"], cwd=folder, input=diff, capture_output=True, text=True, check=False)
            if done.returncode:
                return done.stderr
        return "".join(compiles(name, folder) for name, _ in files if name.endswith(".c"))


def main():
    pages = [page for page in sorted((ROOT / "docs" / "how-to").glob("*.md")) if DIFF.search(page.read_text(encoding="utf-8"))]
    if not shutil.which("git"):
        print(f"there is no git\n0 passed, 0 failed, {len(pages)} skipped")
        return 0
    failed = 0
    for page in pages:
        why = problem(page)
        if why:
            failed += 1
            print(f"FAILED docs/how-to/{page.name}: {why}")
    print(f"{len(pages) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
