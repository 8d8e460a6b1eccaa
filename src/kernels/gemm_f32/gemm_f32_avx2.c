/* SPDX-License-Identifier: Apache-2.0 */
/* Float GEMM with AVX2. The register tile is six rows by two vectors: twelve accumulators hide the latency
 * of two FMA units and leave registers for the operands. */
#include "kernels/kernels.h"
#include "kernels/simd/vec_avx2.h"

#include <math.h>

enum { PANELS = 1, MAX_ROWS = 6, TALL_ROWS = 0 };

#include "kernels/gemm_f32/gemm_f32_few.h"

void dq_gemm_block_f32_avx2(const dq_gemm_block_f32 *g)
{
    if (g->rows == 1)
        one_row(g);
    else if (few_rows(g))
        wide_tiles(g);
    else
        tile_block(g);
}

/* ---- GEMV ---------------------------------------------------------------------------------------------- */

enum { STEPS = 4, GROUPS = 2 /* independent accumulators, each of eight rows */ };

/* Transposes four steps of eight rows to one vector per step. */
INLINE void columns(const float *const row[VF_LANES], size_t p, vf v[STEPS])
{
    vf h[STEPS], t[STEPS];
    for (int i = 0; i < STEPS; i++)
        h[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row[i] + p)),
                                    _mm_loadu_ps(row[i + STEPS] + p), 1);
    t[0] = _mm256_unpacklo_ps(h[0], h[1]);
    t[1] = _mm256_unpackhi_ps(h[0], h[1]);
    t[2] = _mm256_unpacklo_ps(h[2], h[3]);
    t[3] = _mm256_unpackhi_ps(h[2], h[3]);
    v[0] = _mm256_shuffle_ps(t[0], t[2], 0x44);
    v[1] = _mm256_shuffle_ps(t[0], t[2], 0xee);
    v[2] = _mm256_shuffle_ps(t[1], t[3], 0x44);
    v[3] = _mm256_shuffle_ps(t[1], t[3], 0xee);
}

/* Computes `rows` rows, 1 … GROUPS * VF_LANES; the last one is repeated for missing ones. */
static void gemv_rows(const float *a, size_t a_row, size_t rows, size_t k, const float *x, float *y)
{
    const float *row[GROUPS][VF_LANES];
    for (size_t i = 0; i < GROUPS * VF_LANES; i++)
        row[i / VF_LANES][i % VF_LANES] = a + (i < rows ? i : rows - 1) * a_row;
    vf sum[GROUPS];
    for (int g = 0; g < GROUPS; g++)
        sum[g] = vf_set(0);
    size_t p = 0;
    for (; p + LINE <= k; p += LINE)
        for (int g = 0; g < GROUPS; g++)
            for (size_t q = p; q < p + LINE; q += STEPS) {
                vf v[STEPS];
                columns(row[g], q, v);
                for (int u = 0; u < STEPS; u++)
                    sum[g] = vf_fma(v[u], vf_set(x[q + (size_t)u]), sum[g]);
            }
    float out[GROUPS * VF_LANES];
    for (int g = 0; g < GROUPS; g++)
        vf_store(out + g * VF_LANES, sum[g]);
    for (size_t i = 0; i < rows; i++) {
        for (size_t q = p; q < k; q++)
            out[i] = fmaf(a[i * a_row + q], x[q], out[i]);
        y[i] = out[i];
    }
}

void dq_gemv_f32_avx2(const float *a, size_t a_row, size_t rows, size_t k, const float *x, float *y)
{
    enum { ROWS_PER_BLOCK = GROUPS * VF_LANES };
    for (size_t i = 0; i < rows; i += ROWS_PER_BLOCK)
        gemv_rows(a + i * a_row, a_row, rows - i < ROWS_PER_BLOCK ? rows - i : ROWS_PER_BLOCK, k, x, y + i);
}
