/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of support/reference_conv.h as cases of the harness. */
#ifndef DQ_TESTS_OPS_CONV_CASES_H
#define DQ_TESTS_OPS_CONV_CASES_H

#include "harness.h"
#include "support/random.h"
#include "support/reference_conv.h"

/** Adds the attributes of g. Random ones of those with their default values are left out; NULL: none is. */
void conv_attributes(ops_case *c, const ref_conv *g, uint64_t *state);
/** Add x and w of random bytes. */
dq_tensor *conv_in_x(ops_case *c, uint64_t *state, dq_dtype dtype, const ref_conv *g);
dq_tensor *conv_in_w(ops_case *c, uint64_t *state, dq_dtype dtype, const ref_conv *g);
/** Returns the rank of a random parameter of the channels: a scalar, or a vector of one element or of one a
 * channel (*dim). */
size_t conv_channel_param(uint64_t *state, int64_t channels, int64_t *dim);
/** Fails the test unless output 0 has the shape of y. */
void conv_want_shape(const ops_case *c, const ref_conv *g);

#endif
