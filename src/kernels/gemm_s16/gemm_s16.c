/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit GEMM and GEMV, and requantization to 16 bits, in portable C. */
#include "kernels/kernels.h"

#include "base/exact.h"

#include <math.h>

void dq_gemm_s16_c(const int16_t *a, size_t pairs, const int16_t *const b[DQ_GEMM_S16_BLOCKS],
                   const uint32_t *offsets, size_t blocks, int32_t *c)
{
    enum { ROWS = DQ_GEMM_S16_ROWS, NR = DQ_GEMM_S16_NR };
    for (size_t i = 0; i < ROWS; i++)
        for (size_t o = 0; o < blocks; o++) {
            const int16_t *x = a + 2 * i;
            uint32_t sums[NR] = {0};
            for (size_t p = 0; p < pairs; p++, x += 2 * ROWS) {
                const int16_t *z = b[o] + offsets[p];
                for (size_t j = 0; j < NR; j++)
                    sums[j] += (uint32_t)(x[0] * z[2 * j]) + (uint32_t)(x[1] * z[2 * j + 1]);
            }
            for (size_t j = 0; j < NR; j++)
                c[i * DQ_GEMM_S16_COLS + o * NR + j] = (int32_t)sums[j];
        }
}

void dq_gemv_s16s8_c(const int16_t *x, size_t pairs, const int8_t *const b[DQ_GEMM_S16_BLOCKS], int32_t *c)
{
    enum { NR = DQ_GEMM_S16_NR };
    for (size_t i = 0; i < DQ_GEMM_S16_COLS; i++) {
        const int8_t *z = b[i / NR] + 2 * (i % NR);
        uint32_t sum = 0;
        for (size_t p = 0; p < pairs; p++, z += 2 * NR)
            sum += (uint32_t)(x[2 * p] * z[0]) + (uint32_t)(x[2 * p + 1] * z[1]);
        c[i] = (int32_t)sum;
    }
}

/* Computes the result of row i and column j exactly. */
static uint16_t value_of(const dq_q16_sums *s, size_t i, size_t j)
{
    const dq_q16_sums one = dq_q16_rest(s, i, j);
    const dq_factors *f = &one.factors;
    const double least = s->lo - s->zero_point, most = s->hi - s->zero_point;
    double total =
        *one.sums + (one.high ? 256.0 * *one.high : 0) + (one.extra ? *one.extra : 0) + *one.offset;
    double v = dq_exact_quotient(total, f->a, (double)*f->b, one.c ? (double)*one.c : 0, (double)*f->y);
    v = v > least ? v : least; /* also for NaN */
    v = v < most ? v : most;
    return (uint16_t)((int32_t)rint(v) + s->zero_point);
}

enum { BLOCK = 64 };

/* Requantizes columns j … j + n - 1 of row i. `high`, `extra` and `step` are constants in most calls, so
 * that compilers vectorize the loop. */
static inline __attribute__((always_inline)) void block_of(const dq_q16_sums *s, size_t i, size_t j, size_t n,
                                                           bool high, bool extra, size_t step, uint16_t *out)
{
    const double magic = 6755399441055744.0; /* adding and subtracting 1.5 * 2^52 rounds to a whole number */
    const dq_q16_sums at = dq_q16_rest(s, i, j);
    const double least = s->lo - s->zero_point, most = s->hi - s->zero_point, margin = 0.5 - s->error;
    double off[BLOCK];
    int near_tie = 0;
    for (size_t k = 0; k < n; k++) {
        double sum = extra ? at.sums[k] + at.extra[k] : at.sums[k], rounded;
        sum += high ? 256.0 * at.high[k] : 0;
        double v = sum * at.scale[k * step] + at.shift[k * step];
        v = v > least ? v : least; /* also for NaN; bounds are whole numbers, so that rounding may follow */
        v = v < most ? v : most;
        rounded = v + magic - magic;
        off[k] = fabs(v - rounded);
        near_tie |= !(off[k] < margin);
        out[k] = (uint16_t)((int32_t)rounded + s->zero_point);
    }
    for (size_t k = 0; near_tie && k < n; k++)
        if (!(off[k] < margin))
            out[k] = value_of(s, i, j + k);
}

void dq_requantize_s64_part(const dq_q16_sums *s, size_t i, size_t j, size_t cols, uint16_t *out)
{
    for (size_t end = j + cols, n; j < end; j += n, out += n) {
        n = end - j < BLOCK ? end - j : BLOCK;
        if (s->high)
            block_of(s, i, j, n, true, s->extra != NULL, s->col_step, out);
        else if (s->extra && s->col_step)
            block_of(s, i, j, n, false, true, 1, out);
        else if (s->extra)
            block_of(s, i, j, n, false, true, 0, out);
        else if (s->col_step)
            block_of(s, i, j, n, false, false, 1, out);
        else
            block_of(s, i, j, n, false, false, 0, out);
    }
}

void dq_requantize_s64_c(const dq_q16_sums *s, uint16_t *out)
{
    for (size_t i = 0; i < s->rows; i++)
        dq_requantize_s64_part(s, i, 0, s->cols, out + i * s->out_stride);
}
