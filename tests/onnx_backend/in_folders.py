# SPDX-License-Identifier: Apache-2.0
"""Running checks that take an empty folder each."""

import subprocess
import tempfile
from pathlib import Path

MISTAKES = (AssertionError, ImportError, KeyError, OSError, ValueError, subprocess.SubprocessError)


def run(checks):
    """Runs all of them, prints what failed and `N passed, N failed, N skipped`; the program's exit code."""
    failed = 0
    for check in checks:
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(Path(folder))
            except MISTAKES as error:
                failed += 1
                print(f"FAILED {check.__name__}: {error}")
    print(f"{len(checks) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0
