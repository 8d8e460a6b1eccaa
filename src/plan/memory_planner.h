/* SPDX-License-Identifier: Apache-2.0 */
/* Memory planner: assigns an offset in one buffer to each liveness interval, so that intervals that are live
 * at the same time do not overlap. */
#ifndef DQ_PLAN_MEMORY_PLANNER_H
#define DQ_PLAN_MEMORY_PLANNER_H

#include "base/error.h"

typedef struct dq_interval {
    size_t size;          /* Bytes. */
    uint32_t first, last; /* First and last step in which it is live. */
    uint32_t within;      /* 0, or 1 + index of a later interval that contains its memory … */
    uint32_t binding;     /* For the planner, see output_binding.c. */
    size_t shift;         /* … at this byte offset */
    size_t offset;        /* The result, a multiple of DQ_ALIGN if `shift` is. */
} dq_interval;

/** Assigns offsets greedily by size: the largest interval first, each at the lowest offset that is free while
 * it and its parts are live. *total is the size of the buffer. Deterministic. */
dq_status dq_assign_offsets(dq_interval *intervals, size_t count, size_t *total, dq_error *err);

#endif
