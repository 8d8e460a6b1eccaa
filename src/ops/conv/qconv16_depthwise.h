/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.QLinearConv16 with one input channel per group (depthwise): plane by plane, through rows of sums
 * (dq_dwconv_rows_s16_fn). */
#ifndef DQ_OPS_QCONV16_DEPTHWISE_H
#define DQ_OPS_QCONV16_DEPTHWISE_H

#include "ops/conv/input_band.h"

typedef struct dq_qconv16_depthwise {
    dq_input_band b;
    size_t pairs;             /* pairs of kernel elements */
    ptrdiff_t *offsets;       /* offset of each pair from its output's position */
    uint32_t *first, *second; /* the kernel elements of each pair; second is UINT32_MAX if there is none */
    bool joined; /* a band is computed as one row; the sums between its output rows are discarded */
    size_t plane_at, weights_at, sums_at, extra_at; /* offsets in the worker scratch */
} dq_qconv16_depthwise;

dq_status dq_qconv16_depthwise_prepare(dq_op_call *call, const dq_conv_shape *s, dq_qconv16_depthwise *d,
                                       dq_error *err);
void dq_qconv16_depthwise_run(const dq_op_call *call, const dq_conv_shape *s, const dq_qconv16_depthwise *d);

#endif
