/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.QLinearConv16 with few outputs a channel (one where a network weighs its channels, some in what runs
 * as sound comes in): octets of positions would be mostly empty, so that each position is a row that meets
 * the 8-bit weights as they are packed. */
#ifndef DQ_OPS_QCONV16_GEMV_H
#define DQ_OPS_QCONV16_GEMV_H

#include "ops/conv/conv_shape.h"
#include "ops/matmul/qgemm16_pack.h"

typedef struct dq_qconv16_gemv {
    dq_qgemm16 w;
    ptrdiff_t *offsets;   /* by output and kernel element: in the image of a channel; -1: padding */
    size_t chunk, chunks; /* panels of a task */
    size_t row;           /* int16 elements of an output's window */
} dq_qconv16_gemv;

dq_status dq_qconv16_gemv_prepare(dq_op_call *call, const dq_conv_shape *s, dq_qconv16_gemv *f,
                                  dq_error *err);
void dq_qconv16_gemv_run(const dq_op_call *call, const dq_conv_shape *s, const dq_qconv16_gemv *f);

#endif
