/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of a float image as the columns of a matrix product (dq_gemm_f32). */
#ifndef DQ_OPS_IM2COL_PACK_H
#define DQ_OPS_IM2COL_PACK_H

#include "ops/conv/conv_shape.h"
#include "ops/matmul/gemm_driver_f32.h"

/** Whether offsets in the image fit in 32 bits, as dq_im2col_pack requires. */
bool dq_im2col_pack_fit(const dq_window *w);

/** Whether windows need no padding and are so wide and far apart that each of their rows is best transposed
 * as a matrix: patch embeddings, mostly. */
bool dq_conv_patches(const dq_window *w, size_t channels);

/** Packs the columns of a block: column j is output position j, step p is kernel element p % taps of channel
 * p / taps from `x` on; padding is zeros. p and k of the block are multiples of taps. */
void dq_im2col_pack(const dq_kernels *kernels, const dq_window *w, const float *x, const dq_gemm_part *part,
                    float *workspace, dq_gemm_block_f32 *block);

#endif
