/* SPDX-License-Identifier: Apache-2.0 */
/* Template: 16-bit GEMM with 256-bit vectors, included once per ISA level. The file of the ISA level defines
 * before the include
 *   ISA(name)                  the name of a kernel of this level
 *   v_dot_16(sums, a, b)       sums plus the products of pairs of int16 */
#include "kernels/kernels.h"

#include <immintrin.h>

enum { ROWS = DQ_GEMM_S16_ROWS, COLS = DQ_GEMM_S16_COLS, NR = DQ_GEMM_S16_NR };

static inline __m256i load(const int16_t *x)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)x);
}

/* Hides from the compiler that memory at x was read before: it would keep the value in a register that
 * accumulators need. */
static inline const int16_t *afresh(const int16_t *x)
{
    __asm__ volatile("" : "+r"(x));
    return x;
}

/* Accumulators of a row. A struct, because compilers keep it in registers, but not an array. */
typedef struct row {
    __m256i first, second, third;
} row;

static inline __attribute__((always_inline)) void add(row *r, const int16_t *a, __m256i first, __m256i second,
                                                      const int16_t *third, int blocks)
{
    __m256i x = _mm256_castps_si256(_mm256_broadcast_ss((const float *)(const void *)a));
    r->first = v_dot_16(r->first, x, first);
    if (blocks > 1)
        r->second = v_dot_16(r->second, x, second);
    if (blocks > 2)
        r->third = v_dot_16(r->third, x, load(afresh(third)));
}

static inline void put(const row *r, int blocks, int32_t *c)
{
    _mm256_storeu_si256((__m256i *)(void *)c, r->first);
    if (blocks > 1)
        _mm256_storeu_si256((__m256i *)(void *)(c + NR), r->second);
    if (blocks > 2)
        _mm256_storeu_si256((__m256i *)(void *)(c + 2 * NR), r->third);
}

/* Computes a tile. `blocks` is constant in each call, so that accumulators stay in registers: twelve of
 * sixteen. The others hold two vectors of b, one of a and a product; the third vector of b is read from the
 * cache each time. */
static inline __attribute__((always_inline)) void tile(const int16_t *a, size_t pairs,
                                                       const int16_t *const b[], const uint32_t *offsets,
                                                       int blocks, int32_t *c)
{
    const row zero = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
    row r0 = zero, r1 = zero, r2 = zero, r3 = zero;
    const int16_t *x = b[0], *y = b[blocks > 1 ? 1 : 0], *z = b[blocks > 2 ? 2 : 0];
    for (; pairs > 0; pairs--, a += 2 * ROWS, offsets++) {
        size_t at = *offsets;
        __m256i first = load(x + at), second = blocks > 1 ? load(y + at) : first;
        add(&r0, a, first, second, z + at, blocks);
        add(&r1, a + 2, first, second, z + at, blocks);
        add(&r2, a + 4, first, second, z + at, blocks);
        add(&r3, a + 6, first, second, z + at, blocks);
    }
    put(&r0, blocks, c);
    put(&r1, blocks, c + COLS);
    put(&r2, blocks, c + 2 * COLS);
    put(&r3, blocks, c + 3 * COLS);
}

void ISA(dq_gemm_s16)(const int16_t *a, size_t pairs, const int16_t *const b[DQ_GEMM_S16_BLOCKS],
                      const uint32_t *offsets, size_t blocks, int32_t *c)
{
    if (blocks == 3)
        tile(a, pairs, b, offsets, 3, c);
    else if (blocks == 2)
        tile(a, pairs, b, offsets, 2, c);
    else
        tile(a, pairs, b, offsets, 1, c);
}
