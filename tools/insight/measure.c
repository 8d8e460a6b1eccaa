/* SPDX-License-Identifier: Apache-2.0 */
#include "insight/measure.h"

#include "io/common.h"

#include <math.h>
#include <string.h>

double insight_element(const dq_tensor *t, size_t i)
{
    const void *data = dq_tensor_data(t);
    const dq_dtype dtype = dq_tensor_dtype(t);
    if (dtype == DQ_INT8)
        return ((const int8_t *)data)[i];
    if (dtype == DQ_UINT8)
        return ((const uint8_t *)data)[i];
    if (dtype == DQ_FLOAT) {
        float x;
        memcpy(&x, (const char *)data + i * sizeof x, sizeof x); /* constants of a file may be unaligned */
        return (double)x;
    }
    return dq_tensor_value(t, i);
}

/* Element i; `floats` are the tensor's where it has them. */
static double element(const dq_tensor *t, const float *floats, size_t i)
{
    return floats ? (double)floats[i] : insight_element(t, i);
}

static const float *floats_of(const dq_tensor *t)
{
    const float *data = dq_tensor_dtype(t) == DQ_FLOAT ? dq_tensor_data(t) : NULL;
    return (uintptr_t)data % _Alignof(float) ? NULL : data;
}

/* ---- Errors -------------------------------------------------------------------------------------------- */

static double decibels(double signal, double noise)
{
    return noise > 0 ? 10 * log10(signal / noise) : (double)INFINITY;
}

void insight_error_add_element(insight_error *e, double reference, double got)
{
    if (!isfinite(reference) || !isfinite(got)) {
        e->not_finite += !(reference == got || (isnan(reference) && isnan(got)));
        return;
    }
    const double d = got - reference;
    e->count++;
    e->signal += reference * reference;
    e->noise += d * d;
    e->product += reference * got;
    e->got_squares += got * got;
    e->bias += d;
    e->largest = fabs(d) > e->largest ? fabs(d) : e->largest;
}

static void note_input(insight_error *e, double signal, double noise, size_t input)
{
    const double sqnr = decibels(e->signal - signal, e->noise - noise);
    if (!e->inputs++ || sqnr < e->worst_sqnr) {
        e->worst_sqnr = sqnr;
        e->worst_input = input;
    }
}

bool insight_error_add(insight_error *e, const dq_tensor *reference, const dq_tensor *got, size_t input)
{
    const size_t count = dq_tensor_count(reference);
    const float *a = floats_of(reference), *b = floats_of(got);
    const double signal = e->signal, noise = e->noise;
    if (dq_tensor_count(got) != count)
        return false;
    for (size_t i = 0; i < count; i++)
        insight_error_add_element(e, element(reference, a, i), element(got, b, i));
    note_input(e, signal, noise, input);
    return true;
}

double insight_sqnr(const insight_error *e)
{
    return e->count ? decibels(e->signal, e->noise) : (double)NAN;
}

double insight_noise_ratio(const insight_error *e)
{
    return e->noise > 0 ? e->noise / e->signal : 0;
}

double insight_cosine(const insight_error *e)
{
    const double squares = sqrt(e->signal) * sqrt(e->got_squares);
    if (!e->count)
        return (double)NAN;
    return squares > 0 ? e->product / squares : e->noise > 0 ? 0 : 1;
}

double insight_rmse(const insight_error *e)
{
    return e->count ? sqrt(e->noise / (double)e->count) : (double)NAN;
}

double insight_mean_error(const insight_error *e)
{
    return e->count ? e->bias / (double)e->count : (double)NAN;
}

/* ---- Ranges -------------------------------------------------------------------------------------------- */

bool insight_code_range(dq_dtype dtype, int64_t *min, int64_t *max)
{
    const unsigned bits = dq_dtype_bits(dtype);
    if (!io_is_integer(dtype) || bits > 32)
        return false;
    *min = io_is_signed(dtype) ? -((int64_t)1 << (bits - 1)) : 0;
    *max = io_is_signed(dtype) ? ((int64_t)1 << (bits - 1)) - 1 : ((int64_t)1 << bits) - 1;
    return true;
}

dq_status insight_range_start(insight_range *r, dq_dtype dtype, double scale, double zero_point,
                              insight_pool *pool, dq_error *err)
{
    *r = (insight_range){.scale = scale, .zero_point = zero_point};
    if (!insight_code_range(dtype, &r->q_min, &r->q_max) || r->q_max - r->q_min > UINT16_MAX)
        return DQ_UNSUPPORTED;
    r->low = ((double)r->q_min - zero_point) * scale;
    r->high = ((double)r->q_max - zero_point) * scale;
    r->codes = insight_alloc(pool, (size_t)(r->q_max - r->q_min) + 1, sizeof *r->codes);
    return r->codes ? DQ_OK : io_no_memory(err);
}

/* The first input sets the histogram's ends, with as much again for later ones; values beyond go to the end
 * bins. */
static void start_bins(insight_range *r)
{
    const double largest = fmax(fabs(r->min), fabs(r->max));
    r->bins_low = r->min < 0 ? -2 * largest : 0;
    r->bins_high = r->max > 0 ? 2 * largest : 0;
    r->has_bins = r->bins_high > r->bins_low;
}

static void add_bin(insight_range *r, double x)
{
    const double at = (x - r->bins_low) / (r->bins_high - r->bins_low) * INSIGHT_BINS;
    r->bins[at <= 0 ? 0 : at >= INSIGHT_BINS - 1 ? INSIGHT_BINS - 1 : (size_t)at]++;
}

static void add_value(insight_range *r, double x)
{
    /* A float division, as QuantizeLinear does it. */
    const double q = nearbyint((double)((float)x / (float)r->scale)) + r->zero_point;
    const double code = fmin(fmax(q, (double)r->q_min), (double)r->q_max);
    const double beyond = x > r->high ? x - r->high : x < r->low ? r->low - x : 0;
    r->count++;
    r->clipped_low += q < (double)r->q_min;
    r->clipped_high += q > (double)r->q_max;
    r->clip_noise += beyond * beyond;
    r->at_zero_point += code == r->zero_point;
    r->codes[(int64_t)code - r->q_min]++;
    if (r->has_bins)
        add_bin(r, x);
}

void insight_range_add(insight_range *r, const dq_tensor *reference)
{
    const float *floats = floats_of(reference);
    const size_t count = dq_tensor_count(reference);
    bool first = !r->count;
    for (size_t i = 0; i < count; i++) {
        const double x = element(reference, floats, i);
        if (!isfinite(x))
            continue;
        r->min = first || x < r->min ? x : r->min;
        r->max = first || x > r->max ? x : r->max;
        first = false;
    }
    if (!r->has_bins)
        start_bins(r);
    for (size_t i = 0; i < count; i++) {
        const double x = element(reference, floats, i);
        if (isfinite(x))
            add_value(r, x);
    }
}

uint64_t insight_codes_used(const insight_range *r)
{
    uint64_t used = 0;
    for (int64_t i = 0; i <= r->q_max - r->q_min; i++)
        used += r->codes[i] > 0;
    return used;
}

double insight_entropy(const insight_range *r)
{
    double bits = 0;
    for (int64_t i = 0; i <= r->q_max - r->q_min; i++) {
        const double share = r->count ? (double)r->codes[i] / (double)r->count : 0;
        bits -= share > 0 ? share * log2(share) : 0;
    }
    return fabs(bits);
}

double insight_range_used(const insight_range *r)
{
    const double width = r->high - r->low, low = fmax(r->min, r->low), high = fmin(r->max, r->high);
    return r->count && width > 0 && high > low ? (high - low) / width : 0;
}

double insight_percentile(const insight_range *r, double share)
{
    const double width = (r->bins_high - r->bins_low) / INSIGHT_BINS;
    const double largest = fmax(fabs(r->min), fabs(r->max));
    uint64_t outside = 0;
    if (!r->has_bins)
        return largest;
    for (double t = largest; t > 0; t -= width) { /* bins wholly beyond t on either side */
        outside = 0;
        for (size_t i = 0; i < INSIGHT_BINS; i++) {
            const double from = r->bins_low + (double)i * width;
            outside += from >= t || from + width <= -t ? r->bins[i] : 0;
        }
        if ((double)outside > (1 - share) * (double)r->count)
            return fmin(t + width, largest);
    }
    return fmin(width, largest);
}
