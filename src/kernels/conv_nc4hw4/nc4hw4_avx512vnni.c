/* SPDX-License-Identifier: Apache-2.0 */
/* NC4HW4 convolution with vpdpbusd (nc4hw4_dot_body.h), in 512 bits. */
#include "kernels/simd/vec_avx512.h"

enum { VECTORS = 4 };
#define add_products(sum, pixels, w) (*(sum) = _mm512_dpbusd_epi32(*(sum), pixels, w))

#include "kernels/conv_nc4hw4/nc4hw4_dot_body.h"

/* Every panel reads all input bytes again, so that for many channels the GEMM of gemm_s8.h is faster. AMX
 * tiles are much faster, but their input and output have to be transposed; so the limit is lower there. */
#define KERNELS(most)                                                                                        \
    {                                                                                                        \
        .lanes = VF_LANES, .least = BYTES, .deepest = most, .interleave = dq_nc4hw4_interleave_avx2,         \
        .panel_size = panel_size, .pack = pack, .sums = sums, .store = dq_nc4hw4_store_avx2,                 \
        .exact_scale = dq_nc4hw4_exact_scale_avx2, .qvalues = dq_nc4hw4_requantize_avx512                    \
    }
const dq_conv_nc4hw4_s8 dq_conv_nc4hw4_s8_avx512vnni = KERNELS(224);
const dq_conv_nc4hw4_s8 dq_conv_nc4hw4_s8_amx = KERNELS(144);
