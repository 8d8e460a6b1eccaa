/* SPDX-License-Identifier: Apache-2.0 */
/* What tests over the public header share. */
#ifndef DQ_TESTS_PUBLIC_H
#define DQ_TESTS_PUBLIC_H

#include "suite.h"

#include <dqrun/dqrun.h>

#include <string.h>

static dq_error err;

static inline void must(dq_status status)
{
    ck_assert_msg(status == DQ_OK, "%s", err.message);
}

/** A tensor of its own with a copy of these elements. */
static inline dq_tensor *tensor_of(dq_dtype dtype, size_t rank, const int64_t *dims, const void *elements)
{
    dq_tensor *t = NULL;
    must(dq_tensor_create(dtype, rank, dims, &t, &err));
    memcpy(dq_tensor_data(t), elements, dq_tensor_size(t));
    return t;
}

#endif
