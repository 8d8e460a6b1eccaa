/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_avx2.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISA(name) name##_avx2
#define LOWER(name) name##_sse41

enum { LANES = 16 };
typedef vi vs, vb;

#define vs_load(p) vi_load(p)
#define vs_store(p, v) vi_store(p, v)
#define vs_add(a, b) vi_add_16(a, b)
#define vs_add_saturated(a, b) _mm256_adds_epi16(a, b)
#define vs_set(i) _mm256_set1_epi16(i)
#define vb_store(p, v) vs_store(p, v)

static inline __attribute__((always_inline)) vs vs_bytes(const uint8_t *p, bool is_signed)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    return is_signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
}

static inline __attribute__((always_inline)) vf vs_floats(vs v, int half)
{
    const __m128i some = half ? _mm256_extracti128_si256(v, 1) : _mm256_castsi256_si128(v);
    return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(some));
}

/* Packing is by halves of a vector: four elements of `a`, four of `b`, then the others of each. */
static inline vs vs_rounded(vf a, vf b)
{
    return _mm256_packs_epi32(vf_nearest(a), vf_nearest(b));
}

static inline __attribute__((always_inline)) vb vb_pack(vs a, vs b, bool is_signed)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes = is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
    return _mm256_permutevar8x32_epi32(bytes, order);
}

static inline uint32_t vb_differ(vb a, vb b)
{
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b));
}

#include "kernels/pool/average_pool_body.h"
