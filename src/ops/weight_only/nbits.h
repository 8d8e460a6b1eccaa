/* Scales and zero points of weights of few bits, in any of the float types. */
#ifndef DQ_OPS_NBITS_H
#define DQ_OPS_NBITS_H

#include "tensor/tensor.h"

/** Element i of a float, float16 or bfloat16 tensor. */
float dq_nbits_float(const dq_tensor *t, size_t i);

#endif
