/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.QLinearMatMul16 by products of bytes, where the processor adds four of them at once: x of 16 bits is
 * two rows of bytes, its codes' lower and upper halves, which meet 8-bit weights that are packed once:
 *
 *   x less the middle of its type = lower + 256 · upper - 32768                                         */
#ifndef DQ_OPS_QMATMUL16_BYTESPLIT_H
#define DQ_OPS_QMATMUL16_BYTESPLIT_H

#include "ops/matmul/qproduct.h"

typedef struct dq_qmatmul16_bytesplit {
    dq_qproduct p;
    size_t rows;
    size_t qvalues_at, terms_at; /* of the scratch */
} dq_qmatmul16_bytesplit;

/** Of one matrix of k × n weights (`transposed`: n × k) and `rows` rows; *b stood in zeroed memory. */
dq_status dq_qmatmul16_bytesplit_prepare(dq_op_call *call, size_t rows, size_t k, size_t n, bool transposed,
                                         dq_qmatmul16_bytesplit *b, dq_error *err);
void dq_qmatmul16_bytesplit_run(const dq_op_call *call, const dq_qmatmul16_bytesplit *b);

#endif
