# SPDX-License-Identifier: Apache-2.0
"""Predictors: picklable functions from a batch of rows to a batch of results."""

from __future__ import annotations

import collections
import contextlib
import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._errors import BadInput, BadModel, InvalidArgument, OutOfMemory, Unsupported
from .._model import Limits, Model, ModelSource, ValueInfo, _sha256
from .._session import Session
from . import _columns
from ._columns import Array, Column

MAX_CACHED_SESSIONS = 8
"""Sessions that a process keeps; the one that was used longest ago goes first."""

_ROW_ERRORS = (BadInput, BadModel, Unsupported, OutOfMemory)
_sessions: collections.OrderedDict[Any, Session] = collections.OrderedDict()
_lock = threading.Lock()


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)  # a thread of the parent may have held it


class _Source:
    """A model by path and SHA-256, or by its bytes: what is pickled, and the key of the cache."""

    def __init__(self, model: ModelSource) -> None:
        if isinstance(model, Model):
            state = model.__getstate__()
        else:
            state = {"sha256": None, "limits": Limits(), "schemas": (), "base_dir": None, "packed": None}
            if isinstance(model, (str, os.PathLike)):
                state["source"] = os.path.abspath(os.fspath(model))
                state["sha256"] = _sha256(state["source"])
            elif isinstance(model, (bytes, bytearray, memoryview)):
                state["source"] = bytes(model)
            elif hasattr(model, "SerializeToString"):
                state["source"] = model.SerializeToString()
            else:
                raise InvalidArgument(f"a model is given as {type(model).__name__}, expected a path, bytes or onnx.ModelProto")
        state["sha256"] = state["sha256"] or hashlib.sha256(state["source"]).hexdigest()
        self.state: dict[str, Any] = state

    @property
    def name(self) -> str:
        return self.state["source"] if isinstance(self.state["source"], str) else "model"

    def session(self, threads: int) -> Session:
        """The session of this process. The first call loads the model and checks its SHA-256."""
        path = self.name if isinstance(self.state["source"], str) else None
        key = (path, self.state["sha256"], self.state["limits"], self.state["schemas"], self.state["base_dir"], self.state["packed"], threads)
        with _lock:
            found = _sessions.get(key)
            if found is None:
                model = Model.__new__(Model)
                model.__setstate__(self.state)
                found = _sessions[key] = Session(model, threads=threads)
                if len(_sessions) > MAX_CACHED_SESSIONS:
                    _sessions.popitem(last=False)
            _sessions.move_to_end(key)
            return found


def _mapping(what: str, given: Mapping[str, str] | Sequence[str] | None, infos: list[ValueInfo],
             default: list[str]) -> dict[str, str]:
    """Columns by name of input or output; refuses names that the model does not have."""
    if isinstance(given, str):
        given = [given]
    names = dict(given) if isinstance(given, Mapping) else {name: name for name in (default if given is None else given)}
    there = [info.name for info in infos]
    for name in names:
        if name not in there:
            raise InvalidArgument(f"the model has no {what} '{name}': it has {', '.join(there)}")
    if not names:
        raise InvalidArgument(f"the predictor has no {what}")
    return names


class Predictor:
    """Runs a model on the rows of a batch.

    Args:
        model: a path, the bytes of a .onnx file, an ``onnx.ModelProto`` or a :class:`dqrun.Model`.
        inputs: the column of each input, ``{"image": "pixels"}``; a sequence of names where both have the same; None: all inputs
            without a default.
        outputs: the column of each output, likewise; None: all outputs.
        threads: threads of a run. 1 suits workers, of which there is one a core; 0 is all cores.
        keep: columns of the batch that the result has, too, before the outputs.
        on_error: ``"raise"``: a row that fails raises, with its number in the batch. ``"column"``: the result has a column ``error``
            with the message of each row that failed and None for the others. All other rows have their results.

    Raises:
        InvalidArgument: a name is not the model's, or two columns of the result have one name.
        BadModel, Unsupported: the model cannot run.

    Rows are along the first axis of each input and output. A model whose inputs have a fixed first dimension runs on pieces of that
    many rows; the last piece is filled up with copies of its last row, whose results are dropped. Each row must have its result
    whatever the other rows are: a model that computes a scale over the whole batch (DynamicQuantizeLinear) gives other
    results in other batches.

    The model is loaded once in a process, for all predictors of the same file, SHA-256 and `threads`. Predictors are picklable: a
    path with its SHA-256, or the bytes. Data in other files, which ONNX calls external, is not part of the SHA-256.

    >>> predict = Predictor("examples/digits_qdq.onnx")
    >>> predict({"image": np.zeros((2, 1, 8, 8), np.float32)})["scores"].shape
    (2, 10)
    """

    def __init__(self, model: ModelSource, inputs: Mapping[str, str] | Sequence[str] | None = None,
                 outputs: Mapping[str, str] | Sequence[str] | None = None, threads: int = 1, *, keep: Sequence[str] = (),
                 on_error: str = "raise") -> None:
        if on_error not in ("raise", "column"):
            raise InvalidArgument(f"on_error is '{on_error}', expected 'raise' or 'column'")
        self._source, self._threads, self._on_error = _Source(model), threads, on_error
        self._keep = [keep] if isinstance(keep, str) else list(keep)
        session = self._source.session(threads)
        self._inputs = _mapping("input", inputs, session.inputs, [info.name for info in session.inputs if not info.optional])
        self._outputs = _mapping("output", outputs, session.outputs, [info.name for info in session.outputs])
        for info in [*session.inputs, *session.outputs]:
            if info.name in (*self._inputs, *self._outputs) and not info.type.startswith("tensor("):
                raise InvalidArgument(f"'{info.name}' is a {info.type}: only tensors have rows")
        columns = [*self._keep, *self._outputs.values(), *(["error"] if on_error == "column" else [])]
        for name in columns:
            if columns.count(name) > 1:
                raise InvalidArgument(f"the result would have two columns '{name}'")
        self._fixed_rows = self._fixed_batch(session.inputs)

    def _fixed_batch(self, infos: list[ValueInfo]) -> int | None:
        """The first dimension that inputs declare; None if it is free."""
        fixed = {info.name: info.shape[0] for info in infos
                 if info.name in self._inputs and info.shape and isinstance(info.shape[0], int)}
        for info in infos:
            if info.name in self._inputs and info.shape == ():
                raise InvalidArgument(f"input '{info.name}' is a scalar: it has no rows")
        if len(set(fixed.values())) > 1:
            raise InvalidArgument("the inputs have different fixed numbers of rows: "
                                  + ", ".join(f"'{name}' {rows}" for name, rows in fixed.items()))
        rows = next(iter(fixed.values()), None)
        if rows == 0:
            raise InvalidArgument("the inputs have a fixed number of 0 rows")
        return rows

    @property
    def session(self) -> Session:
        """The session, which predictors of the same model share in a process."""
        return self._source.session(self._threads)

    def warm_up(self, rows: int) -> None:
        """Loads the model and, if its inputs declare all dimensions after the first, runs it on `rows` rows of zeros.

        The first run plans the steps and packs the weights: processes that are forked afterwards share them. A model that refuses
        zeros is loaded all the same."""
        session = self.session
        feeds = {}
        for info in session.inputs:
            if info.name in self._inputs:
                if info.shape is None or info.dtype is None or not all(isinstance(dim, int) for dim in info.shape[1:]):
                    return
                shape: Any = (self._fixed_rows or rows, *info.shape[1:])
                feeds[info.name] = np.full(shape, "" if info.dtype == object else 0, info.dtype)
        with contextlib.suppress(*_ROW_ERRORS):
            session.run(list(self._outputs), feeds)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the model's file or bytes, in hexadecimal."""
        return str(self._source.state["sha256"])

    @property
    def inputs(self) -> dict[str, str]:
        """The column of each input."""
        return dict(self._inputs)

    @property
    def outputs(self) -> dict[str, str]:
        """The column of each output."""
        return dict(self._outputs)

    @property
    def declares_shapes(self) -> bool:
        """Whether the model declares all dimensions of its outputs after the first, so that no rows have a shape, too."""
        return all(info.shape is not None and all(isinstance(dim, int) for dim in info.shape[1:])
                   for info in self.session.outputs if info.name in self._outputs)

    def __call__(self, batch: Any) -> Any:
        """Runs the model.

        Args:
            batch: a dict of arrays, a ``pandas.DataFrame``, a ``pyarrow.Table`` or a ``pyarrow.RecordBatch``. The array of an input
                has shape (rows, ...) with the input's dtype and dimensions; rows that are flat lists, or scalars, are
                reshaped where the input declares all dimensions and has as many elements. Numeric Arrow columns without
                nulls, among them ``fixed_shape_tensor``, are read where they stand if they have one chunk. Columns that no
                input takes are ignored.

        Returns:
            A batch of the kind of the argument with the columns `keep`, one for each output of shape (rows, ...), and ``error``
            if `on_error` is ``"column"``. In pandas an output of rank 2 or more has one array a row, in Arrow it is a
            ``fixed_shape_tensor``. The outputs of rows that failed are NaN, 0, False or None in numpy and pandas and null in
            Arrow. For no rows, dimensions that the model does not declare are 0.

        Raises:
            BadInput: a column is missing, or has another dtype or shape than the input; also with ``"column"``, as no row could be
                right. With ``"raise"`` also for a null, or a row of another shape.
            BadModel, Unsupported: with ``"raise"``, a node does not fit the values of a row.
            OutOfMemory: there is not enough for one row.
        """
        kind = _columns.kind_of(batch)
        there = _columns.names_of(batch, kind)
        for name in [*self._inputs.values(), *self._keep]:
            if name not in there:
                raise BadInput(f"the batch has no column '{name}': it has {', '.join(there) or 'none'}")
        session = self.session
        infos = {info.name: info for info in session.inputs}
        columns = {name: _columns.fit(_columns.read(batch, kind, column), column, infos[name])
                   for name, column in self._inputs.items()}
        count = self._count(columns)
        outputs, errors = self._predict(session, columns, count)
        return _columns.write(batch, kind, self._keep, outputs, errors if self._on_error == "column" else None)

    def _count(self, columns: Mapping[str, Column]) -> int:
        counts = {self._inputs[name]: len(column.array) for name, column in columns.items()}
        if len(set(counts.values())) > 1:
            raise BadInput("the columns have different numbers of rows: "
                           + ", ".join(f"'{name}' {rows}" for name, rows in counts.items()))
        return next(iter(counts.values()))

    def _predict(self, session: Session, columns: Mapping[str, Column], count: int) -> tuple[dict[str, Array], dict[int, str]]:
        """The outputs by column, and the messages of the rows that failed."""
        errors: dict[int, str] = {}
        for name, column in columns.items():
            for row, message in column.errors.items():
                errors.setdefault(row, f"column '{self._inputs[name]}': {message}")
        if errors and self._on_error == "raise":
            raise BadInput(f"row {min(errors)}: {errors[min(errors)]}")
        pieces: list[tuple[Array, list[Array]]] = []
        for rows in self._groups(columns, count, errors):
            feeds = {name: self._take(column.array, rows, count) for name, column in columns.items()}
            step = self._fixed_rows or len(rows)
            for start in range(0, len(rows), step):
                self._bisect(session, feeds, rows, start, min(start + step, len(rows)), pieces, errors)
        infos = {info.name: info for info in session.outputs}
        results = {self._outputs[name]: self._join(infos[name], i, pieces, count, errors) for i, name in enumerate(self._outputs)}
        return results, errors

    @staticmethod
    def _groups(columns: Mapping[str, Column], count: int, errors: Mapping[int, str]) -> list[Array]:
        """The rows that can run together, as their shapes are the same."""
        good = np.array([row for row in range(count) if row not in errors], np.int64) if errors else np.arange(count)
        ragged = [column.array for column in columns.values() if column.array.dtype == object and column.array.ndim == 1
                  and any(isinstance(row, np.ndarray) for row in column.array)]
        if not ragged:
            return [good] if len(good) else []
        groups: dict[Any, list[int]] = {}
        for row in good.tolist():
            groups.setdefault(tuple(getattr(array[row], "shape", ()) for array in ragged), []).append(row)
        return [np.array(rows, np.int64) for rows in groups.values()]

    @staticmethod
    def _take(array: Array, rows: Array, count: int) -> Array:
        if array.dtype == object and array.ndim == 1 and isinstance(array[rows[0]], np.ndarray):
            return np.stack([array[row] for row in rows])
        return array if len(rows) == count else array[rows]

    def _bisect(self, session: Session, feeds: Mapping[str, Array], rows: Array, start: int, stop: int,
                pieces: list[tuple[Array, list[Array]]], errors: dict[int, str]) -> None:
        """Runs rows `start` to `stop`, and if they fail each half of them, down to the rows that fail alone."""
        try:
            pieces.append((rows[start:stop], self._run(session, feeds, start, stop)))
        except _ROW_ERRORS as why:
            if stop - start > 1:
                middle = (start + stop) // 2
                self._bisect(session, feeds, rows, start, middle, pieces, errors)
                self._bisect(session, feeds, rows, middle, stop, pieces, errors)
            elif isinstance(why, OutOfMemory):
                raise
            elif self._on_error == "raise":
                raise type(why)(f"row {rows[start]}: {why}") from why
            else:
                errors[int(rows[start])] = str(why)

    def _run(self, session: Session, feeds: Mapping[str, Array], start: int, stop: int) -> list[Array]:
        count = stop - start
        parts = {name: array[start:stop] for name, array in feeds.items()}
        fill = self._fixed_rows - count if self._fixed_rows else 0
        if fill:
            parts = {name: np.concatenate([part, np.repeat(part[-1:], fill, axis=0)]) for name, part in parts.items()}
        results = session.run(list(self._outputs), parts)
        for name, result in zip(self._outputs, results):
            if result.ndim == 0 or len(result) != count + fill:
                raise InvalidArgument(f"output '{name}' has shape {result.shape} for {count + fill} rows: expected a result a row "
                                      "along the first axis")
        return [result[:count] for result in results] if fill else list(results)

    def _join(self, info: ValueInfo, index: int, pieces: list[tuple[Array, list[Array]]], count: int,
              errors: dict[int, str]) -> Array:
        """Output `index` of all rows."""
        if len(pieces) == 1 and len(pieces[0][0]) == count:
            return pieces[0][1][index]
        if pieces:
            dtype, shape = pieces[0][1][index].dtype, pieces[0][1][index].shape[1:]
        else:
            assert info.dtype is not None
            dtype, shape = info.dtype, tuple(dim if isinstance(dim, int) else 0 for dim in (info.shape or ())[1:])
        blank: Any = None if dtype == object else np.nan if dtype.kind in "fc" else 0
        whole = np.full((count, *shape), blank, dtype)
        for rows, results in pieces:
            if results[index].shape[1:] == shape:
                whole[rows] = results[index]
                continue
            message = f"output '{info.name}' has shape {results[index].shape[1:]}, other rows of the batch have {shape}"
            if self._on_error == "raise":
                raise BadInput(f"row {rows[0]}: {message}")
            errors.update({int(row): message for row in rows})
        return whole

    def __repr__(self) -> str:
        return f"<dqrun.batch.Predictor {self._source.name!r}: {', '.join(self._inputs)} -> {', '.join(self._outputs)}>"

    def __getstate__(self) -> dict[str, Any]:
        return {"source": self._source, "threads": self._threads, "on_error": self._on_error, "keep": self._keep,
                "inputs": self._inputs, "outputs": self._outputs, "fixed_rows": self._fixed_rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, f"_{name}", value)
