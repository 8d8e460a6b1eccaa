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

/* Two channels of up to sixteen columns in the halves of a vector. */
static inline __m512i two_channels(const uint16_t *x, const uint16_t *y, __mmask16 some)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_maskz_loadu_epi16(some, x)),
                              _mm256_maskz_loadu_epi16(some, y), 1);
}

/* Channels of columns (dq_gemm_bytesplit_s16s8_split_fn), with an exclusive or of upper bytes with
 * `sign_xor`. */
static inline void split_quads(const uint16_t *x, size_t step, size_t channels, size_t n, __m512i sign_xor,
                               uint8_t *to)
{
    const __mmask16 some = (__mmask16)((1u << n) - 1);
    const __m512i even = _mm512_set1_epi16(0x00ff), odd = _mm512_set1_epi16((int16_t)0xff00);
    /* Words i and 16 + i become a quad. */
    const __m512i quads =
        _mm512_setr_epi32(0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005, 0x160006, 0x170007,
                          0x180008, 0x190009, 0x1a000a, 0x1b000b, 0x1c000c, 0x1d000d, 0x1e000e, 0x1f000f);
    for (size_t c = 0; c < channels; c += 4, x += 4 * step, to += 2 * QUADS_LINE) {
        const size_t last = channels - c - 1;
        const __m512i ac = two_channels(x, x + (last < 2 ? 0 : 2 * step), some);
        const __m512i bd = two_channels(x + (last < 1 ? 0 : step), x + (last < 3 ? 0 : 3 * step), some);
        /* 0xf8: a | (b & c) */
        const __m512i lower = _mm512_ternarylogic_epi32(_mm512_slli_epi16(bd, 8), ac, even, 0xf8);
        const __m512i upper = _mm512_ternarylogic_epi32(_mm512_srli_epi16(ac, 8), bd, odd, 0xf8);
        _mm512_storeu_si512(to, _mm512_permutexvar_epi16(quads, lower));
        _mm512_storeu_si512(to + QUADS_LINE,
                            _mm512_xor_si512(_mm512_permutexvar_epi16(quads, upper), sign_xor));
    }
}

#endif
