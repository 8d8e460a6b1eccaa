/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of two tensors, sequences or optionals, for `dqrun --expect` and dqrun-conformance. */
#ifndef DQ_TOOLS_COMPARE_H
#define DQ_TOOLS_COMPARE_H

#include <dqrun/dqrun.h>

/** Defaults of both tools, those of the ONNX test runner. */
#define COMPARE_RTOL 1e-3
#define COMPARE_ATOL 1e-7

/** Elements g and w of a float or complex type are equal if |g - w| <= atol + rtol * |w|, if both are NaN, or
 * if both are the same infinity (numpy.allclose with equal_nan). A negative rtol requires the same number,
 * with equal signs of zeros. Integers, bools and strings are compared exactly. */
typedef struct compare_tolerance {
    double rtol, atol;
} compare_tolerance;

typedef struct compare_result {
    bool same;            /**< Type, shape and every element are equal. */
    bool comparable;      /**< Same type and shape: the counts below are valid. */
    size_t count, differ; /**< Number of elements (items of a list), and how many of them differ. */
    /** Index of the element with the largest difference, or of the first string or item that differs. */
    size_t where;
    double largest;    /**< The largest difference; NaN if one of the two is NaN, infinity or a string. */
    char message[640]; /**< "equal", or a description of the difference, its size and position. */
} compare_result;

/** Fills `result`; never fails. `got` is the computed value, `want` the expected one. */
void compare_tensors(const dq_tensor *got, const dq_tensor *want, const compare_tolerance *tolerance,
                     compare_result *result);

#endif
