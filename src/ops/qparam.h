/* SPDX-License-Identifier: Apache-2.0 */
/* Scales and zero points of matrix operands: one for all, or one for each row of the left operand, column of
 * the right one, each with its own values in every batch if it has batch axes. */
#ifndef DQ_OPS_QPARAM_H
#define DQ_OPS_QPARAM_H

#include "ops/matmul/matmul_shape.h"

typedef struct dq_qparam {
    uint32_t input;
    bool present;
    bool single;                 /* one element, or absent */
    size_t step;                 /* elements from one row (column) to the next */
    size_t strides[DQ_MAX_RANK]; /* elements over the product's batch axes */
} dq_qparam;

typedef enum dq_qparam_axis { DQ_QPARAM_ROWS, DQ_QPARAM_COLUMNS } dq_qparam_axis;

/** Resolves input `input` (may be left out) as a parameter of the rows or columns of input `operand`.
 * Accepted: one element in any shape; a vector of as many elements as there are rows (columns); the operand's
 * shape with 1 in place of its columns (rows), where any other axis may be 1, too, and leading ones be left
 * out. */
dq_status dq_qparam_resolve(const dq_op_call *call, uint32_t input, uint32_t operand, dq_qparam_axis axis,
                            const dq_matmul_shape *s, dq_qparam *out, dq_error *err);

/** Where the values of a batch begin, in elements. */
static inline size_t dq_qparam_offset(const dq_qparam *p, const dq_matmul_shape *s, size_t batch)
{
    return p->single ? 0 : dq_matmul_offset(s, batch, p->strides);
}

/** A zero point of 8-bit integer type; 0 when left out. */
static inline int32_t dq_qparam_int(const dq_op_call *call, const dq_qparam *p, size_t i)
{
    if (!p->present)
        return 0;
    const dq_tensor *t = call->in[p->input];
    return t->dtype == DQ_INT8 ? dq_data(t, int8_t)[i] : dq_data(t, uint8_t)[i];
}

/** A scale of any float type. */
static inline double dq_qparam_scale(const dq_op_call *call, const dq_qparam *p, size_t i)
{
    const dq_tensor *t = call->in[p->input];
    return t->dtype == DQ_FLOAT ? (double)dq_data(t, float)[i] : dq_tensor_get_double(t, i);
}

#endif
