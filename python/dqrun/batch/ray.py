# SPDX-License-Identifier: Apache-2.0
"""Runs a model over a Ray dataset: ``pip install 'dqrun[ray]'``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from .._errors import InvalidArgument
from .._model import ModelSource
from ._predictor import Predictor


class _Actor:
    """What Ray starts once in each actor process: the model is loaded there, not for each block."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        predictor.session  # noqa: B018: loads it

    def __call__(self, batch: dict[str, Any]) -> Any:
        return self._predictor(batch)


def map_batches(dataset: Any, model: ModelSource, inputs: Mapping[str, str] | Sequence[str] | None = None,
                outputs: Mapping[str, str] | Sequence[str] | None = None, *, actors: int = 1, batch_size: int = 256,
                keep: Sequence[str] = (), on_error: str = "column") -> Any:
    """The dataset of a model's results, which Ray computes when it is read.

    Args:
        dataset: a ``ray.data.Dataset``.
        model, inputs, outputs, keep, on_error: as for :class:`Predictor`. ``"column"`` is the default, as one bad row would otherwise
            end the job.
        actors: actor processes; each has one CPU and computes with one thread.
        batch_size: rows of a run.

    Returns:
        A ``ray.data.Dataset`` with the columns `keep`, the outputs and ``error``, in the order of the input: ``preserve_order`` is
        set in the dataset's context.

    Raises:
        InvalidArgument: the arguments are wrong, or the actors would take every CPU of the cluster: the tasks that read the
            input would wait for one for ever. With a ``checkpoint_config`` in the dataset's context, a run that resumes has an
            actor of Ray's besides, which leaves out the rows that are done.
    """
    ray: Any = importlib.import_module("ray")
    data: Any = importlib.import_module("ray.data")
    if actors < 1:
        raise InvalidArgument(f"actors is {actors}, expected 1 or more")
    predictor = Predictor(model, inputs, outputs, threads=1, keep=keep, on_error=on_error)
    if not ray.is_initialized():
        ray.init()
    cpus = ray.cluster_resources().get("CPU", 0)
    checkpoint = getattr(dataset.context, "checkpoint_config", None)
    filters = checkpoint.checkpoint_actor_pool_min_size if checkpoint else 0
    if actors + filters >= cpus:
        resuming = f" and {filters} of one CPU to resume" if filters else ""
        raise InvalidArgument(f"{actors} actors of one CPU each{resuming} leave none of the cluster's {cpus:g} for the tasks that read "
                              f"the input: use fewer actors, or a cluster with more CPUs, such as "
                              f"ray.init(num_cpus={actors + filters + 1})")
    dataset.context.execution_options.preserve_order = True
    return dataset.map_batches(_Actor, fn_constructor_args=(predictor,), batch_size=batch_size, batch_format="numpy",
                               compute=data.ActorPoolStrategy(size=actors), num_cpus=1, zero_copy_batch=True)
