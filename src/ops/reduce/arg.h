/* SPDX-License-Identifier: Apache-2.0 */
/* Where along an axis the extreme stands. */
#ifndef DQ_OPS_ARG_H
#define DQ_OPS_ARG_H

#include "kernels/kernels.h"
#include "ops/op.h"

typedef struct dq_arg {
    size_t n, inner; /* length of the axis, at least 1; elements behind it, which is its stride */
    bool max, last;  /* the largest; of equals the last */
} dq_arg;

/** Results begin … end - 1 of `in`, numbers of any type. The first NaN counts as the extreme. */
void dq_arg_find(const dq_arg *s, const dq_kernels *kernels, const dq_tensor *in, size_t begin, size_t end,
                 int64_t *out);

#endif
