/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit GEMM with AMX tile registers. tdpbusd multiplies 16 rows by 64 positions of uint8 with 64 positions
 * by 16 columns of int8 and adds to int32 accumulators without saturation: exact for all operands. tdpbssd
 * does the same for int8 rows.
 *
 * A panel holds the tiles of its first 16 columns, then those of the other 16. Tiles of A are loaded in place
 * if enough rows have a constant stride, as in a matrix or in the windows of one image row. Otherwise the
 * rows are copied into tiles once for all panels. */
#include "kernels/gemm_s8/amx_tiles.h"
#include "kernels/gemm_s8/gemm_s8_pack.h"
#include "kernels/kernels.h"

#include "base/checked.h"

#include <string.h>

enum {
    MR = 64,
    NR = PAIR,
    GROUP = 4,
    HEAD = 64,        /* bytes before a panel's tiles; the first byte is its number of tile columns */
    MAX_ROW_TILES = 8 /* row tiles of a block */
};

/* Head of dq_gemm_s8_a.packed: where the row tiles are. All tiles have the same number of rows; a tile may
 * overlap the one before it. */
typedef struct ready {
    uint8_t made;   /* 0: not filled in yet */
    bool is_signed; /* rows are int8 */
    uint8_t count, rows;
    uint8_t row[MAX_ROW_TILES]; /* first row of each tile */
    size_t runs, run;           /* segments, and tiles per segment */
    size_t line, step;          /* bytes between rows of a tile, and between tiles along the positions */
    const uint8_t *x[MAX_ROW_TILES];
    const ptrdiff_t *offsets;
} ready;

enum { READY = (sizeof(ready) + LINE - 1) / LINE * LINE /* bytes before copied rows */ };

static size_t lines_of(size_t positions)
{
    return (positions + LINE - 1) / LINE;
}

/* Positions per segment in packed weights. Segments are padded to whole tile rows of 64 bytes if that adds at
 * most half as many tiles; then rows of A need not be copied. */
static size_t run_size(size_t runs, size_t run)
{
    size_t groups = (run + GROUP - 1) / GROUP * GROUP, least = lines_of(groups * runs);
    return runs > 1 && lines_of(run) * runs <= least + least / 2 ? lines_of(run) * LINE : groups;
}

static size_t tiles_of(size_t runs, size_t run)
{
    return lines_of(run_size(runs, run) * runs);
}

static size_t panel_size(size_t runs, size_t run)
{
    size_t bytes;
    return dq_align_size(run, LINE, &bytes) && dq_mul_size(bytes, runs, &bytes) &&
                   dq_mul_size(bytes, NR, &bytes) && dq_add_size(bytes, HEAD, &bytes)
               ? HEAD + tiles_of(runs, run) * NR * LINE
               : 0;
}

/* Number of tile columns of a panel: 1 or 2. */
static size_t panel_tiles(const void *panel)
{
    return *(const uint8_t *)panel;
}

static size_t pack(const dq_gemm_s8_b *b, size_t first, void *panel, int32_t *sums)
{
    const size_t run = run_size(b->runs, b->run), size = tiles_of(b->runs, b->run) * TILE;
    const bool padded = run - b->run >= GROUP; /* pack segment by segment */
    uint8_t *to = (uint8_t *)panel + HEAD;
    memset(panel, 0, HEAD);
    memset(sums, 0, NR * sizeof *sums);
    size_t j = 0;
    for (; j < NR && first + j < b->cols; j += SIDE, to += size) {
        dq_gemm_s8_b some = *b;
        some.runs = padded ? 1 : b->runs;
        const size_t part = padded ? run * SIDE : size;
        for (size_t t = 0; size && t < b->runs; t += some.runs) {
            int32_t more[SIDE];
            uint8_t *at = to + t * run * SIDE;
            some.data = b->data + t * b->run_stride;
            size_t used = dq_gemm_s8_pack_avx2(&some, first + j, SIDE, at, more);
            memset(at + used, 0, part - used);
            for (size_t i = 0; i < SIDE; i++)
                sums[j + i] += more[i];
        }
    }
    *(uint8_t *)panel = (uint8_t)(j / SIDE);
    return HEAD + j / SIDE * size;
}

static size_t packed_a_size(const dq_gemm_s8_b *b, size_t rows)
{
    size_t bytes;
    return dq_align_size(b->run, LINE, &bytes) && dq_mul_size(bytes, b->runs, &bytes) &&
                   dq_align_size(rows, SIDE, &rows) && dq_mul_size(bytes, rows, &bytes) &&
                   dq_add_size(bytes, READY, &bytes)
               ? bytes
               : 0;
}

/* ---- Rows --------------------------------------------------------------------------------------------- */

/* Copies n bytes, at most a line. */
static void copy_piece(const uint8_t *from, size_t n, uint8_t *to)
{
    const __mmask64 some = ~(__mmask64)0 >> (LINE - n);
    _mm512_mask_storeu_epi8(to, some, _mm512_maskz_loadu_epi8(some, from));
}

/* Copies rows first … first + n - 1 into one column of tiles per 64 positions. Bytes after a segment's end,
 * up to a whole group, are multiplied by zero weights. */
static __attribute__((noinline)) void copy_rows(const dq_gemm_s8_a *a, size_t first, size_t n, uint8_t *tiles)
{
    const size_t run = run_size(a->runs, a->run);
    for (size_t i = 0; i < n; i++) {
        uint8_t *to = tiles + i * LINE;
        size_t at = 0;
        for (size_t t = 0; t < a->runs; t++) {
            const uint8_t *from = a->rows[first + i] + a->offsets[t];
            for (size_t p = 0, piece; p < run; p += piece, at += piece) {
                const size_t rest = LINE - at % LINE;
                piece = run - p < rest ? run - p : rest;
                copy_piece(from + p, piece, to + at / LINE * TILE + at % LINE);
            }
        }
    }
}

/* Partitions strips of `strip` rows into tiles of equal height; the last tile of a strip may overlap the one
 * before it. Returns false if strips do not divide the rows, or if that takes too many tiles. */
static __attribute__((cold)) bool partition_rows(size_t rows, size_t strip, ready *r)
{
    size_t pieces = (strip + SIDE - 1) / SIDE, n = (strip + pieces - 1) / pieces;
    if (rows % strip != 0 || rows / strip * pieces > MAX_ROW_TILES)
        return false;
    r->rows = (uint8_t)n;
    r->count = 0;
    for (size_t first = 0; first < rows; first += strip)
        for (size_t i = 0; i < pieces; i++)
            r->row[r->count++] = (uint8_t)(first + (i + 1 < pieces ? i * n : strip - n));
    return true;
}

/* Returns whether the rows form strips of equal length with one constant stride, so that tiles are loaded in
 * place. If so, fills in r. */
static bool find_rows(const dq_gemm_s8_a *a, size_t rows, ready *r)
{
    enum { ENOUGH = 8 /* minimum rows of a tile: fewer leave too much of it unused */ };
    const size_t run = run_size(a->runs, a->run);
    if (a->runs > 1 && run % LINE != 0)
        return false;
    ptrdiff_t distance = rows > 1 ? a->rows[1] - a->rows[0] : 0;
    size_t strip = 1, i = 1;
    while (strip < rows && a->rows[strip] - a->rows[strip - 1] == distance)
        strip++;
    for (i = strip; i < rows; i++)
        if (i % strip != 0 && a->rows[i] - a->rows[i - 1] != distance)
            return false;
    if (!partition_rows(rows, strip, r) || (r->rows < ENOUGH && strip < rows))
        return false;
    for (i = 0; i < r->count; i++)
        r->x[i] = a->rows[r->row[i]];
    r->offsets = a->offsets;
    r->runs = a->runs;
    r->run = lines_of(run);
    r->line = (size_t)distance;
    r->step = LINE;
    return true;
}

static void prepare_row_tiles(const dq_gemm_s8_a *a, size_t rows, ready *r)
{
    static const ptrdiff_t no_offset = 0;
    uint8_t *copy = (uint8_t *)r + READY;
    if (!find_rows(a, rows, r)) {
        (void)partition_rows(rows, rows, r);
        r->offsets = &no_offset;
        r->runs = 1;
        r->run = tiles_of(a->runs, a->run);
        r->line = LINE;
        r->step = TILE;
        for (size_t i = 0; i < r->count; i++, copy += r->run * TILE) {
            copy_rows(a, r->row[i], r->rows, copy);
            r->x[i] = copy;
        }
        WRITTEN(copy);
    }
    shape_tiles(r->rows, r->count > 1 ? r->rows : 0);
    r->made = 1;
}

/* ---- Products ----------------------------------------------------------------------------------------- */

/* Tile product for int8 or uint8 rows. */
#define DOTS(c, a, b)                                                                                        \
    do {                                                                                                     \
        if (is_signed)                                                                                       \
            _tile_dpbssd(c, a, b);                                                                           \
        else                                                                                                 \
            _tile_dpbusd(c, a, b);                                                                           \
    } while (0)

/* Multiplies one or two row tiles (x2 and c2 may be NULL) by one or two tile columns (w2 may be NULL). Each
 * step prefetches `lines` cache lines from `ahead` on. Callers pass loop invariants as constants: when there
 * are few steps, testing them in each step costs measurable time. */
static inline __attribute__((always_inline)) void multiply(bool is_signed, const ready *r, const uint8_t *x,
                                                           const uint8_t *x2, const uint8_t *w,
                                                           const uint8_t *w2, const uint8_t *ahead,
                                                           size_t lines, const int32_t *init, int32_t *c,
                                                           int32_t *c2, size_t c_stride)
{
    const size_t line = r->line, step = r->step, to_next = c_stride * sizeof *c;
    _tile_loadd(0, init, 0); /* stride 0: each row is init */
    if (w2)
        _tile_loadd(1, init + SIDE, 0);
    if (x2)
        _tile_loadd(2, init, 0);
    if (x2 && w2)
        _tile_loadd(3, init + SIDE, 0);
    for (size_t t = 0; t < r->runs; t++) {
        const uint8_t *from = x + r->offsets[t], *from2 = x2 ? x2 + r->offsets[t] : from;
        for (size_t k = 0; k < r->run; k++, from += step, from2 += step, w += TILE) {
            _tile_loadd(6, w, LINE);
            _tile_loadd(4, from, line);
            DOTS(0, 4, 6);
            if (w2) {
                _tile_loadd(7, w2, LINE);
                DOTS(1, 4, 7);
                w2 += TILE;
            }
            if (x2) {
                _tile_loadd(5, from2, line);
                DOTS(2, 5, 6);
                if (w2)
                    DOTS(3, 5, 7);
            }
            for (size_t i = 0; i < lines; i++, ahead += LINE)
                _mm_prefetch((const char *)ahead, _MM_HINT_T1);
        }
    }
    _tile_stored(0, c, to_next);
    if (w2)
        _tile_stored(1, c + SIDE, to_next);
    if (x2)
        _tile_stored(2, c2, to_next);
    if (x2 && w2)
        _tile_stored(3, c2 + SIDE, to_next);
}

static void sum_rows(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                     size_t c_stride)
{
    enum { SHORT = 8 /* steps; for longer panels the hardware prefetcher suffices */ };
    ready *r = a->packed;
    if (!r->made)
        prepare_row_tiles(a, rows, r);
    const size_t steps = r->runs * r->run, size = steps * TILE;
    const uint8_t *w = (const uint8_t *)panel + HEAD, *w2 = panel_tiles(panel) > 1 ? w + size : NULL;
    /* Lines per step to prefetch from the next panel, if panels come from memory. The first two pairs of row
     * tiles share the work. */
    const size_t lines = !a->exceeds_caches || steps > SHORT ? 0 : r->count > 2 ? SIDE : 2 * SIDE;
    const uint8_t *ahead = (w2 ? w2 : w) + size;
    for (size_t i = 0; i < r->count; i += 2, ahead += size) {
        const uint8_t *x = r->x[i], *x2 = i + 1 < r->count ? r->x[i + 1] : NULL;
        int32_t *to = c + r->row[i] * c_stride, *to2 = x2 ? c + r->row[i + 1] * c_stride : NULL;
        if (x2 && w2 && lines == 0 && r->is_signed)
            multiply(true, r, x, x2, w, w2, NULL, 0, init, to, to2, c_stride);
        else if (x2 && w2 && lines == 0)
            multiply(false, r, x, x2, w, w2, NULL, 0, init, to, to2, c_stride);
        else
            multiply(r->is_signed, r, x, x2, w, w2, ahead, i < PAIR / SIDE * 2 ? lines : 0, init, to, to2,
                     c_stride);
    }
}

static void tile(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    ((ready *)a->packed)->is_signed = false;
    sum_rows(a, rows, panel, init, c, c_stride);
}

static void tile_signed(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init,
                        int32_t *c, size_t c_stride)
{
    ((ready *)a->packed)->is_signed = true;
    sum_rows(a, rows, panel, init, c, c_stride);
}

static void sums_signed(const dq_gemm_s8_a *a, size_t rows, int32_t *sums)
{
    for (size_t i = 0; i < rows; i++) {
        __m512i sum = _mm512_setzero_si512();
        for (size_t t = 0; t < a->runs; t++) {
            const uint8_t *run = a->rows[i] + a->offsets[t];
            for (size_t k = 0; k < a->run; k += LINE) {
                const __mmask64 some = a->run - k < LINE ? ((__mmask64)1 << (a->run - k)) - 1 : ~(__mmask64)0;
                __m512i pairs =
                    _mm512_maddubs_epi16(_mm512_set1_epi8(1), _mm512_maskz_loadu_epi8(some, run + k));
                sum = _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
            }
        }
        sums[i] = _mm512_reduce_add_epi32(sum);
    }
}

static void done(void)
{
    _tile_release();
}

#define GEMM_S8_AMX(of_signed, ...)                                                                          \
    {                                                                                                        \
        .mr = MR, .nr = NR, .column_step = SIDE, .a_signed = of_signed, .dots = true,                        \
        .panel_size = panel_size, .packed_a_size = packed_a_size, .pack = pack, .done = done, __VA_ARGS__    \
    }

static const dq_gemm_s8 of_signed_rows = GEMM_S8_AMX(true, .tile = tile_signed, .sums = sums_signed);

/* Few rows would leave most of a tile unused. Their time is that of reading the weights, for which VNNI
 * suffices. */
const dq_gemm_s8 dq_gemm_s8_amx = GEMM_S8_AMX(false, .tile = tile, .sums = dq_gemm_s8_sums_u8_avx2,
                                              .few = &dq_gemm_s8_avx512vnni, .other_sign = &of_signed_rows);
