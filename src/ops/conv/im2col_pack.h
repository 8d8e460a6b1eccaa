/* SPDX-License-Identifier: Apache-2.0 */
/* im2col of a float image into panels of B, for dq_gemm_f32. */
#ifndef DQ_OPS_IM2COL_PACK_H
#define DQ_OPS_IM2COL_PACK_H

#include "ops/conv/conv_shape.h"
#include "ops/matmul/gemm_driver_f32.h"

/** True if offsets in the padded image fit in 32 bits, as dq_im2col_pack requires. */
bool dq_im2col_pack_fit(const dq_window *w);

/** True if windows need no padding and have long rows at a large stride, so that transposing each row of
 * windows as a matrix is fastest: mostly patch embeddings. */
bool dq_im2col_is_patches(const dq_window *w, size_t channels);

/** Packs the columns of a block into `workspace`. Column j is output position j. Step p is kernel element
 * p % taps of channel p / taps of the image at `x`; padding is zeros. p and k of the block are multiples of
 * taps. */
void dq_im2col_pack(const dq_kernels *kernels, const dq_window *w, const float *x, const dq_gemm_part *part,
                    float *workspace, dq_gemm_block_f32 *block);

#endif
