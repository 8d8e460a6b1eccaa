/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithm table of float convolutions (conv_f32.def). */
#ifndef DQ_OPS_CONV_F32_ALGORITHMS_H
#define DQ_OPS_CONV_F32_ALGORITHMS_H

#include "ops/algorithm.h"
#include "ops/conv/conv_shape.h"

/** The problem that the rows' is_applicable and work read. */
typedef struct dq_conv_f32_problem {
    const dq_conv_shape *shape;
    bool floats;           /* x is float, or half precision converted to float; else double */
    bool float_weights;    /* the weights are stored as float */
    bool constant_weights; /* the weights are constant and not empty */
} dq_conv_f32_problem;

/* Functions of each row; its prepare and run are static in conv.c. */
#define DQ_ROW(name, result, summary)                                                                        \
    bool dq_conv_f32_##name##_is_applicable(const void *problem, dq_reason *reason);                         \
    dq_algorithm_work dq_conv_f32_##name##_work(const void *problem);
#include "ops/conv/conv_f32.def"
#undef DQ_ROW

/** True if x is float and offsets of windows fit in 32 bits; all rows but gemm_generic require it. */
bool dq_conv_f32_is_countable(const dq_conv_f32_problem *p, dq_reason *reason);

/** Multiply-adds of the direct formula, with output channels rounded up to a multiple of `columns`. */
double dq_conv_f32_macs(const dq_conv_shape *s, size_t columns);

#endif
