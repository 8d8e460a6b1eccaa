/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/attention/attention_core.h"

#include "base/checked.h"
#include "base/cpu.h"
#include "ops/rows.h"

#include <math.h>
#include <string.h>

enum {
    TILE = 24,              /* queries of a tile */
    PANEL = DQ_GEMM_F32_NR, /* keys, or elements of values, in a packed panel */
    DEPTH = 256,            /* keys of a block of the product of weights and values (KC) */
    MIN_QUERIES_PACKED =
        4,            /* minimum number of queries for which packing keys and values is worth its time */
    SIDE = 8,         /* queries whose Softmax steps are interleaved, to overlap their latencies */
    LOADED = 32,      /* keys or values that are converted at once if they are not floats */
    GROUP = 3 * TILE, /* queries of a task, which packs once, if there are too few heads for all threads */
    MACS_PER_TASK = 1 << 16 /* approximate multiply-adds of a parallel task */
};

/* ---- Memory of a worker, in floats --------------------------------------------------------------------- */

typedef struct workspace {
    size_t keys, v_padded; /* keys, and elements of a value, rounded up to whole panels */
    size_t scores_at, k_at, v_at, tile_at, loaded_at, total;
} workspace;

static bool take(size_t a, size_t b, size_t *end, size_t *at)
{
    size_t n;
    *at = *end;
    return dq_mul_size(a, b, &n) && dq_align_size(n, PANEL, &n) && dq_add_size(*end, n, end);
}

/* Query heads that share a key/value head and are computed together, at most, if there are few queries. */
static size_t heads_of_group(size_t heads_per_kv)
{
    return heads_per_kv < SIDE ? heads_per_kv : SIDE;
}

static bool lay_out(size_t rows, size_t keys, size_t size, size_t v_size, size_t heads_per_kv, workspace *r)
{
    *r = (workspace){0};
    if (!take(LOADED, size > v_size ? size : v_size, &r->total, &r->loaded_at))
        return false;
    if (rows < MIN_QUERIES_PACKED)
        return take(heads_of_group(heads_per_kv), keys, &r->total, &r->scores_at) &&
               take(heads_of_group(heads_per_kv), v_size, &r->total, &r->tile_at);
    return dq_align_size(keys, PANEL, &r->keys) && dq_align_size(v_size, PANEL, &r->v_padded) &&
           take(TILE, r->keys, &r->total, &r->scores_at) && take(r->keys, size, &r->total, &r->k_at) &&
           take(keys, r->v_padded, &r->total, &r->v_at) && take(TILE, r->v_padded, &r->total, &r->tile_at);
}

dq_status dq_attention_prepare(dq_op_call *call, size_t rows, size_t keys, size_t size, size_t v_size,
                               size_t heads_per_kv, dq_error *err)
{
    workspace r;
    size_t bytes;
    if (!lay_out(rows, keys, size, v_size, heads_per_kv, &r) || !dq_mul_size(r.total, sizeof(float), &bytes))
        return dq_no_memory(err, SIZE_MAX, "scores");
    if (call->worker_scratch_size < bytes)
        call->worker_scratch_size = bytes;
    return DQ_OK;
}

void dq_attention_load(const dq_op_call *call, const dq_attention_source *from, dq_attention_position at,
                       size_t n, const dq_tensor *bias, size_t bias_at, float *to)
{
    const dq_tensor *t = call->in[from->input];
    size_t first = from->base + at.batch * from->batch + at.head * from->head + at.position * from->row;
    dq_load_floats(call->kernels, t->dtype, t->data, first, n, to);
    for (size_t i = 0; bias && i < n; i++)
        to[i] += bias->dtype == DQ_FLOAT ? dq_data(bias, float)[bias_at + i]
                                         : (float)dq_tensor_get_double(bias, bias_at + i);
}

/* ---- One query's scores -------------------------------------------------------------------------------- */

typedef struct job {
    const dq_op_call *call;
    const dq_kernels *k;
    const dq_attention *a;
    size_t group; /* queries of a task, which share packed keys and values */
    size_t heads; /* heads of a task, if there are few queries; they share a key/value head */
    workspace workspace;
} job;

static dq_attention_row row_of(const dq_attention *a, size_t batch, size_t head, size_t number, float *scores)
{
    dq_attention_row row = {.batch = batch, .head = head, .row = number, .end = a->keys, .scores = scores};
    if (a->range)
        a->range(a->arg, &row);
    return row;
}

static void on_scores(const dq_attention *a, dq_attention_stage now, const dq_attention_row *row)
{
    if (!a->on_scores || a->scores_stage != now)
        return;
    for (size_t t = 0; t < row->first; t++)
        row->scores[t] = 0;
    for (size_t t = row->end; t < a->keys; t++)
        row->scores[t] = 0;
    a->on_scores(a->arg, row);
}

static void round_scores(const job *j, float *s, size_t n)
{
    uint16_t rounded[DQ_ROW];
    if (j->a->precision == DQ_UNDEFINED || j->a->precision == DQ_FLOAT)
        return;
    for (size_t i = 0; i < n; i += DQ_ROW) {
        size_t some = n - i < DQ_ROW ? n - i : DQ_ROW;
        dq_store_from_floats(j->k, j->a->precision, rounded, 0, some, s + i, false);
        dq_load_floats(j->k, j->a->precision, rounded, 0, some, s + i);
    }
}

static size_t seen(const dq_attention_row *row)
{
    return row->end > row->first ? row->end - row->first : 0;
}

/* Softmax of at most SIDE rows. Each step runs for all rows before the next step, because a step depends on
 * the result of the step before. */
static void softmax_rows(const job *j, const dq_attention_row *row, size_t count)
{
    const dq_rows_f32 *rows = j->k->rows_f32;
    float most[SIDE];
    double sum[SIDE];
    for (size_t i = 0; i < count; i++) {
        round_scores(j, row[i].scores + row[i].first, seen(&row[i]));
        most[i] = rows->peak(row[i].scores + row[i].first, seen(&row[i]));
        if (j->a->sinks && j->a->sinks[row[i].head] > most[i])
            most[i] = j->a->sinks[row[i].head];
        if (most[i] == -INFINITY) /* all keys are masked */
            most[i] = 0;
    }
    for (size_t i = 0; i < count; i++) {
        float *s = row[i].scores + row[i].first;
        sum[i] = rows->exp_sum(s, seen(&row[i]), most[i], s);
        if (j->a->sinks) {
            float sink = j->a->sinks[row[i].head] - most[i];
            rows->exp(&sink, 1, &sink);
            sum[i] += (double)sink;
        }
    }
    for (size_t i = 0; i < count; i++) {
        float *s = row[i].scores + row[i].first;
        if (sum[i] != 0)
            rows->scale(s, seen(&row[i]), (float)(1 / sum[i]), s);
        on_scores(j->a, DQ_ATTENTION_WEIGHTS, &row[i]);
    }
}

/* Applies softcap, masks and biases to scaled products, before Softmax. */
static void adjust(const job *j, const dq_attention_row *row)
{
    const dq_attention *a = j->a;
    const dq_rows_f32 *rows = j->k->rows_f32;
    float *s = row->scores + row->first;
    size_t n = seen(row);
    on_scores(a, DQ_ATTENTION_RAW, row);
    if (a->softcap > 0) {
        rows->div(s, 1, &a->softcap, 0, n, s);
        rows->tanh(s, n, s);
        rows->scale(s, n, a->softcap, s);
    }
    on_scores(a, DQ_ATTENTION_CAPPED, row);
    if (a->bias)
        a->bias(a->arg, row);
    on_scores(a, DQ_ATTENTION_BIASED, row);
}

/* Computes attention weights from scaled products, in place. */
static void attention_weights(const job *j, const dq_attention_row *row, size_t count)
{
    for (size_t i = 0; i < count; i += SIDE) {
        size_t side = count - i < SIDE ? count - i : SIDE;
        for (size_t r = 0; r < side; r++)
            adjust(j, &row[i + r]);
        softmax_rows(j, row + i, side);
    }
}

static const float *head_of(const dq_attention_operand *o, size_t batch, size_t head)
{
    return o->data + batch * o->batch + head * o->head;
}

/* Offset in the output of a query's result, in elements. */
static size_t row_offset(const dq_attention *a, const dq_attention_row *row)
{
    return row->batch * a->out_batch + row->head * a->out_head + row->row * a->out_row;
}

static void store(const job *j, const dq_attention_row *row, size_t n, const float *from)
{
    const dq_tensor *out = j->a->out;
    dq_store_from_floats(j->k, out->dtype, out->data, row_offset(j->a, row), n, from, false);
}

/* ---- Few queries: one at a time, for the heads of a group ---------------------------------------------- */

/* Rows as floats: in place, or converted in the worker's memory. *row is the distance of two rows. */
static const float *floats_of(const job *j, const dq_attention_rows *rows, float *own, size_t *row)
{
    const dq_attention *a = j->a;
    const dq_attention_operand *o = rows->values ? &a->v : &a->k;
    float *loaded = own + j->workspace.loaded_at;
    *row = o->row;
    if (!a->load)
        return head_of(o, rows->batch, rows->kv_head) + rows->first * o->row;
    *row = rows->values ? a->v_size : a->size;
    a->load(a->arg, rows, loaded);
    return loaded;
}

/* How many of `left` rows are read at once. */
static size_t rows_at_once(const dq_attention *a, size_t left)
{
    return a->load && left > LOADED ? LOADED : left;
}

/* Computes one query of `count` heads that share a key/value head. All of them read a key or a value while it
 * is in the L1 cache, so that a cache of keys and values comes from memory once. */
static void query_of_heads(const job *j, const dq_attention_row *row, size_t count, float *own)
{
    const dq_attention *a = j->a;
    const dq_rows_f32 *rows = j->k->rows_f32;
    const size_t first = row->first, n = seen(row), end = first + n;
    float *sums = own + j->workspace.tile_at;
    dq_attention_rows part = {.batch = row->batch, .kv_head = row->head / a->heads_per_kv};
    for (part.first = first; part.first < end; part.first += part.count) {
        part.count = rows_at_once(a, end - part.first);
        dq_heads_f32 keys = {.count = part.count,
                             .n = a->size,
                             .heads = count,
                             .in = head_of(&a->q, row->batch, row->head) + row->row * a->q.row,
                             .in_head = a->q.head,
                             .out = row->scores + part.first,
                             .out_head = a->keys,
                             .distance = dq_cpu_prefetch_distance()};
        keys.rows = floats_of(j, &part, own, &keys.row);
        rows->dots(&keys);
    }
    for (size_t h = 0; h < count; h++)
        rows->scale(row[h].scores + first, n, a->scale, row[h].scores + first);
    attention_weights(j, row, count);
    if (!a->out)
        return;
    memset(sums, 0, count * a->v_size * sizeof *sums);
    part.values = true;
    for (part.first = first; part.first < end; part.first += part.count) {
        part.count = rows_at_once(a, end - part.first);
        dq_heads_f32 values = {.count = part.count,
                               .n = a->v_size,
                               .heads = count,
                               .in = row->scores + part.first,
                               .in_head = a->keys,
                               .out = sums,
                               .out_head = a->v_size,
                               .distance = dq_cpu_prefetch_distance()};
        values.rows = floats_of(j, &part, own, &values.row);
        rows->mix_heads(&values);
    }
    for (size_t h = 0; h < count; h++)
        store(j, &row[h], a->v_size, sums + h * a->v_size);
}

static size_t tasks_of_kv_head(const job *j)
{
    return (j->a->heads_per_kv + j->heads - 1) / j->heads;
}

static void few_queries(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const dq_attention *a = j->a;
    const size_t parts = tasks_of_kv_head(j), kv_heads = a->heads / a->heads_per_kv;
    float *own = dq_call_worker_scratch(j->call, worker);
    for (size_t i = begin; i < end; i++) {
        const size_t part = i / a->rows % parts, kv_head = i / a->rows / parts % kv_heads;
        const size_t left = a->heads_per_kv - part * j->heads, count = left < j->heads ? left : j->heads;
        const size_t head = kv_head * a->heads_per_kv + part * j->heads;
        dq_attention_row row[SIDE];
        for (size_t h = 0; h < count; h++)
            row[h] = row_of(a, i / a->rows / parts / kv_heads, head + h, i % a->rows,
                            own + j->workspace.scores_at + h * a->keys);
        query_of_heads(j, row, count, own);
    }
}

/* Heads of a task: all of a group, or fewer if there are too few tasks for all threads. */
static size_t heads_of_task(const dq_attention *a, size_t workers)
{
    const size_t kv_heads = a->batch * a->rows * (a->heads / a->heads_per_kv);
    size_t count = heads_of_group(a->heads_per_kv);
    while (count > 1 && kv_heads * ((a->heads_per_kv + count - 1) / count) < 2 * workers)
        count = (count + 1) / 2;
    return count;
}

/* ---- More queries: in tiles ---------------------------------------------------------------------------- */

static const uint32_t *words(const float *p)
{
    return (const uint32_t *)(const void *)p;
}

/* Packs the keys of a head as columns of panels, padded with +0. */
static void pack_keys(const job *j, size_t batch, size_t kv_head, float *own)
{
    const dq_attention *a = j->a;
    dq_attention_rows rows = {.batch = batch, .kv_head = kv_head};
    size_t row;
    for (; rows.first < a->keys; rows.first += PANEL) {
        rows.count = a->keys - rows.first < PANEL ? a->keys - rows.first : PANEL;
        const float *from = floats_of(j, &rows, own, &row);
        float *to = own + j->workspace.k_at + rows.first * a->size;
        if (rows.count < PANEL)
            memset(to, 0, a->size * PANEL * sizeof *to);
        j->k->transpose_x32(words(from), row, rows.count, a->size, (uint32_t *)(void *)to, PANEL);
    }
}

/* Packs the values of a head as rows of panels, padded with +0. */
static void pack_values(const job *j, size_t batch, size_t kv_head, float *own)
{
    const dq_attention *a = j->a;
    dq_attention_rows rows = {.values = true, .batch = batch, .kv_head = kv_head};
    size_t row;
    for (; rows.first < a->keys; rows.first += rows.count) {
        rows.count = rows_at_once(a, a->keys - rows.first);
        const float *from = floats_of(j, &rows, own, &row);
        for (size_t c = 0; c < a->v_size; c += PANEL) {
            const size_t n = a->v_size - c < PANEL ? a->v_size - c : PANEL;
            float *to = own + j->workspace.v_at + c * a->keys + rows.first * PANEL;
            for (size_t t = 0; t < rows.count; t++, to += PANEL) {
                const float *part = from + t * row + c;
                if (n == PANEL) {
                    memcpy(to, part, PANEL * sizeof *to);
                    continue;
                }
                memcpy(to, part, n * sizeof *to);
                memset(to + n, 0, (PANEL - n) * sizeof *to);
            }
        }
    }
}

/* Computes the scaled products of all queries of a tile with keys from … to - 1, rounded to whole panels. */
static void score_tile(const job *j, const dq_attention_row *row, size_t count, size_t from, size_t to,
                       float *own)
{
    const dq_attention *a = j->a;
    from = from / PANEL * PANEL;
    dq_gemm_block_f32 block = {.rows = count,
                               .cols = (to - from + PANEL - 1) / PANEL * PANEL,
                               .k = a->size,
                               .a = head_of(&a->q, row->batch, row->head) + row->row * a->q.row,
                               .a_row = a->q.row,
                               .b = own + j->workspace.k_at + from * a->size,
                               .b_step = PANEL,
                               .b_panel = PANEL * a->size,
                               .c = row->scores + from,
                               .c_row = j->workspace.keys,
                               .last = true,
                               .alpha = a->scale,
                               .low = -INFINITY,
                               .high = INFINITY};
    j->k->gemm_block_f32(&block);
}

/* Computes the weighted sums of values of all queries of a tile. Weights are set to 0 where a query does not
 * attend to keys that others of the tile do. */
static void mix_tile(const job *j, const dq_attention_row *row, size_t count, size_t from, size_t to,
                     float *own)
{
    const dq_attention *a = j->a;
    const bool writes_output = a->out->dtype == DQ_FLOAT;
    dq_gemm_block_f32 block = {.rows = count,
                               .cols = a->v_size,
                               .a_row = j->workspace.keys,
                               .b_step = PANEL,
                               .b_panel = PANEL * a->keys,
                               .c = writes_output ? dq_data(a->out, float) + row_offset(a, row)
                                                  : own + j->workspace.tile_at,
                               .c_row = writes_output ? a->out_row : j->workspace.v_padded,
                               .alpha = 1,
                               .low = -INFINITY,
                               .high = INFINITY};
    for (size_t i = 0; i < count; i++) {
        for (size_t t = from; t < row[i].first && t < to; t++)
            row[i].scores[t] = 0;
        for (size_t t = row[i].end > from ? row[i].end : from; t < to; t++)
            row[i].scores[t] = 0;
    }
    do {
        block.k = to - from < DEPTH ? to - from : DEPTH;
        block.a = row->scores + from;
        block.b = own + j->workspace.v_at + from * PANEL;
        from += block.k;
        block.last = from == to;
        j->k->gemm_block_f32(&block);
        block.more = true;
    } while (from < to);
    for (size_t i = 0; i < count && !writes_output; i++)
        store(j, &row[i], a->v_size, block.c + i * block.c_row);
}

static void one_tile(const job *j, size_t batch, size_t head, size_t first, size_t count, float *own)
{
    const dq_attention *a = j->a;
    dq_attention_row row[TILE];
    size_t from = a->keys, to = 0;
    for (size_t i = 0; i < count; i++) {
        row[i] = row_of(a, batch, head, first + i, own + j->workspace.scores_at + i * j->workspace.keys);
        if (row[i].first >= row[i].end)
            continue;
        from = row[i].first < from ? row[i].first : from;
        to = row[i].end > to ? row[i].end : to;
    }
    from = from < to ? from : to;
    if (from < to)
        score_tile(j, row, count, from, to, own);
    attention_weights(j, row, count);
    if (a->out)
        mix_tile(j, row, count, from, to, own);
}

static void groups(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const dq_attention *a = j->a;
    float *own = dq_call_worker_scratch(j->call, worker);
    size_t count = (a->rows + j->group - 1) / j->group, tile = a->range ? TILE / 2 : TILE;
    size_t packed = SIZE_MAX; /* the key/value head, counted over batches */
    for (size_t i = begin; i < end; i++) {
        size_t batch = i / count / a->heads, head = i / count % a->heads, first = i % count * j->group;
        size_t stop = a->rows - first < j->group ? a->rows : first + j->group;
        if (packed != i / count / a->heads_per_kv) {
            packed = i / count / a->heads_per_kv;
            pack_keys(j, batch, head / a->heads_per_kv, own);
            pack_values(j, batch, head / a->heads_per_kv, own);
        }
        for (; first < stop; first += tile)
            one_tile(j, batch, head, first, stop - first < tile ? stop - first : tile, own);
    }
}

void dq_attention_run(const dq_op_call *call, const dq_attention *a)
{
    job j = {.call = call, .k = call->kernels, .a = a};
    size_t products = a->keys * (a->size + a->v_size), units = a->batch * a->heads;
    size_t workers = dq_threads_count(call->threads);
    if (!lay_out(a->rows, a->keys, a->size, a->v_size, a->heads_per_kv, &j.workspace))
        return; /* prepare checked it for all keys */
    if (a->rows < MIN_QUERIES_PACKED) {
        j.heads = heads_of_task(a, workers);
        dq_parallel(call->threads, units / a->heads_per_kv * tasks_of_kv_head(&j) * a->rows,
                    MACS_PER_TASK / (products * j.heads + 1) + 1, few_queries, &j);
        return;
    }
    j.group = workers == 1 || units >= 4 * workers ? a->rows : GROUP;
    dq_parallel(call->threads, units * ((a->rows + j.group - 1) / j.group),
                MACS_PER_TASK / (products * j.group + 1) + 1, groups, &j);
}
