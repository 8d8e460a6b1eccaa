/* Six rows by four vectors: 24 of 32 registers hold sums, five the operands. */
#include "kernels/arm/vec_neon.h"
#include "kernels/kernels.h"

enum { MOST_ROWS = 6 };

#include "kernels/fproduct_flat.h"

void dq_fblock_neon(const dq_fblock *g)
{
    if (g->rows == 1)
        one_row(g);
    else
        tile_block(g);
}

#define ISA(name) name##_neon

#include "kernels/fgemv_body.h"
