/* SPDX-License-Identifier: Apache-2.0 */
/* im2col gather of any float type, for dq_matmul_generic. */
#ifndef DQ_OPS_IM2COL_GATHER_H
#define DQ_OPS_IM2COL_GATHER_H

#include "ops/matmul/matmul_generic.h"

/** Packs kernel element `tap` of a strip of columns. For channel c < channels and column j, step c * taps +
 * tap of the strip `to` becomes element first + c * plane + at[j] of `data`, or 0 if at[j] is negative. The
 * strip has the type that the product computes in (float or double). */
void dq_im2col_gather(const dq_tensor *data, size_t first, size_t channels, size_t plane,
                      const int64_t at[DQ_STRIP_COLS], size_t taps, size_t tap, void *to);

#endif
