#include "kernels/kernels.h"

#include <immintrin.h>

enum { LANES = 8, VECTORS = DQ_FGEMM_COLS / LANES };

void dq_unpack_u4_avx2(const uint8_t *codes, size_t k, const float *zero, const float *scale, float *out)
{
    __m256 z[VECTORS], s[VECTORS];
    for (int v = 0; v < VECTORS; v++) {
        z[v] = _mm256_loadu_ps(zero + v * LANES);
        s[v] = _mm256_loadu_ps(scale + v * LANES);
    }
    const __m128i mask = _mm_set1_epi8(15);
    for (size_t p = 0; p < k; p++, codes += DQ_FGEMM_COLS / 2, out += DQ_FGEMM_COLS) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)codes);
        __m128i halves[2] = {_mm_and_si128(bytes, mask), _mm_and_si128(_mm_srli_epi16(bytes, 4), mask)};
        for (int v = 0; v < VECTORS; v++) {
            __m128i eight = v % 2 ? _mm_srli_si128(halves[v / 2], 8) : halves[v / 2];
            __m256 code = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight));
            _mm256_storeu_ps(out + v * LANES, _mm256_mul_ps(_mm256_sub_ps(code, z[v]), s[v]));
        }
    }
}
