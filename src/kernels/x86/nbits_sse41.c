/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/x86/vec_sse41.h"

#define ISA(name) name##_sse41
enum { WHOLE = 0 };

static inline void add_now(vi *sum, vi term)
{
    *sum = _mm_add_epi16(*sum, term);
}

#include "kernels/nbits_pairs.h"

#include "kernels/nbits_body.h"
