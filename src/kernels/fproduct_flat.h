/* dq_fblock_fn of one row of A and a plain B: rows of B go straight through memory, and nothing behind its
 * last column is read. Before this, a file does what fproduct_tile.h wants. */
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

static void flat(const dq_fblock *g)
{
    size_t p = 0;
    bool more = g->more;
    for (; p + FLAT_STEPS <= g->k; p += FLAT_STEPS, more = true)
        flat_steps(g, p, FLAT_STEPS, more);
    for (; p < g->k; p++, more = true)
        flat_steps(g, p, 1, more);
    dq_fblock rest = *g; /* no steps: what is left to do upon the sums */
    rest.k = 0;
    rest.more = more;
    if (g->last || !more)
        tile_block(&rest);
}

#endif
