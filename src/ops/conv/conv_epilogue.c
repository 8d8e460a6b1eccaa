/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv/conv_epilogue.h"

#include "kernels/kernels.h"

void dq_conv_epilogue_sums(const dq_op_call *call, const dq_conv_floats *o, const dq_plane_sums *s,
                           const float *bias, bool only_function)
{
    const dq_conv_epilogue *to = o->finish;
    float *out = o->out + s->first;
    const dq_gemm_block_f32 rest = {.rows = s->rows, /* k is 0: epilogue only */
                                    .cols = s->cols,
                                    .c = out,
                                    .c_row = s->row_stride,
                                    .more = true,
                                    .last = true,
                                    .alpha = 1,
                                    .low = to->low,
                                    .high = to->high,
                                    .bias = bias,
                                    .z = o->z ? o->z + s->first : NULL,
                                    .z_row = s->row_stride,
                                    .gate = to->gate};
    if (!only_function)
        call->kernels->gemm_block_f32(&rest);
    for (size_t i = 0; i < s->rows && to->fn; i++)
        dq_conv_function(to, out + i * s->row_stride, s->cols);
}
