/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft Attention: self-attention that includes the projection to queries, keys and values. Computed
 * in float. */
#include "ops/attention/self_attention.h"
#include "ops/half_floats.h"
#include "ops/matmul/matmul_f32.h"

#include <math.h>

enum { INPUT, WEIGHTS, BIAS, MASK, PAST, ATTENTION_BIAS, PAST_LENGTH };
static const dq_self_inputs inputs = {.input = INPUT,
                                      .weights = WEIGHTS,
                                      .bias = BIAS,
                                      .mask = MASK,
                                      .past = PAST,
                                      .attention_bias = ATTENTION_BIAS,
                                      .past_length = PAST_LENGTH};

typedef struct state {
    dq_half_floats halves;
    dq_matmul_f32 projection;
    dq_self_attention attention;
} state;

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_self_attention s = {0};
    return dq_self_attention_infer(call, &inputs, &s, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    dq_self_attention *a = &s->attention;
    DQ_TRY(dq_self_attention_infer(call, &inputs, a, err));
    size_t n = 2 * a->width + a->v_width;
    s->projection = (dq_matmul_f32){.batches = 1,
                                    .m = a->batch * a->rows,
                                    .n = n,
                                    .k = a->input,
                                    .a_row = a->input,
                                    .a_step = 1,
                                    .b_col = 1,
                                    .b_step = n,
                                    .alpha = 1,
                                    .bounds = {-INFINITY, INFINITY}};
    DQ_TRY(dq_matmul_f32_prepare(call, WEIGHTS, &s->projection, err));
    DQ_TRY(dq_half_floats_prepare(call, s->projection.panels ? 1 << WEIGHTS : 0, &s->halves, err));
    return dq_self_attention_prepare(call, a, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    dq_matmul_f32_operands o = {.a = dq_half_floats_in(call, &s->halves, INPUT),
                                .b = dq_half_floats_in(call, &s->halves, WEIGHTS),
                                .c = dq_self_attention_projected(call, &s->attention),
                                .z = dq_half_floats_in(call, &s->halves, BIAS)};
    dq_matmul_f32_run(call, &s->projection, &o);
    return dq_self_attention_run(call, &s->attention, err);
}

const dq_op_impl dq_op_ms_attention = {infer, prepare, run, DQ_OP_PAST_AT(PAST) | DQ_OP_IDEMPOTENT};
