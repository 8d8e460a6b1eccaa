/* SPDX-License-Identifier: Apache-2.0 */
/* Weight-only products with SSE4.1, by pairwise multiplication of bytes (nbits_pairs.h). */
#include "kernels/simd/vec_sse41.h"

#define ISA(name) name##_sse41
enum { WHOLE = 0 };

static inline void add_now(vi *sum, vi term)
{
    *sum = _mm_add_epi16(*sum, term);
}

#include "kernels/weight_only/nbits_pairs.h"

#include "kernels/weight_only/nbits_body.h"
