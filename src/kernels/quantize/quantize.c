/* SPDX-License-Identifier: Apache-2.0 */
/* Quantization, dequantization and float16 conversion of rows in portable C. */
#include "base/codec.h"
#include "kernels/kernels.h"

/* Rounds q to nearest, ties to even, for |q| <= 2^22. Adding 1.5 * 2^23 leaves no fraction bits: the integer
 * is in the sum's low bits. */
static inline int32_t round_small(float q)
{
    union {
        float f;
        int32_t i;
    } v = {.f = q + 12582912.0f};
    return v.i - 0x4b400000;
}

/* Quantizes one value. The bounds are integers, so that clamping the quotient equals clamping the sum, which
 * then cannot overflow. NaN gives the lower bound. */
static inline int32_t quantize(float x, float scale, int32_t zero, int32_t min, int32_t max)
{
    float low = (float)(min - zero), high = (float)(max - zero);
    float q = x / scale;
    q = q > low ? q : low;
    q = q < high ? q : high;
    return round_small(q) + zero;
}

#define QUANTIZE(function, type, min, max)                                                                   \
    void function(const float *x, size_t n, const float *scale, const type *zero, size_t step, type *y)      \
    {                                                                                                        \
        if (step == 0 && n) {                                                                                \
            float s = scale[0];                                                                              \
            int32_t z = zero ? zero[0] : 0;                                                                  \
            for (size_t i = 0; i < n; i++)                                                                   \
                y[i] = (type)quantize(x[i], s, z, min, max);                                                 \
            return;                                                                                          \
        }                                                                                                    \
        for (size_t i = 0; i < n; i++)                                                                       \
            y[i] = (type)quantize(x[i], scale[i], zero ? zero[i] : 0, min, max);                             \
    }

QUANTIZE(dq_quantize_f32_u8_c, uint8_t, 0, UINT8_MAX)
QUANTIZE(dq_quantize_f32_s8_c, int8_t, INT8_MIN, INT8_MAX)
QUANTIZE(dq_quantize_f32_u16_c, uint16_t, 0, UINT16_MAX)
QUANTIZE(dq_quantize_f32_s16_c, int16_t, INT16_MIN, INT16_MAX)

#define DEQUANTIZE(function, type, wide)                                                                     \
    void function(const type *x, size_t n, const float *scale, const type *zero, size_t step, float *y)      \
    {                                                                                                        \
        if (step == 0 && n) {                                                                                \
            float s = scale[0];                                                                              \
            wide z = zero ? zero[0] : 0;                                                                     \
            for (size_t i = 0; i < n; i++)                                                                   \
                y[i] = (float)(x[i] - z) * s;                                                                \
            return;                                                                                          \
        }                                                                                                    \
        for (size_t i = 0; i < n; i++)                                                                       \
            y[i] = (float)((wide)x[i] - (zero ? zero[i] : 0)) * scale[i];                                    \
    }

DEQUANTIZE(dq_dequantize_u8_f32_c, uint8_t, int32_t)
DEQUANTIZE(dq_dequantize_s8_f32_c, int8_t, int32_t)
DEQUANTIZE(dq_dequantize_u16_f32_c, uint16_t, int32_t)
DEQUANTIZE(dq_dequantize_s16_f32_c, int16_t, int32_t)
DEQUANTIZE(dq_dequantize_s32_f32_c, int32_t, int64_t)

#define DEQUANTIZE_BLOCKS(suffix, type)                                                                      \
    void dq_dequantize_blocks_##suffix##_f32_c(const type *x, size_t blocks, size_t block,                   \
                                               const float *scale, const type *zero, float *y)               \
    {                                                                                                        \
        for (size_t b = 0; b < blocks; b++)                                                                  \
            dq_dequantize_##suffix##_f32_c(x + b * block, block, scale + b, zero ? zero + b : NULL, 0,       \
                                           y + b * block);                                                   \
    }

DEQUANTIZE_BLOCKS(u8, uint8_t)
DEQUANTIZE_BLOCKS(s8, int8_t)

void dq_convert_f16_f32_c(const uint16_t *x, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = dq_f16_to_f32(x[i]);
}

void dq_convert_f32_f16_c(const float *x, size_t n, uint16_t *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = dq_f32_to_f16(x[i]);
}
