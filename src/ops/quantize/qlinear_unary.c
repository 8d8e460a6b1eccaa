/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearSigmoid and QLinearLeakyRelu of com.microsoft: Y = quantize(f(dequantize(X))), by a table of 256
 * entries. The sigmoid is rounded correctly to float; LeakyRelu is one float multiplication below 0. */
#include "base/math.h"
#include "ops/quantize/q8.h"

typedef float unary_fn(float x, float alpha);

typedef struct unary_state {
    bool ready; /* the table has been made, as scales and zero points are constant */
    uint8_t table[256];
} unary_state;

static dq_status infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_q8_check(call, 1, 2, err));
    DQ_TRY(dq_q8_check(call, 3, 4, err));
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

static void make_table(const dq_op_call *call, unary_fn *fn, uint8_t table[256])
{
    dq_q8 x = dq_q8_read(call, 1, 2, call->in[0]->dtype), y = dq_q8_read(call, 3, 4, call->in[0]->dtype);
    float alpha = dq_node_float(call->node, "alpha", 0.01f);
    for (int i = 0; i < 256; i++)
        table[i] = dq_q8_quantize(&y, fn(dq_q8_real(&x, (uint8_t)i), alpha));
}

static dq_status prepare(dq_op_call *call, unary_fn *fn, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(unary_state), err));
    unary_state *state = call->state;
    state->ready = dq_q8_constant(call, 1, 2) && dq_q8_constant(call, 3, 4);
    if (state->ready)
        make_table(call, fn, state->table);
    return DQ_OK;
}

static dq_status run(const dq_op_call *call, unary_fn *fn)
{
    const unary_state *state = call->state;
    const dq_tensor *x = call->in[0];
    uint8_t table[256];
    if (!call->out[0])
        return DQ_OK;
    if (!state->ready)
        make_table(call, fn, table);
    dq_q8_map(call, state->ready ? state->table : table, x->data, x->count, call->out[0]->data);
    return DQ_OK;
}

static float sigmoid(float x, float alpha)
{
    (void)alpha;
    return (float)(1 / (1 + dq_exp(-(double)x)));
}

static float leaky_relu(float x, float alpha)
{
    return x >= 0 ? x : alpha * x;
}

#define UNARY(symbol, fn)                                                                                    \
    static dq_status symbol##_prepare(dq_op_call *call, dq_error *err)                                       \
    {                                                                                                        \
        return prepare(call, fn, err);                                                                       \
    }                                                                                                        \
    static dq_status symbol##_run(const dq_op_call *call, dq_error *err)                                     \
    {                                                                                                        \
        (void)err;                                                                                           \
        return run(call, fn);                                                                                \
    }                                                                                                        \
    const dq_op_impl symbol = {infer, symbol##_prepare, symbol##_run,                                        \
                               DQ_OP_IN_PLACE | DQ_OP_BATCH_SEPARABLE_FIRST};

UNARY(dq_op_qlinear_sigmoid, sigmoid)
UNARY(dq_op_qlinear_leaky_relu, leaky_relu)
