/* SPDX-License-Identifier: Apache-2.0 */
#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISA(name) name##_sse41
#define LOWER(name) name##_c

enum { LANES = 8 };
typedef __m128i vs, vb;
typedef __m128 vf;

#define vs_load(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define vs_store(p, v) _mm_storeu_si128((__m128i *)(void *)(p), v)
#define vs_add(a, b) _mm_add_epi16(a, b)
#define vs_add_saturated(a, b) _mm_adds_epi16(a, b)
#define vs_set(i) _mm_set1_epi16(i)
#define vb_store(p, v) vs_store(p, v)
#define vf_load(p) _mm_loadu_ps(p)
#define vf_set(v) _mm_set1_ps(v)
#define vf_add(a, b) _mm_add_ps(a, b)
#define vf_mul(a, b) _mm_mul_ps(a, b)

static inline __attribute__((always_inline)) vs vs_bytes(const uint8_t *p, bool is_signed)
{
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return is_signed ? _mm_cvtepi8_epi16(bytes) : _mm_cvtepu8_epi16(bytes);
}

static inline __attribute__((always_inline)) vf vs_floats(vs v, int half)
{
    return _mm_cvtepi32_ps(_mm_cvtepi16_epi32(half ? _mm_srli_si128(v, 8) : v));
}

static inline vs vs_rounded(vf a, vf b)
{
    return _mm_packs_epi32(_mm_cvtps_epi32(a), _mm_cvtps_epi32(b));
}

static inline __attribute__((always_inline)) vb vb_pack(vs a, vs b, bool is_signed)
{
    return is_signed ? _mm_packs_epi16(a, b) : _mm_packus_epi16(a, b);
}

static inline uint32_t vb_differ(vb a, vb b)
{
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(a, b)) ^ UINT16_MAX;
}

#include "kernels/pool/average_pool_body.h"
