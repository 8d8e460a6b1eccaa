/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/attention/self_attention.h"

#include "base/checked.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { OUTPUT, PRESENT };

/* ---- Planning ----------------------------------------------------------------------------------------- */

static dq_status wrong(const dq_op_call *call, uint32_t i, dq_error *err, const char *expected)
{
    char text[DQ_SHAPE_TEXT];
    return dq_call_fail_input(call, err, i, "has shape %s, expected %s",
                              dq_shape_text(call->in[i]->rank, call->in[i]->dims, text), expected);
}

/* Finds the widths of queries, keys and values. */
static dq_status read_widths(const dq_op_call *call, dq_self_attention *s, dq_error *err)
{
    int64_t heads = dq_node_int(call->node, "num_heads", 0), all = call->in[s->at.weights]->dims[1];
    size_t count;
    const int64_t *value = dq_node_ints(call->node, "qkv_hidden_sizes", &count);
    if (heads < 1)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'num_heads' is %" PRId64 ", expected 1 or more", heads);
    int64_t widths[3] = {all / 3, all / 3, all / 3};
    if (value && count != 3)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'qkv_hidden_sizes' has %zu elements, expected 3", count);
    if (value)
        memcpy(widths, value, sizeof widths);
    for (size_t i = 0; i < 3; i++)
        if (widths[i] < 0 || widths[i] > all || widths[i] % heads != 0)
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "has a width of %" PRId64 " for %s, which %" PRId64 " heads cannot share",
                                widths[i],
                                i == 0   ? "queries"
                                : i == 1 ? "keys"
                                         : "values",
                                heads);
    if (widths[0] != widths[1] || widths[0] + widths[1] + widths[2] != all)
        return dq_call_fail_input(call, err, s->at.weights,
                                  "has %" PRId64
                                  " columns, expected as many for queries as for keys and the rest (%" PRId64
                                  ") for values",
                                  all, widths[2]);
    s->heads = (size_t)heads;
    s->width = (size_t)widths[0];
    s->v_width = (size_t)widths[2];
    s->size = s->width / s->heads;
    s->v_size = s->v_width / s->heads;
    return DQ_OK;
}

static dq_status read_past(const dq_op_call *call, dq_self_attention *s, dq_error *err)
{
    const dq_tensor *past = dq_call_in(call, s->at.past), *length = dq_call_in(call, s->at.past_length);
    s->capacity = s->rows;
    if (!past)
        return DQ_OK;
    int64_t expected[5] = {2, (int64_t)s->batch, (int64_t)s->heads, 0, (int64_t)s->size};
    bool fits = past->rank == 5;
    for (size_t d = 0; fits && d < 5; d++)
        fits = d == 3 || past->dims[d] == expected[d];
    if (!fits || s->width != s->v_width)
        return wrong(call, s->at.past, err,
                     "2, batch, heads, positions, head size, alike for keys and values");
    s->shared = dq_node_int(call->node, "past_present_share_buffer", 0) != 0;
    s->past = (size_t)past->dims[3];
    if (!s->shared) {
        s->capacity = s->past + s->rows;
        return DQ_OK;
    }
    s->capacity = s->past;
    s->past = 0;
    if (s->at.past_length < call->in_count && (!length || length->count != 1))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "needs one past_sequence_length, as past and present are one buffer");
    return s->capacity >= s->rows
               ? DQ_OK
               : wrong(call, s->at.past, err, "capacity for as many positions as the input has");
}

static dq_status read_all(const dq_op_call *call, const dq_self_inputs *at, dq_self_attention *s,
                          dq_error *err)
{
    const dq_tensor *x = call->in[at->input], *w = call->in[at->weights], *bias = dq_call_in(call, at->bias);
    s->at = *at;
    if (x->rank != 3)
        return wrong(call, at->input, err, "three axes: batch, sequence, inputs");
    if (w->rank != 2 || w->dims[0] != x->dims[2])
        return wrong(call, at->weights, err, "two axes, the first as long as the input's last");
    if (bias && (bias->rank != 1 || bias->dims[0] != w->dims[1]))
        return wrong(call, at->bias, err, "one element for each column of the weights");
    if (dq_node_int(call->node, "do_rotary", 0) != 0)
        return dq_call_fail(
            call, err, DQ_UNSUPPORTED,
            "attribute 'do_rotary' is 1: without tables of sines and cosines the rotation is not "
            "defined");
    s->batch = (size_t)x->dims[0];
    s->rows = (size_t)x->dims[1];
    s->input = (size_t)x->dims[2];
    DQ_TRY(read_widths(call, s, err));
    DQ_TRY(read_past(call, s, err));
    if (!s->shared) {
        DQ_TRY(dq_mask_infer(call, at->mask, s->batch, s->rows, s->capacity, &s->mask, err));
        DQ_TRY(dq_mask_check_bias(call, at->attention_bias, s->batch, s->heads, s->rows, s->capacity, err));
    }
    return DQ_OK;
}

dq_status dq_self_attention_infer(dq_op_call *call, const dq_self_inputs *at, dq_self_attention *s,
                                  dq_error *err)
{
    DQ_TRY(read_all(call, at, s, err));
    const dq_tensor *x = call->in[at->input];
    /* QAttention's result has the type of the bias, as its input is quantized; its bias is not optional */
    const dq_tensor *bias = dq_call_in(call, at->bias);
    dq_dtype type = bias ? bias->dtype : x->dtype;
    int64_t dims[3] = {x->dims[0], x->dims[1], (int64_t)s->v_width};
    int64_t present[5] = {2, x->dims[0], (int64_t)s->heads, (int64_t)s->capacity, (int64_t)s->size};
    DQ_TRY(dq_call_output(call, OUTPUT, type, 3, dims, err));
    if (call->out_count > PRESENT && call->out[PRESENT] && s->width != s->v_width)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has output 1 'present', which keys and values of different width cannot share");
    return dq_call_output(call, PRESENT, type, 5, present, err);
}

static const dq_tensor *present_of(const dq_op_call *call)
{
    return call->out_count > PRESENT ? call->out[PRESENT] : NULL;
}

dq_status dq_self_attention_prepare(dq_op_call *call, dq_self_attention *s, dq_error *err)
{
    const dq_tensor *past = dq_call_in(call, s->at.past), *present = present_of(call);
    size_t rows, positions;
    s->filter = dq_node_float(call->node, "mask_filter_value", -10000.0f);
    s->causal = dq_node_int(call->node, "unidirectional", 0) != 0;
    s->scale = dq_node_float(call->node, "scale", 0);
    if (s->scale == 0)
        s->scale = 1 / sqrtf((float)s->size);
    s->joined = past || present;
    bool own = s->joined && (!present || present->dtype != DQ_FLOAT);
    if (!dq_mul_size(s->batch, s->rows, &rows) || !dq_mul_size(s->batch, s->capacity, &positions) ||
        !dq_call_reserve(call, rows, 2 * s->width + s->v_width, sizeof(float), &s->projected_at) ||
        !dq_call_reserve(call, own ? positions : 0, 2 * s->width, sizeof(float), &s->kv_at))
        return dq_no_memory(err, SIZE_MAX, "queries, keys and values");
    return dq_attention_prepare(call, s->rows, s->capacity, s->size, s->v_size, 1, err);
}

/* ---- Running ------------------------------------------------------------------------------------------ */

float *dq_self_attention_projected(const dq_op_call *call, const dq_self_attention *s)
{
    return (float *)(void *)((char *)call->scratch + s->projected_at);
}

typedef struct join {
    const dq_op_call *call;
    const dq_self_attention *s;
    size_t past;
    float *kv; /* as present: 2, batch, heads, capacity, size */
} join;

/* Concatenates keys or values of one head: the past, then the new positions. */
static void join_head(const join *j, size_t number)
{
    const dq_self_attention *s = j->s;
    const dq_tensor *past = dq_call_in(j->call, s->at.past);
    size_t part = number / s->heads / s->batch, batch = number / s->heads % s->batch,
           head = number % s->heads;
    float *to = j->kv + number * s->capacity * s->size;
    const float *from = dq_self_attention_projected(j->call, s) +
                        batch * s->rows * (2 * s->width + s->v_width) + (part + 1) * s->width +
                        head * s->size;
    if (past && past->data != j->kv) {
        size_t there = s->shared ? s->capacity : j->past;
        dq_load_floats(j->call->kernels, past->dtype, past->data, number * there * s->size, there * s->size,
                       to);
    }
    to += j->past * s->size;
    for (size_t t = 0; t < s->rows; t++)
        memcpy(to + t * s->size, from + t * (2 * s->width + s->v_width), s->size * sizeof *to);
}

static void join_heads(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    for (size_t i = begin; i < end; i++)
        join_head(arg, i);
}

static void put_present(const join *j)
{
    const dq_tensor *present = present_of(j->call);
    if (present && present->dtype != DQ_FLOAT)
        dq_store_from_floats(j->call->kernels, present->dtype, present->data, 0, present->count, j->kv,
                             false);
}

static void add_mask(const void *arg, const dq_attention_row *row)
{
    dq_mask_add(arg, row);
}

static dq_status read_mask(const dq_op_call *call, const dq_self_attention *s, size_t past, dq_mask *m,
                           dq_error *err)
{
    const dq_tensor *mask = dq_call_in(call, s->at.mask);
    *m = (dq_mask){.kind = s->mask,
                   .data = mask ? mask->data : NULL,
                   .batch = s->batch,
                   .rows = s->rows,
                   .keys = past + s->rows,
                   .past = past,
                   .filter = s->filter,
                   .causal = s->causal,
                   .bias = dq_call_in(call, s->at.attention_bias)};
    if (s->shared) { /* the number of keys is known only in the run */
        DQ_TRY(dq_mask_infer(call, s->at.mask, s->batch, s->rows, m->keys, &m->kind, err));
        DQ_TRY(dq_mask_check_bias(call, s->at.attention_bias, s->batch, s->heads, s->rows, m->keys, err));
    }
    m->most = m->kind == DQ_MASK_SQUARE ? (size_t)mask->dims[2] : 0;
    return DQ_OK;
}

/* Reads the number of positions before the first query. */
static dq_status read_length(const dq_op_call *call, const dq_self_attention *s, size_t *past, dq_error *err)
{
    const dq_tensor *length = s->shared ? dq_call_in(call, s->at.past_length) : NULL;
    *past = s->past;
    if (!length)
        return DQ_OK;
    int64_t value = dq_tensor_get_int(length, 0);
    if (value < 0 || (size_t)value > s->capacity - s->rows)
        return dq_call_fail(call, err, DQ_BAD_INPUT,
                            "input %u is a past of %" PRId64 " positions, expected 0 to %zu",
                            s->at.past_length, value, s->capacity - s->rows);
    *past = (size_t)value;
    return DQ_OK;
}

dq_status dq_self_attention_run(const dq_op_call *call, const dq_self_attention *s, dq_error *err)
{
    size_t past, all = 2 * s->width + s->v_width;
    dq_mask mask;
    DQ_TRY(read_length(call, s, &past, err));
    DQ_TRY(read_mask(call, s, past, &mask, err));
    const dq_tensor *present = present_of(call);
    const float *projected = dq_self_attention_projected(call, s);
    dq_attention a = {.batch = s->batch,
                      .heads = s->heads,
                      .rows = s->rows,
                      .keys = mask.keys,
                      .heads_per_kv = 1,
                      .size = s->size,
                      .v_size = s->v_size,
                      .scale = s->scale,
                      .q = {projected, s->rows * all, s->size, all},
                      .k = {projected + s->width, s->rows * all, s->size, all},
                      .v = {projected + 2 * s->width, s->rows * all, s->v_size, all},
                      .out = call->out[OUTPUT],
                      .out_batch = s->rows * s->v_width,
                      .out_head = s->v_size,
                      .out_row = s->v_width,
                      .bias = add_mask,
                      .arg = &mask};
    if (s->joined) {
        join j = {call, s, past, (float *)(void *)((char *)call->scratch + s->kv_at)};
        if (present && present->dtype == DQ_FLOAT)
            j.kv = present->data;
        dq_parallel(call->threads, 2 * s->batch * s->heads, 1, join_heads, &j);
        put_present(&j);
        size_t head = s->capacity * s->size, batch = s->heads * head;
        a.k = (dq_attention_operand){j.kv, batch, head, s->size};
        a.v = (dq_attention_operand){j.kv + s->batch * batch, batch, head, s->size};
    }
    dq_attention_run(call, &a);
    return DQ_OK;
}
