#include "ops/attention_core.h"

#include "base/checked.h"
#include "ops/rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LANES = 8, KEYS = 4, WORK = 1 << 16 /* products of a piece of parallel work, about */ };

dq_status dq_attention_prepare(dq_op_call *call, size_t keys, size_t v_size, dq_error *err)
{
    size_t bytes;
    if (!dq_add_size(keys, v_size, &bytes) || !dq_mul_size(bytes, sizeof(float), &bytes))
        return dq_no_memory(err, SIZE_MAX, "scores");
    if (call->worker_scratch_size < bytes)
        call->worker_scratch_size = bytes;
    return DQ_OK;
}

void dq_attention_load(const dq_op_call *call, const dq_attention_source *from, size_t batch, size_t head,
                       size_t position, size_t n, const dq_tensor *bias, size_t bias_at, float *to)
{
    const dq_tensor *t = call->in[from->input];
    size_t at = from->base + batch * from->batch + head * from->head + position * from->row;
    dq_load_floats(call->kernels, t->dtype, t->data, at, n, to);
    for (size_t i = 0; bias && i < n; i++)
        to[i] += bias->dtype == DQ_FLOAT ? dq_data(bias, float)[bias_at + i]
                                         : (float)dq_tensor_get_double(bias, bias_at + i);
}

/* One query times `count` keys, at most KEYS, side by side: each has its own sums. */
static void dots(const float *q, const float *k, size_t k_row, size_t n, size_t count, float *out)
{
    float lane[KEYS][LANES] = {{0}};
    const float *keys[KEYS];
    for (size_t t = 0; t < KEYS; t++)
        keys[t] = k + (t < count ? t : 0) * k_row;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t t = 0; t < KEYS; t++)
            for (size_t l = 0; l < LANES; l++)
                lane[t][l] += q[i + l] * keys[t][i + l];
    for (; i < n; i++)
        for (size_t t = 0; t < KEYS; t++)
            lane[t][i % LANES] += q[i] * keys[t][i];
    for (size_t t = 0; t < count; t++)
        out[t] = ((lane[t][0] + lane[t][4]) + (lane[t][1] + lane[t][5])) +
                 ((lane[t][2] + lane[t][6]) + (lane[t][3] + lane[t][7]));
}

static void score(const dq_attention *a, const dq_attention_row *row)
{
    const float *q = a->q.data + row->batch * a->q.batch + row->head * a->q.head + row->row * a->q.row;
    const float *k = a->k.data + row->batch * a->k.batch + row->head / a->heads_per_kv * a->k.head;
    for (size_t t = row->first; t < row->end; t += KEYS) {
        size_t count = row->end - t < KEYS ? row->end - t : KEYS;
        dots(q, k + t * a->k.row, a->k.row, a->size, count, row->scores + t);
        for (size_t i = t; i < t + count; i++)
            row->scores[i] *= a->scale;
    }
    for (size_t t = row->first; t < row->end && a->softcap > 0; t++)
        row->scores[t] = a->softcap * tanhf(row->scores[t] / a->softcap);
}

static void soften(const dq_attention *a, const dq_attention_row *row)
{
    float *s = row->scores, most = a->sinks ? a->sinks[row->head] : -INFINITY;
    for (size_t t = row->first; t < row->end; t++)
        most = s[t] > most ? s[t] : most;
    if (most == -INFINITY) /* nothing to see */
        most = 0;
    double sum = a->sinks ? (double)expf(a->sinks[row->head] - most) : 0;
    for (size_t t = row->first; t < row->end; t++) {
        s[t] = expf(s[t] - most);
        sum += (double)s[t];
    }
    float total = (float)sum;
    for (size_t t = row->first; t < row->end && sum > 0; t++)
        s[t] /= total;
}

static void gather(const dq_attention *a, const dq_attention_row *row, float *restrict sum)
{
    const float *v = a->v.data + row->batch * a->v.batch + row->head / a->heads_per_kv * a->v.head;
    size_t t = row->first, step = a->v.row, n = a->v_size;
    memset(sum, 0, n * sizeof *sum);
    for (; t + KEYS <= row->end; t += KEYS) {
        const float *w = row->scores + t, *from = v + t * step;
        for (size_t i = 0; i < n; i++) /* key after key, as below */
            sum[i] = sum[i] + w[0] * from[i] + w[1] * from[step + i] + w[2] * from[2 * step + i] +
                     w[3] * from[3 * step + i];
    }
    for (; t < row->end; t++)
        for (size_t i = 0; i < n; i++)
            sum[i] += row->scores[t] * v[t * step + i];
}

static void clear_others(const dq_attention *a, const dq_attention_row *row)
{
    for (size_t t = 0; t < row->first; t++)
        row->scores[t] = 0;
    for (size_t t = row->end; t < a->keys; t++)
        row->scores[t] = 0;
}

typedef struct job {
    const dq_op_call *call;
    const dq_attention *a;
} job;

static void one_row(const job *j, size_t number, float *scores)
{
    const dq_attention *a = j->a;
    float *sum = scores + a->keys;
    dq_attention_row row = {.batch = number / a->rows / a->heads,
                            .head = number / a->rows % a->heads,
                            .row = number % a->rows,
                            .end = a->keys,
                            .scores = scores};
    if (a->range)
        a->range(a->arg, &row);
    score(a, &row);
    if (a->bias)
        a->bias(a->arg, &row);
    if (a->look_before) {
        clear_others(a, &row);
        a->look_before(a->arg, &row);
    }
    soften(a, &row);
    if (a->look_after) {
        clear_others(a, &row);
        a->look_after(a->arg, &row);
    }
    if (!a->out)
        return;
    gather(a, &row, sum);
    size_t at = ((row.batch * a->rows + row.row) * a->heads + row.head) * a->v_size;
    dq_store_from_floats(j->call->kernels, a->out->dtype, a->out->data, at, a->v_size, sum, false);
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    for (size_t i = begin; i < end; i++)
        one_row(j, i, dq_call_worker_scratch(j->call, worker));
}

void dq_attention_run(const dq_op_call *call, const dq_attention *a)
{
    job j = {call, a};
    size_t products = a->keys * (a->size + a->v_size);
    dq_parallel(call->threads, a->batch * a->heads * a->rows, WORK / (products + 1) + 1, piece, &j);
}

/* ---- Masks -------------------------------------------------------------------------------------------- */

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
    /* one value for all keys hides nothing from nobody: it says as much as no mask */
    bool same = t && t->rank == 2 && t->dims[1] == 1 && (t->dims[0] == 1 || t->dims[0] == (int64_t)batch);
    if (!t || *kind != DQ_MASK_NONE || same)
        return DQ_OK;
    return dq_call_fail_input(
        call, err, i,
        "has shape %s, wanted [%zu], [%zu], [%zu, %zu], [%zu, %zu, %zu] or a square for each of the batch",
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
    return dq_call_fail_input(call, err, i, "has shape %s, wanted [%zu or 1, %zu or 1, %zu, %zu]",
                              dq_shape_text(t->rank, t->dims, text), batch, heads, rows, keys);
}

static bool hidden(const dq_mask *m, size_t batch, size_t row, size_t key)
{
    const int32_t *d = m->data;
    switch (m->kind) {
    case DQ_MASK_LENGTHS:
        return d[batch] <= 0 || key >= (size_t)d[batch];
    case DQ_MASK_SPANS:
        return d[batch] <= 0 || key >= (size_t)d[batch] ||
               (d[m->batch + batch] > 0 && key < (size_t)d[m->batch + batch]);
    case DQ_MASK_KEYS:
        return d[batch * m->keys + key] <= 0;
    case DQ_MASK_ROWS:
        return d[(batch * m->rows + row) * m->keys + key] <= 0;
    case DQ_MASK_SQUARE:
        return d[(batch * m->most + m->past + row) * m->most + key] <= 0;
    default:
        return false;
    }
}

void dq_mask_add(const dq_mask *mask, const dq_attention_row *row)
{
    const dq_tensor *bias = mask->bias;
    size_t at = 0;
    if (!bias && mask->kind == DQ_MASK_NONE && !mask->causal)
        return;
    if (bias) {
        size_t heads = (size_t)bias->dims[1], batch = bias->dims[0] == 1 ? 0 : row->batch;
        at = ((batch * heads + (heads == 1 ? 0 : row->head)) * (size_t)bias->dims[2] + row->row) *
             (size_t)bias->dims[3];
    }
    for (size_t t = row->first; t < row->end; t++) {
        float add = hidden(mask, row->batch, row->row, t) ? mask->filter : 0;
        if (mask->causal && t > mask->past + row->row)
            add = -FLT_MAX;
        if (bias)
            add += bias->dtype == DQ_FLOAT ? dq_data(bias, float)[at + t]
                                           : (float)dq_tensor_get_double(bias, at + t);
        row->scores[t] += add;
    }
}
