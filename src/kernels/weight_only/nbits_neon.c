/* SPDX-License-Identifier: Apache-2.0 */
/* Weight-only products with NEON, by pairwise multiplication of bytes (nbits_pairs.h). */
#include "kernels/simd/vec_neon.h"

#define ISA(name) name##_neon
enum { WHOLE = 1, LOOKS_UP = 0 };

static inline void add_now(vi *sum, vi term)
{
    *sum = vi_add_16(*sum, term);
}

#include "kernels/weight_only/nbits_pairs.h"

#include "kernels/weight_only/nbits_body.h"
#include "kernels/weight_only/nbits_rounded_body.h"

typedef uint8x16x4_t lookup;
#define lookup_of(table) vld1q_u8_x4((const uint8_t *)(table))

/* Looks up the bytes of each float by their indices in the table's 64 bytes. */
ALWAYS_INLINE void look_up(const lookup *table, vi word, int each, vf *value)
{
    const vi mask = vi_set((1 << each) - 1);
#pragma GCC unroll 8
    for (int t = 0; t < 32 / each; t++) {
        const vi qvalues = vi_and(vi_right(word, t * each), mask);
        const vi indices = vi_add(vi_mul(qvalues, vi_set(0x04040404)), vi_set(0x03020100));
        value[t] = vreinterpretq_f32_u8(vqtbl4q_u8(*table, vreinterpretq_u8_s32(indices)));
    }
}

#include "kernels/weight_only/nbits_floats_body.h"
