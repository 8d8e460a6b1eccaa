/* SPDX-License-Identifier: Apache-2.0 */
/* im2col of floats: gathers the windows of an image into panels. */
#include "kernels/kernels.h"

#include <immintrin.h>

enum { LANES = 8 };

/* Loads floats 0, 2 … 14 from x on and reads none after them. */
static inline __m256 every_second(const float *x)
{
    __m256 low = _mm256_loadu_ps(x), high = _mm256_loadu_ps(x + LANES - 1);
    __m256 mixed = _mm256_shuffle_ps(low, high, 0xd8); /* 0 2 | 9 - 1, 11 - 1; in each half */
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8));
}

/* Lanes that are contiguous in memory: lane l is at from[l]. */
typedef struct run {
    const float *from;
    __m256i lanes;
} run;

/* Takes the first lane of `left` and all lanes of `left` that are contiguous with it. */
static run take_run(const float *x, const int32_t *at, __m256i distance, __m256i *left)
{
    unsigned bits = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(*left));
    if (bits == 0)
        return (run){x, _mm256_setzero_si256()};
    int first = __builtin_ctz(bits);
    int32_t offset = at[first] - first;
    __m256i lanes = _mm256_and_si256(*left, _mm256_cmpeq_epi32(distance, _mm256_set1_epi32(offset)));
    *left = _mm256_andnot_si256(lanes, *left);
    return (run){x + offset, lanes};
}

static inline bool all_of(__m256i lanes)
{
    return _mm256_movemask_epi8(lanes) == -1;
}

enum { FEW_CHANNELS = 4 };

/* Gathers half a panel. Most windows are contiguous or at every second element. At the image's edges they
 * form one or two contiguous groups of lanes, which are worth finding if there are several channels. */
static void gather_half(const float *x, const int32_t *at, size_t channels, size_t plane, size_t step,
                        float *to)
{
    const __m256i indices = _mm256_loadu_si256((const __m256i *)(const void *)at);
    const __m256i count = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), first = _mm256_set1_epi32(at[0]);
    const __m256i distance = _mm256_sub_epi32(indices, count), twice = _mm256_sub_epi32(distance, count);
    const __m256i valid = _mm256_cmpgt_epi32(indices, _mm256_set1_epi32(-1));
    if (at[0] >= 0 && all_of(_mm256_cmpeq_epi32(distance, first))) {
        for (size_t c = 0; c < channels; c++, x += plane, to += step)
            _mm256_storeu_ps(to, _mm256_loadu_ps(x + at[0]));
        return;
    }
    if (at[0] >= 0 && all_of(_mm256_cmpeq_epi32(twice, first))) {
        for (size_t c = 0; c < channels; c++, x += plane, to += step)
            _mm256_storeu_ps(to, every_second(x + at[0]));
        return;
    }
    if (channels >= FEW_CHANNELS) {
        __m256i left = valid;
        run one = take_run(x, at, distance, &left), two = take_run(x, at, distance, &left);
        if (_mm256_movemask_epi8(left) == 0) {
            for (size_t c = 0; c < channels; c++, one.from += plane, two.from += plane, to += step)
                _mm256_storeu_ps(to, _mm256_or_ps(_mm256_maskload_ps(one.from, one.lanes),
                                                  _mm256_maskload_ps(two.from, two.lanes)));
            return;
        }
    }
    for (size_t c = 0; c < channels; c++, x += plane, to += step)
        _mm256_storeu_ps(to, _mm256_mask_i32gather_ps(_mm256_setzero_ps(), x, indices,
                                                      _mm256_castsi256_ps(valid), sizeof *x));
}

void dq_im2col_gather_f32_avx2(const float *x, const int32_t at[DQ_GEMM_F32_NR], size_t channels,
                               size_t plane, size_t step, float *to)
{
    for (int j = 0; j < DQ_GEMM_F32_NR; j += LANES)
        gather_half(x, at + j, channels, plane, step, to + j);
}
