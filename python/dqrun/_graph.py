# SPDX-License-Identifier: Apache-2.0
"""A look into a model: graphs, nodes, values and their quantization. Read-only; weights are not copied until they are asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from . import _dtypes, _tensors
from ._errors import check
from ._native import ffi, lib


def _text(pointer: Any) -> str:
    return ffi.string(pointer).decode("utf-8", "replace") if pointer else ""


@dataclasses.dataclass(frozen=True)
class Metadata:
    """What a model says of itself.

    Attributes:
        ir_version, producer_name, producer_version, domain, version, doc: the fields of ``onnx.ModelProto``.
        graph_name: the name of the main graph.
        opsets: the imported version by domain; "" is ai.onnx.
        properties: metadata_props.
    """

    ir_version: int
    producer_name: str
    producer_version: str
    domain: str
    version: int
    doc: str
    graph_name: str
    opsets: dict[str, int]
    properties: dict[str, str]


class Quantization:
    """How a value is quantized: real number = (element - zero point) * scale.

    Attributes:
        granularity: ``"per tensor"``, ``"per axis"``, ``"per block"``, or ``"unknown"`` where the scale's shape is known only in a run.
        axis, block_size: of ``"per axis"`` and ``"per block"``; else None.
        scale, zero_point: arrays; None where they are computed in a run, or left out.
    """

    _GRANULARITIES = {lib.DQ_PER_TENSOR: "per tensor", lib.DQ_PER_AXIS: "per axis", lib.DQ_PER_BLOCK: "per block"}

    def __init__(self, owner: Any, info: Any) -> None:
        self.granularity = self._GRANULARITIES.get(info.granularity, "unknown")
        has_axis = info.granularity in (lib.DQ_PER_AXIS, lib.DQ_PER_BLOCK)
        self.axis: int | None = info.axis if has_axis else None
        self.block_size: int | None = info.block_size if info.granularity == lib.DQ_PER_BLOCK else None
        self.scale: Any = _constant(info.scale_data)
        self.zero_point: Any = _constant(info.zero_point_data)

    def __repr__(self) -> str:
        parts = [self.granularity]
        if self.axis is not None:
            parts.append(f"axis {self.axis}")
        if self.block_size is not None:
            parts.append(f"blocks of {self.block_size}")
        for name, array in (("scale", self.scale), ("zero point", self.zero_point)):
            if array is not None:
                parts.append(f"{name} {array.item():g}" if array.size == 1 else f"{name} of shape {list(array.shape)}")
        return f"<dqrun.Quantization {', '.join(parts)}>"


def _constant(tensor: Any) -> Any:
    """A copy of a constant, whose data may be unaligned in its file."""
    if not tensor:
        return None
    dtype = lib.dq_tensor_dtype(tensor)
    if dtype == lib.DQ_STRING or lib.dq_tensor_kind(tensor) != lib.DQ_KIND_TENSOR:
        return _tensors.to_python(tensor)
    shape = _tensors.shape_of(tensor)
    raw = np.frombuffer(ffi.buffer(lib.dq_tensor_data(tensor), lib.dq_tensor_size(tensor)), np.uint8)
    if _dtypes.BITS[dtype] < 8:
        return _dtypes.unpack(raw, lib.dq_tensor_count(tensor), dtype).reshape(shape)
    return raw.copy().view(_dtypes.to_numpy(dtype)).reshape(shape)


class Value:
    """An input, an initializer or a node's output.

    Attributes:
        name, type, dtype, shape: as of :class:`dqrun.ValueInfo`.
        is_input, is_output: of its graph.
    """

    def __init__(self, model: Any, native: Any) -> None:
        from ._model import ValueInfo

        self._model, self._native = model, native
        err, info = ffi.new("dq_error *"), ffi.new("dq_value_info *")
        info.size = ffi.sizeof("dq_value_info")
        check(lib.dq_value_describe(native, info, err), err)
        declared = ValueInfo(info)
        self.name, self.type, self.dtype, self.shape = declared.name, declared.type, declared.dtype, declared.shape
        self.is_input, self.is_output = bool(info.is_input), bool(info.is_output)
        self._text = str(declared)
        self._initializer, self._producer = info.initializer, info.producer

    @property
    def initializer(self) -> Any:
        """A copy of the constant, or of an input's default; None: there is none."""
        return _constant(self._initializer)

    @property
    def producer(self) -> "Node | None":
        """The node that computes it; None for inputs and initializers."""
        return Node(self._model, self._producer) if self._producer else None

    @property
    def consumers(self) -> "list[Node]":
        """The nodes that read it, each once, those of inner graphs among them."""
        err, count, nodes = ffi.new("dq_error *"), ffi.new("size_t *"), ffi.new("const dq_node *const **")
        check(lib.dq_value_consumers(self._model._native, self._native, count, nodes, err), err)
        return [Node(self._model, nodes[0][i]) for i in range(count[0])]

    @property
    def quantization(self) -> Quantization | None:
        """How it is quantized; None: no node says that it is."""
        err, info = ffi.new("dq_error *"), ffi.new("dq_quantization *")
        info.size = ffi.sizeof("dq_quantization")
        check(lib.dq_value_quantization(self._model._native, self._native, info, err), err)
        return Quantization(self._model, info) if info.quantized else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and bool(self._native == other._native)

    def __hash__(self) -> int:
        return hash(self._native)

    def __repr__(self) -> str:
        return f"<dqrun.Value {self._text}>"


class Node:
    """A node of a graph.

    Attributes:
        name: "" when the model gives none.
        op_type, domain: the operator; domain "" is ai.onnx.
        since_version: version of the operator's schema; 0: there is none.
        inputs, outputs: values; None where one is left out.
    """

    def __init__(self, model: Any, native: Any) -> None:
        self._model, self._native = model, native
        err, info = ffi.new("dq_error *"), ffi.new("dq_node_info *")
        info.size = ffi.sizeof("dq_node_info")
        check(lib.dq_node_describe(native, info, err), err)
        self.name, self.op_type, self.domain = _text(info.name), _text(info.op_type), _text(info.domain)
        self.since_version, self.synthetic = int(info.since_version), bool(info.synthetic)
        self._inputs = [info.inputs[i] for i in range(info.input_count)]
        self._outputs = [info.outputs[i] for i in range(info.output_count)]
        self._attribute_count = int(info.attribute_count)

    @cached_property
    def inputs(self) -> "list[Value | None]":
        """The values that it reads."""
        return [Value(self._model, value) if value else None for value in self._inputs]

    @cached_property
    def outputs(self) -> "list[Value | None]":
        """The values that it computes."""
        return [Value(self._model, value) if value else None for value in self._outputs]

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Attributes by name, defaults among them: numbers, strings, lists, arrays, and :class:`Graph` for inner graphs."""
        err, a = ffi.new("dq_error *"), ffi.new("dq_attribute *")
        found = {}
        for i in range(self._attribute_count):
            a.size = ffi.sizeof("dq_attribute")
            check(lib.dq_node_attribute(self._native, i, a, err), err)
            found[_text(a.name)] = self._attribute(a)
        return found

    def _attribute(self, a: Any) -> Any:
        n = a.count
        read: dict[int, Callable[[], Any]] = {
            lib.DQ_ATTRIBUTE_FLOAT: lambda: a.f,
            lib.DQ_ATTRIBUTE_INT: lambda: a.i,
            lib.DQ_ATTRIBUTE_STRING: lambda: ffi.buffer(a.s, n)[:].decode("utf-8", "replace"),
            lib.DQ_ATTRIBUTE_TENSOR: lambda: _constant(a.tensor),
            lib.DQ_ATTRIBUTE_GRAPH: lambda: Graph(self._model, a.graph),
            lib.DQ_ATTRIBUTE_FLOATS: lambda: [a.floats[i] for i in range(n)],
            lib.DQ_ATTRIBUTE_INTS: lambda: [a.ints[i] for i in range(n)],
            lib.DQ_ATTRIBUTE_STRINGS: lambda: [_text(a.strings[i]) for i in range(n)],
            lib.DQ_ATTRIBUTE_TENSORS: lambda: [_constant(a.tensors[i]) for i in range(n)],
            lib.DQ_ATTRIBUTE_GRAPHS: lambda: [Graph(self._model, a.graphs[i]) for i in range(n)],
            lib.DQ_ATTRIBUTE_TYPE: lambda: _text(a.type),
            lib.DQ_ATTRIBUTE_TYPES: lambda: [_text(a.types[i]) for i in range(n)],
        }
        return read[a.kind]() if a.kind in read else None

    @property
    def op(self) -> str:
        """Operator and version, such as ``"QLinearConv-10"`` or ``"com.microsoft.QLinearAdd-1"``."""
        return f"{self.domain + '.' if self.domain else ''}{self.op_type}-{self.since_version}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and bool(self._native == other._native)

    def __hash__(self) -> int:
        return hash(self._native)

    def __repr__(self) -> str:
        return f"<dqrun.Node {self.name!r} ({self.op})>"


class Graph:
    """A graph: the main one (:attr:`dqrun.Model.graph`), or an inner one of If, Loop and Scan.

    Attributes:
        name: the graph's name.
        nodes: in topological order.
    """

    def __init__(self, model: Any, native: Any) -> None:
        self._model = model
        err, info = ffi.new("dq_error *"), ffi.new("dq_graph_info *")
        info.size = ffi.sizeof("dq_graph_info")
        check(lib.dq_graph_describe(native, info, err), err)
        self.name = _text(info.name)
        self.nodes = [Node(model, info.nodes[i]) for i in range(info.node_count)]
        self._inputs = [info.inputs[i] for i in range(info.input_count)]
        self._outputs = [info.outputs[i] for i in range(info.output_count)]
        self._values = [info.values[i] for i in range(info.value_count)]

    @cached_property
    def inputs(self) -> list[Value]:
        """Inputs as declared, those with a default among them."""
        return [Value(self._model, value) for value in self._inputs]

    @cached_property
    def outputs(self) -> list[Value]:
        """Outputs in order."""
        return [Value(self._model, value) for value in self._outputs]

    @cached_property
    def values(self) -> dict[str, Value]:
        """All values by name: inputs, initializers and outputs of nodes."""
        values = [Value(self._model, value) for value in self._values]
        return {value.name: value for value in values}

    def __repr__(self) -> str:
        return f"<dqrun.Graph {self.name!r}: {len(self.nodes)} nodes>"


@dataclasses.dataclass(frozen=True)
class Step:
    """A step of a session's plan.

    Attributes:
        op: operator and version; operators of the domain ``dqrun`` stand for several nodes of the model.
        decision: what the planner decided, or "".
        algorithm: how the operator computes it, or "".
        written: the nodes of the model that the step computes.
        work: multiply-adds or elements; 0: known only in the run.
        scratch_bytes: memory of the step alone.
        macs: the part of `work` that is multiply-adds of products.
        bytes: inputs, constants and outputs, each once.
    """

    op: str
    decision: str
    algorithm: str
    written: list[Node]
    work: int
    scratch_bytes: int
    macs: int
    bytes: int


@dataclasses.dataclass(frozen=True)
class MemoryInfo:
    """Memory of a plan in bytes: activations with scratch, packed weights (shared by the model's sessions), constants that steps read."""

    activation_bytes: int
    weight_bytes: int
    constant_bytes: int
