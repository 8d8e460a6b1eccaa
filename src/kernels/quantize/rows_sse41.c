/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_sse41.h"

#include <stdint.h>

#define ISA(name) name##_sse41

typedef struct eight {
    vi low, high;
} eight;

static inline __m128i bytes_at(const void *p)
{
    return _mm_loadl_epi64(p);
}
static inline __m128i words_at(const void *p)
{
    return _mm_loadu_si128(p);
}

static inline eight load_u8(const uint8_t *x)
{
    __m128i v = bytes_at(x);
    return (eight){_mm_cvtepu8_epi32(v), _mm_cvtepu8_epi32(_mm_srli_si128(v, 4))};
}
static inline eight load_s8(const int8_t *x)
{
    __m128i v = bytes_at(x);
    return (eight){_mm_cvtepi8_epi32(v), _mm_cvtepi8_epi32(_mm_srli_si128(v, 4))};
}
static inline eight load_u16(const uint16_t *x)
{
    __m128i v = words_at(x);
    return (eight){_mm_cvtepu16_epi32(v), _mm_cvtepu16_epi32(_mm_srli_si128(v, 8))};
}
static inline eight load_s16(const int16_t *x)
{
    __m128i v = words_at(x);
    return (eight){_mm_cvtepi16_epi32(v), _mm_cvtepi16_epi32(_mm_srli_si128(v, 8))};
}

static inline void store_u8(uint8_t *y, eight v)
{
    __m128i words = _mm_packs_epi32(v.low, v.high);
    _mm_storel_epi64((__m128i *)(void *)y, _mm_packus_epi16(words, words));
}
static inline void store_s8(int8_t *y, eight v)
{
    __m128i words = _mm_packs_epi32(v.low, v.high);
    _mm_storel_epi64((__m128i *)(void *)y, _mm_packs_epi16(words, words));
}
static inline void store_u16(uint16_t *y, eight v)
{
    _mm_storeu_si128((__m128i *)(void *)y, _mm_packus_epi32(v.low, v.high));
}
static inline void store_s16(int16_t *y, eight v)
{
    _mm_storeu_si128((__m128i *)(void *)y, _mm_packs_epi32(v.low, v.high));
}

#include "kernels/quantize/rows_body.h"
#include "kernels/requantize/finish_body.h"
