/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/vision/resize_axis.h"

#include "base/checked.h"
#include "ops/rows.h"

#include <math.h>

/* The input coordinate of output element i. Lengths that come from a scale keep their fraction. */
static double position(const dq_resize *r, const dq_resize_axis *a, size_t i)
{
    double x = (double)i, in = (double)a->in, width = a->scale * in;
    double span = r->coordinate == DQ_TF_CROP_AND_RESIZE ? (double)a->out - 1 : width - 1;
    switch (r->coordinate) {
    case DQ_HALF_PIXEL:
        return (x + 0.5) / a->scale - 0.5;
    case DQ_HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - (double)a->out / width) + (x + 0.5) / a->scale - 0.5;
    case DQ_PYTORCH_HALF_PIXEL:
        return a->out > 1 ? (x + 0.5) / a->scale - 0.5 : 0;
    case DQ_ALIGN_CORNERS:
        return span == 0 ? 0 : x * (in - 1) / span;
    case DQ_ASYMMETRIC:
        return x / a->scale;
    case DQ_TF_CROP_AND_RESIZE:
        if (a->out == 1)
            return 0.5 * (a->roi_start + a->roi_end) * (in - 1);
        return a->roi_start * (in - 1) + x * (a->roi_end - a->roi_start) * (in - 1) / span;
    case DQ_TF_HALF_PIXEL_FOR_NN:
        break;
    }
    return (x + 0.5) / a->scale;
}

static size_t clamp(double x, size_t n)
{
    if (!(x > 0)) /* NaN, too */
        return 0;
    return x >= (double)(n - 1) ? n - 1 : (size_t)x;
}

static double nearest(const dq_resize *r, double x)
{
    switch (r->nearest) {
    case DQ_ROUND_PREFER_FLOOR:
        return ceil(x - 0.5);
    case DQ_ROUND_PREFER_CEIL:
        return floor(x + 0.5);
    case DQ_NEAREST_FLOOR:
        return floor(x);
    case DQ_NEAREST_CEIL:
        break;
    }
    return ceil(x);
}

/* The interpolation kernel at distance x: a triangle, or Keys' cubic convolution kernel (1981). */
static double kernel(const dq_resize *r, double x)
{
    double a = r->cubic_a;
    x = fabs(x);
    if (r->mode == DQ_RESIZE_LINEAR)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Computes indices and weights of the elements around x. With antialiasing, downscaling widens the kernel. */
static void fill_taps(const dq_resize *r, dq_resize_axis *a, size_t i, double x)
{
    double span = r->antialias && a->scale < 1 ? a->scale : 1, sum = 0;
    double first = floor(x) - (double)(a->taps / 2) + 1, last = (double)(a->in - 1);
    double *weight = a->weight + i * a->taps;
    for (size_t t = 0; t < a->taps; t++) {
        double at = first + (double)t;
        weight[t] = r->exclude_outside && (at < 0 || at > last) ? 0 : kernel(r, (at - x) * span);
        a->index[i * a->taps + t] = clamp(at, a->in);
        sum += weight[t];
    }
    for (size_t t = 0; t < a->taps && sum != 0; t++)
        weight[t] /= sum;
}

dq_status dq_resize_axis_make(const dq_resize *r, dq_resize_axis *a, dq_arena *arena, dq_error *err)
{
    double reach = r->mode == DQ_RESIZE_CUBIC ? 2 : 1; /* half-width of the kernel */
    if (r->antialias && a->scale < 1)
        reach = ceil(reach / a->scale);
    a->taps = r->mode == DQ_RESIZE_NEAREST ? 1 : 2 * (size_t)reach;
    size_t count = a->out;
    if (!dq_mul_size(a->out, a->taps, &count))
        return dq_no_memory(err, SIZE_MAX, "the table of a resized axis");
    a->index = DQ_NEW_ARRAY(arena, count, size_t);
    a->weight = DQ_NEW_ARRAY(arena, count, double);
    bool crop = r->coordinate == DQ_TF_CROP_AND_RESIZE;
    a->outside = crop ? DQ_NEW_ARRAY(arena, a->out, bool) : NULL;
    if (!a->index || !a->weight || (crop && !a->outside))
        return dq_no_memory(err, count * (sizeof(size_t) + sizeof(double)), "the table of a resized axis");
    for (size_t i = 0; i < a->out; i++) {
        double x = position(r, a, i);
        if (crop)
            a->outside[i] = !(x >= 0 && x <= (double)(a->in - 1));
        if (r->mode == DQ_RESIZE_NEAREST) {
            a->index[i] = clamp(nearest(r, x), a->in);
            a->weight[i] = 1;
        } else {
            fill_taps(r, a, i, x);
        }
    }
    return DQ_OK;
}

bool dq_resize_is_twice(const dq_resize_axis *a)
{
    bool twice = a->index && a->out == 2 * a->in && a->taps == 1;
    for (size_t i = 0; twice && i < a->out; i++)
        twice = a->index[i] == i / 2;
    return twice;
}

dq_status dq_resize_axis_widen(dq_resize_axis *a, size_t n, dq_arena *arena, dq_error *err)
{
    const size_t taps = a->taps;
    size_t count;
    if (!dq_mul_size(a->out * taps, n, &count))
        return dq_no_memory(err, SIZE_MAX, "an axis");
    size_t *index = DQ_NEW_ARRAY(arena, count, size_t);
    double *weight = DQ_NEW_ARRAY(arena, count, double);
    if (!index || !weight)
        return dq_no_memory(err, count * sizeof *index, "an axis");
    for (size_t i = 0; i < a->out; i++)
        for (size_t c = 0; c < n; c++)
            for (size_t t = 0; t < taps; t++) {
                index[(i * n + c) * taps + t] = a->index[i * taps + t] * n + c;
                weight[(i * n + c) * taps + t] = a->weight[i * taps + t];
            }
    a->index = index;
    a->weight = weight;
    a->in *= n;
    a->out *= n;
    return DQ_OK;
}

void dq_resize_leave_out(dq_resize_axis *a)
{
    for (size_t i = 0; a->taps > 1 && i < a->taps * a->out; i++)
        a->index[i] = a->weight[i] != 0 ? a->index[i] : a->in;
}

bool dq_resize_is_mean(const dq_resize_axis *a, size_t taps)
{
    bool mean = a->index && !a->outside && a->taps == taps && (taps > 1 || a->out == a->in);
    for (size_t i = 0; mean && i < taps * a->out; i++)
        mean = a->index[i] == i && a->weight[i] == 1 / (double)taps;
    return mean;
}

/* ---- Results ------------------------------------------------------------------------------------------- */

/* Stores 32-bit or narrower integers: truncated toward zero, saturated; NaN gives 0. */
static void put_ints(dq_tensor *out, size_t at, const double *row, size_t n)
{
    const dq_dtype_row *type = dq_dtype_get(out->dtype);
    const double low = (double)type->min, high = (double)type->max;
    for (size_t done = 0, some; done < n; done += some) {
        int64_t ints[DQ_ROW];
        some = n - done < DQ_ROW ? n - done : DQ_ROW;
        for (size_t i = 0; i < some; i++) {
            double x = row[done + i];
            x = x >= low ? x : x < low ? low : 0;
            ints[i] = (int32_t)(x <= high ? x : high);
        }
        dq_store_ints(out->dtype, out->data, at + done, some, ints);
    }
}

/* The weighted sum of `taps` elements. */
static inline double weigh(const double *x, const size_t *index, const double *weight, size_t taps)
{
    double sum = 0;
#pragma GCC unroll 4
    for (size_t t = 0; t < taps; t++)
        sum += weight[t] * x[index[t]];
    return sum;
}

void dq_resize_along(const dq_resize_axis *a, double *restrict x, double *restrict to)
{
    const size_t *restrict index = a->index, taps = a->taps, n = a->out;
    const double *restrict weight = a->weight;
    x[a->in] = 0;
    if (taps == 2)
        for (size_t i = 0; i < n; i++)
            to[i] = 0 + weight[2 * i] * x[index[2 * i]] + weight[2 * i + 1] * x[index[2 * i + 1]];
    else if (taps == 4)
        for (size_t i = 0; i < n; i++)
            to[i] = weigh(x, index + 4 * i, weight + 4 * i, 4);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = taps == 1 ? x[index[i]] : weigh(x, index + i * taps, weight + i * taps, taps);
}

void dq_resize_put(dq_tensor *out, size_t at, const double *row, size_t n)
{
    if (out->dtype == DQ_FLOAT)
        dq_store_floats(DQ_FLOAT, out->data, at, n, row, false, DQ_ROUND_NEAREST);
    else if (dq_dtype_is_int(out->dtype) && dq_dtype_get(out->dtype)->max <= INT32_MAX)
        put_ints(out, at, row, n);
    else
        for (size_t i = 0; i < n; i++)
            dq_tensor_put_double(out, at + i, row[i]);
}
