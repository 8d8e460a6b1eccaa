/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of Cast (cast.c) that other operators use, and conversions of strings. */
#ifndef DQ_OPS_CAST_H
#define DQ_OPS_CAST_H

#include "base/codec.h"
#include "ops/op.h"

/** Converts a floating-point number to the bits of an integer of type `dtype`. It truncates toward zero: to
 * int32 for types of up to 32 bits, to int64 for uint32 and 64-bit types. Numbers that do not fit there,
 * infinities and NaN give the lowest number of int32 or int64; uint64 has its whole range. Bits above the
 * type's width are then dropped. ONNX does not define numbers out of range. These are the results of ONNX
 * Runtime and NumPy on x86-64, here on every processor. */
int64_t dq_cast_to_int(double x, dq_dtype dtype);

/** Converts n numbers between types of whole bytes, as Cast does. Returns false if there is no fast way; y is
 * then unspecified. */
bool dq_cast_numbers(const dq_kernels *k, dq_dtype from, const void *x, dq_dtype to, void *y, size_t n);

/** Whether infinity becomes NaN in output 0. Cast-19 to Cast-23 specify that for the saturating conversion to
 * the fnuz types; since Cast-24 it becomes the largest number. */
bool dq_cast_infinity_is_nan(const dq_op_call *call, bool saturate);

/** Converts input 0 to output 0 if one of them has strings. A string that is not a number fails with
 * DQ_BAD_INPUT.
 *
 *  From strings: decimal numbers with or without fraction and exponent; INF, INFINITY and NAN in any case; a
 * sign and surrounding spaces are allowed; for bool also True and False. An integer type gets whole numbers
 * exactly, without their higher bits, and other numbers as dq_cast_to_int defines. Float types get the
 * decimal number, rounded once.
 *
 *  To strings: integers in decimal; bool as True and False; floats with the fewest digits that read back as
 * the same number, in the format of ONNX's reference evaluator for doubles: 314.15926, 1000.0, 1e-05, nan,
 * inf, -inf. */
dq_status dq_cast_strings(const dq_op_call *call, bool saturate, dq_round round, dq_error *err);

#endif
