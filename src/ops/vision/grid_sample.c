/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample: samples an image at positions between its pixels, by one, two or four pixels along each axis.
 * AffineGrid: the sampling grid of an affine map. Positions and weights are computed in double (positions
 * rounded to float); results are rounded once. */
#include "ops/element.h"
#include "ops/rows.h"
#include "ops/widened.h"

#include <inttypes.h>
#include <math.h>

enum { X, GRID };
/* TAPS: most pixels along an axis. LISTED: positions times axes that are resolved at a time, for all
 * channels. PLACES: such positions of images of two axes. */
enum { TAPS = 4, LISTED = 128, POSITIONS = LISTED / 2 };

typedef enum mode { NEAREST, LINEAR, CUBIC } mode;
typedef enum padding { ZEROS, BORDER, REFLECTION } padding;

typedef struct state {
    mode mode;
    padding padding;
    bool align, quads;             /* quads: bilinear_f32 is applicable */
    size_t axes, plane, positions; /* spatial axes; elements of an image; positions of a batch element */
    size_t strides[DQ_MAX_RANK];
    int64_t dims[DQ_MAX_RANK];
} state;

/* The pixels of one axis that a position interpolates; pixels outside that count as zero are omitted. */
typedef struct taps {
    size_t count, at[TAPS]; /* at: offsets in the image */
    double weight[TAPS];
} taps;

static dq_status read_state(const dq_op_call *call, state *s, dq_error *err)
{
    static const struct {
        const char *name;
        mode mode;
    } modes[] = {
        {"nearest", NEAREST}, {"linear", LINEAR}, {"bilinear", LINEAR}, {"cubic", CUBIC}, {"bicubic", CUBIC}};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const char *how = dq_node_string(call->node, "mode", "linear");
    const char *outside = dq_node_string(call->node, "padding_mode", "zeros");
    size_t m = 0, p = 0;
    while (m < 5 && strcmp(how, modes[m].name) != 0)
        m++;
    while (p < 3 && strcmp(outside, paddings[p]) != 0)
        p++;
    if (m == 5 || p == 3)
        return dq_call_fail(
            call, err, DQ_BAD_MODEL,
            "attributes 'mode' and 'padding_mode' are '%s' and '%s', which the standard does not "
            "know",
            how, outside);
    *s = (state){.mode = modes[m].mode,
                 .padding = (padding)p,
                 .align = dq_node_int(call->node, "align_corners", 0) != 0};
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[X], *grid = call->in[GRID];
    state s;
    char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
    DQ_TRY(read_state(call, &s, err));
    if (x->rank < 3)
        return dq_call_fail_input(call, err, X, "has rank %u, expected 3 or more", x->rank);
    if (grid->rank != x->rank || grid->dims[0] != x->dims[0] || grid->dims[grid->rank - 1] != x->rank - 2)
        return dq_call_fail_input(call, err, GRID,
                                  "has shape %s, expected positions of %u numbers for images of %s",
                                  dq_shape_text(grid->rank, grid->dims, mine), x->rank - 2,
                                  dq_shape_text(x->rank, x->dims, theirs));
    if (!dq_dtype_is_float(x->dtype) && !dq_dtype_is_int(x->dtype) &&
        (s.mode != NEAREST || x->dtype == DQ_STRING))
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "interpolates %s, which has no arithmetic here",
                            dq_dtype_name(x->dtype));
    int64_t dims[DQ_MAX_RANK] = {x->dims[0], x->dims[1]};
    for (size_t d = 2; d < x->rank; d++)
        dims[d] = grid->dims[d - 1];
    DQ_TRY(dq_call_output(call, 0, x->dtype, x->rank, dims, err));
    for (size_t d = 2; d < x->rank; d++)
        if (x->dims[d] == 0 && grid->count)
            return dq_call_fail_input(call, err, X, "has no pixels");
    return DQ_OK;
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[X];
    size_t strides[DQ_MAX_RANK];
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read_state(call, s, err));
    dq_strides(x->rank, x->dims, strides);
    s->axes = x->rank - 2;
    s->quads = s->mode == LINEAR && x->dtype == DQ_FLOAT && s->axes == 2 && x->dims[2] > 1 && x->dims[3] > 1;
    s->plane = dq_dims_product(x->dims, 2, x->rank);
    s->positions = dq_dims_product(call->out[0]->dims, 2, x->rank);
    for (size_t d = 0; d < s->axes; d++) {
        s->dims[d] = x->dims[d + 2];
        s->strides[d] = strides[d + 2];
    }
    return DQ_OK;
}

/* ---- Positions ----------------------------------------------------------------------------------------- */

static double reflect(double x, double low, double high)
{
    double range = high - low;
    if (x >= low && x <= high)
        return x;
    if (range <= 0)
        return low;
    double off = x < low ? low - x : x - high, rest = fmod(off, range);
    bool even = fmod(floor(off / range), 2) == 0;
    return (x < low) == even ? low + rest : high - rest;
}

/* The index of a pixel; outside the image as the padding mode defines, -1 for zeros. */
static int64_t pixel(const state *s, double x, int64_t n)
{
    double last = (double)(n - 1);
    if (x >= 0 && x <= last)
        return (int64_t)x;
    if (s->padding == ZEROS)
        return -1;
    if (s->padding == REFLECTION)
        x = trunc(s->align ? reflect(x, 0, last) : reflect(x, -0.5, last + 0.5));
    return x > 0 ? (int64_t)fmin(x, last) : 0;
}

/* Weights of Keys' cubic convolution with a = -0.75, for a position `t` after the second of four pixels. */
static void cubic(double t, double weight[TAPS])
{
    static const double a = -0.75;
    for (int k = 0; k < TAPS; k++) {
        double d = fabs(t + 1 - k);
        weight[k] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    }
}

static void add_pixel(const state *s, size_t d, double x, double weight, taps *t)
{
    int64_t index = pixel(s, x, s->dims[d]);
    if (index < 0)
        return;
    t->at[t->count] = (size_t)index * s->strides[d];
    t->weight[t->count++] = weight;
}

/* Converts a position of the grid to pixels. */
static inline double axis_position(const state *s, size_t d, double position)
{
    double length = (double)s->dims[d];
    return (double)(float)(s->align ? (position + 1) / 2 * (length - 1) : ((position + 1) * length - 1) / 2);
}

static void axis_taps(const state *s, size_t d, double position, taps *t)
{
    double last = (double)(s->dims[d] - 1), x = axis_position(s, d, position);
    t->count = 0;
    if (!isfinite(x))
        x = s->padding == ZEROS ? -10 : 0; /* no position: treated as far outside */
    if (s->mode == NEAREST)
        x = nearbyint(x);
    /* without `align` the grid's range ends half a pixel outside the image, where cubic interpolation is
     * still defined */
    double margin = s->mode == CUBIC && !s->align ? 0.5 : 0;
    if (s->padding == BORDER)
        x = x < -margin || x > last + margin ? fmin(fmax(x, 0), last) : x;
    else if (s->padding == REFLECTION)
        x = s->align ? reflect(x, 0, last) : reflect(x, -0.5, last + 0.5);
    if (s->mode == NEAREST) {
        add_pixel(s, d, trunc(x), 1, t);
        return;
    }
    if (s->mode == LINEAR && x >= 0 && x < last) { /* between two pixels */
        size_t index = (size_t)(int64_t)x;
        double part = x - (double)(int64_t)x;
        *t = (taps){2, {index * s->strides[d], (index + 1) * s->strides[d]}, {1 - part, part}};
        return;
    }
    double first = floor(x), weight[TAPS] = {1 - (x - first), x - first};
    if (s->mode == CUBIC) {
        cubic(x - first, weight);
        first -= 1;
    }
    for (size_t k = 0; k < (s->mode == CUBIC ? TAPS : 2); k++)
        add_pixel(s, d, first + (double)k, weight[k], t);
}

/* The weighted sum over axes d and following. */
static double blend(const state *s, const dq_tensor *x, const taps *t, size_t d, size_t at)
{
    double sum = 0;
    if (d + 1 == s->axes)
        for (size_t k = 0; k < t[d].count; k++)
            sum += t[d].weight[k] * dq_tensor_get_double(x, at + t[d].at[k]);
    else
        for (size_t k = 0; k < t[d].count; k++)
            sum += t[d].weight[k] * blend(s, x, t, d + 1, at + t[d].at[k]);
    return sum;
}

/* The same for 4 × 4 floats. */
static inline double blend_floats(const float *x, const taps *t)
{
    double sum = 0;
#pragma GCC unroll 4
    for (size_t k = 0; k < TAPS; k++) {
        const float *row = x + t[0].at[k];
        double across = 0;
#pragma GCC unroll 4
        for (size_t i = 0; i < TAPS; i++)
            across += t[1].weight[i] * (double)row[t[1].at[i]];
        sum += t[0].weight[k] * across;
    }
    return sum;
}

/* Positions in a float image of two axes, in linear mode, as pairs of adjacent pixels: offset of the first of
 * four pixels, and their weights. */
typedef struct quads {
    size_t at[POSITIONS];
    double weight[4][POSITIONS];
} quads;

/* The pair of adjacent pixels of a position along an axis; one may have weight 0. Returns the offset of the
 * first one. If the position has no such pair, weight[0] is NaN. */
static size_t pair_of(const state *s, size_t d, double position, double weight[2])
{
    const double x = axis_position(s, d, position);
    const size_t step = s->strides[d], last = (size_t)s->dims[d] - 1;
    if (x >= 0 && x < (double)last) {
        const double first = (double)(int64_t)x;
        weight[0] = 1 - (x - first);
        weight[1] = x - first;
        return (size_t)first * step;
    }
    taps t;
    axis_taps(s, d, position, &t);
    const bool second = t.count == 1 && t.at[0] == last * step;
    weight[second] = t.count ? t.weight[0] : 0;
    weight[!second] = t.count > 1 ? t.weight[1] : 0;
    if (t.count < 2 || t.at[1] == t.at[0] + step)
        return t.count ? t.at[0] - second * step : 0;
    weight[0] = (double)NAN;
    return 0;
}

/* Samples positions by bilinear_f32. A NaN result may come from a pixel with weight 0, or from a position
 * without a pair: these are computed again by blend. */
static void put_quads(const dq_op_call *call, const quads *q, size_t first, size_t n, size_t base, float *y)
{
    const state *s = call->state;
    const bool odd = call->kernels->bilinear_f32(dq_data(call->in[X], float) + base, s->strides[0], q->at,
                                                 q->weight[0], POSITIONS, n, true, y);
    for (size_t k = 0; odd && k < n; k++)
        if (isnan(y[k])) {
            taps t[2];
            for (size_t d = 0; d < 2; d++)
                axis_taps(s, d, dq_tensor_get_double(call->in[GRID], (first + k) * 2 + 1 - d), &t[d]);
            y[k] = (float)blend(s, call->in[X], t, 0, base);
        }
}

/* Samples n positions of an image, from position `first` of all on, for all channels. */
static void sample_quads(const dq_op_call *call, size_t first, size_t n)
{
    const state *s = call->state;
    const size_t channels = (size_t)call->in[X]->dims[1], from = first / s->positions * channels;
    quads q;
    for (size_t k = 0; k < n; k++) {
        double row[2], column[2];
        q.at[k] = pair_of(s, 0, dq_tensor_get_double(call->in[GRID], (first + k) * 2 + 1), row);
        q.at[k] += pair_of(s, 1, dq_tensor_get_double(call->in[GRID], (first + k) * 2), column);
        for (size_t i = 0; i < 4; i++)
            q.weight[i][k] = row[i / 2] * column[i % 2];
    }
    for (size_t c = from; c < from + channels; c++)
        put_quads(call, &q, first, n, c * s->plane,
                  dq_data(call->out[0], float) + c * s->positions + first % s->positions);
}

/* Offsets of the nearest pixels in their image; SIZE_MAX: outside. */
static void find_nearest(const state *s, const taps *t, size_t n, size_t *at)
{
    for (size_t k = 0; k < n; k++) {
        bool inside = true;
        at[k] = 0;
        for (size_t d = 0; d < s->axes; d++, t++) {
            inside = inside && t->count;
            at[k] += t->count ? t->at[0] : 0;
        }
        at[k] = inside ? at[k] : SIZE_MAX;
    }
}

static void nearest(const dq_op_call *call, const size_t *at, size_t n, size_t base, size_t to)
{
    const dq_tensor *x = call->in[X];
    const size_t width = dq_element_width(x->dtype);
    char *y = (char *)call->out[0]->data + to * width;
    const char *from = (const char *)x->data + base * width;
    if (width == sizeof(float)) {
        for (size_t k = 0; k < n; k++) {
            uint32_t pixel = 0;
            if (at[k] != SIZE_MAX)
                memcpy(&pixel, from + at[k] * sizeof pixel, sizeof pixel);
            memcpy(y + k * sizeof pixel, &pixel, sizeof pixel);
        }
        return;
    }
    for (size_t k = 0; k < n; k++)
        if (at[k] != SIZE_MAX)
            dq_copy_elements(x, base + at[k], call->out[0], to + k, 1);
        else
            memset(y + k * width, 0, width);
}

/* Writes n results from `to` on for positions with these taps, in the channel whose image begins at `base`.
 */
static void put_positions(const dq_op_call *call, const taps *t, size_t n, size_t base, size_t to)
{
    const state *s = call->state;
    const dq_tensor *x = call->in[X];
    float *y = dq_data(call->out[0], float) + to;
    if (s->mode == CUBIC && x->dtype == DQ_FLOAT && s->axes == 2)
        for (size_t k = 0; k < n; k++, t += 2)
            y[k] =
                (float)(t[0].count == TAPS && t[1].count == TAPS ? blend_floats(dq_data(x, float) + base, t)
                                                                 : blend(s, x, t, 0, base));
    else
        for (size_t k = 0; k < n; k++, t += s->axes)
            dq_tensor_put_double(call->out[0], to + k, blend(s, x, t, 0, base));
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    size_t channels = (size_t)call->in[X]->dims[1];
    for (size_t i = begin, n; i < end; i += n) {
        taps t[LISTED];
        size_t batch = i / s->positions, position = i % s->positions, at[LISTED];
        n = end - i < s->positions - position ? end - i : s->positions - position;
        n = n < LISTED / s->axes ? n : LISTED / s->axes;
        if (s->quads) {
            sample_quads(call, i, n);
            continue;
        }
        for (size_t k = 0; k < n; k++)
            for (size_t d = 0; d < s->axes; d++)
                axis_taps(s, d, dq_tensor_get_double(call->in[GRID], (i + k + 1) * s->axes - 1 - d),
                          &t[k * s->axes + d]);
        if (s->mode == NEAREST)
            find_nearest(s, t, n, at);
        for (size_t c = batch * channels; c < (batch + 1) * channels; c++)
            if (s->mode == NEAREST)
                nearest(call, at, n, c * s->plane, c * s->positions + position);
            else
                put_positions(call, t, n, c * s->plane, c * s->positions + position);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    if (call->out[0]->count)
        dq_parallel(call->threads, (size_t)call->in[X]->dims[0] * s->positions, 64, piece, &call);
    return DQ_OK;
}

DQ_OP_WIDENED(dq_op_grid_sample, true, infer, prepare, run, 0)

/* ---- AffineGrid ---------------------------------------------------------------------------------------- */

static dq_status affine_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *theta = call->in[0], *size = call->in[1];
    if (size->rank != 1 || size->count < 4 || size->count > 5)
        return dq_call_fail_input(call, err, 1, "has %zu elements, expected 4 or 5", size->count);
    DQ_TRY(dq_call_need(call, 1));
    int64_t axes = (int64_t)size->count - 2, dims[5] = {dq_tensor_get_int(size, 0)};
    char text[DQ_SHAPE_TEXT];
    if (theta->rank != 3 || theta->dims[0] != dims[0] || theta->dims[1] != axes || theta->dims[2] != axes + 1)
        return dq_call_fail_input(call, err, 0,
                                  "has shape %s, expected [%" PRId64 ",%" PRId64 ",%" PRId64 "]",
                                  dq_shape_text(theta->rank, theta->dims, text), dims[0], axes, axes + 1);
    for (size_t d = 0; d < (size_t)axes; d++)
        dims[d + 1] = dq_tensor_get_int(size, d + 2);
    dims[axes + 1] = axes;
    return dq_call_output(call, 0, theta->dtype, (size_t)axes + 2, dims, err);
}

/* Position k of n along an axis, in [-1, 1]. */
static double affine_position(bool align, size_t k, int64_t count)
{
    const double n = (double)count;
    return align ? (n > 1 ? 2 * (double)k / (n - 1) - 1 : 0) : (2 * (double)k + 1) / n - 1;
}

/* Computes n columns of all rows of an image. The last axis contributes the same to each row. */
static void affine_columns(const double *matrix, bool align, size_t image, size_t first, size_t n,
                           dq_tensor *out)
{
    enum { AXES = 3 };
    const size_t axes = out->rank - 2u, columns = (size_t)out->dims[axes], numbers = n * axes;
    const size_t rows = dq_dims_product(out->dims, 1, axes);
    double column[LISTED * AXES], factors[AXES][LISTED * AXES], sums[LISTED * AXES];
    size_t coord[AXES] = {0};
    for (size_t i = 0; i < numbers; i++) {
        const double *row = matrix + i % axes * (axes + 1);
        column[i] = row[axes] + row[0] * affine_position(align, first + i / axes, out->dims[axes]);
        for (size_t d = 1; d < axes; d++)
            factors[d][i] = row[d];
    }
    for (size_t r = image * rows; r < (image + 1) * rows; r++) {
        for (size_t d = 1; d < axes; d++) {
            const double position = affine_position(align, coord[axes - 1 - d], out->dims[axes - d]);
            const double *from = d == 1 ? column : sums;
            for (size_t i = 0; i < numbers; i++)
                sums[i] = from[i] + factors[d][i] * position;
        }
        dq_store_floats(out->dtype, out->data, (r * columns + first) * axes, numbers, sums, true,
                        DQ_ROUND_NEAREST);
        dq_next_coord(axes - 1, out->dims + 1, coord);
    }
}

static dq_status affine_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_tensor *theta = call->in[0];
    dq_tensor *out = call->out[0];
    const size_t axes = out->rank - 2u, size = axes * (axes + 1), columns = (size_t)out->dims[axes];
    const bool align = dq_node_int(call->node, "align_corners", 0) != 0;
    for (size_t image = 0; out->count && image < (size_t)out->dims[0]; image++) {
        double matrix[12];
        dq_load_doubles(theta->dtype, theta->data, image * size, size, matrix);
        for (size_t first = 0, n; first < columns; first += n) {
            n = columns - first < LISTED ? columns - first : LISTED;
            affine_columns(matrix, align, image, first, n, out);
        }
    }
    return DQ_OK;
}

const dq_op_impl dq_op_affine_grid = {affine_infer, NULL, affine_run, 0};
