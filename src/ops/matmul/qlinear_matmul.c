/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearMatMul: y = saturate(round(sum * a_scale * b_scale / y_scale) + y_zero_point), rounded once, with
 * sum = sum of (a - a_zero_point)(b - b_zero_point). For 8-bit integers the sum is an int32 that wraps, as
 * the standard allows. With a float8 operand it is a sum of real numbers (matmul_float8.h). A float8 result
 * is sum * a_scale * b_scale / y_scale + y_zero_point, rounded once and saturated. Scales of all types are
 * used as doubles. */
#include "base/codec.h"
#include "base/exact.h"
#include "ops/matmul/int_matmul.h"
#include "ops/matmul/matmul_float8.h"

#include <math.h>
#include <string.h>

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };

/* A parameter of the result: one element, or a tensor that broadcasts to the result. */
typedef struct broadcast {
    size_t batch[DQ_MAX_RANK], row, col; /* strides in elements */
} broadcast;

typedef struct params {
    dq_qparam a_scale, b_scale;
    broadcast y_scale, y_zero;
    bool same_rows; /* all parameters are the same for all rows */
} params;

typedef struct state {
    dq_int_matmul mm; /* first member: store_sums casts its address to the state */
    dq_matmul_float8 float8_matmul;
    bool is_float8;
    params p;
} state;

/* ---- Planning ----------------------------------------------------------------------------------------- */

static dq_status resolve_broadcast(const dq_op_call *call, uint32_t input, const dq_matmul_shape *s,
                                   broadcast *out, dq_error *err)
{
    const dq_tensor *t = call->in[input];
    memset(out, 0, sizeof *out);
    if (t->count == 1)
        return DQ_OK;
    bool fits = t->rank <= s->rank;
    for (size_t i = 0; fits && i < t->rank; i++)
        fits = t->dims[i] == 1 || t->dims[i] == s->dims[s->rank - t->rank + i];
    if (!fits) {
        char text[DQ_SHAPE_TEXT], expected[DQ_SHAPE_TEXT];
        return dq_call_fail_input(
            call, err, input,
            "has shape %s, expected 1 element or a shape that broadcasts to the output's, %s",
            dq_shape_text(t->rank, t->dims, text), dq_shape_text(s->rank, s->dims, expected));
    }
    size_t strides[DQ_MAX_RANK];
    dq_broadcast_strides(t, s->rank, s->dims, strides);
    memcpy(out->batch, strides, s->batch_rank * sizeof *strides);
    size_t at = s->batch_rank;
    out->row = s->a_vector ? 0 : strides[at++];
    out->col = s->b_vector ? 0 : strides[at];
    return DQ_OK;
}

static bool float8(dq_dtype dtype)
{
    return dtype != DQ_INT8 && dtype != DQ_UINT8;
}

static dq_status resolve(const dq_op_call *call, state *st, dq_error *err)
{
    dq_int_matmul *mm = &st->mm;
    params *p = &st->p;
    DQ_TRY(dq_int_matmul_infer(call, A, B, A_ZERO, B_ZERO, mm, err));
    DQ_TRY(dq_qparam_resolve(call, A_SCALE, A, DQ_QPARAM_ROWS, &mm->s, &p->a_scale, err));
    DQ_TRY(dq_qparam_resolve(call, B_SCALE, B, DQ_QPARAM_COLUMNS, &mm->s, &p->b_scale, err));
    DQ_TRY(resolve_broadcast(call, Y_SCALE, &mm->s, &p->y_scale, err));
    DQ_TRY(resolve_broadcast(call, Y_ZERO, &mm->s, &p->y_zero, err));
    p->same_rows = p->a_scale.single && call->in[Y_SCALE]->count == 1 && call->in[Y_ZERO]->count == 1;
    st->is_float8 = float8(call->in[A]->dtype) || float8(call->in[B]->dtype);
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state st;
    DQ_TRY(resolve(call, &st, err));
    return dq_call_output(call, 0, call->in[Y_ZERO]->dtype, st.mm.s.rank, st.mm.s.dims, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *st = call->state;
    DQ_TRY(resolve(call, st, err));
    if (!st->is_float8)
        return dq_int_matmul_prepare(call, st->p.same_rows, &st->mm, err);
    st->float8_matmul.s = st->mm.s;
    st->float8_matmul.a = A;
    st->float8_matmul.b = B;
    st->float8_matmul.a_zero = st->mm.a_zero;
    st->float8_matmul.b_zero = st->mm.b_zero;
    return dq_matmul_float8_prepare(call, &st->float8_matmul, err);
}

/* ---- Scaling sums ------------------------------------------------------------------------------------- */

/* Offsets of the parameters of a row of the result. */
typedef struct row_params {
    const dq_op_call *call;
    const state *st;
    double a_scale;
    size_t b_scale_at, y_scale_at, y_zero_at; /* in elements, for column 0 */
} row_params;

static row_params row_params_of(const dq_op_call *call, const state *st, size_t batch, size_t row)
{
    const params *p = &st->p;
    const dq_matmul_shape *s = &st->mm.s;
    row_params at = {.call = call, .st = st};
    at.a_scale =
        dq_qparam_scale(call, &p->a_scale, dq_qparam_offset(&p->a_scale, s, batch) + row * p->a_scale.step);
    at.b_scale_at = dq_qparam_offset(&p->b_scale, s, batch);
    at.y_scale_at = dq_matmul_offset(s, batch, p->y_scale.batch) + row * p->y_scale.row;
    at.y_zero_at = dq_matmul_offset(s, batch, p->y_zero.batch) + row * p->y_zero.row;
    return at;
}

static double b_scale_at(const row_params *at, size_t col)
{
    const params *p = &at->st->p;
    return dq_qparam_scale(at->call, &p->b_scale, at->b_scale_at + col * p->b_scale.step);
}

static double y_scale_at(const row_params *at, size_t col)
{
    return dq_tensor_get_double(at->call->in[Y_SCALE], at->y_scale_at + col * at->st->p.y_scale.col);
}

/* Requantizes a sum to float8. The error of the double result is below `error`. If both ends of that interval
 * round to one float8 value, it is exact; else exact arithmetic decides. */
static uint8_t float8_of(const row_params *at, dq_dtype dtype, double sum, size_t col, double zero)
{
    const double b = b_scale_at(at, col), y = y_scale_at(at, col), scaled = sum * (at->a_scale * b / y);
    const double v = scaled + zero, error = (fabs(scaled) + fabs(zero)) * 0x1p-50;
    uint32_t low = dq_encode_float(dtype, dq_round_to_odd(v - error), true, DQ_ROUND_NEAREST);
    uint32_t high = dq_encode_float(dtype, dq_round_to_odd(v + error), true, DQ_ROUND_NEAREST);
    if (low == high || !(error > 0))
        return (uint8_t)low;
    double exact = dq_exact_quotient(sum, at->a_scale, b, zero * y, y);
    return (uint8_t)dq_encode_float(dtype, dq_round_to_odd(exact == 0 ? 0 : exact), true, DQ_ROUND_NEAREST);
}

/* Requantizes one sum, of column `col`, and writes it to element `index` of the output. */
static void put(const row_params *at, size_t index, size_t col, double sum)
{
    const dq_tensor *y = at->call->out[0], *zero = at->call->in[Y_ZERO];
    double zero_point = dq_tensor_get_double(zero, at->y_zero_at + col * at->st->p.y_zero.col);
    uint8_t *out = (uint8_t *)y->data + index;
    if (float8(y->dtype)) {
        *out = float8_of(at, y->dtype, sum, col, zero_point);
        return;
    }
    double a = at->a_scale, b = b_scale_at(at, col), y_scale = y_scale_at(at, col),
           scaled = sum * (a * b / y_scale);
    if (fabs(scaled) < 512 && fabs(scaled - rint(scaled)) >= DQ_NEARLY_HALF)
        scaled = dq_exact_quotient(sum, a, b, 0, y_scale);
    double lo = y->dtype == DQ_INT8 ? -128 : 0, hi = lo + 255, v = rint(scaled) + zero_point;
    v = v > lo ? v : lo; /* also for NaN */
    v = v < hi ? v : hi;
    *out = (uint8_t)(int)v;
}

static void store_row(const dq_op_call *call, const void *arg, size_t batch, size_t row, double *sums)
{
    const state *st = arg;
    const dq_matmul_shape *s = &st->mm.s;
    row_params at = row_params_of(call, st, batch, row);
    for (size_t j = 0; j < s->n; j++)
        put(&at, (batch * s->m + row) * s->n + j, j, sums[j]);
}

/* Scales of the columns of a tile. */
typedef struct multipliers {
    double scale[DQ_GEMM_S8_NR_MAX];
    float b[DQ_GEMM_S8_NR_MAX], y[DQ_GEMM_S8_NR_MAX];
} multipliers;

/* Requantization parameters of `cols` columns from `col` on. They point into *m. */
static dq_requantize_to qvalues_of(const row_params *at, size_t col, size_t cols, multipliers *m)
{
    const dq_op_call *call = at->call;
    const int32_t lo = call->out[0]->dtype == DQ_INT8 ? -128 : 0;
    const bool single = at->st->p.b_scale.single && at->st->p.y_scale.col == 0;
    for (size_t j = 0; j < cols; j++) {
        const bool same = j > 0 && single;
        m->b[j] = same ? m->b[0] : (float)b_scale_at(at, col + j);
        m->y[j] = same ? m->y[0] : (float)y_scale_at(at, col + j);
        m->scale[j] = same ? m->scale[0] : at->a_scale * (double)m->b[j] / (double)m->y[j];
    }
    const dq_factors factors = {at->a_scale, m->b, m->y, 1, 1};
    return (dq_requantize_to){.scale = m->scale,
                              .factors = factors,
                              .exact = dq_exact_products(m->scale, &factors, single ? 1 : cols),
                              .zero_point = (int32_t)dq_tensor_get_int(call->in[Y_ZERO], at->y_zero_at),
                              .lo = lo,
                              .hi = lo + 255};
}

static bool general(const dq_int_sums *sums, const state *st)
{
    return float8(sums->call->out[0]->dtype) || st->p.y_zero.col != 0;
}

/* Requantizes a block of sums whose parameters are the same for all rows. */
static void store_same_rows(const dq_int_sums *sums, const state *st)
{
    const dq_op_call *call = sums->call;
    multipliers m;
    size_t n = sums->mm->s.n, from = (sums->batch * sums->mm->m + sums->row) * n + sums->col;
    const row_params at = row_params_of(call, st, sums->batch, 0);
    dq_requantize_to to = qvalues_of(&at, sums->col, sums->cols, &m);
    to.out = (uint8_t *)call->out[0]->data + from;
    to.out_stride = n;
    call->kernels->requantize_tile_s32(sums->c, sums->c_stride, sums->rows, sums->cols, &to);
}

static void store_sums(const dq_int_sums *sums)
{
    const state *st = (const state *)(const void *)sums->mm;
    const dq_op_call *call = sums->call;
    const bool any = general(sums, st);
    if (!any && st->p.same_rows) {
        store_same_rows(sums, st);
        return;
    }
    for (size_t i = 0; i < sums->rows; i++) {
        size_t row = sums->row + i, from = (sums->batch * sums->mm->m + row) * sums->mm->s.n + sums->col;
        const int32_t *c = sums->c + i * sums->c_stride;
        const row_params at = row_params_of(call, st, sums->batch, st->p.same_rows ? 0 : row);
        if (!any) {
            multipliers m;
            const dq_requantize_to to = qvalues_of(&at, sums->col, sums->cols, &m);
            call->kernels->requantize_s32(c, sums->cols, &to, 0, 1, (uint8_t *)call->out[0]->data + from);
            continue;
        }
        for (size_t j = 0; j < sums->cols; j++)
            put(&at, from + j, sums->col + j, (double)c[j]);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *st = call->state;
    if (st->is_float8)
        dq_matmul_float8_run(call, &st->float8_matmul, store_row, st);
    else
        dq_int_matmul_run(call, &st->mm, store_sums);
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_matmul = {infer, prepare, run, 0};
