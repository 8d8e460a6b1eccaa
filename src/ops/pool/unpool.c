/* SPDX-License-Identifier: Apache-2.0 */
/* MaxUnpool scatters pooled elements to their original positions. Col2Im sums blocks into an image (the
 * adjoint of im2col). CenterCropPad crops or pads axes around their center. */
#include "base/checked.h"
#include "ops/element.h"
#include "ops/lists.h"
#include "ops/rows.h"

#include <inttypes.h>

/* ---- MaxUnpool ----------------------------------------------------------------------------------------- */

enum { X, INDICES, SHAPE };

static dq_status requested_count(const dq_op_call *call, const char *what, size_t count, size_t expected,
                                 dq_error *err)
{
    if (count == expected)
        return DQ_OK;
    return dq_call_fail(call, err, DQ_BAD_MODEL, "%s has %zu elements, expected %zu", what, count, expected);
}

static dq_status spatial_list(const dq_op_call *call, const char *name, size_t count, int64_t absent,
                              dq_list *list, dq_error *err)
{
    DQ_TRY(dq_list_from_attr(call, name, list, err));
    for (size_t d = 0; !list->present && d < count; d++)
        list->at[d] = absent;
    if (!list->present)
        list->count = count;
    return requested_count(call, name, list->count, count, err);
}

/* Computes the default output shape: the inverse of the shape rule of MaxPool. */
static dq_status unpooled(const dq_op_call *call, int64_t dims[DQ_MAX_RANK], dq_error *err)
{
    const dq_tensor *x = call->in[X];
    dq_list kernel, strides, pads;
    if (x->rank < 3)
        return dq_call_fail_input(call, err, X, "has rank %u, expected 3 or more", x->rank);
    size_t axes = x->rank - 2;
    DQ_TRY(spatial_list(call, "kernel_shape", axes, 1, &kernel, err));
    DQ_TRY(spatial_list(call, "strides", axes, 1, &strides, err));
    DQ_TRY(spatial_list(call, "pads", 2 * axes, 0, &pads, err));
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (size_t d = 0; d < axes; d++) {
        int64_t *to = &dims[d + 2];
        bool fits = dq_mul_i64(x->dims[d + 2] - 1, strides.at[d], to) && dq_add_i64(*to, kernel.at[d], to) &&
                    pads.at[d] >= 0 && pads.at[axes + d] >= 0 && dq_add_i64(*to, -pads.at[d], to) &&
                    dq_add_i64(*to, -pads.at[axes + d], to);
        if (!fits || *to < 0)
            return dq_call_fail(call, err, DQ_BAD_MODEL, "unpools axis %zu to a length that cannot be",
                                d + 2);
    }
    return DQ_OK;
}

static dq_status unpool_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[X];
    int64_t dims[DQ_MAX_RANK];
    dq_list value;
    DQ_TRY(unpooled(call, dims, err));
    if (!dq_tensor_same_shape(x, call->in[INDICES]))
        return dq_call_fail_input(call, err, INDICES, "has another shape than input 0");
    DQ_TRY(dq_list_from_input(call, SHAPE, &value, err));
    if (value.present) {
        DQ_TRY(requested_count(call, "input 2", value.count, x->rank, err));
        for (size_t d = 0; d < x->rank; d++) {
            if (value.at[d] < dims[d])
                return dq_call_fail_input(call, err, SHAPE,
                                          "has %" PRId64 " for axis %zu, expected %" PRId64 " or more",
                                          value.at[d], d, dims[d]);
            dims[d] = value.at[d];
        }
    }
    return dq_call_output(call, 0, x->dtype, x->rank, dims, err);
}

static dq_status unpool_run(const dq_op_call *call, dq_error *err)
{
    dq_tensor *out = call->out[0];
    int64_t dims[DQ_MAX_RANK];
    size_t strides[DQ_MAX_RANK];
    DQ_TRY(unpooled(call, dims, err));
    size_t indices = dq_dims_product(dims, 0, out->rank);
    dq_strides(out->rank, out->dims, strides);
    dq_fill_elements(out->dtype, out->data, out->count, NULL);
    const bool whole = indices == out->count; /* indices are offsets in the output itself */
    const dq_tensor *x = call->in[X];
    const size_t width = dq_element_width(x->dtype);
    for (size_t i = 0, n; i < x->count; i += n) {
        size_t at[DQ_ROW];
        n = x->count - i < DQ_ROW ? x->count - i : DQ_ROW;
        for (size_t k = 0; k < n; k++) {
            int64_t value = dq_data(call->in[INDICES], int64_t)[i + k];
            if (value < 0 || (uint64_t)value >= indices)
                return dq_call_fail(call, err, DQ_BAD_INPUT,
                                    "input 1 holds index %" PRId64 ", expected 0 to %zu", value, indices - 1);
            at[k] = whole ? (size_t)value : 0;
            for (size_t d = whole ? 0 : out->rank, rest = (size_t)value; d-- > 0; rest /= (size_t)dims[d])
                at[k] += rest % (size_t)dims[d] * strides[d];
        }
        dq_scatter_elements(width, out->data, (const char *)x->data + i * width, at, n);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_max_unpool = {unpool_infer, NULL, unpool_run, 0};

/* ---- Col2Im -------------------------------------------------------------------------------------------- */

typedef struct blocks {
    size_t axes, taps, count; /* spatial axes; elements of a block; blocks of an image */
    int64_t image[DQ_MAX_RANK], block[DQ_MAX_RANK], steps[DQ_MAX_RANK];
    dq_list strides, dilations, pads;
} blocks;

static dq_status count_steps(const dq_op_call *call, blocks *b, size_t d, dq_error *err)
{
    int64_t span, padded_size;
    bool fits = b->image[d] >= 0 && b->block[d] >= 1 && b->strides.at[d] >= 1 && b->dilations.at[d] >= 1 &&
                b->pads.at[d] >= 0 && b->pads.at[b->axes + d] >= 0 &&
                dq_mul_i64(b->block[d] - 1, b->dilations.at[d], &span) &&
                dq_add_i64(b->image[d], b->pads.at[d], &padded_size) &&
                dq_add_i64(padded_size, b->pads.at[b->axes + d], &padded_size) && padded_size > span;
    if (!fits)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has blocks of %" PRId64 " for an image of %" PRId64
                            " along spatial axis %zu, which do not fit",
                            b->block[d], b->image[d], d);
    b->steps[d] = (padded_size - span - 1) / b->strides.at[d] + 1;
    if (!dq_mul_size(b->count, (size_t)b->steps[d], &b->count) ||
        !dq_mul_size(b->taps, (size_t)b->block[d], &b->taps))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has more blocks than can be counted");
    return DQ_OK;
}

static dq_status read_blocks(const dq_op_call *call, blocks *b, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list image, block;
    DQ_TRY(dq_list_from_input(call, 1, &image, err));
    DQ_TRY(dq_list_from_input(call, 2, &block, err));
    *b = (blocks){.axes = image.count, .taps = 1, .count = 1};
    if (image.count == 0 || image.count + 2 > DQ_MAX_RANK)
        return dq_call_fail_input(call, err, 1, "has %zu elements, expected 1 to %d", image.count,
                                  DQ_MAX_RANK - 2);
    DQ_TRY(requested_count(call, "input 2", block.count, image.count, err));
    DQ_TRY(spatial_list(call, "strides", b->axes, 1, &b->strides, err));
    DQ_TRY(spatial_list(call, "dilations", b->axes, 1, &b->dilations, err));
    DQ_TRY(spatial_list(call, "pads", 2 * b->axes, 0, &b->pads, err));
    for (size_t d = 0; d < b->axes; d++) {
        b->image[d] = image.at[d];
        b->block[d] = block.at[d];
        DQ_TRY(count_steps(call, b, d, err));
    }
    char text[DQ_SHAPE_TEXT];
    if (in->rank != 3 || (size_t)in->dims[1] % b->taps != 0 || (size_t)in->dims[2] != b->count)
        return dq_call_fail_input(
            call, err, 0, "has shape %s, expected a multiple of %zu (a block) by %zu (blocks of an image)",
            dq_shape_text(in->rank, in->dims, text), b->taps, b->count);
    return DQ_OK;
}

static dq_status col2im_infer(dq_op_call *call, dq_error *err)
{
    blocks b;
    int64_t dims[DQ_MAX_RANK];
    DQ_TRY(read_blocks(call, &b, err));
    dims[0] = call->in[0]->dims[0];
    dims[1] = call->in[0]->dims[1] / (int64_t)b.taps;
    for (size_t d = 0; d < b.axes; d++)
        dims[d + 2] = b.image[d];
    return dq_call_output(call, 0, call->in[0]->dtype, b.axes + 2, dims, err);
}

/* Coordinates of element `tap` of the first block; and the range first … end - 1 of blocks along the last
 * axis whose element `tap` is inside the image. */
typedef struct tap_position {
    int64_t at[DQ_MAX_RANK], first, end;
} tap_position;

static tap_position find_tap(const blocks *b, size_t tap)
{
    tap_position p = {0};
    for (size_t d = b->axes; d-- > 0; tap /= (size_t)b->block[d])
        p.at[d] = (int64_t)(tap % (size_t)b->block[d]) * b->dilations.at[d] - b->pads.at[d];
    size_t last = b->axes - 1;
    int64_t x = p.at[last], size = b->image[last], stride = b->strides.at[last];
    p.first = x < 0 ? (-x - 1) / stride + 1 : 0;
    p.end = x < size ? (size - x - 1) / stride + 1 : 0;
    p.end = p.end < b->steps[last] ? p.end : b->steps[last];
    return p;
}

/* Gives the offset in the image of the tap of a line's first block; it may be before the row. Returns false
 * if the tap is in the padding for the whole line. */
static bool line_position(const blocks *b, const tap_position *p, const size_t *coord, int64_t *index)
{
    size_t last = b->axes - 1;
    *index = 0;
    for (size_t d = 0; d < last; d++) {
        int64_t x = (int64_t)coord[d] * b->strides.at[d] + p->at[d];
        if (x < 0 || x >= b->image[d])
            return false;
        *index = *index * b->image[d] + x;
    }
    *index = *index * b->image[last] + p->at[last];
    return p->first < p->end;
}

static void add_element(const dq_tensor *from, size_t i, dq_tensor *to, size_t at)
{
    unsigned cls = dq_dtype_get(to->dtype)->cls;
    if (cls == DQ_CLASS_FLOAT)
        dq_tensor_put_double(to, at, dq_tensor_get_double(to, at) + dq_tensor_get_double(from, i));
    else if (cls == DQ_CLASS_BOOL)
        dq_tensor_put_int(to, at, dq_tensor_get_int(to, at) | dq_tensor_get_int(from, i));
    else
        dq_tensor_put_int(
            to, at, (int64_t)((uint64_t)dq_tensor_get_int(to, at) + (uint64_t)dq_tensor_get_int(from, i)));
}

/* Adds n elements from `from` on to the image from offset `at` on, at stride `step`. */
static void add_line(const dq_tensor *in, size_t from, dq_tensor *out, size_t at, size_t step, size_t n)
{
    const float *restrict x = dq_data(in, float) + from;
    float *restrict y = dq_data(out, float) + at;
    if (in->dtype == DQ_FLOAT && step == 1)
        for (size_t i = 0; i < n; i++)
            y[i] += x[i];
    else if (in->dtype == DQ_FLOAT)
        for (size_t i = 0; i < n; i++)
            y[i * step] += x[i];
    else
        for (size_t i = 0; i < n; i++)
            add_element(in, from + i, out, at + i * step);
}

/* Adds row `row` of the input, which has element `tap` of all blocks, to the plane at `to`. */
static void add_tap(const dq_tensor *in, const blocks *b, size_t row, size_t tap, dq_tensor *out, size_t to)
{
    const tap_position p = find_tap(b, tap);
    size_t last = b->axes - 1, n = (size_t)b->steps[last], coord[DQ_MAX_RANK] = {0};
    int64_t index, stride = b->strides.at[last];
    for (size_t i = row * b->count; i < (row + 1) * b->count; i += n) {
        if (line_position(b, &p, coord, &index))
            add_line(in, i + (size_t)p.first, out, to + (size_t)(index + p.first * stride), (size_t)stride,
                     (size_t)(p.end - p.first));
        dq_next_coord(last, b->steps, coord);
    }
}

static dq_status col2im_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_tensor *out = call->out[0];
    blocks b;
    DQ_TRY(read_blocks(call, &b, err));
    unsigned cls = dq_dtype_get(in->dtype)->cls;
    if (cls == DQ_CLASS_STRING || cls == DQ_CLASS_COMPLEX)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "adds up %s, which has no arithmetic here",
                            dq_dtype_name(in->dtype));
    const size_t plane = dq_dims_product(out->dims, 2, out->rank), width = dq_element_width(in->dtype);
    for (size_t i = 0; b.count && i < in->count / b.count; i++) {
        if (i % b.taps == 0) /* plane by plane, so that it stays in the cache for all taps */
            dq_fill_elements(out->dtype, (char *)out->data + i / b.taps * plane * width, plane, NULL);
        add_tap(in, &b, i, i % b.taps, out, i / b.taps * plane);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_col2im = {col2im_infer, NULL, col2im_run, 0};

/* ---- CenterCropPad ------------------------------------------------------------------------------------- */

static dq_status crop_shape(const dq_op_call *call, int64_t dims[DQ_MAX_RANK], dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list axes, lengths;
    DQ_TRY(dq_list_from_attr(call, "axes", &axes, err));
    for (size_t d = 0; d < in->rank; d++) {
        dims[d] = in->dims[d];
        if (!axes.present)
            axes.at[axes.count++] = (int64_t)d;
    }
    DQ_TRY(dq_list_axes(call, &axes, in->rank, err));
    DQ_TRY(dq_list_from_input(call, 1, &lengths, err));
    DQ_TRY(requested_count(call, "input 1", lengths.count, axes.count, err));
    for (size_t k = 0; k < axes.count; k++) {
        if (lengths.at[k] < 0)
            return dq_call_fail_input(call, err, 1, "holds %" PRId64 ", expected a length", lengths.at[k]);
        dims[axes.at[k]] = lengths.at[k];
    }
    return DQ_OK;
}

static dq_status crop_infer(dq_op_call *call, dq_error *err)
{
    int64_t dims[DQ_MAX_RANK];
    DQ_TRY(crop_shape(call, dims, err));
    return dq_call_output(call, 0, call->in[0]->dtype, call->in[0]->rank, dims, err);
}

static dq_status crop_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_tensor *in = call->in[0];
    dq_tensor *out = call->out[0];
    size_t from[DQ_MAX_RANK], to[DQ_MAX_RANK];
    dq_copy_nd m = {0};
    dq_strides(in->rank, in->dims, from);
    dq_strides(out->rank, out->dims, to);
    for (size_t d = 0; d < in->rank; d++) {
        int64_t more = out->dims[d] - in->dims[d]; /* of an odd difference, the extra element is at the end */
        m.from_base += more < 0 ? (size_t)(-more / 2) * from[d] : 0;
        m.to_base += more > 0 ? (size_t)(more / 2) * to[d] : 0;
        dq_copy_nd_add(&m, (size_t)(more < 0 ? out->dims[d] : in->dims[d]), (int64_t)from[d], to[d]);
    }
    dq_fill_elements(out->dtype, out->data, out->count, NULL);
    dq_copy_nd_run(call, &m, in->dtype, out->data, in->data);
    return DQ_OK;
}

const dq_op_impl dq_op_center_crop_pad = {crop_infer, NULL, crop_run, 0};
