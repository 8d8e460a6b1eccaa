/* SPDX-License-Identifier: Apache-2.0 */
/* dq_conv_direct_f32_fn and dq_copy_strided_f32_fn over the vector that a vec_<isa>.h defines: included once
 * by the file of each ISA, after that header. The last vectors may go on behind the last result. */
#include "kernels/elementwise/hswish_f32_body.h"
#include "kernels/gemm_f32/gemm_f32.h"

#include <stdbool.h>
#include <string.h>

#ifndef vf_store_some /* the first n of a vector; and loading them, nothing that stands behind */
static inline void vf_store_some(float *p, size_t n, vf a)
{
    float all[VF_LANES];
    vf_store(all, a);
    memcpy(p, all, n * sizeof *p);
}
static inline vf vf_load_some(const float *p, size_t n)
{
    float all[VF_LANES] = {0};
    memcpy(all, p, n * sizeof *p);
    return vf_load(all);
}
#endif

/* Vectors of sums at a time: as many as wait for each other's results, where registers hold them. */
enum { FCONV_VECTORS = VF_FUSED ? 8 : 4, FCONV_ROWS = FCONV_VECTORS / 2 };

typedef struct fconv_ending {
    vf bias, low, high;
    bool gated;
    hswish_f32 gate;
} fconv_ending;

static inline __attribute__((always_inline)) void fconv_end(const dq_conv_f32_rows *f, const fconv_ending *e,
                                                            vf *sum)
{
    const hswish_f32 *g = &e->gate;
    if (f->last)
#pragma GCC unroll 8
        for (int v = 0; v < FCONV_VECTORS; v++)
            sum[v] = vf_min(e->high, vf_max(e->low, vf_add(sum[v], e->bias)));
    if (!e->gated)
        return;
#pragma GCC unroll 8
    for (int v = 0; v < FCONV_VECTORS; v++)
        sum[v] = hswish_f32_product(g, sum[v]);
    if (g->divides)
#pragma GCC unroll 8
        for (int v = 0; v < FCONV_VECTORS; v++)
            sum[v] = vf_div(sum[v], g->divisor);
    if (g->moves)
#pragma GCC unroll 8
        for (int v = 0; v < FCONV_VECTORS; v++)
            sum[v] = hswish_f32_moved(g, sum[v]);
}

/* ---- Vectors that stand anyhow ------------------------------------------------------------------------ */

/* Where they begin, and how many of their lanes count. */
typedef struct fconv_at {
    const float *x[FCONV_VECTORS];
    float *y[FCONV_VECTORS];
    size_t n[FCONV_VECTORS];
} fconv_at;

static inline vf fconv_before(const fconv_at *at, int v)
{
    return at->n[v] < VF_LANES ? vf_load_some(at->y[v], at->n[v]) : vf_load(at->y[v]);
}

static __attribute__((noinline)) void fconv_vectors(const dq_conv_f32_rows *f, const fconv_ending *e,
                                                    const fconv_at *at)
{
    vf sum[FCONV_VECTORS];
    const float *x[FCONV_VECTORS];
    memcpy(x, at->x, sizeof x);
#pragma GCC unroll 8
    for (int v = 0; v < FCONV_VECTORS; v++)
        sum[v] = f->more ? fconv_before(at, v) : vf_set(0.0f);
    for (size_t t = 0; t < f->taps; t++) {
        const size_t offset = f->offsets[t];
        const vf factor = vf_set(f->w[t]);
#pragma GCC unroll 8
        for (int v = 0; v < FCONV_VECTORS; v++)
            sum[v] = vf_fma(factor, vf_load(x[v] + offset), sum[v]);
    }
    fconv_end(f, e, sum);
#pragma GCC unroll 8
    for (int v = 0; v < FCONV_VECTORS; v++)
        if (at->n[v] < VF_LANES)
            vf_store_some(at->y[v], at->n[v], sum[v]);
        else
            vf_store(at->y[v], sum[v]);
}

/* Row by row; what is left of the last vectors is the last one again. */
static void fconv_rows(const dq_conv_f32_rows *f, const fconv_ending *e)
{
    const float *x = f->x;
    float *y = f->y;
    for (size_t rows = f->rows, left = f->n; rows && left;) {
        fconv_at at;
        for (int v = 0; v < FCONV_VECTORS; v++) {
            at.x[v] = x + (f->n - left);
            at.y[v] = y + (f->n - left);
            at.n[v] = left;
            if (left > VF_LANES) {
                left -= VF_LANES;
            } else if (rows > 1 || v + 1 == FCONV_VECTORS) {
                rows--;
                left = f->n;
                x += f->x_row;
                y += f->y_row;
            }
        }
        fconv_vectors(f, e, &at);
    }
}

/* ---- Blocks ------------------------------------------------------------------------------------------- */

/* Two columns of FCONV_ROWS vectors, so far apart in x and y; `n`: the lanes of each that count. */
typedef struct fconv_columns {
    const float *x;
    float *y;
    size_t x_stride, y_stride, n[2];
} fconv_columns;

static inline __attribute__((always_inline)) void fconv_store(const vf *sum, float *y, size_t y_row, size_t n)
{
    if (n >= VF_LANES)
#pragma GCC unroll 4
        for (int r = 0; r < FCONV_ROWS; r++)
            vf_store(y + (size_t)r * y_row, sum[r]);
    else
#pragma GCC unroll 4
        for (int r = 0; r < FCONV_ROWS; r++)
            vf_store_some(y + (size_t)r * y_row, n, sum[r]);
}

/* What is loaded meets all the rows of results whose windows it is in. */
static inline __attribute__((always_inline)) void fconv_lines(const dq_conv_f32_rows *f,
                                                              const fconv_columns *at, int lines, vf *sum)
{
    const size_t across = f->across, row_stride = at->x_stride;
    const float *x = at->x;
#pragma GCC unroll 8
    for (int line = 0; line < lines + FCONV_ROWS - 1; line++, x += f->x_row)
        for (size_t t = 0; t < across; t++) {
            const float *from = x + f->offsets[t], *w = f->w + t;
            const vf one = vf_load(from), two = vf_load(from + row_stride);
#pragma GCC unroll 4
            for (int r = 0; r < FCONV_ROWS; r++)
                if (line >= r && line < lines + r) {
                    const vf factor = vf_set(w[(size_t)(line - r) * across]);
                    sum[r] = vf_fma(factor, one, sum[r]);
                    sum[FCONV_ROWS + r] = vf_fma(factor, two, sum[FCONV_ROWS + r]);
                }
        }
}

#ifdef vf_fma_onto
#define fconv_onto(sum, a, b) vf_fma_onto(sum, a, b)
#else
#define fconv_onto(sum, a, b) ((sum) = vf_fma(a, b, sum))
#endif

/* A line of the input, which rows `first` to `last` of the results see, as constants: what is loaded meets
 * all of them. */
static inline __attribute__((always_inline)) void fconv_line(const dq_conv_f32_rows *f, const float *x,
                                                             size_t row_stride, const float *w, int first,
                                                             int last, vf *sum)
{
    const size_t across = f->across;
    for (size_t t = 0; t < across; t++) {
        const float *from = x + f->offsets[t], *here = w + t;
        const vf one = vf_load(from), two = vf_load(from + row_stride);
#pragma GCC unroll 4
        for (int r = first; r <= last; r++) {
            const vf factor = vf_set(*(here - (size_t)r * across));
            fconv_onto(sum[r], factor, one);
            fconv_onto(sum[FCONV_ROWS + r], factor, two);
        }
    }
}

/* Any number of lines; `w`: the factors that row 0 of the results has for one, those before it row 1 … */
static inline __attribute__((always_inline)) void fconv_many_lines(const dq_conv_f32_rows *f,
                                                                   const fconv_columns *at, vf *sum)
{
    enum { REST = FCONV_ROWS - 1 };
    const size_t lines = f->taps / f->across;
    const float *x = at->x, *w = f->w;
#pragma GCC unroll 4
    for (int line = 0; line < REST; line++, x += f->x_row, w += f->across)
        fconv_line(f, x, at->x_stride, w, 0, line, sum);
    for (size_t line = REST; line < lines; line++, x += f->x_row, w += f->across)
        fconv_line(f, x, at->x_stride, w, 0, REST, sum);
#pragma GCC unroll 4
    for (int line = 0; line < REST; line++, x += f->x_row, w += f->across)
        fconv_line(f, x, at->x_stride, w, line + 1, REST, sum);
}

static inline void fconv_block(const dq_conv_f32_rows *f, const fconv_ending *e, const fconv_columns *at)
{
    vf sum[FCONV_VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < FCONV_VECTORS; v++)
        sum[v] = vf_set(0.0f);
    if (f->taps == 3 * f->across) {
        fconv_lines(f, at, 3, sum);
    } else if (f->taps == 5 * f->across) {
        fconv_lines(f, at, 5, sum);
    } else {
        fconv_many_lines(f, at, sum);
    }
    fconv_end(f, e, sum);
    fconv_store(sum, at->y, f->y_row, at->n[0]);
    fconv_store(sum + FCONV_ROWS, at->y + at->y_stride, f->y_row, at->n[1]);
}

/* Rows from top to bottom, the columns side by side or below each other; the last ones have rows of those
 * before again. */
static void fconv_blocks(const dq_conv_f32_rows *f, const fconv_ending *e)
{
    for (size_t col = 0; col < f->n;) {
        const size_t n = f->n - col;
        const bool below = n <= VF_LANES && f->rows > FCONV_ROWS;
        const size_t more = !below ? 0 : f->rows < FCONV_VECTORS ? f->rows - FCONV_ROWS : FCONV_ROWS;
        const size_t rows = FCONV_ROWS + more;
        fconv_columns at = {.x_stride = below ? more * f->x_row : VF_LANES,
                            .y_stride = below ? more * f->y_row : VF_LANES,
                            .n = {n, below          ? n
                                     : n > VF_LANES ? n - VF_LANES
                                                    : 0}};
        for (size_t row = 0, end = 0; end < f->rows; row += rows) {
            row = row + rows < f->rows ? row : f->rows - rows;
            end = row + rows;
            at.x = f->x + row * f->x_row + col;
            at.y = f->y + row * f->y_row + col;
            fconv_block(f, e, &at);
        }
        col += below ? VF_LANES : 2 * VF_LANES;
    }
}

/* Whether blocks, which take less time than other vectors, are not too many more. */
static bool fconv_fits_blocks(const dq_conv_f32_rows *f)
{
    const size_t down = (f->rows + FCONV_ROWS - 1) / FCONV_ROWS;
    return f->across && f->taps >= 3 * f->across && !f->more && f->rows >= FCONV_ROWS &&
           (f->n > VF_LANES ? 5 * down * FCONV_ROWS <= 7 * f->rows : f->rows > FCONV_ROWS);
}

static void conv_direct_f32(const dq_conv_f32_rows *f)
{
    static const dq_hswish_f32 none;
    const bool gated = f->last && f->gate;
    const fconv_ending e = {vf_set(f->bias), vf_set(f->low), vf_set(f->high), gated,
                            hswish_f32_of(gated ? f->gate : &none)};
    if (VF_LANES >= 8 && fconv_fits_blocks(f))
        fconv_blocks(f, &e);
    else
        fconv_rows(f, &e);
}

/* ---- Channels side by side ----------------------------------------------------------------------------- */

enum {
    FCONV_NCHWC = VF_LANES >= 8 ? DQ_CONV_F32_CHANNELS / VF_LANES : 1, /* vectors of a place */
    FCONV_PLACES = FCONV_VECTORS / FCONV_NCHWC
};

static void dwconv_nchwc_f32(const dq_dwconv_nchwc_f32 *f)
{
    const vf low = vf_set(f->low), high = vf_set(f->high);
    for (size_t at = 0; at < DQ_CONV_F32_CHANNELS; at += (size_t)FCONV_NCHWC * VF_LANES)
        for (size_t i = 0; i < f->n; i += FCONV_PLACES) {
            const uint32_t *offsets = f->offsets + i;
            const float *x = f->x + at, *w = f->w + at;
            vf sum[FCONV_VECTORS];
#pragma GCC unroll 8
            for (int v = 0; v < FCONV_VECTORS; v++)
                sum[v] = vf_set(0.0f);
            for (size_t t = 0; t < f->taps; t++, offsets += f->n, w += DQ_CONV_F32_CHANNELS)
#pragma GCC unroll 8
                for (int v = 0; v < FCONV_VECTORS; v++) {
                    const size_t c = (size_t)(v % FCONV_NCHWC) * VF_LANES;
                    fconv_onto(sum[v], vf_load(w + c), vf_load(x + offsets[v / FCONV_NCHWC] + c));
                }
#pragma GCC unroll 8
            for (int v = 0; v < FCONV_VECTORS; v++) {
                const size_t c = at + (size_t)(v % FCONV_NCHWC) * VF_LANES;
                const vf y = vf_min(high, vf_max(low, vf_add(sum[v], vf_load(f->bias + c))));
                vf_store(f->y + (i + (size_t)(v / FCONV_NCHWC)) * f->pitch + c, y);
            }
        }
}

/* ---- Copies -------------------------------------------------------------------------------------------- */

/* Fewer than 16, next to each other. */
static inline void copy_strided_f32_few(const float *x, size_t n, float *y)
{
    enum { FOUR = 4, EIGHT = 8 };
    if (n >= EIGHT) {
        memcpy(y, x, EIGHT * sizeof *y);
        memcpy(y + n - EIGHT, x + n - EIGHT, EIGHT * sizeof *y);
        return;
    }
    if (n > FOUR)
        memcpy(y, x, FOUR * sizeof *y);
    if (n >= FOUR) {
        memcpy(y + n - FOUR, x + n - FOUR, FOUR * sizeof *y);
        return;
    }
    if (n > 1)
        memcpy(y, x, 2 * sizeof *y);
    if (n % 2)
        y[n - 1] = x[n - 1];
}

/* The last vector covers elements once more. */
static inline void copy_strided_f32_row(const float *x, size_t step, size_t n, float *y)
{
    size_t i = 0;
    bool vectors = n >= VF_LANES && step <= 2;
    for (; vectors && i + VF_LANES <= n; i += VF_LANES)
        vf_store(y + i, step == 1 ? vf_load(x + i) : vf_load_even(x + 2 * i));
    if (vectors && i < n) {
        i = n - VF_LANES;
        vf_store(y + i, step == 1 ? vf_load(x + i) : vf_load_even(x + 2 * i));
    } else if (!vectors && step == 1 && n < 16) {
        copy_strided_f32_few(x, n, y);
    } else {
        for (; i < n; i++)
            y[i] = x[i * step];
    }
}

static void copy_strided_f32(const float *x, size_t x_row, size_t step, size_t rows, size_t n, float *y,
                             size_t y_row)
{
    for (; rows; rows--, x += x_row, y += y_row)
        copy_strided_f32_row(x, step, n, y);
}
