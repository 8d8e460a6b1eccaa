# SPDX-License-Identifier: Apache-2.0
"""Runs a checker of sources or pages on a project that is made for one case."""

import subprocess
import sys
import tempfile
from pathlib import Path


def problem(script, files, expected):
    """None if the checker prints the expected text and fails, or, with `expected` None, passes; else what differs.
    `files` maps the paths of the project to their text."""
    with tempfile.TemporaryDirectory() as folder:
        for path, content in files.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")
        done = subprocess.run([sys.executable, str(script), folder], capture_output=True, text=True, check=False)
    if expected is None:
        return None if done.returncode == 0 else f"expected nothing, got {done.stdout}{done.stderr}"
    good = done.returncode == 1 and expected in done.stdout
    return None if good else f"expected '{expected}', got {done.stdout}{done.stderr}"
