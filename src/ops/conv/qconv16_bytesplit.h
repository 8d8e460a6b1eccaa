/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.QLinearConv16 with 8-bit weights by 8-bit dot-product instructions (dq_gemm_bytesplit_s16s8). The
 * 16-bit values of x are split into planes of low bytes and of high bytes, in groups of four channels
 * (quads). */
#ifndef DQ_OPS_QCONV16_BYTESPLIT_H
#define DQ_OPS_QCONV16_BYTESPLIT_H

#include "ops/conv/input_band.h"

typedef struct dq_qconv16_bytesplit {
    dq_input_band b;
    bool pointwise;               /* dq_conv_pointwise: columns are packed from x itself, without a band */
    size_t planes;                /* planes of a band: two for each quad of channels */
    size_t quads, blocks, panels; /* quads and blocks of a weight row; panels of a group */
    size_t gathered;              /* column tiles gathered at a time */
    size_t sums_offset; /* in the packed weights: row sums, then the largest sum of a row's absolute values */
    const void *packed;
    size_t band_at, offsets_at, gathered_at, sums_at; /* offsets in the worker scratch */
} dq_qconv16_bytesplit;

/** Called in prepare; *c must have been in zeroed memory. */
dq_status dq_qconv16_bytesplit_prepare(dq_op_call *call, const dq_conv_shape *s, dq_qconv16_bytesplit *c,
                                       dq_error *err);
void dq_qconv16_bytesplit_run(const dq_op_call *call, const dq_conv_shape *s, const dq_qconv16_bytesplit *c);

#endif
