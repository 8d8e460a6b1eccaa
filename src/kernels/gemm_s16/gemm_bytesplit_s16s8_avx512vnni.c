/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-split GEMM with vpdpbusd, which multiplies uint8 by int8. Upper bytes are packed plus 128, and 128
 * times the sum of the weights is subtracted. */
#include "kernels/gemm_s16/gemm_bytesplit_s16s8_avx512.h"
#include "kernels/kernels.h"

#include <string.h>

enum {
    ROWS = DQ_GEMM_BYTESPLIT_ROWS,
    COLS = DQ_GEMM_BYTESPLIT_COLS,
    LINE = QUADS_LINE,
    DEPTH = DQ_GEMM_BYTESPLIT_DEPTH,
    MAX_ROWS = 8, /* rows of a register tile */
    FEW_ROWS = 4  /* rows of the last one, if no more are left */
};

static void gather(const uint8_t *const x[2], const uint32_t *offsets, size_t quads, size_t upper,
                   uint8_t *to)
{
    gather_quads(x, offsets, quads, upper, _mm512_set1_epi8((char)0x80), to);
}

static void split(const uint16_t *x, size_t step, size_t channels, size_t n, uint16_t sign_xor, uint8_t *to)
{
    split_quads(x, step, channels, n, _mm512_set1_epi8((char)(sign_xor >> 8 ^ 0x80)), to);
}

/* Computes a register tile. `rows` is constant in each call, so that accumulators stay in registers. */
static inline __attribute__((always_inline)) void some_rows(const int8_t *w, const int32_t *sums, int rows,
                                                            size_t quads, const uint8_t *x, int32_t *lower,
                                                            int32_t *upper)
{
    __m512i low[MAX_ROWS], high[MAX_ROWS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        low[i] = _mm512_setzero_si512();
        high[i] = _mm512_set1_epi32((int32_t)((uint32_t)sums[i] * -128u));
    }
    for (size_t block = 0; block < quads; block += DEPTH, w += DQ_GEMM_BYTESPLIT_WEIGHTS - LINE)
        for (size_t q = block; q < block + DEPTH && q < quads; q++, w += 4, x += 2 * LINE) {
            const __m512i a = _mm512_loadu_si512(x), b = _mm512_loadu_si512(x + LINE);
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) {
                int32_t four;
                memcpy(&four, w + i * LINE, sizeof four);
                const __m512i weights = _mm512_set1_epi32(four);
                low[i] = _mm512_dpbusd_epi32(low[i], a, weights);
                high[i] = _mm512_dpbusd_epi32(high[i], b, weights);
            }
        }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        _mm512_storeu_si512(lower + i * COLS, low[i]);
        _mm512_storeu_si512(upper + i * COLS, high[i]);
    }
}

static void tile(const int8_t *w, const int32_t *sums, size_t rows, size_t quads, const uint8_t *gathered,
                 int32_t *lower, int32_t *upper)
{
    const size_t panel = dq_gemm_bytesplit_s16s8_blocks(quads) * DQ_GEMM_BYTESPLIT_WEIGHTS;
    for (size_t i = 0; i < rows; i += MAX_ROWS) {
        const int8_t *row = w + i / ROWS * panel + i % ROWS * LINE;
        if (rows - i > FEW_ROWS)
            some_rows(row, sums + i, MAX_ROWS, quads, gathered, lower + i * COLS, upper + i * COLS);
        else
            some_rows(row, sums + i, FEW_ROWS, quads, gathered, lower + i * COLS, upper + i * COLS);
    }
}

const dq_gemm_bytesplit_s16s8 dq_gemm_bytesplit_s16s8_avx512vnni = {
    .gather = gather, .split = split, .tile = tile};
