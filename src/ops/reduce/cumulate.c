/* SPDX-License-Identifier: Apache-2.0 */
/* CumSum and CumProd along an axis. Floats accumulate in double, and each result is rounded when stored.
 * Integers wrap modulo 2^32 or 2^64. */
#include "ops/lists.h"
#include "ops/rows.h"
#include "ops/widened.h"

enum {
    PART = 16, /* rows per kernel call, so few that their pages stay in the TLB */
    LINES = 4  /* contiguous lines accumulated at a time */
};

typedef struct state {
    bool product, exclusive, reverse;
    size_t n, inner; /* length of the axis, and its stride */
} state;

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_list axis;
    DQ_TRY(dq_list_from_input(call, 1, &axis, err));
    DQ_TRY(dq_list_axes(call, &axis, call->in[0]->rank, err));
    if (axis.count != 1)
        return dq_call_fail_input(call, err, 1, "has %zu elements, expected one axis", axis.count);
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

static dq_status prepare(dq_op_call *call, bool product, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list axis;
    DQ_TRY(dq_list_from_input(call, 1, &axis, err));
    DQ_TRY(dq_list_axes(call, &axis, in->rank, err));
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    size_t at = (size_t)axis.at[0];
    *(state *)call->state = (state){product, dq_node_int(call->node, "exclusive", 0) != 0,
                                    dq_node_int(call->node, "reverse", 0) != 0, (size_t)in->dims[at],
                                    dq_dims_product(in->dims, at + 1, in->rank)};
    return DQ_OK;
}

static void load_floats(const dq_tensor *t, size_t at, size_t n, double *x)
{
    dq_load_doubles(t->dtype, t->data, at, n, x);
}

static void store_floats(dq_tensor *t, size_t at, size_t n, const double *x)
{
    dq_store_floats(t->dtype, t->data, at, n, x, true, DQ_ROUND_NEAREST);
}

/* Replaces x with its result and updates `total`. */
#define TAKE(total, x)                                                                                       \
    do {                                                                                                     \
        const double next = product ? (total) * (x) : (total) + (x);                                         \
        (x) = exclusive ? (total) : next;                                                                    \
        (total) = next;                                                                                      \
    } while (0)

/* Accumulates `count` <= DQ_ROW neighboring lines of any float type, row by row. */
static void lines_of_floats(const dq_op_call *call, size_t base, size_t count)
{
    const state *s = call->state;
    const bool product = s->product, exclusive = s->exclusive;
    double total[DQ_ROW], x[DQ_ROW];
    for (size_t k = 0; k < count; k++)
        total[k] = product;
    for (size_t i = 0; i < s->n; i++) {
        size_t at = base + (s->reverse ? s->n - 1 - i : i) * s->inner;
        load_floats(call->in[0], at, count, x);
        for (size_t k = 0; k < count; k++)
            TAKE(total[k], x[k]);
        store_floats(call->out[0], at, count, x);
    }
}

static void line_of_floats(const dq_op_call *call, size_t base)
{
    const state *s = call->state;
    const bool product = s->product, exclusive = s->exclusive;
    double total = product, x[DQ_ROW];
    for (size_t done = 0, n; done < s->n; done += n) {
        n = s->n - done < DQ_ROW ? s->n - done : DQ_ROW;
        size_t at = base + (s->reverse ? s->n - done - n : done);
        load_floats(call->in[0], at, n, x);
        for (size_t i = 0; i < n; i++)
            TAKE(total, x[s->reverse ? n - 1 - i : i]);
        store_floats(call->out[0], at, n, x);
    }
}

/* Accumulates lines of integers in their own width: each result is the previous one and an element. */
#define CUMULATE_INTEGERS(T)                                                                                 \
    static void lines_of_##T(const dq_op_call *call, size_t base, size_t count)                              \
    {                                                                                                        \
        const state *s = call->state;                                                                        \
        const ptrdiff_t step = s->reverse ? -(ptrdiff_t)s->inner : (ptrdiff_t)s->inner;                      \
        const T *restrict x = dq_data(call->in[0], T) + base + (s->reverse ? (s->n - 1) * s->inner : 0);     \
        T *y = dq_data(call->out[0], T) + base + (s->reverse ? (s->n - 1) * s->inner : 0);                   \
        T total = s->product;                                                                                \
        for (size_t i = 0; i < s->n && s->inner == 1; i++, x += step, y += step) {                           \
            const T next = s->product ? (T)(total * *x) : (T)(total + *x);                                   \
            *y = s->exclusive ? total : next;                                                                \
            total = next;                                                                                    \
        }                                                                                                    \
        if (s->inner == 1)                                                                                   \
            return;                                                                                          \
        for (size_t k = 0; k < count; k++)                                                                   \
            y[k] = s->exclusive ? s->product : x[k];                                                         \
        x += s->exclusive ? 0 : step;                                                                        \
        for (size_t i = 1; i < s->n; i++, x += step, y += step) {                                            \
            T *restrict to = y + step;                                                                       \
            if (s->product)                                                                                  \
                for (size_t k = 0; k < count; k++)                                                           \
                    to[k] = y[k] * x[k];                                                                     \
            else                                                                                             \
                for (size_t k = 0; k < count; k++)                                                           \
                    to[k] = y[k] + x[k];                                                                     \
        }                                                                                                    \
    }

CUMULATE_INTEGERS(uint32_t)
CUMULATE_INTEGERS(uint64_t)

/* Accumulates sums of neighboring lines of float. */
static void sums_of_lines(const dq_op_call *call, size_t base, size_t count)
{
    const state *s = call->state;
    const ptrdiff_t step = s->reverse ? -(ptrdiff_t)s->inner : (ptrdiff_t)s->inner;
    double total[DQ_ROW] = {0};
    const float *x = dq_data(call->in[0], float) + base + (s->reverse ? (s->n - 1) * s->inner : 0);
    float *y = dq_data(call->out[0], float) + (x - dq_data(call->in[0], float));
    for (size_t i = 0; i < s->n; i += PART, x += PART * step, y += PART * step)
        call->kernels->reduce_axis_mixed->cumulate_f32(x, step, s->n - i < PART ? s->n - i : PART, count,
                                                       s->exclusive, y, total);
}

/* Accumulates sums of LINES contiguous lines of float. Their dependency chains are interleaved. */
static void sums_along(const dq_op_call *call, size_t base)
{
    const state *s = call->state;
    const size_t n = s->n;
    const float *restrict x = dq_data(call->in[0], float) + base;
    float *restrict y = dq_data(call->out[0], float) + base;
    double total[LINES] = {0};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0, at = s->reverse ? n - 1 - i : i; k < LINES; k++, at += n) {
            const double next = total[k] + (double)x[at];
            y[at] = (float)(s->exclusive ? total[k] : next);
            total[k] = next;
        }
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    const dq_dtype dtype = call->in[0]->dtype;
    const bool floats = dq_dtype_is_float(dtype), sums = dtype == DQ_FLOAT && !s->product && s->inner > 1;
    const bool narrow = dq_dtype_get(dtype)->bits == 32;
    for (size_t i = begin, n = 1; i < end; i += n) {
        size_t base = i / s->inner * s->n * s->inner + i % s->inner;
        if (dtype == DQ_FLOAT && !s->product && s->inner == 1 && end - i >= LINES) {
            sums_along(call, base);
            n = LINES;
            continue;
        }
        n = 1;
        if (floats && s->inner == 1) {
            line_of_floats(call, base);
            continue;
        }
        n = s->inner - i % s->inner < end - i ? s->inner - i % s->inner : end - i;
        n = n < DQ_ROW ? n : DQ_ROW;
        (sums     ? sums_of_lines
         : floats ? lines_of_floats
         : narrow ? lines_of_uint32_t
                  : lines_of_uint64_t)(call, base, n);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    if (call->in[0]->count)
        dq_parallel(call->threads, call->in[0]->count / s->n, s->inner == 1 ? 64 : DQ_ROW, piece, &call);
    return DQ_OK;
}

static dq_status prepare_sum(dq_op_call *call, dq_error *err)
{
    return prepare(call, false, err);
}

static dq_status prepare_product(dq_op_call *call, dq_error *err)
{
    return prepare(call, true, err);
}

DQ_OP_WIDENED(dq_op_cum_sum, true, infer, prepare_sum, run, 0)
const dq_op_impl dq_op_cum_prod = {infer, prepare_product, run, 0};
