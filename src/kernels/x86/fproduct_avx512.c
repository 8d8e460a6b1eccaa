/* Twelve rows of a vector each: the sums keep both multipliers busy. */
#include "kernels/kernels.h"
#include "kernels/x86/vec_avx512.h"

enum { MOST_ROWS = 12 };

#include "kernels/fproduct_tile.h"

void dq_fblock_avx512(const dq_fblock *g)
{
    if (g->rows == 1 && g->b_panel == DQ_FPANEL)
        dq_fblock_avx2(g); /* memory sets the pace */
    else
        tile_block(g);
}
