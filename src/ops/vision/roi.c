/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlign and MaxRoiPool: resample regions of images to a fixed size. Coordinates are in double. */
#include "base/checked.h"
#include "ops/op.h"
#include "ops/widened.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { X, ROIS, BATCH };
enum { MAX_SAMPLES = 1 << 16 /* along an axis of a bin */ };
/* MAX_LISTED_SAMPLES: most samples of one bin in a list. CACHED_SAMPLES: samples of several bins in a list,
 * which fit the L1 cache.
 */
enum { MAX_LISTED_SAMPLES = 1024, CACHED_SAMPLES = 256 };

typedef struct state {
    size_t channels, height, width, bins_high, bins_wide;
    double scale, offset;
    bool max, at_least_one; /* at_least_one: regions are enlarged to at least one pixel */
    bool quads;             /* samples are listed for bilinear_f32 */
    int64_t ratio;
} state;

static dq_status infer_shape(dq_op_call *call, int64_t rows, int64_t cols, uint32_t roi_size, dq_error *err)
{
    const dq_tensor *x = call->in[X], *rois = call->in[ROIS];
    char text[DQ_SHAPE_TEXT];
    if (x->rank != 4)
        return dq_call_fail_input(call, err, X, "has rank %u, expected 4", x->rank);
    if (rois->rank != 2 || rois->dims[1] != roi_size)
        return dq_call_fail_input(call, err, ROIS, "has shape %s, expected rows of %u numbers",
                                  dq_shape_text(rois->rank, rois->dims, text), roi_size);
    if (rows < 1 || cols < 1)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "pools to %" PRId64 "x%" PRId64 ", expected 1 or more",
                            rows, cols);
    const int64_t dims[4] = {rois->dims[0], x->dims[1], rows, cols};
    return dq_call_output(call, 0, x->dtype, 4, dims, err);
}

static state *new_state(dq_op_call *call, dq_error *err)
{
    if (dq_call_state(call, sizeof(state), err) != DQ_OK)
        return NULL;
    state *s = call->state;
    const int64_t *in = call->in[X]->dims, *out = call->out[0]->dims;
    *s = (state){.channels = (size_t)in[1],
                 .height = (size_t)in[2],
                 .width = (size_t)in[3],
                 .bins_high = (size_t)out[2],
                 .bins_wide = (size_t)out[3],
                 .scale = (double)dq_node_float(call->node, "spatial_scale", 1)};
    return s;
}

static dq_status read_image(const dq_op_call *call, double value, size_t *image, dq_error *err)
{
    int64_t images = call->in[X]->dims[0];
    if (!(value >= 0 && value < (double)images))
        return dq_call_fail(call, err, DQ_BAD_INPUT, "has a region of image %g, expected 0 to %" PRId64,
                            value, images - 1);
    *image = (size_t)value;
    return DQ_OK;
}

/* ---- RoiAlign ------------------------------------------------------------------------------------------ */

static dq_status align_infer(dq_op_call *call, dq_error *err)
{
    const char *mode = dq_node_string(call->node, "mode", "avg");
    const char *how = dq_node_string(call->node, "coordinate_transformation_mode", "half_pixel");
    if (strcmp(mode, "avg") != 0 && strcmp(mode, "max") != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'mode' is '%s', expected avg or max", mode);
    if (strcmp(how, "half_pixel") != 0 && strcmp(how, "output_half_pixel") != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'coordinate_transformation_mode' is '%s', expected half_pixel or "
                            "output_half_pixel",
                            how);
    if (call->in[BATCH]->rank != 1 || call->in[BATCH]->dims[0] != call->in[ROIS]->dims[0])
        return dq_call_fail_input(call, err, BATCH, "has %zu elements, expected one for each region",
                                  call->in[BATCH]->count);
    return infer_shape(call, dq_node_int(call->node, "output_height", 1),
                       dq_node_int(call->node, "output_width", 1), 4, err);
}

/* The four pixels of a sample: offsets in the image, and weights. */
typedef struct corner {
    size_t at[4];
    double weight[4];
} corner;

/* A sample of a region, the same for all channels. */
typedef struct sample_at {
    bool inside;
    corner at;
} sample_at;

/* Samples as operands of bilinear_f32, and its results. */
typedef struct quads {
    size_t at[MAX_LISTED_SAMPLES];
    double weight[4][MAX_LISTED_SAMPLES], sums[MAX_LISTED_SAMPLES];
} quads;

/* The weights of one row or column of pixels over many samples of a bin: their sum and extremes. */
typedef struct line {
    double sum, most, least;
    bool met, zero; /* met: a sample uses it; zero: with weight 0 */
} line;

/* The pixel rows (or columns) that samples use along one axis, and the number of samples inside the image. */
typedef struct span {
    line *lines;
    size_t first, end, inside;
} span;

static dq_status align_prepare(dq_op_call *call, dq_error *err)
{
    state *s = new_state(call, err);
    if (!s)
        return DQ_OUT_OF_MEMORY;
    const char *how = dq_node_string(call->node, "coordinate_transformation_mode", "half_pixel");
    bool half = call->version >= 16 && strcmp(how, "half_pixel") == 0;
    s->max = strcmp(dq_node_string(call->node, "mode", "avg"), "max") == 0;
    s->offset = half ? 0.5 : 0;
    s->at_least_one = !half;
    s->ratio = dq_node_int(call->node, "sampling_ratio", 0);
    s->quads = !s->max && call->in[X]->dtype == DQ_FLOAT && s->height > 1 && s->width > 1;
    call->scratch_size = s->quads ? sizeof(quads) : MAX_LISTED_SAMPLES * sizeof(sample_at);
    size_t lines;
    if (!dq_add_size(s->height, s->width, &lines) || !dq_mul_size(lines, sizeof(line), &lines))
        return dq_no_memory(err, SIZE_MAX, "the samples of a bin");
    if (lines > call->scratch_size)
        call->scratch_size = lines;
    return DQ_OK;
}

/* The four pixels around a position and their weights; false if it is outside the image. In the last row or
 * column both pixels are the same; or, with `neighbours`, the first is the one before, with weight 0. */
static bool corners(const state *s, bool neighbours, double y, double x, corner *c)
{
    if (!(y >= -1 && y <= (double)s->height && x >= -1 && x <= (double)s->width))
        return false;
    double position[2] = {fmax(y, 0), fmax(x, 0)}, part[2];
    size_t size[2] = {s->height, s->width}, low[2], high[2];
    for (int d = 0; d < 2; d++) {
        low[d] = (size_t)position[d];
        bool last = low[d] + 1 >= size[d];
        low[d] = last ? size[d] - 1 - neighbours : low[d];
        high[d] = last && !neighbours ? low[d] : low[d] + 1;
        part[d] = last ? neighbours : position[d] - (double)low[d];
    }
    *c = (corner){
        {low[0] * s->width + low[1], low[0] * s->width + high[1], high[0] * s->width + low[1],
         high[0] * s->width + high[1]},
        {(1 - part[0]) * (1 - part[1]), (1 - part[0]) * part[1], part[0] * (1 - part[1]), part[0] * part[1]}};
    return true;
}

typedef struct region {
    size_t plane; /* first element of the channel's image */
    double top, left, bin_high, bin_wide;
    size_t samples_high, samples_wide; /* of a bin */
} region;

/* Sample i of a bin; false if it is outside the image. `neighbours`: see corners. */
static bool sample(const state *s, const region *r, size_t bin, size_t i, bool neighbours, corner *c)
{
    double high = (double)(i / r->samples_wide) + 0.5, wide = (double)(i % r->samples_wide) + 0.5;
    const size_t row = bin / s->bins_wide, col = bin % s->bins_wide;
    double y = r->top + ((double)row + high / (double)r->samples_high) * r->bin_high;
    double x = r->left + ((double)col + wide / (double)r->samples_wide) * r->bin_wide;
    return corners(s, neighbours, y, x, c);
}

/* Number of bins whose samples are listed at a time; 0: there are no samples. */
static size_t listed_bins(const region *r)
{
    size_t each = r->samples_high * r->samples_wide;
    return !each ? 0 : each > CACHED_SAMPLES ? 1 : CACHED_SAMPLES / each;
}

/* Lists the samples of n bins for bilinear_f32, bin by bin. */
static void list_quads(const dq_op_call *call, const region *r, size_t first, size_t n)
{
    const state *s = call->state;
    const size_t each = r->samples_high * r->samples_wide;
    quads *q = call->scratch;
    for (size_t i = 0; i < n * each; i++) {
        corner c = {{0}, {0}};
        sample(s, r, first + i / each, i % each, true, &c);
        q->at[i] = c.at[0];
        for (size_t p = 0; p < 4; p++)
            q->weight[p][i] = c.weight[p];
    }
}

/* Lists the samples of n bins, bin by bin; NULL if there are none. */
static const sample_at *list_samples(const dq_op_call *call, const region *r, size_t first, size_t n)
{
    const state *s = call->state;
    size_t each = r->samples_high * r->samples_wide;
    sample_at *list = call->scratch;
    if (!listed_bins(r))
        return NULL;
    for (size_t i = 0; i < n * each; i++) {
        list[i].inside = sample(s, r, first + i / each, i % each, false, &list[i].at);
    }
    return list;
}

/* Sample i of a bin: from its list, or computed into `workspace`. */
static inline const sample_at *sample_of(const state *s, const region *r, size_t bin, size_t i,
                                         const sample_at *list, sample_at *workspace)
{
    if (list)
        return &list[i];
    workspace->inside = sample(s, r, bin, i, false, &workspace->at);
    return workspace;
}

/* fmax that returns the first operand for 0 and -0, on every machine. */
static double larger(double a, double b)
{
    return a >= b || isnan(b) ? a : b;
}

/* The maximum of the weighted pixels of a bin's samples; samples outside the image are 0. */
static double largest_in_bin(const state *s, const dq_tensor *x, const region *r, size_t bin,
                             const sample_at *list)
{
    double most = 0;
    for (size_t i = 0; i < r->samples_high * r->samples_wide; i++) {
        sample_at made;
        const sample_at *here = sample_of(s, r, bin, i, list, &made);
        double value = here->inside ? -(double)INFINITY : 0;
        for (int n = 0; n < 4 && here->inside; n++)
            value = larger(value, here->at.weight[n] * dq_tensor_get_double(x, r->plane + here->at.at[n]));
        most = i ? larger(most, value) : value;
    }
    return most;
}

static double mean_of_bin(const state *s, const dq_tensor *x, const region *r, size_t bin,
                          const sample_at *list)
{
    double sum = 0;
    size_t count = r->samples_high * r->samples_wide;
    for (size_t i = 0; i < count; i++) {
        sample_at made;
        const sample_at *here = sample_of(s, r, bin, i, list, &made);
        const corner *c = &here->at;
        double part[4];
        for (int n = 0; n < 4 && here->inside; n++)
            part[n] = c->weight[n] * dq_tensor_get_double(x, r->plane + c->at[n]);
        sum += here->inside ? (part[0] + part[1]) + (part[2] + part[3]) : 0;
    }
    return count > 0 ? sum / (double)count : 0;
}

/* Pools bins first … end - 1 of one channel of a region, whose output begins at element `to`. */
static void pool_bins(const dq_op_call *call, const region *r, const sample_at *list, size_t first,
                      size_t end, size_t to)
{
    const state *s = call->state;
    const dq_tensor *x = call->in[X];
    size_t each = r->samples_high * r->samples_wide;
    for (size_t bin = first; bin < end; bin++, list = list ? list + each : NULL)
        dq_tensor_put_double(call->out[0], to + bin,
                             (s->max ? largest_in_bin : mean_of_bin)(s, x, r, bin, list));
}

/* The same with samples listed as quads. A NaN result may come from a pixel with weight 0: it is computed
 * again. */
static void pool_quads(const dq_op_call *call, const region *r, size_t first, size_t end, size_t to)
{
    const state *s = call->state;
    const size_t each = r->samples_high * r->samples_wide;
    quads *q = call->scratch;
    const double *at = q->sums;
    float *y = dq_data(call->out[0], float) + to;
    const bool odd =
        call->kernels->bilinear_f32(dq_data(call->in[X], float) + r->plane, s->width, q->at, q->weight[0],
                                    MAX_LISTED_SAMPLES, (end - first) * each, false, q->sums);
    for (size_t bin = first; bin < end; bin++) {
        double sum = 0;
        for (size_t i = 0; i < each; i++)
            sum += *at++;
        y[bin] = (float)(sum / (double)each);
        if (odd && isnan(y[bin]))
            pool_bins(call, r, NULL, bin, bin + 1, to);
    }
}

/* ---- Many samples -------------------------------------------------------------------------------------- */

/* A sample's weight is the product of a row weight and a column weight, and the samples of a bin form a full
 * grid of rows and columns. Sums and extremes of products therefore follow from those of rows and of columns.
 * The time of a bin depends on its number of pixels, not of samples. */

static void meet(span *at, size_t i, double weight)
{
    line *l = &at->lines[i];
    if (!l->met)
        *l = (line){.most = weight, .least = weight, .met = true};
    l->sum += weight;
    l->most = fmax(l->most, weight);
    l->least = fmin(l->least, weight);
    l->zero = l->zero || weight == 0;
    at->first = i < at->first ? i : at->first;
    at->end = i >= at->end ? i + 1 : at->end;
}

/* Samples along an axis of `size` pixels, weighted as by `corners`; samples outside the image count as 0. */
static void find_span(span *at, size_t size, double begin, size_t bin, double bin_size, size_t samples)
{
    at->first = size;
    at->end = at->inside = 0;
    memset(at->lines, 0, size * sizeof *at->lines);
    for (size_t i = 0; i < samples; i++) {
        const double position = begin + ((double)bin + ((double)i + 0.5) / (double)samples) * bin_size;
        if (!(position >= -1 && position <= (double)size))
            continue;
        const double from = fmax(position, 0);
        const bool last = (size_t)from + 1 >= size;
        const size_t low = last ? size - 1 : (size_t)from;
        const double part = last ? 0 : from - (double)low;
        meet(at, low, 1 - part);
        meet(at, last ? low : low + 1, part);
        at->inside++;
    }
}

static double mean_of_lines(const state *s, const dq_tensor *x, const region *r, const span at[2])
{
    double sum = 0;
    for (size_t row = at[0].first; row < at[0].end; row++)
        for (size_t col = at[1].first; col < at[1].end; col++) {
            const line *high = &at[0].lines[row], *wide = &at[1].lines[col];
            if (!high->met || !wide->met)
                continue;
            const double pixel = dq_tensor_get_double(x, r->plane + row * s->width + col);
            const bool lost = !isfinite(pixel) && (high->zero || wide->zero); /* 0 times infinity */
            sum += lost ? (double)NAN : high->sum * wide->sum * pixel;
        }
    return sum / ((double)r->samples_high * (double)r->samples_wide);
}

static double largest_of_lines(const state *s, const dq_tensor *x, const region *r, const span at[2])
{
    const bool outside = at[0].inside < r->samples_high || at[1].inside < r->samples_wide;
    double most = outside ? 0 : -(double)INFINITY;
    for (size_t row = at[0].first; row < at[0].end; row++)
        for (size_t col = at[1].first; col < at[1].end; col++) {
            const line *high = &at[0].lines[row], *wide = &at[1].lines[col];
            const double pixel = dq_tensor_get_double(x, r->plane + row * s->width + col);
            if (high->met && wide->met)
                most =
                    larger(most, (pixel < 0 ? high->least * wide->least : high->most * wide->most) * pixel);
        }
    return most;
}

/* Pools all bins of one image's channels. */
static void pool_lines(const dq_op_call *call, region *r, size_t image, size_t to)
{
    const state *s = call->state;
    span at[2] = {{.lines = call->scratch}, {.lines = (line *)call->scratch + s->height}};
    for (size_t row = 0; row < s->bins_high && !dq_threads_cancelled(call->threads); row++) {
        find_span(&at[0], s->height, r->top, row, r->bin_high, r->samples_high);
        for (size_t col = 0; col < s->bins_wide; col++) {
            find_span(&at[1], s->width, r->left, col, r->bin_wide, r->samples_wide);
            for (size_t c = 0; c < s->channels && !dq_threads_cancelled(call->threads); c++) {
                r->plane = (image * s->channels + c) * s->height * s->width;
                dq_tensor_put_double(call->out[0], to + (c * s->bins_high + row) * s->bins_wide + col,
                                     (s->max ? largest_of_lines : mean_of_lines)(s, call->in[X], r, at));
            }
        }
    }
}

static dq_status align_region(const dq_op_call *call, size_t n, region *r, dq_error *err)
{
    const state *s = call->state;
    double edge[4], size[2], bins[2] = {(double)s->bins_wide, (double)s->bins_high}, samples[2];
    for (size_t k = 0; k < 4; k++)
        edge[k] = dq_tensor_get_double(call->in[ROIS], n * 4 + k) * s->scale - s->offset;
    for (size_t d = 0; d < 2; d++) {
        size[d] = edge[d + 2] - edge[d];
        if (s->at_least_one)
            size[d] = fmax(size[d], 1);
        samples[d] = s->ratio > 0 ? (double)s->ratio : fmax(ceil(size[d] / bins[d]), 0);
        if (!(samples[d] <= MAX_SAMPLES))
            return dq_call_fail(call, err, DQ_BAD_INPUT, "takes %g samples of a bin, and at most %d run",
                                samples[d], MAX_SAMPLES);
    }
    *r = (region){.plane = 0,
                  .top = edge[1],
                  .left = edge[0],
                  .bin_high = size[1] / bins[1],
                  .bin_wide = size[0] / bins[0],
                  .samples_high = (size_t)samples[1],
                  .samples_wide = (size_t)samples[0]};
    return DQ_OK;
}

static dq_status align_run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    size_t bins = s->bins_high * s->bins_wide, plane = s->height * s->width;
    for (size_t n = 0; plane && n < (size_t)call->in[ROIS]->dims[0] && !dq_threads_cancelled(call->threads);
         n++) {
        region r = {0};
        size_t image = 0;
        DQ_TRY(read_image(call, (double)dq_tensor_get_int(call->in[BATCH], n), &image, err));
        DQ_TRY(align_region(call, n, &r, err));
        if (r.samples_high * r.samples_wide > MAX_LISTED_SAMPLES) {
            pool_lines(call, &r, image, n * s->channels * bins);
            continue;
        }
        for (size_t first = 0, few; first < bins; first += few) {
            few = bins - first;
            few = listed_bins(&r) && listed_bins(&r) < few ? listed_bins(&r) : few;
            const bool listed = s->quads && listed_bins(&r);
            const sample_at *list = NULL;
            if (listed)
                list_quads(call, &r, first, few);
            else if (!s->quads)
                list = list_samples(call, &r, first, few);
            for (size_t c = 0; c < s->channels && !dq_threads_cancelled(call->threads); c++) {
                const size_t to = (n * s->channels + c) * bins;
                r.plane = (image * s->channels + c) * plane;
                if (listed)
                    pool_quads(call, &r, first, first + few, to);
                else
                    pool_bins(call, &r, list, first, first + few, to);
            }
        }
    }
    if (!plane && call->out[0]->size)
        memset(call->out[0]->data, 0, call->out[0]->size);
    return DQ_OK;
}

DQ_OP_WIDENED(dq_op_roi_align, true, align_infer, align_prepare, align_run, 0)

/* ---- MaxRoiPool ---------------------------------------------------------------------------------------- */

static dq_status pool_infer(dq_op_call *call, dq_error *err)
{
    size_t count = 0;
    const int64_t *shape = dq_node_ints(call->node, "pooled_shape", &count);
    if (count != 2)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'pooled_shape' has %zu elements, expected 2",
                            count);
    return infer_shape(call, shape[0], shape[1], 5, err);
}

static dq_status pool_prepare(dq_op_call *call, dq_error *err)
{
    return new_state(call, err) ? DQ_OK : DQ_OUT_OF_MEMORY;
}

/* Pixels *from … *to - 1 of a bin along an axis of n pixels, for a region from `first` to `last`. */
static void bin_range(double first, double last, size_t bin, size_t bins, size_t n, size_t *from, size_t *to)
{
    double size = fmax(last - first + 1, 1) / (double)bins;
    double low = floor((double)bin * size) + first, high = ceil((double)(bin + 1) * size) + first;
    *from = (size_t)fmin(fmax(low, 0), (double)n);
    *to = (size_t)fmin(fmax(high, 0), (double)n);
}

static double largest(const state *s, const dq_tensor *x, size_t plane, const double edge[4], size_t bin)
{
    size_t top, bottom, left, right;
    double most = -(double)INFINITY;
    bin_range(edge[1], edge[3], bin / s->bins_wide, s->bins_high, s->height, &top, &bottom);
    bin_range(edge[0], edge[2], bin % s->bins_wide, s->bins_wide, s->width, &left, &right);
    for (size_t row = top; row < bottom; row++)
        for (size_t col = left; col < right; col++)
            most = larger(most, dq_tensor_get_double(x, plane + row * s->width + col));
    return top < bottom && left < right ? most : 0;
}

static dq_status pool_run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    size_t bins = s->bins_high * s->bins_wide;
    for (size_t n = 0; n < (size_t)call->in[ROIS]->dims[0]; n++) {
        size_t image = 0;
        double edge[4];
        DQ_TRY(read_image(call, dq_tensor_get_double(call->in[ROIS], n * 5), &image, err));
        for (size_t k = 0; k < 4; k++)
            edge[k] = round(dq_tensor_get_double(call->in[ROIS], n * 5 + 1 + k) * s->scale);
        for (size_t i = 0; i < s->channels * bins && !dq_threads_cancelled(call->threads); i++) {
            size_t plane = (image * s->channels + i / bins) * s->height * s->width;
            dq_tensor_put_double(call->out[0], n * s->channels * bins + i,
                                 largest(s, call->in[X], plane, edge, i % bins));
        }
    }
    return DQ_OK;
}

const dq_op_impl dq_op_max_roi_pool = {pool_infer, pool_prepare, pool_run, 0};
