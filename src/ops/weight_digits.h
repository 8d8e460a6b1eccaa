/* Activations as integers, for products with weights of few bits. */
#ifndef DQ_OPS_WEIGHT_DIGITS_H
#define DQ_OPS_WEIGHT_DIGITS_H

#include "kernels/nbits.h"

enum { DQ_WEIGHT_PARTS = 2 };

/** A piece of a dq_nbits_row: n values (at most DQ_NBITS_PIECE, of whole words with `in_byte` codes in a
 * byte) times a power of two, rounded, so that the largest is 2^22 or more in size and three digits can say
 * it. Those up to a quarter of the largest lose at most 2^-18 of the sum of their sizes by it: else they make
 * a second part. Returns the number of parts (each with its factor, its DQ_NBITS_DIGITS sums and n *
 * DQ_NBITS_DIGITS digits), or 0 when two are not enough or one leaves the range of floats. */
size_t dq_weight_digits(const float *x, size_t n, size_t in_byte, float *factors, float *sums,
                        int8_t *digits);

#endif
