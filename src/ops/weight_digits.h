/* Activations as integers, for products with weights of few bits. */
#ifndef DQ_OPS_WEIGHT_DIGITS_H
#define DQ_OPS_WEIGHT_DIGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A piece of a dq_nbits_row: n values (at most DQ_NBITS_PIECE, of whole words with `in_byte` codes in a
 * byte) times a power of two, rounded, so that the largest is 2^22 or more in size and three digits can say
 * it. False when that leaves the range of floats. */
bool dq_weight_digits(const float *x, size_t n, size_t in_byte, float *factor, float *sum, int8_t *digits);

#endif
