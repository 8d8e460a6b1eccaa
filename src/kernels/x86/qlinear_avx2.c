/* QLinearAdd and QLinearMul, 32 codes at a time as floats. */
#include "kernels/kernels.h"

#include <immintrin.h>

typedef struct add_terms {
    __m256 a_ratio, b_ratio, fixed;
} add_terms;

typedef struct mul_terms {
    __m256 a_zero, b_zero, ratio, zero;
} mul_terms;

static inline __m256 add8(__m256 a, __m256 b, add_terms t)
{
    return _mm256_fmadd_ps(a, t.a_ratio, _mm256_fmadd_ps(b, t.b_ratio, t.fixed));
}

/* The integers' product is exact in float, too. */
static inline __m256 mul8(__m256 a, __m256 b, mul_terms t)
{
    __m256 product = _mm256_mul_ps(_mm256_sub_ps(a, t.a_zero), _mm256_sub_ps(b, t.b_zero));
    return _mm256_add_ps(_mm256_mul_ps(product, t.ratio), t.zero);
}

/* The maximum with `low` last: where v is NaN, the instruction gives its second operand. */
static inline __m256i code8(__m256 v, float low, float high)
{
    v = _mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(low)), _mm256_set1_ps(high));
    return _mm256_cvtps_epi32(v);
}

/* The packs work on each half of a register; the permutation puts the groups of four in order. */
#define PACK32(pack8, i)                                                                                     \
    _mm256_permutevar8x32_epi32(pack8(_mm256_packs_epi32(i[0], i[1]), _mm256_packs_epi32(i[2], i[3])),       \
                                _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
#define PACK8(pack8, i)                                                                                      \
    pack8(_mm_packs_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1)), _mm_setzero_si128())

#define LOAD8(widen, p) _mm256_cvtepi32_ps(widen(_mm_loadl_epi64((const __m128i *)(const void *)(p))))

/* y = op(a, b) over `n` codes but for the last n % 8, whose beginning is returned. */
#define ROW(name, type, terms, op, widen, pack8_128, pack8_256, low, high)                                   \
    static inline size_t name(const type *a, const type *b, size_t step, size_t n, terms t, type *y)         \
    {                                                                                                        \
        size_t i = 0;                                                                                        \
        __m256 same = n ? _mm256_set1_ps((float)*b) : _mm256_setzero_ps();                                   \
        for (; n - i >= 32; i += 32) {                                                                       \
            __m256i codes[4];                                                                                \
            for (size_t k = 0; k < 4; k++) {                                                                 \
                __m256 vb = step ? LOAD8(widen, b + i + 8 * k) : same;                                       \
                codes[k] = code8(op(LOAD8(widen, a + i + 8 * k), vb, t), low, high);                         \
            }                                                                                                \
            _mm256_storeu_si256((__m256i *)(void *)(y + i), PACK32(pack8_256, codes));                       \
        }                                                                                                    \
        for (; n - i >= 8; i += 8) {                                                                         \
            __m256 vb = step ? LOAD8(widen, b + i) : same;                                                   \
            __m256i codes = code8(op(LOAD8(widen, a + i), vb, t), low, high);                                \
            _mm_storel_epi64((__m128i *)(void *)(y + i), PACK8(pack8_128, codes));                           \
        }                                                                                                    \
        return i;                                                                                            \
    }

ROW(add_u8, uint8_t, add_terms, add8, _mm256_cvtepu8_epi32, _mm_packus_epi16, _mm256_packus_epi16, 0, 255)
ROW(add_s8, int8_t, add_terms, add8, _mm256_cvtepi8_epi32, _mm_packs_epi16, _mm256_packs_epi16, -128, 127)
ROW(mul_u8, uint8_t, mul_terms, mul8, _mm256_cvtepu8_epi32, _mm_packus_epi16, _mm256_packus_epi16, 0, 255)
ROW(mul_s8, int8_t, mul_terms, mul8, _mm256_cvtepi8_epi32, _mm_packs_epi16, _mm256_packs_epi16, -128, 127)

#define QLINEAR_ADD(suffix, type)                                                                            \
    void dq_qlinear_add_##suffix##_avx2(const type *a, float a_ratio, const type *b, float b_ratio,          \
                                        size_t step, float fixed, size_t n, type *y)                         \
    {                                                                                                        \
        add_terms t = {_mm256_set1_ps(a_ratio), _mm256_set1_ps(b_ratio), _mm256_set1_ps(fixed)};             \
        size_t i = add_##suffix(a, b, step, n, t, y);                                                        \
        dq_qlinear_add_##suffix##_c(a + i, a_ratio, b + i * step, b_ratio, step, fixed, n - i, y + i);       \
    }
QLINEAR_ADD(u8, uint8_t)
QLINEAR_ADD(s8, int8_t)

#define QLINEAR_MUL(suffix, type)                                                                            \
    void dq_qlinear_mul_##suffix##_avx2(const type *a, int a_zero, const type *b, int b_zero, size_t step,   \
                                        float ratio, float zero, size_t n, type *y)                          \
    {                                                                                                        \
        mul_terms t = {_mm256_set1_ps((float)a_zero), _mm256_set1_ps((float)b_zero), _mm256_set1_ps(ratio),  \
                       _mm256_set1_ps(zero)};                                                                \
        size_t i = mul_##suffix(a, b, step, n, t, y);                                                        \
        dq_qlinear_mul_##suffix##_c(a + i, a_zero, b + i * step, b_zero, step, ratio, zero, n - i, y + i);   \
    }
QLINEAR_MUL(u8, uint8_t)
QLINEAR_MUL(s8, int8_t)
