/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_sse41.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISA(name) name##_sse41
#define LOWER(name) name##_c

enum { LANES = 8 };
typedef vi vs, vb;

#define vs_load(p) vi_load(p)
#define vs_store(p, v) vi_store(p, v)
#define vs_add(a, b) vi_add_16(a, b)
#define vs_add_saturated(a, b) _mm_adds_epi16(a, b)
#define vs_set(i) _mm_set1_epi16(i)
#define vb_store(p, v) vs_store(p, v)

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
    return _mm_packs_epi32(vf_nearest(a), vf_nearest(b));
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
