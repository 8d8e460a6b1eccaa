/* SPDX-License-Identifier: Apache-2.0 */
/* Template: dq_dequantize_acc_f32, dq_dequantize_columns_f32 and dq_subtract_scaled_s32 for rows of int32
 * accumulators. Included once per ISA level, after its vec_<isa>.h and ISA(name). The vector minimum and
 * maximum return the same operand as the portable code's comparisons. */
#include "kernels/kernels.h"

typedef struct finish {
    vf scale, bias, low, high;
} finish;

static inline vf finished(const finish *f, const float *y)
{
    return vf_add(vf_mul(vi_to_float(vf_bits(vf_load(y))), f->scale), f->bias);
}

static inline void put(const finish *f, float *y, vf v)
{
    vf_store(y, vf_min(f->high, vf_max(f->low, v)));
}

void ISA(dq_dequantize_acc_f32)(float *y, size_t n, float scale, float bias, const float *z, float low,
                                float high)
{
    const finish f = {vf_set(scale), vf_set(bias), vf_set(low), vf_set(high)};
    size_t i = 0;
    if (z)
        for (; i + VF_LANES <= n; i += VF_LANES)
            put(&f, y + i, vf_add(finished(&f, y + i), vf_load(z + i)));
    else
        for (; i + VF_LANES <= n; i += VF_LANES)
            put(&f, y + i, finished(&f, y + i));
    dq_dequantize_acc_f32_c(y + i, n - i, scale, bias, z ? z + i : NULL, low, high);
}

void ISA(dq_dequantize_columns_f32)(const int32_t *c, size_t n, const float *factors, const float *bias,
                                    float *y)
{
    size_t j = 0;
    if (bias)
        for (; j + VF_LANES <= n; j += VF_LANES)
            vf_store(y + j,
                     vf_add(vf_mul(vi_to_float(vi_load(c + j)), vf_load(factors + j)), vf_load(bias + j)));
    else
        for (; j + VF_LANES <= n; j += VF_LANES)
            vf_store(y + j, vf_mul(vi_to_float(vi_load(c + j)), vf_load(factors + j)));
    dq_dequantize_columns_f32_c(c + j, n - j, factors + j, bias ? bias + j : NULL, y + j);
}

void ISA(dq_subtract_scaled_s32)(int32_t *c, size_t n, int32_t factor, const int32_t *v)
{
    size_t i = 0;
    vi f = vi_set(factor);
    for (; i + VF_LANES <= n; i += VF_LANES)
        vi_store(c + i, vi_sub(vi_load(c + i), vi_mul(vi_load(v + i), f)));
    dq_subtract_scaled_s32_c(c + i, n - i, factor, v + i);
}
