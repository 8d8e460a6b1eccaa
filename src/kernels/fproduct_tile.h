/* dq_fblock_fn by tiles of registers, for any vector of floats. Before this, an instruction set's file
 * defines vec                   a vector of LANES floats LANES                 a divisor of DQ_FPANEL
 *   MOST_ROWS             rows of a tile, at least 6 and at most 12: the sums, MOST_ROWS * DQ_FPANEL / LANES
 *                         vectors, stay in registers
 *   v_zero, v_load, v_store, v_set, v_fma(a, b, c) = a * b + c, v_add, v_mul,
 *   v_low(low, x) = x < low ? low : x, v_high(high, x) = x > high ? high : x
 * and after it calls tile_block. */
#ifndef DQ_KERNELS_FPRODUCT_TILE_H
#define DQ_KERNELS_FPRODUCT_TILE_H

#include "kernels/fproduct.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))
enum { VECTORS = DQ_FPANEL / LANES, LINE = 16 /* floats of a cache line */ };

INLINE void step(const float *a, size_t a_row, const float *b, int rows, int vectors,
                 vec sum[MOST_ROWS][VECTORS])
{
    vec w[VECTORS];
    for (int v = 0; v < vectors; v++)
        w[v] = v_load(b + v * LANES);
    for (int i = 0; i < rows; i++) {
        vec x = v_set(a[(size_t)i * a_row]);
        for (int v = 0; v < vectors; v++)
            sum[i][v] = v_fma(x, w[v], sum[i][v]);
    }
}

/* A tile of rows from number `row` on and of vectors from column `col` on, to and from c and z as they are
 * given: `rows` and `vectors` are constants in each call, so that sums stay in registers. */
INLINE void tile(const dq_fblock *g, size_t row, const float *b, ptrdiff_t ahead, float *c, size_t c_row,
                 const float *z, size_t z_row, int rows, int vectors)
{
    enum { UNROLL = 2 };
    const float *a = g->a + row * g->a_row;
    vec sum[MOST_ROWS][VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = g->more ? v_load(c + (size_t)i * c_row + v * LANES) : v_zero();
    size_t p = 0;
    for (; p + UNROLL <= g->k; p += UNROLL)
        for (int u = 0; u < UNROLL; u++, a++, b += g->b_step) {
            __builtin_prefetch(b + ahead);
            step(a, g->a_row, b, rows, vectors, sum);
        }
    for (; p < g->k; p++, a++, b += g->b_step)
        step(a, g->a_row, b, rows, vectors, sum);
    const vec alpha = v_set(g->alpha), low = v_set(g->low), high = v_set(g->high);
    for (int i = 0; i < rows; i++) {
        const vec bias = g->last && g->bias ? v_set(g->bias[row + (size_t)i]) : v_zero();
        for (int v = 0; v < vectors; v++) {
            vec x = sum[i][v];
            if (g->last) {
                if (g->alpha != 1)
                    x = v_mul(alpha, x);
                if (g->bias)
                    x = v_add(x, bias);
                if (z)
                    x = v_add(x, v_load(z + (size_t)i * z_row + v * LANES));
                x = v_high(high, v_low(low, x));
            }
            v_store(c + (size_t)i * c_row + v * LANES, x);
        }
    }
}

INLINE void tile_rows(const dq_fblock *g, size_t row, size_t rows, const float *b, ptrdiff_t ahead, float *c,
                      size_t c_row, const float *z, size_t z_row, int vectors)
{
    switch (rows) {
#define ROWS(n)                                                                                              \
    case n:                                                                                                  \
        if (n <= MOST_ROWS)                                                                                  \
            tile(g, row, b, ahead, c, c_row, z, z_row, n <= MOST_ROWS ? n : 1, vectors);                     \
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

/* A tile of the last panel, of fewer columns than it has: in rooms that are whole. */
static __attribute__((noinline)) void tile_edge(const dq_fblock *g, size_t row, size_t rows, size_t col,
                                                const float *b)
{
    float c[MOST_ROWS * DQ_FPANEL], z[MOST_ROWS * DQ_FPANEL];
    size_t cols = g->cols - col, bytes = cols * sizeof *c;
    bool has_z = g->last && g->z;
    memset(c, 0, sizeof c);
    if (has_z)
        memset(z, 0, sizeof z);
    for (size_t i = 0; i < rows; i++) {
        if (g->more)
            memcpy(c + i * DQ_FPANEL, g->c + (row + i) * g->c_row + col, bytes);
        if (has_z)
            memcpy(z + i * DQ_FPANEL, g->z + (row + i) * g->z_row + col, bytes);
    }
    if (VECTORS > 1 && cols <= DQ_FPANEL / 2)
        tile_rows(g, row, rows, b, 0, c, DQ_FPANEL, has_z ? z : NULL, DQ_FPANEL,
                  VECTORS > 1 ? VECTORS / 2 : 1);
    else
        tile_rows(g, row, rows, b, 0, c, DQ_FPANEL, has_z ? z : NULL, DQ_FPANEL, VECTORS);
    for (size_t i = 0; i < rows; i++)
        memcpy(g->c + (row + i) * g->c_row + col, c + i * DQ_FPANEL, bytes);
}

/* Rows are shared out evenly: a tile of few rows waits for its sums. */
INLINE void tile_block(const dq_fblock *g)
{
    size_t tiles = (g->rows + MOST_ROWS - 1) / MOST_ROWS, each = tiles ? g->rows / tiles : 0;
    for (size_t col = 0; col < g->cols; col += DQ_FPANEL) {
        const float *b = g->b + col / DQ_FPANEL * g->b_panel;
        size_t longer = g->rows - each * tiles;
        for (size_t row = 0, rows; row < g->rows; row += rows) {
            rows = each + (longer > 0);
            longer -= longer > 0;
            if (g->cols - col >= DQ_FPANEL)
                tile_rows(g, row, rows, b,
                          row + rows == g->rows && col + DQ_FPANEL < g->cols ? (ptrdiff_t)g->b_panel : 0,
                          g->c + row * g->c_row + col, g->c_row,
                          g->last && g->z ? g->z + row * g->z_row + col : NULL, g->z_row, VECTORS);
            else
                tile_edge(g, row, rows, col, b);
        }
    }
}

#endif
