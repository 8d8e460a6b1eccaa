/* Quantizing a float tensor by its own range, for the operators that do so while they run. As
 * DynamicQuantizeLinear-11 has it, all arithmetic in float, one rounding an operation: the range joined with
 * 0, scale = range / (qmax - qmin), the zero point qmin - min / scale saturated, then rounded. uint8 uses [0,
 * 255] and int8 [-127, 127]. When all elements are 0 the range says nothing, and it is taken as 1. NaN
 * elements have no part in the range and become qmin. */
#ifndef DQ_OPS_DYNAMIC_QUANTIZE_H
#define DQ_OPS_DYNAMIC_QUANTIZE_H

#include "ops/op.h"

typedef struct dq_dynamic {
    dq_dtype dtype; /* uint8 or int8 */
    float scale;
    int32_t zero;
} dq_dynamic;

/** Bytes of scratch, aligned to a float, that dq_dynamic_find wants for n elements. */
size_t dq_dynamic_scratch(size_t n);
/** Scale and zero point for x[0 … n-1], on the call's threads. */
dq_dynamic dq_dynamic_find(const dq_op_call *call, const float *x, size_t n, dq_dtype dtype, void *scratch);
/** y[i] = saturate(round(x[i] / scale) + zero), on the call's threads. */
void dq_dynamic_quantize(const dq_op_call *call, const float *x, size_t n, const dq_dynamic *by, void *y);

#endif
