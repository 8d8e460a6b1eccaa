# SPDX-License-Identifier: Apache-2.0
"""The folder of results: files that are whole or not there, and the manifest that says which run they belong to.

    TARGET/part-000000.parquet …           results, a file a block
    TARGET/_errors/part-000000.parquet …   id and message of the rows that failed, for blocks that have some
    TARGET/_done/000000.json …             one for each finished block, written last
    TARGET/_manifest.json                  model, input and options of the run
    TARGET/_lock                           locked by the process that writes

Readers of datasets skip names that begin with an underscore or a dot."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from .._errors import BadInput, InvalidArgument

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclasses.dataclass(frozen=True)
class Block:
    """A row group of the input: what one worker computes at a time and writes as one file.

    Attributes:
        index: number in the order of the input.
        path: file.
        row_group: number in the file; None for the empty block of an input without rows.
        rows: rows of the row group.
    """

    index: int
    path: str
    row_group: int | None
    rows: int

    def part(self, target: pathlib.Path) -> pathlib.Path:
        return target / f"part-{self.index:06d}.parquet"

    def errors(self, target: pathlib.Path) -> pathlib.Path:
        return target / "_errors" / f"part-{self.index:06d}.parquet"

    def record(self, target: pathlib.Path) -> pathlib.Path:
        return target / "_done" / f"{self.index:06d}.json"


def is_full(error: OSError) -> bool:
    """Whether a file could not be written for want of space."""
    return error.errno in _FULL


def _sync_folder(folder: pathlib.Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def whole_file(path: pathlib.Path, sync: bool = True) -> Iterator[BinaryIO]:
    """A file that appears under its name when the block ends, and not at all if it raises: written under a temporary name in the same
    folder, synchronised to the disk with `sync`, renamed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def write_json(path: pathlib.Path, value: Any, sync: bool = True) -> None:
    with whole_file(path, sync) as file:
        file.write(json.dumps(value, indent=1, sort_keys=True).encode() + b"\n")


def clean(target: pathlib.Path) -> None:
    """Removes the temporary files of processes that were killed."""
    for folder in (target, target / "_errors", target / "_done"):
        for path in folder.glob(".*.tmp"):
            with contextlib.suppress(OSError):
                path.unlink()


@contextlib.contextmanager
def locked(target: pathlib.Path) -> Iterator[None]:
    """Refuses a folder that another process writes to. The lock goes with the process."""
    fd = os.open(target / "_lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidArgument(f"{target}: another process writes to this folder") from None
        yield
    finally:
        os.close(fd)


def fingerprint(path: pathlib.Path) -> dict[str, Any]:
    """What tells a Parquet file from another: its name, size, time of modification, and the SHA-256 of its footer, which holds the
    schema, the position and the statistics of each column of each row group."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 8, 0))
        length = int.from_bytes(file.read(4), "little")
        if size < 12 or file.read(4) not in (b"PAR1", b"PARE") or length > size - 12:
            raise BadInput(f"{path} is not a Parquet file")
        file.seek(size - 8 - length)
        footer = hashlib.sha256(file.read()).hexdigest()
        modified = os.fstat(file.fileno()).st_mtime_ns
    return {"name": path.name, "bytes": size, "modified_ns": modified, "footer_sha256": footer}


_TITLES = {"model_sha256": "the SHA-256 of the model", "dqrun": "the version of dqrun"}


def _difference(old: Any, new: Any, title: str) -> str | None:
    """The first difference of two manifests in words."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = (_difference(old.get(key), new.get(key), _TITLES.get(key, key if not title else f"{title} {key}"))
                 for key in sorted({*old, *new}))
        return next((text for text in found if text), None)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        found = (_difference(a, b, f"{title} {i + 1}") for i, (a, b) in enumerate(zip(old, new)))
        return next((text for text in found if text), None)
    if isinstance(old, list) and isinstance(new, list):
        return f"{title}: {len(new)} files, there were {len(old)}"
    return None if old == new else f"{title} is {new}, it was {old}"


def open_manifest(target: pathlib.Path, manifest: dict[str, Any], resume: bool) -> None:
    """Writes the manifest into an empty folder, or holds it against the one that is there.

    Raises:
        InvalidArgument: the folder has other files, or results of another model, input or options, or any with `resume` False.
    """
    path = target / "_manifest.json"
    if path.exists():
        if not resume:
            raise InvalidArgument(f"{target} has results already: resume them, or give another folder")
        try:
            old = json.loads(path.read_text())
        except ValueError as why:
            raise InvalidArgument(f"{path} cannot be read: {why}") from why
        changed = _difference(old, manifest, "")
        if changed:
            raise InvalidArgument(f"{target} cannot be resumed: {changed}. Give another folder for the new run")
    else:
        foreign = sorted(entry.name for entry in target.iterdir() if entry.name != "_lock" and not entry.name.endswith(".tmp"))
        if foreign:
            raise InvalidArgument(f"{target} has no manifest and is not empty: it has {foreign[0]}")
        write_json(path, manifest)
        _sync_folder(target)
    (target / "_errors").mkdir(exist_ok=True)
    (target / "_done").mkdir(exist_ok=True)


def read_record(block: Block, target: pathlib.Path) -> dict[str, Any] | None:
    """The record of a block that is finished and whose files are whole; None for one that has to be computed."""
    try:
        record: dict[str, Any] = json.loads(block.record(target).read_text())
        for path, size in ((block.part(target), record["part_bytes"]), (block.errors(target), record["errors_bytes"])):
            if size is not None and path.stat().st_size != size:
                return None
    except (OSError, ValueError, KeyError):
        return None
    return record


def written(path: pathlib.Path, write: Callable[[BinaryIO], None] | None) -> int | None:
    """Has `write` make the file and returns its size; without `write` there is to be no file."""
    if write is None:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return None
    with whole_file(path) as file:
        write(file)
    return path.stat().st_size
