/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-split GEMM with AMX. A panel of weights is a row tile; the lines of quads, as they are packed, are
 * column tiles. */
#include "kernels/gemm_s16/gemm_bytesplit_s16s8_avx512.h"
#include "kernels/gemm_s8/amx_tiles.h"
#include "kernels/kernels.h"

static void gather(const uint8_t *const x[2], const uint32_t *offsets, size_t quads, size_t upper,
                   uint8_t *to)
{
    gather_quads(x, offsets, quads, upper, _mm512_setzero_si512(), to);
}

static void split(const uint16_t *x, size_t step, size_t channels, size_t n, uint16_t sign_xor, uint8_t *to)
{
    split_quads(x, step, channels, n, _mm512_set1_epi8((char)(sign_xor >> 8)), to);
}

static void begin(void)
{
    shape_tiles(SIDE, SIDE);
}

static void tile(const int8_t *w, const int32_t *sums, size_t rows, size_t quads, const uint8_t *gathered,
                 int32_t *lower, int32_t *upper)
{
    const size_t blocks = dq_gemm_bytesplit_s16s8_blocks(quads);
    const bool two = rows > DQ_GEMM_BYTESPLIT_ROWS;
    const int8_t *more = w + blocks * TILE;
    (void)sums;
    WRITTEN(w);
    WRITTEN(gathered);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t k = 0; k < blocks; k++, w += TILE, more += TILE, gathered += 2 * TILE) {
        _tile_loadd(6, gathered, 2 * LINE);
        _tile_loadd(4, w, LINE);
        _tile_dpbsud(0, 4, 6);
        _tile_loadd(7, gathered + LINE, 2 * LINE);
        _tile_dpbssd(1, 4, 7);
        if (two) {
            _tile_loadd(5, more, LINE);
            _tile_dpbsud(2, 5, 6);
            _tile_dpbssd(3, 5, 7);
        }
    }
    _tile_stored(0, lower, LINE);
    _tile_stored(1, upper, LINE);
    if (two) {
        _tile_stored(2, lower + SIDE * SIDE, LINE);
        _tile_stored(3, upper + SIDE * SIDE, LINE);
    }
}

static void done(void)
{
    _tile_release();
}

const dq_gemm_bytesplit_s16s8 dq_gemm_bytesplit_s16s8_amx = {
    .gather = gather, .split = split, .tile = tile, .begin = begin, .done = done};
