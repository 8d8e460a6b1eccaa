/* SPDX-License-Identifier: Apache-2.0 */
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

/* ---- An operand that the operator quantizes itself ---------------------------------------------------- */

enum { DQ_DYNAMIC_INPUTS = 8 };

/** The call as an operator on codes sees it. */
typedef struct dq_dynamic_call {
    dq_op_call call;
    const dq_tensor *in[DQ_DYNAMIC_INPUTS];
    const char *formals[DQ_DYNAMIC_INPUTS];
    dq_tensor x, scale, zero;
    float scale_value;
    uint8_t zero_value;
} dq_dynamic_call;

/** Where its codes and what finding its range takes lie in the scratch. */
typedef struct dq_dynamic_place {
    size_t codes, range;
} dq_dynamic_place;

/** *v is the call with `count` inputs, those past its own left out. Where input x is float, it stands there
 * as uint8 codes with inputs `scale` and `zero`: known by type and shape now, by value after
 * dq_dynamic_fill. */
void dq_dynamic_look(const dq_op_call *call, uint32_t count, uint32_t x, uint32_t scale, uint32_t zero,
                     dq_dynamic_call *v);
/** For prepare: takes what v->call asks for as scratch, and room for the codes of float input x behind it. */
dq_status dq_dynamic_reserve(dq_op_call *call, uint32_t x, const dq_dynamic_call *v, dq_dynamic_place *place,
                             dq_error *err);
/** In run: quantizes input x where it is float. */
void dq_dynamic_fill(const dq_op_call *call, uint32_t x, const dq_dynamic_place *place, dq_dynamic_call *v);

#endif
