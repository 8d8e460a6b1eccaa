/* SPDX-License-Identifier: Apache-2.0 */
/* Float GEMM with AVX-512. The register tile is twelve rows by two vectors, with fourteen loads for 24
 * FMAs, or six rows by two vectors, whose twelve accumulators also hide the latency of two FMA units. */
#include "kernels/kernels.h"
#include "kernels/simd/vec_avx512.h"

enum { PANELS = 2, MAX_ROWS = 6, TALL_ROWS = 12, FEWEST_ROWS = 5 };
#define NARROW dq_gemm_block_f32_avx2

#define WIDE_PANELS 1
#include "kernels/gemm_f32/gemm_f32_few.h"

void dq_gemm_block_f32_avx512(const dq_gemm_block_f32 *g)
{
    if (g->rows == 1 && (g->b_panel == DQ_GEMM_F32_NR || g->k == 0))
        dq_gemm_block_f32_avx2(g); /* bound by memory bandwidth */
    else if (g->rows == 1)
        panels(g); /* panels may be in the L2 cache */
    else if (few_rows(g))
        wide_tiles(g);
    else
        tile_block(g);
}

/* ---- im2col -------------------------------------------------------------------------------------------- */

/* Lanes whose elements are contiguous in memory: lane j of `lanes` is from[j]. */
typedef struct run {
    const float *from;
    __mmask16 lanes;
} run;

/* Removes from `left` its first lane and those contiguous with it, and returns them. */
static run take_run(const float *x, __m512i distance, __mmask16 *left)
{
    if (*left == 0)
        return (run){x, 0};
    int32_t offsets[DQ_GEMM_F32_NR];
    vi_store(offsets, distance);
    int32_t offset = offsets[__builtin_ctz(*left)];
    __mmask16 lanes = _mm512_mask_cmpeq_epi32_mask(*left, distance, vi_set(offset));
    *left = (__mmask16)(*left & ~lanes);
    return (run){x + offset, lanes};
}

/* Most windows are in one or two contiguous segments, or at stride 2. */
void dq_im2col_gather_f32_avx512(const float *x, const int32_t at[DQ_GEMM_F32_NR], size_t channels,
                                 size_t plane, size_t step, float *to)
{
    const vi count = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const vi indices = vi_load(at), distance = vi_sub(indices, count), twice = vi_sub(distance, count);
    const __mmask16 valid = _mm512_cmpgt_epi32_mask(indices, vi_set(-1));
    if (at[0] >= 0 && _mm512_cmpeq_epi32_mask(twice, vi_set(at[0])) == 0xffff) {
        for (size_t c = 0; c < channels; c++, x += plane, to += step)
            vf_store(to, vf_load_even(x + at[0]));
        return;
    }
    __mmask16 left = valid;
    run one = take_run(x, distance, &left), two = take_run(x, distance, &left);
    for (size_t c = 0; c < channels && !left; c++, one.from += plane, two.from += plane, to += step)
        vf_store(to, _mm512_mask_loadu_ps(_mm512_maskz_loadu_ps(two.lanes, two.from), one.lanes, one.from));
    for (size_t c = 0; c < channels && left; c++, x += plane, to += step)
        vf_store(to, _mm512_mask_i32gather_ps(vf_set(0), valid, indices, x, sizeof *x));
}
