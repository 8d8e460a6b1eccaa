/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft GroupQueryAttention: attention with a KV cache in which neighboring query heads share a
 * key/value head. New keys and values are optionally normalized and rotated, written to the cache (which may
 * quantize them), and read back from it. Computed in float.
 *
 * If the total length equals the number of queries, a run begins new sequences and ignores the cache's
 * content. If query_seqlens counts the new rows of each sequence, the rows after them are padding: they are
 * not written to the cache, and their results are 0.
 *
 * A sliding cache (sliding_window_cache) holds only the last positions of a sequence, at least those of the
 * window. When it is full, all positions outside the window are dropped at once. */
#include "base/checked.h"
#include "ops/attention/attention_mask.h"
#include "ops/attention/kv_cache.h"
#include "ops/attention/rotary.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    LENGTHS,
    TOTAL,
    COS,
    SIN,
    POSITIONS,
    ATTENTION_BIAS,
    SINKS,
    K_SCALE,
    V_SCALE,
    Q_NORM,
    K_NORM,
    NEW_ROWS
};
enum { OUTPUT, PRESENT_KEY, PRESENT_VALUE, SCORES };
enum { NO_SCORES, SCORES_BEFORE, SCORES_AFTER };

/* Keys or values: source, input and output numbers, and cache. */
typedef struct half {
    dq_attention_source from;
    uint32_t past, present, norm;
    dq_kv_cache cache;
    size_t cache_at; /* offset in scratch, if no output holds the cache */
} half;

typedef struct state {
    size_t batch, rows, heads, kv_heads, size;
    size_t past, total, capacity; /* positions of the old cache; of the longest sequence; of the new cache */
    dq_attention_source q;
    half k, v;
    bool rotary, interleaved, causal, smooth, sliding;
    size_t held; /* positions of each head in a run: the new cache; if sliding, the old one and new rows */
    size_t rotated_half;
    size_t window; /* 0: none */
    int64_t on_scores;
    float scale, softcap;
    double q_epsilon, k_epsilon;
    size_t q_at, sinks_at; /* offsets in scratch */
} state;

/* ---- Planning ----------------------------------------------------------------------------------------- */

static dq_status wrong(const dq_op_call *call, uint32_t i, dq_error *err, const char *has_output)
{
    char text[DQ_SHAPE_TEXT];
    return dq_call_fail_input(call, err, i, "has shape %s, expected %s",
                              dq_shape_text(call->in[i]->rank, call->in[i]->dims, text), has_output);
}

static dq_status read_heads(const dq_op_call *call, state *s, dq_error *err)
{
    int64_t n = dq_node_int(call->node, "num_heads", 0), kv = dq_node_int(call->node, "kv_num_heads", 0);
    const dq_tensor *q = call->in[QUERY], *k = dq_call_in(call, KEY), *v = dq_call_in(call, VALUE);
    if (n < 1 || kv < 1 || n % kv != 0 || n > INT32_MAX)
        return dq_call_fail(
            call, err, DQ_BAD_MODEL,
            "has %" PRId64 " heads of queries and %" PRId64 " of keys, expected a multiple of them", n, kv);
    int64_t parts = k ? n : n + 2 * kv;
    if (!k != !v)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has keys or values alone, expected both or none");
    if (q->rank != 3 || q->dims[2] % parts != 0)
        return wrong(call, QUERY, err, "batch, sequence and a width that all heads can share");
    s->batch = (size_t)q->dims[0];
    s->rows = (size_t)q->dims[1];
    s->heads = (size_t)n;
    s->kv_heads = (size_t)kv;
    s->size = (size_t)(q->dims[2] / parts);
    for (uint32_t i = KEY; k && i <= VALUE; i++)
        if (call->in[i]->rank != 3 || call->in[i]->dims[0] != q->dims[0] ||
            call->in[i]->dims[1] != q->dims[1] || (size_t)call->in[i]->dims[2] != s->kv_heads * s->size)
            return wrong(call, i, err, "that of the queries, but as wide as the heads of keys");
    size_t row = (size_t)q->dims[2], kv_width = s->kv_heads * s->size;
    s->q = (dq_attention_source){QUERY, 0, s->rows * row, s->size, row};
    s->k.from = (dq_attention_source){QUERY, s->heads * s->size, s->rows * row, s->size, row};
    s->v.from = (dq_attention_source){QUERY, s->heads * s->size + kv_width, s->rows * row, s->size, row};
    if (k) {
        s->k.from = (dq_attention_source){KEY, 0, s->rows * kv_width, s->size, kv_width};
        s->v.from = (dq_attention_source){VALUE, 0, s->rows * kv_width, s->size, kv_width};
    }
    return DQ_OK;
}

static dq_dtype cache_type(const dq_op_call *call, const half *h)
{
    if (dq_call_in(call, h->past))
        return call->in[h->past]->dtype;
    if (h->present < call->out_count && call->out[h->present] && call->out[h->present]->dtype != DQ_UNDEFINED)
        return call->out[h->present]->dtype;
    return call->in[QUERY]->dtype;
}

static dq_status read_half(const dq_op_call *call, state *s, half *h, bool values, dq_error *err)
{
    const dq_tensor *past = dq_call_in(call, h->past);
    DQ_TRY(dq_kv_cache_infer(call, cache_type(call, h), s->kv_heads, s->size,
                             values ? "v_quant_type" : "k_quant_type", values ? V_SCALE : K_SCALE, &h->cache,
                             err));
    int64_t columns = (int64_t)(h->cache.dtype == DQ_UINT8 ? s->size / 2 : s->size);
    if (!past)
        return DQ_OK;
    if (past->rank != 4 || past->dims[0] != (int64_t)s->batch || past->dims[1] != (int64_t)s->kv_heads ||
        past->dims[3] != columns || (values && (size_t)past->dims[2] != s->past))
        return wrong(call, h->past, err,
                     "batch, heads of keys, positions, head size, alike for keys and values");
    s->past = (size_t)past->dims[2];
    return DQ_OK;
}

static dq_status read_rotary(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *cos = dq_call_in(call, COS), *positions = dq_call_in(call, POSITIONS);
    s->rotary = dq_node_int(call->node, "do_rotary", 0) != 0;
    s->interleaved = dq_node_int(call->node, "rotary_interleaved", 0) != 0;
    if (!s->rotary)
        return DQ_OK;
    if (!cos || !dq_call_in(call, SIN))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'do_rotary' is 1, which needs cos_cache and sin_cache");
    DQ_TRY(dq_rotary_check(call, COS, SIN, err));
    s->rotated_half = (size_t)cos->dims[1];
    if (s->rotated_half > s->size / 2)
        return wrong(call, COS, err, "at most half a head's elements in a row");
    if (positions && (positions->rank != 2 || positions->dims[0] != (int64_t)s->batch ||
                      positions->dims[1] != (int64_t)s->rows))
        return wrong(call, POSITIONS, err, "batch, sequence");
    return DQ_OK;
}

static dq_status read_options(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *sinks = dq_call_in(call, SINKS);
    int64_t window = dq_node_int(call->node, "local_window_size", -1);
    s->causal = dq_node_int(call->node, "causal", 1) != 0;
    s->smooth = dq_node_int(call->node, "smooth_softmax", -1) == 1;
    s->window = window > 0 ? (size_t)window : 0;
    s->on_scores = dq_node_int(call->node, "qk_output", NO_SCORES);
    s->softcap = dq_node_float(call->node, "softcap", 0);
    s->scale = dq_node_float(call->node, "scale", 0);
    if (s->scale == 0)
        s->scale = 1 / sqrtf((float)s->size);
    float epsilon = dq_node_float(call->node, "qk_norm_epsilon", 1e-6f);
    s->q_epsilon = (double)dq_node_float(call->node, "q_norm_epsilon", epsilon);
    s->k_epsilon = (double)dq_node_float(call->node, "k_norm_epsilon", epsilon);
    if (s->window && !s->causal)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'local_window_size' is %" PRId64 ", but not causal", window);
    s->sliding = dq_node_int(call->node, "sliding_window_cache", 0) != 0;
    if (s->sliding && (!s->window || s->window > s->past))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has a sliding cache of %zu positions, expected a window and as many or more",
                            s->past);
    if (s->sliding && (dq_call_in(call, ATTENTION_BIAS) || s->on_scores != NO_SCORES))
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "has a sliding cache and attention_bias or qk_output");
    if (sinks && sinks->count != s->heads)
        return wrong(call, SINKS, err, "one element a head");
    for (uint32_t i = Q_NORM; i <= K_NORM; i++)
        if (dq_call_in(call, i) && call->in[i]->count != s->size)
            return wrong(call, i, err, "one element for each of a head");
    return DQ_OK;
}

static dq_status read_all(const dq_op_call *call, state *s, dq_error *err)
{
    s->k.past = PAST_KEY;
    s->k.present = PRESENT_KEY;
    s->k.norm = K_NORM;
    s->v.past = PAST_VALUE;
    s->v.present = PRESENT_VALUE;
    s->v.norm = UINT32_MAX;
    DQ_TRY(read_heads(call, s, err));
    if (!dq_call_in(call, PAST_KEY) != !dq_call_in(call, PAST_VALUE))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has a past of keys or of values, expected both or none");
    DQ_TRY(read_half(call, s, &s->k, false, err));
    DQ_TRY(read_half(call, s, &s->v, true, err));
    DQ_TRY(read_rotary(call, s, err));
    DQ_TRY(read_options(call, s, err));
    if (call->in[LENGTHS]->count != s->batch)
        return wrong(call, LENGTHS, err, "one element a sequence");
    if (call->in[TOTAL]->count != 1)
        return wrong(call, TOTAL, err, "one element");
    const dq_tensor *counts = dq_call_in(call, NEW_ROWS);
    if (counts && counts->count != s->batch)
        return wrong(call, NEW_ROWS, err, "one element a sequence");
    if (counts && (!s->causal || !dq_call_in(call, PAST_KEY)))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has query_seqlens, which need a past and causal attention");
    return DQ_OK;
}

static dq_status read_total(const dq_op_call *call, state *s, dq_error *err)
{
    int64_t total = dq_tensor_get_int(call->in[TOTAL], 0);
    if (total < (int64_t)s->rows)
        return dq_call_fail(call, err, DQ_BAD_INPUT,
                            "input %d is %" PRId64 ", expected %zu or more, the new positions", TOTAL, total,
                            s->rows);
    s->total = (size_t)total;
    s->capacity = s->total > s->past && !s->sliding ? s->total : s->past;
    s->held = s->capacity;
    if (s->sliding && !dq_add_size(s->past, s->rows, &s->held))
        return dq_no_memory(err, SIZE_MAX, "keys and values");
    return dq_mask_check_bias(call, ATTENTION_BIAS, s->batch, s->heads, s->rows, s->total, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state s = {0};
    DQ_TRY(read_all(call, &s, err));
    DQ_TRY(dq_call_need(call, TOTAL));
    DQ_TRY(read_total(call, &s, err));
    dq_dtype type = call->in[QUERY]->dtype;
    int64_t b = (int64_t)s.batch, rows = (int64_t)s.rows;
    DQ_TRY(dq_call_output(call, OUTPUT, type, 3, (int64_t[]){b, rows, (int64_t)(s.heads * s.size)}, err));
    DQ_TRY(
        dq_call_output(call, SCORES, type, 4, (int64_t[]){b, (int64_t)s.heads, rows, (int64_t)s.total}, err));
    const half *halves[2] = {&s.k, &s.v};
    for (uint32_t i = 0; i < 2; i++) {
        dq_dtype own = halves[i]->cache.dtype;
        int64_t dims[4] = {b, (int64_t)s.kv_heads, (int64_t)s.capacity,
                           (int64_t)(own == DQ_UINT8 ? s.size / 2 : s.size)};
        DQ_TRY(dq_call_output(call, PRESENT_KEY + i, own, 4, dims, err));
    }
    return DQ_OK;
}

static bool reserve_cache(dq_op_call *call, const state *s, half *h)
{
    size_t rows;
    bool has_output = h->present < call->out_count && call->out[h->present];
    return dq_mul_size(s->batch * s->kv_heads, s->held, &rows) &&
           dq_call_reserve(call, has_output && !s->sliding ? 0 : rows, h->cache.row_bytes, 1, &h->cache_at);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read_all(call, s, err));
    DQ_TRY(read_total(call, s, err));
    /* one row at a time: its elements, and a row of cosines and sines */
    size_t worker = (s->size + 2 * s->rotated_half) * sizeof(float);
    if (!reserve_cache(call, s, &s->k) || !reserve_cache(call, s, &s->v) ||
        !dq_call_reserve(call, s->batch * s->rows, s->heads * s->size, sizeof(float), &s->q_at) ||
        !dq_call_reserve(call, s->heads, 1, sizeof(float), &s->sinks_at))
        return dq_no_memory(err, SIZE_MAX, "keys and values");
    call->worker_scratch_size = call->worker_scratch_size > worker ? call->worker_scratch_size : worker;
    return dq_attention_prepare(call, s->rows, s->held, s->size, s->size, s->heads / s->kv_heads, err);
}

/* ---- New rows ----------------------------------------------------------------------------------------- */

static void *at_scratch(const dq_op_call *call, size_t offset)
{
    return (char *)call->scratch + offset;
}

/* Number of new rows of a sequence, without padding if they are counted or the cache slides. */
static size_t new_rows(const dq_op_call *call, size_t batch)
{
    const state *s = call->state;
    const dq_tensor *counts = dq_call_in(call, NEW_ROWS);
    size_t length = (size_t)dq_data(call->in[LENGTHS], int32_t)[batch] + 1;
    if (counts)
        return (size_t)dq_data(counts, int32_t)[batch];
    return s->sliding && length < s->rows ? length : s->rows;
}

/* Whether the run begins new sequences: the rows are not counted, and are all positions. */
static bool begins(const dq_op_call *call)
{
    const state *s = call->state;
    return s->rows == s->total && !dq_call_in(call, NEW_ROWS);
}

/* Number of positions of a sequence before its first query. */
static size_t past_of(const dq_op_call *call, size_t batch)
{
    return begins(call) ? 0 : (size_t)dq_data(call->in[LENGTHS], int32_t)[batch] + 1 - new_rows(call, batch);
}

/* How many of `positions` positions the cache holds: all, or the last ones of a sliding cache. */
static size_t kept(const state *s, size_t positions)
{
    if (!s->sliding || positions <= s->past)
        return positions;
    size_t step = s->past - s->window + 1; /* positions that are dropped at once */
    return positions - (positions - s->past + step - 1) / step * step;
}

/* Position of a row for the rotation. In new sequences, all rows count up from the first element of the
 * position input. */
static int64_t position_of(const dq_op_call *call, size_t batch, size_t row)
{
    const state *s = call->state;
    const dq_tensor *value = dq_call_in(call, POSITIONS);
    if (!value)
        return (int64_t)(past_of(call, batch) + row);
    const int64_t *positions = value->data;
    return begins(call) ? positions[0] + (int64_t)row : positions[batch * s->rows + row];
}

static void normalize(const dq_tensor *weight, double epsilon, float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    double inverse = 1 / sqrt(sum / (double)n + epsilon);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((double)x[i] * inverse * dq_tensor_get_double(weight, i));
}

/* Loads a new row, normalized and rotated if requested; `table` is workspace for cosines and sines. */
static void new_row(const dq_op_call *call, const dq_attention_source *from, uint32_t norm, bool rotated,
                    dq_attention_position at, float *to, float *table)
{
    const state *s = call->state;
    dq_attention_load(call, from, at, s->size, NULL, 0, to);
    if (dq_call_in(call, norm))
        normalize(call->in[norm], norm == Q_NORM ? s->q_epsilon : s->k_epsilon, to, s->size);
    if (!rotated || !s->rotary)
        return;
    dq_rotary_row(call, COS, SIN, (size_t)position_of(call, at.batch, at.position), table);
    dq_rotate(to, s->rotated_half, s->interleaved, table, table + s->rotated_half);
}

/* The cache that attention reads: in a run s->held rows a head. */
static char *cache_of(const dq_op_call *call, const half *h)
{
    bool has_output = h->present < call->out_count && call->out[h->present];
    bool direct = has_output && !((const state *)call->state)->sliding;
    return direct ? call->out[h->present]->data : at_scratch(call, h->cache_at);
}

/* Fills one head of a sliding cache: old rows, then new rows, in scratch. The last rows are the new cache. */
static void fill_sliding(const dq_op_call *call, const half *h, bool keys, size_t batch, size_t head,
                         float *own)
{
    const state *s = call->state;
    size_t number = batch * s->kv_heads + head, bytes = h->cache.row_bytes, past = past_of(call, batch);
    size_t added = new_rows(call, batch), before = kept(s, past), after = kept(s, past + added);
    char *rows = cache_of(call, h) + number * s->held * bytes;
    memcpy(rows, (const char *)call->in[h->past]->data + number * s->past * bytes, before * bytes);
    for (size_t t = 0; t < added; t++) {
        new_row(call, &h->from, h->norm, keys, (dq_attention_position){batch, head, t}, own, own + s->size);
        dq_kv_cache_put(call, &h->cache, head, own, rows + (before + t) * bytes);
    }
    if (h->present >= call->out_count || !call->out[h->present])
        return;
    char *cache = (char *)call->out[h->present]->data + number * s->capacity * bytes;
    memcpy(cache, rows + (before + added - after) * bytes, after * bytes);
    memset(cache + after * bytes, 0, (s->capacity - after) * bytes);
}

/* Fills one head of the cache: old rows, new rows, and after them the content of the old cache there, or
 * zeros. Old and new cache may be the same memory. */
static void fill_cache(const dq_op_call *call, const half *h, bool keys, size_t batch, size_t head,
                       float *own)
{
    const state *s = call->state;
    const dq_tensor *old = dq_call_in(call, h->past);
    size_t number = batch * s->kv_heads + head, bytes = h->cache.row_bytes, past = past_of(call, batch);
    size_t added = new_rows(call, batch), filled = past + added, rest = filled > s->past ? filled : s->past;
    char *cache = cache_of(call, h) + number * s->capacity * bytes;
    const char *from = old ? (const char *)old->data + number * s->past * bytes : cache;
    if (from != cache) {
        memcpy(cache, from, past * bytes);
        memcpy(cache + filled * bytes, from + filled * bytes, (rest - filled) * bytes);
    }
    for (size_t t = 0; t < added; t++) {
        new_row(call, &h->from, h->norm, keys, (dq_attention_position){batch, head, t}, own, own + s->size);
        dq_kv_cache_put(call, &h->cache, head, own, cache + (past + t) * bytes);
    }
    memset(cache + rest * bytes, 0, (s->capacity - rest) * bytes);
}

static void fill(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    float *own = dq_call_worker_scratch(call, worker), *q = at_scratch(call, s->q_at);
    for (size_t i = begin; i < end; i++) {
        size_t batch = i / s->heads, head = i % s->heads;
        size_t rows = new_rows(call, batch);
        for (size_t t = 0; t < rows; t++)
            new_row(call, &s->q, Q_NORM, true, (dq_attention_position){batch, head, t},
                    q + (i * s->rows + t) * s->size, own);
        memset(q + (i * s->rows + rows) * s->size, 0, (s->rows - rows) * s->size * sizeof *q);
        if (head < s->kv_heads) {
            (s->sliding ? fill_sliding : fill_cache)(call, &s->k, true, batch, head, own);
            (s->sliding ? fill_sliding : fill_cache)(call, &s->v, false, batch, head, own);
        }
    }
}

/* ---- Running ------------------------------------------------------------------------------------------ */

typedef struct job {
    const dq_op_call *call;
    dq_mask mask;
} job;

static void range(const void *arg, dq_attention_row *row)
{
    const dq_op_call *call = ((const job *)arg)->call;
    const state *s = call->state;
    size_t past = kept(s, past_of(call, row->batch)), end = past + row->row + 1;
    size_t length = (size_t)dq_data(call->in[LENGTHS], int32_t)[row->batch] + 1;
    size_t added = new_rows(call, row->batch);
    row->end = s->causal && row->row < added ? end : s->sliding ? past + added : length;
    row->first = s->window && end > s->window ? end - s->window : 0;
}

static void load_rows(const void *arg, const dq_attention_rows *rows, float *to)
{
    const dq_op_call *call = ((const job *)arg)->call;
    const state *s = call->state;
    const half *h = rows->values ? &s->v : &s->k;
    const size_t at = (rows->batch * s->kv_heads + rows->kv_head) * s->held + rows->first;
    dq_kv_cache_get(call, &h->cache, rows->kv_head, cache_of(call, h) + at * h->cache.row_bytes, rows->count,
                    to);
}

static const float *floats_of(const dq_op_call *call, const half *h)
{
    return h->cache.dtype == DQ_FLOAT ? (const float *)(const void *)cache_of(call, h) : NULL;
}

static void add_bias(const void *arg, const dq_attention_row *row)
{
    dq_mask_add(&((const job *)arg)->mask, row);
}

static void put_scores(const void *arg, const dq_attention_row *row)
{
    const dq_op_call *call = ((const job *)arg)->call;
    const state *s = call->state;
    dq_tensor *to = call->out[SCORES];
    size_t at = ((row->batch * s->heads + row->head) * s->rows + row->row) * s->total;
    dq_store_from_floats(call->kernels, to->dtype, to->data, at, s->total, row->scores, false);
}

/* Checks the counts of new rows, and the past lengths that follow from them. */
static dq_status check_counts(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    const dq_tensor *counts = dq_call_in(call, NEW_ROWS);
    for (size_t b = 0; counts && b < s->batch; b++) {
        int64_t length = (int64_t)dq_data(call->in[LENGTHS], int32_t)[b] + 1, n = dq_data(counts, int32_t)[b];
        int64_t most = (int64_t)s->rows < length ? (int64_t)s->rows : length, past = length - n;
        if (length < 1 || length > (int64_t)s->total)
            return dq_call_fail(call, err, DQ_BAD_INPUT,
                                "input %d says %" PRId64 " positions for sequence %zu, expected 1 to %zu",
                                LENGTHS, length, b, s->total);
        if (n < 0 || n > most)
            return dq_call_fail(call, err, DQ_BAD_INPUT,
                                "input %d says %" PRId64 " new rows for sequence %zu, expected 0 to %" PRId64,
                                NEW_ROWS, n, b, most);
        if (!s->sliding && ((size_t)past > s->past || (size_t)past + s->rows > s->capacity))
            return dq_call_fail(
                call, err, DQ_BAD_INPUT,
                "input %d leaves a past of %" PRId64
                " positions for sequence %zu: there are %zu, and with %zu new rows capacity for %zu",
                NEW_ROWS, past, b, s->past, s->rows, s->capacity);
    }
    return DQ_OK;
}

static dq_status check_lengths(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    for (size_t b = 0; b < s->batch; b++) {
        int64_t length = (int64_t)dq_data(call->in[LENGTHS], int32_t)[b] + 1;
        bool fresh = begins(call); /* shorter sequences are padded at the end */
        int64_t least = fresh ? 1 : (int64_t)s->rows, most = (int64_t)(fresh ? s->rows : s->rows + s->past);
        if (most > (int64_t)s->total || (s->sliding && !fresh))
            most = (int64_t)s->total;
        if (length < least || length > most)
            return dq_call_fail(call, err, DQ_BAD_INPUT,
                                "input %d says %" PRId64 " positions for sequence %zu, expected %" PRId64
                                " to %" PRId64,
                                LENGTHS, length, b, least, most);
    }
    return DQ_OK;
}

static dq_status check_values(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    DQ_TRY(dq_call_in(call, NEW_ROWS) ? check_counts(call, err) : check_lengths(call, err));
    for (size_t i = 0; s->rotary && i < s->batch * s->rows; i++) {
        if (i % s->rows >= new_rows(call, i / s->rows))
            continue;
        int64_t at = position_of(call, i / s->rows, i % s->rows);
        if (at < 0 || at >= call->in[COS]->dims[0])
            return dq_call_fail(call, err, DQ_BAD_INPUT,
                                "position %" PRId64 " is outside the %" PRId64 " rows of cos_cache",
                                (int64_t)at, call->in[COS]->dims[0]);
    }
    return DQ_OK;
}

static const float *read_sinks(const dq_op_call *call)
{
    const state *s = call->state;
    const dq_tensor *value = dq_call_in(call, SINKS);
    float *to = at_scratch(call, s->sinks_at);
    for (size_t n = 0; n < s->heads; n++)
        to[n] = value ? (float)dq_tensor_get_double(value, n) : 0;
    return value || s->smooth ? to : NULL;
}

/* Sets the results of padding rows to 0. */
static void clear_padding(const dq_op_call *call)
{
    const state *s = call->state;
    const dq_tensor *out = call->out[OUTPUT];
    size_t row = out->count ? out->size / (s->batch * s->rows) : 0;
    for (size_t b = 0; b < s->batch && row; b++) {
        size_t rows = new_rows(call, b);
        memset((char *)out->data + (b * s->rows + rows) * row, 0, (s->rows - rows) * row);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    DQ_TRY(check_values(call, err));
    bool on_scores = call->out_count > SCORES && call->out[SCORES];
    size_t q_head = s->rows * s->size, head = s->held * s->size;
    job j = {call, {.kind = DQ_MASK_NONE, .bias = dq_call_in(call, ATTENTION_BIAS)}};
    dq_attention a = {.batch = s->batch,
                      .heads = s->heads,
                      .rows = s->rows,
                      .keys = s->sliding ? s->held : s->total,
                      .heads_per_kv = s->heads / s->kv_heads,
                      .size = s->size,
                      .v_size = s->size,
                      .scale = s->scale,
                      .softcap = s->softcap,
                      .sinks = read_sinks(call),
                      .q = {at_scratch(call, s->q_at), s->heads * q_head, q_head, s->size},
                      .k = {floats_of(call, &s->k), s->kv_heads * head, head, s->size},
                      .v = {floats_of(call, &s->v), s->kv_heads * head, head, s->size},
                      .load = s->k.cache.dtype == DQ_FLOAT && s->v.cache.dtype == DQ_FLOAT ? NULL : load_rows,
                      .out = call->out[OUTPUT],
                      .out_batch = s->rows * s->heads * s->size,
                      .out_head = s->size,
                      .out_row = s->heads * s->size,
                      .range = range,
                      .bias = add_bias,
                      .on_scores = on_scores && s->on_scores != NO_SCORES ? put_scores : NULL,
                      .scores_stage =
                          s->on_scores == SCORES_BEFORE ? DQ_ATTENTION_BIASED : DQ_ATTENTION_WEIGHTS,
                      .arg = &j};
    if (on_scores && s->on_scores == NO_SCORES)
        memset(call->out[SCORES]->data, 0, call->out[SCORES]->size);
    dq_parallel(call->threads, s->batch * s->heads, 1, fill, &call);
    dq_attention_run(call, &a);
    clear_padding(call);
    return DQ_OK;
}

const dq_op_impl dq_op_group_query_attention = {infer, prepare, run,
                                                DQ_OP_PAST_AT(PAST_KEY) | DQ_OP_IDEMPOTENT};
