/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft.SkipLayerNormalization and SkipSimplifiedLayerNormalization: input + skip + bias, added in
 * float in this order, then normalized over the last axis. float16 and bfloat16 results are rounded once, at
 * the end: the normalization reads the unrounded sum. */
#include "base/checked.h"
#include "ops/reduce/row_norm.h"
#include "ops/rows.h"

#include <inttypes.h>

enum { INPUT, SKIP, GAMMA };
enum { OUTPUT, MEAN, INVERSE, SUM };
enum { ELEMENTS_PER_TASK = 4096 /* approximate elements per task */ };

typedef struct state {
    dq_row_norm norm;
    uint32_t bias; /* index of the bias input, which comes after beta if the operator has beta */
    size_t rows, skip_rows;
} state;

static dq_status check_vector(const dq_op_call *call, uint32_t i, int64_t n, dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    char text[DQ_SHAPE_TEXT];
    if (!t || (t->rank == 1 && t->dims[0] == n))
        return DQ_OK;
    return dq_call_fail_input(call, err, i,
                              "has shape %s, expected [%" PRId64 "], the length of the last axis",
                              dq_shape_text(t->rank, t->dims, text), n);
}

/* True if skip has the input's shape, lacks the batch axis, or has batch 1. */
static bool skip_fits(const dq_tensor *x, const dq_tensor *skip)
{
    if (dq_tensor_same_shape(x, skip))
        return true;
    size_t lead = skip->rank == x->rank && skip->dims[0] == 1;
    if (x->rank < 3 || (skip->rank != x->rank - 1 && !lead))
        return false;
    for (size_t d = 1; d < x->rank; d++)
        if (skip->dims[lead ? d : d - 1] != x->dims[d])
            return false;
    return true;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[INPUT], *skip = call->in[SKIP];
    char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
    if (x->rank < 2)
        return dq_call_fail_input(call, err, INPUT, "has rank %u, expected 2 or more", x->rank);
    if (!skip_fits(x, skip))
        return dq_call_fail_input(call, err, SKIP, "has shape %s, which does not broadcast to %s",
                                  dq_shape_text(skip->rank, skip->dims, theirs),
                                  dq_shape_text(x->rank, x->dims, mine));
    for (uint32_t i = GAMMA; i < call->in_count; i++)
        DQ_TRY(check_vector(call, i, x->dims[x->rank - 1], err));
    int64_t reduced[DQ_MAX_RANK];
    for (size_t d = 0; d < x->rank; d++)
        reduced[d] = d + 1 < x->rank ? x->dims[d] : 1;
    DQ_TRY(dq_call_output_like(call, OUTPUT, x->dtype, x, err));
    DQ_TRY(dq_call_output(call, MEAN, DQ_FLOAT, x->rank, reduced, err));
    DQ_TRY(dq_call_output(call, INVERSE, DQ_FLOAT, x->rank, reduced, err));
    return dq_call_output_like(call, SUM, x->dtype, x, err);
}

static dq_status prepare_with(dq_op_call *call, bool centre, dq_error *err)
{
    const dq_tensor *x = call->in[INPUT], *skip = call->in[SKIP];
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    s->norm.epsilon = (double)dq_node_float(call->node, "epsilon", 1e-12f);
    s->norm.centre = centre;
    s->norm.n = (size_t)x->dims[x->rank - 1];
    s->bias = centre ? 4 : 3;
    s->rows = dq_dims_product(x->dims, 0, x->rank - 1);
    s->skip_rows = dq_dims_product(skip->dims, 0, skip->rank - 1);
    /* Scratch: gamma, beta and bias as floats. Worker scratch: a row of each operand. */
    if (!dq_mul_size(s->norm.n, 3 * sizeof(float), &call->scratch_size) ||
        !dq_mul_size(s->norm.n, 2 * sizeof(float), &call->worker_scratch_size))
        return dq_no_memory(err, s->norm.n, "rows");
    return DQ_OK;
}

static dq_status prepare_centred(dq_op_call *call, dq_error *err)
{
    return prepare_with(call, true, err);
}

static dq_status prepare_simplified(dq_op_call *call, dq_error *err)
{
    return prepare_with(call, false, err);
}

typedef struct job {
    const dq_op_call *call;
    dq_row_norm norm;
    const float *bias;
} job;

static void put_stat(const dq_op_call *call, uint32_t i, size_t row, double value)
{
    if (i < call->out_count && call->out[i])
        dq_data(call->out[i], float)[row] = (float)value;
}

static void one_row(const job *j, size_t row, float *sum, float *other)
{
    const dq_op_call *call = j->call;
    const state *s = call->state;
    const dq_tensor *x = call->in[INPUT], *skip = call->in[SKIP];
    size_t n = s->norm.n, at = row * n;
    dq_load_floats(call->kernels, x->dtype, x->data, at, n, sum);
    dq_load_floats(call->kernels, skip->dtype, skip->data, row % s->skip_rows * n, n, other);
    for (size_t i = 0; i < n; i++)
        sum[i] += other[i];
    for (size_t i = 0; j->bias && i < n; i++)
        sum[i] += j->bias[i];
    if (call->out_count > SUM && call->out[SUM])
        dq_store_from_floats(call->kernels, x->dtype, call->out[SUM]->data, at, n, sum, false);
    dq_row_stats stats = dq_row_normalize(call, &j->norm, sum, other);
    if (call->out[OUTPUT])
        dq_store_from_floats(call->kernels, x->dtype, call->out[OUTPUT]->data, at, n, other, false);
    put_stat(call, MEAN, row, stats.mean);
    put_stat(call, INVERSE, row, stats.inverse);
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    float *own = dq_call_worker_scratch(j->call, worker);
    for (size_t row = begin; row < end; row++)
        one_row(j, row, own, own + j->norm.n);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    job j = {.call = call, .norm = s->norm};
    size_t n = s->norm.n;
    if (call->in[INPUT]->count == 0) {
        dq_row_stats_fill_nan(call, MEAN, SUM);
        return DQ_OK;
    }
    float *workspace = call->scratch;
    const dq_tensor *beta = s->norm.centre ? dq_call_in(call, GAMMA + 1) : NULL,
                    *bias = dq_call_in(call, s->bias);
    j.norm.gamma = dq_row_floats(call, call->in[GAMMA], workspace);
    j.norm.beta = beta ? dq_row_floats(call, beta, workspace + n) : NULL;
    j.bias = bias ? dq_row_floats(call, bias, workspace + 2 * n) : NULL;
    dq_parallel(call->threads, s->rows, ELEMENTS_PER_TASK / n + 1, piece, &j);
    return DQ_OK;
}

const dq_op_impl dq_op_skip_layer_normalization = {infer, prepare_centred, run, 0};
const dq_op_impl dq_op_skip_simplified_layer_normalization = {infer, prepare_simplified, run, 0};
