/* SPDX-License-Identifier: Apache-2.0 */
/* Quotients of products of floats, rounded to odd so that a later rounding is exact. */
#ifndef DQ_BASE_EXACT_H
#define DQ_BASE_EXACT_H

/** Computes (sum * a * b + c) / y in real numbers, rounded to odd: the value itself if it is a double, else
 * the neighboring double whose last bit is 1. A second rounding, to an integer below 2^51 or to a type of up
 * to 51 bits, then equals one rounding of the real number, ties included. If an operand is not finite, or y =
 * 0, the result is that of the expression in IEEE 754.
 *
 * Requirements: sum is a multiple of 2^-34, and below 2^64 in magnitude; a is a float or a product of two; b
 * and y are floats; c is a float, or y times a small integer or float8. */
double dq_exact_quotient(double sum, double a, double b, double c, double y);

#endif
