/* SPDX-License-Identifier: Apache-2.0 */
/* Packing of columns with AVX-512: for each quad a line of lower bytes, then a line of upper bytes, each
 * with an exclusive or with `sign_xor`. */
#ifndef DQ_KERNELS_GEMM_BYTESPLIT_S16S8_AVX512_H
#define DQ_KERNELS_GEMM_BYTESPLIT_S16S8_AVX512_H

#include "kernels/gemm_s16/gemm_bytesplit_s16s8.h"

#include <immintrin.h>

enum { QUADS_LINE = DQ_GEMM_BYTESPLIT_COLS * 4 };

static inline __m512i two_blocks(const uint8_t *x, const uint8_t *y)
{
    __m256i first = _mm256_loadu_si256((const __m256i *)(const void *)x);
    return _mm512_inserti64x4(_mm512_castsi256_si512(first),
                              _mm256_loadu_si256((const __m256i *)(const void *)y), 1);
}

static inline void gather_quads(const uint8_t *const x[2], const uint32_t *offsets, size_t quads,
                                size_t upper, __m512i sign_xor, uint8_t *to)
{
    for (size_t q = 0; q < quads; q++, to += 2 * QUADS_LINE) {
        const uint8_t *a = x[0] + offsets[q], *b = x[1] + offsets[q];
        _mm512_storeu_si512(to, two_blocks(a, b));
        _mm512_storeu_si512(to + QUADS_LINE, _mm512_xor_si512(two_blocks(a + upper, b + upper), sign_xor));
    }
}

#endif
