/* SPDX-License-Identifier: Apache-2.0 */
/* Quantization and dequantization of rows, sixteen floats at a time; the tail is masked. Dequantizing with a
 * scale for each element is bound by memory accesses: AVX2's kernel is as fast. */
#include "kernels/kernels.h"
#include "kernels/simd/vec_avx512.h"

#include "kernels/elementwise/divide_body.h"

enum { LANES = 16, AHEAD = 1024 /* a page: hardware prefetchers stop at its end */ };

static inline void ahead(const float *x)
{
    _mm_prefetch((const void *)((uintptr_t)x + AHEAD * sizeof *x), _MM_HINT_T0);
}

static inline __mmask16 some(size_t left)
{
    return left < LANES ? (__mmask16)((1u << left) - 1) : (__mmask16)0xffff;
}

/* Convert sixteen integers of a type to int32, and back (the values fit the type). */
#define INTEGERS(suffix, type, load_bits, widen, store_bits)                                                 \
    static inline __m512i load_##suffix(__mmask16 m, const type *x)                                          \
    {                                                                                                        \
        return widen(load_bits(m, x));                                                                       \
    }                                                                                                        \
    static inline void store_##suffix(type *y, __mmask16 m, __m512i v)                                       \
    {                                                                                                        \
        store_bits(y, m, v);                                                                                 \
    }

INTEGERS(u8, uint8_t, _mm_maskz_loadu_epi8, _mm512_cvtepu8_epi32, _mm512_mask_cvtepi32_storeu_epi8)
INTEGERS(s8, int8_t, _mm_maskz_loadu_epi8, _mm512_cvtepi8_epi32, _mm512_mask_cvtepi32_storeu_epi8)
INTEGERS(u16, uint16_t, _mm256_maskz_loadu_epi16, _mm512_cvtepu16_epi32, _mm512_mask_cvtepi32_storeu_epi16)
INTEGERS(s16, int16_t, _mm256_maskz_loadu_epi16, _mm512_cvtepi16_epi32, _mm512_mask_cvtepi32_storeu_epi16)

typedef struct bounds {
    __m512 low, high; /* bounds of the quotient */
    __m512i zero;
} bounds;

static inline bounds bounds_of(__m512i zero, int32_t min, int32_t max)
{
    return (bounds){_mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_set1_epi32(min), zero)),
                    _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_set1_epi32(max), zero)), zero};
}

/* Quantizes 16 values. The maximum returns its second operand for NaN. */
static inline __m512i quantize(__m512 x, __m512 scale, const bounds *b)
{
    __m512 q = _mm512_min_ps(_mm512_max_ps(_mm512_div_ps(x, scale), b->low), b->high);
    return _mm512_add_epi32(_mm512_cvt_roundps_epi32(q, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                            b->zero);
}

/* Quantizes 64 values by products with the scale's reciprocal, as on AVX2. Returns false and writes nothing
 * if a product is too near a tie, NaN, or out of int32's range. */
static inline bool quantize_64(const float *x, float reciprocal, const bounds *b, bool is_signed, void *y)
{
    const __m512 inner = _mm512_set1_ps(reciprocal * (1 - DQ_RECIPROCAL_OFF));
    const __m512 outer = _mm512_set1_ps(reciprocal * (1 + DQ_RECIPROCAL_OFF));
    const __m512i zero = _mm512_packs_epi32(b->zero, b->zero);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i v[4], off = _mm512_setzero_si512();
    for (int i = 0; i < 4; i++) {
        __m512 some_x = _mm512_loadu_ps(x + i * LANES);
        ahead(x + (size_t)i * LANES);
        v[i] = _mm512_cvtps_epi32(_mm512_mul_ps(some_x, outer));
        off = _mm512_or_si512(off, _mm512_xor_si512(v[i], _mm512_cvtps_epi32(_mm512_mul_ps(some_x, inner))));
    }
    __m512i low = _mm512_packs_epi32(v[0], v[1]), high = _mm512_packs_epi32(v[2], v[3]);
    if (_mm512_test_epi32_mask(off, off) ||
        _mm512_cmple_epi16_mask(_mm512_min_epi16(low, high), _mm512_set1_epi16(INT16_MIN)))
        return false;
    low = _mm512_adds_epi16(low, zero);
    high = _mm512_adds_epi16(high, zero);
    __m512i bytes = is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
    _mm512_storeu_si512(y, _mm512_permutexvar_epi32(order, bytes));
    return true;
}

/* Quantizes 16 values by divide_body.h. It clamps before the division, to bounds times the scale: their
 * quotients are next to the bounds. */
static inline __m512i quantize_near(const float *x, const divisor *scale, const bounds *b)
{
    __m512 within = _mm512_min_ps(_mm512_max_ps(_mm512_loadu_ps(x), b->low), b->high);
    ahead(x);
    return _mm512_add_epi32(_mm512_cvtps_epi32(divided(within, scale)), b->zero);
}

/* Quantizes whole vectors of 16-bit results; returns the number of elements. */
static __attribute__((noinline)) size_t quantize_words(const float *x, size_t n, float scale, const bounds *b,
                                                       bool is_signed, uint16_t *y)
{
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    const divisor s = divisor_of(scale);
    size_t i = 0;
    const bounds near = {_mm512_mul_ps(b->low, s.by), _mm512_mul_ps(b->high, s.by), b->zero};
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        __m512i low = quantize_near(x + i, &s, &near), high = quantize_near(x + i + LANES, &s, &near);
        __m512i words = is_signed ? _mm512_packs_epi32(low, high) : _mm512_packus_epi32(low, high);
        _mm512_storeu_si512(y + i, _mm512_permutexvar_epi64(order, words));
    }
    return i;
}

/* Quantizes 16 values, each by its own scale and zero point, to int32; packing them to bytes saturates. NaN
 * becomes the lower bound. */
static inline __m512i quantize_each(const float *x, const float *scale, const uint8_t *zero, bool is_signed)
{
    const __m512 q = _mm512_div_ps(_mm512_loadu_ps(x), _mm512_loadu_ps(scale));
    const __m512 within =
        _mm512_min_ps(_mm512_max_ps(q, _mm512_set1_ps(-DQ_FAR_QUOTIENT)), _mm512_set1_ps(DQ_FAR_QUOTIENT));
    const __m512i z = is_signed ? load_s8(0xffff, (const int8_t *)zero) : load_u8(0xffff, zero);
    ahead(x);
    return _mm512_add_epi32(_mm512_cvtps_epi32(within), z);
}

/* Quantizes 64 values at a time, each by its own scale and zero point; returns the number of elements. */
static inline size_t quantize_bytes(const float *x, size_t n, const float *scale, const uint8_t *zero,
                                    bool is_signed, uint8_t *y)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    size_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        __m512i v[4];
        for (size_t k = 0; k < 4; k++)
            v[k] = quantize_each(x + i + k * LANES, scale + i + k * LANES, zero + i + k * LANES, is_signed);
        const __m512i low = _mm512_packs_epi32(v[0], v[1]), high = _mm512_packs_epi32(v[2], v[3]);
        const __m512i bytes = is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
        _mm512_storeu_si512(y + i, _mm512_permutexvar_epi32(order, bytes));
    }
    return i;
}

#define QUANTIZE(suffix, type, min, max)                                                                     \
    void dq_quantize_f32_##suffix##_avx512(const float *x, size_t n, const float *scale, const type *zero,   \
                                           size_t step, type *y)                                             \
    {                                                                                                        \
        if (step || n == 0) {                                                                                \
            const size_t done =                                                                              \
                sizeof(type) == 1 && n && zero                                                               \
                    ? quantize_bytes(x, n, scale, (const uint8_t *)zero, (min) < 0, (uint8_t *)y)            \
                    : 0;                                                                                     \
            dq_quantize_f32_##suffix##_avx2(x + done, n - done, scale + done, zero ? zero + done : NULL,     \
                                            step, y + done);                                                 \
            return;                                                                                          \
        }                                                                                                    \
        const __m512 s = _mm512_set1_ps(scale[0]);                                                           \
        const bounds b = bounds_of(_mm512_set1_epi32(zero ? zero[0] : 0), min, max);                         \
        const bool fast = sizeof(type) == 1 && dq_reciprocal_serves(scale[0]);                               \
        const float reciprocal = 1 / scale[0];                                                               \
        size_t i = 0;                                                                                        \
        if (sizeof(type) == 2 && dq_divides(scale[0]))                                                       \
            i = quantize_words(x, n, scale[0], &b, (min) < 0, (uint16_t *)y);                                \
        for (; i < n; i += LANES) {                                                                          \
            if (fast && n - i >= 4 * LANES && quantize_64(x + i, reciprocal, &b, (min) < 0, y + i)) {        \
                i += 3 * LANES;                                                                              \
                continue;                                                                                    \
            }                                                                                                \
            __mmask16 m = some(n - i);                                                                       \
            ahead(x + i);                                                                                    \
            store_##suffix(y + i, m, quantize(_mm512_maskz_loadu_ps(m, x + i), s, &b));                      \
        }                                                                                                    \
    }

QUANTIZE(u8, uint8_t, 0, UINT8_MAX)
QUANTIZE(s8, int8_t, INT8_MIN, INT8_MAX)
QUANTIZE(u16, uint16_t, 0, UINT16_MAX)
QUANTIZE(s16, int16_t, INT16_MIN, INT16_MAX)

#define DEQUANTIZE(suffix, type)                                                                             \
    static inline void dequantize_##suffix(const type *x, __mmask16 m, __m512 scale, __m512i zero, float *y) \
    {                                                                                                        \
        __m512i d = _mm512_sub_epi32(load_##suffix(m, x), zero);                                             \
        _mm512_mask_storeu_ps(y, m, _mm512_mul_ps(_mm512_cvtepi32_ps(d), scale));                            \
    }                                                                                                        \
    void dq_dequantize_##suffix##_f32_avx512(const type *x, size_t n, const float *scale, const type *zero,  \
                                             size_t step, float *y)                                          \
    {                                                                                                        \
        if (step || n == 0 || n >= DQ_FAR_ROW) { /* AVX2's kernel has non-temporal stores */                 \
            dq_dequantize_##suffix##_f32_avx2(x, n, scale, zero, step, y);                                   \
            return;                                                                                          \
        }                                                                                                    \
        const __m512 s = _mm512_set1_ps(scale[0]);                                                           \
        const __m512i z = _mm512_set1_epi32(zero ? zero[0] : 0);                                             \
        size_t i = 0;                                                                                        \
        for (; i + LANES <= n; i += LANES)                                                                   \
            dequantize_##suffix(x + i, 0xffff, s, z, y + i);                                                 \
        if (i < n)                                                                                           \
            dequantize_##suffix(x + i, some(n - i), s, z, y + i);                                            \
    }

DEQUANTIZE(u8, uint8_t)
DEQUANTIZE(s8, int8_t)
DEQUANTIZE(u16, uint16_t)
DEQUANTIZE(s16, int16_t)

#define ISA(name) name##_avx512
#define AHEAD_OF(x) ahead(x)

#include "kernels/quantize/minmax_body.h"
