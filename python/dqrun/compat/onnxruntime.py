# SPDX-License-Identifier: Apache-2.0
"""The names of onnxruntime that programs use for inference, over dqrun.

    import dqrun.compat.onnxruntime as ort
    session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    scores, = session.run(None, {"image": image})

What differs is listed in docs/from-onnxruntime.md."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import _dtypes
from .._errors import InvalidArgument, Unsupported
from .._model import ModelSource, ValueInfo
from .._native import lib
from .._session import Session

__all__ = ["ExecutionMode", "GraphOptimizationLevel", "InferenceSession", "ModelMetadata", "NodeArg", "OrtValue", "RunOptions",
           "SessionOptions", "get_all_providers", "get_available_providers", "get_device"]

_PROVIDER = "CPUExecutionProvider"


class GraphOptimizationLevel(enum.IntEnum):
    """ORT_DISABLE_ALL runs the graph as written; all other levels rewrite it."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """dqrun runs nodes one after the other, whatever is asked for."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """Options of a session. `intra_op_num_threads` (0: a pool of all cores) and `graph_optimization_level` have an effect."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.enable_profiling = False
        self.enable_mem_pattern = True
        self.enable_cpu_mem_arena = True
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self._entries: dict[str, str] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps the entry; none has an effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """The value of an entry that was added."""
        try:
            return self._entries[key]
        except KeyError:
            raise InvalidArgument(f"there is no session configuration entry '{key}'") from None


class RunOptions:
    """Options of a run; none has an effect."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.terminate = False


class NodeArg:
    """An input or output.

    Attributes:
        name: its name.
        type: ``"tensor(float)"``, as onnxruntime writes it.
        shape: a list with sizes, names of symbolic dimensions, and None.
    """

    def __init__(self, info: ValueInfo) -> None:
        self.name, self.type = info.name, info.type
        self.shape: list[int | str | None] = list(info.shape or ())

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """What the model says of itself."""

    def __init__(self, producer_name: str, graph_name: str, domain: str, description: str, version: int,
                 custom_metadata_map: dict[str, str]) -> None:
        self.producer_name, self.graph_name, self.domain, self.description = producer_name, graph_name, domain, description
        self.version, self.custom_metadata_map = version, custom_metadata_map


class OrtValue:
    """An array on the CPU."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(array: Any, device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        """An OrtValue over an array, which is not copied."""
        if device_type != "cpu":
            raise Unsupported(f"device '{device_type}' is not supported, expected 'cpu'")
        return OrtValue(np.asarray(array))

    def numpy(self) -> np.ndarray[Any, Any]:
        """The array."""
        return self._array

    def shape(self) -> list[int]:
        """Its shape."""
        return list(self._array.shape)

    def element_type(self) -> int:
        """Its element type, numbered as ONNX's TensorProto.DataType."""
        return _dtypes.from_numpy(self._array.dtype)

    def data_type(self) -> str:
        """Its type, such as ``"tensor(float)"``."""
        from .._native import ffi

        name = ffi.string(lib.dq_dtype_name(self.element_type())).decode()
        return f"tensor({name})"

    def device_name(self) -> str:
        """``"cpu"``."""
        return "cpu"

    def is_tensor(self) -> bool:
        """True."""
        return True


class InferenceSession:
    """A session with onnxruntime's methods. `providers` must hold the CPU provider or be None."""

    def __init__(self, path_or_bytes: ModelSource, sess_options: SessionOptions | None = None,
                 providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None, **kwargs: Any) -> None:
        names = [provider if isinstance(provider, str) else provider[0] for provider in providers or [_PROVIDER]]
        if _PROVIDER not in names:
            raise Unsupported(f"providers are {names}, expected '{_PROVIDER}' among them")
        options = sess_options or SessionOptions()
        fuse = options.graph_optimization_level != GraphOptimizationLevel.ORT_DISABLE_ALL
        self._options = options
        self._session = Session(path_or_bytes, threads=options.intra_op_num_threads, fuse=fuse)

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None) -> list[Any]:
        """Runs the model: outputs in the order of `output_names`, all of them for None or an empty list."""
        feeds = {name: value.numpy() if isinstance(value, OrtValue) else value for name, value in input_feed.items()}
        return self._session.run(output_names or None, feeds)

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        """The same with OrtValues in and out."""
        return [OrtValue(array) for array in self.run(output_names, input_dict_ort_values)]

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that have no default."""
        return [NodeArg(info) for info in self._session.inputs if not info.optional]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs that have one."""
        return [NodeArg(info) for info in self._session.inputs if info.optional]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        return [NodeArg(info) for info in self._session.outputs]

    def get_modelmeta(self) -> ModelMetadata:
        """Producer, graph name, domain, description, version, and metadata_props."""
        info = self._session.model.metadata
        version = info.version or 2**63 - 1  # as onnxruntime has it for a model without a version
        return ModelMetadata(info.producer_name, info.graph_name, info.domain, info.doc, version, dict(info.properties))

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._options

    def get_providers(self) -> list[str]:
        """The CPU provider."""
        return [_PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """No options of the CPU provider."""
        return {_PROVIDER: {}}


def get_available_providers() -> list[str]:
    """The CPU provider."""
    return [_PROVIDER]


def get_all_providers() -> list[str]:
    """The CPU provider."""
    return [_PROVIDER]


def get_device() -> str:
    """``"CPU"``."""
    return "CPU"
