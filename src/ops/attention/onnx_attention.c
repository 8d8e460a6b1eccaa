/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of ai.onnx: softmax(softcap(Q·Kᵀ·scale) + mask)·V for each head. Past keys and values, if any,
 * precede the new ones. Types up to float use attention_core.h; double types, and a Softmax in double, are
 * computed here in double. A query whose keys are all masked has zeros as result. */
#include "base/checked.h"
#include "base/codec.h"
#include "base/math.h"
#include "ops/attention/attention_core.h"
#include "ops/element.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, VALID };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

typedef struct state {
    size_t batch, heads, kv_heads, queries, fresh, past, total, size, value_size;
    bool packed; /* rank 3: the last axis holds all heads */
    double scale, cap;
    bool causal;
    int64_t left, right;          /* window; -1: unbounded */
    dq_attention_stage show;      /* stage of the scores that output SCORES returns */
    dq_dtype precision;           /* of Softmax */
    size_t mask[4], mask_keys;    /* strides of the mask; its number of keys */
    bool in_double;               /* computed in double */
    size_t width;                 /* bytes of a number in the scratch */
    size_t values_at, queries_at; /* byte offsets there; keys are at 0 */
} state;

static double round_as(dq_dtype dtype, double x)
{
    if (dtype == DQ_DOUBLE)
        return x;
    return dtype == DQ_FLOAT ? (double)(float)x
                             : (double)dq_decode_float(dtype, dq_encode_float(dtype, dq_round_to_odd(x),
                                                                              false, DQ_ROUND_NEAREST));
}

/* ---- Shapes -------------------------------------------------------------------------------------------- */

static dq_status heads_of(const dq_op_call *call, uint32_t i, const char *name, int64_t dims[4],
                          dq_error *err)
{
    const dq_tensor *t = call->in[i];
    if (t->rank == 4) {
        memcpy(dims, t->dims, 4 * sizeof *dims);
        return DQ_OK;
    }
    int64_t heads = dq_node_int(call->node, name, 0);
    if (heads < 1 || t->dims[2] % heads != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute '%s' is %" PRId64 ", expected a divisor of %" PRId64
                            " (the last axis of input %u)",
                            name, heads, t->dims[2], i);
    dims[0] = t->dims[0];
    dims[1] = heads;
    dims[2] = t->dims[1];
    dims[3] = t->dims[2] / heads;
    return DQ_OK;
}

static dq_status unlike(const dq_op_call *call, uint32_t i, const int64_t expected[4], dq_error *err)
{
    char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
    return dq_call_fail_input(call, err, i, "has shape %s, expected %s",
                              dq_shape_text(call->in[i]->rank, call->in[i]->dims, mine),
                              dq_shape_text(4, expected, theirs));
}

static dq_status read_past(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *key = dq_call_in(call, PAST_KEY), *value = dq_call_in(call, PAST_VALUE);
    if (!key != !value)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has only one of past_key and past_value");
    if (!key)
        return DQ_OK;
    if (dq_call_in(call, VALID))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has both past_key and nonpad_kv_seqlen");
    int64_t steps = key->rank == 4 ? key->dims[2] : 0;
    int64_t expected[4] = {(int64_t)s->batch, (int64_t)s->kv_heads, steps, (int64_t)s->size};
    if (key->rank != 4 || memcmp(key->dims, expected, sizeof expected) != 0)
        return unlike(call, PAST_KEY, expected, err);
    expected[3] = (int64_t)s->value_size;
    if (value->rank != 4 || memcmp(value->dims, expected, sizeof expected) != 0)
        return unlike(call, PAST_VALUE, expected, err);
    s->past = (size_t)steps;
    return DQ_OK;
}

/* Checks that the mask broadcasts to [batch, heads, queries, keys]. It may have fewer keys: the others are
 * masked. */
static dq_status read_mask(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *mask = dq_call_in(call, MASK);
    if (!mask)
        return DQ_OK;
    const size_t expected[4] = {s->batch, s->heads, s->queries, s->total};
    bool fits = mask->rank >= 1 && mask->rank <= 4;
    size_t strides[DQ_MAX_RANK];
    for (size_t d = 0; fits && d < mask->rank; d++) {
        size_t n = (size_t)mask->dims[d], want = expected[4 - mask->rank + d];
        fits = d + 1 == mask->rank ? n <= want : n == want || n == 1;
    }
    if (!fits) {
        const int64_t dims[4] = {(int64_t)s->batch, (int64_t)s->heads, (int64_t)s->queries,
                                 (int64_t)s->total};
        return unlike(call, MASK, dims, err);
    }
    dq_strides(mask->rank, mask->dims, strides);
    for (size_t d = 0; d < mask->rank; d++)
        s->mask[4 - mask->rank + d] = mask->dims[d] == 1 ? 0 : strides[d];
    s->mask_keys = (size_t)mask->dims[mask->rank - 1];
    return DQ_OK;
}

static dq_status read_attributes(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_node *node = call->node;
    int64_t show = dq_node_int(node, "qk_matmul_output_mode", 0);
    int64_t precision = dq_node_int(node, "softmax_precision", call->in[Q]->dtype);
    s->scale = (double)dq_node_float(node, "scale", (float)(1 / sqrt((double)s->size)));
    s->cap = (double)dq_node_float(node, "softcap", 0);
    s->causal = dq_node_int(node, "is_causal", 0) != 0;
    s->left = dq_node_int(node, "left_window_size", -1);
    s->right = dq_node_int(node, "right_window_size", -1);
    if (s->left < -1 || s->right < -1)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has a window of %" PRId64 " and %" PRId64 ", expected -1 or more", s->left,
                            s->right);
    if (show < DQ_ATTENTION_RAW || show > DQ_ATTENTION_WEIGHTS)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'qk_matmul_output_mode' is %" PRId64 ", expected 0 to 3", show);
    if (precision != DQ_FLOAT && precision != DQ_FLOAT16 && precision != DQ_BFLOAT16 &&
        precision != DQ_DOUBLE)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'softmax_precision' is %" PRId64 ", expected 1, 10, 11 or 16",
                            precision);
    s->show = (dq_attention_stage)show;
    s->precision = (dq_dtype)precision;
    return DQ_OK;
}

static dq_status read_all(const dq_op_call *call, state *s, dq_error *err)
{
    int64_t q[4], k[4], v[4];
    for (uint32_t i = Q; i <= V; i++)
        if (call->in[i]->rank != call->in[Q]->rank || call->in[i]->rank < 3 || call->in[i]->rank > 4)
            return dq_call_fail_input(call, err, i, "has rank %u, expected 3 or 4, the same for Q, K and V",
                                      call->in[i]->rank);
    *s = (state){.packed = call->in[Q]->rank == 3};
    DQ_TRY(heads_of(call, Q, "q_num_heads", q, err));
    DQ_TRY(heads_of(call, K, "kv_num_heads", k, err));
    DQ_TRY(heads_of(call, V, "kv_num_heads", v, err));
    const int64_t key[4] = {q[0], k[1], k[2], q[3]}, value[4] = {q[0], k[1], k[2], v[3]};
    if (memcmp(k, key, sizeof key) != 0)
        return unlike(call, K, key, err);
    if (memcmp(v, value, sizeof value) != 0)
        return unlike(call, V, value, err);
    if (k[1] == 0 || q[1] % k[1] != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has %" PRId64 " heads of queries and %" PRId64 " of keys, expected a multiple",
                            q[1], k[1]);
    s->batch = (size_t)q[0];
    s->heads = (size_t)q[1];
    s->kv_heads = (size_t)k[1];
    s->queries = (size_t)q[2];
    s->fresh = (size_t)k[2];
    s->size = (size_t)q[3];
    s->value_size = (size_t)v[3];
    DQ_TRY(read_past(call, s, err));
    if (!dq_add_size(s->past, s->fresh, &s->total) || s->total > INT64_MAX)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has more keys than a tensor can hold");
    const dq_tensor *valid = dq_call_in(call, VALID);
    if (valid && (valid->rank != 1 || valid->count != s->batch))
        return dq_call_fail_input(call, err, VALID, "has %zu elements, expected %zu (batch elements)",
                                  valid->count, s->batch);
    DQ_TRY(read_attributes(call, s, err));
    return read_mask(call, s, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state s;
    DQ_TRY(read_all(call, &s, err));
    int64_t b = (int64_t)s.batch, h = (int64_t)s.heads, n = (int64_t)s.queries, total = (int64_t)s.total;
    int64_t y[4] = {b, h, n, (int64_t)s.value_size}, flat[3] = {b, n, 0};
    int64_t key[4] = {b, (int64_t)s.kv_heads, total, (int64_t)s.size};
    int64_t value[4] = {b, (int64_t)s.kv_heads, total, (int64_t)s.value_size};
    const int64_t scores[4] = {b, h, n, total};
    dq_dtype dtype = call->in[Q]->dtype;
    if (!dq_mul_i64(h, y[3], &flat[2]))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has a result that is too large");
    DQ_TRY(s.packed ? dq_call_output(call, Y, dtype, 3, flat, err)
                    : dq_call_output(call, Y, dtype, 4, y, err));
    DQ_TRY(dq_call_output(call, PRESENT_KEY, call->in[K]->dtype, 4, key, err));
    DQ_TRY(dq_call_output(call, PRESENT_VALUE, call->in[V]->dtype, 4, value, err));
    return dq_call_output(call, SCORES, dtype, 4, scores, err);
}

/* Reserves a · b · c numbers of `width` bytes; *at is their byte offset. False if a size overflows. */
static bool take(size_t a, size_t b, size_t c, size_t width, size_t *end, size_t *at)
{
    size_t bytes;
    *at = *end;
    return dq_mul_size(a, b, &bytes) && dq_mul_size(bytes, c, &bytes) && dq_mul_size(bytes, width, &bytes) &&
           dq_align_size(bytes, DQ_ALIGN, &bytes) && dq_add_size(*end, bytes, end);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read_all(call, s, err));
    s->in_double =
        call->in[Q]->dtype == DQ_DOUBLE || call->in[V]->dtype == DQ_DOUBLE || s->precision == DQ_DOUBLE;
    s->width = s->in_double ? sizeof(double) : sizeof(float);
    size_t kv = s->batch * s->kv_heads, keys_at, numbers, worker;
    bool joined = s->in_double || s->past || call->in[K]->dtype != DQ_FLOAT || call->in[V]->dtype != DQ_FLOAT;
    bool own_queries = !s->in_double && call->in[Q]->dtype != DQ_FLOAT;
    bool fits =
        take(joined ? kv : 0, s->total, s->size, s->width, &call->scratch_size, &keys_at) &&
        take(joined ? kv : 0, s->total, s->value_size, s->width, &call->scratch_size, &s->values_at) &&
        take(own_queries ? s->batch * s->heads : 0, s->queries, s->size, s->width, &call->scratch_size,
             &s->queries_at) &&
        dq_add_size(s->size, s->value_size, &numbers) && dq_add_size(numbers, 2 * s->total, &numbers) &&
        dq_mul_size(numbers, sizeof(double), &worker) && dq_align_size(worker, DQ_ALIGN, &worker);
    if (!fits)
        return dq_call_fail(call, err, DQ_OUT_OF_MEMORY, "wants more memory than there can be");
    if (!s->in_double)
        return dq_attention_prepare(call, s->queries, s->total, s->size, s->value_size,
                                    s->heads / s->kv_heads, err);
    call->worker_scratch_size = worker;
    return DQ_OK;
}

/* ---- Laying out keys and values ------------------------------------------------------------------------ */

static void load(const dq_op_call *call, const dq_tensor *t, size_t first, size_t n, void *to)
{
    const state *s = call->state;
    if (s->in_double)
        dq_load_doubles(t->dtype, t->data, first, n, to);
    else
        dq_load_floats(call->kernels, t->dtype, t->data, first, n, to);
}

/* Index of the first element of head h at position t in an input. */
static size_t step_at(const state *s, size_t heads, size_t steps, size_t size, size_t b, size_t h, size_t t)
{
    return (s->packed ? (b * steps + t) * heads + h : (b * heads + h) * steps + t) * size;
}

typedef struct layout {
    const dq_op_call *call;
    const dq_tensor *fresh, *past;
    dq_tensor *present; /* NULL: not requested */
    size_t size;
    char *to; /* NULL: the input itself is used */
} layout;

/* Concatenates past and new positions of heads, in the computing type in scratch, and in the output. */
static void lay_out_heads(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const layout *l = arg;
    const state *s = l->call->state;
    for (size_t row = begin * s->total; row < end * s->total; row++) {
        size_t t = row % s->total, head = row / s->total;
        bool old = t < s->past;
        size_t at = old ? (head * s->past + t) * l->size
                        : step_at(s, s->kv_heads, s->fresh, l->size, head / s->kv_heads, head % s->kv_heads,
                                  t - s->past);
        if (l->to)
            load(l->call, old ? l->past : l->fresh, at, l->size, l->to + row * l->size * s->width);
        if (l->present)
            dq_copy_elements(old ? l->past : l->fresh, at, l->present, row * l->size, l->size);
    }
}

static bool used_in_place(const state *s, const dq_tensor *t, size_t past)
{
    return !s->in_double && !past && t->dtype == DQ_FLOAT;
}

static void lay_out(const dq_op_call *call, uint32_t now, uint32_t before, uint32_t present, size_t size,
                    size_t at)
{
    const state *s = call->state;
    layout l = {.call = call,
                .fresh = call->in[now],
                .past = dq_call_in(call, before),
                .present = present < call->out_count ? call->out[present] : NULL,
                .size = size,
                .to = used_in_place(s, call->in[now], s->past) ? NULL : (char *)call->scratch + at};
    if (l.to || l.present)
        dq_parallel(call->threads, s->batch * s->kv_heads, 1, lay_out_heads, &l);
}

/* ---- Masks --------------------------------------------------------------------------------------------- */

/* Range of keys that a query attends to by length, causality and window, without the mask. */
typedef struct key_range {
    size_t first, end;
} key_range;

static key_range key_range_of(const dq_op_call *call, size_t b, size_t i)
{
    const state *s = call->state;
    const dq_tensor *mask = dq_call_in(call, MASK), *valid = dq_call_in(call, VALID);
    int64_t end = (int64_t)s->total, position = (int64_t)s->past, first = 0;
    if (valid) {
        end = dq_data(valid, int64_t)[b];
        position = end - (int64_t)s->queries;
    }
    position += (int64_t)i;
    if (s->causal && position + 1 < end)
        end = position + 1;
    if (s->right >= 0 && end - position > s->right + 1)
        end = position + s->right + 1;
    if (mask && end > (int64_t)s->mask_keys)
        end = (int64_t)s->mask_keys;
    if (s->left >= 0 && position - s->left > 0)
        first = position - s->left;
    end = end > 0 ? end : 0;
    return (key_range){(size_t)(first < end ? first : end), (size_t)end};
}

/* The mask's term of a score: minus infinity for a masked key. */
static double masked(const state *s, const dq_tensor *mask, size_t b, size_t h, size_t i, size_t t)
{
    size_t at = b * s->mask[0] + h * s->mask[1] + i * s->mask[2] + t * s->mask[3];
    if (mask->dtype == DQ_BOOL)
        return dq_data(mask, uint8_t)[at] ? 0 : -(double)INFINITY;
    return mask->dtype == DQ_FLOAT ? (double)dq_data(mask, float)[at] : dq_tensor_get_double(mask, at);
}

/* ---- In double ----------------------------------------------------------------------------------------- */

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Softmax in place; all weights are 0 if all keys are masked. */
static void softmax(const state *s, double *scores, const double *biases)
{
    double highest = -(double)INFINITY, total = 0;
    bool any = false;
    for (size_t t = 0; t < s->total; t++) {
        any = any || biases[t] != -(double)INFINITY;
        scores[t] = round_as(s->precision, scores[t]);
        if (biases[t] != -(double)INFINITY && (scores[t] > highest || isnan(scores[t])))
            highest = scores[t];
    }
    for (size_t t = 0; t < s->total; t++) {
        double x = scores[t] - highest;
        bool seen = any && biases[t] != -(double)INFINITY && highest != -(double)INFINITY;
        scores[t] = seen ? dq_exp(x) : 0;
        total += scores[t];
    }
    for (size_t t = 0; t < s->total && total != 0; t++)
        scores[t] /= total;
}

static dq_tensor *scores_of(const dq_op_call *call)
{
    return SCORES < call->out_count ? call->out[SCORES] : NULL;
}

static void show(const dq_op_call *call, dq_attention_stage now, size_t row, const double *scores)
{
    const state *s = call->state;
    dq_tensor *out = scores_of(call);
    for (size_t t = 0; out && s->show == now && t < s->total; t++)
        dq_tensor_put_double(out, row * s->total + t, scores[t]);
}

static void query(const dq_op_call *call, size_t row, double *scores)
{
    const state *s = call->state;
    size_t i = row % s->queries, h = row / s->queries % s->heads, b = row / s->queries / s->heads;
    size_t head = b * s->kv_heads + h / (s->heads / s->kv_heads);
    double *biases = scores + s->total, *q = biases + s->total, *sum = q + s->size;
    const char *scratch = call->scratch;
    const double *keys = (const double *)(const void *)scratch + head * s->total * s->size;
    const double *values =
        (const double *)(const void *)(scratch + s->values_at) + head * s->total * s->value_size;
    const dq_tensor *mask = dq_call_in(call, MASK);
    key_range seen = key_range_of(call, b, i);
    load(call, call->in[Q], step_at(s, s->heads, s->queries, s->size, b, h, i), s->size, q);
    for (size_t t = 0; t < s->total; t++) {
        scores[t] = dot(q, keys + t * s->size, s->size) * s->scale;
        biases[t] = t < seen.first || t >= seen.end ? -(double)INFINITY
                    : mask                          ? masked(s, mask, b, h, i, t)
                                                    : 0;
    }
    show(call, DQ_ATTENTION_RAW, row, scores);
    for (size_t t = 0; t < s->total && s->cap > 0; t++)
        scores[t] = s->cap * dq_tanh(scores[t] / s->cap);
    show(call, DQ_ATTENTION_CAPPED, row, scores);
    for (size_t t = 0; t < s->total; t++)
        scores[t] += biases[t];
    show(call, DQ_ATTENTION_BIASED, row, scores);
    softmax(s, scores, biases);
    show(call, DQ_ATTENTION_WEIGHTS, row, scores);
    memset(sum, 0, s->value_size * sizeof *sum);
    for (size_t t = 0; t < s->total; t++)
        for (size_t k = 0; k < s->value_size && biases[t] != -(double)INFINITY; k++)
            sum[k] += scores[t] * values[t * s->value_size + k];
    for (size_t k = 0; k < s->value_size; k++)
        dq_tensor_put_double(call->out[Y], step_at(s, s->heads, s->queries, s->value_size, b, h, i) + k,
                             sum[k]);
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    for (size_t row = begin; row < end; row++)
        query(call, row, dq_call_worker_scratch(call, worker));
}

/* ---- In float ------------------------------------------------------------------------------------------ */

static void narrow(const void *arg, dq_attention_row *row)
{
    key_range seen = key_range_of(arg, row->batch, row->row);
    row->first = seen.first;
    row->end = seen.end;
}

static void add_mask(const void *arg, const dq_attention_row *row)
{
    const dq_op_call *call = arg;
    const dq_tensor *mask = dq_call_in(call, MASK);
    key_range seen = key_range_of(call, row->batch, row->row);
    for (size_t t = row->first; t < row->end; t++)
        if (t < seen.first || t >= seen.end)
            row->scores[t] = -INFINITY;
        else if (mask)
            row->scores[t] += (float)masked(call->state, mask, row->batch, row->head, row->row, t);
}

static void put_scores(const void *arg, const dq_attention_row *row)
{
    const dq_op_call *call = arg;
    const state *s = call->state;
    dq_tensor *out = scores_of(call);
    size_t at = ((row->batch * s->heads + row->head) * s->queries + row->row) * s->total;
    dq_store_from_floats(call->kernels, out->dtype, out->data, at, s->total, row->scores, false);
}

/* The rows of an input, or of its copy in scratch, [batch, heads, steps, size]. */
static dq_attention_operand operand_of(const dq_op_call *call, uint32_t i, size_t heads, size_t steps,
                                       size_t past, size_t size, size_t at)
{
    const state *s = call->state;
    dq_attention_operand o = {(const float *)(const void *)((const char *)call->scratch + at),
                              heads * steps * size, steps * size, size};
    if (!used_in_place(s, call->in[i], past))
        return o;
    o.data = dq_data(call->in[i], float);
    if (s->packed) {
        o.head = size;
        o.row = heads * size;
    }
    return o;
}

static void run_floats(const dq_op_call *call)
{
    const state *s = call->state;
    const dq_tensor *q = call->in[Q];
    bool all = scores_of(call) && s->show != DQ_ATTENTION_WEIGHTS; /* computes scores of masked keys, too */
    dq_attention a = {.batch = s->batch,
                      .heads = s->heads,
                      .rows = s->queries,
                      .keys = s->total,
                      .heads_per_kv = s->heads / s->kv_heads,
                      .size = s->size,
                      .v_size = s->value_size,
                      .scale = (float)s->scale,
                      .softcap = s->cap > 0 ? (float)s->cap : 0,
                      .precision = s->precision,
                      .q = operand_of(call, Q, s->heads, s->queries, 0, s->size, s->queries_at),
                      .k = operand_of(call, K, s->kv_heads, s->total, s->past, s->size, 0),
                      .v = operand_of(call, V, s->kv_heads, s->total, s->past, s->value_size, s->values_at),
                      .out = call->out[Y],
                      .out_batch = s->queries * s->heads * s->value_size,
                      .out_head = s->packed ? s->value_size : s->queries * s->value_size,
                      .out_row = s->packed ? s->heads * s->value_size : s->value_size,
                      .range = all ? NULL : narrow,
                      .bias = all || dq_call_in(call, MASK) ? add_mask : NULL,
                      .on_scores = scores_of(call) ? put_scores : NULL,
                      .scores_stage = s->show,
                      .arg = call};
    if (q->dtype != DQ_FLOAT) {
        dq_load_floats(call->kernels, q->dtype, q->data, 0, q->count,
                       (float *)(void *)((char *)call->scratch + s->queries_at));
        if (s->packed) {
            a.q.head = s->size;
            a.q.row = s->heads * s->size;
        }
    }
    dq_attention_run(call, &a);
}

static dq_status check_valid(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    const dq_tensor *valid = dq_call_in(call, VALID);
    for (size_t b = 0; valid && b < s->batch; b++) {
        int64_t value = dq_data(valid, int64_t)[b];
        if (value < 0 || (size_t)value > s->total)
            return dq_call_fail(call, err, DQ_BAD_INPUT,
                                "input 6 holds %" PRId64 ", expected 0 to %zu (keys)", value, s->total);
    }
    return DQ_OK;
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    DQ_TRY(check_valid(call, err));
    lay_out(call, K, PAST_KEY, PRESENT_KEY, s->size, 0);
    lay_out(call, V, PAST_VALUE, PRESENT_VALUE, s->value_size, s->values_at);
    dq_tensor *scores = scores_of(call);
    if (call->out[Y]->count == 0 && !(scores && scores->count))
        return DQ_OK;
    if (s->in_double)
        dq_parallel(call->threads, s->batch * s->heads * s->queries, 1, piece, &call);
    else
        run_floats(call);
    return DQ_OK;
}

const dq_op_impl dq_op_attention = {infer, prepare, run, 0};
