/* SPDX-License-Identifier: Apache-2.0 */
/* What integer products with dot instructions share: panels in groups of `group` positions of a column (2 or
 * 4), one column after another, so that a broadcast of as many bytes of a row meets a vector of columns. Runs
 * are padded to whole groups with zero weights. */
#ifndef DQ_KERNELS_GEMM_S8_PACK_H
#define DQ_KERNELS_GEMM_S8_PACK_H

#include "kernels/gemm_s8/gemm_s8.h"

/** dq_gemm_s8_panel_size_fn and dq_gemm_s8_pack_fn for panels of nr columns. */
size_t dq_gemm_s8_panel_size(size_t runs, size_t run, size_t nr, size_t group);
size_t dq_gemm_s8_pack(const dq_gemm_s8_b *b, size_t first, size_t nr, size_t group, void *panel,
                       int32_t *sums);
/** The same for groups of 4 and a multiple of 16 columns, on all x86 levels from AVX2 on. */
size_t dq_gemm_s8_pack_avx2(const dq_gemm_s8_b *b, size_t first, size_t nr, void *panel, int32_t *sums);

/** dq_gemm_s8_sums_fn of uint8 rows, in portable C and for the levels of x86 from AVX2 on and those of arm.
 */
dq_gemm_s8_sums_fn dq_gemm_s8_sums_u8, dq_gemm_s8_sums_u8_avx2, dq_gemm_s8_sums_u8_neon;

#endif
