/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/window.h"

#include "base/checked.h"

#include <inttypes.h>
#include <string.h>

/* Reads a list attribute with a value of at least `least` for each of `count` axes. If it is omitted, all
 * values are `absent`. */
static dq_status read_list(const dq_op_call *call, const char *name, size_t count, int64_t least,
                           int64_t absent, int64_t *out, dq_error *err)
{
    size_t value;
    const int64_t *values = dq_node_ints(call->node, name, &value);
    if (value && value != count)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute '%s' has %zu values, expected %zu", name,
                            value, count);
    for (size_t i = 0; i < count; i++) {
        out[i] = value ? values[i] : absent;
        if (out[i] < least)
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "attribute '%s' has %" PRId64 " at index %zu, expected %" PRId64 " or more",
                                name, out[i], i, least);
    }
    return DQ_OK;
}

static dq_status too_large(const dq_op_call *call, size_t axis, dq_error *err)
{
    return dq_call_fail(call, err, DQ_OUT_OF_MEMORY,
                        "the windows of spatial axis %zu span more elements than can be counted", axis);
}

/* Computes the padding for which the output is ceil(in / stride) long, half of it at each end. */
static bool pad_same(dq_window *w, size_t axis, bool upper)
{
    int64_t in = w->in[axis], stride = w->stride[axis], out = in / stride + (in % stride != 0), span;
    w->out[axis] = out;
    if (!dq_add_i64((out > 0 ? out - 1 : 0) * stride, dq_window_span(w, axis), &span))
        return false;
    int64_t pad = span > in ? span - in : 0;
    w->begin[axis] = upper ? pad / 2 : pad - pad / 2;
    w->end[axis] = pad - w->begin[axis];
    return true;
}

static dq_status length(const dq_op_call *call, uint32_t input, bool ceil_mode, dq_window *w, size_t axis,
                        dq_error *err)
{
    int64_t padded, in = w->in[axis], span = dq_window_span(w, axis), stride = w->stride[axis];
    if (!dq_add_i64(w->begin[axis], w->end[axis], &padded) || !dq_add_i64(padded, in, &padded) ||
        !dq_add_i64(padded, stride, &padded))
        return too_large(call, axis, err);
    padded -= stride;
    w->out[axis] = 0;
    if (padded < span && in != 0)
        return dq_call_fail_input(call, err, input,
                                  "has %" PRId64 " elements on spatial axis %zu, with padding %" PRId64
                                  ": fewer than the window's %" PRId64,
                                  in, axis, padded, span);
    if (padded < span)
        return DQ_OK;
    int64_t fitting = padded - span;
    w->out[axis] = fitting / stride + 1;
    if (ceil_mode && fitting % stride != 0 && w->out[axis] * stride < in + w->begin[axis])
        w->out[axis]++;
    return DQ_OK;
}

dq_status dq_window_infer(const dq_op_call *call, uint32_t input, bool ceil_mode, dq_window *w, dq_error *err)
{
    static const char *const modes[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    enum { NOTSET, VALID, SAME_UPPER, SAME_LOWER, MODES };
    const char *name = dq_node_string(call->node, "auto_pad", "NOTSET");
    int mode = NOTSET;
    while (mode < MODES && strcmp(name, modes[mode]) != 0)
        mode++;
    if (mode == MODES)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'auto_pad' is '%s', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID",
                            name);
    int64_t pads[2 * DQ_MAX_RANK] = {0};
    DQ_TRY(read_list(call, "strides", w->rank, 1, 1, w->stride, err));
    DQ_TRY(read_list(call, "dilations", w->rank, 1, 1, w->dilation, err));
    if (mode == NOTSET)
        DQ_TRY(read_list(call, "pads", 2 * w->rank, 0, 0, pads, err));
    for (size_t i = 0; i < w->rank; i++) {
        int64_t span;
        if (!dq_mul_i64(w->kernel[i] - 1, w->dilation[i], &span) || !dq_add_i64(span, 1, &span))
            return too_large(call, i, err);
        w->begin[i] = pads[i];
        w->end[i] = pads[w->rank + i];
        if (mode == NOTSET || mode == VALID)
            DQ_TRY(length(call, input, ceil_mode && mode == NOTSET, w, i, err));
        else if (!pad_same(w, i, mode == SAME_UPPER))
            return too_large(call, i, err);
    }
    return DQ_OK;
}

size_t dq_window_overlap(int64_t origin, int64_t kernel, int64_t step, int64_t low, int64_t high,
                         int64_t *first)
{
    if (origin >= low && (kernel - 1) * step < high - origin) {
        *first = origin;
        return (size_t)kernel;
    }
    int64_t skipped = origin < low ? (low - origin - 1) / step + 1 : 0;
    *first = origin + skipped * step;
    if (*first >= high || skipped >= kernel)
        return 0;
    int64_t left = kernel - skipped, fitting = (high - *first - 1) / step + 1;
    return (size_t)(left < fitting ? left : fitting);
}
