/* SPDX-License-Identifier: Apache-2.0 */
/* Contract of the max-pooling kernel for 8-bit quantized values. Included by kernels.h. */
#ifndef DQ_KERNELS_POOL_H
#define DQ_KERNELS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DQ_MAX_SLACK = 64 }; /* bytes past a line's end that may be read */

/** Maximum over windows of 8-bit quantized values, int8 if is_signed, else uint8. For result row i < rows:
 *
 *  line[from + j] = max over r < under of x[i * row_step + r * x_step + j], for j < n; then
 *  out[i * width + c] = max over k < kernel of line[c * stride + k * dilation], for c < width.
 *
 * The caller sets the line's other elements, which are padding. If `under` is 0, it sets all of them. Unless
 * `width` is 0, the line's elements from `from` on are undefined afterwards. */
typedef struct dq_max_windows {
    const uint8_t *x;
    size_t x_step, under, row_step, rows, n;
    uint8_t *line; /* may be read up to DQ_MAX_SLACK bytes past the last element of a window */
    size_t from;
    size_t kernel, stride, dilation, width; /* kernel is 1 or more */
    bool is_signed;
    uint8_t *out;
} dq_max_windows;

typedef void dq_max_windows_x8_fn(const dq_max_windows *w);

#endif
