/* SPDX-License-Identifier: Apache-2.0 */
/* Template: the members of dq_pool_f32. Included once per ISA level, after its vec_<isa>.h; the including
 * file fills its record with FLOAT_POOL. The last vector of a row may overlap the one before it and
 * recomputes the same elements. */
#include "kernels/pool/float_pool.h"

#include <math.h>
#include <string.h>

/* Maximum that keeps a NaN of u or v. */
static inline vf pool_larger(vf u, vf v)
{
    return vf_pick(vf_unordered(u, u), u, vf_max(u, v));
}

/* Start of the vector after the one at i; n if that was the last one. */
static inline size_t pool_next(size_t i, size_t lanes, size_t n)
{
    i += lanes;
    return i >= n || i + lanes <= n ? i : n - lanes;
}

static inline void pool_store_first(float *y, size_t n, vf v)
{
#ifdef vf_store_first
    vf_store_first(y, n, v);
#else
    float few[VF_LANES];
    vf_store(few, v);
    memcpy(y, few, n * sizeof *y);
#endif
}

/* The maximum of rows shorter than a vector. */
static void pool_max_short(const dq_pool_lines *p, const float *x, float *line)
{
    const size_t n = p->n;
#ifdef vf_load_first
    vf most = vf_load_first(x + p->at[0], n);
    for (size_t r = 1; r < p->under; r++)
        most = pool_larger(most, vf_load_first(x + p->at[r], n));
    vf_store_first(line, n, most);
#else
    for (size_t i = 0; i < n; i++) {
        float most = x[p->at[0] + i];
        for (size_t r = 1; r < p->under; r++)
            most = most > x[p->at[r] + i] || most != most ? most : x[p->at[r] + i];
        line[i] = most;
    }
#endif
}

/* One line. The usual three rows have their pointers in registers. */
static void pool_max_line(const dq_pool_lines *p, const float *x, float *line)
{
    const size_t *at = p->at, under = p->under, n = p->n;
    const float *first = x + at[0], *second = x + at[under > 1], *third = x + at[under - 1];
    if (n < VF_LANES) {
        pool_max_short(p, x, line);
        return;
    }
    for (size_t i = 0; i < n; i = pool_next(i, VF_LANES, n)) {
        vf most = pool_larger(vf_load(first + i), vf_load(second + i));
        for (size_t r = 2; r + 1 < under; r++)
            most = pool_larger(most, vf_load(x + at[r] + i));
        vf_store(line + i, pool_larger(most, vf_load(third + i)));
    }
}

static void pool_max_rows(const dq_pool_lines *p, float *line)
{
    for (size_t l = 0; l < p->lines; l++)
        pool_max_line(p, p->x + l * p->step, line + l * p->row_stride);
}

static inline void pool_add(vd sum[VF_HALVES], vf v)
{
    sum[0] = vd_add(sum[0], vf_half(v, 0));
    if (VF_HALVES > 1)
        sum[VF_HALVES - 1] = vd_add(sum[VF_HALVES - 1], vf_half(v, 1));
}

static void pool_sum_line(const dq_pool_lines *p, const float *x, double *line)
{
    const size_t n = p->n;
    for (size_t i = 0; i < n && n < VF_LANES && n >= VD_LANES; i = pool_next(i, VD_LANES, n)) {
        vd sum = vd_zero();
        for (size_t r = 0; r < p->under; r++)
            sum = vd_add(sum, vd_load_floats(x + p->at[r] + i));
        vd_store(line + i, sum);
    }
    for (size_t i = 0; i < n && n < VD_LANES; i++) {
        line[i] = 0;
        for (size_t r = 0; r < p->under; r++)
            line[i] += (double)x[p->at[r] + i];
    }
    if (n < VF_LANES)
        return;
    for (size_t i = 0; i < n; i = pool_next(i, VF_LANES, n)) {
        vd sum[VF_HALVES];
        for (int h = 0; h < VF_HALVES; h++)
            sum[h] = vd_zero();
        for (size_t r = 0; r < p->under; r++)
            pool_add(sum, vf_load(x + p->at[r] + i));
        for (int h = 0; h < VF_HALVES; h++)
            vd_store(line + i + (size_t)h * VD_LANES, sum[h]);
    }
}

/* Sums of three rows at stride 1, where consecutive lines share two rows: each row is widened to double once.
 */
static void pool_sum_threes(const dq_pool_lines *p, const float *x, double *lines)
{
    const vd zero = vd_zero();
    for (size_t i = 0; i < p->n; i = pool_next(i, VD_LANES, p->n)) {
        const float *from = x + i;
        double *line = lines + i;
        vd first = vd_add(zero, vd_load_floats(from)), second = vd_load_floats(from + p->step);
        from += 2 * p->step;
        for (size_t l = 0; l < p->lines; l++, from += p->step, line += p->row_stride) {
            vd third = vd_load_floats(from);
            vd_store(line, vd_add(vd_add(first, second), third));
            first = vd_add(zero, second);
            second = third;
        }
    }
}

static void pool_sum_rows(const dq_pool_lines *p, double *line)
{
    const size_t *at = p->at;
    if (p->n >= VD_LANES && p->under == 3 && at[1] - at[0] == p->step && at[2] - at[1] == p->step) {
        pool_sum_threes(p, p->x + at[0], line);
        return;
    }
    for (size_t l = 0; l < p->lines; l++)
        pool_sum_line(p, p->x + l * p->step, line + l * p->row_stride);
}

static void pool_square_rows(const dq_pool_lines *p, double *line)
{
    const float *x = p->x;
    for (size_t l = 0; l < p->lines; l++, x += p->step, line += p->row_stride) {
        for (size_t i = 0; i < p->n && p->n >= VD_LANES; i = pool_next(i, VD_LANES, p->n)) {
            vd sum = vd_zero();
            for (size_t r = 0; r < p->under; r++) {
                const vd v = vd_load_floats(x + p->at[r] + i);
                sum = vd_add(sum, vd_mul(v, v));
            }
            vd_store(line + i, sum);
        }
        for (size_t i = 0; i < p->n && p->n < VD_LANES; i++) {
            line[i] = 0;
            for (size_t r = 0; r < p->under; r++)
                line[i] += (double)x[p->at[r] + i] * (double)x[p->at[r] + i];
        }
    }
}

/* `stride` is a compile-time constant in each call, `taps` in some. */
static inline vf pool_max_at(const float *line, size_t taps, size_t dilation, size_t stride)
{
    vf most = stride == 2 ? vf_load_even(line) : vf_load(line);
    for (size_t t = 1; t < taps; t++) {
        const float *at = line + t * dilation;
        most = pool_larger(most, stride == 2 ? vf_load_even(at) : vf_load(at));
    }
    return most;
}

static inline __attribute__((always_inline)) void pool_max_by(const float *line, const dq_line_windows *w,
                                                              size_t taps, size_t stride, float *y)
{
    const size_t dilation = w->dilation, count = w->count;
    for (size_t l = 0; l < w->lines; l++, line += w->row_stride, y += count) {
        if (count < VF_LANES) {
            pool_store_first(y, count, pool_max_at(line, taps, dilation, stride));
            continue;
        }
        for (size_t i = 0; i < count; i = pool_next(i, VF_LANES, count))
            vf_store(y + i, pool_max_at(line + i * stride, taps, dilation, stride));
    }
}

static void pool_max_windows(const float *line, const dq_line_windows *w, float *y)
{
    if (w->stride == 1 && w->taps == 3)
        pool_max_by(line, w, 3, 1, y);
    else if (w->stride == 1)
        pool_max_by(line, w, w->taps, 1, y);
    else if (w->stride == 2)
        pool_max_by(line, w, w->taps, 2, y);
    else
        for (size_t l = 0; l < w->lines; l++)
            for (size_t i = 0; i < w->count; i++) {
                const float *at = line + l * w->row_stride + i * w->stride;
                float most = *at;
                for (size_t t = 1; t < w->taps; t++)
                    most = most > at[t * w->dilation] || most != most ? most : at[t * w->dilation];
                *y++ = most;
            }
}

/* `stride` is a compile-time constant in the calls for means, `taps` in some. */
static inline vd pool_sum_at(const double *line, size_t taps, size_t dilation, size_t stride)
{
    vd sum = stride == 2 ? vd_load_even(line) : vd_load(line);
    for (size_t t = 1; t < taps; t++) {
        const double *at = line + t * dilation;
        sum = vd_add(sum, stride == 2 ? vd_load_even(at) : vd_load(at));
    }
    return sum;
}

static inline __attribute__((always_inline)) void pool_mean_by(const double *line, const dq_line_windows *w,
                                                               size_t taps, size_t stride, bool root,
                                                               double factor, const double *shares, float *y)
{
    const vd f = vd_set(factor);
    const size_t dilation = w->dilation, count = w->count;
    for (size_t l = 0; l < w->lines; l++, line += w->row_stride, y += count)
        for (size_t i = 0; i < count; i = pool_next(i, VD_LANES, count)) {
            vd sum = pool_sum_at(line + i * stride, taps, dilation, stride);
            sum = vd_mul(sum, vd_mul(f, vd_load(shares + i)));
            vd_store_floats(y + i, root ? vd_sqrt(sum) : sum);
        }
}

static void pool_mean_windows(const double *line, const dq_line_windows *w, double factor,
                              const double *shares, float *y)
{
    if (w->count >= VD_LANES && w->stride <= 2 && w->root)
        pool_mean_by(line, w, w->taps, w->stride, true, factor, shares, y);
    else if (w->count >= VD_LANES && w->stride == 1 && w->taps == 3)
        pool_mean_by(line, w, 3, 1, false, factor, shares, y);
    else if (w->count >= VD_LANES && w->stride == 1)
        pool_mean_by(line, w, w->taps, 1, false, factor, shares, y);
    else if (w->count >= VD_LANES && w->stride == 2)
        pool_mean_by(line, w, w->taps, 2, false, factor, shares, y);
    else
        for (size_t l = 0; l < w->lines; l++)
            for (size_t i = 0; i < w->count; i++) {
                const double *at = line + l * w->row_stride + i * w->stride;
                double sum = *at;
                for (size_t t = 1; t < w->taps; t++)
                    sum += at[t * w->dilation];
                sum *= factor * shares[i];
                *y++ = (float)(w->root ? sqrt(sum) : sum);
            }
}

#define FLOAT_POOL                                                                                           \
    {                                                                                                        \
        .max_rows = pool_max_rows, .sum_rows = pool_sum_rows, .square_rows = pool_square_rows,               \
        .max_windows = pool_max_windows, .mean_windows = pool_mean_windows                                   \
    }
