#include "kernels/kernels.h"

#include <immintrin.h>

static inline __m512 weights(__m128i codes, __m512 zero, __m512 scale)
{
    __m512 code = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(codes));
    return _mm512_mul_ps(_mm512_sub_ps(code, zero), scale);
}

void dq_unpack_u4_avx512(const uint8_t *codes, size_t k, const float *zero, const float *scale, float *out)
{
    enum { HALF = DQ_FGEMM_COLS / 2 };
    __m512 z0 = _mm512_loadu_ps(zero), z1 = _mm512_loadu_ps(zero + HALF);
    __m512 s0 = _mm512_loadu_ps(scale), s1 = _mm512_loadu_ps(scale + HALF);
    const __m128i mask = _mm_set1_epi8(15);
    for (size_t p = 0; p < k; p++, codes += HALF, out += DQ_FGEMM_COLS) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)codes);
        _mm512_storeu_ps(out, weights(_mm_and_si128(bytes, mask), z0, s0));
        _mm512_storeu_ps(out + HALF, weights(_mm_and_si128(_mm_srli_epi16(bytes, 4), mask), z1, s1));
    }
}
