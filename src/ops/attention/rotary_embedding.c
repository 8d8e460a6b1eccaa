/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding of ai.onnx and of com.microsoft: rotates pairs of elements of each head by an angle that
 * depends on the position. The input is [batch, sequence, heads * size] or [batch, heads, sequence, size].
 * Computed in float, rounded once. */
#include "base/checked.h"
#include "ops/attention/rotary.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <string.h>

enum { INPUT };
enum { ELEMENTS_PER_TASK = 4096 /* approximate elements of a parallel task */ };

typedef struct state {
    size_t batch, heads, rows, size, half;
    bool heads_first, interleaved;
    /* Row of the tables for each row of the input: from the position input; counted up from its single
     * element; or the number of the input row (tables of ai.onnx, [batch, sequence, pairs]). */
    enum { GIVEN, FROM_FIRST, IN_ORDER } position_source;
    uint32_t positions, cos, sin; /* input numbers */
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
        return dq_call_fail_input(call, err, cos, "has rank %u, expected 2: positions, pairs", c->rank);
    if (!dq_tensor_same_shape(c, s))
        return dq_call_fail_input(call, err, sin, "has another shape than the cosines");
    return DQ_OK;
}

static void load_row(const dq_op_call *call, uint32_t cos, uint32_t sin, size_t half, size_t position,
                     float *to)
{
    const dq_tensor *c = call->in[cos], *s = call->in[sin];
    dq_load_floats(call->kernels, c->dtype, c->data, position * half, half, to);
    dq_load_floats(call->kernels, s->dtype, s->data, position * half, half, to + half);
}

void dq_rotary_row(const dq_op_call *call, uint32_t cos, uint32_t sin, size_t position, float *to)
{
    load_row(call, cos, sin, (size_t)call->in[cos]->dims[1], position, to);
}

/* ---- com.microsoft ------------------------------------------------------------------------------------- */

static dq_status read_ms_sizes(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *x = call->in[INPUT];
    int64_t half = call->in[s->cos]->dims[1], heads = dq_node_int(call->node, "num_heads", 0);
    int64_t rotated = dq_node_int(call->node, "rotary_embedding_dim", 0);
    if (rotated != 0 && rotated != 2 * half)
        return dq_call_fail_input(
            call, err, s->cos, "has %" PRId64 " columns, expected half of %" PRId64 " (rotary_embedding_dim)",
            half, rotated);
    if (rotated != 0 && heads < 1 && x->rank == 3)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'rotary_embedding_dim' needs 'num_heads'");
    s->heads_first = x->rank == 4;
    int64_t size = x->dims[3];
    if (!s->heads_first)
        size = heads > 0 ? x->dims[2] / heads : 2 * half;
    int64_t count = s->heads_first ? x->dims[1] : size > 0 ? x->dims[2] / size : 0;
    if (size < 2 * half || (!s->heads_first && count * size != x->dims[2]))
        return dq_call_fail_input(call, err, INPUT,
                                  "cannot be split into heads with %" PRId64 " rotated elements", 2 * half);
    s->batch = (size_t)x->dims[0];
    s->rows = (size_t)x->dims[s->heads_first ? 2 : 1];
    s->heads = (size_t)count;
    s->size = (size_t)size;
    s->half = (size_t)half;
    return DQ_OK;
}

static dq_status read_ms(const dq_op_call *call, state *s, dq_error *err)
{
    *s = (state){.positions = 1, .cos = 2, .sin = 3};
    const dq_tensor *x = call->in[INPUT], *positions = call->in[s->positions];
    char text[DQ_SHAPE_TEXT];
    if (x->rank != 3 && x->rank != 4)
        return dq_call_fail_input(call, err, INPUT, "has rank %u, expected 3 or 4", x->rank);
    DQ_TRY(dq_rotary_check(call, s->cos, s->sin, err));
    DQ_TRY(read_ms_sizes(call, s, err));
    s->position_source = positions->rank < 2 && positions->count == 1 ? FROM_FIRST : GIVEN;
    if (s->position_source == GIVEN && (positions->rank != 2 || positions->dims[0] != (int64_t)s->batch ||
                                        positions->dims[1] != (int64_t)s->rows))
        return dq_call_fail_input(call, err, s->positions, "has shape %s, expected [1] or [%zu,%zu]",
                                  dq_shape_text(positions->rank, positions->dims, text), s->batch, s->rows);
    return DQ_OK;
}

/* ---- ai.onnx ------------------------------------------------------------------------------------------- */

static dq_status read_onnx_sizes(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *x = call->in[INPUT];
    if (x->rank != 3 && x->rank != 4)
        return dq_call_fail_input(call, err, INPUT, "has rank %u, expected 3 or 4", x->rank);
    int64_t heads = x->rank == 4 ? x->dims[1] : dq_node_int(call->node, "num_heads", 0);
    int64_t last = x->dims[x->rank - 1];
    if (x->rank == 3 && (heads < 1 || last % heads != 0))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'num_heads' is %" PRId64 ", expected a divisor of %" PRId64, heads,
                            last);
    s->batch = (size_t)x->dims[0];
    s->heads = (size_t)heads;
    s->rows = (size_t)x->dims[x->rank - 2];
    s->size = (size_t)(x->rank == 4 ? last : last / heads);
    s->heads_first = x->rank == 4;
    int64_t rotated = dq_node_int(call->node, "rotary_embedding_dim", 0);
    if (rotated == 0)
        rotated = (int64_t)s->size;
    if (rotated < 0 || rotated > (int64_t)s->size || rotated % 2 != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "turns %" PRId64 " numbers of heads of %zu, expected an even part of them",
                            rotated, s->size);
    s->half = (size_t)rotated / 2;
    return DQ_OK;
}

static dq_status read_onnx(const dq_op_call *call, state *s, dq_error *err)
{
    *s = (state){.positions = 3, .cos = 1, .sin = 2};
    DQ_TRY(read_onnx_sizes(call, s, err));
    const dq_tensor *positions = dq_call_in(call, s->positions);
    s->position_source = positions ? GIVEN : IN_ORDER;
    int64_t pairs = (int64_t)s->half, batch = (int64_t)s->batch, steps = (int64_t)s->rows;
    char text[DQ_SHAPE_TEXT];
    for (uint32_t i = s->cos; i <= s->sin; i++) {
        const dq_tensor *t = call->in[i];
        bool fits = positions
                        ? t->rank == 2 && t->dims[1] == pairs && t->dims[0] == call->in[s->cos]->dims[0]
                        : t->rank == 3 && t->dims[0] == batch && t->dims[1] == steps && t->dims[2] == pairs;
        if (!fits && positions)
            return dq_call_fail_input(call, err, i,
                                      "has shape %s, expected a row of %" PRId64 " for each position",
                                      dq_shape_text(t->rank, t->dims, text), pairs);
        if (!fits)
            return dq_call_fail_input(call, err, i, "has shape %s, expected [%zu,%zu,%" PRId64 "]",
                                      dq_shape_text(t->rank, t->dims, text), s->batch, s->rows, pairs);
    }
    if (positions && (positions->rank != 2 || positions->dims[0] != batch || positions->dims[1] != steps))
        return dq_call_fail_input(call, err, s->positions, "has shape %s, expected [%zu,%zu]",
                                  dq_shape_text(positions->rank, positions->dims, text), s->batch, s->rows);
    return DQ_OK;
}

/* ---- Both ---------------------------------------------------------------------------------------------- */

typedef dq_status read_fn(const dq_op_call *call, state *s, dq_error *err);

static dq_status infer_by(dq_op_call *call, read_fn *read, dq_error *err)
{
    state s;
    DQ_TRY(read(call, &s, err));
    return dq_call_output_like(call, 0, call->in[INPUT]->dtype, call->in[INPUT], err);
}

static dq_status prepare_by(dq_op_call *call, read_fn *read, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read(call, s, err));
    s->interleaved = dq_node_int(call->node, "interleaved", 0) != 0;
    if (!dq_add_size(s->size, 2 * s->half, &call->worker_scratch_size) ||
        !dq_mul_size(call->worker_scratch_size, sizeof(float), &call->worker_scratch_size))
        return dq_no_memory(err, SIZE_MAX, "a head");
    return DQ_OK;
}

/* The row of the tables for a row of the input, which is counted over all batches. */
static int64_t row_offset(const dq_op_call *call, size_t row)
{
    const state *s = call->state;
    if (s->position_source == IN_ORDER)
        return (int64_t)row;
    const int64_t *value = call->in[s->positions]->data;
    return s->position_source == GIVEN ? value[row] : (int64_t)((uint64_t)value[0] + row % s->rows);
}

static void one_head(const dq_op_call *call, size_t number, size_t row, float *x)
{
    const state *s = call->state;
    const dq_tensor *in = call->in[INPUT];
    const size_t at = (size_t)row_offset(call, row);
    if (in->dtype == DQ_FLOAT) {
        float *to = dq_data(call->out[0], float) + number * s->size;
        memcpy(to, dq_data(in, float) + number * s->size, s->size * sizeof *to);
        dq_rotate(to, s->half, s->interleaved, dq_data(call->in[s->cos], float) + at * s->half,
                  dq_data(call->in[s->sin], float) + at * s->half);
        return;
    }
    float *table = x + s->size;
    dq_load_floats(call->kernels, in->dtype, in->data, number * s->size, s->size, x);
    load_row(call, s->cos, s->sin, s->half, at, table);
    dq_rotate(x, s->half, s->interleaved, table, table + s->half);
    dq_store_from_floats(call->kernels, in->dtype, call->out[0]->data, number * s->size, s->size, x, false);
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    /* i counts heads in memory order: all heads of a row, or if heads are first, all rows of a head */
    const size_t inner = s->heads_first ? s->rows : s->heads;
    size_t k = begin % inner, block = begin / inner;
    for (size_t i = begin; i < end; i++) {
        const size_t row = s->heads_first ? block / s->heads * s->rows + k : block;
        one_head(call, i, row, dq_call_worker_scratch(call, worker));
        if (++k == inner) {
            k = 0;
            block++;
        }
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    const int64_t rows = call->in[s->cos]->dims[0];
    for (size_t i = 0; s->position_source != IN_ORDER && i < s->batch * s->rows; i++) {
        int64_t at = row_offset(call, i);
        if (at < 0 || at >= rows)
            return dq_call_fail(call, err, DQ_BAD_INPUT,
                                "input %u leads to position %" PRId64 ", outside the %" PRId64
                                " rows of cosines",
                                s->positions, at, rows);
    }
    if (call->in[INPUT]->count)
        dq_parallel(call->threads, s->batch * s->rows * s->heads, ELEMENTS_PER_TASK / s->size + 1, piece,
                    &call);
    return DQ_OK;
}

#define ROTARY(symbol, read)                                                                                 \
    static dq_status symbol##_infer(dq_op_call *call, dq_error *err)                                         \
    {                                                                                                        \
        return infer_by(call, read, err);                                                                    \
    }                                                                                                        \
    static dq_status symbol##_prepare(dq_op_call *call, dq_error *err)                                       \
    {                                                                                                        \
        return prepare_by(call, read, err);                                                                  \
    }                                                                                                        \
    const dq_op_impl symbol = {symbol##_infer, symbol##_prepare, run, 0};

ROTARY(dq_op_rotary_embedding, read_onnx)
ROTARY(dq_op_ms_rotary_embedding, read_ms)
