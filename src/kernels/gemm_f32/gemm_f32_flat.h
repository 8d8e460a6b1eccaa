/* SPDX-License-Identifier: Apache-2.0 */
/* dq_gemm_block_f32_fn of one row of A, whose time is that of reading B: rows of a plain B go
 * straight through memory, and nothing behind its last column is read; panels do, as many at once as
 * registers hold the sums of. Nothing is fetched ahead here: that only gets into the way of what the
 * processor fetches. Before this, a file does what gemm_f32_tile.h wants; and it defines WIDE_PANELS where a
 * panel is one vector.
 */
#ifndef DQ_KERNELS_GEMM_F32_FLAT_H
#define DQ_KERNELS_GEMM_F32_FLAT_H

#include "kernels/gemm_f32/gemm_f32_tile.h"

#include <math.h>

enum { FLAT_STEPS = 8 };

/* `steps` rows of B on top of the sums: streams that go straight through memory. */
INLINE void flat_steps(const dq_gemm_block_f32 *g, size_t p, int steps, bool more)
{
    const float *b = g->b + p * g->b_step;
    vf x[FLAT_STEPS];
    for (int u = 0; u < steps; u++)
        x[u] = vf_set(g->a[p + (size_t)u]);
    size_t j = 0;
    for (; j + VF_LANES <= g->cols; j += VF_LANES) {
        vf sum = more ? vf_load(g->c + j) : vf_set(0);
        for (int u = 0; u < steps; u++)
            sum = vf_fma(x[u], vf_load(b + (size_t)u * g->b_step + j), sum);
        vf_store(g->c + j, sum);
    }
    for (; j < g->cols; j++) {
        float sum = more ? g->c[j] : 0;
        for (int u = 0; u < steps; u++)
            sum = fmaf(g->a[p + (size_t)u], b[(size_t)u * g->b_step + j], sum);
        g->c[j] = sum;
    }
}

/* No steps: what is left to do upon the sums of the first `cols` columns, which stand in c if `more`. */
static __attribute__((noinline)) void flat_finish(const dq_gemm_block_f32 *g, size_t cols, bool more)
{
    dq_gemm_block_f32 rest = *g;
    rest.cols = cols;
    rest.k = 0;
    rest.more = more;
    if (g->last || !more)
        tile_block(&rest);
}

static void flat(const dq_gemm_block_f32 *g)
{
    size_t p = 0;
    bool more = g->more;
    for (; p + FLAT_STEPS <= g->k; p += FLAT_STEPS, more = true)
        flat_steps(g, p, FLAT_STEPS, more);
    for (; p < g->k; p++, more = true)
        flat_steps(g, p, 1, more);
    flat_finish(g, g->cols, more);
}

/* ---- Panels -------------------------------------------------------------------------------------------- */

enum {
    EACH = DQ_FPANEL / VF_LANES,          /* vectors of a panel */
    MOST_PANELS = VF_LANES == 16 ? 8 : 6, /* whose sums stay in registers and keep multipliers busy */
};

/* What is left to do upon the sums of the first `cols` columns, whole panels, and all of the others. */
static __attribute__((noinline)) void finish_columns(const dq_gemm_block_f32 *g, size_t cols)
{
    flat_finish(g, cols, true);
    dq_gemm_block_f32 left = *g;
    left.cols -= cols;
    left.b += cols / DQ_FPANEL * g->b_panel;
    left.c += cols;
    left.z = g->z ? g->z + cols : NULL;
    if (left.cols)
        tile_block(&left);
}

/* So many panels side by side. */
INLINE void some_panels(const dq_gemm_block_f32 *g, size_t col, int count)
{
    const float *b[MOST_PANELS];
    vf sum[MOST_PANELS][EACH];
    for (int i = 0; i < count; i++) {
        b[i] = g->b + (col / DQ_FPANEL + (size_t)i) * g->b_panel;
        for (int v = 0; v < EACH; v++)
            sum[i][v] = g->more ? vf_load(g->c + col + (size_t)(i * DQ_FPANEL + v * VF_LANES)) : vf_set(0);
    }
    for (size_t p = 0, at = 0; p < g->k; p++, at += g->b_step) {
        const vf x = vf_set(g->a[p]);
        for (int i = 0; i < count; i++)
            for (int v = 0; v < EACH; v++)
                sum[i][v] = vf_fma(x, vf_load(b[i] + at + v * VF_LANES), sum[i][v]);
    }
    for (int i = 0; i < count; i++)
        for (int v = 0; v < EACH; v++)
            vf_store(g->c + col + (size_t)(i * DQ_FPANEL + v * VF_LANES), sum[i][v]);
}

/* Panels are shared out evenly: few at once wait for their sums. Deep ones are as many streams from memory,
 * which two keep busy. */
static void panels(const dq_gemm_block_f32 *g)
{
    enum { DEEP = 512 };
    const size_t whole = g->cols / DQ_FPANEL, cols = whole * DQ_FPANEL;
    const size_t most = g->k > DEEP ? 2 : MOST_PANELS;
    size_t parts = (whole + most - 1) / most;
    for (size_t col = 0, left = whole, count; left; left -= count, col += count * DQ_FPANEL, parts--) {
        count = (left + parts - 1) / parts;
        switch (count) {
#define PANELS_OF(n)                                                                                         \
    case n:                                                                                                  \
        some_panels(g, col, n);                                                                              \
        break;
            PANELS_OF(1)
            PANELS_OF(2)
            PANELS_OF(3)
            PANELS_OF(4)
            PANELS_OF(5)
            PANELS_OF(6)
#ifdef WIDE_PANELS
            PANELS_OF(7)
            PANELS_OF(8)
#endif
#undef PANELS_OF
        default:
            break;
        }
    }
    finish_columns(g, cols);
}

static inline void one_row(const dq_gemm_block_f32 *g)
{
    if (g->b_panel == DQ_FPANEL || g->k == 0)
        flat(g);
    else
        panels(g);
}

#endif
