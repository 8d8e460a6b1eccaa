/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include "base/exact.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 64 };

/* Whether the lowest `low` bits of x are 0. */
static bool ends_in_zeros(double x, int low)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits << (64 - low) == 0;
}

/* Products of two significands with at most 53 bits in all are exact. Both sides of the equation are such:
 * scale has 22 bits, a has 29, b and y have 24. */
bool dq_exact_products(const double *scale, const dq_factors *factors, size_t n)
{
    const dq_factors *f = factors;
    const size_t columns = n && f->b_step == 0 && f->y_step == 0 ? 1 : n;
    for (size_t j = 0; j < columns; j++)
        if (!ends_in_zeros(scale[j], 53 - 22) || !ends_in_zeros(f->a, 53 - 29) ||
            scale[j] * (double)f->y[j * f->y_step] != f->a * (double)f->b[j * f->b_step])
            return false;
    return true;
}

double dq_requantize_shift(int32_t start, float bias, double a, float b, float y)
{
    return dq_exact_quotient(-(double)start, a, (double)b, (double)bias, (double)y);
}

int32_t dq_requantize_exactly(int32_t sum, const dq_requantize_to *to, size_t column)
{
    const dq_factors *f = &to->factors;
    const bool biased = to->bias.shift != NULL;
    double v = dq_exact_quotient((double)sum - (biased ? to->bias.start[column] : 0), f->a,
                                 (double)f->b[column * f->b_step], biased ? (double)to->bias.bias[column] : 0,
                                 (double)f->y[column * f->y_step]);
    v = v > -512 ? v : -512; /* NaN gives -512, too */
    v = v < 512 ? v : 512;
    return (int32_t)rint(v);
}

uint8_t dq_requantize_one_exactly(int32_t sum, const dq_requantize_to *to, size_t column)
{
    const int32_t v = dq_requantize_exactly(sum, to, column) + to->zero_point;
    return (uint8_t)(v < to->lo ? to->lo : v > to->hi ? to->hi : v);
}

void dq_requantize_near_tie(const int32_t *acc, size_t n, const dq_requantize_to *to, size_t first,
                            size_t step, uint8_t *out)
{
    for (size_t j = 0; j < n; j++) {
        double v = acc[j] * to->scale[first + j * step];
        v += to->bias.shift ? to->bias.shift[first + j * step] : 0;
        if (fabs(v) < 512 && !(fabs(v - rint(v)) < dq_requantize_tie_margin(to)))
            out[j] = dq_requantize_one_exactly(acc[j], to, first + j * step);
    }
}

/* Requantizes n sums in double. Clamping to integers commutes with rounding. It keeps values so small that
 * adding and subtracting 1.5 * 2^52 rounds them to nearest even; unlike a call of rint, that vectorizes.
 * Returns whether all results are certain. `step` and `shifted` are compile-time constants in each call. */
static inline __attribute__((always_inline)) bool block_of(const int32_t *acc, size_t n,
                                                           const dq_requantize_to *to, size_t first,
                                                           size_t step, bool shifted, uint8_t *out)
{
    const double magic = 6755399441055744.0;
    const double low = to->lo - to->zero_point, high = to->hi - to->zero_point, *scale = to->scale + first;
    const double *shift = shifted ? to->bias.shift + first : NULL;
    const double margin = dq_requantize_tie_margin(to);
    int near_tie = 0;
    for (size_t j = 0; j < n; j++) {
        double v = (double)acc[j] * scale[j * step], rounded;
        if (shifted)
            v += shift[j * step];
        v = v > low ? v : low; /* NaN gives `low`, too */
        v = v < high ? v : high;
        rounded = v + magic - magic;
        near_tie |= fabs(v - rounded) >= margin;
        out[j] = (uint8_t)((int32_t)rounded + to->zero_point);
    }
    return !near_tie;
}

void dq_requantize_s32_c(const int32_t *acc, size_t n, const dq_requantize_to *to, size_t first, size_t step,
                         uint8_t *out)
{
    for (size_t j = 0; j < n; j += BLOCK) {
        const size_t some = n - j < BLOCK ? n - j : BLOCK, at = first + j * step;
        const bool far = to->bias.shift ? block_of(acc + j, some, to, at, step, true, out + j)
                         : step         ? block_of(acc + j, some, to, at, 1, false, out + j)
                                        : block_of(acc + j, some, to, at, 0, false, out + j);
        if (!far)
            dq_requantize_near_tie(acc + j, some, to, at, step, out + j);
    }
}

void dq_requantize_tile_s32_c(const int32_t *acc, size_t acc_stride, size_t rows, size_t cols,
                              const dq_requantize_to *to)
{
    uint8_t bytes[DQ_REQUANTIZE_COLS];
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j += DQ_REQUANTIZE_COLS) {
            size_t n = cols - j < DQ_REQUANTIZE_COLS ? cols - j : DQ_REQUANTIZE_COLS;
            uint8_t *row = to->transposed ? bytes : to->out + i * to->out_stride + j;
            dq_requantize_s32_c(acc + i * acc_stride + j, n, to, j, 1, row);
            for (size_t k = 0; k < n && to->transposed; k++)
                to->out[(j + k) * to->out_stride + i] = bytes[k];
        }
}
