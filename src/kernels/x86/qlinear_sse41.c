/* QLinearAdd and QLinearMul, eight codes at a time as floats. */
#include "kernels/kernels.h"
#include "kernels/x86/fused_sse41.h"

typedef struct add_terms {
    __m128 a_ratio, b_ratio, fixed;
} add_terms;

typedef struct mul_terms {
    __m128 a_zero, b_zero, ratio, zero;
} mul_terms;

static inline __m128 add4(__m128 a, __m128 b, add_terms t)
{
    return dq_fused_sse41(a, t.a_ratio, dq_fused_sse41(b, t.b_ratio, t.fixed));
}

/* The integers' product is exact in float, too. */
static inline __m128 mul4(__m128 a, __m128 b, mul_terms t)
{
    __m128 product = _mm_mul_ps(_mm_sub_ps(a, t.a_zero), _mm_sub_ps(b, t.b_zero));
    return _mm_add_ps(_mm_mul_ps(product, t.ratio), t.zero);
}

/* The maximum with `low` last: where v is NaN, the instruction gives its second operand. */
static inline __m128i code4(__m128 v, float low, float high)
{
    return _mm_cvtps_epi32(_mm_min_ps(_mm_max_ps(v, _mm_set1_ps(low)), _mm_set1_ps(high)));
}

#define LOAD8(p) _mm_loadl_epi64((const __m128i *)(const void *)(p))

/* y = op(a, b) over `n` codes but for the last n % 8, whose beginning is returned. */
#define ROW(name, type, terms, op, widen, pack8, low, high)                                                  \
    static inline size_t name(const type *a, const type *b, size_t step, size_t n, terms t, type *y)         \
    {                                                                                                        \
        size_t i = 0;                                                                                        \
        __m128 b0 = _mm_set1_ps(n ? (float)*b : 0), b1 = b0;                                                 \
        for (; n - i >= 8; i += 8) {                                                                         \
            __m128i va = LOAD8(a + i);                                                                       \
            if (step) {                                                                                      \
                __m128i vb = LOAD8(b + i);                                                                   \
                b0 = _mm_cvtepi32_ps(widen(vb));                                                             \
                b1 = _mm_cvtepi32_ps(widen(_mm_srli_si128(vb, 4)));                                          \
            }                                                                                                \
            __m128i first = code4(op(_mm_cvtepi32_ps(widen(va)), b0, t), low, high);                         \
            __m128i second = code4(op(_mm_cvtepi32_ps(widen(_mm_srli_si128(va, 4))), b1, t), low, high);     \
            __m128i words = _mm_packs_epi32(first, second);                                                  \
            _mm_storel_epi64((__m128i *)(void *)(y + i), pack8(words, words));                               \
        }                                                                                                    \
        return i;                                                                                            \
    }

ROW(add_u8, uint8_t, add_terms, add4, _mm_cvtepu8_epi32, _mm_packus_epi16, 0, 255)
ROW(add_s8, int8_t, add_terms, add4, _mm_cvtepi8_epi32, _mm_packs_epi16, -128, 127)
ROW(mul_u8, uint8_t, mul_terms, mul4, _mm_cvtepu8_epi32, _mm_packus_epi16, 0, 255)
ROW(mul_s8, int8_t, mul_terms, mul4, _mm_cvtepi8_epi32, _mm_packs_epi16, -128, 127)

#define QLINEAR_ADD(suffix, type)                                                                            \
    void dq_qlinear_add_##suffix##_sse41(const type *a, float a_ratio, const type *b, float b_ratio,         \
                                         size_t step, float fixed, size_t n, type *y)                        \
    {                                                                                                        \
        add_terms t = {_mm_set1_ps(a_ratio), _mm_set1_ps(b_ratio), _mm_set1_ps(fixed)};                      \
        size_t i = add_##suffix(a, b, step, n, t, y);                                                        \
        dq_qlinear_add_##suffix##_c(a + i, a_ratio, b + i * step, b_ratio, step, fixed, n - i, y + i);       \
    }
QLINEAR_ADD(u8, uint8_t)
QLINEAR_ADD(s8, int8_t)

#define QLINEAR_MUL(suffix, type)                                                                            \
    void dq_qlinear_mul_##suffix##_sse41(const type *a, int a_zero, const type *b, int b_zero, size_t step,  \
                                         float ratio, float zero, size_t n, type *y)                         \
    {                                                                                                        \
        mul_terms t = {_mm_set1_ps((float)a_zero), _mm_set1_ps((float)b_zero), _mm_set1_ps(ratio),           \
                       _mm_set1_ps(zero)};                                                                   \
        size_t i = mul_##suffix(a, b, step, n, t, y);                                                        \
        dq_qlinear_mul_##suffix##_c(a + i, a_zero, b + i * step, b_zero, step, ratio, zero, n - i, y + i);   \
    }
QLINEAR_MUL(u8, uint8_t)
QLINEAR_MUL(s8, int8_t)
