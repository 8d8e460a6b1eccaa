/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for the compiler's header when kernels are compiled for a plain x86-64: SIMDe gives the
 * intrinsics in portable C, and what follows it gives those that SIMDe 0.7.4 (Debian 12) lacks and kernels
 * use. What stands under #ifndef is left out where a newer SIMDe (0.8.2 in Debian 13) has it. */
#ifndef DQ_TESTS_SIMDE_IMMINTRIN_H
#define DQ_TESTS_SIMDE_IMMINTRIN_H

/* Newer clangs have among what belongs to SSE2 a vector of bfloat16, of another type than SIMDe gives this
 * name (no kernel uses it), and the comparisons of AVX as far as SSE2 has them, which SIMDe takes for all. */
#ifdef __SSE2__
#include <emmintrin.h>
#define __m128bh shim_m128bh
#undef _CMP_EQ_OQ
#undef _CMP_LT_OS
#undef _CMP_LE_OS
#undef _CMP_UNORD_Q
#undef _CMP_NEQ_UQ
#undef _CMP_NLT_US
#undef _CMP_NLE_US
#undef _CMP_ORD_Q
#endif
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
#undef __m128bh

#include "base/codec.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef _MM_FROUND_NO_EXC
#define _MM_FROUND_TO_NEAREST_INT SIMDE_MM_FROUND_TO_NEAREST_INT
#define _MM_FROUND_NO_EXC SIMDE_MM_FROUND_NO_EXC
#endif

/* Masks are plain integers here as they are in the compilers' headers. */
#define __mmask8 simde__mmask8
#define __mmask16 simde__mmask16
#define __mmask32 simde__mmask32
#define __mmask64 simde__mmask64

/* ---- Loads and stores under a mask: a lane that is off is not touched in memory ---- */

#define SHIM_MASKED(prefix, suffix, vector, lane, lanes, mask)                                               \
    static inline vector prefix##_mask_loadu_##suffix(vector other, mask m, const void *from)                \
    {                                                                                                        \
        lane v[lanes];                                                                                       \
        memcpy(v, &other, sizeof v);                                                                         \
        for (int i = 0; i < lanes; i++)                                                                      \
            if (m >> i & 1)                                                                                  \
                memcpy(v + i, (const char *)from + i * sizeof v[0], sizeof v[0]);                            \
        memcpy(&other, v, sizeof v);                                                                         \
        return other;                                                                                        \
    }                                                                                                        \
    static inline vector prefix##_maskz_loadu_##suffix(mask m, const void *from)                             \
    {                                                                                                        \
        vector zero;                                                                                         \
        memset(&zero, 0, sizeof zero);                                                                       \
        return prefix##_mask_loadu_##suffix(zero, m, from);                                                  \
    }                                                                                                        \
    static inline void prefix##_mask_storeu_##suffix(void *to, mask m, vector value)                         \
    {                                                                                                        \
        lane v[lanes];                                                                                       \
        memcpy(v, &value, sizeof v);                                                                         \
        for (int i = 0; i < lanes; i++)                                                                      \
            if (m >> i & 1)                                                                                  \
                memcpy((char *)to + i * sizeof v[0], v + i, sizeof v[0]);                                    \
    }

/* A newer SIMDe has some of them, each version others: these stand in for all. */
#undef _mm512_mask_loadu_ps
#undef _mm512_maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#undef _mm512_mask_loadu_pd
#undef _mm512_maskz_loadu_pd
#undef _mm512_mask_storeu_pd
#undef _mm512_mask_loadu_epi8
#undef _mm512_maskz_loadu_epi8
#undef _mm512_mask_storeu_epi8
#undef _mm512_mask_loadu_epi16
#undef _mm512_maskz_loadu_epi16
#undef _mm512_mask_storeu_epi16
#undef _mm512_mask_loadu_epi32
#undef _mm512_maskz_loadu_epi32
#undef _mm512_mask_storeu_epi32
#undef _mm512_mask_loadu_epi64
#undef _mm512_maskz_loadu_epi64
#undef _mm512_mask_storeu_epi64
#undef _mm256_mask_loadu_ps
#undef _mm256_maskz_loadu_ps
#undef _mm256_mask_storeu_ps
#undef _mm256_mask_loadu_pd
#undef _mm256_maskz_loadu_pd
#undef _mm256_mask_storeu_pd
#undef _mm256_mask_loadu_epi8
#undef _mm256_maskz_loadu_epi8
#undef _mm256_mask_storeu_epi8
#undef _mm256_mask_loadu_epi16
#undef _mm256_maskz_loadu_epi16
#undef _mm256_mask_storeu_epi16
#undef _mm256_mask_loadu_epi32
#undef _mm256_maskz_loadu_epi32
#undef _mm256_mask_storeu_epi32
#undef _mm256_mask_loadu_epi64
#undef _mm256_maskz_loadu_epi64
#undef _mm256_mask_storeu_epi64
#undef _mm_mask_loadu_ps
#undef _mm_maskz_loadu_ps
#undef _mm_mask_storeu_ps
#undef _mm_mask_loadu_epi8
#undef _mm_maskz_loadu_epi8
#undef _mm_mask_storeu_epi8
#undef _mm_mask_loadu_epi16
#undef _mm_maskz_loadu_epi16
#undef _mm_mask_storeu_epi16
#undef _mm_mask_loadu_epi32
#undef _mm_maskz_loadu_epi32
#undef _mm_mask_storeu_epi32
SHIM_MASKED(_mm512, ps, __m512, float, 16, __mmask16)
SHIM_MASKED(_mm512, pd, __m512d, double, 8, __mmask8)
SHIM_MASKED(_mm512, epi8, __m512i, int8_t, 64, __mmask64)
SHIM_MASKED(_mm512, epi16, __m512i, int16_t, 32, __mmask32)
SHIM_MASKED(_mm512, epi32, __m512i, int32_t, 16, __mmask16)
SHIM_MASKED(_mm512, epi64, __m512i, int64_t, 8, __mmask8)
SHIM_MASKED(_mm256, ps, __m256, float, 8, __mmask8)
SHIM_MASKED(_mm256, pd, __m256d, double, 4, __mmask8)
SHIM_MASKED(_mm256, epi8, __m256i, int8_t, 32, __mmask32)
SHIM_MASKED(_mm256, epi16, __m256i, int16_t, 16, __mmask16)
SHIM_MASKED(_mm256, epi32, __m256i, int32_t, 8, __mmask8)
SHIM_MASKED(_mm256, epi64, __m256i, int64_t, 4, __mmask8)
SHIM_MASKED(_mm, ps, __m128, float, 4, __mmask8)
SHIM_MASKED(_mm, epi8, __m128i, int8_t, 16, __mmask16)
SHIM_MASKED(_mm, epi16, __m128i, int16_t, 8, __mmask8)
SHIM_MASKED(_mm, epi32, __m128i, int32_t, 4, __mmask8)

#ifndef _mm512_mask_i32gather_ps
static inline __m512 _mm512_mask_i32gather_ps(__m512 other, __mmask16 m, __m512i places, const void *from,
                                              int scale)
{
    int32_t at[16];
    float v[16];
    memcpy(at, &places, sizeof at);
    memcpy(v, &other, sizeof v);
    for (int i = 0; i < 16; i++)
        if (m >> i & 1)
            memcpy(v + i, (const char *)from + (ptrdiff_t)at[i] * scale, sizeof v[0]);
    memcpy(&other, v, sizeof v);
    return other;
}
#endif

/* SIMDe 0.7.4 reads the lanes that are off. */
static inline __m256 shim_maskload_ps(const float *from, __m256i mask)
{
    int32_t on[8];
    float v[8] = {0};
    __m256 out;
    memcpy(on, &mask, sizeof on);
    for (int i = 0; i < 8; i++)
        if (on[i] < 0)
            v[i] = from[i];
    memcpy(&out, v, sizeof out);
    return out;
}
#undef _mm256_maskload_ps
#define _mm256_maskload_ps shim_maskload_ps

#ifndef _mm512_mask_cmplt_epu32_mask
static inline __mmask16 _mm512_mask_cmplt_epu32_mask(__mmask16 m, __m512i a, __m512i b)
{
    return (__mmask16)(m & ~_mm512_cmple_epu32_mask(b, a));
}
#endif
#ifndef _mm512_testn_epi32_mask
static inline __mmask16 _mm512_testn_epi32_mask(__m512i a, __m512i b)
{
    return (__mmask16)~_mm512_test_epi32_mask(a, b);
}
#endif

/* ---- Conversions lane by lane ---- */

#define SHIM_CONVERT(name, vector_to, lane_to, vector_from, lane_from, lanes)                                \
    static inline vector_to name(vector_from value)                                                          \
    {                                                                                                        \
        lane_from v[sizeof value / sizeof(lane_from)];                                                       \
        lane_to w[sizeof(vector_to) / sizeof(lane_to)] = {0};                                                \
        vector_to out;                                                                                       \
        memcpy(v, &value, sizeof v);                                                                         \
        for (int i = 0; i < lanes; i++)                                                                      \
            w[i] = (lane_to)v[i];                                                                            \
        memcpy(&out, w, sizeof w);                                                                           \
        return out;                                                                                          \
    }

#ifndef _mm512_cvtepi32_ps
SHIM_CONVERT(_mm512_cvtepi32_ps, __m512, float, __m512i, int32_t, 16)
#endif
#ifndef _mm512_cvtepi32_pd
SHIM_CONVERT(_mm512_cvtepi32_pd, __m512d, double, __m256i, int32_t, 8)
#endif
#ifndef _mm512_cvtpd_ps
SHIM_CONVERT(_mm512_cvtpd_ps, __m256, float, __m512d, double, 8)
#endif
#ifndef _mm512_cvtps_pd
SHIM_CONVERT(_mm512_cvtps_pd, __m512d, double, __m256, float, 8)
#endif
#ifndef _mm512_cvtepu8_epi32
SHIM_CONVERT(_mm512_cvtepu8_epi32, __m512i, int32_t, __m128i, uint8_t, 16)
#endif
#ifndef _mm512_cvtepi8_epi32
SHIM_CONVERT(_mm512_cvtepi8_epi32, __m512i, int32_t, __m128i, int8_t, 16)
#endif
#ifndef _mm512_cvtepu16_epi32
SHIM_CONVERT(_mm512_cvtepu16_epi32, __m512i, int32_t, __m256i, uint16_t, 16)
#endif
#ifndef _mm512_cvtepi16_epi32
SHIM_CONVERT(_mm512_cvtepi16_epi32, __m512i, int32_t, __m256i, int16_t, 16)
#endif
#ifndef _mm512_cvtepi32_epi64
SHIM_CONVERT(_mm512_cvtepi32_epi64, __m512i, int64_t, __m256i, int32_t, 8)
#endif
#ifndef _mm512_cvtepu8_epi16
SHIM_CONVERT(_mm512_cvtepu8_epi16, __m512i, int16_t, __m256i, uint8_t, 32)
#endif
#ifndef _mm512_cvtepi32_epi8
SHIM_CONVERT(_mm512_cvtepi32_epi8, __m128i, int8_t, __m512i, int32_t, 16)
#endif
#ifndef _mm512_cvtepi32_epi16
SHIM_CONVERT(_mm512_cvtepi32_epi16, __m256i, int16_t, __m512i, int32_t, 16)
#endif
#ifndef _mm256_cvtepi32_epi8
SHIM_CONVERT(_mm256_cvtepi32_epi8, __m128i, int8_t, __m256i, int32_t, 8)
#endif
#ifndef _mm256_cvtepi32_epi16
SHIM_CONVERT(_mm256_cvtepi32_epi16, __m128i, int16_t, __m256i, int32_t, 8)
#endif

#undef _mm512_mask_cvtepi32_storeu_epi8
#undef _mm512_mask_cvtepi32_storeu_epi16
#undef _mm256_mask_cvtepi32_storeu_epi8
static inline void _mm512_mask_cvtepi32_storeu_epi8(void *to, __mmask16 m, __m512i value)
{
    _mm_mask_storeu_epi8(to, m, _mm512_cvtepi32_epi8(value));
}
static inline void _mm512_mask_cvtepi32_storeu_epi16(void *to, __mmask16 m, __m512i value)
{
    _mm256_mask_storeu_epi16(to, m, _mm512_cvtepi32_epi16(value));
}
static inline void _mm256_mask_cvtepi32_storeu_epi8(void *to, __mmask8 m, __m256i value)
{
    _mm_mask_storeu_epi8(to, m, _mm256_cvtepi32_epi8(value));
}

/* SIMDe's float16 loses what a NaN carries; the processor and the library's own codec keep it. */
#undef _mm_cvtph_ps
#undef _mm_cvtps_ph
#undef _mm256_cvtph_ps
#undef _mm256_cvtps_ph
#undef _mm512_cvtph_ps
#undef _mm512_cvtps_ph
#define SHIM_FLOAT16(prefix, floats, halves, lanes)                                                          \
    static inline floats prefix##_cvtph_ps(halves value)                                                     \
    {                                                                                                        \
        uint16_t v[sizeof value / sizeof(uint16_t)];                                                         \
        float w[lanes];                                                                                      \
        floats out;                                                                                          \
        memcpy(v, &value, sizeof v);                                                                         \
        for (int i = 0; i < lanes; i++)                                                                      \
            w[i] = dq_f16_to_f32(v[i]);                                                                      \
        memcpy(&out, w, sizeof out);                                                                         \
        return out;                                                                                          \
    }                                                                                                        \
    static inline halves prefix##_cvtps_ph(floats value, int rounding)                                       \
    {                                                                                                        \
        float v[lanes];                                                                                      \
        uint16_t w[sizeof(halves) / sizeof(uint16_t)] = {0};                                                 \
        halves out;                                                                                          \
        (void)rounding; /* to nearest even */                                                                \
        memcpy(v, &value, sizeof v);                                                                         \
        for (int i = 0; i < lanes; i++)                                                                      \
            w[i] = dq_f32_to_f16(v[i]);                                                                      \
        memcpy(&out, w, sizeof out);                                                                         \
        return out;                                                                                          \
    }
SHIM_FLOAT16(_mm, __m128, __m128i, 4)
SHIM_FLOAT16(_mm256, __m256, __m128i, 8)
SHIM_FLOAT16(_mm512, __m512, __m256i, 16)

/* ---- Fused products and sums: SIMDe rounds twice ---- */

#undef _mm_fmadd_ps
#undef _mm_fmadd_pd
#undef _mm_fnmadd_ps
#undef _mm_fnmadd_pd
#undef _mm_fmsub_ps
#undef _mm_fmsub_pd
#undef _mm_fnmsub_ps
#undef _mm_fnmsub_pd
#undef _mm256_fmadd_ps
#undef _mm256_fmadd_pd
#undef _mm256_fnmadd_ps
#undef _mm256_fnmadd_pd
#undef _mm256_fmsub_ps
#undef _mm256_fmsub_pd
#undef _mm256_fnmsub_ps
#undef _mm256_fnmsub_pd
#undef _mm512_fmadd_ps
#undef _mm512_fmadd_pd
#undef _mm512_fnmadd_ps
#undef _mm512_fnmadd_pd
#undef _mm512_fmsub_ps
#undef _mm512_fmsub_pd
#undef _mm512_fnmsub_ps
#undef _mm512_fnmsub_pd
#define SHIM_FUSED(name, vector, lane, lanes, function, sign_ab, sign_c)                                     \
    static inline vector name(vector a, vector b, vector c)                                                  \
    {                                                                                                        \
        lane x[lanes], y[lanes], z[lanes];                                                                   \
        memcpy(x, &a, sizeof x);                                                                             \
        memcpy(y, &b, sizeof y);                                                                             \
        memcpy(z, &c, sizeof z);                                                                             \
        for (int i = 0; i < lanes; i++)                                                                      \
            z[i] = function(sign_ab x[i], y[i], sign_c z[i]);                                                \
        memcpy(&c, z, sizeof c);                                                                             \
        return c;                                                                                            \
    }
#define SHIM_FUSED_ALL(prefix, suffix, vector, lane, lanes, function)                                        \
    SHIM_FUSED(prefix##_fmadd_##suffix, vector, lane, lanes, function, +, +)                                 \
    SHIM_FUSED(prefix##_fnmadd_##suffix, vector, lane, lanes, function, -, +)                                \
    SHIM_FUSED(prefix##_fmsub_##suffix, vector, lane, lanes, function, +, -)                                 \
    SHIM_FUSED(prefix##_fnmsub_##suffix, vector, lane, lanes, function, -, -)
SHIM_FUSED_ALL(_mm, ps, __m128, float, 4, fmaf)
SHIM_FUSED_ALL(_mm256, ps, __m256, float, 8, fmaf)
SHIM_FUSED_ALL(_mm512, ps, __m512, float, 16, fmaf)
SHIM_FUSED_ALL(_mm, pd, __m128d, double, 2, fma)
SHIM_FUSED_ALL(_mm256, pd, __m256d, double, 4, fma)
SHIM_FUSED_ALL(_mm512, pd, __m512d, double, 8, fma)

/* ---- Rounding named by the instruction -------------------------------------------------------------- */
/* To nearest even is the only one in use, and the mode that tests run in. */

#ifndef _mm512_cvt_roundps_epi32
static inline __m512i _mm512_cvt_roundps_epi32(__m512 value, int rounding)
{
    (void)rounding;
    __m256 v[2];
    __m256i w[2];
    __m512i out;
    memcpy(v, &value, sizeof v);
    for (int i = 0; i < 2; i++)
        w[i] = _mm256_cvtps_epi32(v[i]);
    memcpy(&out, w, sizeof out);
    return out;
}
#endif
#ifndef _mm512_cvt_roundpd_epi32
static inline __m256i _mm512_cvt_roundpd_epi32(__m512d value, int rounding)
{
    (void)rounding;
    __m256d v[2];
    __m128i w[2];
    __m256i out;
    memcpy(v, &value, sizeof v);
    for (int i = 0; i < 2; i++)
        w[i] = _mm256_cvtpd_epi32(v[i]);
    memcpy(&out, w, sizeof out);
    return out;
}
#endif

#ifndef _mm512_reduce_ps
static inline __m512 _mm512_reduce_ps(__m512 value, int digits)
{
    float v[16];
    (void)digits; /* 0: what is left of the nearest integer */
    memcpy(v, &value, sizeof v);
    for (int i = 0; i < 16; i++)
        v[i] -= rintf(v[i]);
    memcpy(&value, v, sizeof v);
    return value;
}
#endif

/* ---- Lanes and halves ---- */

/* SIMDe 0.7.4 gives this name to the function under a mask. */
#undef _mm512_madd_epi16
#define _mm512_madd_epi16(a, b) simde_mm512_madd_epi16(a, b)

#ifndef _mm512_srai_epi32
static inline __m512i _mm512_srai_epi32(__m512i value, unsigned bits)
{
    int32_t v[16];
    memcpy(v, &value, sizeof v);
    for (int i = 0; i < 16; i++)
        v[i] >>= bits < 32 ? bits : 31;
    memcpy(&value, v, sizeof v);
    return value;
}
#endif
#ifndef _mm512_extractf32x8_ps
static inline __m256 _mm512_extractf32x8_ps(__m512 value, int half)
{
    __m256 halves[2];
    memcpy(halves, &value, sizeof halves);
    return halves[half & 1];
}
#endif
#ifndef _mm512_cvtps_epi32
#define _mm512_cvtps_epi32(value) _mm512_cvt_roundps_epi32(value, 0)
#endif
#ifndef _mm512_cvtpd_epi32
#define _mm512_cvtpd_epi32(value) _mm512_cvt_roundpd_epi32(value, 0)
#endif
#ifndef _mm512_cvttps_epi32
SHIM_CONVERT(_mm512_cvttps_epi32, __m512i, int32_t, __m512, float, 16)
#endif

/* ---- Dot products of AVX-VNNI: those of AVX-512 VNNI under other names ---- */

#ifndef _mm256_dpbusd_avx_epi32
#define _mm256_dpbusd_avx_epi32 _mm256_dpbusd_epi32
#define _mm256_dpwssd_avx_epi32 _mm256_dpwssd_epi32
#define _mm_dpbusd_avx_epi32 _mm_dpbusd_epi32
#endif

/* ---- Tiles of AMX ----------------------------------------------------------------------------------- */
/* SIMDe has nothing of them: registers of a thread, as strict about shapes as a processor. */

typedef struct shim_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t line[16];
    uint8_t rows[16];
} shim_shapes;

static _Thread_local shim_shapes shim_shape; /* palette 0: no tile may be used */
static _Thread_local uint8_t shim_tile[8][16][64];

static inline void shim_need(int holds)
{
    if (!holds)
        __builtin_trap();
}

static inline void shim_need_tile(int n)
{
    shim_need(shim_shape.palette == 1 && shim_shape.rows[n] > 0 && shim_shape.line[n] > 0);
}

static inline void _tile_loadconfig(const void *shapes)
{
    memcpy(&shim_shape, shapes, sizeof shim_shape);
    memset(shim_tile, 0, sizeof shim_tile);
    shim_need(shim_shape.palette == 1 && shim_shape.start_row == 0);
    for (int i = 0; i < 16; i++) {
        shim_need(shim_shape.rows[i] <= (i < 8 ? 16 : 0) && shim_shape.line[i] <= (i < 8 ? 64 : 0));
        shim_need((shim_shape.rows[i] == 0) == (shim_shape.line[i] == 0));
    }
}

static inline void _tile_release(void)
{
    memset(&shim_shape, 0, sizeof shim_shape);
}

static inline void _tile_loadd(int n, const void *from, size_t stride)
{
    shim_need_tile(n);
    memset(shim_tile[n], 0, sizeof shim_tile[n]);
    for (size_t i = 0; i < shim_shape.rows[n]; i++)
        memcpy(shim_tile[n][i], (const char *)from + i * stride, shim_shape.line[n]);
}

static inline void _tile_zero(int n)
{
    shim_need_tile(n);
    memset(shim_tile[n], 0, sizeof shim_tile[n]);
}

static inline void _tile_stored(int n, void *to, size_t stride)
{
    shim_need_tile(n);
    for (size_t i = 0; i < shim_shape.rows[n]; i++)
        memcpy((char *)to + i * stride, shim_tile[n][i], shim_shape.line[n]);
}

#undef _mm512_reduce_add_epi32
#define _mm512_reduce_add_epi32(value) shim_sum_epi32(value)
static inline int shim_sum_epi32(__m512i value)
{
    uint32_t lanes[16], sum = 0;
    memcpy(lanes, &value, sizeof lanes);
    for (int i = 0; i < 16; i++)
        sum += lanes[i];
    return (int)sum;
}

static inline int shim_code(uint8_t byte, int is_signed)
{
    return is_signed ? (int8_t)byte : byte;
}

/* Sums c of rows a by columns b, four of whose positions stand side by side. */
static inline void shim_dots(int c, int a, int a_signed, int b, int b_signed)
{
    const shim_shapes *s = &shim_shape;
    shim_need_tile(c);
    shim_need_tile(a);
    shim_need_tile(b);
    shim_need(s->rows[c] == s->rows[a] && s->line[c] == s->line[b] && s->line[a] == 4 * s->rows[b]);
    for (size_t i = 0; i < s->rows[c]; i++)
        for (size_t j = 0; j < s->line[c] / 4u; j++) {
            uint32_t sum;
            memcpy(&sum, shim_tile[c][i] + 4 * j, sizeof sum);
            for (size_t k = 0; k < s->line[a]; k++)
                sum += (uint32_t)(shim_code(shim_tile[a][i][k], a_signed) *
                                  shim_code(shim_tile[b][k / 4][4 * j + k % 4], b_signed));
            memcpy(shim_tile[c][i] + 4 * j, &sum, sizeof sum);
        }
}

#define _tile_dpbusd(c, a, b) shim_dots(c, a, 0, b, 1)
#define _tile_dpbsud(c, a, b) shim_dots(c, a, 1, b, 0)
#define _tile_dpbssd(c, a, b) shim_dots(c, a, 1, b, 1)

#endif
