# SPDX-License-Identifier: Apache-2.0
"""dqrun runs quantized ONNX models: every quantized type, the same results on every machine.

>>> import dqrun, numpy as np
>>> session = dqrun.Session("examples/digits_qdq.onnx")
>>> session
<dqrun.Session 'examples/digits_qdq.onnx': (image: float[N,1,8,8]) -> (scores: float[N,10])>
>>> scores = session(image=np.zeros((1, 1, 8, 8), np.float32))

`Session` runs a model, `Model` looks into one without running it, `inspect` shows how one is computed, `compare` where a quantized one
loses accuracy, `dqrun.batch` runs one over many rows, `dqrun.backend` is
a backend of ``onnx.backend``, and `dqrun.compat.onnxruntime` has the names of onnxruntime for programs that use it. Errors are subclasses of `Error`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._errors import BadInput as BadInput
    from ._errors import BadModel as BadModel
    from ._errors import Cancelled as Cancelled
    from ._errors import Error as Error
    from ._errors import InternalError as InternalError
    from ._errors import InvalidArgument as InvalidArgument
    from ._errors import IOFailed as IOFailed
    from ._errors import OutOfMemory as OutOfMemory
    from ._errors import Unsupported as Unsupported
    from ._graph import Graph as Graph
    from ._graph import MemoryInfo as MemoryInfo
    from ._graph import Metadata as Metadata
    from ._graph import Node as Node
    from ._graph import Quantization as Quantization
    from ._graph import Step as Step
    from ._graph import Value as Value
    from ._insight import ComparedNode as ComparedNode
    from ._insight import ComparedOutput as ComparedOutput
    from ._insight import ComparedTensor as ComparedTensor
    from ._insight import ComparedWeight as ComparedWeight
    from ._insight import Comparison as Comparison
    from ._insight import Errors as Errors
    from ._insight import InspectedNode as InspectedNode
    from ._insight import InspectedTensor as InspectedTensor
    from ._insight import Inspection as Inspection
    from ._insight import QuantizerRange as QuantizerRange
    from ._insight import Verdict as Verdict
    from ._insight import compare as compare
    from ._insight import inspect as inspect
    from ._model import Limits as Limits
    from ._model import Model as Model
    from ._model import ValueInfo as ValueInfo
    from ._session import Profile as Profile
    from ._session import ProfileStep as ProfileStep
    from ._session import Session as Session

    __version__: str

# Modules are imported when a name of theirs is first used, so that the command starts without numpy.
_MODULES = {
    "_errors": ("BadInput", "BadModel", "Cancelled", "Error", "InternalError", "InvalidArgument", "IOFailed", "OutOfMemory",
                "Unsupported"),
    "_graph": ("Graph", "MemoryInfo", "Metadata", "Node", "Quantization", "Step", "Value"),
    "_insight": ("ComparedNode", "ComparedOutput", "ComparedTensor", "ComparedWeight", "Comparison", "Errors", "InspectedNode",
                 "InspectedTensor", "Inspection", "QuantizerRange", "Verdict", "compare", "inspect"),
    "_model": ("Limits", "Model", "ValueInfo"),
    "_session": ("Profile", "ProfileStep", "Session"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "BadInput", "BadModel", "Cancelled", "ComparedNode", "ComparedOutput", "ComparedTensor", "ComparedWeight", "Comparison",
    "Error", "Errors", "Graph", "IOFailed", "InspectedNode", "InspectedTensor", "Inspection", "InternalError",
    "InvalidArgument", "Limits", "MemoryInfo", "Metadata", "Model", "Node", "OutOfMemory", "Profile", "ProfileStep",
    "Quantization", "QuantizerRange", "Session", "Step", "Unsupported", "Value", "ValueInfo", "Verdict", "__version__",
    "compare", "inspect",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name == "__version__":
        from ._native import ffi, lib

        value: Any = ffi.string(lib.dq_version()).decode()
    elif name in _HOME:
        value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    elif name in ("backend", "batch", "compat"):
        return importlib.import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "backend", "batch", "compat"])
