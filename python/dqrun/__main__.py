# SPDX-License-Identifier: Apache-2.0
"""The command: ``dqrun`` and ``python -m dqrun``."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Runs the command line with ``sys.argv`` and returns its exit code."""
    from ._native import ffi, lib

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the command has a handler of its own
    words = [b"dqrun", *map(os.fsencode, sys.argv[1:])]
    arguments = [ffi.new("char[]", word) for word in words]
    return int(lib.dqrun_python_command(len(words), ffi.new("char *[]", [*arguments, ffi.NULL])))


if __name__ == "__main__":
    sys.exit(main())
