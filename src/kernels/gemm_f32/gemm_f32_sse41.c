/* SPDX-License-Identifier: Apache-2.0 */
/* Float GEMM without FMA instructions. In double a product is exact, and its sum with a float is rounded
 * once. Rounding that sum to float gives the same as rounding the exact sum, unless it is in the middle
 * between two floats, which its low bits show. Such steps are rare, and dq_fused_sse41 repeats them.
 *
 * This requires sums of 24 significant bits. A sum below 2^-125 has fewer, but it loses none if the operands
 * are large enough for their products to be multiples of 2^-149, as floats are: then the sum is exact. */
#include "kernels/kernels.h"
#include "kernels/requantize/fused_sse41.h"
#include "kernels/simd/vec_sse41.h"

#include "kernels/elementwise/hswish_f32_body.h"

#include <string.h>

enum {
    LANES = 4,
    VECTORS = DQ_GEMM_F32_NR / LANES,
    PAIRS = DQ_GEMM_F32_NR / 2,
    STEPS = 16 /* repeated at a time */
};

/* ---- Whether products are large enough ---------------------------------------------------------------- */

/* Minimum of `least` and the magnitudes of n floats, as bits without the sign, doubled, minus one: zeros
 * are the largest. */
static __m128i least_bits(__m128i least, const float *x, size_t n)
{
    const __m128i one = _mm_set1_epi32(1);
    for (; n >= LANES; n -= LANES, x += LANES) {
        __m128i bits = _mm_loadu_si128((const __m128i *)(const void *)x);
        least = _mm_min_epu32(least, _mm_sub_epi32(_mm_add_epi32(bits, bits), one));
    }
    for (; n > 0; n--, x++) {
        __m128i bits = _mm_castps_si128(_mm_set1_ps(*x));
        least = _mm_min_epu32(least, _mm_sub_epi32(_mm_add_epi32(bits, bits), one));
    }
    return least;
}

/* Exponent of the lowest significand bit of a float of this magnitude. */
static int last_bit(__m128i least)
{
    uint32_t lanes[LANES], low = UINT32_MAX;
    _mm_storeu_si128((__m128i *)(void *)lanes, least);
    for (int i = 0; i < LANES; i++)
        low = lanes[i] < low ? lanes[i] : low;
    int exponent = low == UINT32_MAX ? 255 : (int)((low + 1) >> 24);
    return (exponent > 1 ? exponent : 1) - 150;
}

static int last_bit_of(const float *x, size_t row, size_t rows, size_t n)
{
    __m128i least = _mm_set1_epi32(-1);
    for (size_t i = 0; i < rows; i++)
        least = least_bits(least, x + i * row, n);
    return last_bit(least);
}

/* ---- Steps of one row and a panel ---------------------------------------------------------------------- */

/* Adds k steps in double. Returns false if one of the sums was in the middle; then the sums are invalid. */
static bool steps_by_double(const float *a, const float *b, size_t b_step, size_t k,
                            float sums[DQ_GEMM_F32_NR])
{
    const __m128i mask = _mm_set1_epi64x(0x1fffffff), middle = _mm_set1_epi64x(-0xf0000000ll);
    __m128i found = _mm_setzero_si128();
    __m128d sum[PAIRS];
    for (int i = 0; i < PAIRS; i++)
        sum[i] =
            _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)(sums + 2 * i))));
    for (; k > 0; k--, a++, b += b_step) {
        const __m128d x = _mm_set1_pd((double)*a);
        for (int i = 0; i < PAIRS; i++) {
            __m128i w = _mm_loadl_epi64((const __m128i *)(const void *)(b + 2 * i));
            __m128d s = _mm_add_pd(_mm_mul_pd(x, _mm_cvtps_pd(_mm_castsi128_ps(w))), sum[i]);
            found = _mm_or_si128(found, _mm_cmpeq_epi32(_mm_and_si128(_mm_castpd_si128(s), mask), middle));
            sum[i] = _mm_cvtps_pd(_mm_cvtpd_ps(s));
        }
    }
    for (int i = 0; i < PAIRS; i++)
        _mm_storel_pi((__m64 *)(void *)(sums + 2 * i), _mm_cvtpd_ps(sum[i]));
    return _mm_movemask_epi8(found) == 0;
}

static void steps_fused(const float *a, const float *b, size_t b_step, size_t k, float sums[DQ_GEMM_F32_NR])
{
    __m128 sum[VECTORS];
    for (int v = 0; v < VECTORS; v++)
        sum[v] = _mm_loadu_ps(sums + v * LANES);
    for (; k > 0; k--, a++, b += b_step)
        for (int v = 0; v < VECTORS; v++)
            sum[v] = dq_fused_sse41(_mm_set1_ps(*a), _mm_loadu_ps(b + v * LANES), sum[v]);
    for (int v = 0; v < VECTORS; v++)
        _mm_storeu_ps(sums + v * LANES, sum[v]);
}

static void all_steps(const float *a, const float *b, size_t b_step, size_t k, bool large,
                      float sums[DQ_GEMM_F32_NR])
{
    if (!large) {
        steps_fused(a, b, b_step, k, sums);
        return;
    }
    for (size_t p = 0; p < k; p += STEPS) {
        size_t n = k - p < STEPS ? k - p : STEPS;
        float was[DQ_GEMM_F32_NR];
        memcpy(was, sums, sizeof was);
        if (steps_by_double(a + p, b + p * b_step, b_step, n, sums))
            continue;
        memcpy(sums, was, sizeof was);
        steps_fused(a + p, b + p * b_step, b_step, n, sums);
    }
}

/* ---- The block ----------------------------------------------------------------------------------------- */

/* maxps and minps give their second operand where the two are equal or one is NaN. */
static void finish(const dq_gemm_block_f32 *g, size_t i, const float *z, float sums[DQ_GEMM_F32_NR])
{
    for (int v = 0; v < VECTORS; v++) {
        __m128 x = _mm_loadu_ps(sums + v * LANES);
        if (g->alpha != 1)
            x = _mm_mul_ps(_mm_set1_ps(g->alpha), x);
        if (g->bias)
            x = _mm_add_ps(x, _mm_set1_ps(g->bias[i]));
        if (z)
            x = _mm_add_ps(x, _mm_loadu_ps(z + v * LANES));
        x = _mm_min_ps(_mm_set1_ps(g->high), _mm_max_ps(_mm_set1_ps(g->low), x));
        if (g->gate) {
            const hswish_f32 gate = hswish_f32_of(g->gate);
            x = hswish_f32_any(&gate, x);
        }
        _mm_storeu_ps(sums + v * LANES, x);
    }
}

static void panel(const dq_gemm_block_f32 *g, size_t col, size_t cols, const float *b, bool large)
{
    const size_t bytes = cols * sizeof(float);
    for (size_t i = 0; i < g->rows; i++) {
        float *c = g->c + i * g->c_row + col, sums[DQ_GEMM_F32_NR] = {0}, z[DQ_GEMM_F32_NR] = {0};
        if (g->more)
            memcpy(sums, c, bytes);
        if (g->k)
            all_steps(g->a + i * g->a_row, b, g->b_step, g->k, large, sums);
        if (g->last && g->z)
            memcpy(z, g->z + i * g->z_row + col, bytes);
        if (g->last)
            finish(g, i, g->z ? z : NULL, sums);
        memcpy(c, sums, bytes);
    }
}

void dq_gemm_block_f32_sse41(const dq_gemm_block_f32 *g)
{
    const int a_bit = g->k ? last_bit_of(g->a, g->a_row, g->rows, g->k) : 0;
    const bool open_end =
        g->rows == 1 && g->b_panel == DQ_GEMM_F32_NR; /* memory may end after the last column */
    size_t col = 0;
    for (; col < g->cols; col += DQ_GEMM_F32_NR) {
        size_t cols = g->cols - col < DQ_GEMM_F32_NR ? g->cols - col : DQ_GEMM_F32_NR;
        if (open_end && cols < DQ_GEMM_F32_NR)
            break;
        const float *b = g->k ? g->b + col / DQ_GEMM_F32_NR * g->b_panel : g->b;
        bool large = !g->k || a_bit + last_bit_of(b, g->b_step, g->k, DQ_GEMM_F32_NR) >= -149;
        panel(g, col, cols, b, large);
    }
    if (col < g->cols) {
        dq_gemm_block_f32 rest = *g;
        rest.cols -= col;
        rest.b = g->k ? g->b + col : g->b;
        rest.c += col;
        rest.z = g->z ? g->z + col : NULL;
        dq_gemm_block_f32_c(&rest);
    }
}

#define ISA(name) name##_sse41

#include "kernels/gemm_f32/fgemv_body.h"
