/* SPDX-License-Identifier: Apache-2.0 */
/* Weight-only products with vpdpbusd, which adds four products to an int32, so that no 16-bit sums are
 * needed. All columns are one tile: twelve accumulators hide the instruction's latency. */
#include "kernels/simd/vec_avx512.h"

#define ISA(name) name##_avx512vnni
enum { WHOLE = 1 };

enum { VECTORS = 4, SUMS_IN_16_BITS = 0 };
#define RESULT_VECTORS 2
#define add_products(sum, qvalues, digits) (*(sum) = _mm512_dpbusd_epi32(*(sum), qvalues, digits))
#define dot_s16(sum, qvalues, digits) (*(sum) = _mm512_dpwssd_epi32(*(sum), qvalues, digits))
#define in_32(sum, by) ((by) == 1 ? (sum) : vi_left(sum, 8))

#include "kernels/weight_only/nbits_body.h"
#include "kernels/weight_only/nbits_rounded_body.h"
