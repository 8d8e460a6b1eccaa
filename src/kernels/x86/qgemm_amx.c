/* Integer products by the tile registers of AMX: tdpbusd adds 16 rows by 64 positions, uint8, times 64
 * positions by 16 columns, int8, to int32 sums without saturating: exact for all operands.
 *
 * Panels are those of AVX-512 VNNI, whose groups of four positions of a column are what a tile of weights
 * holds, filled up with zeros to whole tiles. Rows are copied into tiles once for all panels. */
#include "kernels/kernels.h"
#include "kernels/qgemm_pack.h"

#include "base/checked.h"

#include <immintrin.h>
#include <string.h>

enum {
    MR = 64, /* a block of rows, so that it is copied once */
    SIDE = 16,
    LINE = 64,          /* bytes of a tile's row */
    TILE = SIDE * LINE, /* bytes of a tile */
    NR = 2 * SIDE,
    PAIR = 2 * SIDE, /* rows that are multiplied together: two tiles of them, by two of columns */
    GROUP = 4,
    HEAD = 64 /* bytes before a panel's weights, and before copied rows */
};

/* How many rows the tile registers have, and bytes a row. */
typedef struct shape {
    uint8_t palette, start_row, reserved[14];
    uint16_t line[16];
    uint8_t rows[16];
} shape;

/* Registers: the sums of two tiles of rows by two of columns, the two of rows, the two of columns. */
enum { SUMS = 4, ROWS = 2, COLUMNS = 2 };

/* The tiles' intrinsics of gcc do not say what memory they read: it is written by here. */
#define WRITTEN(p) __asm__ volatile("" ::"r"(p) : "memory")

static size_t positions_of(size_t runs, size_t run)
{
    return (run + GROUP - 1) / GROUP * GROUP * runs;
}

static size_t tiles_of(size_t positions)
{
    return (positions + LINE - 1) / LINE;
}

static size_t panel_size(size_t runs, size_t run)
{
    size_t bytes = dq_qgemm_avx512vnni.panel_size(runs, run);
    return bytes && dq_align_size(bytes - HEAD, NR * LINE, &bytes) && dq_add_size(bytes, HEAD, &bytes) ? bytes
                                                                                                       : 0;
}

/* Columns that a panel has: 16 where all others are missing. */
static size_t columns_of(const void *panel)
{
    return *(const uint8_t *)panel * (size_t)SIDE;
}

static size_t pack(const dq_qgemm_b *b, size_t first, void *panel, int32_t *sums)
{
    size_t used = dq_qgemm_avx512vnni.pack(b, first, panel, sums);
    size_t size = HEAD + tiles_of(positions_of(b->runs, b->run)) * LINE * columns_of(panel);
    if (used < size)
        memset((uint8_t *)panel + used, 0, size - used);
    return size > used ? size : used;
}

static size_t turned_size(const dq_qgemm_b *b, size_t rows)
{
    size_t bytes;
    return dq_align_size(b->run, GROUP, &bytes) && dq_mul_size(bytes, b->runs, &bytes) &&
                   dq_align_size(bytes, LINE, &bytes) && dq_align_size(rows, SIDE, &rows) &&
                   dq_mul_size(bytes, rows, &bytes) && dq_add_size(bytes, HEAD, &bytes)
               ? bytes
               : 0;
}

/* Rows to tiles, all of 16 rows behind each other. What of a run's last group is past its end meets zeros. */
static void copy_rows(const dq_qgemm_a *a, size_t rows, uint8_t *tiles)
{
    const size_t run = positions_of(1, a->run), depth = tiles_of(run * a->runs) * TILE;
    for (size_t i = 0; i < rows; i++) {
        uint8_t *to = tiles + i / SIDE * depth + i % SIDE * LINE;
        size_t at = 0;
        for (size_t t = 0; t < a->runs; t++) {
            const uint8_t *from = a->rows[i] + a->offsets[t];
            for (size_t p = 0, piece; p < run; p += piece, at += piece) {
                size_t room = LINE - at % LINE;
                uint8_t *line = to + at / LINE * TILE + at % LINE;
                piece = run - p < room ? run - p : room;
                if (piece == LINE)
                    memcpy(line, from + p, LINE);
                else
                    memcpy(line, from + p, piece);
            }
        }
    }
}

static void shape_tiles(size_t rows)
{
    shape s = {.palette = 1};
    const size_t first = rows < SIDE ? rows : SIDE;
    for (int i = 0; i < SUMS + ROWS; i++) {
        size_t some = (i < SUMS ? i / COLUMNS : i - SUMS) ? rows - first : first;
        s.line[i] = some ? LINE : 0;
        s.rows[i] = (uint8_t)some;
    }
    for (int i = SUMS + ROWS; i < SUMS + ROWS + COLUMNS; i++) {
        s.line[i] = LINE;
        s.rows[i] = SIDE;
    }
    WRITTEN(&s);
    _tile_loadconfig(&s);
}

/* Up to 32 rows, whose second tile is `depth` tiles behind their first. */
static void multiply(const uint8_t *x, size_t rows, const uint8_t *panel, size_t depth, const int32_t *init,
                     int32_t *c, size_t c_stride)
{
    const bool more = rows > SIDE, wide = columns_of(panel) > SIDE;
    const uint8_t *w = panel + HEAD, *x2 = more ? x + depth * TILE : x;
    const size_t line = columns_of(panel) * GROUP, to_next = c_stride * sizeof *c;
    int32_t *c2 = more ? c + SIDE * c_stride : c;
    shape_tiles(rows);
    _tile_loadd(0, init, 0); /* each row the same */
    if (wide)
        _tile_loadd(1, init + SIDE, 0);
    if (more)
        _tile_loadd(2, init, 0);
    if (more && wide)
        _tile_loadd(3, init + SIDE, 0);
    for (size_t k = 0; k < depth; k++, x += TILE, x2 += TILE, w += SIDE * line) {
        _tile_loadd(6, w, line);
        _tile_loadd(4, x, LINE);
        _tile_dpbusd(0, 4, 6);
        if (wide) {
            _tile_loadd(7, w + LINE, line);
            _tile_dpbusd(1, 4, 7);
        }
        if (more) {
            _tile_loadd(5, x2, LINE);
            _tile_dpbusd(2, 5, 6);
            if (wide)
                _tile_dpbusd(3, 5, 7);
        }
    }
    _tile_stored(0, c, to_next);
    if (wide)
        _tile_stored(1, c + SIDE, to_next);
    if (more)
        _tile_stored(2, c2, to_next);
    if (more && wide)
        _tile_stored(3, c2 + SIDE, to_next);
}

/* The panel's tiles are behind each other as vpdpbusd takes them, too. */
static void tile_of_dots(const dq_qgemm_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                         size_t c_stride)
{
    const dq_qgemm *dots = &dq_qgemm_avx512vnni;
    for (size_t i = 0; i < rows; i += dots->mr) {
        dq_qgemm_a some = *a;
        some.rows += i;
        dots->tile(&some, rows - i < dots->mr ? rows - i : dots->mr, panel, init, c + i * c_stride, c_stride);
    }
}

static void tile(const dq_qgemm_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    enum { SHORT = LINE / 2 }; /* runs whose copying takes longer than their products without tiles */
    const size_t depth = tiles_of(positions_of(a->runs, a->run));
    uint8_t *kept = a->turned;
    if (a->run < SHORT) {
        tile_of_dots(a, rows, panel, init, c, c_stride);
        return;
    }
    if (!*kept) {
        copy_rows(a, rows, kept + HEAD);
        *kept = 1;
    }
    WRITTEN(kept);
    for (size_t i = 0; i < rows; i += PAIR)
        multiply(kept + HEAD + i * depth * LINE, rows - i < PAIR ? rows - i : PAIR, panel, depth, init,
                 c + i * c_stride, c_stride);
    _tile_release();
    if (columns_of(panel) < NR)
        for (size_t i = 0; i < rows; i++)
            memcpy(c + i * c_stride + SIDE, init + SIDE, SIDE * sizeof *c);
}

/* Few rows would leave most of a tile empty, and want no more than to read the weights. */
const dq_qgemm dq_qgemm_amx = {.mr = MR,
                               .nr = NR,
                               .a_signed = false,
                               .panel_size = panel_size,
                               .turned_size = turned_size,
                               .pack = pack,
                               .tile = tile,
                               .sums = dq_qgemm_sums_u8_avx2,
                               .few = &dq_qgemm_avx512vnni};
