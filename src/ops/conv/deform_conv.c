/* SPDX-License-Identifier: Apache-2.0 */
/* DeformConv over two spatial axes. Every kernel element reads the image at a position shifted by an offset,
 * with bilinear interpolation (zeros outside the image), times a mask. Sums are in double, in row-major
 * order, and rounded once. */
#include "base/checked.h"
#include "ops/lists.h"

#include <inttypes.h>
#include <math.h>

enum { X, W, OFFSET, B, MASK };

typedef struct state {
    size_t batch, in, out, groups, offset_groups, taps;
    int64_t size[2], kernel[2], result[2], stride[2], dilation[2], begin[2];
} state;

static dq_status read_list(const dq_op_call *call, const char *name, size_t count, int64_t least,
                           int64_t absent, int64_t *to, dq_error *err)
{
    dq_list list;
    DQ_TRY(dq_list_from_attr(call, name, &list, err));
    for (size_t d = 0; d < count; d++) {
        to[d] = list.present && d < list.count ? list.at[d] : absent;
        if ((list.present && list.count != count) || to[d] < least || to[d] > INT32_MAX)
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "attribute '%s' wants %zu numbers from %" PRId64 " on", name, count, least);
    }
    return DQ_OK;
}

static dq_status expected_shape(const dq_op_call *call, uint32_t i, size_t channels, const state *s,
                                dq_error *err)
{
    const dq_tensor *t = call->in[i];
    char text[DQ_SHAPE_TEXT];
    if (t->rank == 4 && t->dims[0] == (int64_t)s->batch && t->dims[1] == (int64_t)channels &&
        t->dims[2] == s->result[0] && t->dims[3] == s->result[1])
        return DQ_OK;
    return dq_call_fail_input(call, err, i, "has shape %s, expected [%zu,%zu,%" PRId64 ",%" PRId64 "]",
                              dq_shape_text(t->rank, t->dims, text), s->batch, channels, s->result[0],
                              s->result[1]);
}

static dq_status read_window(const dq_op_call *call, state *s, dq_error *err)
{
    int64_t pads[4], kernel[2];
    DQ_TRY(read_list(call, "pads", 4, 0, 0, pads, err));
    DQ_TRY(read_list(call, "strides", 2, 1, 1, s->stride, err));
    DQ_TRY(read_list(call, "dilations", 2, 1, 1, s->dilation, err));
    DQ_TRY(read_list(call, "kernel_shape", 2, 1, -1, kernel, err));
    for (size_t d = 0; d < 2; d++) {
        int64_t span;
        s->size[d] = call->in[X]->dims[d + 2];
        s->kernel[d] = call->in[W]->dims[d + 2];
        s->begin[d] = pads[d];
        if (dq_node_attr(call->node, "kernel_shape") && kernel[d] != s->kernel[d])
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "attribute 'kernel_shape' has %" PRId64
                                " for spatial axis %zu, and the kernel %" PRId64,
                                kernel[d], d, s->kernel[d]);
        if (s->kernel[d] < 1 || !dq_mul_i64(s->kernel[d] - 1, s->dilation[d], &span) ||
            s->size[d] > INT64_MAX / 2 || s->size[d] + pads[d] + pads[d + 2] <= span)
            return dq_call_fail(call, err, DQ_BAD_MODEL, "has a kernel that does not fit in spatial axis %zu",
                                d);
        s->result[d] = (s->size[d] + pads[d] + pads[d + 2] - span - 1) / s->stride[d] + 1;
    }
    return DQ_OK;
}

static dq_status read_state(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *x = call->in[X], *w = call->in[W], *bias = dq_call_in(call, B);
    if (x->rank != 4 || w->rank != 4)
        return dq_call_fail(call, err, DQ_UNSUPPORTED,
                            "has inputs of rank %u and %u, and two spatial axes run", x->rank, w->rank);
    int64_t groups = dq_node_int(call->node, "group", 1), shared = dq_node_int(call->node, "offset_group", 1);
    if (groups < 1 || shared < 1 || x->dims[1] % groups != 0 || x->dims[1] / groups != w->dims[1] ||
        w->dims[0] % groups != 0 || x->dims[1] % shared != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has %" PRId64 " groups and %" PRId64 " offset groups for %" PRId64
                            " and %" PRId64 " channels",
                            groups, shared, x->dims[1], w->dims[0]);
    *s = (state){.batch = (size_t)x->dims[0],
                 .in = (size_t)x->dims[1],
                 .out = (size_t)w->dims[0],
                 .groups = (size_t)groups,
                 .offset_groups = (size_t)shared};
    DQ_TRY(read_window(call, s, err));
    size_t moved;
    if (!dq_mul_size((size_t)s->kernel[0], (size_t)s->kernel[1], &s->taps) ||
        !dq_mul_size(s->taps, 2 * s->offset_groups, &moved))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has a kernel that is too large");
    DQ_TRY(expected_shape(call, OFFSET, moved, s, err));
    if (dq_call_in(call, MASK))
        DQ_TRY(expected_shape(call, MASK, moved / 2, s, err));
    if (bias && bias->count != s->out)
        return dq_call_fail_input(call, err, B, "has %zu elements, expected %zu (output channels)",
                                  bias->count, s->out);
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state s = {0};
    DQ_TRY(read_state(call, &s, err));
    const int64_t dims[4] = {(int64_t)s.batch, (int64_t)s.out, s.result[0], s.result[1]};
    return dq_call_output(call, 0, call->in[X]->dtype, 4, dims, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read_state(call, s, err));
    size_t numbers;
    if (!dq_mul_size(s->in, s->taps, &numbers) ||
        !dq_mul_size(numbers, sizeof(double), &call->worker_scratch_size) ||
        !dq_align_size(call->worker_scratch_size, DQ_ALIGN, &call->worker_scratch_size))
        return dq_call_fail(call, err, DQ_OUT_OF_MEMORY, "wants more memory than there can be");
    return DQ_OK;
}

/* Bilinear interpolation of the image; pixels outside are zero. */
static double sample(const state *s, const dq_tensor *x, size_t plane, double row, double col)
{
    if (!(row > -1 && row < (double)s->size[0] && col > -1 && col < (double)s->size[1]))
        return 0;
    double low[2] = {floor(row), floor(col)}, part[2] = {row - low[0], col - low[1]}, sum = 0;
    for (int k = 0; k < 4; k++) {
        int64_t y = (int64_t)low[0] + k / 2, z = (int64_t)low[1] + k % 2;
        double weight = (k / 2 ? part[0] : 1 - part[0]) * (k % 2 ? part[1] : 1 - part[1]);
        if (y >= 0 && y < s->size[0] && z >= 0 && z < s->size[1])
            sum += weight * dq_tensor_get_double(x, plane + (size_t)(y * s->size[1] + z));
    }
    return sum;
}

/* Reads the masked inputs of all kernel elements of all channels for one output position. */
static void read_taps(const dq_op_call *call, size_t batch, size_t position, double *values)
{
    const state *s = call->state;
    const dq_tensor *mask = dq_call_in(call, MASK);
    size_t positions = (size_t)(s->result[0] * s->result[1]), plane = (size_t)(s->size[0] * s->size[1]);
    double row = (double)((int64_t)(position / (size_t)s->result[1]) * s->stride[0] - s->begin[0]);
    double col = (double)((int64_t)(position % (size_t)s->result[1]) * s->stride[1] - s->begin[1]);
    for (size_t c = 0; c < s->in; c++) {
        size_t group = batch * s->offset_groups + c / (s->in / s->offset_groups);
        for (size_t t = 0; t < s->taps; t++) {
            size_t tap = group * s->taps + t, wide = (size_t)s->kernel[1];
            double y = row + (double)((int64_t)(t / wide) * s->dilation[0]) +
                       dq_tensor_get_double(call->in[OFFSET], 2 * tap * positions + position);
            double z = col + (double)((int64_t)(t % wide) * s->dilation[1]) +
                       dq_tensor_get_double(call->in[OFFSET], (2 * tap + 1) * positions + position);
            double value = sample(s, call->in[X], (batch * s->in + c) * plane, y, z);
            values[c * s->taps + t] =
                mask ? value * dq_tensor_get_double(mask, tap * positions + position) : value;
        }
    }
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    const dq_tensor *bias = dq_call_in(call, B);
    size_t positions = (size_t)(s->result[0] * s->result[1]), terms = s->in / s->groups * s->taps;
    double *values = dq_call_worker_scratch(call, worker);
    for (size_t i = begin; i < end; i++) {
        size_t batch = i / positions, position = i % positions;
        read_taps(call, batch, position, values);
        for (size_t o = 0; o < s->out; o++) {
            const double *mine = values + o / (s->out / s->groups) * terms;
            double sum = bias ? dq_tensor_get_double(bias, o) : 0;
            for (size_t k = 0; k < terms; k++)
                sum += mine[k] * dq_tensor_get_double(call->in[W], o * terms + k);
            dq_tensor_put_double(call->out[0], (batch * s->out + o) * positions + position, sum);
        }
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    if (call->out[0]->count)
        dq_parallel(call->threads, s->batch * (size_t)(s->result[0] * s->result[1]), 8, piece, &call);
    return DQ_OK;
}

const dq_op_impl dq_op_deform_conv = {infer, prepare, run, 0};
