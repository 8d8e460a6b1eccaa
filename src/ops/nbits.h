/* Weights of 2, 4 or 8 bits with scales and zero points in a float type or as codes: what operators of
 * com.microsoft that keep them so share. */
#ifndef DQ_OPS_NBITS_H
#define DQ_OPS_NBITS_H

#include "tensor/tensor.h"

/** Element i of a float, float16 or bfloat16 tensor. */
float dq_nbits_float(const dq_tensor *t, size_t i);

/** to[i * stride] = (code - zero) * scale for codes first … first + n - 1, low bits of a byte first; two
 * roundings to float. `bits` is 2, 4 or 8. */
void dq_nbits_unpack(const uint8_t *codes, unsigned bits, size_t first, size_t n, float zero, float scale,
                     float *to, size_t stride);

#endif
