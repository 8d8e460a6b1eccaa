/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax and ArgMin of one axis. */
#ifndef DQ_OPS_ARG_H
#define DQ_OPS_ARG_H

#include "kernels/kernels.h"
#include "ops/op.h"

typedef struct dq_arg {
    size_t n, inner; /* length of the axis, at least 1; its stride: the product of the axes after it */
    bool max, last;  /* maximum, else minimum; the last of equal extremes, else the first */
} dq_arg;

/** Writes results begin … end - 1 for `in`, of any numeric type: out[0] is result `begin`. The first NaN
 * counts as the extreme. */
void dq_arg_find(const dq_arg *s, const dq_kernels *kernels, const dq_tensor *in, size_t begin, size_t end,
                 int64_t *out);

#endif
