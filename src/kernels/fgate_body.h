/* dq_fgate over the vector that a vec_<isa>.h defines, whose minimum and maximum give their second operand
 * where the two are equal or one is NaN. Included behind that header. */
#ifndef DQ_KERNELS_FGATE_BODY_H
#define DQ_KERNELS_FGATE_BODY_H

#include "kernels/fproduct.h"

#include <math.h>

/* Numbers in vectors, which no store can change. */
typedef struct fgate {
    vf scale, shift, low, high, divisor, factor, term;
    bool divides, moves;
} fgate;

static inline fgate fgate_of(const dq_fgate *g)
{
    return (fgate){
        vf_set(g->scale), vf_set(g->shift),   vf_set(g->low),
        vf_set(g->high),  vf_set(g->divisor), vf_set(g->factor),
        vf_set(g->term),  g->divisor != 1,    g->factor != 1 || !(g->term == 0 && signbit(g->term))};
}

static inline vf fgate_product(const fgate *g, vf x)
{
    return vf_mul(x, vf_min(g->high, vf_max(g->low, vf_fma(x, g->scale, g->shift))));
}

static inline vf fgate_moved(const fgate *g, vf x)
{
    return vf_add(vf_mul(x, g->factor), g->term);
}

static inline vf fgate_any(const fgate *g, vf x)
{
    x = fgate_product(g, x);
    x = g->divides ? vf_div(x, g->divisor) : x;
    return g->moves ? fgate_moved(g, x) : x;
}

#endif
