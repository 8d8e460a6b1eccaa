/* SPDX-License-Identifier: Apache-2.0 */
/* Float GEMM with NEON. The register tile is five rows by four vectors: 20 of 32 registers hold
 * accumulators, five the rows of A, and the others vectors of B. */
#include "kernels/kernels.h"
#include "kernels/simd/vec_neon.h"

enum { PANELS = 1, MAX_ROWS = 5, TALL_ROWS = 0 };

/* Adds four steps: a vector holds those of a row of A, which fmla reads by lanes. */
#define ONE_STEP(lane)                                                                                       \
    for (int v = 0; v < vectors; v++) {                                                                      \
        const float32x4_t w = vld1q_f32(b + (lane)*b_step + v * VF_LANES);                                   \
        for (int i = 0; i < rows; i++)                                                                       \
            sum[i][v] = vfmaq_laneq_f32(sum[i][v], w, x[i], lane);                                           \
    }
#define FOUR_STEPS(a, a_row, b, b_step, rows, vectors, sum)                                                  \
    do {                                                                                                     \
        float32x4_t x[MAX_ROWS];                                                                             \
        for (int i = 0; i < rows; i++)                                                                       \
            x[i] = vld1q_f32(a[i / ROWS_PER_POINTER] + (size_t)(i % ROWS_PER_POINTER) * a_row);              \
        ONE_STEP(0)                                                                                          \
        ONE_STEP(1)                                                                                          \
        ONE_STEP(2)                                                                                          \
        ONE_STEP(3)                                                                                          \
    } while (0)

#include "kernels/gemm_f32/gemm_f32_flat.h"

void dq_gemm_block_f32_neon(const dq_gemm_block_f32 *g)
{
    if (g->rows == 1)
        one_row(g);
    else
        tile_block(g);
}

#define ISA(name) name##_neon

#include "kernels/gemm_f32/fgemv_body.h"

/* ---- im2col -------------------------------------------------------------------------------------------- */

/* Gathers one vector per channel. Most windows are contiguous or at stride 2. Only elements of windows are
 * read. */
static void gather_vector(const float *x, const int32_t at[VF_LANES], size_t channels, size_t plane,
                          size_t step, float *to)
{
    const int32_t row_stride = at[1] - at[0];
    const bool even = at[0] >= 0 && at[2] - at[1] == row_stride && at[3] - at[2] == row_stride;
    if (even && row_stride == 1)
        for (; channels; channels--, x += plane, to += step)
            vf_store(to, vf_load(x + at[0]));
    else if (even && row_stride == 2)
        for (; channels; channels--, x += plane, to += step)
            vf_store(to, vf_load_even(x + at[0]));
    else
        for (; channels; channels--, x += plane, to += step)
            for (int j = 0; j < VF_LANES; j++)
                to[j] = at[j] < 0 ? 0 : x[at[j]];
}

void dq_im2col_gather_f32_neon(const float *x, const int32_t at[DQ_GEMM_F32_NR], size_t channels,
                               size_t plane, size_t step, float *to)
{
    for (int j = 0; j < DQ_GEMM_F32_NR; j += VF_LANES)
        gather_vector(x, at + j, channels, plane, step, to + j);
}
