/* SPDX-License-Identifier: Apache-2.0 */
/* Template: dq_requantize_s32_fn and dq_requantize_tile_s32_fn for ISA levels with vectors of four
 * (vec_sse41.h, vec_neon.h). Float products decide nearly all roundings. The exception are products so near a
 * tie that float's three roundings may have crossed it. From 256 on results saturate for every zero point.
 * Products near a tie, and scales that float cannot represent, are computed in double and exactly.
 *
 * Macro parameters:
 *
 *   ISA(name)                             the level's function name
 *   exact(acc, n, to, first, step, out)   dq_requantize_s32_fn
 *   put_qvalues(v, zero, flip, out)         stores 16 results: four vectors of int32 saturated to int16, plus
 *                                         zero, saturated to uint8, xor flip */
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

enum { COLS = DQ_REQUANTIZE_COLS, VECTORS = COLS / VF_LANES, BAND = 16 /* rows per transpose */ };

/* Scales of sixteen columns as floats, and their shifts. */
typedef struct scales {
    vf s[VECTORS], shift[VECTORS];
    bool finite, shifted;
} scales;

static inline vf size_of(vf a)
{
    return vi_float(vi_and(vf_bits(a), vi_set(0x7fffffff)));
}

static inline void floats_of(const double *x, size_t n, vf out[VECTORS])
{
    double few[COLS] = {0};
    float floats[COLS];
    if (n < COLS)
        x = memcpy(few, x, n * sizeof *few);
    for (size_t j = 0; j < COLS; j += VD_LANES)
        vd_store_floats(floats + j, vd_load(x + j));
    for (int v = 0; v < VECTORS; v++)
        out[v] = vf_load(floats + v * VF_LANES);
}

/* Scales of columns first … first + n - 1. */
static inline scales scales_of(const dq_requantize_to *to, size_t first, size_t n)
{
    scales out = {.finite = true, .shifted = to->bias.shift != NULL};
    floats_of(to->scale + first, n, out.s);
    for (int v = 0; v < VECTORS; v++)
        out.finite = out.finite && vm_all(vf_less(size_of(out.s[v]), vf_set(INFINITY)));
    if (out.shifted)
        floats_of(to->bias.shift + first, n, out.shift);
    return out;
}

/* The scale of one column, for all lanes. */
static inline scales same_scales(const dq_requantize_to *to, size_t column)
{
    const float scale = (float)to->scale[column];
    scales out = {.finite = fabsf(scale) < INFINITY, .shifted = to->bias.shift != NULL};
    for (int v = 0; v < VECTORS; v++) {
        out.s[v] = vf_set(scale);
        out.shift[v] = vf_set(out.shifted ? (float)to->bias.shift[column] : 0);
    }
    return out;
}

/* Requantizes 16 sums. Returns false and writes nothing if one of the products is near a tie. */
static inline bool sixteen(const int32_t *acc, const scales *s, int32_t zero_point, int32_t lo, uint8_t *out)
{
    const vf high = vf_set(512), low = vf_set(-512);
    vi v[VECTORS];
    vf off = vf_set(0);
    for (int k = 0; k < VECTORS; k++) {
        vf x = vf_mul(vi_to_float(vi_load(acc + k * VF_LANES)), s->s[k]);
        x = vf_bound(s->shifted ? vf_add(x, s->shift[k]) : x, low, high);
        v[k] = vf_nearest(x);
        off = vf_max(off, size_of(vf_sub(x, vi_to_float(v[k]))));
    }
    if (!vm_all(vf_less(off, vf_set(0.5f - 0x1p-13f))))
        return false;
    put_qvalues(v, zero_point - lo, lo, out);
    return true;
}

void ISA(dq_requantize_s32)(const int32_t *acc, size_t n, const dq_requantize_to *to, size_t first,
                            size_t step, uint8_t *out)
{
    scales s = {.finite = false};
    if (n >= COLS && step == 0)
        s = same_scales(to, first);
    size_t j = 0;
    for (; n - j >= COLS; j += COLS) {
        if (step)
            s = scales_of(to, first + j, COLS);
        if (!s.finite || !sixteen(acc + j, &s, to->zero_point, to->lo, out + j))
            exact(acc + j, COLS, to, first + j * step, step, out + j);
    }
    exact(acc + j, n - j, to, first + j * step, step, out + j);
}

/* Requantizes rows of up to COLS columns from `first` on. Writes COLS results a row to `out`, with stride
 * `stride`. */
static inline void rows_of(const int32_t *acc, size_t acc_stride, size_t rows, size_t cols,
                           const dq_requantize_to *to, size_t first, uint8_t *out, size_t stride)
{
    const scales s = scales_of(to, first, cols);
    for (size_t i = 0; i < rows; i++, acc += acc_stride, out += stride)
        if (!s.finite || !sixteen(acc, &s, to->zero_point, to->lo, out))
            exact(acc, cols, to, first, 1, out);
}

void ISA(dq_requantize_tile_s32)(const int32_t *acc, size_t acc_stride, size_t rows, size_t cols,
                                 const dq_requantize_to *to)
{
    uint8_t qvalues[BAND * COLS];
    for (size_t i = 0; i < rows; i += BAND)
        for (size_t j = 0; j < cols; j += COLS) {
            size_t n = cols - j < COLS ? cols - j : COLS, band = rows - i < BAND ? rows - i : BAND;
            const int32_t *from = acc + i * acc_stride + j;
            uint8_t *out =
                to->transposed ? to->out + j * to->out_stride + i : to->out + i * to->out_stride + j;
            if (!to->transposed && n == COLS) {
                rows_of(from, acc_stride, band, n, to, j, out, to->out_stride);
                continue;
            }
            rows_of(from, acc_stride, band, n, to, j, qvalues, COLS);
            if (to->transposed)
                ISA(dq_transpose_x8)(qvalues, COLS, band, n, 0, out, to->out_stride);
            for (size_t k = 0; k < band && !to->transposed; k++)
                memcpy(out + k * to->out_stride, qvalues + k * COLS, n);
        }
}
