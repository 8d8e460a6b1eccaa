/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <math.h>

/* Defines a reduction. `next` is the new accumulator, an expression of the accumulator a, the element e and
 * `map` (sign_xor). */
#define JOIN(name, from, to, next)                                                                           \
    static void name(const void *x, size_t step, size_t count, size_t n, uint64_t sign_xor, void *y)         \
    {                                                                                                        \
        const from *restrict row = x, map = (from)sign_xor;                                                  \
        to *restrict of = y;                                                                                 \
        (void)map;                                                                                           \
        for (size_t t = 0; t < count; t++, row += step)                                                      \
            for (size_t i = 0; i < n; i++) {                                                                 \
                const from e = row[i];                                                                       \
                const to a = of[i];                                                                          \
                of[i] = next;                                                                                \
            }                                                                                                \
    }
JOIN(max_8, uint8_t, uint8_t, (e ^ map) > a ? e ^ map : a)
JOIN(max_32, int32_t, int32_t, (e ^ map) > a ? e ^ map : a)
JOIN(max_64, int64_t, int64_t, (e ^ map) > a ? e ^ map : a)
JOIN(add_32, int32_t, uint64_t, a + (uint64_t)e)
JOIN(add_64, uint64_t, uint64_t, a + e)
JOIN(mul_f32, float, double, a *(double)e)
JOIN(abs_f32, float, double, a + fabs((double)e))
JOIN(squares_f32, float, double, a + (double)e * (double)e)

static void cumulate_f32(const float *restrict x, ptrdiff_t step, size_t count, size_t n, bool exclusive,
                         float *restrict y, double *restrict sums)
{
    for (; count > 0; count--, x += step, y += step)
        for (size_t i = 0; i < n; i++) {
            const double next = sums[i] + (double)x[i];
            y[i] = (float)(exclusive ? sums[i] : next);
            sums[i] = next;
        }
}

/* Defines an arg-maximum. `mapped` is the key of an element, an expression of the element e and `map`. */
#define ARG(name, from, to, key_map, mapped)                                                                 \
    static void name(const void *x, ptrdiff_t step, size_t count, size_t n, uint64_t sign_xor, void *best,   \
                     int32_t *restrict where)                                                                \
    {                                                                                                        \
        const from *restrict row = x;                                                                        \
        const to map = (to)(key_map);                                                                        \
        to *restrict most = best;                                                                            \
        for (size_t i = 0; i < n; i++) {                                                                     \
            const from e = row[i];                                                                           \
            most[i] = mapped;                                                                                \
            where[i] = 0;                                                                                    \
        }                                                                                                    \
        for (int32_t t = 1; t < (int32_t)count; t++) {                                                       \
            row += step;                                                                                     \
            for (size_t i = 0; i < n; i++) {                                                                 \
                const from e = row[i];                                                                       \
                const to v = mapped;                                                                         \
                where[i] = v > most[i] ? t : where[i];                                                       \
                most[i] = v > most[i] || v != v ? v : most[i]; /* NaN compares as the largest, and stays */  \
            }                                                                                                \
        }                                                                                                    \
    }
ARG(arg_8, uint8_t, int32_t, sign_xor, e ^ map)
ARG(arg_32, int32_t, int32_t, sign_xor, e ^ map)
ARG(arg_f32, float, float, sign_xor ? -1 : 1, e *map)

const dq_reduce_axis_mixed dq_reduce_axis_mixed_c = {.max_8 = max_8,
                                                     .max_32 = max_32,
                                                     .max_64 = max_64,
                                                     .add_32 = add_32,
                                                     .add_64 = add_64,
                                                     .mul_f32 = mul_f32,
                                                     .abs_f32 = abs_f32,
                                                     .squares_f32 = squares_f32,
                                                     .cumulate_f32 = cumulate_f32,
                                                     .arg_8 = arg_8,
                                                     .arg_32 = arg_32,
                                                     .arg_f32 = arg_f32};
