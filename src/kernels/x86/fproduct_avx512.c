/* Twelve rows of a vector each: the sums keep both multipliers busy. */
#include "kernels/kernels.h"

#include <immintrin.h>

typedef __m512 vec;
enum { LANES = 16, MOST_ROWS = 12 };

static inline vec v_zero(void)
{
    return _mm512_setzero_ps();
}
static inline vec v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline void v_store(float *p, vec x)
{
    _mm512_storeu_ps(p, x);
}
static inline vec v_set(float x)
{
    return _mm512_set1_ps(x);
}
static inline vec v_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}
static inline vec v_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}
static inline vec v_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}
/* The second operand is the result where the two are equal or one is NaN. */
static inline vec v_low(vec low, vec x)
{
    return _mm512_max_ps(low, x);
}
static inline vec v_high(vec high, vec x)
{
    return _mm512_min_ps(high, x);
}

#include "kernels/fproduct_tile.h"

void dq_fblock_avx512(const dq_fblock *g)
{
    if (g->rows == 1 && g->b_panel == DQ_FPANEL)
        dq_fblock_avx2(g); /* memory sets the pace */
    else
        tile_block(g);
}
