/* SPDX-License-Identifier: Apache-2.0 */
/* Accumulators of a row and 16 columns for the AVX2 8-bit GEMM: first 16-bit, then 32-bit. */
#ifndef DQ_KERNELS_GEMM_S8_AVX2_SUMS_H
#define DQ_KERNELS_GEMM_S8_AVX2_SUMS_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Keeps additions in source order: gcc would compute many products first and spill them to memory. */
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

/* Loads the weights of 16 columns into registers. Without the barrier gcc reloads them for each row, and load
 * ports are the bottleneck. */
static inline __attribute__((always_inline)) void load_columns(const int8_t *w, __m256i *low, __m256i *high)
{
    *low = load(w);
    *high = load(w + 32);
#ifndef DQ_SIMDE /* SIMDe may represent a vector as an array */
    __asm__("" : "+x"(*low), "+x"(*high));
#endif
}

/* 16-bit sums of a row. A struct, because compilers keep it in registers, but not an array. */
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

/* 32-bit sums of a row. */
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
