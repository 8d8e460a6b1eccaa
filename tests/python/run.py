#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel, installs it into an empty environment, and runs the tests of the Python package there.

    tests/python/run.py BUILD [PYTEST-ARGUMENT…]     (from the root of the sources)

The wheel is built in build-wheel/, from a source distribution if all changes are committed (git is what makes one), the environment
made in BUILD/python. Besides pytest's tests: the wheel's size, tag and what it
is linked with; the annotations under mypy --strict; docs/python.md as doctest. The last line is `N passed, N failed, N skipped`."""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MOST_BYTES = 2 * 1024 * 1024
TOOLS = ["auditwheel", "mypy", "pytest", "onnx==1.23.2", "onnxruntime==1.32.0", "ml_dtypes", "numpy"]


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **options)
    print(done.stdout)
    if done.returncode:
        raise AssertionError(f"{command[0]} ended with exit code {done.returncode}")
    return done.stdout


def unpacked_sdist(folder):
    """The unpacked source distribution, or None: outside of git, and with changes that are not committed, there is none to test."""
    status = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False)
    if status.returncode or status.stdout:
        return None
    tools = folder / "tools"
    run(sys.executable, "-m", "venv", tools)
    run(tools / "bin" / "python", "-m", "pip", "install", "-q", "build")
    run(tools / "bin" / "python", "-m", "build", "-q", "--sdist", "-o", folder / "dist", ROOT)
    archive, = (folder / "dist").glob("dqrun-*.tar.gz")
    shutil.rmtree(folder / "source", ignore_errors=True)
    shutil.unpack_archive(archive, folder / "source", filter="data")
    source, = (folder / "source").iterdir()
    return source


def build_wheel(python):
    folder = ROOT / "build-wheel"
    shutil.rmtree(folder / "dist", ignore_errors=True)
    source = unpacked_sdist(folder)
    print("the wheel is built from", "a source distribution" if source else "the work tree")
    # Sources of another folder would confuse the incremental build of the work tree.
    build = folder / ("build-sdist" if source else "build")
    run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder / "dist", "-Cbuild-dir=" + str(build), source or ROOT)
    wheel, = (folder / "dist").glob("dqrun-*.whl")
    return wheel


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
