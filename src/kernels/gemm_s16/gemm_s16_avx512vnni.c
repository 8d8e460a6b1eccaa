/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit GEMM with vpdpwssd, which adds both products of a pair to a sum. The first two groups of eight
 * columns fill one vector, the third one half of a vector. */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { ROWS = DQ_GEMM_S16_ROWS, COLS = DQ_GEMM_S16_COLS, LANES = DQ_GEMM_S16_NR };

static inline __m256i load(const int16_t *x)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)x);
}

/* Computes a tile. `blocks` is constant in each call, so that accumulators stay in registers. */
static inline __attribute__((always_inline)) void tile(const int16_t *a, size_t pairs,
                                                       const int16_t *const b[], const uint32_t *offsets,
                                                       int blocks, int32_t *c)
{
    __m512i two[ROWS];
    __m256i one[ROWS];
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i++) {
        two[i] = _mm512_setzero_si512();
        one[i] = _mm256_setzero_si256();
    }
#pragma GCC unroll 2
    for (; pairs > 0; pairs--, a += 2 * ROWS, offsets++) {
        __m256i last = load(b[blocks - 1] + *offsets);
        __m512i first = _mm512_castsi256_si512(load(b[0] + *offsets));
        if (blocks > 1)
            first = _mm512_inserti64x4(first, load(b[1] + *offsets), 1);
#pragma GCC unroll 4
        for (int i = 0; i < ROWS; i++) {
            int32_t word;
            memcpy(&word, a + 2 * i, sizeof word);
            __m512i both = _mm512_set1_epi32(word);
            if (blocks > 1)
                two[i] = _mm512_dpwssd_epi32(two[i], first, both);
            if (blocks != 2)
                one[i] = _mm256_dpwssd_epi32(one[i], last, _mm512_castsi512_si256(both));
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i++, c += COLS) {
        if (blocks > 1)
            _mm512_storeu_si512(c, two[i]);
        if (blocks != 2)
            _mm256_storeu_si256((__m256i *)(void *)(c + (blocks - 1) * LANES), one[i]);
    }
}

void dq_gemm_s16_avx512vnni(const int16_t *a, size_t pairs, const int16_t *const b[DQ_GEMM_S16_BLOCKS],
                            const uint32_t *offsets, size_t blocks, int32_t *c)
{
    if (blocks == 3)
        tile(a, pairs, b, offsets, 3, c);
    else if (blocks == 2)
        tile(a, pairs, b, offsets, 2, c);
    else
        tile(a, pairs, b, offsets, 1, c);
}

/* Stores up to 32 outputs, given those of even and of odd index. */
static inline void put_outputs(__m512i even, __m512i odd, size_t n, int32_t *out)
{
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i up = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    const uint32_t some = n < 32 ? (1u << n) - 1 : UINT32_MAX;
    _mm512_mask_storeu_epi32(out, (__mmask16)some, _mm512_permutex2var_epi32(even, low, odd));
    if (n > 16)
        _mm512_mask_storeu_epi32(out + 16, (__mmask16)(some >> 16), _mm512_permutex2var_epi32(even, up, odd));
}

static inline __m512i weights_of(const int16_t *w)
{
    int32_t word;
    memcpy(&word, w, sizeof word);
    return _mm512_set1_epi32(word);
}

/* Computes up to 32 outputs. Pairs of elements loaded from x give every second output, those loaded from x
 * + 1 the others. */
static inline void outputs(const int16_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps,
                           int32_t init, size_t n, int32_t *out)
{
    __m512i even = _mm512_set1_epi32(init), odd = even;
    for (size_t t = 0; t < taps; t++) {
        const int16_t *z = x + offsets[t];
        even = _mm512_dpwssd_epi32(even, _mm512_loadu_si512(z), weights_of(w + 2 * t));
        odd = _mm512_dpwssd_epi32(odd, _mm512_loadu_si512(z + 1), weights_of(w + 2 * t));
    }
    put_outputs(even, odd, n, out);
}

enum { SIDE = 3 };

/* Whether the pairs are those of a 3 by 3 kernel: two neighbors and the third element, of three rows. */
static inline bool is_3x3(const ptrdiff_t *offsets, size_t taps)
{
    bool is = taps == 2 * SIDE;
    for (size_t i = 0; is && i < SIDE; i++)
        is = offsets[2 * i + 1] == offsets[2 * i] + 2;
    return is;
}

/* The elements of a row from x on and from x + 1 on. */
typedef struct elements {
    __m512i even, odd;
} elements;

static inline elements elements_at(const int16_t *x, __mmask16 some)
{
    return (elements){_mm512_maskz_loadu_epi32(some, x), _mm512_maskz_loadu_epi32(some, x + 1)};
}

/* Pairs 1 to 15 of `low`, then pair 0 of `high`. */
static inline __m512i shifted(__m512i low, __m512i high)
{
    const __m512i order = _mm512_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    return _mm512_permutex2var_epi32(low, order, high);
}

/* Computes a row of a 3 by 3 kernel. Weights and the last elements stay in registers; the second pair reads
 * those of the first one, shifted by a pair. */
static void row_3x3(const int16_t *x, const ptrdiff_t *offsets, const int16_t *w, int32_t init, size_t n,
                    int32_t *out)
{
    enum { STEP = 32 };
    __m512i weights[2 * SIDE];
    elements last[SIDE];
    const int16_t *z[SIDE];
#pragma GCC unroll 3
    for (int i = 0; i < SIDE; i++) {
        weights[2 * i] = weights_of(w + 4 * i);
        weights[2 * i + 1] = weights_of(w + 4 * i + 2);
        z[i] = x + offsets[2 * i];
        last[i] = elements_at(z[i], 0xffff);
    }
    for (size_t j = 0; j < n; j += STEP) {
        const __mmask16 some = n - j > STEP ? 0xffff : 1;
        __m512i even = _mm512_set1_epi32(init), odd = even;
#pragma GCC unroll 3
        for (int i = 0; i < SIDE; i++) {
            const elements next = elements_at(z[i] + j + STEP, some);
            even = _mm512_dpwssd_epi32(even, last[i].even, weights[2 * i]);
            odd = _mm512_dpwssd_epi32(odd, last[i].odd, weights[2 * i]);
            even = _mm512_dpwssd_epi32(even, shifted(last[i].even, next.even), weights[2 * i + 1]);
            odd = _mm512_dpwssd_epi32(odd, shifted(last[i].odd, next.odd), weights[2 * i + 1]);
            last[i] = next;
        }
        put_outputs(even, odd, n - j, out + j);
    }
}

void dq_dwconv_rows_s16_avx512vnni(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                                   const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out)
{
    const bool rows_3x3 = is_3x3(offsets, taps);
    for (; rows > 0 && n > 0; rows--, x += step, out += n)
        if (rows_3x3)
            row_3x3(x, offsets, w, init, n, out);
        else
            for (size_t j = 0; j < n; j += 32)
                outputs(x + j, offsets, w, taps, init, n - j, out + j);
}
