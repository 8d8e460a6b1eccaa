/* SPDX-License-Identifier: Apache-2.0 */
/* Template: the members of dq_winograd_f32. Included once per ISA level, after its vec_<isa>.h; the including
 * file fills its record with FWINOGRAD. */
#include "kernels/gemm_f32/gemm_f32.h"
#include "kernels/winograd/winograd_f32.h"

enum { FW_SIDE = 4, FW_KERNEL = 3, FW_TAPS = FW_KERNEL * FW_KERNEL };

/* Multiply by B, G or A, in place: the operands are values with stride `step`. */
static inline void fw_b(vf *d, int step)
{
    vf d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];
    d[0] = vf_sub(d0, d2);
    d[step] = vf_add(d1, d2);
    d[2 * step] = vf_sub(d2, d1);
    d[3 * step] = vf_sub(d1, d3);
}

static inline void fw_g(vf *g, int step)
{
    const vf half = vf_set(0.5f), sum = vf_add(g[0], g[2 * step]), middle = g[step];
    g[3 * step] = g[2 * step];
    g[step] = vf_mul(vf_add(sum, middle), half);
    g[2 * step] = vf_mul(vf_sub(sum, middle), half);
}

static inline void fw_a(vf *m, int step)
{
    vf m1 = m[step], m2 = m[2 * step];
    m[0] = vf_add(vf_add(m[0], m1), m2);
    m[step] = vf_sub(vf_sub(m1, m2), m[3 * step]);
}

static void fw_input(const float *const d[DQ_FWINOGRAD_POINTS], size_t channels, float *v, size_t point)
{
    for (size_t c = 0; c < channels; c += VF_LANES) {
        vf t[DQ_FWINOGRAD_POINTS];
        for (int k = 0; k < FW_SIDE; k++) {
            for (int i = k; i < DQ_FWINOGRAD_POINTS; i += FW_SIDE)
                t[i] = vf_load(d[i] + c);
            fw_b(t + k, FW_SIDE);
        }
        for (int k = 0; k < DQ_FWINOGRAD_POINTS; k++) {
            if (k % FW_SIDE == 0)
                fw_b(t + k, 1);
            vf_store(v + (size_t)k * point + c, t[k]);
        }
    }
}

static void fw_weights(const float *g, size_t channels, float *u, size_t point)
{
    for (size_t c = 0; c < channels * DQ_FWINOGRAD_STEP; c += VF_LANES) {
        const float *from = g + c / DQ_FWINOGRAD_STEP * FW_TAPS * DQ_FWINOGRAD_STEP + c % DQ_FWINOGRAD_STEP;
        vf t[DQ_FWINOGRAD_POINTS];
        for (int k = 0; k < FW_KERNEL; k++) {
            for (int i = 0; i < FW_KERNEL; i++)
                t[i * FW_SIDE + k] = vf_load(from + (i * FW_KERNEL + k) * DQ_FWINOGRAD_STEP);
            fw_g(t + k, FW_SIDE);
        }
        for (int k = 0; k < DQ_FWINOGRAD_POINTS; k++) {
            if (k % FW_SIDE == 0)
                fw_g(t + k, 1);
            vf_store(u + (size_t)k * point + c, t[k]);
        }
    }
}

static bool fw_output(const float *m, size_t point, size_t channels, const float *bias, float low, float high,
                      float *const y[4])
{
    const vf least = vf_set(low), most = vf_set(high), zero = vf_set(0.0f);
    vf odd = zero; /* NaN if a result is not finite */
    for (size_t j = 0; j < channels; j += VF_LANES) {
        const vf add = vf_load(bias + j);
        vf t[DQ_FWINOGRAD_POINTS];
        for (int k = 0; k < FW_SIDE; k++) {
            for (int i = k; i < DQ_FWINOGRAD_POINTS; i += FW_SIDE)
                t[i] = vf_load(m + (size_t)i * point + j);
            fw_a(t + k, FW_SIDE);
        }
        for (int k = 0; k < 4; k++) {
            if (k % 2 == 0)
                fw_a(t + k / 2 * FW_SIDE, 1);
            vf x = vf_add(t[k / 2 * FW_SIDE + k % 2], add);
            odd = vf_add(odd, vf_mul(x, zero));
            x = vf_pick(vf_less(x, least), least, x);
            vf_store(y[k] + j, vf_pick(vf_less(most, x), most, x));
        }
    }
    return vm_all(vf_less(odd, vf_set(1.0f)));
}

static void fw_line(const float *x, size_t x_row, size_t panels, size_t taps, float *const v[4], size_t panel)
{
    for (size_t i = 0, at = 0; i < panels * DQ_GEMM_F32_NR; i += DQ_GEMM_F32_NR, at += panel)
        for (size_t j = 0; j < DQ_GEMM_F32_NR; j += VF_LANES) {
            const float *from = x + i + j;
            vf t[FW_SIDE] = {vf_load(from), vf_load(from + x_row), vf_load(from + 2 * x_row)};
            if (taps == FW_KERNEL) {
                t[3] = vf_load(from + 3 * x_row);
                fw_b(t, 1);
                vf_store(v[2] + at + j, t[2]);
            } else {
                t[3] = vf_sub(t[1], t[2]);
                t[0] = vf_sub(t[0], t[1]);
            }
            vf_store(v[0] + at + j, t[0]);
            vf_store(v[1] + at + j, t[1]);
            vf_store(v[3] + at + j, t[3]);
        }
}

static bool fw_line_output(const float *m, size_t point, size_t n, float bias, float low, float high,
                           float *y)
{
    const vf least = vf_set(low), most = vf_set(high), zero = vf_set(0.0f), add = vf_set(bias);
    vf odd = zero; /* as above */
    for (size_t i = 0; i < n; i += VF_LANES) {
        vf t[FW_SIDE];
        for (size_t p = 0; p < FW_SIDE; p++)
            t[p] = vf_load(m + p * point + i);
        fw_a(t, 1);
        for (size_t k = 0; k < 2; k++) {
            vf x = vf_add(t[k], add);
            odd = vf_add(odd, vf_mul(x, zero));
            x = vf_pick(vf_less(x, least), least, x);
            vf_store(y + k * n + i, vf_pick(vf_less(most, x), most, x));
        }
    }
    return vm_all(vf_less(odd, vf_set(1.0f)));
}

#define FWINOGRAD                                                                                            \
    {                                                                                                        \
        .input = fw_input, .weights = fw_weights, .output = fw_output, .line = fw_line,                      \
        .line_output = fw_line_output                                                                        \
    }
