/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/attention/attention_mask.h"

#include <float.h>

static dq_mask_kind kind_of(const dq_tensor *t, size_t batch, size_t rows, size_t keys)
{
    const int64_t *d = t->dims;
    int64_t b = (int64_t)batch, r = (int64_t)rows, k = (int64_t)keys;
    if (t->rank == 1 && (d[0] == b || d[0] == 3 * b + 2))
        return DQ_MASK_LENGTHS;
    if (t->rank == 1 && d[0] == 2 * b)
        return DQ_MASK_SPANS;
    if (t->rank == 2 && d[0] == b && d[1] == k)
        return DQ_MASK_KEYS;
    if (t->rank == 3 && d[0] == b && d[1] == r && d[2] == k)
        return DQ_MASK_ROWS;
    if (t->rank == 4 && d[0] == b && d[1] == 1 && d[2] == d[3] && d[2] >= k)
        return DQ_MASK_SQUARE;
    return DQ_MASK_NONE;
}

dq_status dq_mask_infer(const dq_op_call *call, uint32_t i, size_t batch, size_t rows, size_t keys,
                        dq_mask_kind *kind, dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    char text[DQ_SHAPE_TEXT];
    *kind = t ? kind_of(t, batch, rows, keys) : DQ_MASK_NONE;
    /* one value for all keys changes all scores alike, which Softmax ignores: the same as no mask */
    bool same = t && t->rank == 2 && t->dims[1] == 1 && (t->dims[0] == 1 || t->dims[0] == (int64_t)batch);
    if (!t || *kind != DQ_MASK_NONE || same)
        return DQ_OK;
    return dq_call_fail_input(
        call, err, i,
        "has shape %s, expected [%zu], [%zu], [%zu,%zu], [%zu,%zu,%zu] or a square for each of the batch",
        dq_shape_text(t->rank, t->dims, text), batch, 2 * batch, batch, keys, batch, rows, keys);
}

dq_status dq_mask_check_bias(const dq_op_call *call, uint32_t i, size_t batch, size_t heads, size_t rows,
                             size_t keys, dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    char text[DQ_SHAPE_TEXT];
    if (!t || (t->rank == 4 && (t->dims[0] == 1 || t->dims[0] == (int64_t)batch) &&
               (t->dims[1] == 1 || t->dims[1] == (int64_t)heads) && t->dims[2] == (int64_t)rows &&
               t->dims[3] == (int64_t)keys))
        return DQ_OK;
    return dq_call_fail_input(call, err, i, "has shape %s, expected [%zu or 1, %zu or 1, %zu, %zu]",
                              dq_shape_text(t->rank, t->dims, text), batch, heads, rows, keys);
}

/* Masked keys of a query: all outside from … to - 1, or those whose flag is not positive. */
typedef struct key_mask {
    size_t from, to;
    const int32_t *flags;
} key_mask;

static key_mask key_mask_of(const dq_mask *m, size_t batch, size_t row)
{
    const int32_t *d = m->data;
    key_mask s = {.to = SIZE_MAX};
    switch (m->kind) {
    case DQ_MASK_SPANS:
        s.from = d[m->batch + batch] > 0 ? (size_t)d[m->batch + batch] : 0;
        s.to = d[batch] > 0 ? (size_t)d[batch] : 0;
        break;
    case DQ_MASK_LENGTHS:
        s.to = d[batch] > 0 ? (size_t)d[batch] : 0;
        break;
    case DQ_MASK_KEYS:
        s.flags = d + batch * m->keys;
        break;
    case DQ_MASK_ROWS:
        s.flags = d + (batch * m->rows + row) * m->keys;
        break;
    case DQ_MASK_SQUARE:
        s.flags = d + (batch * m->most + m->past + row) * m->most;
        break;
    case DQ_MASK_NONE:
        break;
    }
    return s;
}

/* Sets add[i] to the mask term of key t + i: `filter` if it is masked, else 0. */
static void hide(const key_mask *s, size_t t, size_t n, float filter, float *add)
{
    size_t from = s->from > t ? s->from - t : 0, to = s->to > t ? s->to - t : 0;
    if (s->flags) {
        for (size_t i = 0; i < n; i++)
            add[i] = s->flags[t + i] <= 0 ? filter : 0;
        return;
    }
    for (size_t i = 0; i < n; i++)
        add[i] = filter;
    for (size_t i = from; i < n && i < to; i++)
        add[i] = 0;
}

static void add_bias(const dq_tensor *bias, size_t at, size_t n, float *add)
{
    if (bias->dtype == DQ_FLOAT)
        for (size_t i = 0; i < n; i++)
            add[i] += dq_data(bias, float)[at + i];
    else
        for (size_t i = 0; i < n; i++)
            add[i] += (float)dq_tensor_get_double(bias, at + i);
}

void dq_mask_add(const dq_mask *mask, const dq_attention_row *row)
{
    enum { KEYS_PER_BLOCK = 256 };
    const dq_tensor *bias = mask->bias;
    size_t at = 0, seen = mask->causal ? mask->past + row->row + 1 : SIZE_MAX;
    if (!bias && mask->kind == DQ_MASK_NONE && !mask->causal)
        return;
    if (bias) {
        size_t heads = (size_t)bias->dims[1], batch = bias->dims[0] == 1 ? 0 : row->batch;
        at = ((batch * heads + (heads == 1 ? 0 : row->head)) * (size_t)bias->dims[2] + row->row) *
             (size_t)bias->dims[3];
    }
    key_mask s = key_mask_of(mask, row->batch, row->row);
    for (size_t t = row->first, n; t < row->end; t += n) {
        float add[KEYS_PER_BLOCK], *scores = row->scores + t;
        n = row->end - t < KEYS_PER_BLOCK ? row->end - t : KEYS_PER_BLOCK;
        hide(&s, t, n, mask->filter, add);
        for (size_t i = seen > t ? seen - t : 0; i < n; i++)
            add[i] = -FLT_MAX;
        if (bias)
            add_bias(bias, at + t, n, add);
        for (size_t i = 0; i < n; i++)
            scores[i] += add[i];
    }
}
