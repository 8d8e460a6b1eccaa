#include "kernels/kernels.h"

#include <immintrin.h>

/* Four results as int32. The maximum with `low` last: where the product is NaN, the instruction gives its
 * second operand. */
static inline __m128i four(const int32_t *acc, __m256d scale, __m256d low, __m256d high, __m128i zero)
{
    __m128i sums = _mm_loadu_si128((const __m128i *)(const void *)acc);
    __m256d v = _mm256_mul_pd(_mm256_cvtepi32_pd(sums), scale);
    v = _mm256_min_pd(_mm256_max_pd(v, low), high);
    v = _mm256_round_pd(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm_add_epi32(_mm256_cvttpd_epi32(v), zero);
}

void dq_requantize_avx2(const int32_t *acc, size_t n, const double *scale, size_t scale_step,
                        int32_t zero_point, int32_t lo, int32_t hi, uint8_t *out)
{
    __m256d low = _mm256_set1_pd(lo - zero_point), high = _mm256_set1_pd(hi - zero_point);
    __m128i zero = _mm_set1_epi32(zero_point), low_bytes = _mm_set1_epi32(0xff);
    size_t j = 0;
    if (n < 8) {
        dq_requantize_c(acc, n, scale, scale_step, zero_point, lo, hi, out);
        return;
    }
    __m256d s0 = _mm256_set1_pd(scale[0]), s1 = s0;
    for (; j + 8 <= n; j += 8) {
        if (scale_step) {
            s0 = _mm256_loadu_pd(scale + j);
            s1 = _mm256_loadu_pd(scale + j + 4);
        }
        __m128i a = _mm_and_si128(four(acc + j, s0, low, high, zero), low_bytes);
        __m128i b = _mm_and_si128(four(acc + j + 4, s1, low, high, zero), low_bytes);
        __m128i words = _mm_packus_epi32(a, b);
        _mm_storel_epi64((__m128i *)(void *)(out + j), _mm_packus_epi16(words, words));
    }
    dq_requantize_c(acc + j, n - j, scale + (scale_step ? j : 0), scale_step, zero_point, lo, hi, out + j);
}
