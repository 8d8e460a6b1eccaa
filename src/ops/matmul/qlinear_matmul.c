/* QLinearMatMul: y = saturate(round(sum * (a_scale * b_scale / y_scale)) + y_zero_point), sum = sum of
 * (a - a_zero_point)(b - b_zero_point). Between 8-bit integers the sum is an int32 that wraps, as the
 * standard allows; with a float8 operand it is a sum of values (wide_matmul.h). A float8 result is the value
 * with its zero point added, rounded once, saturated. Scales are used as doubles, whatever their type. */
#include "base/codec.h"
#include "ops/matmul/int_matmul.h"
#include "ops/matmul/wide_matmul.h"

#include <math.h>
#include <string.h>

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };

/* A parameter of the result: one element, or a shape that broadcasts to the result's. */
typedef struct spread {
    size_t batch[DQ_MAX_RANK], row, col; /* steps in elements */
} spread;

typedef struct params {
    dq_qparam a_scale, b_scale;
    spread y_scale, y_zero;
    bool same_rows; /* no parameter differs from row to row */
} params;

typedef struct state {
    dq_int_matmul mm; /* first: the sums' callback gets at the state by it */
    dq_wide_matmul wide;
    bool is_wide;
    params p;
} state;

/* ---- Planning ----------------------------------------------------------------------------------------- */

static dq_status resolve_spread(const dq_op_call *call, uint32_t input, const dq_matmul_shape *s, spread *out,
                                dq_error *err)
{
    const dq_tensor *t = call->in[input];
    memset(out, 0, sizeof *out);
    if (t->count == 1)
        return DQ_OK;
    bool fits = t->rank <= s->rank;
    for (size_t i = 0; fits && i < t->rank; i++)
        fits = t->dims[i] == 1 || t->dims[i] == s->dims[s->rank - t->rank + i];
    if (!fits) {
        char text[DQ_SHAPE_TEXT], wanted[DQ_SHAPE_TEXT];
        return dq_call_fail_input(
            call, err, input, "has shape %s, wanted 1 element or a shape that broadcasts to the output's, %s",
            dq_shape_text(t->rank, t->dims, text), dq_shape_text(s->rank, s->dims, wanted));
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
    DQ_TRY(resolve_spread(call, Y_SCALE, &mm->s, &p->y_scale, err));
    DQ_TRY(resolve_spread(call, Y_ZERO, &mm->s, &p->y_zero, err));
    p->same_rows = p->a_scale.single && call->in[Y_SCALE]->count == 1 && call->in[Y_ZERO]->count == 1;
    st->is_wide = float8(call->in[A]->dtype) || float8(call->in[B]->dtype);
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
    if (!st->is_wide)
        return dq_int_matmul_prepare(call, st->p.same_rows, &st->mm, err);
    st->wide.s = st->mm.s;
    st->wide.a = A;
    st->wide.b = B;
    st->wide.a_zero = st->mm.a_zero;
    st->wide.b_zero = st->mm.b_zero;
    return dq_wide_matmul_prepare(call, &st->wide, err);
}

/* ---- Scaling sums ------------------------------------------------------------------------------------- */

/* Where the parameters of a row of the result are. */
typedef struct place {
    const dq_op_call *call;
    const state *st;
    double a_scale;
    size_t b_scale_at, y_scale_at, y_zero_at; /* elements, of column 0 */
} place;

static place place_of(const dq_op_call *call, const state *st, size_t batch, size_t row)
{
    const params *p = &st->p;
    const dq_matmul_shape *s = &st->mm.s;
    place at = {.call = call, .st = st};
    at.a_scale =
        dq_qparam_scale(call, &p->a_scale, dq_qparam_offset(&p->a_scale, s, batch) + row * p->a_scale.step);
    at.b_scale_at = dq_qparam_offset(&p->b_scale, s, batch);
    at.y_scale_at = dq_matmul_offset(s, batch, p->y_scale.batch) + row * p->y_scale.row;
    at.y_zero_at = dq_matmul_offset(s, batch, p->y_zero.batch) + row * p->y_zero.row;
    return at;
}

static double scale_at(const place *at, size_t col)
{
    const params *p = &at->st->p;
    double b = dq_qparam_scale(at->call, &p->b_scale, at->b_scale_at + col * p->b_scale.step);
    double y = dq_tensor_get_double(at->call->in[Y_SCALE], at->y_scale_at + col * p->y_scale.col);
    return at->a_scale * b / y;
}

/* Element `col` of the row from its scaled sum. */
static void put(const place *at, size_t index, size_t col, double scaled)
{
    const dq_tensor *y = at->call->out[0], *zero = at->call->in[Y_ZERO];
    double zero_point = dq_tensor_get_double(zero, at->y_zero_at + col * at->st->p.y_zero.col);
    uint8_t *out = (uint8_t *)y->data + index;
    if (float8(y->dtype)) {
        *out =
            (uint8_t)dq_encode_float(y->dtype, dq_round_to_odd(scaled + zero_point), true, DQ_ROUND_NEAREST);
        return;
    }
    double lo = y->dtype == DQ_INT8 ? -128 : 0, hi = lo + 255, v = rint(scaled) + zero_point;
    v = v > lo ? v : lo; /* also for NaN */
    v = v < hi ? v : hi;
    *out = (uint8_t)(int)v;
}

static void store_row(const dq_op_call *call, const void *arg, size_t batch, size_t row, double *sums)
{
    const state *st = arg;
    const dq_matmul_shape *s = &st->mm.s;
    place at = place_of(call, st, batch, row);
    for (size_t j = 0; j < s->n; j++)
        put(&at, (batch * s->m + row) * s->n + j, j, sums[j] * scale_at(&at, j));
}

static bool general(const dq_int_sums *sums, const state *st)
{
    return float8(sums->call->out[0]->dtype) || st->p.y_zero.col != 0;
}

/* Sums whose parameters are the same for all rows. */
static void store_same_rows(const dq_int_sums *sums, const state *st)
{
    const dq_op_call *call = sums->call;
    const dq_tensor *y = call->out[0];
    double scales[DQ_QGEMM_NR_MAX];
    size_t n = sums->mm->s.n, from = (sums->batch * sums->mm->m + sums->row) * n + sums->col;
    place at = place_of(call, st, sums->batch, 0);
    for (size_t j = 0; j < sums->cols; j++)
        scales[j] = j > 0 && st->p.b_scale.single ? scales[0] : scale_at(&at, sums->col + j);
    int32_t lo = y->dtype == DQ_INT8 ? -128 : 0;
    dq_requantize_to to = {.scale = scales,
                           .zero_point = (int32_t)dq_tensor_get_int(call->in[Y_ZERO], at.y_zero_at),
                           .lo = lo,
                           .hi = lo + 255,
                           .out = (uint8_t *)y->data + from,
                           .out_stride = n};
    call->kernels->requantize_tile(sums->c, sums->c_stride, sums->rows, sums->cols, &to);
}

static void store_sums(const dq_int_sums *sums)
{
    const state *st = (const state *)(const void *)sums->mm;
    const dq_op_call *call = sums->call;
    const dq_tensor *y = call->out[0];
    double scales[DQ_QGEMM_NR_MAX];
    bool any = general(sums, st);
    int32_t lo = y->dtype == DQ_INT8 ? -128 : 0;
    place at;
    if (!any && st->p.same_rows) {
        store_same_rows(sums, st);
        return;
    }
    for (size_t i = 0; i < sums->rows; i++) {
        size_t row = sums->row + i, from = (sums->batch * sums->mm->m + row) * sums->mm->s.n + sums->col;
        const int32_t *c = sums->c + i * sums->c_stride;
        if (i == 0 || !st->p.same_rows) {
            at = place_of(call, st, sums->batch, st->p.same_rows ? 0 : row);
            for (size_t j = 0; j < sums->cols; j++)
                scales[j] = scale_at(&at, sums->col + j);
        }
        if (!any) {
            int32_t zero = (int32_t)dq_tensor_get_int(call->in[Y_ZERO], at.y_zero_at);
            call->kernels->requantize(c, sums->cols, scales, 1, zero, lo, lo + 255,
                                      (uint8_t *)y->data + from);
            continue;
        }
        for (size_t j = 0; j < sums->cols; j++)
            put(&at, from + j, sums->col + j, (double)c[j] * scales[j]);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *st = call->state;
    if (st->is_wide)
        dq_wide_matmul_run(call, &st->wide, store_row, st);
    else
        dq_int_matmul_run(call, &st->mm, store_sums);
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_matmul = {infer, prepare, run, 0};
