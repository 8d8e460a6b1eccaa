/* SPDX-License-Identifier: Apache-2.0 */
/* LinearAttention of ai.onnx and of com.microsoft: each head has a state matrix S (keys × values). Each time
 * step multiplies S by exp(decay), if gated, and adds the outer product of its key and value. The result is
 * the query times S. The delta rules replace the value by (value - key · S) * beta. Sums are in float, in
 * order. */
#include "base/checked.h"
#include "ops/op.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA };
enum { COLUMNS = 64 /* columns of a state matrix in a task */ };

typedef struct state {
    size_t batch, steps, heads, kv_heads, size, value_size;
    size_t key_heads, out_heads; /* com.microsoft: may be fewer than kv_heads, and more than heads */
    bool gated, delta;
    size_t decay_size, beta_heads; /* decays of a head; betas of a time step: one for each head, or 1 */
    float scale;
} state;

static dq_status read_rule(const dq_op_call *call, state *s, dq_error *err)
{
    const char *rule = dq_node_string(call->node, "update_rule", "gated_delta");
    s->gated = strncmp(rule, "gated", 5) == 0;
    s->delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
    if (strcmp(rule, "linear") != 0 && strcmp(rule, "gated") != 0 && !s->delta)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'update_rule' is '%s', expected linear, gated, delta or gated_delta",
                            rule);
    if (s->gated && !dq_call_in(call, DECAY))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has update rule '%s' and no decay", rule);
    if (s->delta && !dq_call_in(call, BETA))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has update rule '%s' and no beta", rule);
    return DQ_OK;
}

static dq_status requested_last(const dq_op_call *call, uint32_t i, const state *s, int64_t a, int64_t b,
                                dq_error *err)
{
    const dq_tensor *t = call->in[i];
    char text[DQ_SHAPE_TEXT];
    if (t->rank == 3 && t->dims[0] == (int64_t)s->batch && t->dims[1] == (int64_t)s->steps &&
        (t->dims[2] == a || t->dims[2] == b))
        return DQ_OK;
    return dq_call_fail_input(call, err, i, "has shape %s, expected [%zu,%zu,%" PRId64 "] (or %" PRId64 ")",
                              dq_shape_text(t->rank, t->dims, text), s->batch, s->steps, a, b);
}

static dq_status read_shapes(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *query = call->in[QUERY], *value = call->in[VALUE], *past = dq_call_in(call, PAST);
    int64_t heads = dq_node_int(call->node, "q_num_heads", 0),
            kv = dq_node_int(call->node, "kv_num_heads", 0);
    if (query->rank != 3 || value->rank != 3)
        return dq_call_fail_input(call, err, query->rank != 3 ? QUERY : VALUE, "expected rank 3");
    const bool more_kv = *call->node->domain != '\0' && heads > 0 && kv % heads == 0;
    if (heads < 1 || kv < 1 || (heads % kv != 0 && !more_kv) || query->dims[2] % heads != 0 ||
        value->dims[2] % kv != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has %" PRId64 " heads of queries and %" PRId64 " of keys for rows of %" PRId64
                            " and %" PRId64,
                            heads, kv, query->dims[2], value->dims[2]);
    if (dq_node_int(call->node, "state_window", 0) != 0)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "attribute 'state_window' is %" PRId64 ", expected 0",
                            dq_node_int(call->node, "state_window", 0));
    *s = (state){.batch = (size_t)query->dims[0],
                 .steps = (size_t)query->dims[1],
                 .heads = (size_t)heads,
                 .kv_heads = (size_t)kv,
                 .key_heads = (size_t)kv,
                 .out_heads = (size_t)(heads > kv ? heads : kv),
                 .size = (size_t)(query->dims[2] / heads),
                 .value_size = (size_t)(value->dims[2] / kv)};
    int64_t keys = 0, row = call->in[KEY]->rank == 3 ? call->in[KEY]->dims[2] : 0;
    if (!dq_mul_i64((int64_t)s->size, kv, &keys))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has keys that are too large");
    if (*call->node->domain && s->size && row > 0 && row % (int64_t)s->size == 0 && keys % row == 0)
        s->key_heads = (size_t)row / s->size;
    row = (int64_t)(s->key_heads * s->size);
    DQ_TRY(requested_last(call, KEY, s, row, row, err));
    DQ_TRY(requested_last(call, VALUE, s, value->dims[2], value->dims[2], err));
    DQ_TRY(read_rule(call, s, err));
    if (s->gated)
        DQ_TRY(requested_last(call, DECAY, s, kv, keys, err));
    if (s->delta)
        DQ_TRY(requested_last(call, BETA, s, kv, 1, err));
    s->decay_size = s->gated ? (size_t)(call->in[DECAY]->dims[2] / kv) : 0;
    s->beta_heads = s->delta ? (size_t)call->in[BETA]->dims[2] : 0;
    const int64_t dims[4] = {(int64_t)s->batch, kv, (int64_t)s->size, (int64_t)s->value_size};
    char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
    if (past && (past->rank != 4 || memcmp(past->dims, dims, sizeof dims) != 0))
        return dq_call_fail_input(call, err, PAST, "has shape %s, expected %s",
                                  dq_shape_text(past->rank, past->dims, mine),
                                  dq_shape_text(4, dims, theirs));
    s->scale = dq_node_float(call->node, "scale", 0);
    if (s->scale == 0)
        s->scale = (float)(1 / sqrt((double)s->size));
    return DQ_OK;
}

static dq_status linear_infer(dq_op_call *call, dq_error *err)
{
    state s;
    DQ_TRY(read_shapes(call, &s, err));
    const dq_tensor *query = call->in[QUERY], *past = dq_call_in(call, PAST);
    const int64_t held[4] = {(int64_t)s.batch, (int64_t)s.kv_heads, (int64_t)s.size, (int64_t)s.value_size};
    int64_t dims[3] = {query->dims[0], query->dims[1], 0};
    if (!dq_mul_i64((int64_t)s.out_heads, (int64_t)s.value_size, &dims[2]))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has a result that is too large");
    DQ_TRY(dq_call_output(call, 1, past ? past->dtype : query->dtype, 4, held, err));
    return dq_call_output(call, 0, query->dtype, 3, dims, err);
}

static dq_status linear_prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read_shapes(call, s, err));
    size_t numbers; /* floats: columns of the matrix, of the value and of a sum; a key or query; decays */
    if (!dq_mul_size(s->size + 2, COLUMNS, &numbers) || !dq_add_size(numbers, s->size, &numbers) ||
        !dq_add_size(numbers, s->size, &numbers) ||
        !dq_mul_size(numbers, sizeof(float), &call->worker_scratch_size))
        return dq_call_fail(call, err, DQ_OUT_OF_MEMORY, "wants more memory than there can be");
    return DQ_OK;
}

/* A task: some columns of a head's state matrix, through all time steps. They fit in the L1 cache. */
typedef struct columns {
    const dq_op_call *call;
    size_t batch, head; /* head of keys and values */
    size_t first, n;
    float *matrix, *value, *sum, *row, *decay;
} columns;

static const float *floats(const columns *c, uint32_t input, size_t at, size_t n, float *workspace)
{
    const dq_tensor *t = c->call->in[input];
    if (t->dtype == DQ_FLOAT)
        return dq_data(t, float) + at;
    dq_load_floats(c->call->kernels, t->dtype, t->data, at, n, workspace);
    return workspace;
}

/* Multiplies the matrix by exp(decay): one for the head, or one for each row. */
static void decay(const columns *c, size_t step)
{
    const state *s = c->call->state;
    const dq_rows_f32 *rows = c->call->kernels->rows_f32;
    size_t count = s->decay_size, at = (step * s->kv_heads + c->head) * count;
    rows->exp(floats(c, DECAY, at, count, c->decay), count, c->decay);
    if (count == 1)
        rows->scale(c->matrix, s->size * c->n, c->decay[0], c->matrix);
    for (size_t k = 0; count > 1 && k < s->size; k++)
        rows->scale(c->matrix + k * c->n, c->n, c->decay[k], c->matrix + k * c->n);
}

/* Decays the state matrix and adds the outer product of a time step. */
static void update(const columns *c, size_t step)
{
    const state *s = c->call->state;
    const dq_rows_f32 *rows = c->call->kernels->rows_f32;
    size_t key_head = c->head / (s->kv_heads / s->key_heads);
    const float *key = floats(c, KEY, (step * s->key_heads + key_head) * s->size, s->size, c->row);
    size_t at = (step * s->kv_heads + c->head) * s->value_size + c->first;
    const float *value = floats(c, VALUE, at, c->n, c->value);
    if (s->gated)
        decay(c, step);
    if (s->delta) {
        size_t beta_at = step * s->beta_heads + (s->beta_heads == 1 ? 0 : c->head);
        float beta = (float)dq_tensor_get_double(c->call->in[BETA], beta_at);
        memset(c->sum, 0, c->n * sizeof *c->sum);
        rows->mix(key, s->size, c->matrix, c->n, c->n, c->sum);
        for (size_t v = 0; v < c->n; v++)
            c->value[v] = (value[v] - c->sum[v]) * beta;
        value = c->value;
    }
    for (size_t k = 0; k < s->size; k++)
        rows->mix(key + k, 1, value, c->n, c->n, c->matrix + k * c->n);
}

static void read_out(const columns *c, size_t step)
{
    const state *s = c->call->state;
    const dq_rows_f32 *rows = c->call->kernels->rows_f32;
    dq_tensor *out = c->call->out[0];
    size_t group = s->out_heads / s->kv_heads;
    for (size_t h = c->head * group; out && h < (c->head + 1) * group; h++) {
        size_t query = step * s->heads + h / (s->out_heads / s->heads);
        memset(c->sum, 0, c->n * sizeof *c->sum);
        rows->mix(floats(c, QUERY, query * s->size, s->size, c->row), s->size, c->matrix, c->n, c->n, c->sum);
        rows->scale(c->sum, c->n, s->scale, c->sum);
        dq_store_from_floats(c->call->kernels, out->dtype, out->data,
                             (step * s->out_heads + h) * s->value_size + c->first, c->n, c->sum, false);
    }
}

static void run_columns(const columns *c)
{
    const state *s = c->call->state;
    const dq_kernels *kernels = c->call->kernels;
    const dq_tensor *past = dq_call_in(c->call, PAST);
    dq_tensor *present = c->call->out_count > 1 ? c->call->out[1] : NULL;
    size_t at = (c->batch * s->kv_heads + c->head) * s->size * s->value_size + c->first;
    for (size_t k = 0; k < s->size; k++)
        if (past)
            dq_load_floats(kernels, past->dtype, past->data, at + k * s->value_size, c->n,
                           c->matrix + k * c->n);
        else
            memset(c->matrix + k * c->n, 0, c->n * sizeof *c->matrix);
    for (size_t t = 0; t < s->steps; t++) {
        update(c, c->batch * s->steps + t);
        read_out(c, c->batch * s->steps + t);
    }
    for (size_t k = 0; present && k < s->size; k++)
        dq_store_from_floats(kernels, present->dtype, present->data, at + k * s->value_size, c->n,
                             c->matrix + k * c->n, false);
}

static void linear_piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    float *workspace = dq_call_worker_scratch(call, worker);
    size_t blocks = (s->value_size + COLUMNS - 1) / COLUMNS;
    for (size_t i = begin; i < end; i++) {
        size_t head = i / blocks, first = i % blocks * COLUMNS, left = s->value_size - first;
        columns c = {.call = call,
                     .batch = head / s->kv_heads,
                     .head = head % s->kv_heads,
                     .first = first,
                     .n = left < COLUMNS ? left : COLUMNS};
        c.matrix = workspace;
        c.value = workspace + s->size * COLUMNS;
        c.sum = c.value + COLUMNS;
        c.row = c.sum + COLUMNS;
        c.decay = c.row + s->size;
        run_columns(&c);
    }
}

static dq_status linear_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    if (s->value_size)
        dq_parallel(call->threads, s->batch * s->kv_heads * ((s->value_size + COLUMNS - 1) / COLUMNS), 1,
                    linear_piece, &call);
    return DQ_OK;
}

const dq_op_impl dq_op_linear_attention = {linear_infer, linear_prepare, linear_run, DQ_OP_PAST_AT(PAST)};
