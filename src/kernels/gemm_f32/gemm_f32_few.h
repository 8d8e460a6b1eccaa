/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Implements dq_gemm_block_f32_fn for few rows of A and packed
 * panels, with vectors of eight floats, or of sixteen (WIDE_PANELS). Tiles of two to four rows would be bound
 * by FMA latency if they were not wider than those of gemm_f32_tile.h. Parameters: those of gemm_f32_flat.h.
 */
#ifndef DQ_KERNELS_GEMM_F32_FEW_H
#define DQ_KERNELS_GEMM_F32_FEW_H

#include "kernels/gemm_f32/gemm_f32_flat.h"

enum { MAX_VECTORS = VF_LANES == 16 ? 4 : 6 };

/* Computes `rows` rows by `vectors` vectors from column `col` on, which is vector `odd` of a panel. */
INLINE void wide_tile(const dq_gemm_block_f32 *g, size_t row, size_t col, int odd, int rows, int vectors)
{
    const float *a[4], *b = g->b + col / DQ_GEMM_F32_NR * g->b_panel;
    float *c = g->c + row * g->c_row + col;
    vf sum[4][MAX_VECTORS];
    for (int i = 0; i < rows; i++) {
        a[i] = g->a + (row + (size_t)i) * g->a_row;
        for (int v = 0; v < vectors; v++)
            sum[i][v] = g->more ? vf_load(c + (size_t)i * g->c_row + v * VF_LANES) : vf_set(0);
    }
    for (size_t p = 0; p < g->k; p++, b += g->b_step) {
        vf x[4], w[MAX_VECTORS];
        if (vectors < rows) { /* the smaller operand stays in registers */
            for (int v = 0; v < vectors; v++)
                w[v] = vf_load(b + column_offset((odd + v) * VF_LANES, g->b_panel));
            for (int i = 0; i < rows; i++) {
                x[0] = vf_set(a[i][p]);
                for (int v = 0; v < vectors; v++)
                    vf_fma_tall(sum[i][v], x[0], w[v]);
            }
            continue;
        }
        for (int i = 0; i < rows; i++)
            x[i] = vf_set(a[i][p]);
        for (int v = 0; v < vectors; v++) {
            w[0] = vf_load(b + column_offset((odd + v) * VF_LANES, g->b_panel));
            for (int i = 0; i < rows; i++)
                vf_fma_tall(sum[i][v], x[i], w[0]);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            vf_store(c + (size_t)i * g->c_row + v * VF_LANES, sum[i][v]);
}

/* Whether wide tiles are applicable: few rows, and sums that need no epilogue or stay in the L1 cache for
 * it. Eight rows are two tiles; panels must still be cached for the second one. */
static bool few_rows(const dq_gemm_block_f32 *g)
{
    enum { DEEP = 32, TWICE = 256, MAX_RESULTS = 4096 };
    return (g->rows - 2 <= 2 || (VF_LANES < 16 && g->rows == 8 && g->k <= TWICE)) && g->k >= DEEP &&
           g->b_step == DQ_GEMM_F32_NR && (!g->last || g->rows * g->cols <= MAX_RESULTS);
}

/* Computes the columns of whole wide tiles; finish_columns() computes the others. */
static void wide_tiles(const dq_gemm_block_f32 *g)
{
    enum { STRIP_COLS = VF_LANES == 16 ? 4 * DQ_GEMM_F32_NR : 3 * DQ_GEMM_F32_NR };
    const size_t each = VF_LANES < 16 && g->rows == 3 ? 2 * DQ_GEMM_F32_NR : STRIP_COLS,
                 cols = g->cols / each * each;
    for (size_t col = 0; col < cols; col += each) {
        if (g->rows == 2)
            wide_tile(g, 0, col, 0, 2, VF_LANES == 16 ? 4 : 6);
        else if (g->rows == 3)
            wide_tile(g, 0, col, 0, 3, 4);
        else
            for (size_t row = 0; row < g->rows; row += 4) {
#ifdef WIDE_PANELS
                wide_tile(g, row, col, 0, 4, 4);
#else
                wide_tile(g, row, col, 0, 4, 3);
                wide_tile(g, row, col + 3 * VF_LANES, 1, 4, 3);
#endif
            }
    }
    finish_columns(g, cols);
}

#endif
