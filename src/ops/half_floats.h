/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of float16 and bfloat16 for kernels that take floats: widened into the call's scratch before they
 * run, constant ones once for all runs; the result is rounded once. Floats stay where they are. */
#ifndef DQ_OPS_HALF_FLOATS_H
#define DQ_OPS_HALF_FLOATS_H

#include "ops/op.h"

enum { DQ_HALF_INPUTS = 4 };

typedef struct dq_half_floats {
    const float *fixed[DQ_HALF_INPUTS];
    unsigned without;                  /* inputs that the operator has in a form of its own */
    size_t at[DQ_HALF_INPUTS], out_at; /* in the scratch */
} dq_half_floats;

/** Whether it takes the type: float and the two of 16 bits. */
bool dq_half_floats_take(dq_dtype dtype);

/** Input i, constant, not empty and of 16 bits, as floats that are made once for all runs; in prepare. */
dq_status dq_half_floats_pack(dq_op_call *call, uint32_t i, const float **floats, dq_error *err);

/** All elements that a tensor of 16 bits stores, as floats, and back, each rounded once; on all threads. */
void dq_half_floats_widen(const dq_op_call *call, const dq_tensor *from, float *to);
void dq_half_floats_narrow(const dq_op_call *call, const float *from, dq_tensor *to);

/** n elements of a type of 16 bits as floats; `widen` is the kernel for float16. */
void dq_half_floats_row(dq_convert_f16_f32_fn *widen, dq_dtype dtype, const uint16_t *from, size_t n,
                        float *to);

/** Asks for scratch for output 0 and those of the first DQ_HALF_INPUTS inputs that have the type of input 0,
 * but for the inputs whose bits `without` has; in prepare. */
dq_status dq_half_floats_prepare(dq_op_call *call, unsigned without, dq_half_floats *h, dq_error *err);

/** Input i as floats, NULL when it is left out or `without` has it. */
const float *dq_half_floats_in(const dq_op_call *call, const dq_half_floats *h, uint32_t i);
/** Where the floats of output 0 go, and then: the output from them. */
float *dq_half_floats_out(const dq_op_call *call, const dq_half_floats *h);
void dq_half_floats_done(const dq_op_call *call, const dq_half_floats *h);

#endif
