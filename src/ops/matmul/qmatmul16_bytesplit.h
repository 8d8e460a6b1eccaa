/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.QLinearMatMul16 with 16-bit x and weights of 8 or 16 bits as an 8-bit GEMM (byte split), for
 * processors with dot-product instructions. Each row of x becomes two rows of uint8: the low and the high
 * bytes of its quantized values, as uint16. The constant weights are packed once; those of 16 bits become two
 * columns of int8 each.
 *
 *   x - midpoint of its type = low + 256 · high - 32768
 *   weight - midpoint of its type = low + 256 · high + 128 */
#ifndef DQ_OPS_QMATMUL16_BYTESPLIT_H
#define DQ_OPS_QMATMUL16_BYTESPLIT_H

#include "ops/matmul/qproduct.h"

typedef struct dq_qmatmul16_bytesplit {
    dq_qproduct p;
    size_t rows, n;
    size_t band; /* rows of x that are split at a time, so that their bytes stay in a cache */
    bool split;  /* weights of 16 bits */
    /* Byte offsets in the scratch: a band of bytes; its row sums, if `split`; terms of the columns. */
    size_t qvalues_at, sums_at, terms_at;
} dq_qmatmul16_bytesplit;

/** Prepares the product of `rows` rows and one matrix of k × n weights (`transposed`: n × k). *b must be in
 * zeroed memory. */
dq_status dq_qmatmul16_bytesplit_prepare(dq_op_call *call, size_t rows, size_t k, size_t n, bool transposed,
                                         dq_qmatmul16_bytesplit *b, dq_error *err);
void dq_qmatmul16_bytesplit_run(const dq_op_call *call, const dq_qmatmul16_bytesplit *b);

#endif
