/* SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISA(name) name##_avx2

enum { LANES = 32 };
typedef __m256i vb;

static inline __attribute__((always_inline)) vb vb_load(const uint8_t *p, size_t bytes)
{
    if (bytes == LANES)
        return _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm256_castsi128_si256(bytes == LANES / 2 ? _mm_loadu_si128((const __m128i *)(const void *)p)
                                                     : _mm_loadl_epi64((const __m128i *)(const void *)p));
}

static inline __attribute__((always_inline)) void vb_store(uint8_t *p, size_t bytes, vb v)
{
    if (bytes == LANES)
        _mm256_storeu_si256((__m256i *)(void *)p, v);
    else if (bytes == LANES / 2)
        _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(v));
    else
        _mm_storel_epi64((__m128i *)(void *)p, _mm256_castsi256_si128(v));
}

static inline vb vb_larger(vb a, vb b, bool is_signed)
{
    return is_signed ? _mm256_max_epi8(a, b) : _mm256_max_epu8(a, b);
}

static inline vb vb_even(vb a, vb b)
{
    const __m256i even = _mm256_set1_epi16(0xff);
    __m256i both = _mm256_packus_epi16(_mm256_and_si256(a, even), _mm256_and_si256(b, even));
    return _mm256_permute4x64_epi64(both, _MM_SHUFFLE(3, 1, 2, 0));
}

#include "kernels/pool/pool_body.h"
