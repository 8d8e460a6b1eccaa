/* SPDX-License-Identifier: Apache-2.0 */
/* Pad: adds elements around the axes of a tensor, or crops them (negative pads). Modes: constant, edge (the
 * nearest element), reflect (mirrored about the edge element), wrap (periodic). */
#include "base/checked.h"
#include "ops/element.h"
#include "ops/lists.h"

#include <inttypes.h>
#include <string.h>

enum { GRAIN = 16384 /* elements of a task, about */ };

typedef enum mode { CONSTANT, EDGE, REFLECT, WRAP } mode;

typedef struct state {
    mode mode;
    int64_t begin[DQ_MAX_RANK]; /* padding before each axis */
    size_t *table[DQ_MAX_RANK]; /* all modes but constant, for each axis: input index of each output index,
                                   times the stride */
    size_t first, end;          /* … for the last axis: the outputs that are contiguous in the input */
    dq_copy_nd inside;          /* constant: the copy of the input's part that remains */
    dq_tensor *value;           /* constant: the value of the attribute; NULL: input 2, or zero */
} state;

/* ---- Reading ------------------------------------------------------------------------------------------- */

static dq_status read_mode(const dq_op_call *call, mode *to, dq_error *err)
{
    static const char *const names[] = {"constant", "edge", "reflect", "wrap"};
    const char *text = dq_node_string(call->node, "mode", "constant");
    *to = CONSTANT;
    for (size_t i = 0; i < 4; i++)
        if (strcmp(text, names[i]) == 0) {
            *to = (mode)i;
            return DQ_OK;
        }
    return dq_call_fail(call, err, DQ_BAD_MODEL,
                        "attribute 'mode' is '%s', expected constant, edge, reflect or wrap", text);
}

static dq_status read_pads(const dq_op_call *call, int64_t begin[DQ_MAX_RANK], int64_t end[DQ_MAX_RANK],
                           dq_error *err)
{
    size_t rank = call->in[0]->rank;
    dq_list pads, axes = {0};
    if (call->version == 1)
        DQ_TRY(dq_list_from_attr(call, "paddings", &pads, err));
    else
        DQ_TRY(dq_list_from_either(call, "pads", 1, &pads, err));
    DQ_TRY(dq_list_from_input(call, 3, &axes, err));
    for (size_t d = 0; !axes.present && d < rank; d++)
        axes.at[axes.count++] = (int64_t)d;
    DQ_TRY(dq_list_axes(call, &axes, rank, err));
    if (pads.count != 2 * axes.count)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has %zu pads, expected %zu (two for each of %zu axes)",
                            pads.count, 2 * axes.count, axes.count);
    memset(begin, 0, DQ_MAX_RANK * sizeof *begin);
    memset(end, 0, DQ_MAX_RANK * sizeof *end);
    for (size_t k = 0; k < axes.count; k++) {
        begin[axes.at[k]] = pads.at[k];
        end[axes.at[k]] = pads.at[k + axes.count];
    }
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    int64_t begin[DQ_MAX_RANK], end[DQ_MAX_RANK], dims[DQ_MAX_RANK];
    mode how;
    DQ_TRY(read_mode(call, &how, err));
    DQ_TRY(read_pads(call, begin, end, err));
    const dq_tensor *value = call->version >= 11 ? dq_call_in(call, 2) : NULL;
    if (value && value->count != 1)
        return dq_call_fail_input(call, err, 2, "has %zu elements, expected a scalar", value->count);
    for (size_t d = 0; d < in->rank; d++) {
        bool fits = dq_add_i64(in->dims[d], begin[d], &dims[d]) && dq_add_i64(dims[d], end[d], &dims[d]);
        if (!fits || dims[d] < 0)
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "pads axis %zu of %" PRId64 " by %" PRId64 " and %" PRId64
                                ", which leaves no length",
                                d, in->dims[d], begin[d], end[d]);
        if (how != CONSTANT && in->dims[d] == 0 && dims[d] > 0)
            return dq_call_fail_input(call, err, 0, "is empty along axis %zu: nothing to pad it with", d);
    }
    return dq_call_output(call, 0, in->dtype, in->rank, dims, err);
}

/* ---- Preparing ----------------------------------------------------------------------------------------- */

/* Input index for position i relative to the input, which may be outside; n > 0. */
static int64_t shown(mode how, int64_t i, int64_t n)
{
    if (i >= 0 && i < n)
        return i;
    if (how == EDGE)
        return i < 0 ? 0 : n - 1;
    if (how == WRAP || n == 1) {
        int64_t r = i % n;
        return r < 0 ? r + n : r;
    }
    int64_t period = 2 * (n - 1), r = i % period;
    r = r < 0 ? r + period : r;
    return r < n ? r : period - r;
}

static void find_span(state *s, size_t last, size_t n)
{
    int64_t begin = s->begin[last];
    s->first = begin <= 0 ? 0 : (size_t)begin < n ? (size_t)begin : n;
    s->end = s->first < n ? s->first + 1 : n;
    while (s->end < n && s->table[last][s->end] == s->table[last][s->end - 1] + 1)
        s->end++;
}

static dq_status make_tables(dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *in = call->in[0], *out = call->out[0];
    size_t strides[DQ_MAX_RANK];
    dq_strides(in->rank, in->dims, strides);
    for (size_t d = 0; d < in->rank && out->count; d++) {
        size_t n = (size_t)out->dims[d];
        s->table[d] = DQ_NEW_ARRAY(call->arena, n, size_t);
        if (!s->table[d])
            return dq_no_memory(err, n * sizeof(size_t), "the table of a padded axis");
        for (size_t i = 0; i < n; i++)
            s->table[d][i] = (size_t)shown(s->mode, (int64_t)i - s->begin[d], in->dims[d]) * strides[d];
    }
    if (in->rank && out->count)
        find_span(s, in->rank - 1, (size_t)out->dims[in->rank - 1]);
    return DQ_OK;
}

static void find_inside(dq_op_call *call, state *s, const int64_t end[DQ_MAX_RANK])
{
    const dq_tensor *in = call->in[0], *out = call->out[0];
    size_t from[DQ_MAX_RANK], to[DQ_MAX_RANK];
    dq_strides(in->rank, in->dims, from);
    dq_strides(in->rank, out->dims, to);
    for (size_t d = 0; d < in->rank; d++) {
        int64_t cut_begin = s->begin[d] < 0 ? -s->begin[d] : 0, cut_end = end[d] < 0 ? -end[d] : 0;
        int64_t left = in->dims[d] - cut_begin - cut_end;
        dq_copy_nd_add(&s->inside, left > 0 ? (size_t)left : 0, (int64_t)from[d], to[d]);
        s->inside.from_base += (size_t)cut_begin * from[d];
        s->inside.to_base += (size_t)(s->begin[d] > 0 ? s->begin[d] : 0) * to[d];
    }
    dq_copy_nd_coalesce(&s->inside);
}

/* Makes the value from the attribute: before version 11 it is a float attribute, and the input is float. */
static dq_status value_of_attribute(dq_op_call *call, state *s, dq_error *err)
{
    float value = dq_node_float(call->node, "value", 0);
    dq_dtype dtype = call->in[0]->dtype;
    DQ_TRY(dq_tensor_new(call->arena, dtype, 0, NULL, 0, &s->value, err));
    dq_tensor_put_double(s->value, 0, (double)value);
    return DQ_OK;
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    int64_t end[DQ_MAX_RANK];
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read_mode(call, &s->mode, err));
    DQ_TRY(read_pads(call, s->begin, end, err));
    if (s->mode != CONSTANT)
        return make_tables(call, s, err);
    if (call->out[0]->count)
        find_inside(call, s, end);
    return call->version < 11 ? value_of_attribute(call, s, err) : DQ_OK;
}

/* ---- Running ------------------------------------------------------------------------------------------- */

/* Writes an output row along the last axis. `base`: input offset of its first element, without the last axis.
 */
static void pick_row(const dq_op_call *call, size_t width, size_t base, size_t to)
{
    const state *s = call->state;
    const dq_tensor *in = call->in[0];
    dq_tensor *out = call->out[0];
    const size_t n = (size_t)out->dims[out->rank - 1], *table = s->table[out->rank - 1];
    if (width == 0) {
        for (size_t i = 0; i < n; i++)
            dq_copy_elements(in, base + table[i], out, to + i, 1);
        return;
    }
    const char *x = (const char *)in->data + base * width;
    char *y = (char *)out->data + to * width;
    if (s->first)
        dq_gather_elements(width, y, x, table, s->first);
    if (s->first < n)
        memcpy(y + s->first * width, x + table[s->first] * width, (s->end - s->first) * width);
    if (s->end < n)
        dq_gather_elements(width, y + s->end * width, x, table + s->end, n - s->end);
}

/* Writes output rows begin … end - 1, by the tables. */
static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    const dq_tensor *out = call->out[0];
    size_t last = out->rank - 1, n = (size_t)out->dims[last], coord[DQ_MAX_RANK] = {0};
    const size_t width = dq_element_width(out->dtype);
    for (size_t d = last, rest = begin; d-- > 0; rest /= (size_t)out->dims[d])
        coord[d] = rest % (size_t)out->dims[d];
    for (size_t i = begin; i < end; i++) {
        size_t base = 0;
        for (size_t d = 0; d < last; d++)
            base += s->table[d][coord[d]];
        pick_row(call, width, base, i * n);
        dq_next_coord(last, out->dims, coord);
    }
}

static void run_tables(const dq_op_call *call)
{
    const dq_tensor *out = call->out[0];
    size_t n = out->rank ? (size_t)out->dims[out->rank - 1] : 1, rows = out->count / n;
    if (out->rank == 0) {
        dq_copy_elements(call->in[0], 0, call->out[0], 0, 1);
        return;
    }
    /* Adjacent elements of a packed type share bytes: one thread writes them all. */
    dq_parallel(call->threads, rows, dq_element_width(out->dtype) == 0 ? rows : GRAIN / n + 1, piece, &call);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    dq_tensor *out = call->out[0];
    if (out->count == 0)
        return DQ_OK;
    if (s->mode != CONSTANT) {
        if (dq_element_width(out->dtype) == 0)
            dq_fill_elements(out->dtype, out->data, out->count, NULL);
        run_tables(call);
        return DQ_OK;
    }
    const dq_tensor *value = s->value ? s->value : dq_call_in(call, 2);
    dq_fill_elements(out->dtype, out->data, out->count, value ? value->data : NULL);
    if (call->in[0]->count)
        dq_copy_nd_run(call, &s->inside, out->dtype, out->data, call->in[0]->data);
    return DQ_OK;
}

const dq_op_impl dq_op_pad = {infer, prepare, run, 0};
