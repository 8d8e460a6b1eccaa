/* SPDX-License-Identifier: Apache-2.0 */
/* Float GEMM, GEMV and im2col in portable C, which define the bits of all results. */
#include "kernels/kernels.h"
#include "kernels/simd/vec_c.h"

#include "kernels/elementwise/hswish_f32_body.h"

#include <math.h>

/* Adds k steps of one row and one panel to `sum`. Columns are the inner loop, which compilers vectorize. */
static void steps(const float *a, const float *b, size_t b_step, size_t k, size_t cols,
                  float sum[DQ_GEMM_F32_NR])
{
    for (size_t p = 0; p < k; p++, b += b_step)
        for (size_t j = 0; j < cols; j++)
            sum[j] = fmaf(a[p], b[j], sum[j]);
}

static float finished(const dq_gemm_block_f32 *g, size_t i, size_t j, float x)
{
    if (g->alpha != 1)
        x = g->alpha * x;
    if (g->bias)
        x += g->bias[i];
    if (g->z)
        x += g->z[i * g->z_row + j];
    x = x < g->low ? g->low : x;
    x = x > g->high ? g->high : x;
    if (!g->gate)
        return x;
    const hswish_f32 gate = hswish_f32_of(g->gate);
    return hswish_f32_any(&gate, x);
}

void dq_gemm_block_f32_c(const dq_gemm_block_f32 *g)
{
    for (size_t col = 0; col < g->cols; col += DQ_GEMM_F32_NR) {
        const float *b = g->k ? g->b + col / DQ_GEMM_F32_NR * g->b_panel : g->b;
        size_t cols = g->cols - col < DQ_GEMM_F32_NR ? g->cols - col : DQ_GEMM_F32_NR;
        for (size_t i = 0; i < g->rows; i++) {
            float *c = g->c + i * g->c_row + col, sum[DQ_GEMM_F32_NR] = {0};
            for (size_t j = 0; j < cols && g->more; j++)
                sum[j] = c[j];
            steps(g->k ? g->a + i * g->a_row : g->a, b, g->b_step, g->k, cols, sum);
            for (size_t j = 0; j < cols; j++)
                c[j] = g->last ? finished(g, i, col + j, sum[j]) : sum[j];
        }
    }
}

void dq_gemv_f32_c(const float *a, size_t a_row, size_t rows, size_t k, const float *x, float *y)
{
    for (size_t i = 0; i < rows; i++, a += a_row) {
        float sum = 0;
        for (size_t p = 0; p < k; p++)
            sum = fmaf(a[p], x[p], sum);
        y[i] = sum;
    }
}

void dq_im2col_gather_f32_c(const float *x, const int32_t at[DQ_GEMM_F32_NR], size_t channels, size_t plane,
                            size_t step, float *to)
{
    for (size_t c = 0; c < channels; c++, x += plane, to += step)
        for (size_t j = 0; j < DQ_GEMM_F32_NR; j++)
            to[j] = at[j] < 0 ? 0 : x[at[j]];
}
