/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Implements dq_gemm_block_f32_fn with register tiles. The file of
 * the ISA level defines before the include
 *   vec_<isa>.h           the vector operations; vf_min and vf_max return their second operand where both are
 *                         equal or one is NaN
 *   PANELS                panels of a tile, 1 or 2: accumulators of MAX_ROWS rows stay in registers
 *   MAX_ROWS              rows of a tile, 5 or 6
 *   TALL_ROWS             12 if registers hold the accumulators of 12 rows by two vectors, else 0
 *   FOUR_STEPS            optional, if PANELS is 1: adds UNROLL steps as `step` adds one
 *   NARROW, FEWEST_ROWS   if PANELS is 2: the dq_gemm_block_f32_fn for fewer columns than a tile has and
 *                         fewer rows than FEWEST_ROWS, whose tiles of one vector would be bound by latency
 * and calls tile_block after it. */
#ifndef DQ_KERNELS_GEMM_F32_TILE_H
#define DQ_KERNELS_GEMM_F32_TILE_H

#include "base/copy.h"
#include "kernels/elementwise/hswish_f32_body.h"
#include "kernels/gemm_f32/gemm_f32.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))
enum {
    TILE_COLS = PANELS * DQ_GEMM_F32_NR,
    VECTORS = TILE_COLS / VF_LANES,
    HALF_VECTORS = VECTORS > 1 ? VECTORS / 2 : 1
};
/* Rows whose stride is a multiple of SAME floats map to the same cache sets. */
enum { LINE = 16 /* floats of a cache line */, UNROLL = 4, SAME = 512 };
enum { SPARING = TALL_ROWS ? 2 : 1 /* prefetches one of so many lines: hardware fetches pairs */ };

#ifndef vf_fma_onto
#define vf_fma_onto(sum, a, b) (void)((sum) = vf_fma(a, b, sum))
#endif

#ifndef vf_fma_tall
#define vf_fma_tall(sum, a, b) vf_fma_onto(sum, a, b)
#endif

/* NEAR: rows of A that addressing modes reach from one pointer. POINTERS: pointers of a tile. */
enum { ROWS_PER_POINTER = 3, POINTERS = (MAX_ROWS + ROWS_PER_POINTER - 1) / ROWS_PER_POINTER };

/* Offset of column `j` of a tile in its panels. */
static inline size_t column_offset(int j, size_t b_panel)
{
    return (size_t)(j / DQ_GEMM_F32_NR) * b_panel + (size_t)(j % DQ_GEMM_F32_NR);
}

/* Adds step `u` after those that are done. */
INLINE void step(const float *const a[POINTERS], size_t a_row, const float *b, size_t b_panel, size_t u,
                 int rows, int vectors, vf sum[MAX_ROWS][VECTORS])
{
    vf w[VECTORS];
    __asm__ volatile("" : "+r"(a_row)); /* opaque, so that addressing modes add u to it */
    for (int v = 0; v < vectors; v++)
        w[v] = vf_load(b + column_offset(v * VF_LANES, b_panel));
    for (int i = 0; i < rows; i++) {
        const vf x = vf_set(a[i / ROWS_PER_POINTER][(size_t)(i % ROWS_PER_POINTER) * a_row + u]);
        for (int v = 0; v < vectors; v++)
            vf_fma_onto(sum[i][v], x, w[v]);
    }
}

/* Epilogue of complete sums except for the gate: alpha, bias, z and the clamp. */
INLINE void finish(const dq_gemm_block_f32 *g, size_t row, const float *z, size_t z_row, int rows,
                   int vectors, vf (*sum)[VECTORS])
{
    const vf alpha = vf_set(g->alpha), low = vf_set(g->low), high = vf_set(g->high);
    if (g->alpha != 1)
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++)
                sum[i][v] = vf_mul(alpha, sum[i][v]);
    if (g->bias)
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++)
                sum[i][v] = vf_add(sum[i][v], vf_set(g->bias[row + (size_t)i]));
    if (z)
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++)
                sum[i][v] = vf_add(sum[i][v], vf_load(z + (size_t)i * z_row + v * VF_LANES));
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = vf_min(high, vf_max(low, sum[i][v]));
}

/* Applies the gate to a strip in the L1 cache, or to a tile, if its rows map to the same cache sets. A
 * separate function, because each tile size would inline a copy of this code and wait for its latency. */
static __attribute__((noinline)) void gate_rows(const dq_hswish_f32 *gate, float *c, size_t c_row,
                                                size_t rows, size_t cols)
{
    const hswish_f32 g = hswish_f32_of(gate);
    for (; rows; rows--, c += c_row)
        for (size_t j = 0; j < cols; j += VF_LANES)
            vf_store(c + j, hswish_f32_any(&g, vf_load(c + j)));
}

/* Prefetches by the tiles of a strip. Each tile prefetches its share of the next panels. Tiles of the
 * first panels also prefetch the rows of A of the next tile, which are read there for the first time. */
typedef struct stream {
    const float *at;
    size_t step;       /* floats to advance per step of the sums */
    size_t last_panel; /* distance of the last of the panels from the first */
    const float *rows;
} stream;

static inline stream next_panels(const dq_gemm_block_f32 *g, size_t col, const float *b, size_t tiles)
{
    const float *panel = NULL;
    size_t last_panel = 0;
    if (g->k && g->b_step == DQ_GEMM_F32_NR) {
        panel = col + TILE_COLS < g->cols ? b + PANELS * g->b_panel : g->next;
        last_panel =
            panel == g->next || col + TILE_COLS + DQ_GEMM_F32_NR < g->cols ? (PANELS - 1) * g->b_panel : 0;
    }
    if (!panel)
        return (stream){b, 0, 0, NULL};
    return (stream){panel, (DQ_GEMM_F32_NR + tiles - 1) / tiles, last_panel, NULL};
}

/* Prefetches `count` cache lines, `step` floats from line to line. */
INLINE void fetch(const float *from, size_t step, int count)
{
    for (int i = 0; i < count; i++)
        __builtin_prefetch(from + (size_t)i * step);
}

/* Computes a tile of `rows` rows, from row `row` on, by `vectors` vectors. Both are constants in each
 * call, so that accumulators stay in registers. c and z point to the first element of the tile. */
INLINE void tile(const dq_gemm_block_f32 *g, size_t row, const float *b, stream *next, float *c, size_t c_row,
                 const float *z, size_t z_row, int rows, int vectors)
{
    const size_t a_row = g->a_row, b_step = g->b_step, b_panel = g->b_panel;
    const float *a[POINTERS];
    for (int i = 0; i < POINTERS; i++) {
        a[i] = g->k && i * ROWS_PER_POINTER < rows ? g->a + (row + (size_t)(i * ROWS_PER_POINTER)) * a_row
                                                   : g->a;
        __asm__("" : "+r"(a[i])); /* opaque, so that no pointer is derived from another */
    }
    vf sum[MAX_ROWS][VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = g->more ? vf_load(c + (size_t)i * c_row + v * VF_LANES) : vf_set(0);
    if (!g->more)
        fetch(c, c_row, rows);
    if (z)
        fetch(z, z_row, rows);
    const float *at = next->at, *next_rows = next->rows;
    const size_t onwards = next->step, last_panel = next->last_panel;
    size_t p = 0;
#ifdef FOUR_STEPS
    while (p + UNROLL <= g->k) {
        const size_t end = g->k - p < LINE ? g->k : p + LINE;
        for (size_t i = 0; i < onwards; i++)
            fetch(at + i * LINE, last_panel, PANELS);
        at += onwards * LINE;
        if (next_rows)
            fetch(next_rows + p, a_row, rows);
        for (; p + UNROLL <= end; p += UNROLL, b += UNROLL * b_step) {
            FOUR_STEPS(a, a_row, b, b_step, rows, vectors, sum);
            for (int i = 0; i < POINTERS; i++)
                a[i] += UNROLL;
        }
    }
#else
    for (; p + UNROLL <= g->k; p += UNROLL) {
        fetch(at, last_panel, PANELS);
        if (onwards > LINE / UNROLL)
            for (size_t u = SPARING; u < UNROLL; u += SPARING)
                fetch(at + u * onwards, last_panel, PANELS);
        at += onwards * UNROLL;
        if (next_rows && p % LINE == 0)
            fetch(next_rows + p, a_row, rows);
        for (size_t u = 0; u < UNROLL; u++, b += b_step)
            step(a, a_row, b, b_panel, u, rows, vectors, sum);
        for (int i = 0; i < POINTERS; i++)
            a[i] += UNROLL;
    }
#endif
#pragma GCC unroll 1
    for (; p < g->k; p++, b += b_step) {
        step(a, a_row, b, b_panel, 0, rows, vectors, sum);
        for (int i = 0; i < POINTERS; i++)
            a[i]++;
    }
    next->at = at;
    /* opaque, so that addresses of rows need no registers during the steps */
    __asm__("" : "+r"(c), "+r"(c_row));
    if (g->last)
        finish(g, row, z, z_row, rows, vectors, sum);
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            vf_store(c + (size_t)i * c_row + v * VF_LANES, sum[i][v]);
}

INLINE void tile_rows(const dq_gemm_block_f32 *g, size_t row, size_t rows, const float *b, stream *next,
                      float *c, size_t c_row, const float *z, size_t z_row, int vectors)
{
    switch (rows) {
#define ROWS(n)                                                                                              \
    case n:                                                                                                  \
        tile(g, row, b, next, c, c_row, z, z_row, n, vectors);                                               \
        break;
        ROWS(1)
        ROWS(2)
        ROWS(3)
        ROWS(4)
        ROWS(5)
#undef ROWS
    default:
        tile(g, row, b, next, c, c_row, z, z_row, MAX_ROWS, vectors);
    }
}

/* Multiples of a stride in bytes: addressing modes scale `one` by 1, 2, 4 and 8; the other two have
 * registers. */
typedef struct strides {
    size_t one, three, five;
} strides;

INLINE strides strides_of(size_t floats)
{
    const size_t one = floats * sizeof(float);
    return (strides){one, 3 * one, 5 * one};
}

INLINE const float *at_stride(const float *from, const strides *s, int times)
{
    const size_t bytes = times == 3 ? s->three : times == 5 ? s->five : s->one * (size_t)times;
    return (const float *)(const void *)((const char *)from + bytes);
}

enum {
    HEIGHT = TALL_ROWS ? TALL_ROWS : 1,
    LESS = TALL_ROWS ? 8 : 1,
    HALF_HEIGHT = 6 /* rows that addressing modes reach */
};

/* Adds `steps` steps to the accumulators of a tall tile. The FMA units share their ports with additions,
 * so that address arithmetic is left to the load units: pointers and strides are opaque, so that compilers do
 * not compute further ones in advance. */
INLINE void tall_steps(const float *const a[2], strides *a_row, const float *const b[VECTORS],
                       strides *b_step, int steps, int height, int vectors, vf (*sum)[VECTORS])
{
    __asm__ volatile("" : "+r"(a_row->one), "+r"(a_row->three), "+r"(a_row->five));
    __asm__ volatile("" : "+r"(b_step->one), "+r"(b_step->three));
#pragma GCC unroll 4
    for (int u = 0; u < steps; u++) {
        vf w[VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            w[v] = vf_load(at_stride(b[v], b_step, u));
#pragma GCC unroll 16
        for (int i = 0; i < height; i++) {
            const vf x = vf_set(at_stride(a[i / HALF_HEIGHT], a_row, i % HALF_HEIGHT)[u]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                vf_fma_tall(sum[i][v], x, w[v]);
        }
    }
}

/* A strip: rows of C, as wide as a tile. c and z point to the first element of the strip. */
typedef struct strip {
    const dq_gemm_block_f32 *g;
    size_t col, row, rows;
    const float *b;
    float *c;
    const float *z;
    size_t c_row, z_row;
} strip;

/* Rows of c, and of z if any, of the next tall tile. The current tile prefetches `each` of them per LINE
 * steps. */
typedef struct coming {
    const float *c, *z;
    size_t c_row, z_row, rows, each;
} coming;

static inline coming coming_rows(const strip *s, size_t row, size_t tall, size_t each)
{
    const bool below = row < tall;
    const size_t c = below ? row * s->c_row : TILE_COLS, z = below ? row * s->z_row : TILE_COLS;
    return (coming){.c = s->c + c,
                    .z = s->z ? s->z + z : NULL,
                    .c_row = s->c_row,
                    .z_row = s->z_row,
                    .rows = HEIGHT,
                    .each = each};
}

INLINE void fetch_coming(coming *to, size_t most)
{
    size_t rows = to->rows < most ? to->rows : most;
    to->rows -= rows;
    for (; rows; rows--) {
        fetch(to->c, LINE, PANELS);
        to->c += to->c_row;
        if (to->z) {
            fetch(to->z, LINE, PANELS);
            to->z += to->z_row;
        }
    }
}

/* Prefetches C and z of the next strip, if they are not cached. The steps of a tile take less time than a
 * memory access, and hardware prefetchers do not predict rows with a large stride. The target is the L2
 * cache, because fewer lines can be in flight to the L1 cache. */
static __attribute__((noinline)) void fetch_next_columns(const strip *s, size_t row, size_t rows)
{
    /* Compilers remove calls without side effects, and prefetches do not count as such. */
    __asm__ volatile("");
    for (size_t i = row; i < row + rows; i++)
        for (int j = 0; j < PANELS; j++) {
            if (!s->g->more)
                __builtin_prefetch(s->c + i * s->c_row + TILE_COLS + j * LINE, 0, 2);
            if (s->z)
                __builtin_prefetch(s->z + i * s->z_row + TILE_COLS + j * LINE, 0, 2);
        }
}

/* Computes `height` rows of a strip, from its row `row` on, by `vectors` vectors. Both are constants in each
 * call. */
INLINE void tall_tile(const strip *s, size_t row, stream *next, coming to, int height, int vectors)
{
    enum { TIMES = LINE / UNROLL };
    const dq_gemm_block_f32 *g = s->g;
    strides a_row = strides_of(g->a_row), b_step = strides_of(g->b_step);
    const float *from = g->a + (s->row + row) * g->a_row;
    const float *a[2] = {from, from + HALF_HEIGHT * g->a_row}, *b[VECTORS];
    for (int v = 0; v < vectors; v++)
        b[v] = s->b + column_offset(v * VF_LANES, g->b_panel);
    float *c = s->c + row * s->c_row;
    vf sum[HEIGHT][VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < height; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = g->more ? vf_load(c + (size_t)i * s->c_row + v * VF_LANES) : vf_set(0);
    /* Few prefetches of the next panels are grouped, many are distributed as evenly as possible. */
    const size_t few = next->step <= TIMES, group = few ? TIMES : 1, last_panel = next->last_panel;
    const size_t lines = few ? next->step : (next->step + TIMES - 1) / TIMES;
    const size_t rows = few ? to.each : (to.each + TIMES - 1) / TIMES;
    const float *at = next->at;
    for (size_t left = g->k / UNROLL, times; left; left -= times) {
        times = left < group ? left : group;
        for (size_t l = 0; l < lines; l++, at += LINE)
            fetch(at, last_panel, PANELS);
        fetch_coming(&to, rows);
        size_t n = times;
        do {
            tall_steps(a, &a_row, b, &b_step, UNROLL, height, vectors, sum);
            for (int i = 0; i < 2; i++)
                a[i] += UNROLL;
            for (int v = 0; v < vectors; v++)
                b[v] = at_stride(b[v], &b_step, UNROLL);
        } while (--n);
    }
    next->at = at;
    for (size_t left = g->k % UNROLL; left; left--) {
        tall_steps(a, &a_row, b, &b_step, 1, height, vectors, sum);
        for (int i = 0; i < 2; i++)
            a[i]++;
        for (int v = 0; v < vectors; v++)
            b[v] = at_stride(b[v], &b_step, 1);
    }
    __asm__("" : "+r"(c)); /* opaque, so that addresses of rows need no registers during the steps */
    if (g->last)
        finish(g, s->row + row, s->z ? s->z + row * s->z_row : NULL, s->z_row, height, vectors, sum);
#pragma GCC unroll 16
    for (int i = 0; i < height; i++)
        for (int v = 0; v < vectors; v++)
            vf_store(c + (size_t)i * s->c_row + v * VF_LANES, sum[i][v]);
}

/* Computes rows `row` … end - 1 of a strip by tall tiles. */
INLINE void tall_rows(const strip *s, size_t row, size_t end, stream *next, int height, int vectors)
{
    const size_t each = (HEIGHT * LINE + s->g->k - 1) / s->g->k;
    for (; row < end; row += (size_t)height) {
        if (s->g->exceeds_caches)
            fetch_next_columns(s, row, (size_t)height);
        tall_tile(s, row, next, coming_rows(s, row + (size_t)height, end, each), height, vectors);
    }
}

/* Separate functions, so that their tiles do not share registers with other code. */
static __attribute__((noinline)) void rows_most(const strip *s, size_t end, stream *next)
{
    tall_rows(s, 0, end, next, HEIGHT, VECTORS);
}

static __attribute__((noinline)) void rows_less(const strip *s, size_t row, size_t end, stream *next)
{
    tall_rows(s, row, end, next, LESS, VECTORS);
}

static __attribute__((noinline)) void rows_most_half(const strip *s, size_t end, stream *next)
{
    tall_rows(s, 0, end, next, HEIGHT, HALF_VECTORS);
}

static __attribute__((noinline)) void rows_less_half(const strip *s, size_t row, size_t end, stream *next)
{
    tall_rows(s, row, end, next, LESS, HALF_VECTORS);
}

static inline size_t tiles_of(size_t rows)
{
    return (rows + MAX_ROWS - 1) / MAX_ROWS;
}

/* Numbers of tiles of HEIGHT and of LESS rows at the start of a strip. If possible, no rows are left, or
 * at least five, because tiles of fewer rows are bound by FMA latency. */
typedef struct tall {
    size_t most, less;
} tall;

static tall tall_tiles(const strip *s)
{
    enum { MIN_STEPS = 16 };
    static const uint8_t less[12] = {0, 1, 1, 0, 2, 0, 0, 1, 1, 2, 2, 0}; /* by rows % HEIGHT */
    if (!TALL_ROWS || s->g->k < MIN_STEPS)
        return (tall){0, 0};
    const size_t few = less[s->rows % HEIGHT], count = few * LESS <= s->rows ? few : 0;
    return (tall){(s->rows - count * LESS) / HEIGHT, count};
}

/* Computes a strip. Rows are distributed evenly among its tiles, because tiles of few rows are bound by
 * FMA latency. */
INLINE void strip_tiles(const strip *s, int vectors)
{
    const dq_gemm_block_f32 *g = s->g;
    const bool gated = g->last && g->gate, soon = gated && s->c_row % SAME == 0;
    const tall t = tall_tiles(s);
    const size_t most = t.most * HEIGHT, begun = most + t.less * LESS, left = s->rows - begun;
    const size_t tiles = tiles_of(left), each = tiles ? left / tiles : 0, more = left - tiles * each;
    stream next = next_panels(g, s->col, s->b, t.most + t.less + tiles);
    if (most)
        (vectors == VECTORS ? rows_most : rows_most_half)(s, most, &next);
    if (begun > most)
        (vectors == VECTORS ? rows_less : rows_less_half)(s, most, begun, &next);
    if (soon)
        gate_rows(g->gate, s->c, s->c_row, begun, (size_t)vectors * VF_LANES);
    for (size_t row = begun, rows, n = tiles; row < s->rows; row += rows) {
        rows = each + (n-- <= more);
        const bool fetches = s->col == 0 && row + rows < s->rows && g->k;
        if (g->exceeds_caches)
            fetch_next_columns(s, row, rows);
        next.rows = fetches ? g->a + (s->row + row + rows) * g->a_row : NULL;
        tile_rows(g, s->row + row, rows, s->b, &next, s->c + row * s->c_row, s->c_row,
                  s->z ? s->z + row * s->z_row : NULL, s->z_row, vectors);
        if (soon)
            gate_rows(g->gate, s->c + row * s->c_row, s->c_row, rows, (size_t)vectors * VF_LANES);
    }
    if (gated && !soon)
        gate_rows(g->gate, s->c, s->c_row, s->rows, (size_t)vectors * VF_LANES);
}

/* Separate functions, because each is much code that should exist once. */
static __attribute__((noinline)) void strip_whole(const strip *s)
{
    strip_tiles(s, VECTORS);
}

static __attribute__((noinline)) void strip_half(const strip *s)
{
    strip_tiles(s, HALF_VECTORS);
}

enum { EDGE_ROWS = TALL_ROWS ? 2 * TALL_ROWS : MAX_ROWS };

/* Computes a tile of the last panels with fewer columns than they have, in buffers of `width` columns: whole
 * panels. */
static __attribute__((noinline)) void tile_edge(const strip *s, size_t cols, size_t width)
{
    float c[EDGE_ROWS * TILE_COLS], z[EDGE_ROWS * TILE_COLS];
    const size_t bytes = cols * sizeof *c;
    strip padded = *s;
    padded.c = c;
    padded.z = s->z ? z : NULL;
    padded.c_row = padded.z_row = width;
    if (s->g->more)
        memset(c, 0, s->rows * width * sizeof *c);
    if (s->z)
        memset(z, 0, s->rows * width * sizeof *z);
    for (size_t i = 0; i < s->rows && s->g->more; i++)
        dq_copy_row(c + i * width, s->c + i * s->c_row, bytes);
    for (size_t i = 0; i < s->rows && s->z; i++)
        dq_copy_row(z + i * width, s->z + i * s->z_row, bytes);
    if (VECTORS > 1 && cols <= TILE_COLS / 2)
        strip_half(&padded);
    else
        strip_whole(&padded);
    for (size_t i = 0; i < s->rows; i++)
        dq_copy_row(s->c + i * s->c_row, c + i * width, bytes);
}

static void tile_block(const dq_gemm_block_f32 *g)
{
    const size_t edges = (g->rows + EDGE_ROWS - 1) / EDGE_ROWS;
    for (size_t col = 0, done; edges && col < g->cols; col += done) {
        strip s = {.g = g,
                   .col = col,
                   .rows = g->rows,
                   .b = g->k ? g->b + col / DQ_GEMM_F32_NR * g->b_panel : g->b,
                   .c = g->c + col,
                   .z = g->last && g->z ? g->z + col : NULL,
                   .c_row = g->c_row,
                   .z_row = g->z_row};
        done = g->cols - col >= TILE_COLS ? TILE_COLS : DQ_GEMM_F32_NR;
#ifdef NARROW
        if (done < TILE_COLS && g->rows < FEWEST_ROWS) {
            dq_gemm_block_f32 left = *g;
            left.cols -= col;
            left.b = s.b;
            left.c = s.c;
            left.z = s.z;
            NARROW(&left);
            return;
        }
#endif
        if (g->cols - col >= TILE_COLS || g->cols - col == DQ_GEMM_F32_NR) {
            (done == TILE_COLS ? strip_whole : strip_half)(&s);
            continue;
        }
        done = g->cols - col > DQ_GEMM_F32_NR ? TILE_COLS : DQ_GEMM_F32_NR;
        for (size_t t = 0; t < edges; t++, s.row += s.rows) {
            s.rows = (g->rows + t) / edges;
            s.c = g->c + s.row * g->c_row + col;
            s.z = g->last && g->z ? g->z + s.row * g->z_row + col : NULL;
            tile_edge(&s, g->cols - col, done);
        }
    }
}

#endif
