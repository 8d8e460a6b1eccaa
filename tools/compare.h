/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two tensors, sequences or optionals as `dqrun --expect` and dqrun-conformance do. */
#ifndef DQ_TOOLS_COMPARE_H
#define DQ_TOOLS_COMPARE_H

#include <dqrun/dqrun.h>

/** Defaults of both tools, those of the ONNX test runner. */
#define COMPARE_RTOL 1e-3
#define COMPARE_ATOL 1e-7

/** Elements g and w of a float or complex type are equal when |g - w| <= atol + rtol * |w|, when both are
 * NaN, or when both are the same infinity (numpy.allclose with equal_nan). With a negative rtol
 * they must be the same number, zeros of the same sign too. Integers, bools and strings are compared exactly.
 */
typedef struct compare_tolerance {
    double rtol, atol;
} compare_tolerance;

typedef struct compare_result {
    bool same;            /**< type, shape and every element */
    bool comparable;      /**< same type and shape: the counts below mean something */
    size_t count, differ; /**< elements (items of a list), and how many of them differ */
    size_t where;         /**< the element with the largest difference, or the first string or item that
                               differs */
    double largest;       /**< the largest difference; NaN when one of the two is NaN, infinity or a string */
    char sentence[640];   /**< "equal", or what differs, by how much and where */
} compare_result;

/** Fills `result`; never fails. `got` is what was computed, `want` what was expected. */
void compare_tensors(const dq_tensor *got, const dq_tensor *want, const compare_tolerance *tolerance,
                     compare_result *result);

#endif
