# SPDX-License-Identifier: Apache-2.0
"""Sessions: models that run."""

from __future__ import annotations

import collections
import dataclasses
import html
import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from . import _dtypes, _tensors
from ._errors import Error, InvalidArgument, check
from ._graph import MemoryInfo, Node, Step, _text
from ._model import Limits, Model, ModelSource, ValueInfo
from ._native import ffi, lib


@dataclasses.dataclass(frozen=True)
class ProfileStep:
    """Time of one step, summed over the profiled runs.

    Attributes:
        node: the node's name, or that of its first output.
        op: operator and version, such as ``"QLinearConv-10"``; operators of the domain ``dqrun`` stand for several nodes of the model.
        seconds: wall time of one run, the mean over the runs.
    """

    node: str
    op: str
    seconds: float


class Profile(Sequence[ProfileStep]):
    """Steps of a run with their times, in the order in which they ran."""

    def __init__(self, steps: list[ProfileStep], runs: int) -> None:
        self._steps, self.runs = steps, runs

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, index: Any) -> Any:
        return self._steps[index]

    @property
    def seconds(self) -> float:
        """Seconds of all steps of one run."""
        return sum(step.seconds for step in self._steps)

    def by_op(self) -> dict[str, float]:
        """Seconds by operator, the largest first."""
        sums: collections.Counter[str] = collections.Counter()
        for step in self._steps:
            sums[step.op] += step.seconds  # type: ignore[assignment]
        return dict(sums.most_common())

    def _rows(self) -> list[tuple[str, str, str, str]]:
        whole = self.seconds or 1.0
        return [(f"{step.seconds * 1e3:.3f}", f"{100 * step.seconds / whole:.1f}", step.op, step.node)
                for step in sorted(self._steps, key=lambda step: -step.seconds)]

    def __repr__(self) -> str:
        lines = [f"{'ms':>10} {'%':>6}  step"]
        lines += [f"{ms:>10} {share:>6}  {op:<28} {node}" for ms, share, op, node in self._rows()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self._rows())
        return f"<table><thead><tr><th>ms</th><th>%</th><th>operator</th><th>node</th></tr></thead><tbody>{cells}</tbody></table>"


class _Callbacks:
    """What the C library calls for one native session: its log, its trace, and now and then a look at signals."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.steps: list[ProfileStep] = []
        self.raised: BaseException | None = None
        self.handle = ffi.new_handle(self)


@ffi.def_extern()  # type: ignore[untyped-decorator, unused-ignore]
def dqrun_python_log(arg: Any, record: Any) -> None:
    ffi.from_handle(arg).messages.append(ffi.string(record.message).decode("utf-8", "replace"))


@ffi.def_extern()  # type: ignore[untyped-decorator, unused-ignore]
def dqrun_python_trace(arg: Any, event: Any) -> None:
    ffi.from_handle(arg).steps.append(
        ProfileStep(ffi.string(event.node).decode("utf-8", "replace"), ffi.string(event.op).decode(), event.seconds))


def _keep_exception(kind: Any, value: BaseException, trace: Any) -> int:
    """Keeps what a signal handler raised inside of a callback, and has the C library cancel the run."""
    arg = trace.tb_frame.f_locals["arg"]
    ffi.from_handle(arg).raised = value
    return 1


@ffi.def_extern(onerror=_keep_exception)  # type: ignore[untyped-decorator, unused-ignore]
def dqrun_python_poll(arg: Any) -> int:
    """Called some times a second while a run computes: entering Python has the interpreter call its signal handlers."""
    return 0


class _Native:
    """One ``dq_session``, which one thread at a time uses."""

    def __init__(self, model: Model, options: dict[str, Any], extra: tuple[str, ...] = (),
                 log: bool = False, trace: bool = False) -> None:
        err, out = ffi.new("dq_error *"), ffi.new("dq_session **")
        o = ffi.new("dq_session_options *")
        o.size = ffi.sizeof("dq_session_options")
        o.threads = options["threads"]
        isa = ffi.new("char[]", options["isa"].encode()) if options["isa"] else ffi.NULL
        o.isa = isa
        o.no_fuse = not options["fuse"]
        o.honor_accuracy_level = options["honor_accuracy_level"]
        self.callbacks = _Callbacks()
        o.arg = self.callbacks.handle
        o.progress = lib.dqrun_python_progress
        if log:
            o.log = lib.dqrun_python_log
        if trace:
            o.trace = lib.dqrun_python_trace
        check(lib.dq_session_create(model._native, o, out, err), err)
        self.pointer = ffi.gc(out[0], lib.dq_session_free)
        self.err = err
        self.fed = ffi.new("dq_tensor **")
        self.taken = ffi.new("dqrun_python_output *")
        for name in extra:
            check(lib.dq_session_add_output(self.pointer, name.encode(), err), err)


class Session:
    """Runs a model.

    Args:
        model: a path, the bytes of a .onnx file, an ``onnx.ModelProto``, or a :class:`dqrun.Model`.
        threads: threads of a run; 0: those of a pool of all cores that all sessions of the process share.
        isa: highest instruction set to use, such as ``"avx2"``; None: the processor's best. Results do not depend on it.
        fuse: False runs the graph as written.
        honor_accuracy_level: lets nodes with ``accuracy_level`` 4 round activations to 8 bits, as ONNX Runtime does.
        schemas: folders of operator schemas that override or add to the library's.
        limits: bounds on what the model may ask for.

    Raises:
        BadModel, Unsupported: the model cannot run; :meth:`dqrun.Model.check` lists all nodes that cannot.
        FileNotFoundError: there is no such file.

    A session may be called from many threads at once; each call that runs at the same time has its own memory for activations. The
    GIL is released while a run computes. Sessions are picklable: by path and SHA-256 of the file, or by the model's bytes. A session
    that was forked runs in the child.

    >>> session = dqrun.Session("examples/digits_qdq.onnx")
    >>> session(image=np.zeros((1, 1, 8, 8), np.float32)).shape
    (1, 10)
    """

    def __init__(self, model: ModelSource, *, threads: int = 0, isa: str | None = None, fuse: bool = True,
                 honor_accuracy_level: bool = False, schemas: Any = None, limits: Limits | None = None) -> None:
        if threads < 0:
            raise InvalidArgument(f"threads is {threads}, expected 0 or more")
        self._model = model if isinstance(model, Model) else Model(model, schemas=schemas, limits=limits)
        self._options: dict[str, Any] = {"threads": threads, "isa": isa, "fuse": fuse, "honor_accuracy_level": honor_accuracy_level}
        self._closed = False
        self._idle: dict[tuple[str, ...], collections.deque[_Native]] = {}
        self._bind()
        self._give_back((), self._new(()))  # so that a model that cannot run is refused here

    def _bind(self) -> None:
        self._inputs = {info.name: (info.name.encode(), info) for info in self._model.inputs}
        self._output_names = [info.name for info in self._model.outputs]
        self._outputs = frozenset(self._output_names)

    # ---- What it is ------------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The model, which sessions may share."""
        return self._model

    @property
    def inputs(self) -> list[ValueInfo]:
        """What :meth:`run` is fed: name, dtype, and shape with the names of symbolic dimensions."""
        return self._model.inputs

    @property
    def outputs(self) -> list[ValueInfo]:
        """What :meth:`run` returns."""
        return self._model.outputs

    @property
    def isa(self) -> str:
        """The instruction set in use, such as ``"avx512vnni"``."""
        native = self._take(())
        try:
            return str(ffi.string(lib.dq_session_isa(native.pointer)).decode())
        finally:
            self._give_back((), native)

    @property
    def threads(self) -> int:
        """Threads of a run."""
        native = self._take(())
        try:
            return int(lib.dq_session_threads(native.pointer))
        finally:
            self._give_back((), native)

    def check(self) -> list[Error]:
        """The nodes that cannot run, which is none: a session of such a model is refused. See :meth:`dqrun.Model.check`."""
        return self._model.check()

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.inputs))
        outputs = ", ".join(map(str, self.outputs))
        state = " (closed)" if self._closed else ""
        return f"<dqrun.Session {self._model.name!r}: ({inputs}) -> ({outputs}){state}>"

    def _repr_html_(self) -> str:
        return self._model._repr_html_()

    # ---- Native sessions: one for each call that is under way ------------------------------------------------

    def _new(self, extra: tuple[str, ...]) -> _Native:
        return _Native(self._model, self._options, extra)

    def _take(self, extra: tuple[str, ...]) -> _Native:
        if self._closed:
            raise InvalidArgument("the session is closed")
        try:
            return self._idle[extra].pop()
        except (KeyError, IndexError):
            return self._new(extra)

    def _give_back(self, extra: tuple[str, ...], native: _Native) -> None:
        if not self._closed:
            self._idle.setdefault(extra, collections.deque()).append(native)

    def close(self) -> None:
        """Frees the memory of the session; runs that are under way end first. Closing twice is fine."""
        self._closed = True
        self._idle.clear()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # ---- Running ---------------------------------------------------------------------------------------------

    def run(self, outputs: Sequence[str] | str | None = None, feeds: Mapping[str, Any] | None = None,
            out: Mapping[str, Any] | None = None) -> list[Any]:
        """Runs the model.

        Args:
            outputs: names of outputs, or of values inside the graph; None: all outputs.
            feeds: the inputs by name. Arrays of any layout, numpy scalars, numbers and lists, objects with ``__dlpack__`` (torch
                tensors), ml_dtypes' types; lists of arrays for sequences; None for an optional that is empty, and for an
                input that takes its default. Arrays that are C-contiguous, aligned and in native byte order are not copied.
            out: arrays that outputs are written to, by name: C-contiguous, writable, of the output's dtype and shape. An
                array may also be an input: caches are updated in place.

        Returns:
            The outputs in the order of `outputs`. They stay valid after later runs.

        Raises:
            BadInput: an input is missing, unknown, or has another type or shape than the model declares.
            InvalidArgument: there is no output or value of that name.
            BadModel: a node does not fit the values that it got.
        """
        if isinstance(outputs, str):
            outputs = [outputs]
        names = self._output_names if outputs is None else list(outputs)
        extra = () if outputs is None else tuple(sorted({name for name in names if name not in self._outputs}))
        native = self._take(extra)
        try:
            return self._run(native, names, feeds or {}, out or {})
        finally:
            self._give_back(extra, native)

    def __call__(self, **feeds: Any) -> Any:
        """Runs the model on inputs by keyword. Returns the output where there is one, else a tuple of all outputs."""
        results = self.run(None, feeds)
        return results[0] if len(results) == 1 else tuple(results)

    def _run(self, native: _Native, names: Sequence[str], feeds: Mapping[str, Any], out: Mapping[str, Any]) -> list[Any]:
        pointer, err = native.pointer, native.err
        bound: list[tuple[bytes, Any]] = []
        targets: list[tuple[bytes, Any]] = []
        try:
            for name, value in feeds.items():
                self._feed(native, name, value, bound)
            for name, array in out.items():
                tensor = _tensors.wrap(array, writable=True)
                check(lib.dq_session_set_output(pointer, name.encode(), tensor.native, err), err)
                targets.append((name.encode(), tensor))
            status = lib.dq_session_run(pointer, err)
            if native.callbacks.raised:
                raised, native.callbacks.raised = native.callbacks.raised, None
                raise raised
            check(status, err)
            return [out[name] if name in out else self._output(native, name) for name in names]
        finally:
            self._unbind(pointer, bound)
            for encoded, _ in targets:
                lib.dq_session_set_output(pointer, encoded, ffi.NULL, ffi.NULL)

    def _feed(self, native: _Native, name: str, value: Any, bound: list[tuple[bytes, Any]]) -> None:
        found = self._inputs.get(name)
        # The usual case, an array that is read where it stands, takes one call.
        if type(value) is np.ndarray and found and found[1]._kind == lib.DQ_KIND_TENSOR and value.flags.carray and value.size:
            dtype = _dtypes.PLAIN.get(value.dtype)
            if dtype is not None:
                memory = ffi.from_buffer(value)
                status = lib.dqrun_python_feed(native.pointer, found[0], dtype, value.ndim, value.shape, memory, value.nbytes,
                                               native.fed, native.err)
                check(status, native.err)
                bound.append((found[0], (native.fed[0], memory)))
                return
        if found is None:
            check(lib.dq_session_set_input(native.pointer, name.encode(), ffi.NULL, native.err), native.err)
            raise InvalidArgument(f"there is no input '{name}'")
        encoded, info = found
        if value is None and info._kind != lib.DQ_KIND_OPTIONAL:
            return
        tensor = _tensors.to_native(value, info._kind, info._onnx_dtype, info._item_kind)
        check(lib.dq_session_set_input(native.pointer, encoded, tensor.native, native.err), native.err)
        bound.append((encoded, tensor))

    @staticmethod
    def _unbind(pointer: Any, bound: list[tuple[bytes, Any]]) -> None:
        """Takes the inputs of a run back, and lets them go."""
        for encoded, tensor in bound:
            lib.dq_session_set_input(pointer, encoded, ffi.NULL, ffi.NULL)
            if type(tensor) is tuple:
                lib.dq_tensor_free(tensor[0])

    def _output(self, native: _Native, name: str) -> Any:
        taken = native.taken
        check(lib.dqrun_python_take(native.pointer, name.encode(), taken, native.err), native.err)
        if taken.kind == lib.DQ_KIND_TENSOR and _dtypes.BITS[taken.dtype] >= 8:
            shape = ffi.unpack(taken.dims, taken.rank) if taken.rank else ()
            return _tensors.array_over(taken.tensor, taken.data, taken.size, taken.dtype, shape)
        return _tensors.to_python(ffi.gc(taken.tensor, lib.dq_tensor_free))

    # ---- Looking inside --------------------------------------------------------------------------------------

    def why(self, feeds: Mapping[str, Any] | None = None) -> list[str]:
        """What the rewriter and the planner decide for inputs of these shapes, a line each; nothing runs."""
        native = self._prepared(feeds, log=True)
        return native.callbacks.messages

    def steps(self, feeds: Mapping[str, Any] | None = None) -> list[Step]:
        """What a run for inputs of these shapes consists of, after rewriting; nothing runs."""
        native = self._prepared(feeds)
        info, found = ffi.new("dq_step_info *"), []
        for i in range(lib.dq_session_step_count(native.pointer)):
            info.size = ffi.sizeof("dq_step_info")
            check(lib.dq_session_step(native.pointer, i, info, native.err), native.err)
            written = [Node(self._model, info.written[k]) for k in range(info.written_count)]
            found.append(Step(_text(info.op), _text(info.decision), _text(info.algorithm), written, info.work, info.scratch_bytes, info.macs, info.bytes))
        return found

    def memory(self, feeds: Mapping[str, Any] | None = None) -> MemoryInfo:
        """Memory that a run for inputs of these shapes takes; nothing runs."""
        native = self._prepared(feeds)
        info = ffi.new("dq_memory_info *")
        info.size = ffi.sizeof("dq_memory_info")
        check(lib.dq_session_memory(native.pointer, info, native.err), native.err)
        return MemoryInfo(info.activation_bytes, info.weight_bytes, info.constant_bytes)

    def save_packed(self, path: "str | os.PathLike[str]", feeds: Mapping[str, Any] | None = None) -> None:
        """Writes the weights, packed for this instruction set and for inputs of these shapes, to a file for ``Model(packed=path)``."""
        native = self._prepared(feeds)
        check(lib.dq_session_save_packed(native.pointer, os.fsencode(path), native.err), native.err)

    def _prepared(self, feeds: Mapping[str, Any] | None, log: bool = False) -> _Native:
        """A native session that has planned for these inputs."""
        native = _Native(self._model, self._options, log=log)
        bound: list[tuple[bytes, Any]] = []
        try:
            for name, value in (feeds or {}).items():
                self._feed(native, name, value, bound)
            check(lib.dq_session_prepare(native.pointer, native.err), native.err)
        finally:
            self._unbind(native.pointer, bound)
        return native

    def profile(self, feeds: Mapping[str, Any] | None = None, *, runs: int = 10) -> Profile:
        """Times each step: the mean over `runs` runs after one that does not count."""
        if runs < 1:
            raise InvalidArgument(f"runs is {runs}, expected 1 or more")
        native = _Native(self._model, self._options, trace=True)
        callbacks = native.callbacks
        self._run(native, [], feeds or {}, {})
        steps: list[ProfileStep] = []
        for run in range(runs):
            callbacks.steps.clear()
            self._run(native, [], feeds or {}, {})
            if not run:
                steps = list(callbacks.steps)
            else:
                steps = [dataclasses.replace(a, seconds=a.seconds + b.seconds) for a, b in zip(steps, callbacks.steps)]
        return Profile([dataclasses.replace(step, seconds=step.seconds / runs) for step in steps], runs)

    # ---- Pickling --------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self._model, "options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._model, self._options = state["model"], state["options"]
        self._closed = False
        self._idle = {}
        self._bind()
        self._give_back((), self._new(()))
