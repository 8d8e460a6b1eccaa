/* SPDX-License-Identifier: Apache-2.0 */
/* Quotients of products of floats, exact as far as a rounding can see. */
#ifndef DQ_BASE_EXACT_H
#define DQ_BASE_EXACT_H

/** (sum * a * b + c) / y in real numbers, rounded to odd: the value itself where a double holds it, else that
 * neighbour of it whose last bit is 1. A second rounding, to a whole number below 2^51 or to a type of up to
 * 51 bits, then gives what one rounding of the real number gives, ties included. With an operand that is not
 * finite, or y = 0, it is what IEEE 754 gives for the expression.
 *
 * sum is a multiple of 2^-34 below 2^64 in size; a is a float or a product of two; b and y are floats; c is a
 * float, or y times a small whole number or float8. */
double dq_exact_quotient(double sum, double a, double b, double c, double y);

#endif
