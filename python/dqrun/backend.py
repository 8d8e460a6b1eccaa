# SPDX-License-Identifier: Apache-2.0
"""A backend of ``onnx.backend``: `prepare`, `run_model`, `run_node`, `supports_device`, `is_compatible`.

>>> import dqrun.backend
>>> dqrun.backend.prepare(model).run([array])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._errors import InvalidArgument, Unsupported
from ._model import Model, ModelSource
from ._session import Session


class BackendRep:
    """A prepared model.

    Attributes:
        session: the :class:`dqrun.Session` that runs it.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model on inputs by position (a list, a tuple or one array), or by name (a mapping). Returns all outputs in order."""
        if hasattr(inputs, "keys"):
            feeds = dict(inputs)
        else:
            values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            names = [info.name for info in self.session.inputs]
            if len(values) > len(names):
                raise InvalidArgument(f"{len(values)} inputs are given, expected at most {len(names)}")
            feeds = dict(zip(names, values))
        return tuple(self.session.run(None, feeds))


def _check_device(device: str) -> None:
    if not supports_device(device):
        raise Unsupported(f"device '{device}' is not supported, expected 'CPU'")


def prepare(model: ModelSource, device: str = "CPU", **kwargs: Any) -> BackendRep:
    """Loads a model. Keyword arguments are those of :class:`dqrun.Session`."""
    _check_device(device)
    return BackendRep(Session(model, **kwargs))


def run_model(model: ModelSource, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
    """Runs a model once."""
    return prepare(model, device, **kwargs).run(inputs)


def run_node(node: Any, inputs: Sequence[Any], device: str = "CPU", outputs_info: Any = None, *,
             opset_version: int | None = None, **kwargs: Any) -> tuple[Any, ...]:
    """Runs one ``onnx.NodeProto``; types and shapes of its inputs are those of the arrays."""
    import onnx
    from onnx import helper

    from . import _dtypes, _tensors

    _check_device(device)
    arrays = [_tensors.as_array(value, 0) for value in inputs]
    names = [name for name in node.input if name]
    graph_inputs = [helper.make_tensor_value_info(name, _dtypes.from_numpy(array.dtype), array.shape)
                    for name, array in zip(dict.fromkeys(names), arrays)]
    graph_outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    version = opset_version if opset_version is not None else onnx.defs.onnx_opset_version()
    model = helper.make_model(helper.make_graph([node], node.op_type, graph_inputs, graph_outputs),
                              opset_imports=[helper.make_opsetid(node.domain, version)])
    return run_model(model, arrays, device, **kwargs)


def supports_device(device: str) -> bool:
    """True for ``"CPU"``."""
    return device.partition(":")[0] == "CPU"


def is_compatible(model: ModelSource, device: str = "CPU", **kwargs: Any) -> bool:
    """Whether every node of the model can run."""
    return supports_device(device) and not (model if isinstance(model, Model) else Model(model, **kwargs)).check()
