#include "kernels/arm/vec_neon.h"

#define ISA(name) name##_neon

static inline void add_now(vi *sum, vi term)
{
    *sum = vreinterpretq_s32_s16(vaddq_s16(vreinterpretq_s16_s32(*sum), vreinterpretq_s16_s32(term)));
}

#include "kernels/nbits_pairs.h"

#include "kernels/nbits_body.h"
