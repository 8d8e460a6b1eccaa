/* SPDX-License-Identifier: Apache-2.0 */
/* Scales and zero points of matrix operands: per tensor, per row of the left operand, or per column of the
 * right one. With batch axes, each batch has its own values. */
#ifndef DQ_OPS_QPARAM_H
#define DQ_OPS_QPARAM_H

#include "ops/matmul/matmul_shape.h"

typedef struct dq_qparam {
    uint32_t input;              /* index of the scale's or zero point's input */
    bool present;                /* false: the input is omitted */
    bool single;                 /* per tensor (one element), or absent */
    size_t step;                 /* elements from one row's (column's) value to the next */
    size_t strides[DQ_MAX_RANK]; /* elements along the product's batch axes */
} dq_qparam;

typedef enum dq_qparam_axis { DQ_QPARAM_ROWS, DQ_QPARAM_COLUMNS } dq_qparam_axis;

/** Resolves input `input` (may be omitted) as a parameter of the rows or columns of input `operand`.
 *
 * Accepted shapes: one element of any rank; a vector with an element for each row (column); the operand's
 * shape with 1 as its number of columns (rows). In the latter, other axes may also be 1, and leading axes may
 * be missing. */
dq_status dq_qparam_resolve(const dq_op_call *call, uint32_t input, uint32_t operand, dq_qparam_axis axis,
                            const dq_matmul_shape *s, dq_qparam *out, dq_error *err);

/** Offset of a batch's values, in elements. */
static inline size_t dq_qparam_offset(const dq_qparam *p, const dq_matmul_shape *s, size_t batch)
{
    return p->single ? 0 : dq_matmul_offset(s, batch, p->strides);
}

/** Value i of a zero point of an 8-bit integer type; 0 if it is omitted. */
static inline int32_t dq_qparam_int(const dq_op_call *call, const dq_qparam *p, size_t i)
{
    if (!p->present)
        return 0;
    const dq_tensor *t = call->in[p->input];
    return t->dtype == DQ_INT8 ? dq_data(t, int8_t)[i] : dq_data(t, uint8_t)[i];
}

/** Value i of a scale of any float type. */
static inline double dq_qparam_scale(const dq_op_call *call, const dq_qparam *p, size_t i)
{
    const dq_tensor *t = call->in[p->input];
    return t->dtype == DQ_FLOAT ? (double)dq_data(t, float)[i] : dq_tensor_get_double(t, i);
}

#endif
