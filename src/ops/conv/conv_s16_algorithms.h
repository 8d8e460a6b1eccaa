/* SPDX-License-Identifier: Apache-2.0 */
/* The table of 16-bit quantized convolutions (conv_s16.def), which are dqrun's operator QLinearConv16. */
#ifndef DQ_OPS_CONV_S16_ALGORITHMS_H
#define DQ_OPS_CONV_S16_ALGORITHMS_H

#include "ops/algorithm.h"
#include "ops/conv/conv_shape.h"

/** What an algorithm is chosen by. */
typedef struct dq_conv_s16_problem {
    const dq_conv_shape *shape;
    bool by_bytes; /* the sums may be those of the bytes of x (dq_q16_by_bytes) */
} dq_conv_s16_problem;

/* Of each row; prepare and run are qconv16.c's. */
#define DQ_ROW(name, summary)                                                                                \
    bool dq_conv_s16_##name##_is_applicable(const void *problem, dq_reason *reason);                         \
    dq_algorithm_work dq_conv_s16_##name##_work(const void *problem);
#include "ops/conv/conv_s16.def"
#undef DQ_ROW

/** Multiply-adds of the formula, output channels and pixels rounded up to multiples of these. */
double dq_conv_s16_macs(const dq_conv_shape *s, size_t channels, size_t pixels);

#endif
