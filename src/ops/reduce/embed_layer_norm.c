/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft.EmbedLayerNormalization and QEmbedLayerNormalization: the sum, in float and in this order, of
 * a row of the word table, one of the position table and one of the segment table, then layer normalization.
 * The quantized operator dequantizes tables, gamma and beta first: (q - zero point) * scale in float. */
#include "base/checked.h"
#include "ops/reduce/row_norm.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <string.h>

enum { IDS, SEGMENTS, WORD, POSITION, SEGMENT, GAMMA, BETA, MASK, POSITION_IDS };
enum { SCALES = 8, ZEROS = 13, TABLES = 5 /* word, position, segment, gamma, beta, in this order */ };
enum { OUTPUT, COUNTS, SUM };
enum { ELEMENTS_PER_TASK = 4096 /* approximate elements per task */ };

typedef struct state {
    dq_row_norm norm;
    bool quantized;
    bool shared_positions; /* one row of position ids for the whole batch */
    size_t rows, sequence;
} state;

/* ---- Planning ----------------------------------------------------------------------------------------- */

static dq_status wrong_shape(const dq_op_call *call, uint32_t i, const char *expected, dq_error *err)
{
    char text[DQ_SHAPE_TEXT];
    return dq_call_fail_input(call, err, i, "has shape %s, expected %s",
                              dq_shape_text(call->in[i]->rank, call->in[i]->dims, text), expected);
}

static dq_status check_ids(const dq_op_call *call, bool quantized, dq_error *err)
{
    const dq_tensor *ids = call->in[IDS], *positions = quantized ? NULL : dq_call_in(call, POSITION_IDS);
    if (ids->rank != 2)
        return dq_call_fail_input(call, err, IDS, "has rank %u, expected 2: batch, sequence", ids->rank);
    const uint32_t alike[] = {SEGMENTS, MASK};
    for (size_t i = 0; i < 2; i++)
        if (dq_call_in(call, alike[i]) && !dq_tensor_same_shape(ids, call->in[alike[i]]))
            return wrong_shape(call, alike[i], "that of input_ids", err);
    if (positions && (positions->rank != 2 || positions->dims[1] != ids->dims[1] ||
                      (positions->dims[0] != 1 && positions->dims[0] != ids->dims[0])))
        return wrong_shape(call, POSITION_IDS, "that of input_ids, or a batch of 1", err);
    if (!dq_call_in(call, SEGMENT) != !dq_call_in(call, SEGMENTS))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has %s but no %s",
                            dq_call_in(call, SEGMENT) ? "a segment table" : "segment ids",
                            dq_call_in(call, SEGMENT) ? "segment ids" : "segment table");
    if (!positions && call->in[POSITION]->rank == 2 && call->in[POSITION]->dims[0] < ids->dims[1])
        return dq_call_fail_input(call, err, POSITION, "has %" PRId64 " rows, expected %" PRId64 " or more",
                                  call->in[POSITION]->dims[0], ids->dims[1]);
    return DQ_OK;
}

static dq_status check_tables(const dq_op_call *call, bool quantized, dq_error *err)
{
    for (uint32_t i = WORD; i <= SEGMENT; i++)
        if (dq_call_in(call, i) && call->in[i]->rank != 2)
            return wrong_shape(call, i, "two axes", err);
    int64_t n = call->in[WORD]->dims[1];
    for (uint32_t i = WORD; i <= BETA; i++) {
        const dq_tensor *t = dq_call_in(call, i);
        if (t && (t->rank != (i < GAMMA ? 2 : 1) || t->dims[t->rank - 1] != n))
            return wrong_shape(call, i, "as many columns as the word table has", err);
        for (uint32_t p = 0; quantized && t && p < 2; p++) {
            uint32_t at = (p ? ZEROS : SCALES) + i - WORD;
            const dq_tensor *param = dq_call_in(call, at);
            if (param && param->count != 1)
                return dq_call_fail_input(call, err, at, "has %zu elements, expected 1", param->count);
            if (!param && !p)
                return dq_call_fail(call, err, DQ_BAD_MODEL, "input %u needs input %u, its scale", i, at);
        }
    }
    return DQ_OK;
}

static dq_status infer_with(dq_op_call *call, bool quantized, dq_error *err)
{
    DQ_TRY(check_ids(call, quantized, err));
    DQ_TRY(check_tables(call, quantized, err));
    const dq_tensor *ids = call->in[IDS], *word = call->in[WORD];
    int64_t dims[3] = {ids->dims[0], ids->dims[1], word->dims[1]};
    dq_dtype type = quantized ? DQ_FLOAT : word->dtype;
    DQ_TRY(dq_call_output(call, OUTPUT, type, 3, dims, err));
    DQ_TRY(dq_call_output(call, COUNTS, DQ_INT32, 1, dims, err));
    return dq_call_output(call, SUM, type, 3, dims, err);
}

static dq_status prepare_with(dq_op_call *call, bool quantized, dq_error *err)
{
    const dq_tensor *ids = call->in[IDS], *positions = quantized ? NULL : dq_call_in(call, POSITION_IDS);
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    s->norm.epsilon = (double)dq_node_float(call->node, "epsilon", 1e-12f);
    s->norm.centre = true;
    s->norm.n = (size_t)call->in[WORD]->dims[1];
    s->quantized = quantized;
    s->rows = ids->count;
    s->sequence = (size_t)ids->dims[1];
    s->shared_positions = positions && positions->dims[0] != ids->dims[0];
    if (!dq_mul_size(s->norm.n, 2 * sizeof(float), &call->scratch_size) ||
        !dq_mul_size(s->norm.n, 2 * sizeof(float), &call->worker_scratch_size))
        return dq_no_memory(err, s->norm.n, "rows");
    return DQ_OK;
}

static dq_status infer_float(dq_op_call *call, dq_error *err)
{
    return infer_with(call, false, err);
}

static dq_status prepare_float(dq_op_call *call, dq_error *err)
{
    return prepare_with(call, false, err);
}

static dq_status infer_quantized(dq_op_call *call, dq_error *err)
{
    return infer_with(call, true, err);
}

static dq_status prepare_quantized(dq_op_call *call, dq_error *err)
{
    return prepare_with(call, true, err);
}

/* ---- Run ---------------------------------------------------------------------------------------------- */

/* Loads row `row` of table input i as floats; gamma and beta have one row. */
static void load_row(const dq_op_call *call, uint32_t i, size_t row, float *to)
{
    const state *s = call->state;
    const dq_tensor *t = call->in[i];
    size_t n = s->norm.n, at = row * n;
    if (!s->quantized) {
        dq_load_floats(call->kernels, t->dtype, t->data, at, n, to);
        return;
    }
    const float *scale = call->in[SCALES + i - WORD]->data;
    const dq_tensor *zero = dq_call_in(call, ZEROS + i - WORD);
    if (t->dtype == DQ_UINT8)
        call->kernels->dequantize_u8_f32(dq_data(t, uint8_t) + at, n, scale, zero ? zero->data : NULL, 0, to);
    else
        call->kernels->dequantize_s8_f32(dq_data(t, int8_t) + at, n, scale, zero ? zero->data : NULL, 0, to);
}

static int32_t position_of(const dq_op_call *call, size_t row)
{
    const state *s = call->state;
    const dq_tensor *ids = s->quantized ? NULL : dq_call_in(call, POSITION_IDS);
    if (!ids)
        return (int32_t)(row % s->sequence);
    return dq_data(ids, int32_t)[s->shared_positions ? row % s->sequence : row];
}

static dq_status check_values(const dq_op_call *call, uint32_t i, uint32_t table, dq_error *err)
{
    const dq_tensor *ids = dq_call_in(call, i);
    for (size_t k = 0; ids && k < ids->count; k++) {
        int32_t id = dq_data(ids, int32_t)[k];
        if (id < 0 || id >= call->in[table]->dims[0])
            return dq_call_fail(call, err, DQ_BAD_INPUT,
                                "input %u holds %" PRId32 ", outside the %" PRId64 " rows of input %u", i, id,
                                call->in[table]->dims[0], table);
    }
    return DQ_OK;
}

static void one_row(const dq_op_call *call, const dq_row_norm *norm, size_t row, float *sum, float *other)
{
    const state *s = call->state;
    size_t n = s->norm.n, at = row * n;
    load_row(call, WORD, (size_t)dq_data(call->in[IDS], int32_t)[row], sum);
    load_row(call, POSITION, (size_t)position_of(call, row), other);
    for (size_t i = 0; i < n; i++)
        sum[i] += other[i];
    if (dq_call_in(call, SEGMENT)) {
        load_row(call, SEGMENT, (size_t)dq_data(call->in[SEGMENTS], int32_t)[row], other);
        for (size_t i = 0; i < n; i++)
            sum[i] += other[i];
    }
    const dq_tensor *y = call->out[OUTPUT], *kept = call->out_count > SUM ? call->out[SUM] : NULL;
    if (kept)
        dq_store_from_floats(call->kernels, kept->dtype, kept->data, at, n, sum, false);
    dq_row_normalize(call, norm, sum, other);
    if (y)
        dq_store_from_floats(call->kernels, y->dtype, y->data, at, n, other, false);
}

typedef struct job {
    const dq_op_call *call;
    dq_row_norm norm;
} job;

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    float *own = dq_call_worker_scratch(j->call, worker);
    for (size_t row = begin; row < end; row++)
        one_row(j->call, &j->norm, row, own, own + j->norm.n);
}

/* Counts the ones in each row of the mask; without a mask, 0. */
static void count_ones(const dq_op_call *call, size_t sequence)
{
    const dq_tensor *counts = call->out_count > COUNTS ? call->out[COUNTS] : NULL,
                    *mask = dq_call_in(call, MASK);
    for (size_t b = 0; counts && b < counts->count; b++) {
        int32_t ones = 0;
        for (size_t i = 0; mask && i < sequence; i++)
            ones += dq_data(mask, int32_t)[b * sequence + i] == 1;
        dq_data(counts, int32_t)[b] = ones;
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    DQ_TRY(check_values(call, IDS, WORD, err));
    DQ_TRY(check_values(call, SEGMENTS, SEGMENT, err));
    if (!s->quantized)
        DQ_TRY(check_values(call, POSITION_IDS, POSITION, err));
    count_ones(call, s->sequence);
    if (s->rows == 0 || s->norm.n == 0)
        return DQ_OK;
    float *gamma = call->scratch, *beta = gamma + s->norm.n;
    load_row(call, GAMMA, 0, gamma);
    load_row(call, BETA, 0, beta);
    job j = {call, s->norm};
    j.norm.gamma = gamma;
    j.norm.beta = beta;
    dq_parallel(call->threads, s->rows, ELEMENTS_PER_TASK / s->norm.n + 1, piece, &j);
    return DQ_OK;
}

const dq_op_impl dq_op_embed_layer_normalization = {infer_float, prepare_float, run, 0};
const dq_op_impl dq_op_qembed_layer_normalization = {infer_quantized, prepare_quantized, run, 0};
