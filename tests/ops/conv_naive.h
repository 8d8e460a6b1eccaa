/* SPDX-License-Identifier: Apache-2.0 */
/* Random convolutions for tests, and the formula written out: one element at a time, in 64-bit integers. */
#ifndef DQ_TESTS_OPS_CONV_NAIVE_H
#define DQ_TESTS_OPS_CONV_NAIVE_H

#include "matmul_naive.h"

enum { NAIVE_AXES = 3 };

typedef struct naive_geometry {
    size_t axes;
    int64_t batch, group, group_in, group_out;
    int64_t in[NAIVE_AXES], kernel[NAIVE_AXES], stride[NAIVE_AXES], dilation[NAIVE_AXES],
        pads[2 * NAIVE_AXES], out[NAIVE_AXES];
    const char *auto_pad; /* NULL: none */
    bool last;            /* x and y have channels last */
} naive_geometry;

naive_geometry naive_random_geometry(uint64_t *state);
/** Output lengths, and what auto_pad makes of pads. False when a window is longer than an axis. */
bool naive_finish(naive_geometry *g);
/** Elements that a window spans along axis i. */
int64_t naive_span(const naive_geometry *g, size_t i);
size_t naive_product(const int64_t *dims, size_t n);

/** Element `i` of a result: its output position, channel and image. */
void naive_conv_place(const naive_geometry *g, size_t i, size_t *p, size_t *channel, size_t *image);
/** The zero point of a channel; one that is left out (NULL) is 0. */
int64_t naive_zero(const dq_tensor *zero, size_t channel);
/** sum (x - x_zero)(w - w_zero) of the result's element number i; zero points may be NULL. */
int64_t naive_conv_sum(const naive_geometry *g, const dq_tensor *x, const dq_tensor *x_zero,
                       const dq_tensor *w, const dq_tensor *w_zero, size_t i);

#endif
