/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.QLinearConv16 where each group has one input channel: plane by plane, by rows
 * (dq_dwconv_rows_s16_fn). */
#ifndef DQ_OPS_QCONV16_DEPTHWISE_H
#define DQ_OPS_QCONV16_DEPTHWISE_H

#include "ops/conv/input_band.h"

typedef struct dq_qconv16_depthwise {
    dq_input_band b;
    size_t pairs;
    ptrdiff_t *offsets;       /* of each pair of kernel elements from an output's place */
    uint32_t *first, *second; /* the elements; second UINT32_MAX: none */
    bool joined; /* the outputs of a band are one row, between whose parts stand sums that nothing wants */
    size_t plane_at, weights_at, sums_at, extra_at; /* of a worker's scratch */
} dq_qconv16_depthwise;

dq_status dq_qconv16_depthwise_prepare(dq_op_call *call, const dq_conv_shape *s, dq_qconv16_depthwise *d,
                                       dq_error *err);
void dq_qconv16_depthwise_run(const dq_op_call *call, const dq_conv_shape *s, const dq_qconv16_depthwise *d);

#endif
