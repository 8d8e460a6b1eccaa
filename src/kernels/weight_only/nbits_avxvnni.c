/* SPDX-License-Identifier: Apache-2.0 */
/* Weight-only products with vpdpbusd, which adds four products to an int32, so that no 16-bit sums are
 * needed. */
#include "kernels/simd/vec_avx2.h"

#define ISA(name) name##_avxvnni
enum { WHOLE = 1 };

enum { VECTORS = 2, SUMS_IN_16_BITS = 0 };
#define add_products(sum, qvalues, digits) (*(sum) = _mm256_dpbusd_avx_epi32(*(sum), qvalues, digits))
#define dot_s16(sum, qvalues, digits) (*(sum) = _mm256_dpwssd_avx_epi32(*(sum), qvalues, digits))
#define in_32(sum, by) ((by) == 1 ? (sum) : vi_left(sum, 8))

#include "kernels/weight_only/nbits_body.h"
#include "kernels/weight_only/nbits_rounded_body.h"
