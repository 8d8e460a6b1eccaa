# SPDX-License-Identifier: Apache-2.0
"""Columns of batches as numpy arrays, and arrays as columns of a batch of the same kind.

A batch is a mapping of names to arrays, a pandas DataFrame, a pyarrow Table or a pyarrow RecordBatch. pandas and pyarrow are imported
only when such a batch comes."""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._errors import BadInput, InvalidArgument, Unsupported
from .._model import ValueInfo

Array = np.ndarray[Any, Any]


@dataclasses.dataclass
class Column:
    """The rows of one column.

    Attributes:
        array: shape (rows, ...); dtype object with one array a row where rows have different shapes.
        errors: what is wrong with single rows, by row. The elements of such rows in `array` mean nothing.
        variable: whether the type of the column lets each row have a shape of its own, even if the rows at hand have one.
    """

    array: Array
    errors: dict[int, str]
    variable: bool = False


def kind_of(batch: Any) -> str:
    """``"dict"``, ``"pandas"``, ``"table"`` or ``"record_batch"``; raises InvalidArgument for anything else."""
    package = type(batch).__module__.partition(".")[0]
    if package == "pandas" and type(batch).__name__ == "DataFrame":
        return "pandas"
    if package == "pyarrow" and type(batch).__name__ in ("Table", "RecordBatch"):
        return "table" if type(batch).__name__ == "Table" else "record_batch"
    if isinstance(batch, Mapping):
        return "dict"
    raise InvalidArgument(f"a batch is given as {type(batch).__name__}, expected a dict of arrays, a pandas.DataFrame, "
                          "a pyarrow.Table or a pyarrow.RecordBatch")


def names_of(batch: Any, kind: str) -> list[str]:
    """The names of the columns of a batch."""
    return [str(name) for name in (batch if kind == "dict" else batch.columns if kind == "pandas" else batch.schema.names)]


# ---- From a batch --------------------------------------------------------------------------------------------------


def read(batch: Any, kind: str, name: str) -> Column:
    """The column `name`, which must be there. Memory is shared where the batch has the elements in one piece."""
    if kind in ("table", "record_batch"):
        return _from_arrow(batch.column(name))
    if kind == "pandas":
        array = batch[name].to_numpy()
    else:
        array = batch[name] if isinstance(batch[name], np.ndarray) else np.asarray(batch[name])
    if array.ndim == 0:
        raise BadInput(f"column '{name}' is a scalar, expected an array of rows")
    return Column(array, {})


def _from_arrow(column: Any) -> Column:
    pa: Any = importlib.import_module("pyarrow")
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # combine_chunks gives one of no chunks for a column of no rows
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    kind, dims = column.type, None
    if isinstance(kind, pa.FixedShapeTensorType):
        if kind.permutation is not None and list(kind.permutation) != sorted(kind.permutation):
            raise Unsupported(f"a column has type {kind}: permuted tensors are not supported")
        dims, column = tuple(kind.shape), column.storage
    elif isinstance(kind, pa.BaseExtensionType):
        column = column.storage
    count = len(column)
    present = None if not column.null_count else np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    errors = {} if present is None else {int(row): "the value is null" for row in np.flatnonzero(~present)}
    values = column.drop_null() if errors else column
    inner: list[int] = []
    variable = False
    while pa.types.is_list(values.type) or pa.types.is_large_list(values.type) or pa.types.is_fixed_size_list(values.type):
        if pa.types.is_fixed_size_list(values.type):
            inner.append(values.type.list_size)
        elif not len(values):
            variable = True
            inner.append(0)
        else:
            variable = True
            lengths = np.asarray(values.value_lengths().to_numpy(zero_copy_only=False))
            if not (lengths == lengths[0]).all():
                return _from_lists(column, errors)
            inner.append(int(lengths[0]))
        values = values.flatten()
        if values.null_count:
            return _from_lists(column, errors)
    flat = np.asarray(values.to_numpy(zero_copy_only=False))
    array = flat.reshape(count - len(errors), *(dims if dims is not None else inner))
    if errors:
        whole = np.zeros((count, *array.shape[1:]), array.dtype)
        whole[present] = array
        array = whole
    return Column(array, errors, variable)


def _from_lists(column: Any, errors: dict[int, str]) -> Column:
    """Lists of different lengths, or with nulls inside: one array a row."""
    leaf = column.type
    while hasattr(leaf, "value_type"):
        leaf = leaf.value_type
    rows = np.empty(len(column), object)
    for row, value in enumerate(column.to_pylist()):
        if value is not None:
            if _has_null(value):
                errors[row] = "an element is null"
                continue
            try:
                rows[row] = np.asarray(value, leaf.to_pandas_dtype())
            except ValueError:
                errors[row] = "the nested lists have different lengths"
    return Column(rows, errors)


def _has_null(value: Any) -> bool:
    return value is None or isinstance(value, list) and any(map(_has_null, value))


def _shape_text(dims: Sequence[int | str | None]) -> str:
    return "(" + ", ".join("?" if dim is None else str(dim) for dim in dims) + ")"


def _fit_shape(array: Array, dims: Sequence[int | str | None] | None, rows: int) -> Array | None:
    """The array with the declared dimensions of a row after its first `rows` axes; None where they do not fit. Rows that are flat, or
    scalars, take the declared shape if it has as many elements."""
    shape = array.shape[rows:]
    if dims is None or len(shape) == len(dims) and all(not isinstance(dim, int) or dim == n for dim, n in zip(dims, shape)):
        return array
    known = [dim for dim in dims if isinstance(dim, int)]
    if len(known) == len(dims) and len(shape) < 2 and math.prod(known) == math.prod(shape):
        return array.reshape(*array.shape[:rows], *known)
    return None


def fit(column: Column, name: str, info: ValueInfo) -> Column:
    """The column as input `info` takes it. Raises BadInput where the whole column has the wrong dtype or shape; notes in `errors` where
    single rows do."""
    array, dtype = column.array, info.dtype
    dims = None if info.shape is None else info.shape[1:]
    if dtype == object:
        return _fit_strings(column, name, info)
    if array.dtype != object:
        if array.dtype.newbyteorder("=") != dtype and array.dtype != dtype:
            raise BadInput(f"column '{name}' has dtype {array.dtype}, input '{info.name}' expects {dtype}")
        fitted = _fit_shape(array, dims, 1)
        if fitted is None:
            if column.variable:
                message = f"the shape is {_shape_text(array.shape[1:])}, expected {_shape_text(dims or ())}"
                shape = [dim if isinstance(dim, int) else 0 for dim in dims or ()]
                return Column(np.zeros((len(array), *shape), dtype), {**dict.fromkeys(range(len(array)), message), **column.errors})
            raise BadInput(f"column '{name}' has rows of shape {_shape_text(array.shape[1:])}, input '{info.name}' expects "
                           f"{_shape_text(dims or ())}")
        return Column(fitted, column.errors)
    return _fit_rows(column, info, dims)


def _fit_strings(column: Column, name: str, info: ValueInfo) -> Column:
    if column.array.dtype.kind not in "OUST":
        raise BadInput(f"column '{name}' has dtype {column.array.dtype}, input '{info.name}' expects strings")
    array = column.array.astype(object)
    for row, values in enumerate(array):
        items = values.reshape(-1) if isinstance(values, np.ndarray) else [values]
        wrong = next((item for item in items if not isinstance(item, (str, bytes))), "")
        if wrong != "":
            column.errors.setdefault(row, "the value is null" if wrong is None or wrong != wrong
                                     else f"the value is {type(wrong).__name__}, expected str or bytes")
    fitted = _fit_shape(array, None if info.shape is None else info.shape[1:], 1)
    if fitted is None:
        raise BadInput(f"column '{name}' has rows of shape {_shape_text(array.shape[1:])}, input '{info.name}' expects "
                       f"{_shape_text((info.shape or ())[1:])}")
    return Column(fitted, column.errors)


def _fit_rows(column: Column, info: ValueInfo, dims: Sequence[int | str | None] | None) -> Column:
    """Rows that are objects of their own: arrays, lists, numbers or None."""
    rows, errors = np.empty(len(column.array), object), dict(column.errors)
    for row, value in enumerate(column.array):
        if row in errors:
            continue
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            errors[row] = "the value is null"
            continue
        try:
            array = value if isinstance(value, np.ndarray) else np.asarray(value, None if isinstance(value, np.generic) else info.dtype)
            if array.dtype == object:
                array = np.array(array.tolist(), info.dtype)
        except (TypeError, ValueError):
            errors[row] = f"the value is not an array of {info.dtype}"
            continue
        fitted = _fit_shape(array, dims, 0)
        if array.dtype != info.dtype:
            errors[row] = f"the dtype is {array.dtype}, expected {info.dtype}"
        elif fitted is None:
            errors[row] = f"the shape is {_shape_text(array.shape)}, expected {_shape_text(dims or ())}"
        else:
            rows[row] = fitted
    shapes = {rows[row].shape for row in range(len(rows)) if row not in errors}
    if len(shapes) > 1:
        return Column(rows, errors)
    dense = np.zeros((len(rows), *(shapes.pop() if shapes else ())), info.dtype)
    for row in range(len(rows)):
        if row not in errors:
            dense[row] = rows[row]
    return Column(dense, errors)


def empty_table(schema: Any) -> Any:
    """A pyarrow Table of no rows. ``Schema.empty_table`` has no way for tensors that declare the order of their dimensions."""
    pa: Any = importlib.import_module("pyarrow")
    arrays = [pa.ExtensionArray.from_storage(field.type, pa.array([], field.type.storage_type))
              if isinstance(field.type, pa.BaseExtensionType) else pa.array([], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


# ---- To a batch ----------------------------------------------------------------------------------------------------


def write(batch: Any, kind: str, keep: Sequence[str], outputs: Mapping[str, Array], errors: Mapping[int, str] | None) -> Any:
    """A batch of the kind of `batch`: its columns `keep`, the outputs, and with `errors` a column ``error``."""
    count = len(next(iter(outputs.values())))
    messages = None
    if errors is not None:
        messages = np.full(count, None, object)
        for row, message in errors.items():
            messages[row] = message
    if kind == "dict":
        columns: dict[str, Any] = {**{name: batch[name] for name in keep}, **outputs}
        return columns if messages is None else {**columns, "error": messages}
    if kind == "pandas":
        pandas: Any = importlib.import_module("pandas")
        data = {name: batch[name] for name in keep}
        for name, array in outputs.items():
            data[name] = pandas.Series(list(array) if array.ndim > 1 else array, index=batch.index,
                                       dtype=object if array.ndim > 1 else None)
        if messages is not None:
            data["error"] = pandas.Series(messages, index=batch.index, dtype=object)
        return pandas.DataFrame(data, index=batch.index)
    pa: Any = importlib.import_module("pyarrow")
    arrays = [batch.column(name) for name in keep]
    arrays += [to_arrow(name, array, errors or {}) for name, array in outputs.items()]
    names = [*keep, *outputs]
    if messages is not None:
        arrays.append(pa.array(messages, pa.string()))
        names.append("error")
    return (pa.Table if kind == "table" else pa.RecordBatch).from_arrays(arrays, names=names)


def to_arrow(name: str, array: Array, errors: Mapping[int, str]) -> Any:
    """An array of shape (rows, ...) as a pyarrow array: a plain one of rank 1, else one of ``fixed_shape_tensor`` over the same memory
    (``fixed_size_list`` for strings). The rows in `errors` are null."""
    pa: Any = importlib.import_module("pyarrow")
    mask = None
    if errors:
        mask = np.zeros(len(array), bool)
        mask[list(errors)] = True
    try:
        if array.ndim == 1:
            return pa.array(array, mask=mask)
        flat = pa.array(np.ascontiguousarray(array).reshape(-1))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as why:
        raise Unsupported(f"output '{name}' has dtype {array.dtype}, which Arrow does not have: {why}") from why
    size = math.prod(array.shape[1:])
    if array.dtype == object:
        flat = flat.cast(pa.string()) if pa.types.is_null(flat.type) else flat
    kind = pa.list_(flat.type, size)
    buffers = [None if mask is None else pa.array(~mask).buffers()[1]]
    storage = pa.Array.from_buffers(kind, len(array), buffers, len(errors), children=[flat])
    if array.dtype == object:
        return storage
    return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(flat.type, array.shape[1:]), storage)
