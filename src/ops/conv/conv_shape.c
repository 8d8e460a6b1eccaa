/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv/conv_shape.h"

#include <inttypes.h>
#include <string.h>

static dq_status check_kernel(const dq_op_call *call, uint32_t w, const dq_tensor *tw, dq_error *err)
{
    size_t rank = tw->rank - 2, value;
    const int64_t *kernel = dq_node_ints(call->node, "kernel_shape", &value);
    if (value && value != rank)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'kernel_shape' has %zu values, expected %zu",
                            value, rank);
    for (size_t i = 0; i < rank; i++) {
        if (value && kernel[i] != tw->dims[2 + i])
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "attribute 'kernel_shape' has %" PRId64
                                " at index %zu, but the weights have %" PRId64,
                                kernel[i], i, tw->dims[2 + i]);
        if (tw->dims[2 + i] < 1)
            return dq_call_fail_input(call, err, w,
                                      "has an empty spatial axis %zu, expected 1 element or more", i);
    }
    return DQ_OK;
}

static dq_status check_channels(const dq_op_call *call, uint32_t x, uint32_t w, dq_conv_shape *s,
                                dq_error *err)
{
    const dq_tensor *tx = call->in[x], *tw = call->in[w];
    int64_t channels = tx->dims[s->x_last ? tx->rank - 1 : 1];
    int64_t group = dq_node_int(call->node, "group", 1);
    if (group < 1)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'group' is %" PRId64 ", expected 1 or more",
                            group);
    if (channels % group != 0 || channels / group != tw->dims[1])
        return dq_call_fail_input(call, err, x,
                                  "has %" PRId64 " channels, expected %" PRId64 " for each of %" PRId64
                                  " groups as the weights have",
                                  channels, tw->dims[1], group);
    if (tw->dims[0] % group != 0)
        return dq_call_fail_input(
            call, err, w, "has %" PRId64 " output channels, expected a multiple of the %" PRId64 " groups",
            tw->dims[0], group);
    s->batch = (size_t)tx->dims[0];
    s->group = (size_t)group;
    s->in_channels = (size_t)channels;
    s->out_channels = (size_t)tw->dims[0];
    s->group_in = (size_t)tw->dims[1];
    s->group_out = s->out_channels / s->group;
    return DQ_OK;
}

dq_status dq_conv_shape_infer(const dq_op_call *call, uint32_t x, uint32_t w, bool x_last, bool y_last,
                              dq_conv_shape *s, dq_error *err)
{
    const dq_tensor *tx = call->in[x], *tw = call->in[w];
    memset(s, 0, sizeof *s);
    s->x_last = x_last;
    s->y_last = y_last;
    if (tx->rank < 3)
        return dq_call_fail_input(
            call, err, x, "has %u axes, expected batch, channels and 1 or more spatial axes", tx->rank);
    if (tw->rank != tx->rank)
        return dq_call_fail_input(call, err, w, "has %u axes, expected %u as input %u has", tw->rank,
                                  tx->rank, x);
    DQ_TRY(check_channels(call, x, w, s, err));
    DQ_TRY(check_kernel(call, w, tw, err));
    s->rank = tx->rank;
    s->window.rank = s->rank - 2;
    size_t bytes = s->window.rank * sizeof(int64_t);
    memcpy(s->window.in, tx->dims + (x_last ? 1 : 2), bytes);
    memcpy(s->window.kernel, tw->dims + 2, bytes);
    DQ_TRY(dq_window_infer(call, x, false, &s->window, err));
    s->dims[0] = tx->dims[0];
    s->dims[y_last ? s->rank - 1 : 1] = tw->dims[0];
    memcpy(s->dims + (y_last ? 1 : 2), s->window.out, bytes);
    s->in_size = dq_dims_product(s->window.in, 0, s->window.rank);
    s->kernel_size = dq_dims_product(s->window.kernel, 0, s->window.rank);
    s->out_size = dq_dims_product(s->window.out, 0, s->window.rank);
    return DQ_OK;
}

bool dq_conv_pointwise(const dq_conv_shape *s)
{
    const dq_window *w = &s->window;
    bool pointwise = s->kernel_size == 1;
    for (size_t d = 0; d < w->rank; d++)
        pointwise = pointwise && w->stride[d] == 1 && w->begin[d] == 0 && w->out[d] == w->in[d];
    return pointwise;
}

bool dq_conv_is_3x3(const dq_conv_shape *s)
{
    const dq_window *w = &s->window;
    bool is_3x3 = w->rank == 2;
    for (size_t d = 0; d < w->rank; d++)
        is_3x3 = is_3x3 && w->kernel[d] == 3 && w->stride[d] == 1 && w->dilation[d] == 1;
    return is_3x3;
}

dq_status dq_conv_param_check(const dq_op_call *call, uint32_t i, bool per_channel, const dq_conv_shape *s,
                              dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    if (!t || t->count == 1 || (per_channel && t->rank == 1 && t->count == s->out_channels))
        return DQ_OK;
    if (!per_channel)
        return dq_call_fail_input(call, err, i, "has %zu elements, expected 1", t->count);
    return dq_call_fail_input(call, err, i, "has %zu elements, expected 1 or %zu (output channels)", t->count,
                              s->out_channels);
}

dq_status dq_conv_bias_check(const dq_op_call *call, uint32_t i, const dq_conv_shape *s, dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    if (!t || (t->rank == 1 && t->count == s->out_channels))
        return DQ_OK;
    char text[DQ_SHAPE_TEXT];
    return dq_call_fail_input(call, err, i, "has shape %s, expected [%zu] (output channels)",
                              dq_shape_text(t->rank, t->dims, text), s->out_channels);
}
