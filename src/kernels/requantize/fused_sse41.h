/* SPDX-License-Identifier: Apache-2.0 */
/* Emulated float fused multiply-add, a * b + c rounded once, for processors without FMA. The product is exact
 * in double. The sum in double is rounded to odd: its error is exact, too, and if it is not 0, an even last
 * bit becomes the odd neighbor on the error's side. Rounding that sum to float equals rounding the exact sum,
 * as double has more than two extra bits, also for denormal results. */
#ifndef DQ_KERNELS_FUSED_SSE41_H
#define DQ_KERNELS_FUSED_SSE41_H

#include <immintrin.h>

static inline __m128d dq_fused_half_sse41(__m128d a, __m128d b, __m128d c)
{
    __m128d p = _mm_mul_pd(a, b), s = _mm_add_pd(p, c), from_c = _mm_sub_pd(s, p);
    __m128d error = _mm_add_pd(_mm_sub_pd(p, _mm_sub_pd(s, from_c)), _mm_sub_pd(c, from_c));
    const __m128d zero = _mm_setzero_pd();
    const __m128i one = _mm_set1_epi64x(1);
    /* The error of NaN and infinities is NaN, for which both comparisons are false. */
    __m128i off = _mm_castpd_si128(_mm_or_pd(_mm_cmplt_pd(error, zero), _mm_cmpgt_pd(error, zero)));
    __m128i bits = _mm_castpd_si128(s), even = _mm_cmpeq_epi64(_mm_and_si128(bits, one), _mm_setzero_si128());
    /* Away from zero if the error has the sum's sign, else toward zero. */
    __m128i signs = _mm_srai_epi32(_mm_castpd_si128(_mm_xor_pd(s, error)), 31);
    __m128i step = _mm_or_si128(_mm_shuffle_epi32(signs, 0xf5), one);
    return _mm_castsi128_pd(_mm_add_epi64(bits, _mm_and_si128(step, _mm_and_si128(off, even))));
}

static inline __m128 dq_fused_sse41(__m128 a, __m128 b, __m128 c)
{
    __m128d low = dq_fused_half_sse41(_mm_cvtps_pd(a), _mm_cvtps_pd(b), _mm_cvtps_pd(c));
    __m128d high = dq_fused_half_sse41(_mm_cvtps_pd(_mm_movehl_ps(a, a)), _mm_cvtps_pd(_mm_movehl_ps(b, b)),
                                       _mm_cvtps_pd(_mm_movehl_ps(c, c)));
    return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}

#endif
