/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs of the small float types. Every decode is exact; every encode rounds once. Sources: IEEE 754
 * binary16; bfloat16 (upper half of binary32); "FP8 Formats for Deep Learning" (arXiv:2209.05433) for e4m3fn
 * and e5m2; "8-bit Numerical Formats For Deep Neural Networks" (arXiv:2206.02915) for the fnuz types; OCP
 * Microscaling Formats 1.0 for e8m0, e2m3, e3m2 and e2m1; ONNX Cast-25 for saturation. */
#ifndef DQ_BASE_CODEC_H
#define DQ_BASE_CODEC_H

#include <dqrun/dqrun.h>

/** Rounding of float8e8m0 (Cast's round_mode): away from zero, toward zero, to nearest with ties up. */
typedef enum dq_round { DQ_ROUND_UP, DQ_ROUND_DOWN, DQ_ROUND_NEAREST } dq_round;

/** The value of a bit pattern of any float type up to 32 bits. */
float dq_decode_float(dq_dtype dtype, uint32_t bits);

float dq_f16_to_f32(uint16_t bits);
uint16_t dq_f32_to_f16(float x); /* To nearest even; overflow becomes infinity; NaN stays NaN. */
static inline float dq_bf16_to_f32(uint16_t bits)
{
    union {
        uint32_t u;
        float f;
    } v = {.u = (uint32_t)bits << 16};
    return v.f;
}
uint16_t dq_f32_to_bf16(float x);

/** The bit pattern of x in any float type up to 32 bits, rounded to nearest even (e8m0: by `round`).
 * `saturate` is ONNX's attribute: float8 types then convert out-of-range values and infinity to the largest
 * finite value, otherwise to infinity or NaN. float6 and float4 always saturate; float16, bfloat16 and float
 * overflow to infinity. */
uint32_t dq_encode_float(dq_dtype dtype, float x, bool saturate, dq_round round);

/** The same for rows of float8 types other than e8m0, whose bit patterns are bytes, and to bfloat16. */
bool dq_codec_has_rows(dq_dtype dtype);
void dq_decode_bytes(dq_dtype dtype, const uint8_t *x, size_t n, float *y);
void dq_encode_bytes(dq_dtype dtype, const float *x, size_t n, bool saturate, uint8_t *y);
void dq_encode_bf16(const float *x, size_t n, uint16_t *y);

/** Rounds x to float by rounding to odd: the lowest bit is set if the conversion is inexact. A second
 * rounding to any narrower type then gives the same as one rounding of x. */
float dq_round_to_odd(double x);

#endif
