/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft QAttention: self-attention whose projection is an 8-bit integer product, dequantized as
 *     sum * (input scale * weight scale) + bias
 * in float; each operation rounds. The rest is float as in Attention. */
#include "ops/attention/self_attention.h"
#include "ops/matmul/int_matmul.h"

enum { INPUT, WEIGHT, BIAS, INPUT_SCALE, WEIGHT_SCALE, MASK, INPUT_ZERO, WEIGHT_ZERO, PAST };
static const dq_self_inputs inputs = {.input = INPUT,
                                      .weights = WEIGHT,
                                      .bias = BIAS,
                                      .mask = MASK,
                                      .past = PAST,
                                      .attention_bias = UINT32_MAX,
                                      .past_length = UINT32_MAX};

typedef struct state {
    dq_int_matmul mm; /* first member: `store` casts its address to the state */
    dq_qparam input_scale, weight_scale;
    dq_self_attention attention;
} state;

static dq_status resolve(const dq_op_call *call, state *s, dq_error *err)
{
    DQ_TRY(dq_int_matmul_infer(call, INPUT, WEIGHT, INPUT_ZERO, WEIGHT_ZERO, &s->mm, err));
    DQ_TRY(dq_qparam_resolve(call, INPUT_SCALE, INPUT, DQ_QPARAM_ROWS, &s->mm.s, &s->input_scale, err));
    DQ_TRY(dq_qparam_resolve(call, WEIGHT_SCALE, WEIGHT, DQ_QPARAM_COLUMNS, &s->mm.s, &s->weight_scale, err));
    if (!s->input_scale.single || !s->mm.a_zero.single)
        return dq_call_fail_input(call, err, s->input_scale.single ? INPUT_ZERO : INPUT_SCALE,
                                  "has more than 1 element");
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state s = {0};
    DQ_TRY(dq_self_attention_infer(call, &inputs, &s.attention, err));
    return resolve(call, &s, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(dq_self_attention_infer(call, &inputs, &s->attention, err));
    DQ_TRY(resolve(call, s, err));
    DQ_TRY(dq_int_matmul_prepare(call, true, &s->mm, err));
    return dq_self_attention_prepare(call, &s->attention, err);
}

static void store(const dq_int_sums *sums)
{
    const dq_op_call *call = sums->call;
    const state *s = (const state *)(const void *)sums->mm;
    const dq_tensor *bias = call->in[BIAS];
    float *to = dq_self_attention_projected(call, &s->attention);
    float input_scale = (float)dq_qparam_scale(call, &s->input_scale, 0);
    size_t n = s->mm.s.n;
    float factors[DQ_GEMM_S8_NR_MAX], add[DQ_GEMM_S8_NR_MAX];
    for (size_t j = 0; j < sums->cols; j++) {
        size_t col = sums->col + j;
        factors[j] = input_scale * (float)dq_qparam_scale(call, &s->weight_scale, col * s->weight_scale.step);
        add[j] = (float)dq_tensor_get_double(bias, col);
    }
    to += (sums->batch * s->mm.m + sums->row) * n + sums->col;
    for (size_t i = 0; i < sums->rows; i++)
        call->kernels->dequantize_columns_f32(sums->c + i * sums->c_stride, sums->cols, factors, add,
                                              to + i * n);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    dq_int_matmul_run(call, &s->mm, store);
    return dq_self_attention_run(call, &s->attention, err);
}

const dq_op_impl dq_op_qattention = {infer, prepare, run, 0};
