/* dq_fblock_fn by tiles of registers, over the vector that a vec_<isa>.h defines, whose minimum and maximum
 * give their second operand where the two are equal or one is NaN. Before this, the file of the instruction
 * set includes that header and defines MOST_ROWS, rows of a tile, at least 6 and at most 12: the sums,
 * MOST_ROWS * DQ_FPANEL / VF_LANES vectors, stay in registers. After it, it calls tile_block. */
#ifndef DQ_KERNELS_FPRODUCT_TILE_H
#define DQ_KERNELS_FPRODUCT_TILE_H

#include "kernels/fproduct.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))
enum { VECTORS = DQ_FPANEL / VF_LANES, LINE = 16 /* floats of a cache line */ };

INLINE void step(const float *a, size_t a_row, const float *b, int rows, int vectors,
                 vf sum[MOST_ROWS][VECTORS])
{
    vf w[VECTORS];
    for (int v = 0; v < vectors; v++)
        w[v] = vf_load(b + v * VF_LANES);
    for (int i = 0; i < rows; i++) {
        vf x = vf_set(a[(size_t)i * a_row]);
        for (int v = 0; v < vectors; v++)
            sum[i][v] = vf_fma(x, w[v], sum[i][v]);
    }
}

/* What is left to do upon whole sums. */
INLINE void finish(const dq_fblock *g, size_t row, const float *z, size_t z_row, int rows, int vectors,
                   vf sum[MOST_ROWS][VECTORS])
{
    const vf alpha = vf_set(g->alpha), low = vf_set(g->low), high = vf_set(g->high);
    if (g->alpha != 1)
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++)
                sum[i][v] = vf_mul(alpha, sum[i][v]);
    if (g->bias)
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++)
                sum[i][v] = vf_add(sum[i][v], vf_set(g->bias[row + (size_t)i]));
    if (z)
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++)
                sum[i][v] = vf_add(sum[i][v], vf_load(z + (size_t)i * z_row + v * VF_LANES));
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = vf_min(high, vf_max(low, sum[i][v]));
}

/* What is fetched into the cache meanwhile: each tile takes its share of the panel that comes next; those of
 * the first panel fetch the rows of A of the tile that comes next, which are met there for the first time. */
typedef struct stream {
    const float *at;
    size_t step; /* onwards, with each step of the sums */
    const float *rows;
} stream;

static inline stream next_panel(const dq_fblock *g, size_t col, const float *b, size_t tile, size_t tiles,
                                size_t next_row)
{
    bool last = col + DQ_FPANEL >= g->cols;
    stream next = {b, 0, NULL};
    if (!last && g->k && g->b_step == DQ_FPANEL)
        next =
            (stream){b + g->b_panel + tile * g->k / tiles * DQ_FPANEL, (DQ_FPANEL + tiles - 1) / tiles, NULL};
    if (col == 0 && tile + 1 < tiles && g->k)
        next.rows = g->a + next_row * g->a_row;
    return next;
}

/* Fetches a line of each row of the next tile, and of what a tile ends upon. */
INLINE void fetch(const float *from, size_t row, int rows)
{
    for (int i = 0; i < rows; i++)
        __builtin_prefetch(from + (size_t)i * row);
}

/* A tile of rows from number `row` on and of vectors from column `col` on, to and from c and z as they are
 * given: `rows` and `vectors` are constants in each call, so that sums stay in registers. */
INLINE void tile(const dq_fblock *g, size_t row, const float *b, stream next, float *c, size_t c_row,
                 const float *z, size_t z_row, int rows, int vectors)
{
    enum { UNROLL = 2 };
    const float *a = g->k ? g->a + row * g->a_row : g->a;
    vf sum[MOST_ROWS][VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = g->more ? vf_load(c + (size_t)i * c_row + v * VF_LANES) : vf_set(0);
    if (!g->more)
        fetch(c, c_row, rows);
    if (z)
        fetch(z, z_row, rows);
    size_t p = 0;
    for (; p + UNROLL <= g->k; p += UNROLL) {
        if (next.rows && p % LINE == 0)
            fetch(next.rows + p, g->a_row, rows);
        for (int u = 0; u < UNROLL; u++, a++, b += g->b_step) {
            __builtin_prefetch(next.at);
            next.at += next.step;
            step(a, g->a_row, b, rows, vectors, sum);
        }
    }
    for (; p < g->k; p++, a++, b += g->b_step)
        step(a, g->a_row, b, rows, vectors, sum);
    if (g->last)
        finish(g, row, z, z_row, rows, vectors, sum);
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            vf_store(c + (size_t)i * c_row + v * VF_LANES, sum[i][v]);
}

INLINE void tile_rows(const dq_fblock *g, size_t row, size_t rows, const float *b, stream next, float *c,
                      size_t c_row, const float *z, size_t z_row, int vectors)
{
    switch (rows) {
#define ROWS(n)                                                                                              \
    case n:                                                                                                  \
        if (n <= MOST_ROWS)                                                                                  \
            tile(g, row, b, next, c, c_row, z, z_row, n <= MOST_ROWS ? n : 1, vectors);                      \
        break;
        ROWS(1)
        ROWS(2)
        ROWS(3)
        ROWS(4)
        ROWS(5)
        ROWS(6)
        ROWS(7)
        ROWS(8)
        ROWS(9)
        ROWS(10)
        ROWS(11)
        ROWS(12)
#undef ROWS
    default:
        break;
    }
}

/* Rows of a panel's results, to and from c and z as they are given. */
typedef struct strip {
    const dq_fblock *g;
    size_t col, row, rows;
    const float *b;
    float *c;
    const float *z;
    size_t c_row, z_row;
} strip;

static inline size_t tiles_of(size_t rows)
{
    return (rows + MOST_ROWS - 1) / MOST_ROWS;
}

/* Rows are shared out evenly: a tile of few rows waits for its sums. */
INLINE void strip_tiles(const strip *s, int vectors)
{
    const dq_fblock *g = s->g;
    size_t tiles = tiles_of(s->rows);
    for (size_t t = 0, row = 0; t < tiles; t++) {
        size_t rows = (s->rows + t) / tiles, first = s->row + row;
        tile_rows(g, first, rows, s->b, next_panel(g, s->col, s->b, t, tiles, first + rows),
                  s->c + row * s->c_row, s->c_row, s->z ? s->z + row * s->z_row : NULL, s->z_row, vectors);
        row += rows;
    }
}

/* Each is much code, which stands once. */
static __attribute__((noinline)) void strip_whole(const strip *s)
{
    strip_tiles(s, VECTORS);
}

static __attribute__((noinline)) void strip_half(const strip *s)
{
    strip_tiles(s, VECTORS > 1 ? VECTORS / 2 : 1);
}

/* A tile of the last panel, of fewer columns than it has: in rooms that are whole. */
static __attribute__((noinline)) void tile_edge(const strip *s, size_t cols)
{
    float c[MOST_ROWS * DQ_FPANEL] = {0}, z[MOST_ROWS * DQ_FPANEL] = {0};
    size_t bytes = cols * sizeof *c;
    strip room = *s;
    room.c = c;
    room.z = s->z ? z : NULL;
    room.c_row = room.z_row = DQ_FPANEL;
    for (size_t i = 0; i < s->rows; i++) {
        if (s->g->more)
            memcpy(c + i * DQ_FPANEL, s->c + i * s->c_row, bytes);
        if (s->z)
            memcpy(z + i * DQ_FPANEL, s->z + i * s->z_row, bytes);
    }
    if (VECTORS > 1 && cols <= DQ_FPANEL / 2)
        strip_half(&room);
    else
        strip_whole(&room);
    for (size_t i = 0; i < s->rows; i++)
        memcpy(s->c + i * s->c_row, c + i * DQ_FPANEL, bytes);
}

static void tile_block(const dq_fblock *g)
{
    size_t tiles = tiles_of(g->rows);
    for (size_t col = 0; col < g->cols; col += DQ_FPANEL) {
        strip s = {.g = g,
                   .col = col,
                   .rows = g->rows,
                   .b = g->k ? g->b + col / DQ_FPANEL * g->b_panel : g->b,
                   .c = g->c + col,
                   .z = g->last && g->z ? g->z + col : NULL,
                   .c_row = g->c_row,
                   .z_row = g->z_row};
        if (g->cols - col >= DQ_FPANEL) {
            strip_whole(&s);
            continue;
        }
        for (size_t t = 0; t < tiles; t++, s.row += s.rows) {
            s.rows = (g->rows + t) / tiles;
            s.c = g->c + s.row * g->c_row + col;
            s.z = g->last && g->z ? g->z + s.row * g->z_row + col : NULL;
            tile_edge(&s, g->cols - col);
        }
    }
}

#endif
