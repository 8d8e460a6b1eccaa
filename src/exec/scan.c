/* SPDX-License-Identifier: Apache-2.0 */
/* Scan: a loop over slices. Version 8 runs it for each row of a batch: its scan inputs and outputs [batch,
 * length, …] are treated as [batch * length, …]. */
#include "exec/inner.h"

#include <inttypes.h>

typedef struct scan {
    dq_plan *plan;
    dq_step *step;
    dq_flow *flow;
    dq_inner *body;
    bool batched;
    uint32_t first; /* Input of the node that is the first state. */
    uint32_t states, ins, outs;
    int64_t batch, length;                                              /* Without a batch, batch is 1. */
    int64_t row, rows_length;                                           /* The current row, and its length. */
    const int64_t *in_axes, *in_directions, *out_axes, *out_directions; /* NULL: all 0. */
} scan;

static dq_status read_list(const scan *s, const char *name, uint32_t requested, const int64_t **list,
                           dq_error *err)
{
    size_t count;
    *list = dq_node_ints(s->step->node, name, &count);
    if (!count)
        *list = NULL;
    if (*list && count != requested)
        return dq_call_fail(&s->step->call, err, DQ_BAD_MODEL,
                            "attribute '%s' has %zu entries, expected %" PRIu32, name, count, requested);
    return DQ_OK;
}

static dq_status axis_of(const scan *s, const int64_t *list, uint32_t i, uint32_t rank, const char *name,
                         size_t *axis, dq_error *err)
{
    *axis = 0;
    if (rank && (!list || dq_axis(list[i], rank, axis)))
        return DQ_OK;
    return dq_call_fail(&s->step->call, err, DQ_BAD_MODEL,
                        "entry %" PRIu32 " of '%s' is %" PRId64 ", outside a tensor of rank %" PRIu32, i,
                        name, list ? list[i] : 0, rank);
}

static bool reverse(const int64_t *list, uint32_t i)
{
    return list && list[i] == 1;
}

/* ---- Preparation -------------------------------------------------------------------------------------- */

static dq_status open_scan(scan *s, dq_error *err)
{
    const dq_op_call *call = &s->step->call;
    DQ_TRY(dq_flow_open(s->plan, s->step, "body", NULL, &s->flow, err));
    s->body = s->flow->inners[0];
    s->batched = call->version < 9;
    s->first = s->batched ? 1 : 0;
    int64_t ins = dq_node_int(s->step->node, "num_scan_inputs", 0);
    if (ins < 1 || ins > (int64_t)call->in_count - s->first)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'num_scan_inputs' is %" PRId64 ", expected 1 to %" PRId64, ins,
                            (int64_t)call->in_count - s->first);
    s->ins = (uint32_t)ins;
    s->states = call->in_count - s->first - s->ins;
    if (call->out_count < s->states)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has %u outputs for %u states", call->out_count,
                            s->states);
    s->outs = call->out_count - s->states;
    DQ_TRY(dq_inner_check_arity(s->body, s->step, s->states + s->ins, s->states + s->outs, err));
    DQ_TRY(read_list(s, "scan_input_axes", s->ins, &s->in_axes, err));
    DQ_TRY(read_list(s, s->batched ? "directions" : "scan_input_directions", s->ins, &s->in_directions, err));
    DQ_TRY(read_list(s, "scan_output_axes", s->outs, &s->out_axes, err));
    return read_list(s, "scan_output_directions", s->outs, &s->out_directions, err);
}

/* Determines the length, and in version 8 the batch size, which must be equal in all inputs. */
static dq_status measure(scan *s, dq_error *err)
{
    const dq_op_call *call = &s->step->call;
    s->batch = s->length = -1;
    for (uint32_t i = s->first; i < call->in_count; i++) {
        const dq_tensor *t = call->in[i];
        bool is_scan = i >= s->first + s->states;
        char text[DQ_SHAPE_TEXT];
        size_t axis = 1;
        if (!t || t->kind != DQ_KIND_TENSOR || (s->batched && t->rank < (is_scan ? 2u : 1u)))
            return dq_call_fail(call, err, DQ_BAD_MODEL, "input %u is %s", i,
                                t ? "of too small a rank, or a sequence" : "left out");
        if (is_scan && !s->batched)
            DQ_TRY(axis_of(s, s->in_axes, i - s->states, t->rank, "scan_input_axes", &axis, err));
        int64_t batch = s->batched ? t->dims[0] : 1, length = is_scan ? t->dims[axis] : s->length;
        if ((s->batch >= 0 && batch != s->batch) || (s->length >= 0 && length != s->length))
            return dq_call_fail_input(call, err, i, "has shape %s, and the scan is %" PRId64 " long%s",
                                      dq_shape_text(t->rank, t->dims, text), s->length,
                                      s->batched ? ", over a batch" : "");
        s->batch = batch;
        s->length = length;
    }
    return DQ_OK;
}

static dq_status row_length(const scan *s, int64_t *length, dq_error *err)
{
    const dq_tensor *lengths = s->batched ? s->step->call.in[0] : NULL;
    *length = s->length;
    if (!lengths)
        return DQ_OK;
    if ((int64_t)lengths->count != s->batch)
        return dq_call_fail_input(&s->step->call, err, 0, "has %zu elements, expected the batch of %" PRId64,
                                  lengths->count, s->batch);
    *length = dq_tensor_get_int(lengths, (size_t)s->row);
    if (*length < 0 || *length > s->length)
        return dq_call_fail_input(&s->step->call, err, 0,
                                  "says %" PRId64 " for row %" PRId64 ", expected 0 to %" PRId64, *length,
                                  s->row, s->length);
    return DQ_OK;
}

/* ---- One iteration ------------------------------------------------------------------------------------ */

/* A view of [batch, length, …] as [batch * length, …]. */
static dq_tensor joined(const scan *s, const dq_tensor *t)
{
    dq_tensor view = *t;
    if (!s->batched)
        return view;
    view.dims[0] = t->dims[0] * t->dims[1];
    view.rank = t->rank - 1;
    for (uint32_t d = 1; d < view.rank; d++)
        view.dims[d] = t->dims[d + 1];
    return view;
}

static dq_status take_slice(scan *s, const dq_tensor *whole, size_t axis, int64_t at, dq_kept *slice,
                            dq_error *err)
{
    int64_t dims[DQ_MAX_RANK];
    size_t rank = 0;
    for (size_t d = 0; d < whole->rank; d++)
        if (d != axis)
            dims[rank++] = whole->dims[d];
    DQ_TRY(dq_kept_shape(slice, s->step, whole->dtype, rank, dims, false, err));
    dq_slice_extract(s->step, whole, axis, (size_t)at, &slice->t);
    return DQ_OK;
}

static dq_status put_slice(scan *s, dq_kept *whole, bool first, size_t axis, int64_t length, int64_t at,
                           const dq_tensor *slice, dq_error *err)
{
    int64_t dims[DQ_MAX_RANK + 1];
    size_t rank = 0;
    for (size_t d = 0; d <= slice->rank; d++)
        dims[rank++] = d == axis ? length : slice->dims[d - (d > axis)];
    bool same = first || (whole->t.rank == rank && whole->t.dtype == slice->dtype);
    for (size_t d = 0; !first && same && d < rank; d++)
        same = whole->t.dims[d] == dims[d];
    char mine[DQ_SHAPE_TEXT], earlier[DQ_SHAPE_TEXT];
    if (slice->kind != DQ_KIND_TENSOR || !same)
        return dq_call_fail(&s->step->call, err, DQ_BAD_MODEL,
                            "iterations give scan outputs or states of different shapes: %s of %s in all, "
                            "earlier %s of %s",
                            dq_shape_text(rank, dims, mine), dq_dtype_name(slice->dtype),
                            dq_shape_text(whole->t.rank, whole->t.dims, earlier),
                            dq_dtype_name(whole->t.dtype));
    if (first)
        DQ_TRY(dq_kept_shape(whole, s->step, slice->dtype, rank, dims, false, err));
    dq_slice_insert(s->step, &whole->t, axis, (size_t)at, slice);
    return DQ_OK;
}

static dq_status feed(scan *s, int64_t t, dq_error *err)
{
    for (uint32_t i = 0; i < s->states; i++)
        if (!s->body->passed[i])
            s->body->inputs[i] = s->flow->kept[i].t;
    for (uint32_t i = 0; i < s->ins; i++) {
        dq_tensor whole = joined(s, s->step->call.in[s->first + s->states + i]);
        dq_kept *slice = &s->flow->slices[s->states + i];
        size_t axis;
        DQ_TRY(axis_of(s, s->in_axes, i, whole.rank, "scan_input_axes", &axis, err));
        int64_t at = reverse(s->in_directions, i) ? s->rows_length - 1 - t : t;
        DQ_TRY(take_slice(s, &whole, axis, s->row * s->length + at, slice, err));
        s->body->inputs[s->states + i] = slice->t;
    }
    return DQ_OK;
}

static dq_status collect(scan *s, int64_t t, bool first, dq_error *err)
{
    for (uint32_t i = 0; i < s->states; i++)
        if (!s->body->passed[i])
            DQ_TRY(dq_kept_set(&s->flow->kept[i], dq_inner_output(s->body, i), err));
    for (uint32_t i = 0; i < s->outs; i++) {
        const dq_tensor *slice = dq_inner_output(s->body, s->states + i);
        size_t axis;
        DQ_TRY(axis_of(s, s->out_axes, i, slice->rank + 1, "scan_output_axes", &axis, err));
        int64_t at = reverse(s->out_directions, i) ? s->rows_length - 1 - t : t;
        DQ_TRY(put_slice(s, &s->flow->kept[s->states + i], first, axis, s->batch * s->length,
                         s->row * s->length + at, slice, err));
    }
    return DQ_OK;
}

/* ---- Rows --------------------------------------------------------------------------------------------- */

static dq_status begin_row(scan *s, dq_error *err)
{
    for (uint32_t i = 0; i < s->states; i++) {
        const dq_tensor *state = s->step->call.in[s->first + i];
        if (s->batched)
            DQ_TRY(take_slice(s, state, 0, s->row, &s->flow->kept[i], err));
        else if (dq_inner_is_invariant(s->body, i, i))
            dq_inner_bind_invariant(s->body, i, s->plan, s->step, s->first + i);
        else
            DQ_TRY(dq_kept_set(&s->flow->kept[i], state, err));
    }
    return row_length(s, &s->rows_length, err);
}

static dq_kept *final_state(const scan *s, uint32_t i)
{
    return &s->flow->kept[s->batched ? s->states + s->outs + i : i];
}

static dq_status end_row(scan *s, dq_error *err)
{
    for (uint32_t i = 0; s->batched && i < s->states; i++)
        DQ_TRY(put_slice(s, final_state(s, i), s->row == 0, 0, s->batch, s->row, &s->flow->kept[i].t, err));
    return DQ_OK;
}

static dq_status give(scan *s, bool ran, dq_error *err)
{
    for (uint32_t i = 0; i < s->states; i++) {
        if (s->body->passed[i]) {
            DQ_TRY(dq_flow_give_input(s->step, i, s->plan, s->first + i, final_state(s, i), err));
            continue;
        }
        if (s->batch == 0)
            DQ_TRY(dq_kept_set(final_state(s, i), s->step->call.in[s->first + i], err));
        dq_flow_set_output(s->step, i, &final_state(s, i)->t);
    }
    for (uint32_t i = 0; i < s->outs; i++) {
        dq_kept *kept = &s->flow->kept[s->states + i];
        if (!ran)
            DQ_TRY(dq_empty_scan(s->body, s->step, s->states + i, s->states + i,
                                 s->out_axes ? s->out_axes[i] : 0, s->batch * s->length, kept, err));
        if (s->batched) {
            int64_t dims[DQ_MAX_RANK + 1] = {s->batch, s->length};
            for (uint32_t d = 1; d < kept->t.rank; d++)
                dims[d + 1] = kept->t.dims[d];
            DQ_TRY(dq_tensor_set_shape(&kept->t, kept->t.dtype, (size_t)kept->t.rank + 1, dims, 0,
                                       DQ_BAD_MODEL, err));
        }
        dq_flow_set_output(s->step, s->states + i, &kept->t);
    }
    return DQ_OK;
}

dq_status dq_flow_scan(dq_plan *plan, dq_step *step, dq_error *err)
{
    scan s = {.plan = plan, .step = step};
    bool ran = false;
    DQ_TRY(open_scan(&s, err));
    DQ_TRY(measure(&s, err));
    for (s.row = 0; s.row < s.batch; s.row++) {
        DQ_TRY(begin_row(&s, err));
        for (int64_t t = 0; t < s.rows_length; t++) {
            DQ_TRY(feed(&s, t, err));
            DQ_TRY(dq_inner_run(s.body, plan, step, err));
            DQ_TRY(collect(&s, t, !ran, err));
            ran = true;
        }
        DQ_TRY(end_row(&s, err));
    }
    return give(&s, ran, err);
}
