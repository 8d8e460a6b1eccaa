#include "kernels/arm/vec_neon.h"

#define ISA(name) name##_neon
enum { WHOLE = 1, LOOKS_UP = 0 };

static inline void add_now(vi *sum, vi term)
{
    *sum = vi_add_16(*sum, term);
}

#include "kernels/nbits_pairs.h"

#include "kernels/nbits_body.h"
#include "kernels/nbits_rounded_body.h"

/* The bytes of each element, by their places in the table's 64. */
ALWAYS_INLINE vf looked_up(const float *table, vi codes)
{
    const uint8x16x4_t entries = vld1q_u8_x4((const uint8_t *)table);
    const vi places = vi_add(vi_mul(codes, vi_set(0x04040404)), vi_set(0x03020100));
    return vreinterpretq_f32_u8(vqtbl4q_u8(entries, vreinterpretq_u8_s32(places)));
}

#include "kernels/nbits_floats_body.h"
