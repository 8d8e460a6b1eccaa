/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft QGemm: sum = (A' - za)(B' - zb) + C in int32, modulo 2^32. A' and B' are A and B, transposed
 * if the attributes say so. C is int32 with the scale alpha * sa * sb of the products. With y_scale the
 * result is saturate(round(sum * alpha * sa * sb / sy) + zy), rounded once as in QLinearMatMul. Without
 * y_scale it is float(sum) * float(float(alpha * sa) * sb).
 *
 * dqrun's QGemm may have C and a float bias for each column. With sum without C, the result is then
 *     saturate(round((sum * alpha * sa * sb + bias) / sy) + zy),
 * rounded once. C must be the bias rounded to int32 in the scale of the products. Sums begin with C, and
 * requantization adds the rest of the bias (dq_requantize_bias). */
#include "ops/matmul/int_matmul.h"

#include <math.h>

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO, FLOAT_BIAS };

typedef struct state {
    dq_int_matmul mm; /* first member: `store` casts its address to the state */
    dq_qparam b_scale;
    double alpha;
    size_t c_row, c_col; /* strides of C in elements */
    double *shifts;      /* for each column, as in dq_requantize_bias; NULL: no float bias */
} state;

/* ---- Planning ----------------------------------------------------------------------------------------- */

static dq_status resolve_shape(const dq_op_call *call, dq_int_matmul *mm, dq_error *err)
{
    const dq_tensor *a = call->in[A], *b = call->in[B];
    char text[DQ_SHAPE_TEXT];
    for (uint32_t i = A; i <= B; i += B)
        if (call->in[i]->rank != 2)
            return dq_call_fail_input(call, err, i, "has shape %s, expected a matrix",
                                      dq_shape_text(call->in[i]->rank, call->in[i]->dims, text));
    mm->a = A;
    mm->b = B;
    mm->a_transposed = dq_node_int(call->node, "transA", 0) != 0;
    mm->b_transposed = dq_node_int(call->node, "transB", 0) != 0;
    int64_t m = a->dims[mm->a_transposed], k = a->dims[!mm->a_transposed];
    int64_t n = b->dims[!mm->b_transposed], b_k = b->dims[mm->b_transposed];
    if (k != b_k)
        return dq_call_fail_input(call, err, B, "has shape %s, expected %lld in axis %d to go with A",
                                  dq_shape_text(2, b->dims, text), (long long)k, mm->b_transposed);
    mm->s = (dq_matmul_shape){.m = (size_t)m,
                              .k = (size_t)k,
                              .n = (size_t)n,
                              .batches = 1,
                              .a_batches = 1,
                              .b_batches = 1,
                              .rank = 2,
                              .dims = {m, n}};
    return DQ_OK;
}

/* Resolves a parameter of one element or, if `columns` is not 0, one for each of so many columns. */
static dq_status resolve_param(const dq_op_call *call, uint32_t i, size_t columns, dq_qparam *out,
                               dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    *out = (dq_qparam){.input = i, .present = t != NULL, .single = !t || t->count == 1};
    if (out->single)
        return DQ_OK;
    out->step = 1;
    if (columns && t->rank == 1 && t->count == columns)
        return DQ_OK;
    if (columns)
        return dq_call_fail_input(call, err, i, "has %zu elements, expected 1 or %zu (columns of B)",
                                  t->count, columns);
    return dq_call_fail_input(call, err, i, "has %zu elements, expected 1", t->count);
}

static dq_status resolve_c(const dq_op_call *call, state *st, dq_error *err)
{
    const dq_tensor *c = dq_call_in(call, C);
    char text[DQ_SHAPE_TEXT], expected[DQ_SHAPE_TEXT];
    size_t strides[DQ_MAX_RANK];
    if (!c)
        return DQ_OK;
    const int64_t *y = st->mm.s.dims;
    bool fits = c->rank <= 2;
    for (size_t i = 0; fits && i < c->rank; i++)
        fits = c->dims[i] == 1 || c->dims[i] == y[2 - c->rank + i];
    if (!fits)
        return dq_call_fail_input(call, err, C,
                                  "has shape %s, expected one that broadcasts to the output's, %s",
                                  dq_shape_text(c->rank, c->dims, text), dq_shape_text(2, y, expected));
    dq_broadcast_strides(c, 2, y, strides);
    st->c_row = strides[0];
    st->c_col = strides[1];
    st->mm.has_start = st->c_row == 0;
    st->mm.start = C;
    st->mm.start_step = st->c_col;
    return DQ_OK;
}

static dq_status resolve(const dq_op_call *call, state *st, dq_error *err)
{
    dq_int_matmul *mm = &st->mm;
    dq_qparam one;
    DQ_TRY(resolve_shape(call, mm, err));
    DQ_TRY(resolve_param(call, A_ZERO, 0, &mm->a_zero, err));
    DQ_TRY(resolve_param(call, B_ZERO, mm->s.n, &mm->b_zero, err));
    DQ_TRY(resolve_param(call, B_SCALE, mm->s.n, &st->b_scale, err));
    DQ_TRY(resolve_param(call, A_SCALE, 0, &one, err));
    DQ_TRY(resolve_param(call, Y_SCALE, 0, &one, err));
    DQ_TRY(resolve_param(call, Y_ZERO, 0, &one, err));
    if (dq_call_in(call, Y_ZERO) && !dq_call_in(call, Y_SCALE))
        return dq_call_fail_input(call, err, Y_ZERO, "is given without 'y_scale'");
    st->alpha = (double)dq_node_float(call->node, "alpha", 1);
    return resolve_c(call, st, err);
}

static dq_dtype result_type(const dq_op_call *call)
{
    const dq_tensor *zero = dq_call_in(call, Y_ZERO);
    if (!dq_call_in(call, Y_SCALE))
        return DQ_FLOAT;
    return zero ? zero->dtype : call->in[A]->dtype;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state st = {0};
    DQ_TRY(resolve(call, &st, err));
    return dq_call_output(call, 0, result_type(call), 2, st.mm.s.dims, err);
}

/* Computes the difference between the float bias and C for each column. Scales and C must be constant. */
static dq_status find_shifts(dq_op_call *call, state *st, dq_error *err)
{
    static const uint32_t constant[] = {A_SCALE, B_SCALE, C, Y_SCALE, FLOAT_BIAS};
    const size_t n = st->mm.s.n;
    for (size_t i = 0; i < sizeof constant / sizeof *constant; i++)
        if (!dq_call_in(call, constant[i]) || !dq_call_constant(call, constant[i]))
            return dq_call_fail_input(call, err, FLOAT_BIAS,
                                      "is given without constant scales and a constant 'C'");
    const dq_tensor *bias = call->in[FLOAT_BIAS], *c = call->in[C];
    if (c->rank != 1 || c->count != n || bias->rank != 1 || bias->count != n)
        return dq_call_fail_input(call, err, FLOAT_BIAS,
                                  "has %zu elements and 'C' %zu, expected %zu of both (columns of B)",
                                  bias->count, c->count, n);
    st->shifts = DQ_NEW_ARRAY(call->arena, n, double);
    if (!st->shifts)
        return dq_no_memory(err, n, "biases of a product");
    const double a = st->alpha * (double)dq_data(call->in[A_SCALE], float)[0];
    const float y = dq_data(call->in[Y_SCALE], float)[0];
    for (size_t j = 0; j < n; j++) {
        const float b = (float)dq_qparam_scale(call, &st->b_scale, j * st->b_scale.step);
        st->shifts[j] = dq_requantize_shift(dq_data(c, int32_t)[j], dq_data(bias, float)[j], a, b, y);
        if (!isfinite(a * (double)b / (double)y) || !(fabs(st->shifts[j]) <= DQ_MAX_SHIFT))
            return dq_call_fail_input(call, err, FLOAT_BIAS,
                                      "of column %zu is %.9g quanta away from 'C', expected at most 0.5", j,
                                      st->shifts[j]);
    }
    return DQ_OK;
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *st = call->state;
    DQ_TRY(resolve(call, st, err));
    if (dq_call_in(call, FLOAT_BIAS))
        DQ_TRY(find_shifts(call, st, err));
    return dq_int_matmul_prepare(call, true, &st->mm, err);
}

/* ---- Running ------------------------------------------------------------------------------------------ */

enum { ROWS = 16 /* rows that are requantized at once */ };

/* Rows first … first + rows - 1 of a block of sums, plus C. If C is NULL or already in the sums (one row for
 * all), the sums themselves are returned, else `out`. */
static const int32_t *with_c(const dq_int_sums *sums, const state *st, size_t first, size_t rows,
                             int32_t *out)
{
    const dq_tensor *c = dq_call_in(sums->call, C);
    const int32_t *from = sums->c + first * sums->c_stride;
    if (!c || st->mm.has_start)
        return from;
    for (size_t i = 0; i < rows; i++) {
        const int32_t *term =
            dq_data(c, int32_t) + (sums->row + first + i) * st->c_row + sums->col * st->c_col;
        for (size_t j = 0; j < sums->cols; j++)
            out[i * sums->c_stride + j] =
                (int32_t)((uint32_t)from[i * sums->c_stride + j] + (uint32_t)term[j * st->c_col]);
    }
    return out;
}

static void store_quantized(const dq_int_sums *sums, const state *st)
{
    const dq_op_call *call = sums->call;
    const dq_tensor *y = call->out[0], *zero = dq_call_in(call, Y_ZERO);
    double scales[DQ_GEMM_S8_NR_MAX];
    float b_scales[DQ_GEMM_S8_NR_MAX];
    int32_t block[ROWS * DQ_GEMM_S8_NR_MAX], lo = y->dtype == DQ_INT8 ? -128 : 0;
    double a = st->alpha * (double)dq_data(call->in[A_SCALE], float)[0];
    double y_scale = (double)dq_data(call->in[Y_SCALE], float)[0];
    for (size_t j = 0; j < sums->cols; j++) {
        const bool same = j > 0 && st->b_scale.single;
        double b = same ? 0 : dq_qparam_scale(call, &st->b_scale, (sums->col + j) * st->b_scale.step);
        scales[j] = same ? scales[0] : a * b / y_scale;
        b_scales[j] = same ? b_scales[0] : (float)b;
    }
    dq_requantize_to to = {
        .scale = scales,
        .factors = {.a = a, .b = b_scales, .b_step = 1, .y = dq_data(call->in[Y_SCALE], float)},
        .zero_point = zero ? (int32_t)dq_tensor_get_int(zero, 0) : 0,
        .lo = lo,
        .hi = lo + 255,
        .out_stride = st->mm.s.n};
    if (st->shifts)
        to.bias =
            (dq_requantize_bias){st->shifts + sums->col, dq_data(call->in[FLOAT_BIAS], float) + sums->col,
                                 dq_data(call->in[C], int32_t) + sums->col};
    to.exact = !st->shifts && dq_exact_products(scales, &to.factors, st->b_scale.single ? 1 : sums->cols);
    for (size_t i = 0; i < sums->rows; i += ROWS) {
        size_t rows = sums->rows - i < ROWS ? sums->rows - i : ROWS;
        const int32_t *c = with_c(sums, st, i, rows, block);
        to.out = (uint8_t *)y->data + (sums->row + i) * st->mm.s.n + sums->col;
        call->kernels->requantize_tile_s32(c, sums->c_stride, rows, sums->cols, &to);
    }
}

static void store_float(const dq_int_sums *sums, const state *st)
{
    const dq_op_call *call = sums->call;
    int32_t row_sums[DQ_GEMM_S8_NR_MAX];
    float scales[DQ_GEMM_S8_NR_MAX], a = (float)st->alpha * dq_data(call->in[A_SCALE], float)[0];
    for (size_t j = 0; j < sums->cols; j++)
        scales[j] = a * (float)dq_qparam_scale(call, &st->b_scale, (sums->col + j) * st->b_scale.step);
    for (size_t i = 0; i < sums->rows; i++) {
        float *y = dq_data(call->out[0], float) + (sums->row + i) * st->mm.s.n + sums->col;
        const int32_t *c = with_c(sums, st, i, 1, row_sums);
        for (size_t j = 0; j < sums->cols; j++)
            y[j] = (float)c[j] * scales[j];
    }
}

static void store(const dq_int_sums *sums)
{
    const state *st = (const state *)(const void *)sums->mm;
    if (sums->call->out[0]->dtype == DQ_FLOAT)
        store_float(sums, st);
    else
        store_quantized(sums, st);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *st = call->state;
    dq_int_matmul_run(call, &st->mm, store);
    return DQ_OK;
}

const dq_op_impl dq_op_quantized_gemm = {infer, prepare, run, 0};
