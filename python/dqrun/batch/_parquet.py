# SPDX-License-Identifier: Apache-2.0
"""Runs a model over Parquet files."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import pathlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, Union

from .. import __version__
from .._errors import BadInput, Error, InvalidArgument
from .._model import ModelSource
from . import _files, _pool
from ._columns import empty_table
from ._files import Block
from ._predictor import Predictor

Path = Union[str, "os.PathLike[str]"]

MIN_ROW_GROUP_BYTES = 64 << 20
"""Results that a worker gathers before it writes a row group: one a file, if they are not larger."""


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a run is, or how it ended.

    Attributes:
        rows: rows that are done, with those of earlier runs and those that failed.
        total_rows: rows of the input.
        failed_rows: rows that are in the table of errors.
        resumed_rows: rows that earlier runs had done.
        blocks: blocks (row groups) that are done.
        total_blocks: blocks of the input.
        seconds: since this run began.
    """

    rows: int
    total_rows: int
    failed_rows: int
    resumed_rows: int
    blocks: int
    total_blocks: int
    seconds: float

    def __str__(self) -> str:
        done = self.rows - self.resumed_rows
        rate = done / self.seconds if self.seconds > 0 else 0.0
        failed = f", {self.failed_rows:,} failed" if self.failed_rows else ""
        left = f", {(self.total_rows - self.rows) / rate:,.0f} s left" if rate and self.rows < self.total_rows else ""
        return f"{self.rows:,} of {self.total_rows:,} rows{failed}, {rate:,.0f} rows/s{left}"


def _pyarrow(module: str = "pyarrow") -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as why:
        raise ImportError("run_parquet needs pyarrow: pip install 'dqrun[parquet]'") from why


# ---- In a worker ---------------------------------------------------------------------------------------------------


def _load(predictor: Predictor, target: pathlib.Path, id_column: str, batch_size: int) -> None:
    """Loads the model and packs its weights, in the parent of the workers."""
    predictor.warm_up(batch_size)


def _setup(predictor: Predictor, target: pathlib.Path, id_column: str, batch_size: int) -> Callable[[Block], dict[str, Any]]:
    """Returns the function that computes a block."""
    pa = _pyarrow()
    pa.set_cpu_count(1)
    return lambda block: _compute(predictor, block, target, id_column, batch_size)


class _NoShape(Exception):
    """A block has no results, and the model does not tell the shape that they would have."""


def _compute(predictor: Predictor, block: Block, target: pathlib.Path, id_column: str, batch_size: int) -> dict[str, Any]:
    """Computes a block and writes its files: results, errors, and the record at the end."""
    pa, pq = _pyarrow(), _pyarrow("pyarrow.parquet")
    failed: list[Any] = []
    part_bytes, schema = None, None
    try:
        with _files.whole_file(block.part(target)) as file:
            schema = _write_results(predictor, block, file, id_column, batch_size, failed)
        part_bytes = block.part(target).stat().st_size
    except _NoShape:
        _files.written(block.part(target), None)
    errors = pa.concat_tables(failed) if failed else None

    def write_errors(out: BinaryIO) -> None:
        pq.write_table(errors, out)

    record = {"rows": block.rows, "failed_rows": len(errors) if errors else 0, "schema": schema, "part_bytes": part_bytes,
              "errors_bytes": _files.written(block.errors(target), write_errors if errors else None)}
    # A record that a power failure takes, or that outlives its files, only has the block computed once more.
    _files.write_json(block.record(target), record, sync=False)
    return record


def _write_results(predictor: Predictor, block: Block, file: BinaryIO, id_column: str, batch_size: int, failed: list[Any]) -> str | None:
    """Writes the rows that did not fail, and appends tables of the others to `failed`. Returns the schema in words; None without rows."""
    pa, pq = _pyarrow(), _pyarrow("pyarrow.parquet")
    columns = [id_column, *predictor.inputs.values()]
    groups = [] if block.row_group is None else [block.row_group]
    writer, schema = None, None
    gathered: list[Any] = []
    gathered_bytes = 0
    with pq.ParquetFile(block.path) as source, contextlib.ExitStack() as stack:
        for batch in source.iter_batches(batch_size, row_groups=groups, columns=columns, use_threads=False):
            result = predictor(batch)
            messages = result.column("error")
            if messages.null_count < len(messages):
                wrong = messages.is_valid()
                failed.append(pa.table({id_column: result.column(id_column).filter(wrong), "message": messages.filter(wrong)}))
                result = result.filter(messages.is_null())
            result = result.drop_columns(["error"])
            if len(result):
                if writer is None:
                    schema = result.schema
                    writer = stack.enter_context(pq.ParquetWriter(file, schema))
                _check_schema(schema, result.schema)
                gathered.append(result)
                gathered_bytes += result.nbytes
                if gathered_bytes >= MIN_ROW_GROUP_BYTES:
                    writer.write_table(pa.Table.from_batches(gathered))
                    gathered, gathered_bytes = [], 0
        if gathered and writer is not None:
            writer.write_table(pa.Table.from_batches(gathered))
        if writer is None:
            if not predictor.declares_shapes:
                raise _NoShape
            empty = empty_table(source.schema_arrow).select(columns)
            with pq.ParquetWriter(file, predictor(empty).drop_columns(["error"]).schema):
                pass
    return str(schema) if schema is not None else None


def _check_schema(first: Any, other: Any) -> None:
    for a, b in zip(first, other):
        if a.type != b.type:
            raise BadInput(f"output column '{a.name}' has type {b.type}, before it had {a.type}: all rows need results of one shape")


# ---- The driver ----------------------------------------------------------------------------------------------------


def _expand(source: Path | Sequence[Path], target: pathlib.Path) -> list[pathlib.Path]:
    """The Parquet files of the input, in order."""
    given = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    found: list[pathlib.Path] = []
    for path in map(pathlib.Path, given):
        if path.is_dir():
            if path.resolve() == target.resolve():
                raise InvalidArgument(f"{target} is both the source and the target")
            inside = sorted(file for file in path.glob("*.parquet") if not file.name.startswith((".", "_")))
            if not inside:
                raise InvalidArgument(f"{path} has no .parquet file")
            found += inside
        elif path.exists():
            found.append(path)
        else:
            raise FileNotFoundError(f"there is no file {path}")
    if not found:
        raise InvalidArgument("the source is an empty list")
    return found


def _blocks(files: Sequence[pathlib.Path], predictor: Predictor, id_column: str) -> list[Block]:
    """The row groups of the input. Refuses files whose columns do not fit, before anything runs."""
    pq = _pyarrow("pyarrow.parquet")
    blocks: list[Block] = []
    id_type = None
    for path in files:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            for name in (id_column, *predictor.inputs.values()):
                if name not in schema.names:
                    raise BadInput(f"{path} has no column '{name}': it has {', '.join(schema.names) or 'none'}")
            id_type = id_type or schema.field(id_column).type
            if schema.field(id_column).type != id_type:
                raise BadInput(f"{path}: column '{id_column}' has type {schema.field(id_column).type}, in {files[0]} it has {id_type}")
            try:
                predictor(empty_table(schema))
            except Error as why:
                raise type(why)(f"{path}: {why}") from why
            for i in range(file.metadata.num_row_groups):
                rows = file.metadata.row_group(i).num_rows
                if rows:
                    blocks.append(Block(len(blocks), str(path.absolute()), i, rows))
    return blocks or [Block(0, str(files[0].absolute()), None, 0)]


class _Terminal:
    """A line on standard error that shows the progress, if that is a terminal."""

    def __init__(self) -> None:
        self._on, self._width, self._next = sys.stderr.isatty(), 0, 0.0

    def __call__(self, progress: Progress) -> None:
        if self._on and (time.monotonic() >= self._next or progress.blocks == progress.total_blocks):
            text = str(progress)
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
            self._width, self._next = len(text), time.monotonic() + 0.1

    def end(self) -> None:
        if self._width:
            sys.stderr.write("\n")


def run_parquet(model: ModelSource, source: Path | Sequence[Path], target: Path, *, id_column: str,
                inputs: Mapping[str, str] | Sequence[str] | None = None, outputs: Mapping[str, str] | Sequence[str] | None = None,
                workers: int = 1, batch_size: int = 256, resume: bool = True,
                progress: Callable[[Progress], None] | None = None) -> Progress:
    """Runs a model over Parquet files and writes the results as Parquet files.

    Args:
        model: as for :class:`Predictor`.
        source: a file, a folder (its ``*.parquet`` in the order of their names), or a list of these.
        target: the folder of the results; made if it is not there. It may be empty, or have been begun by the same run.
        id_column: a column that is copied to the results and to the table of errors.
        inputs, outputs: columns, as for :class:`Predictor`.
        workers: processes; each computes on one core. They share the model's weights, and each holds one batch.
        batch_size: rows of a run.
        resume: True goes on with what an earlier run left; False refuses a target that has results.
        progress: called after each block; None shows a line if standard error is a terminal.

    Returns:
        The counts at the end.

    Each row group of the input becomes ``part-NNNNNN.parquet`` with the id and a column for each output, in the order of the input.
    Rows that fail are not in it: their ids and messages are in the file of the same name in ``_errors/``. A file has its name only
    when it is whole. A worker that is killed is replaced. A run that ends early, for whatever reason, goes on where it was
    when it is started again.

    Raises:
        InvalidArgument: the arguments are wrong, or the target belongs to another model, input or other options.
        BadInput: a file lacks a column, or a column has another type or shape than the input.
        OSError: a file cannot be read or written; ``errno.ENOSPC`` for a full disk.
        WorkerDied: workers end without an answer again and again.
        KeyboardInterrupt: Ctrl-C; temporary files are removed.
    """
    folder = pathlib.Path(target)
    for name, value in (("workers", workers), ("batch_size", batch_size)):
        if value < 1:
            raise InvalidArgument(f"{name} is {value}, expected 1 or more")
    if id_column == "message":
        raise InvalidArgument("id_column is 'message', which is a column of the table of errors")
    _pyarrow()
    begin = time.monotonic()
    predictor = Predictor(model, inputs, outputs, threads=1, keep=[id_column], on_error="column")
    files = _expand(source, folder)
    blocks = _blocks(files, predictor, id_column)
    manifest = {"format": 1, "dqrun": __version__, "model_sha256": predictor.sha256,
                "input": [_files.fingerprint(path) for path in files],
                "options": {"id_column": id_column, "inputs": predictor.inputs, "outputs": predictor.outputs, "batch_size": batch_size}}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _files.locked(folder):
            _files.clean(folder)
            _files.open_manifest(folder, manifest, resume)
            return _run(predictor, blocks, folder, id_column, batch_size, workers, progress, begin)
    except OSError as why:
        if not _files.is_full(why):
            raise
        raise OSError(why.errno, f"no space left to write to {folder}: free some and run again, finished files are kept") from why


def _run(predictor: Predictor, blocks: Sequence[Block], target: pathlib.Path, id_column: str, batch_size: int, workers: int,
         progress: Callable[[Progress], None] | None, begin: float) -> Progress:
    records = {block.index: _files.read_record(block, target) for block in blocks}
    waiting = [block for block in blocks if records[block.index] is None]
    done = [record for record in records.values() if record is not None]
    resumed = rows = sum(record["rows"] for record in done)
    failed = sum(record["failed_rows"] for record in done)
    schema = next((record["schema"] for record in done if record["schema"]), None)
    total = sum(block.rows for block in blocks)

    def state(finished: int) -> Progress:
        return Progress(rows, total, failed, resumed, finished, len(blocks), time.monotonic() - begin)

    terminal = _Terminal()
    show = progress or terminal
    answers = _pool.compute_all(waiting, workers, _load, _setup, (predictor, target, id_column, batch_size))
    try:
        for finished, (block, record) in enumerate(answers, len(done) + 1):
            if isinstance(record, BaseException):
                raise _with_place(record, block)
            schema = schema or record["schema"]
            if record["schema"] not in (None, schema):
                raise BadInput(f"{block.path}, row group {block.row_group}: the results have the columns\n{record['schema']}\nothers "
                               f"have\n{schema}")
            rows, failed = rows + record["rows"], failed + record["failed_rows"]
            show(state(finished))
    finally:
        answers.close()  # type: ignore[attr-defined]
        _files.clean(target)
        terminal.end()
    return state(len(blocks))


def _with_place(error: BaseException, block: Block) -> BaseException:
    """The error with the block in its message, where its class allows."""
    if isinstance(error, Error):
        return type(error)(f"{block.path}, row group {block.row_group}: {error}")
    return error
