/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of int8 or uint8 with one scale and one zero point, as in the operators of domain com.microsoft. No
 * specification defines their rounding. Each operator's file defines its own, which is that of ONNX Runtime
 * on x86-64, and the same on every processor here. Quantized values are held as bytes, so that tables of 256
 * entries serve both types. */
#ifndef DQ_OPS_Q8_H
#define DQ_OPS_Q8_H

#include "ops/op.h"

#include <math.h>

typedef struct dq_q8 {
    float scale;
    int zero, min, max;
} dq_q8;

/** Checks that scale and zero point (if present) have exactly one element. */
dq_status dq_q8_check(const dq_op_call *call, uint32_t scale, uint32_t zero, dq_error *err);
/** The same for operators of the domain dqrun, whose scales are constants, positive and normal. */
dq_status dq_q8_check_exact(const dq_op_call *call, uint32_t scale, uint32_t zero, dq_error *err);
/** Whether scale and zero point are the same in every run. */
bool dq_q8_constant(const dq_op_call *call, uint32_t scale, uint32_t zero);
/** Reads them for a tensor of type `dtype`; an omitted zero point is 0. */
dq_q8 dq_q8_read(const dq_op_call *call, uint32_t scale, uint32_t zero, dq_dtype dtype);

static inline int dq_q8_value(const dq_q8 *q, uint8_t byte)
{
    return q->min < 0 ? (int8_t)byte : byte;
}

/** Dequantizes a value: one float multiplication. */
static inline float dq_q8_real(const dq_q8 *q, uint8_t byte)
{
    return (float)(dq_q8_value(q, byte) - q->zero) * q->scale;
}

/** Quantizes a multiple of the scale: rounds to nearest even, adds the zero point, saturates; NaN gives the
 * minimum. */
static inline uint8_t dq_q8_round(const dq_q8 *q, double multiple)
{
    double low = q->min - q->zero, high = q->max - q->zero;
    double v = multiple > low ? multiple : low;
    v = v < high ? v : high;
    const double shift = 0x1.8p52; /* the unit of its last place is 1: the sum rounds v to nearest even */
    return (uint8_t)((int)((v + shift) - shift) + q->zero);
}

/** Quantizes a real number: one float division, then dq_q8_round. */
static inline uint8_t dq_q8_quantize(const dq_q8 *q, float real)
{
    return dq_q8_round(q, (double)(real / q->scale));
}

/** Makes the table that converts quantized values of one scale and zero point to another: the identity if
 * these are equal, else dequantize and quantize. Returns whether it is the identity. */
bool dq_q8_convert_table(const dq_q8 *from, const dq_q8 *to, uint8_t table[256]);

/** y[i] = table[x[i]], on all threads. */
void dq_q8_map(const dq_op_call *call, const uint8_t table[256], const uint8_t *x, size_t n, uint8_t *y);

#endif
