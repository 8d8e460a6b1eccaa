/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_avx512.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISA(name) name##_avx512
#define LOWER(name) name##_avx2

enum { LANES = 32 };
typedef vi vs, vb;

#define vs_load(p) vi_load(p)
#define vs_store(p, v) vi_store(p, v)
#define vs_add(a, b) vi_add_16(a, b)
#define vs_add_saturated(a, b) _mm512_adds_epi16(a, b)
#define vs_set(i) _mm512_set1_epi16(i)
#define vb_store(p, v) vs_store(p, v)

static inline __attribute__((always_inline)) vs vs_bytes(const uint8_t *p, bool is_signed)
{
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return is_signed ? _mm512_cvtepi8_epi16(bytes) : _mm512_cvtepu8_epi16(bytes);
}

static inline __attribute__((always_inline)) vf vs_floats(vs v, int half)
{
    const __m256i some = half ? _mm512_extracti64x4_epi64(v, 1) : _mm512_castsi512_si256(v);
    return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(some));
}

/* Packing is by quarters of a vector: four elements of `a`, four of `b`, then the next four of each. */
static inline vs vs_rounded(vf a, vf b)
{
    return _mm512_packs_epi32(vf_nearest(a), vf_nearest(b));
}

static inline __attribute__((always_inline)) vb vb_pack(vs a, vs b, bool is_signed)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = is_signed ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
    return _mm512_permutexvar_epi32(order, bytes);
}

static inline uint64_t vb_differ(vb a, vb b)
{
    return ~_mm512_cmpeq_epi8_mask(a, b);
}

#include "kernels/pool/average_pool_body.h"
