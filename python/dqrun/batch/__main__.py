# SPDX-License-Identifier: Apache-2.0
"""The command ``python -m dqrun.batch``: runs a model over Parquet files."""

from __future__ import annotations

import argparse
import sys

from .._errors import Error
from ._parquet import Progress, run_parquet
from ._pool import WorkerDied


def _pairs(words: list[str]) -> dict[str, str] | None:
    """``NAME=COLUMN`` or ``NAME``, as a mapping."""
    pairs = (word.partition("=") for word in words)
    return {name: column or name for name, _, column in pairs} or None


def _quiet(progress: Progress) -> None:
    pass


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0 done, 1 an error, 2 wrong usage, 130 interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m dqrun.batch",
        description="Runs an ONNX model over the rows of Parquet files. A run that was ended early goes on when it is started again.")
    parser.add_argument("model", help="the .onnx file")
    parser.add_argument("source", nargs="+", help="Parquet files, or folders of them")
    parser.add_argument("target", help="the folder of the results")
    parser.add_argument("--id", required=True, metavar="COLUMN", help="the column that tells rows apart")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=COLUMN", help="the column of an input; default: its name")
    parser.add_argument("--output", action="append", default=[], metavar="NAME=COLUMN", help="an output and its column; default: all")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes, each on one core; default: 1")
    parser.add_argument("--batch-size", type=int, default=256, metavar="N", help="rows of a run; default: 256")
    parser.add_argument("--no-resume", action="store_true", help="refuse a target that has results already")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    o = parser.parse_args(arguments)
    try:
        done = run_parquet(o.model, o.source, o.target, id_column=o.id, inputs=_pairs(o.input), outputs=_pairs(o.output),
                           workers=o.workers, batch_size=o.batch_size, resume=not o.no_resume, progress=_quiet if o.quiet else None)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    except (Error, OSError, ImportError, WorkerDied) as why:
        text = why.strerror if isinstance(why, OSError) and why.strerror and not why.filename else str(why)
        print(f"dqrun.batch: {text}", file=sys.stderr)
        return 1
    if not o.quiet:
        kept = f", {done.resumed_rows:,} of them by earlier runs" if done.resumed_rows else ""
        failed = f"; {done.failed_rows:,} failed, see {o.target}/_errors" if done.failed_rows else ""
        print(f"{done.rows:,} rows{kept}{failed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
