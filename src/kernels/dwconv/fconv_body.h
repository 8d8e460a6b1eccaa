/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Implements dq_conv_direct_f32_fn, dq_dwconv_nchwc_f32_fn and
 * dq_copy_strided_f32_fn. The file of the ISA level includes its vec_<isa>.h before. Vectors loaded from x
 * may end after its last element (DQ_CONV_F32_SLACK). */
#include "kernels/elementwise/hswish_f32_body.h"
#include "kernels/gemm_f32/gemm_f32.h"

#include <stdbool.h>
#include <string.h>

#ifndef vf_store_some /* stores and loads of the first n lanes, which access no other memory */
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

/* Accumulators of a tile: as many as hide the FMA latency, if registers hold them. */
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

/* ---- Vectors at any position --------------------------------------------------------------------------- */

/* Positions of the vectors in x and y, and how many of their lanes are results. */
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

/* Computes row by row. Unused vectors of the last tile repeat its last one. */
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

/* A block: two columns of FCONV_ROWS vectors. x_stride and y_stride are the distances from the first
 * column to the second in x and y; n is the number of lanes of each column that are results. */
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

/* Accumulates a kernel of `lines` rows, which is constant in each call. Each loaded vector is used for all
 * output rows whose windows contain it. */
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

/* Accumulates one input row for the output rows `first` … `last` whose windows contain it, constants in
 * each call. Each loaded vector is used for all of them. */
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

/* Accumulates a kernel of any number of rows. `w` is the kernel row that output row 0 multiplies with the
 * current input row; output row r uses the r-th kernel row before it. */
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

/* Computes blocks from top to bottom. The columns of a block are neighbors in a row, or, if rows are
 * short, one is below the other. The last block of a column overlaps the one before it. */
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

/* Whether blocks are applicable, and do not compute too many rows twice. They are faster than vectors at
 * any position. */
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

/* ---- Depthwise, NCHWc ---------------------------------------------------------------------------------- */

enum {
    FCONV_NCHWC = VF_LANES >= 8 ? DQ_CONV_F32_CHANNELS / VF_LANES : 1, /* vectors of a position */
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

/* Copies fewer than 16 contiguous floats. */
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

/* Copies one row; the last vector overlaps the one before it. */
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
