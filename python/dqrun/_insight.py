# SPDX-License-Identifier: Apache-2.0
"""Seeing into models: how they are computed, and where a quantized one loses accuracy."""

from __future__ import annotations

import builtins
import dataclasses
import html
import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from . import _tensors
from ._errors import InvalidArgument, check
from ._model import Limits, Model, ModelSource
from ._native import ffi, lib

T = TypeVar("T")
_SPECIAL = {"NaN", "Infinity", "-Infinity"}
FRAME_HEIGHT = 720


def _number(value: Any) -> Any:
    """JSON writes NaN and infinities as texts."""
    return builtins.float(value) if isinstance(value, str) and value in _SPECIAL else value


def _make(cls: type[T], members: Mapping[str, Any] | None, **more: Any) -> T:
    """An object of a dataclass: members that it does not have are left out, those that are missing are None."""
    found = {**(members or {}), **more}
    return cls(**{field.name: _number(found.get(field.name)) for field in dataclasses.fields(cls)})  # type: ignore[arg-type]


# ---- What is in them -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class InspectedTensor:
    """A value of a model.

    Attributes:
        name, type: ``type`` is the element type, such as ``"uint8"``.
        shape: of the plan; names of symbolic dimensions and None where a size is not known; None: the rank is not known.
        kind: ``"input"``, ``"initializer"``, ``"constant"`` or ``"activation"``.
        is_output: it is an output of the model.
        bytes: of an initializer.
        quantization: None, or granularity, axis, scales and zero points as in docs/inspect-json.md.
    """

    name: str
    type: str
    shape: list[int | str | None] | None
    kind: str
    is_output: bool
    bytes: int
    quantization: dict[str, Any] | None


@dataclasses.dataclass(frozen=True)
class InspectedNode:
    """A node of a model, as it is written.

    Attributes:
        name, op: ``op`` with its version, such as ``"Conv-11"``.
        computes: ``"integer"``, ``"float"``, ``"tiled float"``, ``"weight-only"``, ``"convert"``, ``"other"``, ``"planning"`` or ``"unused"``.
        step: number of the step of a run that computes it; None: no step does.
        why_float: why it computes on floats; None: it does not.
        problem: why it cannot run; None: it can.
        inputs, outputs: names of values; None where one is left out.
    """

    name: str
    op: str
    computes: str
    step: int | None
    why_float: str | None
    problem: str | None
    inputs: list[str | None]
    outputs: list[str | None]


@dataclasses.dataclass(frozen=True)
class Errors:
    """How far values are from the reference.

    Attributes:
        sqnr_db: signal to quantization noise, in dB; infinite where nothing differs.
        cosine, rmse, mean, largest: of the difference; ``mean`` has a sign.
        rmse_over_scale: 0.289 for an ideal quantizer; None for values that are not quantized.
        worst_input, worst_sqnr_db: the input with the lowest SQNR.
    """

    sqnr_db: float
    cosine: float
    rmse: float
    mean: float
    largest: float
    rmse_over_scale: float | None
    worst_input: int | None
    worst_sqnr_db: float | None


@dataclasses.dataclass(frozen=True)
class QuantizerRange:
    """How the range of a quantizer fits the reference values.

    Attributes:
        scale, zero_point: of the quantizer.
        low, high: the ends of the range that it covers.
        min, max: of the reference values.
        clipped_low, clipped_high: how many values are beyond the ends.
        elements: how many values there are.
        quantized_values, quantized_values_used: how many quantized values the type has, and how many of them are taken.
        entropy_bits: of the quantized values.
        at_zero_point, range_used: shares, 0 to 1.
    """

    scale: float
    zero_point: float
    low: float
    high: float
    min: float
    max: float
    clipped_low: int
    clipped_high: int
    elements: int
    quantized_values: int
    quantized_values_used: int
    entropy_bits: float
    at_zero_point: float
    range_used: float


@dataclasses.dataclass(frozen=True)
class ComparedTensor:
    """A value of the float model and the one that stands for it in the quantized model.

    Attributes:
        name: in the float model.
        matched: in the quantized model.
        op, node, float_node, quantizer: what computes and what quantizes it.
        type: of the quantized values; ``"float"`` where it is not quantized.
        own: the error that its node adds, fed with reference inputs.
        floor: the error of quantizing the reference value alone.
        so_far: the error in a run of the quantized model.
        range: of its quantizer.
        gain_db: what leaving its quantizer out gives the outputs; None: not measured.
    """

    name: str
    matched: str
    op: str | None
    node: str | None
    float_node: str | None
    quantizer: str | None
    type: str
    own: Errors | None
    floor: Errors | None
    so_far: Errors | None
    range: QuantizerRange | None
    gain_db: float | None


@dataclasses.dataclass(frozen=True)
class ComparedWeight:
    """A quantized constant against the float one; docs/compare.md defines the measures."""

    name: str
    float_name: str | None
    node: str | None
    type: str
    is_bias: bool
    per_channel: bool
    error: Errors
    rmse_over_scale: float
    worst_channel: int
    worst_channel_sqnr_db: float
    channel_ratio: float
    channel_sqnr_db: list[float]
    channel_range: list[float]
    dead_channels: int
    bad_scales: int
    saturated: int
    gain_db: float | None


@dataclasses.dataclass(frozen=True)
class ComparedNode:
    """A node of the quantized model with what is compared of it."""

    name: str
    op: str | None
    tensors: list[ComparedTensor]
    weights: list[ComparedWeight]


@dataclasses.dataclass(frozen=True)
class ComparedOutput:
    """An output.

    Attributes:
        name, error: the error over all inputs.
        rows: number of rows, where it has the shape [N, classes].
        flips: rows whose largest element is another one than in the float model.
        labelled, correct, float_correct: rows with a label, and in how many each model is right.
    """

    name: str
    error: Errors
    rows: int | None
    flips: list[int] | None
    labelled: int | None
    correct: int | None
    float_correct: int | None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Why a layer loses accuracy and what cures it, the worst layer first.

    Attributes:
        cause, title: such as ``"clipped"``, and a few words for people.
        value, node: of the layer.
        why: the numbers that show the cause.
        cure: what to do.
        exclude: the node to keep in float (``nodes_to_exclude``), or None.
        suggested: ``{"scale_name", "scale", "zero_point"}``, or None.
    """

    cause: str
    title: str
    value: str
    node: str | None
    why: str
    cure: str
    exclude: str | None
    suggested: dict[str, Any] | None


# ---- Results ---------------------------------------------------------------------------------------------------------


class _Analysis:
    """The JSON of an analysis, and its page, which is kept compressed."""

    def __init__(self, text: str, page: bytes) -> None:
        self._text, self._page = text, zlib.compress(page, 1)
        self._members: dict[str, Any] = json.loads(text)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The analysis as the command prints it with ``--json``; also written to `path`."""
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(self._text)
        return self._text

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The analysis as one HTML page with plots and tables, which needs no network; also written to `path`."""
        page = zlib.decompress(self._page)
        if path is not None:
            with open(path, "wb") as file:
                file.write(page)
        return page.decode("utf-8")

    def _rows(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """The main numbers, and under them the page in a frame of its own."""
        rows = "".join(f"<tr><th style='text-align:left'>{html.escape(a)}</th><td style='text-align:left'>{html.escape(b)}</td></tr>"
                       for a, b in self._rows())
        return (f"<table>{rows}</table><iframe title='dqrun report' style='width:100%;height:{FRAME_HEIGHT}px;border:1px solid #8884' "
                f"sandbox='allow-scripts' srcdoc=\"{html.escape(self.to_html(), quote=True)}\"></iframe>")

    def __repr__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join([f"<dqrun.{type(self).__name__}", *(f"  {name:<{width}}  {value}" for name, value in rows)]) + ">"


class Inspection(_Analysis):
    """How a model is computed. From :func:`dqrun.inspect`.

    Attributes:
        model: its name.
        nodes: all nodes, in topological order.
        tensors: all values.
        integer_share: share of the work that is done on quantized values, 0 to 1; NaN without a plan.
        computes: number of nodes by how they are computed.
        weight_bytes, activation_bytes, packed_bytes, peak_bytes: of the initializers; of the buffer of a run; of packed weights;
            the largest sum of values that are alive at the same time.
        problems: why nodes cannot run.
    """

    def __init__(self, text: str, page: bytes) -> None:
        super().__init__(text, page)
        found = self._members
        self.model: str = found["model"]
        self.tensors = [_make(InspectedTensor, value) for value in found["values"]]
        names = [tensor.name for tensor in self.tensors]

        def named(indices: list[int | None]) -> list[str | None]:
            return [None if i is None else names[i] for i in indices]

        self.nodes = [_make(InspectedNode, node, inputs=named(node["inputs"]), outputs=named(node["outputs"])) for node in found["nodes"]]
        self.computes: dict[str, int] = found["computes"]
        self.problems: list[str] = found["problems"]
        self.weight_bytes: int = found["weight_bytes"]
        memory = found["memory"]
        self.activation_bytes: int = memory["activation_bytes"]
        self.packed_bytes: int = memory["packed_bytes"]
        self.peak_bytes: int = memory["peak_bytes"]
        work = found["work"]
        self.integer_share: float = work["integer"] / work["total"] if work["total"] else builtins.float("nan")

    def _rows(self) -> list[tuple[str, str]]:
        used = ", ".join(f"{count} {name}" for name, count in self.computes.items() if count)
        return [("model", self.model), ("nodes", f"{len(self.nodes)}: {used}"), ("work on integers", f"{100 * self.integer_share:.1f} %"),
                ("weights", f"{self.weight_bytes:,} bytes"), ("activations", f"{self.activation_bytes:,} bytes"),
                *(("cannot run", problem) for problem in self.problems)]


def _errors(members: Any) -> Any:
    return None if members is None else _make(Errors, members)


class Comparison(_Analysis):
    """Where a quantized model loses accuracy. From :func:`dqrun.compare`.

    Attributes:
        model, float_model: their names.
        outputs: the errors of the outputs.
        sqnr_db: the lowest SQNR of an output, in dB.
        flips: rows of the first output of classes whose class changes; None where no output has classes.
        accuracy, float_accuracy: with labels; else None.
        verdicts: causes and cures, the worst layer first.
        tensors: values of both models, in the order of the quantized model.
        weights: quantized constants.
        nodes: the same by node of the quantized model.
        matched, unmatched: how many values of the float model are matched, and the names of the others.
        nodes_to_exclude: nodes of the float model to keep in float, for a quantizer's option of that name.
        scales: suggested parameters by the name of the scale: ``{"scale", "zero_point"}``.
    """

    def __init__(self, text: str, page: bytes) -> None:
        super().__init__(text, page)
        found = self._members
        self.model: str = found["model"]
        self.float_model: str | None = found["float_model"]
        self.matched: int = found["matched"]
        self.unmatched: list[str] = found["unmatched"]
        self.outputs = [_make(ComparedOutput, output, error=_errors(output["error"])) for output in found["outputs"]]
        self.tensors = [_make(ComparedTensor, value, own=_errors(value["own"]), floor=_errors(value["floor"]), so_far=_errors(value["so_far"]),
                              range=None if value["range"] is None else _make(QuantizerRange, value["range"])) for value in found["values"]]
        self.weights = [_make(ComparedWeight, weight, error=_errors(weight["error"]),
                              channel_sqnr_db=[_number(x) for x in weight["channel_sqnr_db"]],
                              channel_range=[_number(x) for x in weight["channel_range"]]) for weight in found["weights"]]
        self.verdicts = [_make(Verdict, verdict) for verdict in found["verdicts"]]
        self.nodes_to_exclude = list(dict.fromkeys(verdict.exclude for verdict in self.verdicts if verdict.exclude))
        self.scales: dict[str, dict[str, Any]] = {
            verdict.suggested["scale_name"]: {"scale": verdict.suggested["scale"], "zero_point": verdict.suggested["zero_point"]}
            for verdict in self.verdicts if verdict.suggested and verdict.suggested["scale_name"]}
        ratios = [output.error.sqnr_db for output in self.outputs if output.error]
        self.sqnr_db: float = min(ratios, default=builtins.float("nan"))
        classes = next((output for output in self.outputs if output.flips is not None), None)
        self.flips: list[int] | None = classes.flips if classes else None
        labelled = next((output for output in self.outputs if output.labelled), None)
        self.accuracy = self._share(labelled, labelled.correct) if labelled else None
        self.float_accuracy = self._share(labelled, labelled.float_correct) if labelled else None

    @staticmethod
    def _share(output: ComparedOutput, right: int | None) -> float | None:
        return None if right is None or not output.labelled else right / output.labelled

    @property
    def nodes(self) -> list[ComparedNode]:
        found: dict[str, ComparedNode] = {}
        for tensor in self.tensors:
            name = tensor.node or tensor.quantizer or tensor.name
            found.setdefault(name, ComparedNode(name, tensor.op, [], [])).tensors.append(tensor)
        for weight in self.weights:
            if weight.node:
                found.setdefault(weight.node, ComparedNode(weight.node, None, [], [])).weights.append(weight)
        return list(found.values())

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("model", self.model), ("float model", self.float_model or "reference values"),
                ("SQNR of the outputs", f"{self.sqnr_db:.1f} dB"), ("values matched", f"{self.matched} of {self._members['float_values']}")]
        if self.flips is not None:
            rows.append(("top-1 differs in", f"{len(self.flips)} rows"))
        if self.accuracy is not None and self.float_accuracy is not None:
            rows.append(("accuracy", f"{100 * self.accuracy:.2f} %, float {100 * self.float_accuracy:.2f} %"))
        rows += [(f"{i}. {verdict.title}", f"{verdict.value}: {verdict.cure}") for i, verdict in enumerate(self.verdicts[:5], 1)]
        return rows if self.verdicts else [*rows, ("verdict", "no layer stands out")]


# ---- Calls -----------------------------------------------------------------------------------------------------------


def _model_of(source: ModelSource, schemas: Any, limits: Limits | None) -> Model:
    return source if isinstance(source, Model) else Model(source, schemas=schemas, limits=limits)


def _options(threads: int, isa: str | None, fuse: bool, keep: list[Any]) -> Any:
    if threads < 0:
        raise InvalidArgument(f"threads is {threads}, expected 0 or more")
    o = ffi.new("dq_session_options *")
    o.size = ffi.sizeof("dq_session_options")
    o.threads, o.no_fuse = threads, not fuse
    if isa:
        keep.append(ffi.new("char[]", isa.encode()))
        o.isa = keep[-1]
    return o


def _zeros(model: Model, i: int, dims: Mapping[str, int]) -> Any:
    """An input of zeros, 1 for each symbolic dimension that `dims` does not name."""
    info = model.inputs[i]
    if info.dtype is None or info.shape is None or info._kind != lib.DQ_KIND_TENSOR:
        raise InvalidArgument(f"input '{info.name}' is {info}, which cannot be made up: give it in inputs")
    shape = [dim if isinstance(dim, int) else dims.get(dim or "", 1) for dim in info.shape]
    return np.full(shape, "", object) if info._onnx_dtype == lib.DQ_STRING else np.zeros(shape, info.dtype)


def _tensors_of(model: Model, feed: Mapping[str, Any], dims: Mapping[str, int] | None) -> tuple[Any, list[Any]]:
    """The inputs by number as a C array, and what keeps it alive. Missing ones are made up when `dims` is given."""
    infos, kept = model.inputs, []
    unknown = [name for name in feed if name not in {info.name for info in infos}]
    if unknown:
        raise InvalidArgument(f"there is no input '{unknown[0]}'")
    array = ffi.new("dq_tensor *[]", max(1, len(infos)))
    for i, info in enumerate(infos):
        if info.name in feed:
            value = feed[info.name]
        elif info.optional or dims is None:
            continue
        else:
            value = _zeros(model, i, dims)
        kept.append(_tensors.to_native(value, info._kind, info._onnx_dtype, info._item_kind))
        array[i] = kept[-1].native
    return array, [array, kept]


def inspect(model: ModelSource, inputs: Mapping[str, Any] | None = None, *, dims: Mapping[str, int] | None = None, threads: int = 0,
            isa: str | None = None, fuse: bool = True, schemas: Any = None, limits: Limits | None = None) -> Inspection:
    """Shows what a model holds and how it is computed; nothing runs.

    Args:
        model: as for :class:`dqrun.Session`.
        inputs: the plan is for their shapes; those that are missing are made up.
        dims: sizes of symbolic dimensions of made-up inputs; default: 1.
        threads, isa, fuse, schemas, limits: as for :class:`dqrun.Session`.

    >>> found = dqrun.inspect("examples/digits_qdq.onnx")
    >>> [node.op for node in found.nodes if node.computes == "convert"]
    ['QuantizeLinear-13', 'DequantizeLinear-13']
    """
    loaded, keep = _model_of(model, schemas, limits), []  # type: tuple[Model, list[Any]]
    err, out = ffi.new("dq_error *"), ffi.new("insight_document *")
    tensors, kept = _tensors_of(loaded, inputs or {}, dims or {})
    try:
        check(lib.insight_document_inspect(loaded._native, _options(threads, isa, fuse, keep), tensors, out, err), err)
        return Inspection(*_texts(out))
    finally:
        lib.insight_document_free(out)
        del kept


def _texts(document: Any) -> tuple[str, bytes]:
    return (ffi.buffer(document.json, document.json_size)[:].decode("utf-8"), ffi.buffer(document.html, document.html_size)[:])


class _Feed:
    """What the C library calls while it compares: for inputs, and with its progress."""

    def __init__(self, model: Model, inputs: Sequence[Mapping[str, Any]], progress: Callable[[str, float], None] | None) -> None:
        self.model, self.inputs, self.progress = model, inputs, progress
        self.raised: BaseException | None = None
        self.kept: Any = None
        self.handle = ffi.new_handle(self)


def _keep_exception(kind: Any, value: BaseException, trace: Any) -> int:
    """Keeps what was raised inside of a callback, and has the C library stop."""
    ffi.from_handle(trace.tb_frame.f_locals["arg"]).raised = value
    return int(lib.DQ_CANCELLED)


@ffi.def_extern(onerror=_keep_exception)  # type: ignore[untyped-decorator, unused-ignore]
def dqrun_python_input(arg: Any, index: int, tensors: Any, err: Any) -> int:
    feed = ffi.from_handle(arg)
    array, feed.kept = _tensors_of(feed.model, feed.inputs[index], None)
    tensors[0] = array
    return int(lib.DQ_OK)


@ffi.def_extern(onerror=_keep_exception)  # type: ignore[untyped-decorator, unused-ignore]
def dqrun_python_compared(arg: Any, what: Any, done: float) -> int:
    feed = ffi.from_handle(arg)
    if feed.progress:
        feed.progress(ffi.string(what).decode(), done)
    return 0


def _source(task: Any, prefix: str, model: Model, keep: list[Any]) -> None:
    """The bytes of a model, which edits start from, and the folder of its external data."""
    source, folder = model._source, model._base_dir
    if isinstance(source, str):
        with open(source, "rb") as file:
            data, folder = file.read(), os.path.dirname(source) or "."
    else:
        data = source
    keep += [ffi.from_buffer(data), ffi.NULL if folder is None else ffi.new("char[]", os.fsencode(folder))]
    setattr(task, prefix, model._native)
    setattr(task, prefix + "_bytes", keep[-2])
    setattr(task, prefix + "_size", len(data))
    setattr(task, prefix + "_dir", keep[-1])
    keep.append(model)


def _list_of_texts(texts: Iterable[str], keep: list[Any]) -> Any:
    encoded = [ffi.new("char[]", text.encode()) for text in texts]
    keep += [encoded, ffi.new("char *[]", encoded + [ffi.NULL])]
    return keep[-1]


def compare(quantized: ModelSource, inputs: Mapping[str, Any] | Iterable[Mapping[str, Any]], *, float: ModelSource | None = None,
            reference: Mapping[str, Any] | None = None, map: Mapping[str, str] | None = None, leave_one_out: bool = False,
            labels: Any = None, fix: str | os.PathLike[str] | None = None, progress: Callable[[str, builtins.float], None] | None = None,
            threads: int = 0, isa: str | None = None, schemas: Any = None, limits: Limits | None = None) -> Comparison:
    """Compares a quantized model with its float form, value by value, and tells causes and cures.

    Args:
        quantized: the quantized model, as for :class:`dqrun.Session`.
        inputs: one input, a mapping from names to arrays, or several of them. A sequence is read item by item, so that it may load
            each input when it is asked for it; it is read more than once.
        float: the model that it was quantized from.
        reference: in place of `float`, values by name, of a single input.
        map: names of values of the float model and of the quantized one that names and structure do not match.
        leave_one_out: also measure what the outputs gain when each quantizer is left out.
        labels: class numbers, one for each row of all inputs.
        fix: a file to write, the model with the suggested ranges.
        progress: called with the phase of the work and the part of it that is done, 0 to 1.
        threads, isa, schemas, limits: as for :class:`dqrun.Session`.

    Both models run as written. docs/compare.md defines the measures.
    """
    if (float is None) == (reference is None):
        raise InvalidArgument("compare needs either float, a model, or reference, values by name")
    feeds = [inputs] if isinstance(inputs, Mapping) else inputs if isinstance(inputs, Sequence) else list(inputs)
    if not feeds:
        raise InvalidArgument("inputs is empty, expected one input or more")
    keep: list[Any] = []
    model = _model_of(quantized, schemas, limits)
    task, err, out = ffi.new("insight_task *"), ffi.new("dq_error *"), ffi.new("insight_document *")
    feed = _Feed(model, feeds, progress)
    _source(task, "quantized", model, keep)
    if float is not None:
        _source(task, "reference", _model_of(float, schemas, limits), keep)
    elif reference is not None:
        values = [_tensors.wrap(_tensors.as_array(value, lib.DQ_UNDEFINED)) for value in reference.values()]
        keep += [values, ffi.new("dq_tensor *[]", [value.native for value in values] + [ffi.NULL])]
        task.ref_count, task.ref_tensors = len(values), keep[-1]
        task.ref_names = _list_of_texts(reference, keep)
    task.options = options = _options(threads, isa, True, keep)
    options.arg, options.progress = feed.handle, lib.dqrun_python_progress
    pairs = map or {}
    for name in pairs.values():
        if not lib.dq_model_find_value(model._native, name.encode()):
            raise InvalidArgument(f"map names '{name}', which {model.name} has no value of")
    task.map_count = len(pairs)
    task.map_floats, task.map_names = _list_of_texts(pairs, keep), _list_of_texts(pairs.values(), keep)
    task.leave_one_out, task.fixes = leave_one_out, fix is not None
    if labels is not None:
        numbers = np.ascontiguousarray(labels)
        if numbers.dtype.kind not in "iu":
            raise InvalidArgument(f"labels are of dtype {numbers.dtype}, expected integers")
        keep.append(np.ascontiguousarray(numbers.reshape(-1), np.int64))
        task.labels, task.label_count = ffi.cast("int64_t *", ffi.from_buffer(keep[-1])), keep[-1].size
    task.input_count, task.arg = len(feeds), feed.handle
    task.read, task.progress = lib.dqrun_python_input, lib.dqrun_python_compared
    try:
        status = lib.insight_document_compare(task, out, err)
        if feed.raised:
            raise feed.raised
        check(status, err)
        if fix is not None:
            with open(fix, "wb") as file:
                file.write(ffi.buffer(out.fixed, out.fixed_size))
        return Comparison(*_texts(out))
    finally:
        lib.insight_document_free(out)
