/* SPDX-License-Identifier: Apache-2.0 */
/* Memory from lifetimes: offsets inside one buffer, so that pieces that live at the same time do not overlap.
 */
#ifndef DQ_PLAN_MEMORY_PLANNER_H
#define DQ_PLAN_MEMORY_PLANNER_H

#include "base/error.h"

typedef struct dq_interval {
    size_t size;          /* bytes */
    uint32_t first, last; /* steps between which it lives, both included */
    uint32_t within;      /* 0, or 1 + index of a later piece of which it is a part … */
    uint32_t binding;     /* for the planner, see output_binding.c */
    size_t shift;         /* … from this byte on */
    size_t offset;        /* the result, a multiple of DQ_ALIGN if `shift` is */
} dq_interval;

/** Places the pieces, largest first, each at the lowest offset that is free for its whole life and that of
 * its parts; *total is the buffer's size. The same pieces always get the same places. */
dq_status dq_place(dq_interval *pieces, size_t count, size_t *total, dq_error *err);

#endif
