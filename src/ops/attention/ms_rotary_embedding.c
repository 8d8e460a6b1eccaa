/* com.microsoft RotaryEmbedding, on [batch, sequence, heads * size] or [batch, heads, sequence, size].
 * Computed in float, rounded once. */
#include "base/checked.h"
#include "ops/attention/rotary.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <string.h>

enum { INPUT, POSITIONS, COS, SIN };
enum { WORK = 4096 /* elements of a piece of parallel work, about */ };

typedef struct state {
    size_t batch, heads, rows, size, half;
    bool heads_first, interleaved, one_position;
} state;

static void rotate_halves(float *restrict x, float *restrict y, size_t n, const float *restrict cosines,
                          const float *restrict sines)
{
    for (size_t i = 0; i < n; i++) {
        float a = x[i], b = y[i];
        x[i] = a * cosines[i] - b * sines[i];
        y[i] = b * cosines[i] + a * sines[i];
    }
}

static void rotate_pairs(float *restrict x, size_t n, const float *restrict cosines,
                         const float *restrict sines)
{
    for (size_t i = 0; i < n; i++) {
        float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = a * cosines[i] - b * sines[i];
        x[2 * i + 1] = b * cosines[i] + a * sines[i];
    }
}

void dq_rotate(float *x, size_t half, bool interleaved, const float *cosines, const float *sines)
{
    if (interleaved)
        rotate_pairs(x, half, cosines, sines);
    else
        rotate_halves(x, x + half, half, cosines, sines);
}

dq_status dq_rotary_check(const dq_op_call *call, uint32_t cos, uint32_t sin, dq_error *err)
{
    const dq_tensor *c = call->in[cos], *s = call->in[sin];
    if (c->rank != 2)
        return dq_call_fail_input(call, err, cos, "has rank %u, wanted 2: positions, pairs", c->rank);
    if (!dq_tensor_same_shape(c, s))
        return dq_call_fail_input(call, err, sin, "has another shape than the cosines");
    return DQ_OK;
}

void dq_rotary_row(const dq_op_call *call, uint32_t cos, uint32_t sin, size_t position, float *to)
{
    const dq_tensor *c = call->in[cos], *s = call->in[sin];
    size_t half = (size_t)c->dims[1];
    dq_load_floats(call->kernels, c->dtype, c->data, position * half, half, to);
    dq_load_floats(call->kernels, s->dtype, s->data, position * half, half, to + half);
}

/* ---- The operator ------------------------------------------------------------------------------------- */

static dq_status read_sizes(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *x = call->in[INPUT];
    int64_t half = call->in[COS]->dims[1], heads = dq_node_int(call->node, "num_heads", 0);
    int64_t rotated = dq_node_int(call->node, "rotary_embedding_dim", 0);
    if (rotated != 0 && rotated != 2 * half)
        return dq_call_fail_input(
            call, err, COS, "has %" PRId64 " columns, wanted half of %" PRId64 " (rotary_embedding_dim)",
            half, rotated);
    if (rotated != 0 && heads < 1 && x->rank == 3)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'rotary_embedding_dim' needs 'num_heads'");
    s->heads_first = x->rank == 4;
    int64_t size = x->dims[3];
    if (!s->heads_first)
        size = heads > 0 ? x->dims[2] / heads : 2 * half;
    int64_t count = s->heads_first ? x->dims[1] : size > 0 ? x->dims[2] / size : 0;
    if (size < 2 * half || (!s->heads_first && count * size != x->dims[2]))
        return dq_call_fail_input(
            call, err, INPUT, "cannot be cut into heads of which %" PRId64 " elements are rotated", 2 * half);
    s->batch = (size_t)x->dims[0];
    s->rows = (size_t)x->dims[s->heads_first ? 2 : 1];
    s->heads = (size_t)count;
    s->size = (size_t)size;
    s->half = (size_t)half;
    return DQ_OK;
}

static dq_status read_all(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *x = call->in[INPUT], *positions = call->in[POSITIONS];
    char text[DQ_SHAPE_TEXT];
    if (x->rank != 3 && x->rank != 4)
        return dq_call_fail_input(call, err, INPUT, "has rank %u, wanted 3 or 4", x->rank);
    DQ_TRY(dq_rotary_check(call, COS, SIN, err));
    DQ_TRY(read_sizes(call, s, err));
    s->interleaved = dq_node_int(call->node, "interleaved", 0) != 0;
    s->one_position = positions->rank < 2 && positions->count == 1;
    if (!s->one_position && (positions->rank != 2 || positions->dims[0] != (int64_t)s->batch ||
                             positions->dims[1] != (int64_t)s->rows))
        return dq_call_fail_input(call, err, POSITIONS, "has shape %s, wanted [1] or [%zu, %zu]",
                                  dq_shape_text(positions->rank, positions->dims, text), s->batch, s->rows);
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state s = {0};
    DQ_TRY(read_all(call, &s, err));
    return dq_call_output_like(call, 0, call->in[INPUT]->dtype, call->in[INPUT], err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read_all(call, s, err));
    if (!dq_add_size(s->size, 2 * s->half, &call->worker_scratch_size) ||
        !dq_mul_size(call->worker_scratch_size, sizeof(float), &call->worker_scratch_size))
        return dq_no_memory(err, SIZE_MAX, "a head");
    return DQ_OK;
}

static int64_t position_of(const dq_op_call *call, size_t batch, size_t row)
{
    const state *s = call->state;
    const int64_t *given = call->in[POSITIONS]->data;
    return s->one_position ? given[0] + (int64_t)row : given[batch * s->rows + row];
}

static void one_head(const dq_op_call *call, size_t number, float *x)
{
    const state *s = call->state;
    const dq_tensor *in = call->in[INPUT];
    size_t per_batch = s->rows * s->heads, rest = number % per_batch;
    size_t row = s->heads_first ? rest % s->rows : rest / s->heads;
    size_t at = (size_t)position_of(call, number / per_batch, row);
    if (in->dtype == DQ_FLOAT) {
        float *to = dq_data(call->out[0], float) + number * s->size;
        memcpy(to, dq_data(in, float) + number * s->size, s->size * sizeof *to);
        dq_rotate(to, s->half, s->interleaved, dq_data(call->in[COS], float) + at * s->half,
                  dq_data(call->in[SIN], float) + at * s->half);
        return;
    }
    float *table = x + s->size;
    dq_load_floats(call->kernels, in->dtype, in->data, number * s->size, s->size, x);
    dq_rotary_row(call, COS, SIN, at, table);
    dq_rotate(x, s->half, s->interleaved, table, table + s->half);
    dq_store_from_floats(call->kernels, in->dtype, call->out[0]->data, number * s->size, s->size, x, false);
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    for (size_t i = begin; i < end; i++)
        one_head(call, i, dq_call_worker_scratch(call, worker));
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    for (size_t i = 0; i < s->batch * s->rows; i++) {
        int64_t at = position_of(call, i / s->rows, i % s->rows);
        if (at < 0 || at >= call->in[COS]->dims[0])
            return dq_call_fail(call, err, DQ_BAD_INPUT,
                                "input %d leads to position %" PRId64 ", outside the %" PRId64
                                " rows of cosines",
                                POSITIONS, at, call->in[COS]->dims[0]);
    }
    if (call->in[INPUT]->count)
        dq_parallel(call->threads, s->batch * s->rows * s->heads, WORK / s->size + 1, piece, &call);
    return DQ_OK;
}

const dq_op_impl dq_op_ms_rotary_embedding = {infer, prepare, run, 0};
