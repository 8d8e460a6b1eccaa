/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.QLinearConv16 where the processor adds four products of bytes at once (dq_gemm_bytesplit_s16s8):
 * 16-bit codes, as planes of quads of channels' lower and upper bytes, with 8-bit weights. */
#ifndef DQ_OPS_QCONV16_BYTESPLIT_H
#define DQ_OPS_QCONV16_BYTESPLIT_H

#include "ops/conv/input_band.h"

typedef struct dq_qconv16_bytesplit {
    dq_input_band b;
    size_t planes;                /* of a band */
    size_t quads, blocks, panels; /* of a row of weights; of a group */
    size_t chunk, chunks;         /* panels of a task */
    size_t gathered;              /* columns' groups that are gathered together */
    size_t sums_offset; /* of the packed form: of rows' sums; behind these, the largest sum of sizes */
    const void *packed;
    size_t band_at, offsets_at, gathered_at, sums_at; /* of a worker's scratch */
} dq_qconv16_bytesplit;

/** *c stood in zeroed memory. */
dq_status dq_qconv16_bytesplit_prepare(dq_op_call *call, const dq_conv_shape *s, dq_qconv16_bytesplit *c,
                                       dq_error *err);
void dq_qconv16_bytesplit_run(const dq_op_call *call, const dq_conv_shape *s, const dq_qconv16_bytesplit *c);

#endif
