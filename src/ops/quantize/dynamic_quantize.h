/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic quantization of a float tensor by its range, for operators that quantize in the run. It follows
 * DynamicQuantizeLinear-11, with all arithmetic in float and one rounding per operation. The range is
 * extended to include 0; scale = range / (qmax - qmin); the zero point is qmin - min / scale, saturated, then
 * rounded. uint8 uses [0, 255] and int8 [-127, 127]. If all elements are 0, the range is taken as 1. NaN
 * elements do not count for the range and become qmin. */
#ifndef DQ_OPS_DYNAMIC_QUANTIZE_H
#define DQ_OPS_DYNAMIC_QUANTIZE_H

#include "ops/op.h"

typedef struct dq_dynamic {
    dq_dtype dtype; /* uint8 or int8 */
    float scale;
    int32_t zero;
} dq_dynamic;

/** Bytes of scratch, aligned to a float, that dq_dynamic_find needs for n elements. */
size_t dq_dynamic_scratch(size_t n);
/** Finds scale and zero point for x[0 … n-1], on the call's threads. */
dq_dynamic dq_dynamic_find(const dq_op_call *call, const float *x, size_t n, dq_dtype dtype, void *scratch);
/** y[i] = saturate(round(x[i] / scale) + zero), on the call's threads. */
void dq_dynamic_quantize(const dq_op_call *call, const float *x, size_t n, const dq_dynamic *by, void *y);

/* ---- An operand that its operator quantizes ----------------------------------------------------------- */

enum { DQ_DYNAMIC_INPUTS = 8 };

/** The call that an operator of quantized values sees. */
typedef struct dq_dynamic_call {
    dq_op_call call;
    const dq_tensor *in[DQ_DYNAMIC_INPUTS];
    const char *formals[DQ_DYNAMIC_INPUTS];
    dq_tensor x, scale, zero;
    float scale_value;
    uint8_t zero_value;
} dq_dynamic_call;

/** Scratch offsets of the quantized operand and of the range search. */
typedef struct dq_dynamic_offsets {
    size_t qvalues, range;
} dq_dynamic_offsets;

/** Makes *v the call with `count` inputs; those past the node's own are omitted. If input x is float, *v has
 * its quantized form (uint8) as input x, and inputs `scale` and `zero`. Their types and shapes are known now,
 * their values after dq_dynamic_quantize_operand. */
void dq_dynamic_bind(const dq_op_call *call, uint32_t count, uint32_t x, uint32_t scale, uint32_t zero,
                     dq_dynamic_call *v);
/** In prepare: reserves the scratch of v->call, followed by workspace for the quantized form of float input
 * x. */
dq_status dq_dynamic_reserve(dq_op_call *call, uint32_t x, const dq_dynamic_call *v,
                             dq_dynamic_offsets *offsets, dq_error *err);
/** In run: quantizes input x if it is float. */
void dq_dynamic_quantize_operand(const dq_op_call *call, uint32_t x, const dq_dynamic_offsets *offsets,
                                 dq_dynamic_call *v);

#endif
