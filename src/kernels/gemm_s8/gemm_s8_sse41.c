/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit GEMM with pmaddwd of zero-extended row bytes and sign-extended weights: exact for all operands. The
 * register tile is 3 rows by 16 columns. Rows are widened once per tile, weights when they are loaded. */
#include "kernels/gemm_s8/gemm_s8_pack.h"
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { MR = 3, NR = 16, LANES = 4, VECTORS = NR / LANES, GROUP = 2, CHUNK = 128, STEP = 8 };

static size_t panel_size(size_t runs, size_t run)
{
    return dq_gemm_s8_panel_size(runs, run, NR, GROUP);
}

static size_t pack(const dq_gemm_s8_b *b, size_t first, void *panel, int32_t *sums)
{
    return dq_gemm_s8_pack(b, first, NR, GROUP, panel, sums);
}

/* Zero-extends n bytes. Bytes past n are read (DQ_GEMM_S8_SLACK) and meet zero weights. */
static inline void widen(const uint8_t *x, size_t n, uint16_t *out)
{
    for (size_t k = 0; k < n; k += STEP) {
        __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(x + k));
        _mm_storeu_si128((__m128i *)(void *)(out + k), _mm_cvtepu8_epi16(bytes));
    }
}

static inline __m128i weights(const int8_t *b)
{
    return _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)b));
}

static inline __m128i pair_everywhere(const uint16_t *x)
{
    int32_t pair;
    memcpy(&pair, x, sizeof pair);
    return _mm_set1_epi32(pair);
}

/* `rows` is constant in each call, so that the loops over rows unroll and sums stay in registers. */
static inline __attribute__((always_inline)) void tile_rows(const dq_gemm_s8_a *a, int rows, const int8_t *b,
                                                            const int32_t *init, int32_t *c, size_t c_stride)
{
    uint16_t widened[MR][CHUNK];
    __m128i acc[MR][VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            acc[i][v] = _mm_loadu_si128((const __m128i *)(const void *)(init + v * LANES));
    for (size_t t = 0; t < a->runs; t++)
        for (size_t k = 0; k < a->run; k += CHUNK) {
            size_t n = a->run - k < CHUNK ? a->run - k : CHUNK;
            for (int i = 0; i < rows; i++)
                widen(a->rows[i] + a->offsets[t] + k, n, widened[i]);
            for (size_t g = 0; g < n; g += GROUP, b += NR * GROUP) {
                __m128i x[MR];
                for (int i = 0; i < rows; i++)
                    x[i] = pair_everywhere(widened[i] + g);
                for (int v = 0; v < VECTORS; v++) {
                    __m128i w = weights(b + v * LANES * GROUP);
                    for (int i = 0; i < rows; i++)
                        acc[i][v] = _mm_add_epi32(acc[i][v], _mm_madd_epi16(x[i], w));
                }
            }
        }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            _mm_storeu_si128((__m128i *)(void *)(c + (size_t)i * c_stride + v * LANES), acc[i][v]);
}

static void tile(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    if (rows == 1)
        tile_rows(a, 1, panel, init, c, c_stride);
    else if (rows == 2)
        tile_rows(a, 2, panel, init, c, c_stride);
    else
        tile_rows(a, MR, panel, init, c, c_stride);
}

const dq_gemm_s8 dq_gemm_s8_sse41 = {.mr = MR,
                                     .nr = NR,
                                     .a_signed = false,
                                     .panel_size = panel_size,
                                     .pack = pack,
                                     .tile = tile,
                                     .sums = dq_gemm_s8_sums_u8};
