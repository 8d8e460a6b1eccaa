/* SPDX-License-Identifier: Apache-2.0 */
/* What Einsum is made of: its equation, and one step of it (einsum.c). */
#ifndef DQ_OPS_EINSUM_H
#define DQ_OPS_EINSUM_H

#include "ops/op.h"

enum {
    DQ_EINSUM_OPERANDS = 16,
    DQ_EINSUM_LABELS = 52 + DQ_MAX_RANK /* letters, then axes of the ellipsis */
};

/** An equation that fits its inputs. */
typedef struct dq_einsum {
    const char *equation;
    int64_t dims[DQ_EINSUM_LABELS]; /* -1: not seen */
    unsigned uses[DQ_EINSUM_LABELS];
    size_t rank[DQ_EINSUM_OPERANDS], labels[DQ_EINSUM_OPERANDS][DQ_MAX_RANK]; /* of each operand's axes */
    size_t ellipsis; /* axes of it, aligned at its end */
    size_t out_rank, out[DQ_EINSUM_LABELS];
} dq_einsum;

dq_status dq_einsum_read(const dq_op_call *call, dq_einsum *e, dq_error *err);

/** Multiply-adds of the operator, contraction by contraction; UINT64_MAX where they are more. */
uint64_t dq_einsum_products(const dq_op_call *call);

/** The operator in one step, over the product of all letters. */
dq_status dq_einsum_infer(dq_op_call *call, dq_error *err);
dq_status dq_einsum_prepare(dq_op_call *call, dq_error *err);
dq_status dq_einsum_run(const dq_op_call *call, dq_error *err);

#endif
