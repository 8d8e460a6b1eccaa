/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.QLinearConv16 with few output positions: squeeze-and-excite layers, streaming audio. Tiles of 8
 * output positions would be mostly empty; instead, each position is a GEMV of its window with the packed
 * 8-bit weights. */
#ifndef DQ_OPS_QCONV16_GEMV_H
#define DQ_OPS_QCONV16_GEMV_H

#include "ops/conv/conv_shape.h"
#include "ops/matmul/qgemm16_pack.h"

typedef struct dq_qconv16_gemv {
    dq_qgemm16 w;
    ptrdiff_t *offsets; /* by output position and kernel element: offset in a channel; -1: padding */
    size_t row;         /* int16 values of a window, rounded up to pairs */
} dq_qconv16_gemv;

dq_status dq_qconv16_gemv_prepare(dq_op_call *call, const dq_conv_shape *s, dq_qconv16_gemv *f,
                                  dq_error *err);
void dq_qconv16_gemv_run(const dq_op_call *call, const dq_conv_shape *s, const dq_qconv16_gemv *f);

#endif
