/* SPDX-License-Identifier: Apache-2.0 */
/* Packing shared by the 8-bit GEMM kernels with pairwise or dot-product instructions. A panel interleaves its
 * columns in groups of `group` positions (2, 4 or 8): for each group of positions, the bytes of all columns,
 * one column after another. A broadcast of `group` bytes of a row is multiplied by a vector of columns.
 * Segments are padded to whole groups with zero weights. */
#ifndef DQ_KERNELS_GEMM_S8_PACK_H
#define DQ_KERNELS_GEMM_S8_PACK_H

#include "kernels/gemm_s8/gemm_s8.h"

/** Implement dq_gemm_s8_panel_size_fn and dq_gemm_s8_pack_fn for panels of nr columns. */
size_t dq_gemm_s8_panel_size(size_t runs, size_t run, size_t nr, size_t group);
size_t dq_gemm_s8_pack(const dq_gemm_s8_b *b, size_t first, size_t nr, size_t group, void *panel,
                       int32_t *sums);
/** The same for groups of 4 and a multiple of 16 columns; for all x86 levels from AVX2 on. */
size_t dq_gemm_s8_pack_avx2(const dq_gemm_s8_b *b, size_t first, size_t nr, void *panel, int32_t *sums);

/** Implement dq_gemm_s8_sums_fn for uint8 rows: in portable C, for x86 levels from AVX2 on, and for ARM. */
dq_gemm_s8_sums_fn dq_gemm_s8_sums_u8, dq_gemm_s8_sums_u8_avx2, dq_gemm_s8_sums_u8_neon;

#endif
