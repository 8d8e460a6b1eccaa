/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of int8 or uint8 with one scale and one zero point, as the operators of domain com.microsoft have
 * them. These have no text that says how they round: each operator's file says what it does, which is what
 * ONNX Runtime computes on x86-64, and the same on every CPU here. Codes are held as bytes, so that 256-entry
 * tables serve both types. */
#ifndef DQ_OPS_Q8_H
#define DQ_OPS_Q8_H

#include "ops/op.h"

#include <math.h>

typedef struct dq_q8 {
    float scale;
    int zero, min, max;
} dq_q8;

/** Refuses a scale or a zero point (when given) of more or less than one element. */
dq_status dq_q8_check(const dq_op_call *call, uint32_t scale, uint32_t zero, dq_error *err);
/** The same for operators of the domain dqrun, whose scales are constants, positive and normal. */
dq_status dq_q8_check_exact(const dq_op_call *call, uint32_t scale, uint32_t zero, dq_error *err);
/** Whether both are the same in every run. */
bool dq_q8_constant(const dq_op_call *call, uint32_t scale, uint32_t zero);
/** Their values, for a tensor of that type; a zero point that is left out is 0. */
dq_q8 dq_q8_read(const dq_op_call *call, uint32_t scale, uint32_t zero, dq_dtype dtype);

static inline int dq_q8_code(const dq_q8 *q, uint8_t byte)
{
    return q->min < 0 ? (int8_t)byte : byte;
}

/** The number that a code stands for: one float multiplication. */
static inline float dq_q8_real(const dq_q8 *q, uint8_t byte)
{
    return (float)(dq_q8_code(q, byte) - q->zero) * q->scale;
}

/** The code of a multiple of the scale: rounded to even, the zero point added, saturated; NaN gives the
 * minimum. */
static inline uint8_t dq_q8_round(const dq_q8 *q, double multiple)
{
    double low = q->min - q->zero, high = q->max - q->zero;
    double v = multiple > low ? multiple : low;
    v = v < high ? v : high;
    const double shift = 0x1.8p52; /* its last bit counts ones: the sum rounds v to even */
    return (uint8_t)((int)((v + shift) - shift) + q->zero);
}

/** The code of a number: one float division, then as above. */
static inline uint8_t dq_q8_quantize(const dq_q8 *q, float real)
{
    return dq_q8_round(q, (double)(real / q->scale));
}

/** From codes of one tensor to codes of another: the same codes where scale and zero point are equal, else
 * dequantized and quantized. Returns whether they are the same. */
bool dq_q8_convert_table(const dq_q8 *from, const dq_q8 *to, uint8_t table[256]);

/** y[i] = table[x[i]], on all threads. */
void dq_q8_map(const dq_op_call *call, const uint8_t table[256], const uint8_t *x, size_t n, uint8_t *y);

#endif
