/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Implements dq_gemm_block_f32_fn for one row of A, bound by the
 * time to read B. Rows of a plain B are read sequentially, and nothing after its last column is read. Panels
 * are read sequentially, too, as many at a time as registers hold the accumulators of. There are no software
 * prefetches, because they only disturb the hardware prefetcher. The file of the ISA level defines before the
 * include the parameters of gemm_f32_tile.h and
 *   WIDE_PANELS           if a panel is one vector */
#ifndef DQ_KERNELS_GEMM_F32_FLAT_H
#define DQ_KERNELS_GEMM_F32_FLAT_H

#include "kernels/gemm_f32/gemm_f32_tile.h"

#include <math.h>

enum { FLAT_STEPS = 8 };

/* Adds `steps` rows of B to the sums in C. The rows are sequential streams from memory. */
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

/* Runs the epilogue of the first `cols` columns, by a block without steps. c holds their sums if `more`,
 * else these are 0. */
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
    EACH = DQ_GEMM_F32_NR / VF_LANES,    /* vectors of a panel */
    MAX_PANELS = VF_LANES == 16 ? 8 : 6, /* accumulators stay in registers and hide the FMA latency */
};

/* Runs the epilogue of the first `cols` columns, which are whole panels, and computes the other columns. */
static __attribute__((noinline)) void finish_columns(const dq_gemm_block_f32 *g, size_t cols)
{
    flat_finish(g, cols, true);
    dq_gemm_block_f32 left = *g;
    left.cols -= cols;
    left.b += cols / DQ_GEMM_F32_NR * g->b_panel;
    left.c += cols;
    left.z = g->z ? g->z + cols : NULL;
    if (left.cols)
        tile_block(&left);
}

/* Computes the columns of `count` panels, which is constant in each call. */
INLINE void some_panels(const dq_gemm_block_f32 *g, size_t col, int count)
{
    const float *b[MAX_PANELS];
    vf sum[MAX_PANELS][EACH];
    for (int i = 0; i < count; i++) {
        b[i] = g->b + (col / DQ_GEMM_F32_NR + (size_t)i) * g->b_panel;
        for (int v = 0; v < EACH; v++)
            sum[i][v] =
                g->more ? vf_load(g->c + col + (size_t)(i * DQ_GEMM_F32_NR + v * VF_LANES)) : vf_set(0);
    }
    for (size_t p = 0, at = 0; p < g->k; p++, at += g->b_step) {
        const vf x = vf_set(g->a[p]);
        for (int i = 0; i < count; i++)
            for (int v = 0; v < EACH; v++)
                sum[i][v] = vf_fma(x, vf_load(b[i] + at + v * VF_LANES), sum[i][v]);
    }
    for (int i = 0; i < count; i++)
        for (int v = 0; v < EACH; v++)
            vf_store(g->c + col + (size_t)(i * DQ_GEMM_F32_NR + v * VF_LANES), sum[i][v]);
}

/* Distributes panels evenly among passes, because few panels at a time are bound by FMA latency. Deep
 * panels are separate streams from memory, and two streams use its whole bandwidth. */
static void panels(const dq_gemm_block_f32 *g)
{
    enum { DEEP = 512 };
    const size_t whole = g->cols / DQ_GEMM_F32_NR, cols = whole * DQ_GEMM_F32_NR;
    const size_t most = g->k > DEEP ? 2 : MAX_PANELS;
    size_t parts = (whole + most - 1) / most;
    for (size_t col = 0, left = whole, count; left; left -= count, col += count * DQ_GEMM_F32_NR, parts--) {
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
    if (g->b_panel == DQ_GEMM_F32_NR || g->k == 0)
        flat(g);
    else
        panels(g);
}

#endif
