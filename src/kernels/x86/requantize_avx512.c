#include "kernels/kernels.h"

#include <immintrin.h>

/* The maximum with `low` last: where the product is NaN, the instruction gives its second operand.
 */
static inline __m256i scaled(__m256i acc, __m512d scale, __m512d low, __m512d high)
{
    __m512d v = _mm512_mul_pd(_mm512_cvtepi32_pd(acc), scale);
    v = _mm512_min_pd(_mm512_max_pd(v, low), high);
    return _mm512_cvt_roundpd_epi32(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

void dq_requantize_avx512(const int32_t *acc, size_t n, const double *scale, size_t scale_step,
                          int32_t zero_point, int32_t lo, int32_t hi, uint8_t *out)
{
    __m512d low = _mm512_set1_pd(lo - zero_point), high = _mm512_set1_pd(hi - zero_point);
    __m256i zero = _mm256_set1_epi32(zero_point);
    if (n == 0)
        return;
    __m512d one = _mm512_set1_pd(scale[0]);
    size_t j = 0;
    for (; j + 16 <= n; j += 16) {
        __m512d s0 = scale_step ? _mm512_loadu_pd(scale + j) : one;
        __m512d s1 = scale_step ? _mm512_loadu_pd(scale + j + 8) : one;
        __m256i v0 = scaled(_mm256_loadu_si256((const __m256i *)(const void *)(acc + j)), s0, low, high);
        __m256i v1 = scaled(_mm256_loadu_si256((const __m256i *)(const void *)(acc + j + 8)), s1, low, high);
        __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(v0), v1, 1);
        both = _mm512_add_epi32(both, _mm512_set1_epi32(zero_point));
        _mm_storeu_si128((__m128i *)(void *)(out + j), _mm512_cvtepi32_epi8(both));
    }
    for (; j < n; j += 8) {
        __mmask8 some = n - j < 8 ? (__mmask8)((1u << (n - j)) - 1) : (__mmask8)0xff;
        __m512d s = scale_step ? _mm512_maskz_loadu_pd(some, scale + j) : one;
        __m256i v = scaled(_mm256_maskz_loadu_epi32(some, acc + j), s, low, high);
        _mm256_mask_cvtepi32_storeu_epi8(out + j, some, _mm256_add_epi32(v, zero));
    }
}
