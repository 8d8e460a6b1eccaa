/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: the parsed equation, and the operator as one contraction (einsum.c). einsum_pairs.c splits an
 * equation of many operands into a sequence of such contractions. */
#ifndef DQ_OPS_EINSUM_H
#define DQ_OPS_EINSUM_H

#include "ops/op.h"

enum {
    DQ_EINSUM_OPERANDS = 16,
    DQ_EINSUM_LABELS = 52 + DQ_MAX_RANK /* 52 letters, then the axes of the ellipsis */
};

/** A parsed equation, checked against the shapes of the inputs. */
typedef struct dq_einsum {
    const char *equation;
    int64_t dims[DQ_EINSUM_LABELS];  /* size of each label; -1: the equation does not use it */
    unsigned uses[DQ_EINSUM_LABELS]; /* how often the operands use each label */
    size_t rank[DQ_EINSUM_OPERANDS], labels[DQ_EINSUM_OPERANDS][DQ_MAX_RANK]; /* label of each operand axis */
    size_t ellipsis; /* axes of the longest ellipsis; they are the last labels, aligned at the end */
    size_t out_rank, out[DQ_EINSUM_LABELS]; /* labels of the result's axes */
} dq_einsum;

/** Parses the node's equation and checks it against the input shapes. DQ_BAD_MODEL if they do not fit. */
dq_status dq_einsum_read(const dq_op_call *call, dq_einsum *e, dq_error *err);

/** Multiply-adds of the operator, summed over its contractions; saturates at UINT64_MAX. */
uint64_t dq_einsum_products(const dq_op_call *call);

/** Infer, prepare and run of the operator as one contraction, which iterates over all labels at once. */
dq_status dq_einsum_infer(dq_op_call *call, dq_error *err);
dq_status dq_einsum_prepare(dq_op_call *call, dq_error *err);
dq_status dq_einsum_run(const dq_op_call *call, dq_error *err);

#endif
