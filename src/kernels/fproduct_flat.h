/* dq_fblock_fn of one row of A, whose time is that of reading B: rows of a plain B go straight through
 * memory, and nothing behind its last column is read; panels do, two at once. Nothing is fetched ahead here:
 * that only gets into the way of what the processor fetches. Before this, a file does what fproduct_tile.h
 * wants.
 */
#ifndef DQ_KERNELS_FPRODUCT_FLAT_H
#define DQ_KERNELS_FPRODUCT_FLAT_H

#include "kernels/fproduct_tile.h"

#include <math.h>

enum { FLAT_STEPS = 8 };

/* `steps` rows of B on top of the sums: streams that go straight through memory. */
INLINE void flat_steps(const dq_fblock *g, size_t p, int steps, bool more)
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
static void flat_finish(const dq_fblock *g, size_t cols, bool more)
{
    dq_fblock rest = *g;
    rest.cols = cols;
    rest.k = 0;
    rest.more = more;
    if (g->last || !more)
        tile_block(&rest);
}

static void flat(const dq_fblock *g)
{
    size_t p = 0;
    bool more = g->more;
    for (; p + FLAT_STEPS <= g->k; p += FLAT_STEPS, more = true)
        flat_steps(g, p, FLAT_STEPS, more);
    for (; p < g->k; p++, more = true)
        flat_steps(g, p, 1, more);
    flat_finish(g, g->cols, more);
}

static void two_panels(const dq_fblock *g, size_t col)
{
    const float *b = g->b + col / DQ_FPANEL * g->b_panel;
    vf sum[2][VECTORS];
    for (size_t v = 0; v < 2 * VECTORS; v++)
        sum[v / VECTORS][v % VECTORS] = g->more ? vf_load(g->c + col + v * VF_LANES) : vf_set(0);
    for (size_t p = 0; p < g->k; p++, b += g->b_step) {
        vf x = vf_set(g->a[p]);
        for (size_t v = 0; v < VECTORS; v++) {
            sum[0][v] = vf_fma(x, vf_load(b + v * VF_LANES), sum[0][v]);
            sum[1][v] = vf_fma(x, vf_load(b + g->b_panel + v * VF_LANES), sum[1][v]);
        }
    }
    for (size_t v = 0; v < 2 * VECTORS; v++)
        vf_store(g->c + col + v * VF_LANES, sum[v / VECTORS][v % VECTORS]);
}

static void panels(const dq_fblock *g)
{
    enum { COLS = 2 * DQ_FPANEL };
    size_t cols = g->cols / COLS * COLS;
    for (size_t col = 0; col < cols; col += COLS)
        two_panels(g, col);
    flat_finish(g, cols, true);
    dq_fblock left = *g;
    left.cols -= cols;
    left.b += cols / DQ_FPANEL * g->b_panel;
    left.c += cols;
    left.z = g->z ? g->z + cols : NULL;
    if (left.cols)
        tile_block(&left);
}

static void one_row(const dq_fblock *g)
{
    if (g->b_panel == DQ_FPANEL || g->k == 0)
        flat(g);
    else
        panels(g);
}

#endif
