/* SPDX-License-Identifier: Apache-2.0 */
/* Weight-only products with AVX2, by pairwise multiplication of bytes (nbits_pairs.h). */
#include "kernels/gemm_s8/accumulate_avx2.h"
#include "kernels/simd/vec_avx2.h"

#define ISA(name) name##_avx2
enum { WHOLE = 1, LOOKS_UP = 0 };

#include "kernels/weight_only/nbits_pairs.h"

#include "kernels/weight_only/nbits_body.h"
#include "kernels/weight_only/nbits_rounded_body.h"

/* A table of 16 floats, split into bytes: bytes[i] has byte i of each float, in both halves of a vector. */
typedef struct lookup {
    vi bytes[4];
} lookup;

static inline lookup lookup_of(const float *table)
{
    const __m128i byte = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m128i x[4];
    for (int i = 0; i < 4; i++)
        x[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(table + 4 * i)), byte);
    __m128i a = _mm_unpacklo_epi32(x[0], x[1]), b = _mm_unpackhi_epi32(x[0], x[1]);
    __m128i c = _mm_unpacklo_epi32(x[2], x[3]), d = _mm_unpackhi_epi32(x[2], x[3]);
    return (lookup){{_mm256_broadcastsi128_si256(_mm_unpacklo_epi64(a, c)),
                     _mm256_broadcastsi128_si256(_mm_unpackhi_epi64(a, c)),
                     _mm256_broadcastsi128_si256(_mm_unpacklo_epi64(b, d)),
                     _mm256_broadcastsi128_si256(_mm_unpackhi_epi64(b, d))}};
}

/* Looks up every second quantized value of the words, from the one in the low bits of `codes` on. In each
 * half, `codes` has four values of four columns: first one of each column, then the next of each column. */
ALWAYS_INLINE void look_up_half(const lookup *table, vi qvalues, vf *value)
{
    vi b[4];
    for (int i = 0; i < 4; i++)
        b[i] = _mm256_shuffle_epi8(table->bytes[i], qvalues);
    vi low01 = _mm256_unpacklo_epi8(b[0], b[1]), low23 = _mm256_unpacklo_epi8(b[2], b[3]);
    vi high01 = _mm256_unpackhi_epi8(b[0], b[1]), high23 = _mm256_unpackhi_epi8(b[2], b[3]);
    value[0] = vi_float(_mm256_unpacklo_epi16(low01, low23));
    value[2] = vi_float(_mm256_unpackhi_epi16(low01, low23));
    value[4] = vi_float(_mm256_unpacklo_epi16(high01, high23));
    value[6] = vi_float(_mm256_unpackhi_epi16(high01, high23));
}

ALWAYS_INLINE void look_up(const lookup *table, vi word, int each, vf *value)
{
    const vi byte =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const vi mask = vi_set(0x0f0f0f0f), qvalues = _mm256_shuffle_epi8(word, byte);
    (void)each;
    look_up_half(table, vi_and(qvalues, mask), value);
    look_up_half(table, vi_and(vi_right(qvalues, 4), mask), value + 1);
}

#include "kernels/weight_only/nbits_floats_body.h"
