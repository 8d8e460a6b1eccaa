/* SPDX-License-Identifier: Apache-2.0 */
/* Packing input elements that a convolution's windows point at, for dq_matmul_generic. */
#ifndef DQ_OPS_IM2COL_GATHER_H
#define DQ_OPS_IM2COL_GATHER_H

#include "ops/matmul/matmul_generic.h"

/** For each of `channels` planes of `plane` elements from element `first` of `data` on, and each column j,
 * writes the element at[j] (zero where that is negative), in the computing type, as step channel * taps + tap
 * of the strip `to`. */
void dq_im2col_gather(const dq_tensor *data, size_t first, size_t channels, size_t plane,
                      const int64_t at[DQ_STRIP_COLS], size_t taps, size_t tap, void *to);

#endif
