/* Integer products by the tile registers of AMX: tdpbusd adds 16 rows by 64 positions, uint8, times 64
 * positions by 16 columns, int8, to int32 sums without saturating: exact for all operands.
 *
 * Panels are those of AVX-512 VNNI, whose groups of four positions of a column are what a tile of weights
 * holds, filled up with zeros to whole tiles. Rows are read where they are if they stand at one distance,
 * else they are copied into tiles once for all panels. */
#include "kernels/kernels.h"
#include "kernels/qgemm_pack.h"
#include "kernels/x86/amx_tiles.h"

#include "base/checked.h"

#include <string.h>

enum {
    MR = 64, /* a block of rows, so that it is copied once */
    NR = PAIR,
    GROUP = 4,
    HEAD = 64 /* bytes before a panel's weights, and before copied rows */
};

/* What dq_qgemm_a.turned begins with: pairs of tiles of rows, all of one shape. The last pair begins among
 * the rows of the one before it if there are no more of its own. */
typedef struct ready {
    uint8_t state;             /* 0: not yet */
    size_t pairs, pair, first; /* rows of a pair, and of its first tile */
    const uint8_t *x;
    size_t line, step; /* bytes from row to row, and from a tile to that of the next positions */
    size_t tile;       /* from tile to tile of rows; 0: as their rows are */
} ready;
enum { NOT_YET, DOTS, TILES };

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
                   dq_align_size(bytes, LINE, &bytes) && dq_align_size(rows, PAIR, &rows) &&
                   dq_mul_size(bytes, rows, &bytes) && dq_add_size(bytes, HEAD, &bytes)
               ? bytes
               : 0;
}

/* Rows first … first + n - 1 to tiles of all their positions. What of a run's last group is past its end
 * meets zeros. */
static void copy_rows(const dq_qgemm_a *a, size_t first, size_t n, uint8_t *tiles)
{
    const size_t run = positions_of(1, a->run);
    for (size_t i = 0; i < n; i++) {
        uint8_t *to = tiles + i * LINE;
        size_t at = 0;
        for (size_t t = 0; t < a->runs; t++) {
            const uint8_t *from = a->rows[first + i] + a->offsets[t];
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

static size_t row_of_pair(const ready *r, size_t rows, size_t p)
{
    return p + 1 < r->pairs ? p * r->pair : rows - r->pair;
}

/* Whether rows of one run stand at one distance, and are few enough bytes for the first-level cache, where
 * that costs nothing. */
static bool find_rows(const dq_qgemm_a *a, size_t rows, ready *r)
{
    enum { NEAR = 1 << 15 };
    if (a->runs != 1 || rows * a->run > NEAR)
        return false;
    ptrdiff_t distance = rows > 1 ? a->rows[1] - a->rows[0] : 0;
    for (size_t i = 2; i < rows; i++)
        if (a->rows[i] - a->rows[i - 1] != distance)
            return false;
    r->x = a->rows[0] + a->offsets[0];
    r->line = (size_t)distance;
    r->step = LINE;
    r->tile = 0;
    return true;
}

static void make_ready(const dq_qgemm_a *a, size_t rows, ready *r)
{
    enum { SHORT = 32 }; /* runs whose copying takes longer than their products without tiles */
    const size_t depth = tiles_of(positions_of(a->runs, a->run)) * TILE;
    uint8_t *copy = (uint8_t *)r + HEAD;
    r->state = a->runs > 1 && a->run < SHORT ? DOTS : TILES;
    if (r->state == DOTS)
        return;
    r->pairs = (rows + PAIR - 1) / PAIR;
    r->pair = (rows + r->pairs - 1) / r->pairs;
    r->first = r->pair <= SIDE ? r->pair : (r->pair + 1) / 2;
    shape_tiles(r->first, r->pair - r->first);
    if (find_rows(a, rows, r))
        return;
    r->x = copy;
    r->line = LINE;
    r->step = TILE;
    r->tile = depth;
    for (size_t p = 0; p < r->pairs; p++, copy += 2 * depth) {
        size_t row = row_of_pair(r, rows, p);
        copy_rows(a, row, r->first, copy);
        copy_rows(a, row + r->first, r->pair - r->first, copy + depth);
    }
    WRITTEN(copy);
}

/* The pair of tiles at x by a panel's columns. */
static void multiply(const ready *r, const uint8_t *x, const uint8_t *panel, size_t depth,
                     const int32_t *init, int32_t *c, size_t c_stride)
{
    const bool more = r->pair > r->first, wide = columns_of(panel) > SIDE;
    const uint8_t *w = panel + HEAD, *x2 = x + (r->tile ? r->tile : r->first * r->line);
    const size_t columns = columns_of(panel) * GROUP, to_next = c_stride * sizeof *c;
    const size_t line = r->line, step = r->step;
    int32_t *c2 = c + r->first * c_stride;
    _tile_loadd(0, init, 0); /* each row the same */
    if (wide)
        _tile_loadd(1, init + SIDE, 0);
    if (more)
        _tile_loadd(2, init, 0);
    if (more && wide)
        _tile_loadd(3, init + SIDE, 0);
    for (size_t k = 0; k < depth; k++, x += step, x2 += step, w += SIDE * columns) {
        _tile_loadd(6, w, columns);
        _tile_loadd(4, x, line);
        _tile_dpbusd(0, 4, 6);
        if (wide) {
            _tile_loadd(7, w + LINE, columns);
            _tile_dpbusd(1, 4, 7);
        }
        if (more) {
            _tile_loadd(5, x2, line);
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
    const size_t depth = tiles_of(positions_of(a->runs, a->run));
    ready *r = a->turned;
    if (r->state == NOT_YET)
        make_ready(a, rows, r);
    if (r->state == DOTS) {
        tile_of_dots(a, rows, panel, init, c, c_stride);
        return;
    }
    for (size_t p = 0; p < r->pairs; p++) {
        size_t row = row_of_pair(r, rows, p);
        multiply(r, r->x + (r->tile ? 2 * p * r->tile : row * r->line), panel, depth, init,
                 c + row * c_stride, c_stride);
    }
    if (columns_of(panel) < NR)
        for (size_t i = 0; i < rows; i++)
            memcpy(c + i * c_stride + SIDE, init + SIDE, SIDE * sizeof *c);
}

static void done(void)
{
    _tile_release();
}

/* Few rows would leave most of a tile empty, and want no more than to read the weights. */
const dq_qgemm dq_qgemm_amx = {.mr = MR,
                               .nr = NR,
                               .a_signed = false,
                               .dots = true,
                               .panel_size = panel_size,
                               .turned_size = turned_size,
                               .pack = pack,
                               .tile = tile,
                               .done = done,
                               .sums = dq_qgemm_sums_u8_avx2,
                               .few = &dq_qgemm_avx512vnni};
