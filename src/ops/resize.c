/* Resize and Upsample (version 10: asymmetric coordinates, no region). Each axis is resampled on its own; an
 * output element is the weighted sum over the product of its axes' elements, in double, rounded once (cut,
 * for integers). */
#include "ops/lists.h"
#include "ops/move.h"
#include "ops/resize_axis.h"

#include <math.h>
#include <string.h>

enum { GRAIN = 4096 /* results of a piece of parallel work */ };

typedef struct state {
    dq_resize how;
    double extrapolation;
    size_t rank;
    size_t strides[DQ_MAX_RANK]; /* of the input */
    dq_resize_axis axis[DQ_MAX_RANK];
} state;

/* ---- Attributes -----------------------------------------------------------------------------------------
 */

static dq_status choice(const dq_op_call *call, const char *name, const char *absent,
                        const char *const *words, size_t count, unsigned *to, dq_error *err)
{
    const char *text = dq_node_string(call->node, name, absent);
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0) {
            *to = (unsigned)i;
            return DQ_OK;
        }
    return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute '%s' is '%s', which the standard does not know",
                        name, text);
}

static dq_status read_how(const dq_op_call *call, dq_resize *how, dq_error *err)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",  "align_corners",
        "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn"};
    static const char *const nearests[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    unsigned mode = 0, coordinate = 0, nearest = 0;
    DQ_TRY(choice(call, "mode", "nearest", modes, 3, &mode, err));
    DQ_TRY(choice(call, "coordinate_transformation_mode", call->version == 10 ? "asymmetric" : "half_pixel",
                  coordinates, 7, &coordinate, err));
    DQ_TRY(choice(call, "nearest_mode", call->version == 10 ? "floor" : "round_prefer_floor", nearests, 4,
                  &nearest, err));
    *how = (dq_resize){(dq_resize_mode)mode,
                       (dq_resize_coordinate)coordinate,
                       (dq_resize_nearest)nearest,
                       (double)dq_node_float(call->node, "cubic_coeff_a", -0.75f),
                       dq_node_int(call->node, "antialias", 0) != 0,
                       dq_node_int(call->node, "exclude_outside", 0) != 0};
    return DQ_OK;
}

/* ---- Lengths --------------------------------------------------------------------------------------------
 */

static dq_status bad_length(const dq_op_call *call, size_t d, double length, dq_error *err)
{
    return dq_call_fail(call, err, DQ_BAD_MODEL, "resizes axis %zu to %g elements", d, length);
}

static dq_status set_length(const dq_op_call *call, dq_resize_axis *a, size_t d, double length, dq_error *err)
{
    if (!(length >= 0 && length < 9007199254740992.0) || (a->in == 0 && length >= 1))
        return bad_length(call, d, length, err);
    a->out = (size_t)length;
    return DQ_OK;
}

static dq_status from_scales(const dq_op_call *call, const dq_tensor *scales, const dq_list *axes, state *s,
                             dq_error *err)
{
    bool crop = s->how.coordinate == DQ_TF_CROP_AND_RESIZE;
    for (size_t k = 0; k < axes->count; k++) {
        size_t d = (size_t)axes->at[k];
        dq_resize_axis *a = &s->axis[d];
        float scale = (float)dq_tensor_get_double(scales, k);
        if (!(scale > 0) || isinf(scale))
            return dq_call_fail(call, err, DQ_BAD_MODEL, "has scale %g for axis %zu, wanted more than 0",
                                (double)scale, d);
        a->scale = (double)scale;
        float part = crop ? (float)(a->roi_end - a->roi_start) : 1;
        /* in float, as the standard's shape inference does */
        DQ_TRY(set_length(call, a, d, (double)floorf((float)a->in * part * scale), err));
    }
    return DQ_OK;
}

static dq_status from_sizes(const dq_op_call *call, const dq_tensor *sizes, const dq_list *axes, state *s,
                            dq_error *err)
{
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    unsigned policy = 0;
    double common = 0;
    DQ_TRY(choice(call, "keep_aspect_ratio_policy", "stretch", policies, 3, &policy, err));
    for (size_t k = 0; k < axes->count; k++) {
        double scale = (double)dq_tensor_get_int(sizes, k) / (double)s->axis[axes->at[k]].in;
        if (k == 0 || (policy == 1 ? scale < common : scale > common))
            common = scale;
    }
    for (size_t k = 0; k < axes->count; k++) {
        size_t d = (size_t)axes->at[k];
        dq_resize_axis *a = &s->axis[d];
        double length = policy ? floor(common * (double)a->in + 0.5) : (double)dq_tensor_get_int(sizes, k);
        DQ_TRY(set_length(call, a, d, length, err));
        a->scale = policy ? common : length / (double)a->in;
    }
    return DQ_OK;
}

static dq_status read_roi(const dq_op_call *call, const dq_list *axes, state *s, dq_error *err)
{
    const dq_tensor *roi = call->version == 10 ? NULL : dq_call_in(call, 1);
    if (s->how.coordinate != DQ_TF_CROP_AND_RESIZE)
        return DQ_OK;
    DQ_TRY(dq_call_need(call, 1));
    if (!roi || roi->count != 2 * axes->count)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "crops with %zu numbers in input 1 'roi', wanted %zu (two for each axis)",
                            roi ? roi->count : 0, 2 * axes->count);
    for (size_t k = 0; k < axes->count; k++) {
        s->axis[axes->at[k]].roi_start = dq_tensor_get_double(roi, k);
        s->axis[axes->at[k]].roi_end = dq_tensor_get_double(roi, k + axes->count);
    }
    return DQ_OK;
}

static dq_status read_lengths(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    uint32_t scales_at = call->version == 10 ? 1 : 2;
    dq_list axes;
    DQ_TRY(read_how(call, &s->how, err));
    DQ_TRY(dq_list_from_attr(call, "axes", &axes, err));
    s->rank = in->rank;
    for (size_t d = 0; d < in->rank; d++) {
        s->axis[d] =
            (dq_resize_axis){.in = (size_t)in->dims[d], .out = (size_t)in->dims[d], .scale = 1, .roi_end = 1};
        if (!axes.given)
            axes.at[axes.count++] = (int64_t)d;
    }
    DQ_TRY(dq_list_axes(call, &axes, in->rank, err));
    DQ_TRY(read_roi(call, &axes, s, err));
    /* Empty tensors stood for inputs that are left out before those could be. */
    const dq_tensor *scales = dq_call_in(call, scales_at), *sizes = dq_call_in(call, scales_at + 1);
    bool by_size = sizes && (sizes->count > 0 || !scales || scales->count == 0);
    const dq_tensor *given = by_size ? sizes : scales;
    if (!given || given->count != axes.count)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has %zu scales or sizes, wanted %zu (one for each axis)",
                            given ? given->count : 0, axes.count);
    DQ_TRY(dq_call_need(call, by_size ? scales_at + 1 : scales_at));
    return by_size ? from_sizes(call, sizes, &axes, s, err) : from_scales(call, scales, &axes, s, err);
}

/* Upsample: scales of one or more, from two attributes, a list of floats or an input; coordinates as in
 * Resize-10, rounded down. */
static dq_status read_upsample(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *in = call->in[0], *scales = dq_call_in(call, 1);
    const dq_attr *list = dq_node_attr(call->node, "scales");
    static const char *const modes[] = {"nearest", "linear", "bilinear"};
    unsigned mode = 0;
    DQ_TRY(choice(call, "mode", "nearest", modes, 3, &mode, err));
    s->how = (dq_resize){
        mode ? DQ_RESIZE_LINEAR : DQ_RESIZE_NEAREST, DQ_ASYMMETRIC, DQ_NEAREST_FLOOR, -0.75, false, false};
    s->rank = in->rank;
    DQ_TRY(dq_call_need(call, 1));
    size_t count = scales ? scales->count : list ? list->count : 4;
    if (count != in->rank)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has %zu scales, wanted %u (one for each axis)", count,
                            in->rank);
    for (size_t d = 0; d < in->rank; d++) {
        float scale = 1;
        if (scales)
            scale = (float)dq_tensor_get_double(scales, d);
        else if (list)
            scale = list->u.floats[d];
        else if (d >= 2)
            scale = dq_node_float(call->node, d == 2 ? "height_scale" : "width_scale", 1);
        if (!(scale >= 1) || isinf(scale))
            return dq_call_fail(call, err, DQ_BAD_MODEL, "has scale %g for axis %zu, wanted 1 or more",
                                (double)scale, d);
        s->axis[d] = (dq_resize_axis){.in = (size_t)in->dims[d], .scale = (double)scale, .roi_end = 1};
        DQ_TRY(set_length(call, &s->axis[d], d, (double)floorf((float)in->dims[d] * scale), err));
    }
    return DQ_OK;
}

typedef dq_status read_fn(const dq_op_call *call, state *s, dq_error *err);

static dq_status infer_by(dq_op_call *call, read_fn *read, dq_error *err)
{
    state s = {0};
    DQ_TRY(read(call, &s, err));
    int64_t dims[DQ_MAX_RANK];
    for (size_t d = 0; d < s.rank; d++)
        dims[d] = (int64_t)s.axis[d].out;
    dq_dtype dtype = call->in[0]->dtype;
    bool sums = s.how.mode != DQ_RESIZE_NEAREST, number = dq_dtype_is_float(dtype) || dq_dtype_is_int(dtype);
    if (!number && (sums || s.how.coordinate == DQ_TF_CROP_AND_RESIZE))
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "interpolates %s, which has no arithmetic here",
                            dq_dtype_name(dtype));
    return dq_call_output(call, 0, dtype, s.rank, dims, err);
}

static dq_status prepare_by(dq_op_call *call, read_fn *read, bool ceil_when_less, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read(call, s, err));
    s->extrapolation = (double)dq_node_float(call->node, "extrapolation_value", 0);
    dq_strides(s->rank, call->in[0]->dims, s->strides);
    for (size_t d = 0; d < s->rank && call->out[0]->count; d++) {
        dq_resize how = s->how;
        dq_resize_axis *a = &s->axis[d];
        if (a->in == a->out && a->scale == 1 && how.coordinate != DQ_TF_CROP_AND_RESIZE)
            how.mode = DQ_RESIZE_NEAREST; /* the axis stays as it is */
        if (ceil_when_less && a->scale < 1)
            how.nearest = DQ_NEAREST_CEIL;
        DQ_TRY(dq_resize_axis_make(&how, a, call->arena, err));
    }
    return DQ_OK;
}

static dq_status resize_infer(dq_op_call *call, dq_error *err)
{
    return infer_by(call, read_lengths, err);
}

static dq_status resize_prepare(dq_op_call *call, dq_error *err)
{
    return prepare_by(call, read_lengths, call->version == 10, err);
}

static dq_status upsample_infer(dq_op_call *call, dq_error *err)
{
    return infer_by(call, read_upsample, err);
}

static dq_status upsample_prepare(dq_op_call *call, dq_error *err)
{
    return prepare_by(call, read_upsample, false, err);
}

/* ---- Running --------------------------------------------------------------------------------------------
 */

/* The weighted sum over axes d and on, at input offset `at`. */
static double blend(const state *s, const dq_tensor *in, const size_t coord[DQ_MAX_RANK], size_t d, size_t at)
{
    for (; d < s->rank && s->axis[d].taps == 1; d++)
        at += s->axis[d].index[coord[d]] * s->strides[d];
    if (d == s->rank)
        return in->dtype == DQ_FLOAT ? (double)dq_data(in, float)[at] : dq_tensor_get_double(in, at);
    const dq_resize_axis *a = &s->axis[d];
    double sum = 0;
    for (size_t t = 0; t < a->taps; t++) {
        double weight = a->weight[coord[d] * a->taps + t];
        if (weight != 0)
            sum += weight * blend(s, in, coord, d + 1, at + a->index[coord[d] * a->taps + t] * s->strides[d]);
    }
    return sum;
}

static bool outside(const state *s, const size_t coord[DQ_MAX_RANK])
{
    for (size_t d = 0; d < s->rank; d++)
        if (s->axis[d].outside && s->axis[d].outside[coord[d]])
            return true;
    return false;
}

static void one(const state *s, const dq_tensor *in, dq_tensor *out, size_t i,
                const size_t coord[DQ_MAX_RANK])
{
    if (outside(s, coord)) {
        dq_tensor_put_double(out, i, s->extrapolation);
        return;
    }
    if (s->how.mode != DQ_RESIZE_NEAREST) {
        dq_tensor_put_double(out, i, blend(s, in, coord, 0, 0));
        return;
    }
    size_t at = 0, width = dq_move_width(in->dtype);
    for (size_t d = 0; d < s->rank; d++)
        at += s->axis[d].index[coord[d]] * s->strides[d];
    memcpy((char *)out->data + i * width, (const char *)in->data + at * width, width);
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    size_t coord[DQ_MAX_RANK] = {0};
    for (size_t d = s->rank, rest = begin; d-- > 0; rest /= s->axis[d].out)
        coord[d] = rest % s->axis[d].out;
    for (size_t i = begin; i < end; i++) {
        one(s, call->in[0], call->out[0], i, coord);
        for (size_t d = s->rank; d-- > 0;) {
            if (++coord[d] < s->axis[d].out)
                break;
            coord[d] = 0;
        }
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_parallel(call->threads, call->out[0]->count, GRAIN, piece, &call);
    return DQ_OK;
}

const dq_op_impl dq_op_resize = {resize_infer, resize_prepare, run, 0};
const dq_op_impl dq_op_upsample = {upsample_infer, upsample_prepare, run, 0};
