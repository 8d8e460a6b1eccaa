/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of bytes times weights, for a row and 16 columns: first in 16 bits, then in 32. */
#ifndef DQ_KERNELS_GEMM_S8_AVX2_SUMS_H
#define DQ_KERNELS_GEMM_S8_AVX2_SUMS_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Sums are to be added to where it is written: gcc would first make many products, and write them to memory
 * because registers do not hold them. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-ter", "no-tree-reassoc")
#endif

enum { LANES = 8 };

static inline int32_t four(const void *x)
{
    int32_t bytes;
    memcpy(&bytes, x, sizeof bytes);
    return bytes;
}

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* Weights of 16 columns, in registers: gcc would read them again for each row, and loads are scarce. */
static inline __attribute__((always_inline)) void load_columns(const int8_t *w, __m256i *low, __m256i *high)
{
    *low = load(w);
    *high = load(w + 32);
#ifndef DQ_SIMDE /* where a vector may be an array */
    __asm__("" : "+x"(*low), "+x"(*high));
#endif
}

/* Sums of a row in 16 bits: what compilers keep in registers, as they do not an array of them. */
typedef struct row16 {
    __m256i low, high;
} row16;

static inline __attribute__((always_inline)) void add(row16 *r, const uint8_t *x, __m256i low, __m256i high,
                                                      bool first)
{
    __m256i value = _mm256_set1_epi32(four(x));
    low = _mm256_maddubs_epi16(value, low);
    high = _mm256_maddubs_epi16(value, high);
    r->low = first ? low : _mm256_add_epi16(r->low, low);
    r->high = first ? high : _mm256_add_epi16(r->high, high);
}

/* Of a row: its sums in 32 bits. */
typedef struct row32 {
    __m256i low, high;
} row32;

static inline __attribute__((always_inline)) row32 read_row(const int32_t *c)
{
    return (row32){load(c), load(c + LANES)};
}

static inline __attribute__((always_inline)) void write_row(const row32 *r, int32_t *c)
{
    _mm256_storeu_si256((__m256i *)(void *)c, r->low);
    _mm256_storeu_si256((__m256i *)(void *)(c + LANES), r->high);
}

#endif
