#include "kernels/arm/vec_neon.h"

#define ISA(name) name##_neon

static inline void add_now(vi *sum, vi term)
{
    *sum = vi_add_16(*sum, term);
}

#include "kernels/nbits_pairs.h"

#include "kernels/nbits_body.h"
