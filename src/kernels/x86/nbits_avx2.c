#include "kernels/x86/accumulate_avx2.h"
#include "kernels/x86/vec_avx2.h"

#define ISA(name) name##_avx2

#include "kernels/nbits_body.h"

enum { LANES = VF_LANES };

/* ---- Weights as floats -------------------------------------------------------------------------------- */

ALWAYS_INLINE __m256 looked_up(const float *table, __m256i codes)
{
    __m256 below = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), codes);
    __m256 above = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + LANES), codes);
    return _mm256_blendv_ps(below, above, _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28)));
}

/* `bits` is a constant in each call, 0 for a table. */
ALWAYS_INLINE void as_floats(const dq_nbits *b, int bits, size_t block, size_t first, size_t count,
                             float *out, size_t panel)
{
    const int each = bits ? bits : 4;
    const __m256i mask = _mm256_set1_epi32((1 << each) - 1);
    for (size_t at = 0; at < COLS; at += LANES) {
        const uint32_t *words = b->words + first * COLS + at;
        float *to = out + at / DQ_FPANEL * panel + at % DQ_FPANEL;
        __m256 scale = _mm256_loadu_ps(b->scales + block * COLS + at);
        __m256 zero = b->zeros ? _mm256_loadu_ps(b->zeros + block * COLS + at) : _mm256_set1_ps(b->middle);
        for (size_t n = 0; n < count; n++, words += COLS) {
            __m256i word = vi_load(words);
#pragma GCC unroll 16
            for (int t = 0; t < 32; t += each, to += DQ_FPANEL) {
                __m256i codes = _mm256_and_si256(_mm256_srli_epi32(word, t), mask);
                __m256 value = bits ? _mm256_cvtepi32_ps(codes) : looked_up(b->table, codes);
                _mm256_storeu_ps(to, _mm256_mul_ps(_mm256_sub_ps(value, zero), scale));
            }
        }
    }
}

void dq_nbits_floats_avx2(const dq_nbits *b, size_t block, size_t first, size_t count, float *out,
                          size_t panel)
{
    if (b->table)
        as_floats(b, 0, block, first, count, out, panel);
    else if (b->bits == 4)
        as_floats(b, 4, block, first, count, out, panel);
    else if (b->bits == 8)
        as_floats(b, 8, block, first, count, out, panel);
    else
        as_floats(b, 2, block, first, count, out, panel);
}
