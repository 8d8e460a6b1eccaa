# SPDX-License-Identifier: Apache-2.0
"""Models: what a file holds, checked, before anything runs."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import html
import os
from typing import Any, Protocol, Union

import numpy as np

from . import _dtypes
from ._errors import BadModel, Error, InvalidArgument, check, error_of
from ._graph import Graph, Metadata, _text
from ._native import ffi, lib


class _ModelProto(Protocol):
    def SerializeToString(self) -> bytes: ...


ModelSource = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, _ModelProto, "Model"]


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds on what a model may ask for; 0 is the default of each (``dq_limits`` in dqrun.h).

    Attributes:
        file_bytes: size of the model file or of one file of external data; default 64 GiB.
        tensor_bytes: size of one tensor; default 16 GiB.
        session_bytes: activations and scratch of one plan, strings and sequences of one run; default 64 GiB.
        nodes: nodes of all graphs together; default 1,000,000.
        nesting: subgraphs and functions inside one another; default 32.
        work: multiply-adds and elements of one run; default: no bound.
    """

    file_bytes: int = 0
    tensor_bytes: int = 0
    session_bytes: int = 0
    nodes: int = 0
    nesting: int = 0
    work: int = 0


class ValueInfo:
    """What an input or output declares.

    Attributes:
        name: the name of the value.
        type: the type as ONNX writes it, such as ``"tensor(float)"`` or ``"seq(tensor(int8))"``.
        dtype: the numpy dtype of a tensor, or of the tensors in a sequence or optional; None where nothing is declared.
        shape: a tuple with the size of each dimension, the name of a symbolic one, or None where nothing is known; None for any rank.
        optional: True for an input that has a default.
    """

    __slots__ = ("name", "type", "shape", "optional", "_onnx_dtype", "_kind", "_item_kind")

    def __init__(self, info: Any) -> None:
        self.name: str = ffi.string(info.name).decode("utf-8", "replace")
        self.type: str = ffi.string(info.type).decode()
        self.optional = bool(info.optional)
        self.shape: tuple[int | str | None, ...] | None = None
        self._kind = int(info.kind)
        self._item_kind = int(info.item_kind)
        self._onnx_dtype = int(info.dtype if info.kind == lib.DQ_KIND_TENSOR else info.item_dtype)
        if info.has_shape:
            self.shape = tuple(self._dim(info, d) for d in range(info.rank))

    @staticmethod
    def _dim(info: Any, d: int) -> int | str | None:
        if info.dims[d] >= 0:
            return int(info.dims[d])
        symbol = info.dim_names[d]
        return (ffi.string(symbol).decode("utf-8", "replace") or None) if symbol else None

    @property
    def dtype(self) -> np.dtype[Any] | None:
        return _dtypes.to_numpy(self._onnx_dtype) if self._onnx_dtype != lib.DQ_UNDEFINED else None

    def __str__(self) -> str:
        inner = self.type.removeprefix("tensor(").removesuffix(")") if self.type.startswith("tensor(") else self.type
        shape = "" if self.shape is None else "[" + ",".join("?" if dim is None else str(dim) for dim in self.shape) + "]"
        return f"{self.name}: {inner}{shape}" + (" = default" if self.optional else "")

    def __repr__(self) -> str:
        return f"<dqrun.ValueInfo {self}>"


class _Handle:
    """A ``dq_model *`` and the bytes that it reads from."""

    def __init__(self, source: str | bytes, limits: Limits, schema_folders: tuple[str, ...], base_dir: str | None, packed: str | None) -> None:
        err, out = ffi.new("dq_error *"), ffi.new("dq_model **")
        options, bounds = ffi.new("dq_load_options *"), ffi.new("dq_limits *")
        options.size, bounds.size = ffi.sizeof("dq_load_options"), ffi.sizeof("dq_limits")
        for field in dataclasses.fields(limits):
            value = getattr(limits, field.name)
            if not 0 <= value < 1 << 64:
                raise InvalidArgument(f"limits.{field.name} is {value}, expected 0 to 2**64 - 1")
            setattr(bounds, field.name, min(value, 2**32 - 1) if field.name == "nesting" else value)
        options.limits = bounds
        schemas = self._schemas(schema_folders, err)
        options.schemas = schemas
        packed_path = ffi.new("char[]", os.fsencode(packed)) if packed is not None else ffi.NULL
        options.packed_path = packed_path
        if isinstance(source, str):
            with open(source, "rb"):  # so that a file that cannot be read is the OSError that Python programs expect
                pass
            status = lib.dq_model_load(os.fsencode(source), options, out, err)
        else:
            folder = ffi.new("char[]", os.fsencode(base_dir)) if base_dir is not None else ffi.NULL
            options.base_dir = folder
            self._bytes = ffi.from_buffer(source)
            status = lib.dq_model_load_memory(self._bytes, len(source), b"model", options, out, err)
        check(status, err)
        self.pointer = ffi.gc(out[0], lib.dq_model_free)

    @staticmethod
    def _schemas(folders: tuple[str, ...], err: Any) -> Any:
        if not folders:
            return ffi.NULL
        out = ffi.new("dq_schemas **")
        check(lib.dq_schemas_create(out, err), err)
        schemas = ffi.gc(out[0], lib.dq_schemas_free)
        for folder in folders:
            check(lib.dq_schemas_add_dir(schemas, os.fsencode(folder), err), err)
        return schemas


@functools.lru_cache(maxsize=16)
def _file_sha256(path: str, identity: tuple[int, ...]) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256(path: str) -> str:
    """The SHA-256 of a file, read once in a process while device, inode, size and the times of change stay the same."""
    found = os.stat(path)
    return _file_sha256(path, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))


class Model:
    """A loaded model, which any number of sessions share.

    Args:
        source: a path, the bytes of a .onnx file, or an ``onnx.ModelProto``.
        schemas: a folder, or folders, of operator schemas that override or add to the library's (docs/schema-format.md).
        limits: bounds on what the model may ask for.
        base_dir: folder of external data for a model that is not a path; None: such a model may have none.
        packed: file of packed weights that :meth:`dqrun.Session.save_packed` or ``dqrun pack`` wrote for this model.

    A node that cannot run does not make this fail: :meth:`check` lists all of them. Models are picklable: one of a path by its path and
    the SHA-256 of the file, which must be the same where it is unpickled; others by their bytes.
    """

    def __init__(self, source: ModelSource, *, schemas: Any = None, limits: Limits | None = None, base_dir: Any = None,
                 packed: Any = None) -> None:
        if isinstance(source, Model):
            raise InvalidArgument("a dqrun.Model is already loaded")
        if isinstance(source, (str, os.PathLike)):
            data: str | bytes = os.fspath(source)
        elif isinstance(source, (bytes, bytearray, memoryview)):
            data = bytes(source)
        elif hasattr(source, "SerializeToString"):
            data = source.SerializeToString()
        else:
            raise InvalidArgument(f"a model is given as {type(source).__name__}, expected a path, bytes or onnx.ModelProto")
        if schemas is None:
            folders: tuple[str, ...] = ()
        elif isinstance(schemas, (str, os.PathLike)):
            folders = (os.fspath(schemas),)
        else:
            folders = tuple(os.fspath(folder) for folder in schemas)
        self._load(data, limits or Limits(), folders, None if base_dir is None else os.fspath(base_dir),
                   None if packed is None else os.fspath(packed))

    def _load(self, source: str | bytes, limits: Limits, folders: tuple[str, ...], base_dir: str | None, packed: str | None) -> None:
        self._source, self._limits, self._folders, self._base_dir, self._packed = source, limits, folders, base_dir, packed
        self._handle = _Handle(source, limits, folders, base_dir, packed)
        self._native = self._handle.pointer
        self._inputs = self._infos(lib.dq_model_input_count, lib.dq_model_input)
        self._outputs = self._infos(lib.dq_model_output_count, lib.dq_model_output)

    def _infos(self, count: Any, get: Any) -> list[ValueInfo]:
        found = []
        info = ffi.new("dq_value_info *")
        for i in range(count(self._native)):
            info.size = ffi.sizeof("dq_value_info")
            if get(self._native, i, info, ffi.NULL) == lib.DQ_OK:
                found.append(ValueInfo(info))
        return found

    @property
    def name(self) -> str:
        """The path, or ``"model"`` for one from memory."""
        return self._source if isinstance(self._source, str) else "model"

    @property
    def inputs(self) -> list[ValueInfo]:
        """The inputs of the graph; those with a default come last."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[ValueInfo]:
        """The outputs of the graph."""
        return list(self._outputs)

    @property
    def graph(self) -> Graph:
        """The main graph: nodes, values, and how they are quantized. Model-local functions are inlined in it."""
        return Graph(self, self._describe().graph)

    @property
    def metadata(self) -> Metadata:
        """What the model says of itself."""
        info, err = self._describe(), ffi.new("dq_error *")
        first, second, version = ffi.new("const char **"), ffi.new("const char **"), ffi.new("int *")
        opsets, properties = {}, {}
        for i in range(info.opset_count):
            check(lib.dq_model_opset(self._native, i, first, version, err), err)
            opsets[_text(first[0])] = int(version[0])
        for i in range(info.metadata_count):
            check(lib.dq_model_metadata(self._native, i, first, second, err), err)
            properties[_text(first[0])] = _text(second[0])
        return Metadata(info.ir_version, _text(info.producer_name), _text(info.producer_version), _text(info.domain),
                        info.model_version, _text(info.doc), self.graph.name, opsets, properties)

    def _describe(self) -> Any:
        info, err = ffi.new("dq_model_info *"), ffi.new("dq_error *")
        info.size = ffi.sizeof("dq_model_info")
        check(lib.dq_model_describe(self._native, info, err), err)
        return info

    def check(self) -> list[Error]:
        """The nodes that cannot run: an error for each, whose message says which node and why. Empty: every node can."""
        found: list[Error] = []
        handle = ffi.new_handle(found)
        lib.dq_model_check(self._native, lib.dqrun_python_report, handle, ffi.NULL)
        return found

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes the model as a .onnx file, model-local functions inlined, all tensors inside the file."""
        err = ffi.new("dq_error *")
        check(lib.dq_model_save(self._native, os.fsencode(path), err), err)

    def __repr__(self) -> str:
        return f"<dqrun.Model {self.name!r}: ({', '.join(map(str, self.inputs))}) -> ({', '.join(map(str, self.outputs))})>"

    def _repr_html_(self) -> str:
        rows = [(kind, *(str(info).split(": ", 1))) for kind, infos in (("input", self.inputs), ("output", self.outputs)) for info in infos]
        cells = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return (f"<table><caption>{html.escape(self.name)}</caption><thead><tr><th></th><th>name</th><th>type</th></tr></thead>"
                f"<tbody>{cells}</tbody></table>")

    def __getstate__(self) -> dict[str, Any]:
        digest = _sha256(self._source) if isinstance(self._source, str) else None
        source = os.path.abspath(self._source) if isinstance(self._source, str) else self._source
        return {"source": source, "sha256": digest, "limits": self._limits, "schemas": self._folders, "base_dir": self._base_dir,
                "packed": None if self._packed is None else os.path.abspath(self._packed)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        source = state["source"]
        if isinstance(source, str):
            found = _sha256(source)
            if found != state["sha256"]:
                raise BadModel(f"{source}: SHA-256 is {found}, expected {state['sha256']}: the file is not the one that was pickled")
        self._load(source, state["limits"], state["schemas"], state["base_dir"], state["packed"])


@ffi.def_extern()  # type: ignore[untyped-decorator, unused-ignore]
def dqrun_python_report(arg: Any, why: Any) -> None:
    ffi.from_handle(arg).append(error_of(why.status, ffi.string(why.message)))
