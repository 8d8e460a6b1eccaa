/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of winograd_product.h for NEON: smlal accumulates the two channels of a pair in turn. */
#include "kernels/simd/vec_neon.h"

#include <string.h>

enum { VECTORS = 2 };

static inline void pairs_of(const int16_t *u, vi w[VECTORS])
{
    int16x8x2_t pairs = vld2q_s16(u);
    w[0] = vreinterpretq_s32_s16(pairs.val[0]);
    w[1] = vreinterpretq_s32_s16(pairs.val[1]);
}

static inline void add_products(vi sum[VECTORS], const int16_t *v, const vi w[VECTORS])
{
    int32_t both;
    memcpy(&both, v, sizeof both);
    const int16x4_t pair = vreinterpret_s16_s32(vdup_n_s32(both));
    const int16x8_t first = vreinterpretq_s16_s32(w[0]), second = vreinterpretq_s16_s32(w[1]);
    sum[0] = vmlal_lane_s16(sum[0], vget_low_s16(first), pair, 0);
    sum[1] = vmlal_high_lane_s16(sum[1], first, pair, 0);
    sum[0] = vmlal_lane_s16(sum[0], vget_low_s16(second), pair, 1);
    sum[1] = vmlal_high_lane_s16(sum[1], second, pair, 1);
}

#include "kernels/winograd/winograd_body.h"

const dq_winograd_s8 dq_winograd_s8_neon = {.input = input, .product = product, .output = output};
