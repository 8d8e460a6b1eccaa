/* SPDX-License-Identifier: Apache-2.0 */
/* Quantization and dequantization of rows, eight floats at a time; the portable kernel does the tail of a
 * row. vmaxps returns its second operand for NaN, here the lower bound.
 *
 * Rows far longer than the caches (`far`) are written with non-temporal stores, which do not read the memory
 * first. */
#include "kernels/simd/vec_avx2.h"

#include "kernels/elementwise/divide_body.h"

#define ISA(name) name##_avx2

#include "kernels/requantize/finish_body.h"

static inline __m128i low_bytes(const void *p)
{
    return _mm_loadl_epi64(p);
}

/* Convert eight integers of a type to int32, and back (the values fit the type). */
static inline __m256i load_u8(const uint8_t *x)
{
    return _mm256_cvtepu8_epi32(low_bytes(x));
}
static inline __m256i load_s8(const int8_t *x)
{
    return _mm256_cvtepi8_epi32(low_bytes(x));
}
static inline __m256i load_u16(const uint16_t *x)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)x));
}
static inline __m256i load_s16(const int16_t *x)
{
    return _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(const void *)x));
}
static inline __m128i halves(__m256i v, bool is_signed)
{
    __m128i low = _mm256_castsi256_si128(v), high = _mm256_extracti128_si256(v, 1);
    return is_signed ? _mm_packs_epi32(low, high) : _mm_packus_epi32(low, high);
}
static inline void store_u8(uint8_t *y, __m256i v)
{
    __m128i words = halves(v, true);
    _mm_storel_epi64((__m128i *)(void *)y, _mm_packus_epi16(words, words));
}
static inline void store_s8(int8_t *y, __m256i v)
{
    __m128i words = halves(v, true);
    _mm_storel_epi64((__m128i *)(void *)y, _mm_packs_epi16(words, words));
}
static inline void store_u16(uint16_t *y, __m256i v)
{
    _mm_storeu_si128((__m128i *)(void *)y, halves(v, false));
}
static inline void store_s16(int16_t *y, __m256i v)
{
    _mm_storeu_si128((__m128i *)(void *)y, halves(v, true));
}

/* ---- Quantizing ---------------------------------------------------------------------------------------- */

typedef struct bounds {
    __m256 low, high; /* bounds of the quotient */
    __m256i zero;
} bounds;

static inline bounds bounds_of(__m256i zero, int32_t min, int32_t max)
{
    return (bounds){_mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_set1_epi32(min), zero)),
                    _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_set1_epi32(max), zero)), zero};
}

static inline __m256i quantize(const float *x, __m256 scale, const bounds *b)
{
    __m256 q = _mm256_div_ps(_mm256_loadu_ps(x), scale);
    q = _mm256_min_ps(_mm256_max_ps(q, b->low), b->high);
    q = _mm256_round_ps(q, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm256_add_epi32(_mm256_cvttps_epi32(q), b->zero);
}

/* Lower and upper bounds of the scale's reciprocal, in magnitude (reciprocal.h). */
typedef struct factors {
    __m256 inner, outer;
} factors;

static inline factors factors_of(float scale)
{
    float r = 1 / scale;
    return (factors){_mm256_set1_ps(r * (1 - DQ_RECIPROCAL_OFF)),
                     _mm256_set1_ps(r * (1 + DQ_RECIPROCAL_OFF))};
}

/* Quantizes 32 values by products with the scale's reciprocal. Returns false and writes nothing if a product
 * is too near a tie, NaN, or out of int32's range (the conversion then gives INT32_MIN). Everything else
 * saturates on its way to a byte. */
static inline bool quantize_32(const float *x, const factors *f, const bounds *b, bool is_signed, bool far,
                               void *y)
{
    const __m256i zero = _mm256_packs_epi32(b->zero, b->zero);
    __m256i v[4], off = _mm256_setzero_si256();
    for (int i = 0; i < 4; i++) {
        __m256 some = _mm256_loadu_ps(x + 8 * i);
        v[i] = _mm256_cvtps_epi32(_mm256_mul_ps(some, f->outer));
        off = _mm256_or_si256(off, _mm256_xor_si256(v[i], _mm256_cvtps_epi32(_mm256_mul_ps(some, f->inner))));
    }
    __m256i low = _mm256_packs_epi32(v[0], v[1]), high = _mm256_packs_epi32(v[2], v[3]);
    off = _mm256_or_si256(off, _mm256_cmpeq_epi16(_mm256_min_epi16(low, high), _mm256_set1_epi16(INT16_MIN)));
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(off, _mm256_setzero_si256())) != -1)
        return false;
    low = _mm256_adds_epi16(low, zero);
    high = _mm256_adds_epi16(high, zero);
    __m256i bytes = is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    if (far)
        _mm256_stream_si256(y, bytes);
    else
        _mm256_storeu_si256(y, bytes);
    return true;
}

/* Quantizes 8 values by divide_body.h. It clamps before the division, to bounds times the scale: their
 * quotients are next to the bounds. */
static inline __m256i quantize_near(const float *x, const divisor *scale, const bounds *b)
{
    __m256 within = _mm256_min_ps(_mm256_max_ps(_mm256_loadu_ps(x), b->low), b->high);
    return _mm256_add_epi32(_mm256_cvtps_epi32(divided(within, scale)), b->zero);
}

/* Quantizes whole vectors of 16-bit results; returns the number of elements. */
static __attribute__((noinline)) size_t quantize_words(const float *x, size_t n, float scale, const bounds *b,
                                                       bool is_signed, uint16_t *y)
{
    const divisor s = divisor_of(scale);
    size_t i = 0;
    const bounds near = {_mm256_mul_ps(b->low, s.by), _mm256_mul_ps(b->high, s.by), b->zero};
    for (; i + 16 <= n; i += 16) {
        __m256i low = quantize_near(x + i, &s, &near), high = quantize_near(x + i + 8, &s, &near);
        __m256i words = is_signed ? _mm256_packs_epi32(low, high) : _mm256_packus_epi32(low, high);
        _mm256_storeu_si256((__m256i *)(void *)(y + i), _mm256_permute4x64_epi64(words, 0xd8));
    }
    return i;
}

/* Quantizes 8 values, each by its own scale and zero point, to int32; packing them to bytes saturates. NaN
 * becomes the lower bound. */
static inline __m256i quantize_each(const float *x, const float *scale, const void *zero, bool is_signed)
{
    const __m256 q = _mm256_div_ps(_mm256_loadu_ps(x), _mm256_loadu_ps(scale));
    const __m256 within =
        _mm256_min_ps(_mm256_max_ps(q, _mm256_set1_ps(-DQ_FAR_QUOTIENT)), _mm256_set1_ps(DQ_FAR_QUOTIENT));
    return _mm256_add_epi32(_mm256_cvtps_epi32(within), is_signed ? load_s8(zero) : load_u8(zero));
}

/* Quantizes 32 values at a time, each by its own scale and zero point; returns the number of elements. */
static inline size_t quantize_bytes(const float *x, size_t n, const float *scale, const uint8_t *zero,
                                    bool is_signed, uint8_t *y)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i v[4];
        for (size_t k = 0; k < 4; k++)
            v[k] = quantize_each(x + i + 8 * k, scale + i + 8 * k, zero + i + 8 * k, is_signed);
        const __m256i low = _mm256_packs_epi32(v[0], v[1]), high = _mm256_packs_epi32(v[2], v[3]);
        const __m256i bytes = is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
        _mm256_storeu_si256((__m256i *)(void *)(y + i),
                            _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
    }
    return i;
}

/* Elements until the results are aligned to a vector. */
static inline size_t until_aligned(const void *y, size_t width)
{
    return (size_t)(-(uintptr_t)y % 32) / width;
}

#define QUANTIZE(suffix, type, min, max)                                                                     \
    void dq_quantize_f32_##suffix##_avx2(const float *x, size_t n, const float *scale, const type *zero,     \
                                         size_t step, type *y)                                               \
    {                                                                                                        \
        size_t i = 0;                                                                                        \
        if (n >= 8) {                                                                                        \
            __m256 s = _mm256_set1_ps(scale[0]);                                                             \
            bounds b = bounds_of(_mm256_set1_epi32(zero ? zero[0] : 0), min, max);                           \
            bool fast = sizeof(type) == 1 && step == 0 && dq_reciprocal_serves(scale[0]);                    \
            bool far = fast && n >= DQ_FAR_ROW;                                                              \
            const factors f = factors_of(scale[0]);                                                          \
            if (far) {                                                                                       \
                i = until_aligned(y, sizeof(type));                                                          \
                dq_quantize_f32_##suffix##_c(x, i, scale, zero, 0, y);                                       \
            }                                                                                                \
            if (sizeof(type) == 2 && step == 0 && dq_divides(scale[0]))                                      \
                i = quantize_words(x, n, scale[0], &b, (min) < 0, (uint16_t *)y);                            \
            if (sizeof(type) == 1 && step && zero)                                                           \
                i = quantize_bytes(x, n, scale, (const uint8_t *)zero, (min) < 0, (uint8_t *)y);             \
            for (; fast && n - i >= 32; i += 32)                                                             \
                if (!quantize_32(x + i, &f, &b, (min) < 0, far, y + i))                                      \
                    for (size_t k = i; k < i + 32; k += 8)                                                   \
                        store_##suffix(y + k, quantize(x + k, s, &b));                                       \
            for (; i + 8 <= n; i += 8) {                                                                     \
                if (step) {                                                                                  \
                    s = _mm256_loadu_ps(scale + i);                                                          \
                    if (zero)                                                                                \
                        b = bounds_of(load_##suffix(zero + i), min, max);                                    \
                }                                                                                            \
                store_##suffix(y + i, quantize(x + i, s, &b));                                               \
            }                                                                                                \
            if (far)                                                                                         \
                _mm_sfence();                                                                                \
        }                                                                                                    \
        if (i < n)                                                                                           \
            dq_quantize_f32_##suffix##_c(x + i, n - i, scale + i * step, zero ? zero + i * step : NULL,      \
                                         step, y + i);                                                       \
    }

QUANTIZE(u8, uint8_t, 0, UINT8_MAX)
QUANTIZE(s8, int8_t, INT8_MIN, INT8_MAX)
QUANTIZE(u16, uint16_t, 0, UINT16_MAX)
QUANTIZE(s16, int16_t, INT16_MIN, INT16_MAX)

/* ---- Dequantizing -------------------------------------------------------------------------------------- */

#define DEQUANTIZE(suffix, type)                                                                             \
    void dq_dequantize_##suffix##_f32_avx2(const type *x, size_t n, const float *scale, const type *zero,    \
                                           size_t step, float *y)                                            \
    {                                                                                                        \
        size_t i = 0;                                                                                        \
        if (n >= 8) {                                                                                        \
            __m256 s = _mm256_set1_ps(scale[0]);                                                             \
            __m256i z = _mm256_set1_epi32(zero ? zero[0] : 0);                                               \
            if (step == 0 && n >= DQ_FAR_ROW) {                                                              \
                i = until_aligned(y, sizeof *y);                                                             \
                dq_dequantize_##suffix##_f32_c(x, i, scale, zero, 0, y);                                     \
                for (; i + 8 <= n; i += 8) {                                                                 \
                    __m256i d = _mm256_sub_epi32(load_##suffix(x + i), z);                                   \
                    _mm256_stream_ps(y + i, _mm256_mul_ps(_mm256_cvtepi32_ps(d), s));                        \
                }                                                                                            \
                _mm_sfence();                                                                                \
            }                                                                                                \
            for (; i + 8 <= n; i += 8) {                                                                     \
                if (step) {                                                                                  \
                    s = _mm256_loadu_ps(scale + i);                                                          \
                    if (zero)                                                                                \
                        z = load_##suffix(zero + i);                                                         \
                }                                                                                            \
                __m256i d = _mm256_sub_epi32(load_##suffix(x + i), z);                                       \
                _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_cvtepi32_ps(d), s));                            \
            }                                                                                                \
        }                                                                                                    \
        if (i < n)                                                                                           \
            dq_dequantize_##suffix##_f32_c(x + i, n - i, scale + i * step, zero ? zero + i * step : NULL,    \
                                           step, y + i);                                                     \
    }

DEQUANTIZE(u8, uint8_t)
DEQUANTIZE(s8, int8_t)
DEQUANTIZE(u16, uint16_t)
DEQUANTIZE(s16, int16_t)

#define DEQUANTIZE_BLOCKS(suffix, type)                                                                      \
    void dq_dequantize_blocks_##suffix##_f32_avx2(const type *x, size_t blocks, size_t block,                \
                                                  const float *scale, const type *zero, float *y)            \
    {                                                                                                        \
        size_t whole = block / 8 * 8, rest = block - whole;                                                  \
        for (size_t b = 0; b < blocks; b++, x += block, y += block) {                                        \
            __m256 s = _mm256_set1_ps(scale[b]);                                                             \
            __m256i z = _mm256_set1_epi32(zero ? zero[b] : 0);                                               \
            for (size_t i = 0; i < whole; i += 8) {                                                          \
                __m256i d = _mm256_sub_epi32(load_##suffix(x + i), z);                                       \
                _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_cvtepi32_ps(d), s));                            \
            }                                                                                                \
            if (rest)                                                                                        \
                dq_dequantize_##suffix##_f32_c(x + whole, rest, scale + b, zero ? zero + b : NULL, 0,        \
                                               y + whole);                                                   \
        }                                                                                                    \
    }

DEQUANTIZE_BLOCKS(u8, uint8_t)
DEQUANTIZE_BLOCKS(s8, int8_t)

/* Subtracts a zero point from four int32: exact in double, then rounded to float once. */
static inline __m128 difference(const int32_t *x, __m256d zero)
{
    __m256d wide = _mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)(const void *)x));
    return _mm256_cvtpd_ps(_mm256_sub_pd(wide, zero));
}

void dq_dequantize_s32_f32_avx2(const int32_t *x, size_t n, const float *scale, const int32_t *zero,
                                size_t step, float *y)
{
    size_t i = 0;
    if (n >= 4) {
        __m128 s = _mm_set1_ps(scale[0]);
        __m256d z = _mm256_set1_pd(zero ? zero[0] : 0);
        for (; i + 4 <= n; i += 4) {
            if (step) {
                s = _mm_loadu_ps(scale + i);
                if (zero)
                    z = _mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)(const void *)(zero + i)));
            }
            _mm_storeu_ps(y + i, _mm_mul_ps(difference(x + i, z), s));
        }
    }
    dq_dequantize_s32_f32_c(x + i, n - i, scale + i * step, zero ? zero + i * step : NULL, step, y + i);
}

/* ---- Minimum and maximum, conversions ------------------------------------------------------------------ */

#include "kernels/quantize/minmax_body.h"

void dq_convert_f16_f32_avx2(const uint16_t *x, size_t n, float *y)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(x + i))));
    dq_convert_f16_f32_c(x + i, n - i, y + i);
}

void dq_convert_f32_f16_avx2(const float *x, size_t n, uint16_t *y)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm_storeu_si128((__m128i *)(void *)(y + i), h);
    }
    dq_convert_f32_f16_c(x + i, n - i, y + i);
}
