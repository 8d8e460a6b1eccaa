/* SPDX-License-Identifier: Apache-2.0 */
/* The table of float convolutions (conv_f32.def). */
#ifndef DQ_OPS_CONV_F32_ALGORITHMS_H
#define DQ_OPS_CONV_F32_ALGORITHMS_H

#include "ops/algorithm.h"
#include "ops/conv/conv_shape.h"

/** What an algorithm is chosen by. */
typedef struct dq_conv_f32_problem {
    const dq_conv_shape *shape;
    bool floats;           /* x is of floats, or is converted to floats; else of doubles */
    bool float_weights;    /* the weights are stored as floats */
    bool constant_weights; /* … and constant, at least one element of them */
} dq_conv_f32_problem;

/* Of each row; prepare and run are conv.c's. */
#define DQ_ROW(name, result, summary)                                                                        \
    bool dq_conv_f32_##name##_is_applicable(const void *problem, dq_reason *reason);                         \
    dq_algorithm_work dq_conv_f32_##name##_work(const void *problem);
#include "ops/conv/conv_f32.def"
#undef DQ_ROW

/** Whether the problem is one of floats whose windows can be counted in 32 bits, as all rows but gemm_generic
 * want it. */
bool dq_conv_f32_is_countable(const dq_conv_f32_problem *p, dq_reason *reason);

/** Multiply-adds of the formula, output channels rounded up to a multiple of `columns`. */
double dq_conv_f32_macs(const dq_conv_shape *s, size_t columns);

#endif
