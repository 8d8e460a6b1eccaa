/* SPDX-License-Identifier: Apache-2.0 */
/* Slice: starts, ends, axes and steps as attributes (version 1, steps of 1) or inputs. */
#include "ops/copy_nd.h"
#include "ops/lists.h"

#include <inttypes.h>

/* For each axis of the input: first element, step, number of elements. */
typedef struct cut {
    int64_t start[DQ_MAX_RANK], step[DQ_MAX_RANK], length[DQ_MAX_RANK];
} cut;

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Normalizes negative starts and ends, then clamps both to the range of the direction. A start before the
 * first element with a negative step is clamped to that element, as the standard specifies (in Python the
 * slice is empty). */
static void cut_axis(cut *c, size_t d, int64_t n, int64_t start, int64_t end, int64_t step)
{
    start = start < 0 ? start + n : start;
    end = end < 0 ? end + n : end;
    if (step > 0) {
        start = clamp(start, 0, n);
        end = clamp(end, 0, n);
        c->length[d] = end > start ? (end - start - 1) / step + 1 : 0;
    } else {
        start = clamp(start, n ? 0 : -1, n - 1);
        end = clamp(end, -1, n - 1);
        /* INT64_MIN has no negation; any step longer than the axis gives the same */
        int64_t back = step == INT64_MIN ? INT64_MAX : -step;
        c->length[d] = start > end ? (start - end - 1) / back + 1 : 0;
    }
    c->start[d] = start;
    c->step[d] = step;
}

static dq_status read_cut(const dq_op_call *call, cut *c, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list starts, ends, axes, steps = {0};
    DQ_TRY(dq_list_from_either(call, "starts", 1, &starts, err));
    DQ_TRY(dq_list_from_either(call, "ends", 2, &ends, err));
    DQ_TRY(dq_list_from_either(call, "axes", 3, &axes, err));
    DQ_TRY(dq_list_from_input(call, 4, &steps, err));
    for (size_t k = 0; !axes.present && k < starts.count; k++)
        axes.at[axes.count++] = (int64_t)k;
    if (ends.count != starts.count || axes.count != starts.count ||
        (steps.present && steps.count != starts.count))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has %zu starts, %zu ends, %zu axes and %zu steps, expected as many of each",
                            starts.count, ends.count, axes.count, steps.present ? steps.count : starts.count);
    DQ_TRY(dq_list_axes(call, &axes, in->rank, err));
    for (size_t d = 0; d < in->rank; d++)
        cut_axis(c, d, in->dims[d], 0, in->dims[d], 1);
    for (size_t k = 0; k < starts.count; k++) {
        int64_t step = steps.present ? steps.at[k] : 1;
        if (step == 0)
            return dq_call_fail(call, err, DQ_BAD_MODEL, "has a step of 0 along axis %" PRId64, axes.at[k]);
        cut_axis(c, (size_t)axes.at[k], in->dims[axes.at[k]], starts.at[k], ends.at[k], step);
    }
    return DQ_OK;
}

static void find_move(const dq_op_call *call, const cut *c, dq_copy_nd *m)
{
    size_t from[DQ_MAX_RANK], to[DQ_MAX_RANK];
    const dq_tensor *in = call->in[0];
    if (call->out[0]->count == 0)
        return;
    dq_strides(in->rank, in->dims, from);
    dq_strides(in->rank, call->out[0]->dims, to);
    for (size_t d = 0; d < in->rank; d++) {
        m->from_base += (size_t)c->start[d] * from[d];
        /* a step that is never taken might overflow the product */
        dq_copy_nd_add(m, (size_t)c->length[d], c->length[d] > 1 ? c->step[d] * (int64_t)from[d] : 0, to[d]);
    }
    dq_copy_nd_coalesce(m);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    cut c;
    dq_copy_nd m = {0};
    DQ_TRY(read_cut(call, &c, err));
    DQ_TRY(dq_call_output(call, 0, call->in[0]->dtype, call->in[0]->rank, c.length, err));
    if (!call->out[0] || call->out[0]->count == 0)
        return DQ_OK;
    find_move(call, &c, &m);
    if (!dq_copy_nd_is_contiguous(&m))
        return DQ_OK;
    DQ_TRY(dq_call_split_offsets(call, err));
    if (call->split_offsets)
        call->split_offsets[0] = m.from_base;
    return DQ_OK;
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    cut c;
    DQ_TRY(read_cut(call, &c, err));
    DQ_TRY(dq_call_state(call, sizeof(dq_copy_nd), err));
    find_move(call, &c, call->state);
    return DQ_OK;
}

const dq_op_impl dq_op_slice = {infer, prepare, dq_copy_all, 0};
