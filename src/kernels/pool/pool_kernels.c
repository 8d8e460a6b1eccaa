/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <string.h>

/* The usual strides are compile-time constants, so that the compiler vectorizes over windows. */
#define MAX_WINDOWS(T, name)                                                                                 \
    static void name##_join(const T *restrict x, size_t n, T *restrict line)                                 \
    {                                                                                                        \
        for (size_t j = 0; j < n; j++)                                                                       \
            line[j] = x[j] > line[j] ? x[j] : line[j];                                                       \
    }                                                                                                        \
    static inline void name##_columns(const dq_max_windows *w, size_t stride, const T *restrict line,        \
                                      T *restrict out)                                                       \
    {                                                                                                        \
        for (size_t c = 0; c < w->width; c++)                                                                \
            out[c] = line[c * stride];                                                                       \
        for (size_t k = 1; k < w->kernel; k++) {                                                             \
            const T *from = line + k * w->dilation;                                                          \
            for (size_t c = 0; c < w->width; c++)                                                            \
                out[c] = from[c * stride] > out[c] ? from[c * stride] : out[c];                              \
        }                                                                                                    \
    }                                                                                                        \
    static void name##_row(const dq_max_windows *w, const T *x, T *restrict line, T *restrict out)           \
    {                                                                                                        \
        if (w->under)                                                                                        \
            memcpy(line + w->from, x, w->n);                                                                 \
        for (size_t r = 1; r < w->under; r++)                                                                \
            name##_join(x + r * w->x_step, w->n, line + w->from);                                            \
        if (w->stride == 1)                                                                                  \
            name##_columns(w, 1, line, out);                                                                 \
        else if (w->stride == 2)                                                                             \
            name##_columns(w, 2, line, out);                                                                 \
        else                                                                                                 \
            name##_columns(w, w->stride, line, out);                                                         \
    }

MAX_WINDOWS(uint8_t, u8)
MAX_WINDOWS(int8_t, s8)

void dq_max_windows_x8_c(const dq_max_windows *w)
{
    for (size_t i = 0; i < w->rows; i++) {
        const uint8_t *x = w->under ? w->x + i * w->row_step : NULL;
        uint8_t *out = w->out + i * w->width;
        if (w->is_signed)
            s8_row(w, (const int8_t *)x, (int8_t *)w->line, (int8_t *)out);
        else
            u8_row(w, x, w->line, out);
    }
}
