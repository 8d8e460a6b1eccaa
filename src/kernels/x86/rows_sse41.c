/* Rows of quantizing and dequantizing, eight numbers at a time as two vectors; the rest of a row is the
 * portable kernel's. Where a quotient is NaN, maxps gives its second operand, so that the lower bound stands
 * there. */
#include "kernels/kernels.h"

#include <immintrin.h>

/* ---- Eight integers of each type as int32, and back (the values fit the type) ---- */

typedef struct eight {
    __m128i low, high;
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

/* ---- Quantizing ---- */

typedef struct bounds {
    __m128 low, high; /* of a quotient */
    __m128i zero;
} bounds;

static inline bounds bounds_of(__m128i zero, int32_t min, int32_t max)
{
    return (bounds){_mm_cvtepi32_ps(_mm_sub_epi32(_mm_set1_epi32(min), zero)),
                    _mm_cvtepi32_ps(_mm_sub_epi32(_mm_set1_epi32(max), zero)), zero};
}

static inline __m128i quantize(const float *x, __m128 scale, const bounds *b)
{
    __m128 q = _mm_div_ps(_mm_loadu_ps(x), scale);
    q = _mm_min_ps(_mm_max_ps(q, b->low), b->high);
    return _mm_add_epi32(_mm_cvtps_epi32(q), b->zero); /* to nearest even */
}

#define QUANTIZE(suffix, type, min, max)                                                                     \
    void dq_quantize_f32_##suffix##_sse41(const float *x, size_t n, const float *scale, const type *zero,    \
                                          size_t step, type *y)                                              \
    {                                                                                                        \
        size_t i = 0;                                                                                        \
        if (n >= 8) {                                                                                        \
            __m128 s0 = _mm_set1_ps(scale[0]), s1 = s0;                                                      \
            bounds b0 = bounds_of(_mm_set1_epi32(zero ? zero[0] : 0), min, max), b1 = b0;                    \
            for (; i + 8 <= n; i += 8) {                                                                     \
                if (step) {                                                                                  \
                    s0 = _mm_loadu_ps(scale + i);                                                            \
                    s1 = _mm_loadu_ps(scale + i + 4);                                                        \
                }                                                                                            \
                if (step && zero) {                                                                          \
                    eight z = load_##suffix(zero + i);                                                       \
                    b0 = bounds_of(z.low, min, max);                                                         \
                    b1 = bounds_of(z.high, min, max);                                                        \
                }                                                                                            \
                store_##suffix(y + i, (eight){quantize(x + i, s0, &b0), quantize(x + i + 4, s1, &b1)});      \
            }                                                                                                \
        }                                                                                                    \
        dq_quantize_f32_##suffix##_c(x + i, n - i, scale + i * step, zero ? zero + i * step : NULL, step,    \
                                     y + i);                                                                 \
    }

QUANTIZE(u8, uint8_t, 0, UINT8_MAX)
QUANTIZE(s8, int8_t, INT8_MIN, INT8_MAX)
QUANTIZE(u16, uint16_t, 0, UINT16_MAX)
QUANTIZE(s16, int16_t, INT16_MIN, INT16_MAX)

/* ---- Dequantizing ---- */

static inline __m128 dequantize(__m128i x, __m128i zero, __m128 scale)
{
    return _mm_mul_ps(_mm_cvtepi32_ps(_mm_sub_epi32(x, zero)), scale);
}

#define DEQUANTIZE(suffix, type)                                                                             \
    void dq_dequantize_##suffix##_f32_sse41(const type *x, size_t n, const float *scale, const type *zero,   \
                                            size_t step, float *y)                                           \
    {                                                                                                        \
        size_t i = 0;                                                                                        \
        if (n >= 8) {                                                                                        \
            __m128 s0 = _mm_set1_ps(scale[0]), s1 = s0;                                                      \
            eight z = {_mm_set1_epi32(zero ? zero[0] : 0), _mm_set1_epi32(zero ? zero[0] : 0)};              \
            for (; i + 8 <= n; i += 8) {                                                                     \
                if (step) {                                                                                  \
                    s0 = _mm_loadu_ps(scale + i);                                                            \
                    s1 = _mm_loadu_ps(scale + i + 4);                                                        \
                    if (zero)                                                                                \
                        z = load_##suffix(zero + i);                                                         \
                }                                                                                            \
                eight codes = load_##suffix(x + i);                                                          \
                _mm_storeu_ps(y + i, dequantize(codes.low, z.low, s0));                                      \
                _mm_storeu_ps(y + i + 4, dequantize(codes.high, z.high, s1));                                \
            }                                                                                                \
        }                                                                                                    \
        dq_dequantize_##suffix##_f32_c(x + i, n - i, scale + i * step, zero ? zero + i * step : NULL, step,  \
                                       y + i);                                                               \
    }

DEQUANTIZE(u8, uint8_t)
DEQUANTIZE(s8, int8_t)
DEQUANTIZE(u16, uint16_t)
DEQUANTIZE(s16, int16_t)

/* ---- Minima and sums ---- */

/* minps and maxps give their second operand where the first is NaN. */
void dq_minmax_f32_sse41(const float *x, size_t n, float *lo, float *hi)
{
    size_t i = 0;
    __m128 low[2] = {_mm_set1_ps(*lo), _mm_set1_ps(*lo)}, high[2] = {_mm_set1_ps(*hi), _mm_set1_ps(*hi)};
    for (; i + 8 <= n; i += 8)
        for (int v = 0; v < 2; v++) {
            __m128 some = _mm_loadu_ps(x + i + 4 * v);
            low[v] = _mm_min_ps(some, low[v]);
            high[v] = _mm_max_ps(some, high[v]);
        }
    float lanes[8];
    _mm_storeu_ps(lanes, _mm_min_ps(low[0], low[1]));
    _mm_storeu_ps(lanes + 4, _mm_max_ps(high[0], high[1]));
    for (int v = 0; v < 4; v++) {
        *lo = lanes[v] < *lo ? lanes[v] : *lo;
        *hi = lanes[4 + v] > *hi ? lanes[4 + v] : *hi;
    }
    dq_minmax_f32_c(x + i, n - i, lo, hi);
}

void dq_subtract_scaled_sse41(int32_t *c, size_t n, int32_t factor, const int32_t *v)
{
    size_t i = 0;
    __m128i f = _mm_set1_epi32(factor);
    for (; i + 4 <= n; i += 4) {
        __m128i product = _mm_mullo_epi32(words_at(v + i), f);
        _mm_storeu_si128((__m128i *)(void *)(c + i), _mm_sub_epi32(words_at(c + i), product));
    }
    dq_subtract_scaled_c(c + i, n - i, factor, v + i);
}
