/* LinearAttention of ai.onnx and of com.microsoft: each head keeps a matrix S (keys × values) that every step
 * fades (exp of its decay) and adds the outer product of its key and value to; the result is the query times
 * S. The delta rules add the value less what S already gives for the key, times beta. Sums are in float, in
 * order. */
#include "base/checked.h"
#include "ops/op.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA };

typedef struct state {
    size_t batch, steps, heads, kv_heads, size, value_size;
    size_t key_heads, out_heads; /* com.microsoft: fewer than kv_heads, and more than heads */
    bool gated, delta;
    size_t decay_size, beta_heads; /* numbers of decay a head; heads that beta tells apart, or 1 */
    float scale;
} state;

static dq_status read_rule(const dq_op_call *call, state *s, dq_error *err)
{
    const char *rule = dq_node_string(call->node, "update_rule", "gated_delta");
    s->gated = strncmp(rule, "gated", 5) == 0;
    s->delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
    if (strcmp(rule, "linear") != 0 && strcmp(rule, "gated") != 0 && !s->delta)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'update_rule' is '%s', wanted linear, gated, delta or gated_delta",
                            rule);
    if (s->gated && !dq_call_in(call, DECAY))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has update rule '%s' and no decay", rule);
    if (s->delta && !dq_call_in(call, BETA))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has update rule '%s' and no beta", rule);
    return DQ_OK;
}

static dq_status wanted_last(const dq_op_call *call, uint32_t i, const state *s, int64_t a, int64_t b,
                             dq_error *err)
{
    const dq_tensor *t = call->in[i];
    char text[DQ_SHAPE_TEXT];
    if (t->rank == 3 && t->dims[0] == (int64_t)s->batch && t->dims[1] == (int64_t)s->steps &&
        (t->dims[2] == a || t->dims[2] == b))
        return DQ_OK;
    return dq_call_fail_input(call, err, i, "has shape %s, wanted %zux%zux%" PRId64 " (or %" PRId64 ")",
                              dq_shape_text(t->rank, t->dims, text), s->batch, s->steps, a, b);
}

static dq_status read_shapes(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *query = call->in[QUERY], *value = call->in[VALUE], *past = dq_call_in(call, PAST);
    int64_t heads = dq_node_int(call->node, "q_num_heads", 0),
            kv = dq_node_int(call->node, "kv_num_heads", 0);
    if (query->rank != 3 || value->rank != 3)
        return dq_call_fail_input(call, err, query->rank != 3 ? QUERY : VALUE, "wanted rank 3");
    const bool more_kv = *call->node->domain != '\0' && heads > 0 && kv % heads == 0;
    if (heads < 1 || kv < 1 || (heads % kv != 0 && !more_kv) || query->dims[2] % heads != 0 ||
        value->dims[2] % kv != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has %" PRId64 " heads of queries and %" PRId64 " of keys for rows of %" PRId64
                            " and %" PRId64,
                            heads, kv, query->dims[2], value->dims[2]);
    if (dq_node_int(call->node, "state_window", 0) != 0)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "attribute 'state_window' is %" PRId64 ", wanted 0",
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
    DQ_TRY(wanted_last(call, KEY, s, row, row, err));
    DQ_TRY(wanted_last(call, VALUE, s, value->dims[2], value->dims[2], err));
    DQ_TRY(read_rule(call, s, err));
    if (s->gated)
        DQ_TRY(wanted_last(call, DECAY, s, kv, keys, err));
    if (s->delta)
        DQ_TRY(wanted_last(call, BETA, s, kv, 1, err));
    s->decay_size = s->gated ? (size_t)(call->in[DECAY]->dims[2] / kv) : 0;
    s->beta_heads = s->delta ? (size_t)call->in[BETA]->dims[2] : 0;
    const int64_t dims[4] = {(int64_t)s->batch, kv, (int64_t)s->size, (int64_t)s->value_size};
    char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
    if (past && (past->rank != 4 || memcmp(past->dims, dims, sizeof dims) != 0))
        return dq_call_fail_input(call, err, PAST, "has shape %s, wanted %s",
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
    size_t numbers;
    if (!dq_mul_size(s->size + 1, s->value_size, &numbers) ||
        !dq_mul_size(numbers, sizeof(float), &call->worker_scratch_size) ||
        !dq_align_size(call->worker_scratch_size, 64, &call->worker_scratch_size))
        return dq_call_fail(call, err, DQ_OUT_OF_MEMORY, "wants more memory than there can be");
    return DQ_OK;
}

static float get(const dq_tensor *t, size_t i)
{
    return t->dtype == DQ_FLOAT ? dq_data(t, float)[i] : (float)dq_tensor_get_double(t, i);
}

/* Fades the head's matrix and adds a step's outer product to it. */
static void update(const dq_op_call *call, size_t step, size_t head, float *matrix, float *value)
{
    const state *s = call->state;
    size_t n = s->value_size, key_head = head / (s->kv_heads / s->key_heads);
    size_t key = (step * s->key_heads + key_head) * s->size;
    for (size_t k = 0; s->gated && k < s->size; k++) {
        size_t at = (step * s->kv_heads + head) * s->decay_size + (s->decay_size == 1 ? 0 : k);
        float factor = expf(get(call->in[DECAY], at));
        for (size_t v = 0; v < n; v++)
            matrix[k * n + v] *= factor;
    }
    for (size_t v = 0; v < n; v++)
        value[v] = get(call->in[VALUE], (step * s->kv_heads + head) * n + v);
    for (size_t k = 0; s->delta && k < s->size; k++) {
        float x = get(call->in[KEY], key + k);
        for (size_t v = 0; v < n; v++)
            value[v] -= matrix[k * n + v] * x;
    }
    if (s->delta) {
        float beta = get(call->in[BETA], step * s->beta_heads + (s->beta_heads == 1 ? 0 : head));
        for (size_t v = 0; v < n; v++)
            value[v] *= beta;
    }
    for (size_t k = 0; k < s->size; k++) {
        float x = get(call->in[KEY], key + k);
        for (size_t v = 0; v < n; v++)
            matrix[k * n + v] += x * value[v];
    }
}

static void read_out(const dq_op_call *call, size_t step, size_t head, const float *matrix, float *sum)
{
    const state *s = call->state;
    size_t n = s->value_size, group = s->out_heads / s->kv_heads;
    for (size_t h = head * group; call->out[0] && h < (head + 1) * group; h++) {
        size_t query = step * s->heads + h / (s->out_heads / s->heads);
        memset(sum, 0, n * sizeof *sum);
        for (size_t k = 0; k < s->size; k++) {
            float x = get(call->in[QUERY], query * s->size + k);
            for (size_t v = 0; v < n; v++)
                sum[v] += x * matrix[k * n + v];
        }
        for (size_t v = 0; v < n; v++)
            dq_tensor_put_double(call->out[0], (step * s->out_heads + h) * n + v,
                                 (double)(s->scale * sum[v]));
    }
}

static void linear_piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    const dq_tensor *past = dq_call_in(call, PAST);
    size_t numbers = s->size * s->value_size;
    float *matrix = dq_call_worker_scratch(call, worker), *row = matrix + numbers;
    for (size_t i = begin; i < end; i++) {
        for (size_t k = 0; k < numbers; k++)
            matrix[k] = past ? get(past, i * numbers + k) : 0;
        for (size_t t = 0; t < s->steps; t++) {
            size_t step = i / s->kv_heads * s->steps + t;
            update(call, step, i % s->kv_heads, matrix, row);
            read_out(call, step, i % s->kv_heads, matrix, row);
        }
        for (size_t k = 0; call->out_count > 1 && call->out[1] && k < numbers; k++)
            dq_tensor_put_double(call->out[1], i * numbers + k, (double)matrix[k]);
    }
}

static dq_status linear_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    if (s->value_size)
        dq_parallel(call->threads, s->batch * s->kv_heads, 1, linear_piece, &call);
    return DQ_OK;
}

const dq_op_impl dq_op_linear_attention = {linear_infer, linear_prepare, linear_run, PAST *DQ_OP_PAST_AT};
