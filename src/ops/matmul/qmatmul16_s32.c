/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/qmatmul16_s32.h"

#include "ops/matmul/qgemm16_pack.h"

static bool is_8_bits(const dq_tensor *t)
{
    return t->dtype == DQ_INT8 || t->dtype == DQ_UINT8;
}

/* The largest magnitude of a value of the type minus its zero points (input `zero`): for all zero points of
 * the type, unless they are constant. */
static uint64_t largest_size(const dq_op_call *call, uint32_t zero)
{
    const dq_tensor *t = call->in[zero];
    const dq_dtype_row *row = dq_dtype_get(t->dtype);
    int64_t largest = row->max - row->min;
    if (!dq_call_constant(call, zero))
        return (uint64_t)largest;
    largest = 0;
    for (size_t i = 0; i < t->count; i++) {
        const int64_t below = dq_tensor_get_int(t, i) - row->min, above = row->max - dq_tensor_get_int(t, i);
        largest = below > largest ? below : largest;
        largest = above > largest ? above : largest;
    }
    return (uint64_t)largest;
}

bool dq_qmatmul16_s32_fits(const dq_op_call *call, size_t k)
{
    const dq_tensor *y_zero = dq_call_in(call, DQ_Q16_Y_ZERO);
    if (!is_8_bits(call->in[DQ_Q16_X]) || !is_8_bits(call->in[DQ_Q16_W]) || dq_call_in(call, DQ_Q16_BIAS) ||
        (y_zero && !is_8_bits(y_zero)))
        return false;
    const uint64_t each = largest_size(call, DQ_Q16_X_ZERO) * largest_size(call, DQ_Q16_W_ZERO);
    return k <= INT32_MAX / each;
}

dq_status dq_qmatmul16_s32_prepare(dq_op_call *call, const dq_matmul_shape *s, bool transposed,
                                   dq_qmatmul16_s32 *p, dq_error *err)
{
    p->mm.s = *s;
    p->mm.a = DQ_Q16_X;
    p->mm.b = DQ_Q16_W;
    p->mm.b_transposed = transposed;
    DQ_TRY(dq_qparam_resolve(call, DQ_Q16_X_ZERO, DQ_Q16_X, DQ_QPARAM_ROWS, s, &p->mm.a_zero, err));
    p->mm.b_zero = (dq_qparam){.input = DQ_Q16_W_ZERO, .present = true};
    p->mm.b_zero.single = call->in[DQ_Q16_W_ZERO]->count == 1;
    p->mm.b_zero.step = !p->mm.b_zero.single;
    const dq_op_call outer = *call; /* keeps the algorithm of the step: the row of matmul_s16 */
    DQ_TRY(dq_int_matmul_prepare(call, true, &p->mm, err));
    dq_call_take_algorithm(call, &outer);
    return DQ_OK;
}

static void store_floats(const dq_int_sums *sums, float *y)
{
    const dq_tensor *w_scale = sums->call->in[DQ_Q16_W_SCALE];
    const float factor = (float)dq_q16_factor(sums->call);
    float scales[DQ_GEMM_S8_NR_MAX];
    for (size_t j = 0; j < sums->cols; j++)
        scales[j] = factor * dq_data(w_scale, float)[w_scale->count == 1 ? 0 : sums->col + j];
    for (size_t i = 0; i < sums->rows; i++)
        sums->call->kernels->dequantize_columns_f32(sums->c + i * sums->c_stride, sums->cols, scales, NULL,
                                                    y + i * sums->mm->s.n);
}

static void store_quantized(const dq_int_sums *sums, uint8_t *y)
{
    const dq_op_call *call = sums->call;
    double workspace[3 * DQ_GEMM_S8_NR_MAX];
    dq_q16_terms terms = dq_q16_terms_in(workspace, DQ_GEMM_S8_NR_MAX);
    dq_q16_sums range = dq_qgemm16_sums(call);
    const double factor = dq_q16_factor(call);
    const bool single = call->in[DQ_Q16_W_SCALE]->count == 1;
    for (size_t j = 0; j < sums->cols; j++)
        if (j > 0 && single)
            terms.scale[j] = terms.scale[0];
        else
            dq_q16_term(call, factor, sums->col + j, 0, j, &terms);
    dq_q16_sums_by(call, factor, &terms, 0, sums->col, &range);
    const dq_requantize_to to = {.scale = terms.scale,
                                 .factors = range.factors,
                                 .exact = dq_exact_products(terms.scale, &range.factors, sums->cols),
                                 .zero_point = range.zero_point,
                                 .lo = range.lo,
                                 .hi = range.hi,
                                 .out = y,
                                 .out_stride = sums->mm->s.n};
    call->kernels->requantize_tile_s32(sums->c, sums->c_stride, sums->rows, sums->cols, &to);
}

static void store(const dq_int_sums *sums)
{
    const dq_tensor *y = sums->call->out[0];
    const size_t at = (sums->batch * sums->mm->m + sums->row) * sums->mm->s.n + sums->col;
    if (y->dtype == DQ_FLOAT)
        store_floats(sums, dq_data(y, float) + at);
    else
        store_quantized(sums, (uint8_t *)y->data + at);
}

void dq_qmatmul16_s32_run(const dq_op_call *call, const dq_qmatmul16_s32 *p)
{
    dq_int_matmul_run(call, &p->mm, store);
}
