/* Six rows by two vectors: twelve sums keep both multipliers busy, and leave room for the operands. */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <math.h>

typedef __m256 vec;
enum { LANES = 8, MOST_ROWS = 6 };

static inline vec v_zero(void)
{
    return _mm256_setzero_ps();
}
static inline vec v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline void v_store(float *p, vec x)
{
    _mm256_storeu_ps(p, x);
}
static inline vec v_set(float x)
{
    return _mm256_set1_ps(x);
}
static inline vec v_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline vec v_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}
static inline vec v_mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}
/* The second operand is the result where the two are equal or one is NaN. */
static inline vec v_low(vec low, vec x)
{
    return _mm256_max_ps(low, x);
}
static inline vec v_high(vec high, vec x)
{
    return _mm256_min_ps(high, x);
}

#include "kernels/fproduct_tile.h"

/* ---- One row of A ------------------------------------------------------------------------------------ */

enum { FLAT_STEPS = 8 };

/* `steps` rows of B on top of the sums: streams that go straight through memory. */
INLINE void flat_steps(const dq_fblock *g, size_t p, int steps, bool more)
{
    const float *b = g->b + p * g->b_step;
    vec x[FLAT_STEPS];
    for (int u = 0; u < steps; u++)
        x[u] = v_set(g->a[p + (size_t)u]);
    size_t j = 0;
    for (; j + LANES <= g->cols; j += LANES) {
        vec sum = more ? v_load(g->c + j) : v_zero();
        for (int u = 0; u < steps; u++)
            sum = v_fma(x[u], v_load(b + (size_t)u * g->b_step + j), sum);
        v_store(g->c + j, sum);
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

void dq_fblock_avx2(const dq_fblock *g)
{
    if (g->rows == 1 && g->b_panel == DQ_FPANEL)
        flat(g);
    else
        tile_block(g);
}

/* ---- A times a vector -------------------------------------------------------------------------------- */

/* Eight steps of eight rows become eight vectors of a step each. */
INLINE void columns(const float *const row[LANES], size_t p, vec v[LANES])
{
    vec h[LANES], t[LANES];
    for (int i = 0; i < LANES / 2; i++) {
        const float *low = row[i] + p, *high = row[i + LANES / 2] + p;
        h[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
        h[i + LANES / 2] =
            _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low + 4)), _mm_loadu_ps(high + 4), 1);
    }
    for (int i = 0; i < LANES; i += 4) {
        t[i] = _mm256_unpacklo_ps(h[i], h[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(h[i], h[i + 1]);
        t[i + 2] = _mm256_unpacklo_ps(h[i + 2], h[i + 3]);
        t[i + 3] = _mm256_unpackhi_ps(h[i + 2], h[i + 3]);
        v[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        v[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        v[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        v[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
}

enum { GROUPS = 2 /* sums of eight rows that go on side by side */ };

/* `rows` of them, 1 … GROUPS * LANES; the last stands in for those that are missing. */
static void gemv_rows(const float *a, size_t a_row, size_t rows, size_t k, const float *x, float *y)
{
    const float *row[GROUPS][LANES];
    for (size_t i = 0; i < GROUPS * LANES; i++)
        row[i / LANES][i % LANES] = a + (i < rows ? i : rows - 1) * a_row;
    vec sum[GROUPS] = {v_zero(), v_zero()};
    size_t p = 0;
    for (; p + LANES <= k; p += LANES)
        for (int g = 0; g < GROUPS; g++) {
            vec v[LANES];
            columns(row[g], p, v);
            for (int u = 0; u < LANES; u++)
                sum[g] = v_fma(v[u], v_set(x[p + (size_t)u]), sum[g]);
        }
    float out[GROUPS * LANES];
    for (int g = 0; g < GROUPS; g++)
        v_store(out + g * LANES, sum[g]);
    for (size_t i = 0; i < rows; i++) {
        for (size_t q = p; q < k; q++)
            out[i] = fmaf(a[i * a_row + q], x[q], out[i]);
        y[i] = out[i];
    }
}

void dq_fgemv_avx2(const float *a, size_t a_row, size_t rows, size_t k, const float *x, float *y)
{
    enum { MOST = GROUPS * LANES };
    for (size_t i = 0; i < rows; i += MOST)
        gemv_rows(a + i * a_row, a_row, rows - i < MOST ? rows - i : MOST, k, x, y + i);
}
