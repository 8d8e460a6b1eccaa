/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of a float image as the columns of a matrix product (dq_gemm_f32). */
#ifndef DQ_OPS_CONV_PANELS_H
#define DQ_OPS_CONV_PANELS_H

#include "ops/conv/conv_shape.h"
#include "ops/matmul/gemm_driver_f32.h"

/** Whether places in the windows can be counted in 32 bits, as dq_im2col_pack does. */
bool dq_im2col_pack_fit(const dq_window *w);

/** Whether windows are all inside an image of rows, or a row, and so wide and far apart that each of their
 * rows is best turned as a matrix: an image of so many channels that is cut into patches, mostly. */
bool dq_conv_patches(const dq_window *w, size_t channels);

/** Lays out the part's columns: column j is output position j, step p is element p % taps of the kernel in
 *  channel p / taps of those from `x` on; padding is zeros. The part's p and k are multiples of the taps. */
void dq_im2col_pack(const dq_kernels *kernels, const dq_window *w, const float *x, const dq_gemm_part *part,
                    float *workspace, dq_gemm_block_f32 *block);

#endif
