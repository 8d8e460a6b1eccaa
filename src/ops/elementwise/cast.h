/* SPDX-License-Identifier: Apache-2.0 */
/* What other operators need of Cast (cast.c), and what it does with strings. */
#ifndef DQ_OPS_CAST_H
#define DQ_OPS_CAST_H

#include "base/codec.h"
#include "ops/op.h"

/** The bits of a floating-point number as an integer of type `dtype`: cut toward zero and taken as int32 for
 * types of up to 32 bits, as int64 for uint32 and types of 64 bits; where it does not fit in that (NaN and
 * infinities too) the lowest number of that, except that uint64 takes its whole range; bits above the type's
 * own then drop. ONNX leaves numbers out of range open; this is what ONNX Runtime and NumPy give on x86-64,
 * here on every CPU. */
int64_t dq_cast_to_int(double x, dq_dtype dtype);

/** n numbers of a type of whole bytes to another, as Cast does; false, and nothing is said of y, where there
 * is no quick way. */
bool dq_cast_numbers(const dq_kernels *k, dq_dtype from, const void *x, dq_dtype to, void *y, size_t n);

/** Whether infinity becomes NaN in output 0: so says the table of Cast-19 to Cast-23 for the saturating
 * conversion to the fnuz types; since Cast-24 it becomes the largest number. */
bool dq_cast_infinity_is_nan(const dq_op_call *call, bool saturate);

/** Output 0 from input 0, of which one is of strings. Reading refuses, with DQ_BAD_INPUT, what is no number.
 *
 *  Reading: decimal numbers with or without fraction and exponent, INF, INFINITY and NAN in any case, with a
 * sign and spaces around; True and False too for bool. A whole number goes to an integer type exactly, its
 * higher bits dropped; another as dq_cast_to_int says. Float types get one rounding of the decimal number.
 *
 *  Printing: integers in decimal; bool as True and False; floats with the fewest digits that give the number
 * back, as ONNX's reference evaluator prints a double: 314.15926, 1000.0, 1e-05, nan, inf, -inf. */
dq_status dq_cast_strings(const dq_op_call *call, bool saturate, dq_round round, dq_error *err);

#endif
