/* SPDX-License-Identifier: Apache-2.0 */
/* NC4HW4 convolution with vpdpbusd (nc4hw4_dot_body.h), in 256 bits. */
#include "kernels/simd/vec_avx2.h"

enum { VECTORS = 3 };
#define add_products(sum, pixels, w) (*(sum) = _mm256_dpbusd_avx_epi32(*(sum), pixels, w))

#include "kernels/conv_nc4hw4/nc4hw4_dot_body.h"

const dq_conv_nc4hw4_s8 dq_conv_nc4hw4_s8_avxvnni = {.lanes = VF_LANES,
                                                     .least = BYTES,
                                                     .deepest = 224,
                                                     .nhwc = true,
                                                     .interleave = dq_nc4hw4_interleave_avx2,
                                                     .panel_size = panel_size,
                                                     .pack = pack,
                                                     .sums = sums,
                                                     .store = dq_nc4hw4_store_avx2,
                                                     .exact_scale = dq_nc4hw4_exact_scale_avx2,
                                                     .qvalues = dq_nc4hw4_requantize_avx2};
