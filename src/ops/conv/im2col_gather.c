/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv/im2col_gather.h"

#include "base/codec.h"

/* Defines dq_im2col_gather for elements of type S, which `value` converts from x to the computing type T. */
#define GATHER(name, S, T, value)                                                                            \
    static void name(const dq_tensor *data, size_t first, size_t channels, size_t plane,                     \
                     const int64_t at[DQ_STRIP_COLS], size_t taps, size_t tap, void *to)                     \
    {                                                                                                        \
        const S *from = dq_data(data, S) + first;                                                            \
        T *out = (T *)to + tap * DQ_STRIP_COLS;                                                              \
        for (size_t c = 0; c < channels; c++, from += plane, out += taps * DQ_STRIP_COLS)                    \
            for (size_t j = 0; j < DQ_STRIP_COLS; j++) {                                                     \
                const S x = at[j] < 0 ? 0 : from[at[j]];                                                     \
                out[j] = value;                                                                              \
            }                                                                                                \
    }

GATHER(gather_f32, float, float, x)
GATHER(gather_f64, double, double, x)
GATHER(gather_f16, uint16_t, float, dq_f16_to_f32(x))
GATHER(gather_bf16, uint16_t, float, dq_bf16_to_f32(x))

void dq_im2col_gather(const dq_tensor *data, size_t first, size_t channels, size_t plane,
                      const int64_t at[DQ_STRIP_COLS], size_t taps, size_t tap, void *to)
{
    switch (data->dtype) {
    case DQ_FLOAT:
        gather_f32(data, first, channels, plane, at, taps, tap, to);
        break;
    case DQ_DOUBLE:
        gather_f64(data, first, channels, plane, at, taps, tap, to);
        break;
    case DQ_FLOAT16:
        gather_f16(data, first, channels, plane, at, taps, tap, to);
        break;
    default:
        gather_bf16(data, first, channels, plane, at, taps, tap, to);
        break;
    }
}
