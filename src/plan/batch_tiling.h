/* SPDX-License-Identifier: Apache-2.0 */
/* Batch tiling. If the first nodes of a plan are batch-separable, they run for a few images (slices of the
 * outermost axis) at a time, with a plan of their own, so that intermediate values stay in the cache. The
 * other nodes then run for the whole batch. Each thread processes images of its own. */
#ifndef DQ_PLAN_BATCH_TILING_H
#define DQ_PLAN_BATCH_TILING_H

#include "plan/plan.h"

/** The state of one thread of batch tiling. */
typedef struct dq_batch_tile_runner {
    dq_plan *plan;
    dq_binding *bindings; /* The bindings of the whole plan, by position; they point to `tensors`. */
    dq_tensor *tensors;
    dq_status status;
    dq_error err;
} dq_batch_tile_runner;

struct dq_batch_tiling {
    dq_arena arena;
    dq_plan *shapes; /* the plan of all nodes and images, without memory; owns constants that the other nodes
                        read */
    size_t count;
    uint32_t node_count;           /* Number of nodes that run tile by tile: the first ones of the list. */
    uint64_t work;                 /* Work of all images. */
    dq_batch_tile_runner *runners; /* One for each thread; a single one if each step uses all threads. */
    size_t runner_count;
    size_t runner_bytes; /* bytes for each runner in the buffer of the whole plan, from ahead_offset on */
    bool *is_batched;    /* By position in `given`: the input has a slice for each image. */
    uint32_t binding_count;
    const dq_value **values; /* The results of the images, concatenated in values of the whole plan. */
    uint32_t value_count;
};

/** Considers a plan after shape inference, before allocation. If batch tiling pays off and gives the same
 * results, *plan becomes the plan of the remaining nodes, which owns the tiling and, in it, the original
 * plan. */
dq_status dq_batch_tiling_make(dq_plan **plan, const dq_plan_request *request, dq_error *err);
/** Undoes it: returns the original plan and frees the other. A plan without batch tiling is returned as it
 * is. */
dq_plan *dq_batch_tiling_undo(dq_plan *plan);
void dq_batch_tiling_free(struct dq_batch_tiling *tiling);

#endif
