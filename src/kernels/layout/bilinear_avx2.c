/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <immintrin.h>

enum { LANES = 4 };

/* Loads two pairs of adjacent pixels, each as one 64-bit number. */
static inline __m128 two_pairs(const float *x, size_t a, size_t b)
{
    return _mm_loadh_pi(_mm_castsi128_ps(_mm_loadl_epi64((const void *)(x + a))), (const void *)(x + b));
}

static inline __m256d sum_of_pairs(const float *x, const size_t *at, const double *w, size_t weight_stride)
{
    const __m128 a = two_pairs(x, at[0], at[1]), b = two_pairs(x, at[2], at[3]);
    const __m256d left = _mm256_cvtps_pd(_mm_shuffle_ps(a, b, 0x88));
    const __m256d right = _mm256_cvtps_pd(_mm_shuffle_ps(a, b, 0xdd));
    return _mm256_add_pd(_mm256_mul_pd(_mm256_loadu_pd(w), left),
                         _mm256_mul_pd(_mm256_loadu_pd(w + weight_stride), right));
}

bool dq_bilinear_f32_avx2(const float *x, size_t below, const size_t *at, const double *weight,
                          size_t weight_stride, size_t n, bool narrow, void *y)
{
    const size_t whole = n / LANES * LANES;
    __m256d odd = _mm256_setzero_pd();
    for (size_t i = 0; i < whole; i += LANES) {
        const __m256d high = sum_of_pairs(x, at + i, weight + i, weight_stride);
        const __m256d low = sum_of_pairs(x + below, at + i, weight + 2 * weight_stride + i, weight_stride);
        const __m256d sum = _mm256_add_pd(_mm256_add_pd(high, low), _mm256_setzero_pd());
        odd = _mm256_or_pd(odd, _mm256_cmp_pd(sum, sum, _CMP_UNORD_Q));
        if (narrow)
            _mm_storeu_ps((float *)y + i, _mm256_cvtpd_ps(sum));
        else
            _mm256_storeu_pd((double *)y + i, sum);
    }
    y = narrow ? (void *)((float *)y + whole) : (double *)y + whole;
    const bool last =
        dq_bilinear_f32_c(x, below, at + whole, weight + whole, weight_stride, n - whole, narrow, y);
    return last || _mm256_movemask_pd(odd);
}
