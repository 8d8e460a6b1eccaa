/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft MatMulIntegerToFloat and DynamicQuantizeMatMul: an 8-bit integer matrix product, dequantized,
 *     y = sum * (a_scale * b_scale) + bias,
 * with float roundings as in ONNX Runtime: of the sum, of the product of the scales, of their product, and of
 * the addition. A float16 result is rounded once more. DynamicQuantizeMatMul quantizes A by its range. */
#include "base/checked.h"
#include "base/codec.h"
#include "ops/matmul/int_matmul.h"
#include "ops/quantize/dynamic_quantize.h"

#include <string.h>

enum { MAX_INPUTS = 7 };

/* Input numbers. */
typedef struct layout {
    uint32_t a, b, a_scale, b_scale, a_zero, b_zero, bias;
} layout;
static const layout to_float = {
    .a = 0, .b = 1, .a_scale = 2, .b_scale = 3, .a_zero = 4, .b_zero = 5, .bias = 6};
/* a_scale and a_zero are computed in the run: their numbers follow those of the operator's inputs */
static const layout dynamic = {
    .a = 0, .b = 1, .b_scale = 2, .b_zero = 3, .bias = 4, .a_scale = 5, .a_zero = 6};

typedef struct state {
    dq_int_matmul mm; /* first member: `store` casts its address to the state */
    const layout *at;
    dq_qparam a_scale, b_scale;
    bool bias_broadcast; /* one bias for all columns */
    dq_dynamic_offsets offsets;
} state;

/* Sets *v to the call with quantized A as inputs. */
static void look(const dq_op_call *call, const layout *at, dq_dynamic_call *v)
{
    dq_dynamic_bind(call, MAX_INPUTS, at->a, at->a_scale, at->a_zero, v);
}

/* ---- Planning ----------------------------------------------------------------------------------------- */

static dq_status resolve_bias(const dq_dynamic_call *v, uint32_t at, state *st, dq_error *err)
{
    const dq_tensor *bias = v->in[at];
    const dq_matmul_shape *s = &st->mm.s;
    char text[DQ_SHAPE_TEXT];
    if (!bias)
        return DQ_OK;
    st->bias_broadcast = bias->count == 1;
    if (bias->count == 1 || (bias->count == s->n && bias->rank == 1))
        return DQ_OK;
    return dq_call_fail_input(&v->call, err, at, "has shape %s, expected [%zu], one a column",
                              dq_shape_text(bias->rank, bias->dims, text), s->n);
}

static dq_status resolve(const dq_dynamic_call *v, const layout *at, state *st, dq_error *err)
{
    DQ_TRY(dq_int_matmul_infer(&v->call, at->a, at->b, at->a_zero, at->b_zero, &st->mm, err));
    DQ_TRY(dq_qparam_resolve(&v->call, at->a_scale, at->a, DQ_QPARAM_ROWS, &st->mm.s, &st->a_scale, err));
    DQ_TRY(dq_qparam_resolve(&v->call, at->b_scale, at->b, DQ_QPARAM_COLUMNS, &st->mm.s, &st->b_scale, err));
    return resolve_bias(v, at->bias, st, err);
}

static dq_status infer_with(dq_op_call *call, const layout *at, dq_error *err)
{
    dq_dynamic_call v;
    state st = {0};
    look(call, at, &v);
    DQ_TRY(resolve(&v, at, &st, err));
    return dq_call_output(call, 0, v.in[at->b_scale]->dtype, st.mm.s.rank, st.mm.s.dims, err);
}

static dq_status prepare_with(dq_op_call *call, const layout *at, dq_error *err)
{
    dq_dynamic_call v;
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *st = call->state;
    st->at = at;
    look(call, at, &v);
    DQ_TRY(resolve(&v, at, st, err));
    DQ_TRY(dq_int_matmul_prepare(&v.call, st->a_scale.single, &st->mm, err));
    return dq_dynamic_reserve(call, at->a, &v, &st->offsets, err);
}

/* ---- Running ------------------------------------------------------------------------------------------ */

/* Scales and biases of the columns of a block of sums. */
typedef struct columns {
    float scales[DQ_GEMM_S8_NR_MAX], bias[DQ_GEMM_S8_NR_MAX];
} columns;

static void find_columns(const dq_int_sums *sums, const state *st, columns *to)
{
    const dq_op_call *call = sums->call;
    const dq_tensor *bias = call->in[st->at->bias];
    size_t b_at = dq_qparam_offset(&st->b_scale, &st->mm.s, sums->batch);
    const bool floats = bias && bias->dtype == DQ_FLOAT && !st->bias_broadcast;
    for (size_t j = 0; j < sums->cols; j++)
        to->scales[j] =
            j > 0 && st->b_scale.single
                ? to->scales[0]
                : (float)dq_qparam_scale(call, &st->b_scale, b_at + (sums->col + j) * st->b_scale.step);
    if (floats)
        memcpy(to->bias, dq_data(bias, float) + sums->col, sums->cols * sizeof(float));
    for (size_t j = 0; bias && !floats && j < sums->cols; j++)
        to->bias[j] = (float)dq_tensor_get_double(bias, st->bias_broadcast ? 0 : sums->col + j);
}

static void store(const dq_int_sums *sums)
{
    const state *st = (const state *)(const void *)sums->mm;
    const dq_op_call *call = sums->call;
    const dq_tensor *y = call->out[0];
    size_t n = st->mm.s.n, cols = sums->cols, from = (sums->batch * st->mm.s.m + sums->row) * n + sums->col;
    size_t scale_at = dq_qparam_offset(&st->a_scale, &st->mm.s, sums->batch) + sums->row * st->a_scale.step;
    float factors[DQ_GEMM_S8_NR_MAX], halves[DQ_GEMM_S8_NR_MAX];
    columns shared;
    find_columns(sums, st, &shared);
    const float *bias = call->in[st->at->bias] ? shared.bias : NULL;
    for (size_t i = 0; i < sums->rows; i++, from += n) {
        const int32_t *c = sums->c + i * sums->c_stride;
        float *to = y->dtype == DQ_FLOAT ? dq_data(y, float) + from : halves;
        if (i == 0 || !st->a_scale.single) {
            float a_scale = (float)dq_qparam_scale(call, &st->a_scale, scale_at + i * st->a_scale.step);
            for (size_t j = 0; j < cols; j++)
                factors[j] = a_scale * shared.scales[j];
        }
        call->kernels->dequantize_columns_f32(c, cols, factors, bias, to);
        if (to == halves)
            call->kernels->convert_f32_f16(halves, cols, dq_data(y, uint16_t) + from);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *st = call->state;
    dq_dynamic_call v;
    look(call, st->at, &v);
    dq_dynamic_quantize_operand(call, st->at->a, &st->offsets, &v);
    dq_int_matmul_run(&v.call, &st->mm, store);
    return DQ_OK;
}

static dq_status infer_to_float(dq_op_call *call, dq_error *err)
{
    return infer_with(call, &to_float, err);
}

static dq_status prepare_to_float(dq_op_call *call, dq_error *err)
{
    return prepare_with(call, &to_float, err);
}

static dq_status infer_dynamic(dq_op_call *call, dq_error *err)
{
    return infer_with(call, &dynamic, err);
}

static dq_status prepare_dynamic(dq_op_call *call, dq_error *err)
{
    return prepare_with(call, &dynamic, err);
}

const dq_op_impl dq_op_matmul_integer_to_float = {infer_to_float, prepare_to_float, run, 0};
const dq_op_impl dq_op_dynamic_quantize_matmul = {infer_dynamic, prepare_dynamic, run, 0};
