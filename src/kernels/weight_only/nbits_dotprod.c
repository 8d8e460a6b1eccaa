/* SPDX-License-Identifier: Apache-2.0 */
/* Weight-only products with sdot, which adds four int8 products to an int32. Quantized values of at most 4
 * bits are nonnegative as int8, too. */
#include "kernels/simd/vec_neon.h"

#define ISA(name) name##_dotprod
enum { WHOLE = 1 };

enum { VECTORS = 4 };
#define add_products(sum, qvalues, digits)                                                                   \
    (*(sum) = vdotq_s32(*(sum), vreinterpretq_s8_s32(qvalues), vreinterpretq_s8_s32(digits)))
#define dot_s16(sum, qvalues, digits) (*(sum) = vi_add(*(sum), vi_dot_16(qvalues, digits)))
#define in_32(sum, by) ((by) == 1 ? (sum) : vi_left(sum, 8))

#include "kernels/weight_only/nbits_body.h"
#include "kernels/weight_only/nbits_rounded_body.h"
