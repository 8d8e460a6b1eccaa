# SPDX-License-Identifier: Apache-2.0
"""Scores a folder of Parquet files with Ray Data: batch_ray.py MODEL SOURCE TARGET ACTORS.

The files have a column `id` and one for each input of the model; TARGET gets Parquet files with `id`, the outputs and `error`.
TARGET_checkpoint gets the ids of the rows that are done: after a driver that was killed, the same command computes the others.
Needs pip install 'dqrun[ray]'."""

import sys

import ray.data
from ray.data.checkpoint import CheckpointConfig

from dqrun.batch.ray import map_batches


def main(model, source, target, actors):
    # One CPU more for the tasks that read, one for Ray's actor that leaves out what is done. On a cluster: ray.init("auto").
    ray.init("local", num_cpus=actors + 2, include_dashboard=False)
    ray.data.DataContext.get_current().checkpoint_config = CheckpointConfig("id", f"{target}_checkpoint", delete_checkpoint_on_success=False)
    map_batches(ray.data.read_parquet(source), model, actors=actors, keep=["id"]).write_parquet(target)


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
