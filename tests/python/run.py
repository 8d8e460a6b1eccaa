#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel, installs it into an empty environment, and runs the tests of the Python package there.

    tests/python/run.py BUILD [PYTEST-ARGUMENT…]     (from the root of the sources)

The environment is BUILD/python; wheel.py says how the wheel is built. Besides pytest's tests: the wheel's size, tag and what it
is linked with; the annotations under mypy --strict; docs/python.md as doctest. The last line is `N passed, N failed, N skipped`."""

import pathlib
import re
import shutil
import subprocess
import sys

from wheel import ROOT, build_wheel, run

MOST_BYTES = 2 * 1024 * 1024
TOOLS = ["auditwheel", "mypy", "pytest", "onnx==1.23.2", "onnxruntime==1.32.0", "ml_dtypes", "numpy"]


def check_wheel(python, wheel):
    """Small, for CPython 3.11 and newer, and for Linux of 2022 and newer."""
    assert wheel.stat().st_size <= MOST_BYTES, f"{wheel.name} has {wheel.stat().st_size} bytes, expected at most {MOST_BYTES}"
    assert "-cp311-abi3-" in wheel.name, wheel.name
    shown = " ".join(run(python, "-m", "auditwheel", "show", wheel).split())
    tag = re.search(r'platform tag: "manylinux_2_(\d+)_', shown) or re.search(r'tag to "manylinux_2_(\d+)_', shown)
    assert tag and int(tag[1]) <= 34, f"{wheel.name} is {tag and tag[0]}, expected at most manylinux_2_34"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    environment = build / "python"
    python = environment / "bin" / "python"
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    shutil.rmtree(environment, ignore_errors=True)
    run(sys.executable, "-m", "venv", environment)
    wheel = build_wheel(python)
    run(python, "-m", "pip", "install", "-q", wheel)
    run(python, "-c", "import dqrun; dqrun.Session('examples/digits_qdq.onnx')", cwd=ROOT)  # with numpy and cffi alone
    run(python, "-m", "pip", "install", "-q", *TOOLS)
    checks = {
        "wheel": lambda: check_wheel(python, wheel),
        "annotations": lambda: run(python, "-m", "mypy", "--strict", "-p", "dqrun", cwd=ROOT / "python"),
        "docs/python.md": lambda: run(python, "-m", "doctest", "docs/python.md", cwd=ROOT),
    }
    for name, check in checks.items():
        try:
            check()
            counts["passed"] += 1
        except AssertionError as why:
            print(f"FAILED: {name}: {why}")
            counts["failed"] += 1
    done = subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning",
                           "tests/python", *sys.argv[2:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, check=False)
    print(done.stdout)
    lines = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", done.stdout, re.MULTILINE)
    if lines:
        for key, number in zip(counts, lines[-1]):
            counts[key] += int(number)
    else:
        counts["failed"] += 1
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
