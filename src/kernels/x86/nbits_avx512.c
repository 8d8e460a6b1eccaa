/* As with AVX2, in vectors of 16 columns: four of them, with as many sums as rows. */
#include "kernels/kernels.h"

#include <immintrin.h>

enum { LANES = 16, COLS = DQ_NBITS_COLS, VECTORS = COLS / LANES };
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Field t of a vector of words; bits 0 stands for a table of 4 bits. */
ALWAYS_INLINE __m512 values(__m512i words, int bits, int t, __m512 table)
{
    if (bits == 0) /* the permutation takes the low four bits */
        return _mm512_permutexvar_ps(_mm512_srlv_epi32(words, _mm512_set1_epi32(4 * t)), table);
    if ((t + 1) * bits == 32)
        return _mm512_cvtepi32_ps(_mm512_srli_epi32(words, (unsigned)(32 - bits)));
    int mask = (int)(((1u << bits) - 1) << t * bits);
    return _mm512_cvtepi32_ps(_mm512_and_si512(words, _mm512_set1_epi32(mask)));
}

ALWAYS_INLINE void part(const dq_nbits *b, int bits, const float *x, const float *sums, int rows, float *y)
{
    const int fields = bits ? 32 / bits : 8;
    const uint32_t *w = b->words;
    __m512 table = bits ? _mm512_setzero_ps() : _mm512_loadu_ps(b->table);
    for (int i = 0; i < rows * VECTORS; i++)
        _mm512_storeu_ps(y + i * LANES, _mm512_setzero_ps());
    for (size_t g = 0; g < b->blocks; g++, sums += rows) {
        __m512 s[DQ_NBITS_ROWS * VECTORS];
        for (int i = 0; i < rows * VECTORS; i++)
            s[i] = _mm512_setzero_ps();
        for (size_t c = b->lengths[g]; c > 0; c--, w += COLS)
            for (int t = 0; t < fields; t++, x += rows)
                for (int v = 0; v < VECTORS; v++) {
                    __m512 code = values(_mm512_loadu_si512(w + v * LANES), bits, t, table);
                    for (int r = 0; r < rows; r++)
                        s[r * VECTORS + v] = _mm512_fmadd_ps(code, _mm512_set1_ps(x[r]), s[r * VECTORS + v]);
                }
        for (int i = 0; i < rows * VECTORS; i++) {
            size_t at = g * COLS + (size_t)(i % VECTORS * LANES);
            __m512 zero = b->zeros ? _mm512_loadu_ps(b->zeros + at) : _mm512_set1_ps(b->middle);
            __m512 sum = _mm512_fnmadd_ps(zero, _mm512_set1_ps(sums[i / VECTORS]), s[i]);
            float *to = y + i * LANES;
            _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_loadu_ps(b->scales + at), sum, _mm512_loadu_ps(to)));
        }
    }
}

#define STRIP(name, bits)                                                                                    \
    static void name(const dq_nbits *b, const float *x, const float *sums, size_t rows, float *y)            \
    {                                                                                                        \
        if (rows == 1)                                                                                       \
            part(b, bits, x, sums, 1, y);                                                                    \
        else if (rows == 2)                                                                                  \
            part(b, bits, x, sums, 2, y);                                                                    \
        else if (rows == 3)                                                                                  \
            part(b, bits, x, sums, 3, y);                                                                    \
        else                                                                                                 \
            part(b, bits, x, sums, 4, y);                                                                    \
    }

STRIP(strip2, 2)
STRIP(strip4, 4)
STRIP(strip8, 8)
STRIP(strip_table, 0)

void dq_nbits_avx512(const dq_nbits *b, const float *x, const float *sums, size_t rows, float *y)
{
    if (b->table)
        strip_table(b, x, sums, rows, y);
    else if (b->bits == 4)
        strip4(b, x, sums, rows, y);
    else if (b->bits == 8)
        strip8(b, x, sums, rows, y);
    else
        strip2(b, x, sums, rows, y);
}
