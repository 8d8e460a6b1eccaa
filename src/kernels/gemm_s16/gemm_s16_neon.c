/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit GEMM, GEMV and depthwise convolution with NEON, and requantization to 16 bits. */
#include "kernels/kernels.h"
#include "kernels/simd/vec_neon.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Adds eight products by lane `lane` of x to the sums of eight columns. */
#define MULTIPLY_LANE(sum, w, x, lane)                                                                       \
    do {                                                                                                     \
        (sum)[0] = vmlal_laneq_s16((sum)[0], vget_low_s16(w), x, lane);                                      \
        (sum)[1] = vmlal_high_laneq_s16((sum)[1], w, x, lane);                                               \
    } while (0)

/* smlal accumulates the two products of a pair in turn: uzp separates the pairs of B, and a vector holds the
 * pairs of all rows of A. */
void dq_gemm_s16_neon(const int16_t *a, size_t pairs, const int16_t *const b[DQ_GEMM_S16_BLOCKS],
                      const uint32_t *offsets, size_t blocks, int32_t *c)
{
    enum { ROWS = DQ_GEMM_S16_ROWS, LANES = 4 };
    for (size_t o = 0; o < blocks; o++) {
        int32x4_t sum[ROWS][2];
        for (int i = 0; i < ROWS; i++)
            sum[i][0] = sum[i][1] = vdupq_n_s32(0);
        for (size_t p = 0; p < pairs; p++) {
            const int16_t *z = b[o] + offsets[p];
            const int16x8_t z0 = vld1q_s16(z), z1 = vld1q_s16(z + 8), x = vld1q_s16(a + p * 2 * ROWS);
            const int16x8_t first = vuzp1q_s16(z0, z1), second = vuzp2q_s16(z0, z1);
            MULTIPLY_LANE(sum[0], first, x, 0);
            MULTIPLY_LANE(sum[1], first, x, 2);
            MULTIPLY_LANE(sum[2], first, x, 4);
            MULTIPLY_LANE(sum[3], first, x, 6);
            MULTIPLY_LANE(sum[0], second, x, 1);
            MULTIPLY_LANE(sum[1], second, x, 3);
            MULTIPLY_LANE(sum[2], second, x, 5);
            MULTIPLY_LANE(sum[3], second, x, 7);
        }
        for (int i = 0; i < ROWS; i++)
            for (int v = 0; v < 2; v++)
                vst1q_s32(c + i * DQ_GEMM_S16_COLS + (int)o * DQ_GEMM_S16_NR + v * LANES, sum[i][v]);
    }
}

INLINE int16x8_t pair_everywhere(const int16_t *x)
{
    int32_t both;
    memcpy(&both, x, sizeof both);
    return vreinterpretq_s16_s32(vdupq_n_s32(both));
}

void dq_gemv_s16s8_neon(const int16_t *x, size_t pairs, const int8_t *const b[DQ_GEMM_S16_BLOCKS], int32_t *c)
{
    enum { BLOCKS = DQ_GEMM_S16_BLOCKS };
    int32x4_t sum[BLOCKS][2];
    for (int o = 0; o < BLOCKS; o++)
        sum[o][0] = sum[o][1] = vdupq_n_s32(0);
    for (size_t p = 0; p < pairs; p++) {
        const int16x8_t both = pair_everywhere(x + 2 * p);
        for (int o = 0; o < BLOCKS; o++) {
            const int16x8_t z = vreinterpretq_s16_s8(vld1q_s8(b[o] + p * 2 * DQ_GEMM_S16_NR));
            const int16x8_t first = vshrq_n_s16(vshlq_n_s16(z, 8), 8), second = vshrq_n_s16(z, 8);
            MULTIPLY_LANE(sum[o], first, both, 0);
            MULTIPLY_LANE(sum[o], second, both, 1);
        }
    }
    for (int o = 0; o < BLOCKS; o++)
        for (int v = 0; v < 2; v++)
            vst1q_s32(c + o * DQ_GEMM_S16_NR + v * 4, sum[o][v]);
}

/* ---- Depthwise convolution ---------------------------------------------------------------------------- */

enum { LANES = 8, VECTORS = 2 };

INLINE void outputs(const int16_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps, int32_t init,
                    int vectors, int32_t *out)
{
    int32x4_t sum[VECTORS][2];
    for (int v = 0; v < vectors; v++)
        sum[v][0] = sum[v][1] = vdupq_n_s32(init);
    for (size_t t = 0; t < taps; t++) {
        const int16_t *z = x + offsets[t];
        const int16x8_t both = pair_everywhere(w + 2 * t);
        for (int v = 0; v < vectors; v++) {
            const int16x8_t first = vld1q_s16(z + v * LANES), second = vld1q_s16(z + v * LANES + 1);
            MULTIPLY_LANE(sum[v], first, both, 0);
            MULTIPLY_LANE(sum[v], second, both, 1);
        }
    }
    for (int v = 0; v < vectors; v++) {
        vst1q_s32(out + v * LANES, sum[v][0]);
        vst1q_s32(out + v * LANES + 4, sum[v][1]);
    }
}

/* The last vector of a row may write past the row's end into the next row, which is computed later. */
void dq_dwconv_rows_s16_neon(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                             const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out)
{
    const int32_t *end = out + rows * n;
    for (; rows > 0; rows--, x += step, out += n) {
        size_t j = 0;
        for (; j + VECTORS * LANES <= n; j += VECTORS * LANES)
            outputs(x + j, offsets, w, taps, init, VECTORS, out + j);
        for (; j < n && (size_t)(end - out) - j >= LANES; j += LANES)
            outputs(x + j, offsets, w, taps, init, 1, out + j);
        if (j < n) {
            int32_t rest[LANES];
            outputs(x + j, offsets, w, taps, init, 1, rest);
            memcpy(out + j, rest, (n - j) * sizeof *out);
        }
    }
}

/* ---- Requantization ----------------------------------------------------------------------------------- */

/* Constants of requantization to 16 bits, two sums at a time. As in requantize_neon.c, fmaxnm returns the
 * other operand if one is NaN. */
typedef struct q16_form {
    const dq_q16_sums *s;
    vd low, high;
    int32x2_t zero;
} q16_form;

/* Requantizes two sums. Updates `off`, the largest distance from a whole number. */
static inline int32x2_t two(const q16_form *f, size_t at, size_t extra, vd scale, vd shift, vd *off)
{
    vd v = vcvtq_f64_s64(vmovl_s32(vld1_s32(f->s->sums + at)));
    if (f->s->high)
        v = vd_add(v, vd_mul(vcvtq_f64_s64(vmovl_s32(vld1_s32(f->s->high + at))), vd_set(256)));
    if (f->s->extra)
        v = vd_add(v, vd_load(f->s->extra + extra));
    v = vd_add(vd_mul(v, scale), shift);
    v = vminnmq_f64(vmaxnmq_f64(v, f->low), f->high);
    *off = vmaxq_f64(*off, vabdq_f64(v, vrndnq_f64(v)));
    return vadd_s32(vmovn_s64(vcvtnq_s64_f64(v)), f->zero);
}

void dq_requantize_s64_neon(const dq_q16_sums *s, uint16_t *out)
{
    const q16_form f = {s, vd_set(s->lo - s->zero_point), vd_set(s->hi - s->zero_point),
                        vdup_n_s32(s->zero_point)};
    for (size_t i = 0; i < s->rows && s->cols > 0; i++) {
        const double *shift = s->shift + i * s->row_step, *scale = s->scale + i * s->row_step;
        vd o0 = vd_set(*shift), s0 = vd_set(*scale), o1 = o0, s1 = s0;
        size_t j = 0, at = i * s->stride, extra = i * s->extra_stride;
        uint16_t *to = out + i * s->out_stride;
        for (; j + 4 <= s->cols; j += 4) {
            if (s->col_step) {
                o0 = vd_load(shift + j);
                s0 = vd_load(scale + j);
                o1 = vd_load(shift + j + 2);
                s1 = vd_load(scale + j + 2);
            }
            vd off = vd_set(0);
            int32x4_t qvalues = vcombine_s32(two(&f, at + j, extra + j, s0, o0, &off),
                                             two(&f, at + j + 2, extra + j + 2, s1, o1, &off));
            vst1_u16(to + j, vmovn_u32(vreinterpretq_u32_s32(qvalues)));
            if (!(vmaxvq_f64(off) < 0.5 - s->error))
                dq_requantize_s64_part(s, i, j, 4, to + j);
        }
        dq_requantize_s64_part(s, i, j, s->cols - j, to + j);
    }
}
