/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/matmul_float8.h"

#include "base/checked.h"
#include "base/codec.h"

#include <math.h>
#include <string.h>

/* A sum has three limbs of base 2^18; the high limb is signed and not bounded. a - za is below 2^34 in units
 * of 2^-17, and b - zb is split in two limbs. So products stay below 2^52, and 512 of them below 2^61; after
 * that, carries are propagated. */
enum { UNIT_BITS = 17, LIMB_BITS = 18, CARRY_EVERY = 512 };
#define LIMB_MASK (((int64_t)1 << LIMB_BITS) - 1)
#define NOT_FINITE INT64_MIN

typedef struct limbs {
    int64_t high, middle, low;
} limbs;

static double value_of(dq_dtype dtype, unsigned qvalue)
{
    if (dtype == DQ_UINT8)
        return qvalue;
    if (dtype == DQ_INT8)
        return (int8_t)qvalue;
    return (double)dq_decode_float(dtype, qvalue);
}

static int64_t units(double value)
{
    return isfinite(value) ? (int64_t)ldexp(value, UNIT_BITS) : NOT_FINITE;
}

dq_status dq_matmul_float8_prepare(dq_op_call *call, dq_matmul_float8 *mm, dq_error *err)
{
    for (unsigned qvalue = 0; qvalue < 256; qvalue++) {
        mm->a_values[qvalue] = units(value_of(call->in[mm->a]->dtype, qvalue));
        mm->b_values[qvalue] = units(value_of(call->in[mm->b]->dtype, qvalue));
    }
    size_t size = 0, per_column = sizeof(double) + sizeof(limbs) + sizeof(int64_t) + 1, columns;
    if (!dq_mul_size(mm->s.k, sizeof(int64_t), &size) || !dq_mul_size(mm->s.n, per_column, &columns) ||
        !dq_add_size(size, columns, &size) || size > SIZE_MAX - 64)
        return dq_no_memory(err, SIZE_MAX, "a row of sums");
    mm->sums_offset = 0;
    mm->limbs_offset = mm->s.n * sizeof(double);
    mm->zero_offset = mm->limbs_offset + mm->s.n * sizeof(limbs);
    mm->row_offset = mm->zero_offset + mm->s.n * sizeof(int64_t);
    mm->flags_offset = mm->row_offset + mm->s.k * sizeof(int64_t);
    call->worker_scratch_size = (size + 63) & ~(size_t)63;
    return DQ_OK;
}

/* ---- A row -------------------------------------------------------------------------------------------- */

typedef struct run_state {
    const dq_op_call *call;
    const dq_matmul_float8 *mm;
    dq_float8_row_fn *store;
    const void *arg;
} run_state;

/* State of a row of the result, in a worker's scratch. */
typedef struct row_state {
    const uint8_t *a, *b; /* quantized values: the row of A, the matrix B */
    double a_zero;
    size_t b_zero_at;
    double *sums;
    limbs *acc;
    int64_t *zero, *row;
    uint8_t *flags; /* for each column of B: it has a value that is not finite */
    bool flagged;   /* the row of A has such a value */
} row_state;

static double zero_value(const dq_op_call *call, const dq_qparam *p, size_t i)
{
    return p->present ? dq_tensor_get_double(call->in[p->input], i) : 0;
}

static int64_t less(int64_t value, int64_t zero, bool *not_finite)
{
    if (value == NOT_FINITE || zero == NOT_FINITE) {
        *not_finite = true;
        return 0;
    }
    return value - zero;
}

static row_state begin_row(const run_state *run, size_t batch, size_t i, void *scratch)
{
    const dq_matmul_float8 *mm = run->mm;
    const dq_matmul_shape *s = &mm->s;
    char *at = scratch;
    row_state row = {.sums = (double *)(at + mm->sums_offset),
                     .acc = (limbs *)(at + mm->limbs_offset),
                     .zero = (int64_t *)(at + mm->zero_offset),
                     .row = (int64_t *)(at + mm->row_offset),
                     .flags = (uint8_t *)(at + mm->flags_offset)};
    row.a =
        dq_data(run->call->in[mm->a], uint8_t) + (dq_matmul_offset(s, batch, s->a_strides) * s->m + i) * s->k;
    row.b = dq_data(run->call->in[mm->b], uint8_t) + dq_matmul_offset(s, batch, s->b_strides) * s->k * s->n;
    row.a_zero =
        zero_value(run->call, &mm->a_zero, dq_qparam_offset(&mm->a_zero, s, batch) + i * mm->a_zero.step);
    int64_t a_zero = units(row.a_zero);
    for (size_t k = 0; k < s->k; k++)
        row.row[k] = less(mm->a_values[row.a[k]], a_zero, &row.flagged);
    row.b_zero_at = dq_qparam_offset(&mm->b_zero, s, batch);
    for (size_t j = 0; j < s->n; j++)
        row.zero[j] = units(zero_value(run->call, &mm->b_zero, row.b_zero_at + j * mm->b_zero.step));
    memset(row.acc, 0, s->n * sizeof *row.acc);
    memset(row.flags, 0, s->n);
    return row;
}

static void carry(limbs *acc, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        acc[j].middle += acc[j].low >> LIMB_BITS;
        acc[j].low &= LIMB_MASK;
        acc[j].high += acc[j].middle >> LIMB_BITS;
        acc[j].middle &= LIMB_MASK;
    }
}

static void add_products(const dq_matmul_float8 *mm, row_state *row)
{
    size_t n = mm->s.n;
    for (size_t k = 0; k < mm->s.k; k++) {
        const uint8_t *b = row->b + k * n;
        int64_t a = row->row[k];
        for (size_t j = 0; j < n; j++) {
            bool not_finite = false;
            int64_t value = less(mm->b_values[b[j]], row->zero[j], &not_finite);
            row->flags[j] |= not_finite;
            row->acc[j].middle += a * (value >> LIMB_BITS);
            row->acc[j].low += a * (value & LIMB_MASK);
        }
        if (k % CARRY_EVERY == CARRY_EVERY - 1)
            carry(row->acc, n);
    }
    carry(row->acc, n);
}

/* A sum that is not finite, by IEEE arithmetic in double. Rounding of its finite terms does not matter. */
static double plain_sum(const run_state *run, const row_state *row, size_t j)
{
    const dq_matmul_float8 *mm = run->mm;
    dq_dtype ta = run->call->in[mm->a]->dtype, tb = run->call->in[mm->b]->dtype;
    double zero = zero_value(run->call, &mm->b_zero, row->b_zero_at + j * mm->b_zero.step), sum = 0;
    for (size_t k = 0; k < mm->s.k; k++)
        sum += (value_of(ta, row->a[k]) - row->a_zero) * (value_of(tb, row->b[k * mm->s.n + j]) - zero);
    return sum;
}

static void run_row(const run_state *run, size_t batch, size_t i, void *scratch)
{
    const dq_matmul_float8 *mm = run->mm;
    row_state row = begin_row(run, batch, i, scratch);
    add_products(mm, &row);
    for (size_t j = 0; j < mm->s.n; j++) {
        /* the two low limbs are exact in double, and the high limb is exact below 2^53 */
        double low = (double)(row.acc[j].middle << LIMB_BITS | row.acc[j].low);
        row.sums[j] = ldexp(ldexp((double)row.acc[j].high, 2 * LIMB_BITS) + low, -2 * UNIT_BITS);
        if (row.flagged || row.flags[j])
            row.sums[j] = plain_sum(run, &row, j);
    }
    run->store(run->call, run->arg, batch, i, row.sums);
}

static void run_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    const run_state *run = arg;
    void *scratch = dq_call_worker_scratch(run->call, worker);
    for (size_t i = begin; i < end; i++)
        run_row(run, i / run->mm->s.m, i % run->mm->s.m, scratch);
}

void dq_matmul_float8_run(const dq_op_call *call, const dq_matmul_float8 *mm, dq_float8_row_fn *store,
                          const void *arg)
{
    if (!call->out[0] || call->out[0]->count == 0)
        return;
    run_state run = {call, mm, store, arg};
    dq_parallel(call->threads, mm->s.batches * mm->s.m, 1, run_rows, &run);
}
