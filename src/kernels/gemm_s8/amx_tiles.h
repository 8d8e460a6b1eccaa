/* SPDX-License-Identifier: Apache-2.0 */
/* AMX tile configuration for products of two row tiles by two column tiles. Registers 0 to 3 are the
 * accumulators (0 and 1 for the first row tile), 4 and 5 row tiles, 6 and 7 column tiles. Loading a
 * configuration takes as long as ten tile products, so that one serves many products. */
#ifndef DQ_KERNELS_AMX_TILES_H
#define DQ_KERNELS_AMX_TILES_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIDE = 16,          /* rows of a tile, and columns of an accumulator tile */
    LINE = 64,          /* bytes of a tile's row */
    TILE = SIDE * LINE, /* bytes of a tile */
    PAIR = 2 * SIDE     /* rows, and columns, of a block of 2 × 2 tiles */
};

/* Compiler barrier: memory at p is written before this point. gcc's tile intrinsics do not declare the memory
 * that they read. */
#define WRITTEN(p) __asm__ volatile("" ::"r"(p) : "memory")

/* Operand of ldtilecfg: bytes per row (`line`) and rows of each register. */
typedef struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t line[16];
    uint8_t rows[16];
} tile_shapes;

static inline void load_shapes(const tile_shapes *s)
{
    WRITTEN(s);
    _tile_loadconfig(s);
}

/* Configures row tiles of `first` rows (1 … SIDE) and `second` rows (0: the second row tile and its
 * accumulators are not used). */
static inline void shape_tiles(size_t first, size_t second)
{
    enum { SUMS = 4, ROWS = 2, COLUMNS = 2 };
    tile_shapes s = {.palette = 1};
    for (int i = 0; i < SUMS + ROWS + COLUMNS; i++) {
        size_t side = i < SUMS ? (size_t)i / 2 : (size_t)i - SUMS;
        size_t some = side == 0 ? first : side == 1 ? second : SIDE;
        s.line[i] = some ? LINE : 0;
        s.rows[i] = (uint8_t)some;
    }
    load_shapes(&s);
}

#endif
