/* The members of dq_float_pool over the vector that a vec_<isa>.h defines. Included once by the file of each
 * ISA, after that header, which then fills its record with FLOAT_POOL. A last vector that is not whole covers
 * elements once more, which become the same. */
#include "kernels/float_pool.h"

#include <string.h>

/* a NaN in u or v stays */
static inline vf pool_larger(vf u, vf v)
{
    return vf_pick(vf_unordered(u, u), u, vf_max(u, v));
}

/* Where the vector after the one at i begins; n when that was the last. */
static inline size_t pool_next(size_t i, size_t lanes, size_t n)
{
    i += lanes;
    return i >= n || i + lanes <= n ? i : n - lanes;
}

/* Whole vectors; `rows` is constant in some calls. */
static inline void pool_max_vectors(const float *x, const size_t *at, size_t rows, size_t n, float *line)
{
    for (size_t i = 0; i < n; i = pool_next(i, VF_LANES, n)) {
        vf most = vf_load(x + at[0] + i);
        for (size_t r = 1; r < rows; r++)
            most = pool_larger(most, vf_load(x + at[r] + i));
        vf_store(line + i, most);
    }
}

static void pool_max_rows(const float *x, const size_t *at, size_t rows, size_t n, float *line)
{
    if (n >= VF_LANES && rows == 3)
        pool_max_vectors(x, at, 3, n, line);
    else if (n >= VF_LANES)
        pool_max_vectors(x, at, rows, n, line);
    for (size_t i = 0; i < n && n < VF_LANES; i++) {
        float most = x[at[0] + i];
        for (size_t r = 1; r < rows; r++)
            most = most > x[at[r] + i] || most != most ? most : x[at[r] + i];
        line[i] = most;
    }
}

/* Whole vectors; `rows` is constant in some calls. */
static inline void pool_sum_vectors(const float *x, const size_t *at, size_t rows, size_t n, double *line)
{
    for (size_t i = 0; i < n; i = pool_next(i, VF_LANES, n)) {
        vd sum[VF_HALVES];
        for (int h = 0; h < VF_HALVES; h++)
            sum[h] = vd_zero();
        for (size_t r = 0; r < rows; r++) {
            vf v = vf_load(x + at[r] + i);
            sum[0] = vd_add(sum[0], vf_half(v, 0));
            if (VF_HALVES > 1)
                sum[VF_HALVES - 1] = vd_add(sum[VF_HALVES - 1], vf_half(v, 1));
        }
        for (int h = 0; h < VF_HALVES; h++)
            vd_store(line + i + (size_t)h * VD_LANES, sum[h]);
    }
}

static void pool_sum_rows(const float *x, const size_t *at, size_t rows, size_t n, double *line)
{
    if (n >= VF_LANES && rows == 3)
        pool_sum_vectors(x, at, 3, n, line);
    else if (n >= VF_LANES)
        pool_sum_vectors(x, at, rows, n, line);
    for (size_t i = 0; i < n && n < VF_LANES; i++) {
        line[i] = 0;
        for (size_t r = 0; r < rows; r++)
            line[i] += (double)x[at[r] + i];
    }
}

/* `stride` is constant in each call. */
static inline vf pool_max_at(const float *line, const dq_line_windows *w, size_t stride)
{
    vf most = stride == 2 ? vf_load_even(line) : vf_load(line);
    for (size_t t = 1; t < w->taps; t++) {
        const float *at = line + t * w->dilation;
        most = pool_larger(most, stride == 2 ? vf_load_even(at) : vf_load(at));
    }
    return most;
}

static inline void pool_max_by(const float *line, const dq_line_windows *w, size_t stride, float *y)
{
    if (w->count < VF_LANES) {
        float few[VF_LANES];
        vf_store(few, pool_max_at(line, w, stride));
        memcpy(y, few, w->count * sizeof *y);
        return;
    }
    for (size_t i = 0; i < w->count; i = pool_next(i, VF_LANES, w->count))
        vf_store(y + i, pool_max_at(line + i * stride, w, stride));
}

static void pool_max_windows(const float *line, const dq_line_windows *w, float *y)
{
    if (w->stride == 1)
        pool_max_by(line, w, 1, y);
    else if (w->stride == 2)
        pool_max_by(line, w, 2, y);
    else
        for (size_t i = 0; i < w->count; i++) {
            const float *at = line + i * w->stride;
            float most = *at;
            for (size_t t = 1; t < w->taps; t++)
                most = most > at[t * w->dilation] || most != most ? most : at[t * w->dilation];
            y[i] = most;
        }
}

/* `stride` is constant in each call, `taps` in some. */
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
                                                               size_t taps, size_t stride, double factor,
                                                               const double *shares, float *y)
{
    const vd f = vd_set(factor);
    for (size_t i = 0; i < w->count; i = pool_next(i, VD_LANES, w->count)) {
        vd sum = pool_sum_at(line + i * stride, taps, w->dilation, stride);
        vd_store_floats(y + i, vd_mul(sum, vd_mul(f, vd_load(shares + i))));
    }
}

static void pool_mean_windows(const double *line, const dq_line_windows *w, double factor,
                              const double *shares, float *y)
{
    if (w->count >= VD_LANES && w->stride == 1 && w->taps == 3) {
        pool_mean_by(line, w, 3, 1, factor, shares, y);
        return;
    }
    if (w->count >= VD_LANES && w->stride == 1) {
        pool_mean_by(line, w, w->taps, 1, factor, shares, y);
        return;
    }
    if (w->count >= VD_LANES && w->stride == 2) {
        pool_mean_by(line, w, w->taps, 2, factor, shares, y);
        return;
    }
    for (size_t i = 0; i < w->count; i++) {
        const double *at = line + i * w->stride;
        double sum = *at;
        for (size_t t = 1; t < w->taps; t++)
            sum += at[t * w->dilation];
        y[i] = (float)(sum * (factor * shares[i]));
    }
}

#define FLOAT_POOL                                                                                           \
    {                                                                                                        \
        .max_rows = pool_max_rows, .sum_rows = pool_sum_rows, .max_windows = pool_max_windows,               \
        .mean_windows = pool_mean_windows                                                                    \
    }
