/* SPDX-License-Identifier: Apache-2.0 */
/* Resize and Upsample (version 10: asymmetric coordinates, no region). Axes are resampled separately. An
 * output element is a weighted sum in double, rounded once (truncated for integers). The last axis is
 * resampled first, except for floats whose number of rows decreases. Halving floats is computed as
 * AveragePool computes means. */
#include "base/checked.h"
#include "ops/copy_nd.h"
#include "ops/lists.h"
#include "ops/pool/pool_rows.h"
#include "ops/rows.h"
#include "ops/vision/resize_axis.h"
#include "ops/widened.h"

#include <math.h>
#include <string.h>

enum {
    KEPT = 4,      /* resampled input rows that are kept */
    CHANNELS = 16, /* most channels that are resampled together with their pixels */
    GRAIN = 8192   /* results of a task, about */
};

typedef struct state {
    dq_resize how;
    double extrapolation;
    size_t rank;
    bool twice, rows_twice;      /* nearest: the last axis (the one before) doubles each element */
    dq_window halves;            /* linear halving of the last axes: means of pairs; rank 0: not applicable */
    size_t strides[DQ_MAX_RANK]; /* of the input */
    dq_resize_axis axis[DQ_MAX_RANK];
} state;

/* ---- Attributes ---------------------------------------------------------------------------------------- */

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
    *how = (dq_resize){.mode = (dq_resize_mode)mode,
                       .coordinate = (dq_resize_coordinate)coordinate,
                       .nearest = (dq_resize_nearest)nearest,
                       .cubic_a = (double)dq_node_float(call->node, "cubic_coeff_a", -0.75f),
                       .antialias = dq_node_int(call->node, "antialias", 0) != 0,
                       .exclude_outside = dq_node_int(call->node, "exclude_outside", 0) != 0};
    return DQ_OK;
}

/* ---- Lengths ------------------------------------------------------------------------------------------- */

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
            return dq_call_fail(call, err, DQ_BAD_MODEL, "has scale %g for axis %zu, expected more than 0",
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
                            "crops with %zu numbers in input 1 'roi', expected %zu (two for each axis)",
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
        if (!axes.present)
            axes.at[axes.count++] = (int64_t)d;
    }
    DQ_TRY(dq_list_axes(call, &axes, in->rank, err));
    DQ_TRY(read_roi(call, &axes, s, err));
    /* Before inputs could be omitted, empty tensors had that meaning. */
    const dq_tensor *scales = dq_call_in(call, scales_at), *sizes = dq_call_in(call, scales_at + 1);
    bool by_size = sizes && (sizes->count > 0 || !scales || scales->count == 0);
    const dq_tensor *value = by_size ? sizes : scales;
    if (!value || value->count != axes.count)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has %zu scales or sizes, expected %zu (one for each axis)",
                            value ? value->count : 0, axes.count);
    DQ_TRY(dq_call_need(call, by_size ? scales_at + 1 : scales_at));
    return by_size ? from_sizes(call, sizes, &axes, s, err) : from_scales(call, scales, &axes, s, err);
}

/* Upsample: scales of at least 1, from two attributes, a list of floats or an input; coordinates as in
 * Resize-10, rounded down. */
static dq_status read_upsample(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *in = call->in[0], *scales = dq_call_in(call, 1);
    const dq_attr *list = dq_node_attr(call->node, "scales");
    static const char *const modes[] = {"nearest", "linear", "bilinear"};
    unsigned mode = 0;
    DQ_TRY(choice(call, "mode", "nearest", modes, 3, &mode, err));
    s->how = (dq_resize){.mode = mode ? DQ_RESIZE_LINEAR : DQ_RESIZE_NEAREST,
                         .coordinate = DQ_ASYMMETRIC,
                         .nearest = DQ_NEAREST_FLOOR,
                         .cubic_a = -0.75};
    s->rank = in->rank;
    DQ_TRY(dq_call_need(call, 1));
    size_t count = scales ? scales->count : list ? list->count : 4;
    if (count != in->rank)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has %zu scales, expected %u (one for each axis)", count,
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
            return dq_call_fail(call, err, DQ_BAD_MODEL, "has scale %g for axis %zu, expected 1 or more",
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

static size_t last_of(const state *s)
{
    return s->rank - 1;
}

static void find_halves(state *s, dq_dtype dtype)
{
    dq_window *w = &s->halves;
    size_t first = s->rank, rest;
    while (first > 0 && dq_resize_is_mean(&s->axis[first - 1], 2))
        first--;
    for (rest = first; rest > 0 && dq_resize_is_mean(&s->axis[rest - 1], 1);)
        rest--;
    for (size_t d = first; d < s->rank; d++) {
        const size_t at = d - first;
        w->in[at] = (int64_t)s->axis[d].in;
        w->out[at] = (int64_t)s->axis[d].out;
        w->kernel[at] = w->stride[at] = 2;
        w->dilation[at] = 1;
    }
    w->rank = s->rank - first;
    if (rest > 0 || w->rank == 0 || !dq_pool_rows_fits(w, dtype, false))
        w->rank = 0;
}

static bool row_scratch(const state *s, size_t *bytes)
{
    size_t row, source;
    if (s->halves.rank)
        return dq_pool_rows_workspace(&s->halves, DQ_FLOAT, false, bytes);
    if (s->how.mode == DQ_RESIZE_NEAREST || s->rank == 0) {
        *bytes = 0;
        return true;
    }
    return dq_mul_size(s->axis[last_of(s)].out, (KEPT + s->rank) * sizeof(double), &row) &&
           dq_mul_size(s->axis[last_of(s)].in + 1, sizeof(double), &source) &&
           dq_add_size(row, source, bytes);
}

static bool stays(const dq_resize_axis *a)
{
    return a->in == a->out && a->scale == 1;
}

/* NHWC: merges few channels into the axis before them, so that a row has all channels. */
static dq_status join_channels(dq_op_call *call, state *s, dq_error *err)
{
    const size_t n = s->rank < 2 ? 0 : s->axis[s->rank - 1].out;
    if (n == 0 || n > CHANNELS || !call->out[0]->count || s->how.coordinate == DQ_TF_CROP_AND_RESIZE ||
        !stays(&s->axis[s->rank - 1]) || stays(&s->axis[s->rank - 2]))
        return DQ_OK;
    s->rank--;
    s->strides[s->rank - 1] = 1;
    return dq_resize_axis_widen(&s->axis[s->rank - 1], n, call->arena, err);
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
        if (stays(a) && how.coordinate != DQ_TF_CROP_AND_RESIZE)
            how.mode = DQ_RESIZE_NEAREST; /* the axis does not change */
        if (ceil_when_less && a->scale < 1)
            how.nearest = DQ_NEAREST_CEIL;
        DQ_TRY(dq_resize_axis_make(&how, a, call->arena, err));
    }
    DQ_TRY(join_channels(call, s, err));
    s->twice = s->rank && dq_resize_is_twice(&s->axis[last_of(s)]);
    s->rows_twice = s->rank > 1 && dq_resize_is_twice(&s->axis[last_of(s) - 1]);
    find_halves(s, call->in[0]->dtype);
    if (s->rank && call->out[0]->count)
        dq_resize_leave_out(&s->axis[last_of(s)]);
    if (!row_scratch(s, &call->worker_scratch_size))
        return dq_no_memory(err, SIZE_MAX, "rows");
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

/* ---- Running ------------------------------------------------------------------------------------------- */

/* Rows of results along the last axis. Along it, input rows are resampled at full length. The last ones are
 * kept, as adjacent result rows use the same input rows. */

typedef struct worker_rows {
    const dq_op_call *call;
    const state *s;
    double *source, *level[DQ_MAX_RANK]; /* `source`: an input row followed by a 0; `level`: a row of results
                                            for each axis before the last */
    double *kept[KEPT];
    size_t kept_at[KEPT]; /* offsets of their input rows; SIZE_MAX: empty */
    size_t next;
} worker_rows;

static void begin_rows(worker_rows *r, const dq_op_call *call, unsigned worker)
{
    const state *s = call->state;
    size_t out = s->axis[last_of(s)].out;
    double *workspace = dq_call_worker_scratch(call, worker);
    *r = (worker_rows){.call = call, .s = s, .source = workspace};
    workspace += s->axis[last_of(s)].in + 1;
    for (size_t k = 0; k < KEPT; k++, workspace += out) {
        r->kept[k] = workspace;
        r->kept_at[k] = SIZE_MAX;
    }
    for (size_t d = 0; d < s->rank; d++, workspace += out)
        r->level[d] = workspace;
}

static const double *kept_row(const worker_rows *r, size_t at)
{
    for (size_t k = 0; k < KEPT; k++)
        if (r->kept_at[k] == at)
            return r->kept[k];
    return NULL;
}

/* The input row at offset `at`, resampled along the last axis; kept rows are reused. */
static const double *along(worker_rows *r, size_t at)
{
    const dq_tensor *in = r->call->in[0];
    const dq_resize_axis *a = &r->s->axis[last_of(r->s)];
    const double *kept = kept_row(r, at);
    if (kept)
        return kept;
    double *to = r->kept[r->next];
    r->kept_at[r->next] = at;
    r->next = (r->next + 1) % KEPT;
    dq_load_doubles(in->dtype, in->data, at, a->in, r->source);
    dq_resize_along(a, r->source, to);
    return to;
}

/* `blend` for the axis before the last, if it shrinks, of floats: blends two input rows before it resamples
 * them. */
static const double *blend_before(worker_rows *r, size_t d, const size_t *index, const double *weight,
                                  size_t at)
{
    const float *restrict x = dq_data(r->call->in[0], float) + at;
    const size_t stride = r->s->strides[d], first = index[0] * stride, second = index[1] * stride;
    const dq_resize_axis *a = &r->s->axis[d + 1];
    const double w0 = weight[0], w1 = weight[1];
    double *restrict sum = r->source;
    for (size_t i = 0, n = a->in; i < n; i++)
        sum[i] = 0 + w0 * (double)x[first + i] + w1 * (double)x[second + i];
    dq_resize_along(a, r->source, r->level[d]);
    return r->level[d];
}

/* `blend` for the axis before the last with two or four weighted input rows, in one pass. NULL: a weight is
 * 0, or more different rows are needed than are kept. */
static const double *blend_rows(worker_rows *r, size_t d, const size_t *index, const double *weight,
                                size_t at)
{
    const double *row[4];
    size_t stride = r->s->strides[d], n = r->s->axis[d + 1].out, taps = r->s->axis[d].taps;
    for (size_t t = 0; t < taps; t++) {
        if (weight[t] == 0)
            return NULL;
        along(r, at + index[t] * stride);
    }
    for (size_t t = 0; t < taps; t++) {
        row[t] = kept_row(r, at + index[t] * stride);
        if (!row[t])
            return NULL;
    }
    double *sum = r->level[d];
    if (taps == 2)
        for (size_t i = 0; i < n; i++)
            sum[i] = 0 + weight[0] * row[0][i] + weight[1] * row[1][i];
    else
        for (size_t i = 0; i < n; i++)
            sum[i] = 0 + weight[0] * row[0][i] + weight[1] * row[1][i] + weight[2] * row[2][i] +
                     weight[3] * row[3][i];
    return sum;
}

/* The weighted sum over axes d and following, at input offset `at`. */
static const double *blend(worker_rows *r, const size_t coord[DQ_MAX_RANK], size_t d, size_t at)
{
    const state *s = r->s;
    for (; d < last_of(s) && s->axis[d].taps == 1; d++)
        at += s->axis[d].index[coord[d]] * s->strides[d];
    if (d == last_of(s))
        return along(r, at);
    const dq_resize_axis *a = &s->axis[d];
    const size_t *index = a->index + coord[d] * a->taps;
    const double *weights = a->weight + coord[d] * a->taps;
    if (d + 1 == last_of(s) && a->taps == 2 && a->out < a->in && weights[0] != 0 && weights[1] != 0 &&
        r->call->in[0]->dtype == DQ_FLOAT)
        return blend_before(r, d, index, weights, at);
    const bool some = d + 1 == last_of(s) && (a->taps == 2 || a->taps == 4);
    const double *rows = some ? blend_rows(r, d, index, weights, at) : NULL;
    if (rows)
        return rows;
    double *sum = r->level[d];
    size_t n = s->axis[last_of(s)].out;
    bool begun = false;
    for (size_t t = 0; t < a->taps; t++) {
        double weight = weights[t];
        if (weight == 0)
            continue;
        const double *inner = blend(r, coord, d + 1, at + index[t] * s->strides[d]);
        if (begun)
            for (size_t i = 0; i < n; i++)
                sum[i] += weight * inner[i];
        else
            for (size_t i = 0; i < n; i++)
                sum[i] = 0 + weight * inner[i]; /* +0 for -0 */
        begun = true;
    }
    return sum;
}

/* Writes `count` result rows from element `at` on that all equal the input row at `from`, resampled. */
static void same_rows(const dq_op_call *call, size_t from, size_t at, size_t count)
{
    const state *s = call->state;
    const dq_resize_axis *a = &s->axis[last_of(s)];
    size_t width = dq_element_width(call->in[0]->dtype), bytes = a->out * width, made = 1;
    const char *row = (const char *)call->in[0]->data + from * width;
    char *to = (char *)call->out[0]->data + at * width;
    if (s->twice && count > 1 && width <= sizeof(uint64_t)) {
        call->kernels->upsample2x_x(row, a->in, width, 1, to);
        made = 2;
    } else {
        dq_gather_elements(width, to, row, a->index, a->out);
    }
    for (; made < count; made++)
        memcpy(to + made * bytes, to, bytes);
}

/* Writes results begin … end - 1 of a plane's rows, by nearest neighbor. The plane's input begins at `from`.
 */
static void nearest_plane(const dq_op_call *call, size_t from, size_t plane, size_t begin, size_t end)
{
    const state *s = call->state;
    size_t last = last_of(s), n = s->axis[last].out, first = begin;
    const size_t *rows = s->axis[last - 1].index;
    const size_t width = dq_element_width(call->in[0]->dtype);
    if (s->twice && s->rows_twice && begin % 2 == 0 && end % 2 == 0 && width <= sizeof(uint64_t)) {
        const char *in = (const char *)call->in[0]->data + (from + begin / 2 * s->strides[last - 1]) * width;
        call->kernels->upsample2x_x(in, s->axis[last].in, width, (end - begin) / 2,
                                    (char *)call->out[0]->data + (plane + begin) * n * width);
        return;
    }
    for (size_t i = begin; i < end; i++)
        if (i + 1 == end || rows[i + 1] != rows[first]) {
            same_rows(call, from + rows[first] * s->strides[last - 1], (plane + first) * n, i + 1 - first);
            first = i + 1;
        }
}

static void nearest_rows(const dq_op_call *call, size_t begin, size_t end)
{
    const state *s = call->state;
    size_t last = last_of(s);
    if (last == 0) {
        same_rows(call, 0, 0, 1);
        return;
    }
    size_t height = s->axis[last - 1].out;
    for (size_t i = begin, stop; i < end; i = stop) {
        size_t row = i % height, from = 0, rest = i / height;
        for (size_t d = last - 1; d-- > 0; rest /= s->axis[d].out)
            from += s->axis[d].index[rest % s->axis[d].out] * s->strides[d];
        stop = end - i < height - row ? end : i - row + height;
        nearest_plane(call, from, i - row, row, row + stop - i);
    }
}

static bool outside(const state *s, const size_t coord[DQ_MAX_RANK])
{
    for (size_t d = 0; d < last_of(s); d++)
        if (s->axis[d].outside && s->axis[d].outside[coord[d]])
            return true;
    return false;
}

static void extrapolate(const dq_op_call *call, const size_t coord[DQ_MAX_RANK], size_t at)
{
    const state *s = call->state;
    const dq_resize_axis *a = &s->axis[last_of(s)];
    bool all = outside(s, coord);
    for (size_t i = 0; (all || a->outside) && i < a->out; i++)
        if (all || a->outside[i])
            dq_tensor_put_double(call->out[0], at + i, s->extrapolation);
}

static void halved_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    const dq_pool_rows rows = {.kernels = call->kernels,
                               .window = &s->halves,
                               .begin = begin,
                               .end = end,
                               .workspace = dq_call_worker_scratch(call, worker)};
    dq_average_rows(&rows, false, call->in[0]->data, call->out[0]->data);
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    size_t coord[DQ_MAX_RANK] = {0}, last = last_of(s), n = s->axis[last].out;
    bool nearest = s->how.mode == DQ_RESIZE_NEAREST, crop = s->how.coordinate == DQ_TF_CROP_AND_RESIZE;
    worker_rows rows;
    if (nearest)
        nearest_rows(call, begin, end);
    else
        begin_rows(&rows, call, worker);
    if (nearest && !crop)
        return;
    for (size_t d = last, rest = begin; d-- > 0; rest /= s->axis[d].out)
        coord[d] = rest % s->axis[d].out;
    for (size_t i = begin; i < end; i++) {
        if (!nearest)
            dq_resize_put(call->out[0], i * n, blend(&rows, coord, 0, 0), n);
        if (crop)
            extrapolate(call, coord, i * n);
        for (size_t d = last; d-- > 0;) {
            if (++coord[d] < s->axis[d].out)
                break;
            coord[d] = 0;
        }
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    const dq_tensor *in = call->in[0];
    dq_tensor *out = call->out[0];
    if (s->rank == 0) /* nothing to resize */
        memcpy(out->data, in->data, out->size);
    else if (out->count)
        dq_parallel(call->threads, out->count / s->axis[last_of(s)].out, GRAIN / s->axis[last_of(s)].out + 1,
                    s->halves.rank ? halved_rows : piece, &call);
    return DQ_OK;
}

#define SMOOTH (dq_node_string(call->node, "mode", "nearest")[0] != 'n')
DQ_OP_WIDENED(dq_op_resize, SMOOTH, resize_infer, resize_prepare, run, DQ_OP_BATCH_SEPARABLE_FIRST)
DQ_OP_WIDENED(dq_op_upsample, SMOOTH, upsample_infer, upsample_prepare, run, 0)
