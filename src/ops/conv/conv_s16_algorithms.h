/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithm table of 16-bit quantized convolutions (conv_s16.def): operator dqrun.QLinearConv16. */
#ifndef DQ_OPS_CONV_S16_ALGORITHMS_H
#define DQ_OPS_CONV_S16_ALGORITHMS_H

#include "ops/algorithm.h"
#include "ops/conv/conv_shape.h"

/** The problem that the rows' is_applicable and work read. */
typedef struct dq_conv_s16_problem {
    const dq_conv_shape *shape;
    bool can_bytesplit; /* x may be split into bytes for 8-bit dot products (dq_q16_can_bytesplit) */
} dq_conv_s16_problem;

/* Functions of each row; its prepare and run are static in qconv16.c. */
#define DQ_ROW(name, summary)                                                                                \
    bool dq_conv_s16_##name##_is_applicable(const void *problem, dq_reason *reason);                         \
    dq_algorithm_work dq_conv_s16_##name##_work(const void *problem);
#include "ops/conv/conv_s16.def"
#undef DQ_ROW

/** Multiply-adds of the direct formula, with output channels and output pixels rounded up to multiples of
 * `channels` and `pixels`. */
double dq_conv_s16_macs(const dq_conv_shape *s, size_t channels, size_t pixels);

#endif
