/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool/exact_mean.h"

enum { LARGEST = 255 /* magnitude of a quantized value minus its zero point */ };

dq_status dq_exact_mean_prepare(const dq_op_call *call, const dq_q8 *x, const dq_q8 *y, const bool *occurs,
                                size_t most, dq_exact_mean *mean, dq_error *err)
{
    dq_ratio *ratios = DQ_NEW_ARRAY(call->arena, most + 1, dq_ratio);
    float *multipliers = DQ_NEW_ARRAY(call->arena, most + 1, float);
    bool *has_float = DQ_NEW_ARRAY(call->arena, most + 1, bool);
    if (!ratios || !multipliers || !has_float)
        return dq_no_memory(err, (most + 1) * sizeof *ratios, "the ratios of means");
    *mean = (dq_exact_mean){ratios, multipliers, has_float, true};
    multipliers[0] = NAN;
    has_float[0] = true;
    for (size_t count = 1; count <= most; count++) {
        if (!occurs[count])
            continue;
        ratios[count] = dq_ratio_make((double)x->scale, (double)y->scale * (double)count);
        has_float[count] =
            dq_ratio_multiplier(&ratios[count], y, LARGEST * (int32_t)count, &multipliers[count]);
        mean->all_floats = mean->all_floats && has_float[count];
    }
    return DQ_OK;
}

void dq_exact_mean_apply(const dq_exact_mean *mean, size_t count, float *sums, size_t n)
{
    const float multiplier = mean->multipliers[count];
    if (mean->has_float[count])
        for (size_t i = 0; i < n; i++)
            sums[i] *= multiplier;
    else
        for (size_t i = 0; i < n; i++)
            sums[i] = (float)dq_ratio_round(&mean->ratios[count], (double)sums[i]);
}
