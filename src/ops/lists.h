/* SPDX-License-Identifier: Apache-2.0 */
/* Short lists of integers (axes, pads, shapes, starts) that operators take as an input or, in older versions,
 * as an attribute. */
#ifndef DQ_OPS_LISTS_H
#define DQ_OPS_LISTS_H

#include "ops/op.h"

enum { DQ_LIST_MAX = 2 * DQ_MAX_RANK };

typedef struct dq_list {
    bool present; /* false: input omitted or attribute absent; then count is 0 */
    size_t count;
    int64_t at[DQ_LIST_MAX];
} dq_list;

/** Reads a list from input i: integers of any type, or floats with integer values. A scalar counts as a list
 * of one. DQ_DEFERRED if its value is not known yet. */
dq_status dq_list_from_input(const dq_op_call *call, uint32_t i, dq_list *list, dq_error *err);
/** Reads a list from an attribute of integers. */
dq_status dq_list_from_attr(const dq_op_call *call, const char *name, dq_list *list, dq_error *err);
/** Reads a list from the attribute if the node has it, else from input i. */
dq_status dq_list_from_either(const dq_op_call *call, const char *name, uint32_t i, dq_list *list,
                              dq_error *err);

/** Normalizes axes of a tensor of that rank into 0 … rank-1, in place. An axis out of range or named twice is
 * an error. */
dq_status dq_list_axes(const dq_op_call *call, dq_list *axes, size_t rank, dq_error *err);

#endif
