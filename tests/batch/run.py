#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel, installs it beside pandas, pyarrow, Ray and Dask, and runs the tests of dqrun.batch there.

    tests/batch/run.py BUILD [PYTEST-ARGUMENT…]     (from the root of the sources)

The environment is BUILD/batch; it is kept while requirements.txt is the same. Spark is tested if pyspark is installed in it, and Java. The last line is `N passed, N failed, N skipped`."""

import filecmp
import os
import pathlib
import re
import shutil
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "python"))

from wheel import ROOT, build_wheel  # noqa: E402

REQUIREMENTS = FOLDER / "requirements.txt"


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          cwd=ROOT, **options)
    print(done.stdout, flush=True)
    return done


def make_environment(folder):
    """The Python of an environment with the requirements and the wheel of these sources."""
    python, kept = folder / "bin" / "python", folder / "requirements.txt"
    if not kept.exists() or not filecmp.cmp(REQUIREMENTS, kept, shallow=False):
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, "-m", "venv", folder).check_returncode()
        run(python, "-m", "pip", "install", "-q", "cffi", "-r", REQUIREMENTS).check_returncode()
        shutil.copy(REQUIREMENTS, kept)
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", build_wheel(python)).check_returncode()
    return python


def main():
    python = make_environment(pathlib.Path(sys.argv[1]).resolve() / "batch")
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    if run(python, "-m", "mypy", "--strict", "-p", "dqrun", env={**os.environ, "MYPYPATH": ""}).returncode:
        print("FAILED: mypy --strict")
        counts["failed"] += 1
    else:
        counts["passed"] += 1
    # The closing line is that of the tests of the Python package.
    done = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "conftest", "--durations=5", FOLDER, *sys.argv[2:],
               env={**os.environ, "PYTHONPATH": str(ROOT / "tests" / "python")})
    lines = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", done.stdout, re.MULTILINE)
    for key, number in zip(counts, lines[-1] if lines else (0, 1, 0)):
        counts[key] += int(number)
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
