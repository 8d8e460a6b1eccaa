# SPDX-License-Identifier: Apache-2.0
"""Scores a folder of Parquet files with Ray Data: batch_ray.py MODEL SOURCE TARGET ACTORS.

The files have a column `id` and one for each input of the model; TARGET gets Parquet files with `id`, the outputs and `error`.
Needs pip install 'dqrun[ray]'."""

import sys

import ray.data

from dqrun.batch.ray import map_batches


def main(model, source, target, actors):
    ray.init(num_cpus=actors + 1, include_dashboard=False)  # one more for the tasks that read; on a cluster: ray.init("auto")
    map_batches(ray.data.read_parquet(source), model, actors=actors, keep=["id"]).write_parquet(target)


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
