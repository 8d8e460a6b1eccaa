/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool/q8_window.h"

#include "base/checked.h"

#include <inttypes.h>
#include <string.h>

/* Approximate multiply-adds or comparisons per task. */
enum { ELEMENTS_PER_TASK = 32768 };

/* ---- Shapes ------------------------------------------------------------------------------------------- */

static dq_status read_shape(const dq_op_call *call, bool channels_last, dq_q8_window *s,
                            int64_t dims[DQ_MAX_RANK], dq_error *err)
{
    const dq_tensor *x = call->in[0];
    memset(s, 0, sizeof *s);
    if (x->rank < 3)
        return dq_call_fail_input(
            call, err, 0, "has %u axes, expected batch, channels and 1 or more spatial axes", x->rank);
    size_t value, first = channels_last ? 1 : 2;
    dq_window *w = &s->window;
    w->rank = x->rank - 2;
    const int64_t *kernel = dq_node_ints(call->node, "kernel_shape", &value);
    if (value != w->rank)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'kernel_shape' has %zu values, expected %zu",
                            value, w->rank);
    for (size_t i = 0; i < w->rank; i++) {
        w->in[i] = x->dims[first + i];
        w->kernel[i] = kernel[i];
        if (kernel[i] < 1)
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "attribute 'kernel_shape' has %" PRId64 " at index %zu, expected 1 or more",
                                kernel[i], i);
    }
    DQ_TRY(dq_window_infer(call, 0, dq_node_int(call->node, "ceil_mode", 0) != 0, w, err));
    memcpy(dims, x->dims, sizeof x->dims);
    memcpy(dims + first, w->out, w->rank * sizeof *dims);
    s->inner = channels_last ? (size_t)x->dims[x->rank - 1] : 1;
    s->in_size = dq_dims_product(x->dims, first, first + w->rank);
    s->out_size = dq_dims_product(dims, first, first + w->rank);
    return DQ_OK;
}

dq_status dq_q8_window_infer(dq_op_call *call, bool channels_last, dq_error *err)
{
    dq_q8_window state;
    int64_t dims[DQ_MAX_RANK];
    DQ_TRY(read_shape(call, channels_last, &state, dims, err));
    return dq_call_output(call, 0, call->in[0]->dtype, call->in[0]->rank, dims, err);
}

dq_status dq_q8_window_prepare(dq_op_call *call, bool channels_last, size_t width, dq_q8_window *s,
                               dq_error *err)
{
    int64_t dims[DQ_MAX_RANK];
    DQ_TRY(read_shape(call, channels_last, s, dims, err));
    s->include_pad = dq_node_int(call->node, "count_include_pad", 0) != 0;
    s->kernel_size = 1;
    size_t stride = s->inner;
    for (size_t i = s->window.rank; i-- > 0;) {
        s->strides[i] = stride;
        stride *= (size_t)s->window.in[i];
        if (!dq_mul_size(s->kernel_size, (size_t)s->window.kernel[i], &s->kernel_size))
            return dq_call_fail(call, err, DQ_OUT_OF_MEMORY,
                                "the window has more elements than can be counted");
    }
    if (!dq_mul_size((size_t)s->window.out[s->window.rank - 1], s->inner, &s->line) ||
        !dq_mul_size(s->line, width, &call->worker_scratch_size))
        return dq_no_memory(err, SIZE_MAX, "a line of results");
    return DQ_OK;
}

/* ---- Windows ------------------------------------------------------------------------------------------ */

size_t dq_window_elements_along(const dq_window *w, size_t axis, size_t position, size_t *first)
{
    int64_t start = (int64_t)position * w->stride[axis] - w->begin[axis];
    int64_t step = w->dilation[axis], skipped = start < 0 ? (-start - 1) / step + 1 : 0;
    int64_t at = start + skipped * step;
    int64_t inside = at < w->in[axis] ? (w->in[axis] - at - 1) / step + 1 : 0;
    int64_t left = w->kernel[axis] - skipped;
    int64_t count = left < inside ? left : inside;
    *first = count > 0 ? (size_t)at : 0;
    return count > 0 ? (size_t)count : 0;
}

dq_window_elements dq_window_elements_at(const dq_q8_window *s, size_t rank, size_t position)
{
    const dq_window *w = &s->window;
    dq_window_elements c = {.rank = rank, .total = 1};
    for (size_t i = rank; i-- > 0; position /= (size_t)w->out[i]) {
        size_t first;
        c.count[i] = dq_window_elements_along(w, i, position % (size_t)w->out[i], &first);
        c.step[i] = (size_t)w->dilation[i] * s->strides[i];
        c.base += first * s->strides[i];
        c.total *= c.count[i];
    }
    return c;
}

void dq_window_next_element(const dq_window_elements *c, size_t index[DQ_MAX_RANK], size_t *at)
{
    for (size_t d = c->rank; d-- > 0;) {
        *at += c->step[d];
        if (++index[d] < c->count[d])
            return;
        *at -= c->count[d] * c->step[d];
        index[d] = 0;
    }
}

void dq_q8_window_run(const dq_op_call *call, const dq_q8_window *s, size_t items, dq_range_fn range,
                      void *job)
{
    const size_t count = call->out[0] ? call->out[0]->count : 0;
    if (count == 0)
        return;
    size_t work = s->kernel_size < ELEMENTS_PER_TASK && items < ELEMENTS_PER_TASK ? s->kernel_size * items
                                                                                  : ELEMENTS_PER_TASK;
    dq_parallel(call->threads, count / items, ELEMENTS_PER_TASK / work + 1, range, job);
}
