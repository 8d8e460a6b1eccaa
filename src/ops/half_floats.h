/* SPDX-License-Identifier: Apache-2.0 */
/* float16 and bfloat16 operands for kernels that take float32. Inputs are widened into the call's scratch
 * before the kernels run, constant ones once for all runs. The result is rounded once. float32 operands are
 * used directly. */
#ifndef DQ_OPS_HALF_FLOATS_H
#define DQ_OPS_HALF_FLOATS_H

#include "ops/op.h"

enum { DQ_HALF_INPUTS = 4 };

typedef struct dq_half_floats {
    const float *fixed[DQ_HALF_INPUTS];
    unsigned without; /* bit i: input i is skipped, as the operator packs it in a form of its own */
    size_t at[DQ_HALF_INPUTS], out_at; /* byte offsets in the scratch */
} dq_half_floats;

/** Whether the type is supported: float, float16 or bfloat16. */
bool dq_half_floats_take(dq_dtype dtype);

/** In prepare: packs the 16-bit input i as floats, once for all runs. The input is constant and not empty. */
dq_status dq_half_floats_pack(dq_op_call *call, uint32_t i, const float **floats, dq_error *err);

/** Convert all stored elements of a 16-bit tensor to floats, and back with one rounding each. On all threads.
 */
void dq_half_floats_widen(const dq_op_call *call, const dq_tensor *from, float *to);
void dq_half_floats_narrow(const dq_op_call *call, const float *from, dq_tensor *to);

/** Widens n elements of a 16-bit float type; `widen` is the kernel for float16. */
void dq_half_floats_row(dq_convert_f16_f32_fn *widen, dq_dtype dtype, const uint16_t *from, size_t n,
                        float *to);

/** In prepare: reserves scratch for output 0 and for the first DQ_HALF_INPUTS inputs of input 0's type,
 * except the inputs in the bit mask `without`. */
dq_status dq_half_floats_prepare(dq_op_call *call, unsigned without, dq_half_floats *h, dq_error *err);

/** Input i as floats. NULL if it is omitted or in `without`. */
const float *dq_half_floats_in(const dq_op_call *call, const dq_half_floats *h, uint32_t i);
/** The float buffer of output 0; _done then rounds it to the output. */
float *dq_half_floats_out(const dq_op_call *call, const dq_half_floats *h);
void dq_half_floats_done(const dq_op_call *call, const dq_half_floats *h);

#endif
