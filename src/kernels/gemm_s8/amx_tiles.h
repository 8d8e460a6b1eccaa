/* SPDX-License-Identifier: Apache-2.0 */
/* The tile registers of AMX, as products of two tiles of rows by two of columns use them: registers 0 to 3
 * are the sums (0 and 1 those of the first rows), 4 and 5 rows, 6 and 7 columns. To give them their shape
 * takes as long as ten products of tiles, so that it is done once for many. */
#ifndef DQ_KERNELS_AMX_TILES_H
#define DQ_KERNELS_AMX_TILES_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIDE = 16,          /* rows of a tile, and columns of sums */
    LINE = 64,          /* bytes of a tile's row */
    TILE = SIDE * LINE, /* bytes of a tile */
    PAIR = 2 * SIDE     /* rows, and columns, that are multiplied together */
};

/* The tiles' intrinsics of gcc do not say what memory they read: it is written by here. */
#define WRITTEN(p) __asm__ volatile("" ::"r"(p) : "memory")

/* What ldtilecfg reads: bytes a row of each register, and its rows. */
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

/* For `first` rows (1 … SIDE) and `second` ones more (0: their registers cannot be used). */
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
