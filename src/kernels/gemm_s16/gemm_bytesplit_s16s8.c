/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-split GEMM in portable C. */
#include "kernels/kernels.h"

#include <string.h>

enum {
    ROWS = DQ_GEMM_BYTESPLIT_ROWS,
    COLS = DQ_GEMM_BYTESPLIT_COLS,
    NR = DQ_GEMM_BYTESPLIT_NR,
    QUAD = 4,
    LINE = COLS * QUAD
};

/* Writes for each quad a line of lower bytes, then one of upper bytes. */
static void gather(const uint8_t *const x[2], const uint32_t *offsets, size_t quads, size_t upper,
                   uint8_t *to)
{
    for (size_t q = 0; q < quads; q++)
        for (size_t i = 0; i < 4; i++, to += LINE / 2)
            memcpy(to, x[i % 2] + offsets[q] + i / 2 * upper, LINE / 2);
}

static void split(const uint16_t *x, size_t step, size_t channels, size_t n, uint16_t sign_xor, uint8_t *to)
{
    for (size_t c = 0; c < channels; c++)
        for (size_t j = 0; j < n; j++) {
            uint8_t *at = to + c / QUAD * 2 * LINE + j * QUAD + c % QUAD;
            const uint16_t qvalue = x[c * step + j] ^ sign_xor;
            at[0] = (uint8_t)qvalue;
            at[LINE] = (uint8_t)(qvalue >> 8);
        }
}

static void tile(const int8_t *w, const int32_t *sums, size_t rows, size_t quads, const uint8_t *gathered,
                 int32_t *lower, int32_t *upper)
{
    const size_t blocks = dq_gemm_bytesplit_s16s8_blocks(quads);
    (void)sums;
    for (size_t i = 0; i < rows; i++) {
        const int8_t *row = w + i / ROWS * blocks * DQ_GEMM_BYTESPLIT_WEIGHTS + i % ROWS * LINE;
        for (size_t j = 0; j < COLS; j++) {
            int32_t low = 0, high = 0;
            for (size_t k = 0; k < quads * QUAD; k++) {
                const uint8_t *x = gathered + k / QUAD * 2 * LINE + j * QUAD + k % QUAD;
                const int8_t weight = row[k / LINE * DQ_GEMM_BYTESPLIT_WEIGHTS + k % LINE];
                low += weight * x[0];
                high += weight * (int8_t)x[LINE];
            }
            lower[i * COLS + j] = low;
            upper[i * COLS + j] = high;
        }
    }
}

const dq_gemm_bytesplit_s16s8 dq_gemm_bytesplit_s16s8_c = {.gather = gather, .split = split, .tile = tile};
