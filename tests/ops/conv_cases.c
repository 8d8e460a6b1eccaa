/* SPDX-License-Identifier: Apache-2.0 */
#include "conv_cases.h"

#include <string.h>

void conv_attributes(ops_case *c, const ref_conv *g, uint64_t *state)
{
    int64_t *pads = dq_arena_alloc(&c->arena, 2 * REF_AXES * sizeof *pads, sizeof *pads), strides = 1;
    ck_assert_ptr_nonnull(pads);
    for (size_t i = 0; i < g->axes; i++)
        strides *= g->stride[i];
    ref_conv_pads(g, pads);
    ops_int(c, "group", g->group);
    if (!state || random_below(state, 2))
        ops_ints(c, "kernel_shape", g->axes, g->kernel);
    if (!state || strides > 1 || random_below(state, 2))
        ops_ints(c, "strides", g->axes, g->stride);
    ops_ints(c, "dilations", g->axes, g->dilation);
    if (g->auto_pad)
        ops_string(c, "auto_pad", g->auto_pad);
    if (!g->auto_pad || strcmp(g->auto_pad, "NOTSET") == 0)
        ops_ints(c, "pads", 2 * g->axes, pads);
}

dq_tensor *conv_in_x(ops_case *c, uint64_t *state, dq_dtype dtype, const ref_conv *g)
{
    int64_t dims[2 + REF_AXES];
    const size_t rank = ref_conv_dims(g, g->group * g->group_in, g->in, dims);
    return ops_in_random(c, state, dtype, rank, dims);
}

dq_tensor *conv_in_w(ops_case *c, uint64_t *state, dq_dtype dtype, const ref_conv *g)
{
    int64_t dims[2 + REF_AXES] = {g->group * g->group_out, g->group_in};
    memcpy(dims + 2, g->kernel, sizeof g->kernel);
    return ops_in_random(c, state, dtype, 2 + g->axes, dims);
}

size_t conv_channel_param(uint64_t *state, int64_t channels, int64_t *dim)
{
    const uint32_t kind = random_below(state, 3);
    *dim = kind == 1 ? 1 : channels;
    return kind == 0 ? 0 : 1;
}

void conv_want_shape(const ops_case *c, const ref_conv *g)
{
    int64_t dims[2 + REF_AXES];
    const size_t rank = ref_conv_dims(g, g->group * g->group_out, g->out, dims);
    char got[DQ_SHAPE_TEXT], expected[DQ_SHAPE_TEXT];
    ck_assert_str_eq(dq_shape_text(c->out[0]->rank, c->out[0]->dims, got),
                     dq_shape_text(rank, dims, expected));
}
