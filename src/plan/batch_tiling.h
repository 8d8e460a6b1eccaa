/* SPDX-License-Identifier: Apache-2.0 */
/* Slice by slice: a plan whose first nodes treat each slice of the outermost axis (the pictures of a batch)
 * alike runs these over some slices at a time, with a plan of their own, so that what one node gives the next
 * stays in the cache, and the rest of the nodes over all. With several threads each has slices of its own. */
#ifndef DQ_PLAN_BATCH_TILING_H
#define DQ_PLAN_BATCH_TILING_H

#include "plan/plan.h"

/** What one thread runs slices with. */
typedef struct dq_slice_runner {
    dq_plan *plan;
    dq_binding *given; /* as the whole plan's, by position, of `tensors` */
    dq_tensor *tensors;
    dq_status status;
    dq_error err;
} dq_slice_runner;

struct dq_slices {
    dq_arena arena;
    dq_plan *shapes; /* of all nodes and slices, without places; has constants that the rest reads */
    size_t count;
    uint32_t node_count;      /* the first of the nodes, which run by slices */
    uint64_t work;            /* of all of them */
    dq_slice_runner *runners; /* for each thread; one, when each step has them all */
    size_t runner_count;
    size_t runner_bytes; /* of the whole plan's buffer, for each: from ahead_offset on */
    bool *sliced;        /* by position in given; the others are the same for all */
    uint32_t given_count;
    const dq_value **values; /* what the slices give, end to end in the values of the whole plan */
    uint32_t value_count;
};

/** Looks at a plan whose values have their shapes and no places. Where slices pay and are known to give the
 * same, *plan becomes one of what is left to do over all slices, which has the slices and, in them, the plan
 * that was there. */
dq_status dq_slices_make(dq_plan **plan, const dq_plan_request *request, dq_error *err);
/** The plan that was there; it frees the other. One without slices stays. */
dq_plan *dq_slices_whole(dq_plan *plan);
void dq_slices_free(struct dq_slices *slices);

#endif
