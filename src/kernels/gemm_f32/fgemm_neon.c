/* SPDX-License-Identifier: Apache-2.0 */
/* Eight rows by two vectors: sixteen sums, and room for the operands in the 32 registers. */
#include "kernels/kernels.h"

#include <arm_neon.h>

enum { LANES = 4 };

static inline __attribute__((always_inline)) void eight_rows(const float *a, const float *b, size_t k,
                                                             float *c)
{
    float32x4_t sum[DQ_FGEMM_ROWS][2];
    for (int i = 0; i < DQ_FGEMM_ROWS; i++)
        sum[i][0] = sum[i][1] = vdupq_n_f32(0);
    for (size_t p = 0; p < k; p++, a += DQ_FGEMM_ROWS, b += DQ_FGEMM_COLS) {
        float32x4_t x0 = vld1q_f32(a), x1 = vld1q_f32(a + LANES);
        for (int v = 0; v < 2; v++) {
            float32x4_t w = vld1q_f32(b + v * LANES);
            sum[0][v] = vfmaq_laneq_f32(sum[0][v], w, x0, 0);
            sum[1][v] = vfmaq_laneq_f32(sum[1][v], w, x0, 1);
            sum[2][v] = vfmaq_laneq_f32(sum[2][v], w, x0, 2);
            sum[3][v] = vfmaq_laneq_f32(sum[3][v], w, x0, 3);
            sum[4][v] = vfmaq_laneq_f32(sum[4][v], w, x1, 0);
            sum[5][v] = vfmaq_laneq_f32(sum[5][v], w, x1, 1);
            sum[6][v] = vfmaq_laneq_f32(sum[6][v], w, x1, 2);
            sum[7][v] = vfmaq_laneq_f32(sum[7][v], w, x1, 3);
        }
    }
    for (int i = 0; i < DQ_FGEMM_ROWS; i++)
        for (int v = 0; v < 2; v++)
            vst1q_f32(c + i * DQ_FGEMM_COLS + v * LANES, sum[i][v]);
}

/* One row by all columns. */
static inline void one_row(const float *a, const float *b, size_t k, float *c)
{
    enum { VECTORS = DQ_FGEMM_COLS / LANES };
    float32x4_t sum[VECTORS];
    for (int v = 0; v < VECTORS; v++)
        sum[v] = vdupq_n_f32(0);
    for (size_t p = 0; p < k; p++, a += DQ_FGEMM_ROWS, b += DQ_FGEMM_COLS)
        for (int v = 0; v < VECTORS; v++)
            sum[v] = vfmaq_n_f32(sum[v], vld1q_f32(b + v * LANES), a[0]);
    for (int v = 0; v < VECTORS; v++)
        vst1q_f32(c + v * LANES, sum[v]);
}

void dq_fgemm_neon(const float *a, const float *b, size_t k, size_t rows, float *c)
{
    if (rows == 1) {
        one_row(a, b, k, c);
        return;
    }
    for (size_t j = 0; j < DQ_FGEMM_COLS; j += 2 * LANES)
        eight_rows(a, b + j, k, c + j);
}
