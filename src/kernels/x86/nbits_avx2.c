#include "kernels/x86/accumulate_avx2.h"
#include "kernels/x86/vec_avx2.h"

#define ISA(name) name##_avx2
enum { WHOLE = 1, LOOKS_UP = 0 };

#include "kernels/nbits_pairs.h"

#include "kernels/nbits_body.h"
#include "kernels/nbits_rounded_body.h"

ALWAYS_INLINE vf looked_up(const float *table, vi codes)
{
    vf below = _mm256_permutevar8x32_ps(vf_load(table), codes);
    vf above = _mm256_permutevar8x32_ps(vf_load(table + VF_LANES), codes);
    return vf_pick(vi_float(vi_left(codes, 28)), above, below);
}

#include "kernels/nbits_floats_body.h"
