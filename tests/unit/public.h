/* SPDX-License-Identifier: Apache-2.0 */
/* What tests over the public header share. */
#ifndef DQ_TESTS_PUBLIC_H
#define DQ_TESTS_PUBLIC_H

#include "support/test_program.h"

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
    memcpy(dq_tensor_mutable_data(t), elements, dq_tensor_size(t));
    return t;
}

/** dq_builder_node with everything in a line. outs[i] NULL: set to the name that is generated. */
static inline dq_status add_node(dq_builder *b, const char *domain, const char *op, const char *name,
                                 size_t in_count, const char *const *ins, size_t out_count, const char **outs,
                                 size_t attribute_count, const dq_attribute *attributes, dq_error *why)
{
    const dq_node_spec spec = {.size = sizeof spec,
                               .domain = domain,
                               .op_type = op,
                               .name = name,
                               .input_count = in_count,
                               .inputs = ins,
                               .output_count = out_count,
                               .outputs = outs,
                               .attribute_count = attribute_count,
                               .attributes = attributes};
    const char *names[16];
    ck_assert_uint_le(out_count, sizeof names / sizeof *names);
    const dq_status status = dq_builder_node(b, &spec, names, why);
    for (size_t i = 0; status == DQ_OK && i < out_count; i++)
        if (!outs[i])
            outs[i] = names[i];
    return status;
}

#endif
