/* SPDX-License-Identifier: Apache-2.0 */
#include <arm_neon.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define ISA(name) name##_neon

enum { LANES = 16 };
typedef uint8x16_t vb;

static inline __attribute__((always_inline)) vb vb_load(const uint8_t *p, size_t bytes)
{
    uint8_t some[LANES] = {0};
    if (bytes == LANES)
        return vld1q_u8(p);
    memcpy(some, p, bytes);
    return vld1q_u8(some);
}

static inline __attribute__((always_inline)) void vb_store(uint8_t *p, size_t bytes, vb v)
{
    uint8_t all[LANES];
    if (bytes == LANES) {
        vst1q_u8(p, v);
        return;
    }
    vst1q_u8(all, v);
    memcpy(p, all, bytes);
}

static inline vb vb_larger(vb a, vb b, bool is_signed)
{
    return is_signed ? vreinterpretq_u8_s8(vmaxq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)))
                     : vmaxq_u8(a, b);
}

#define vb_even(a, b) vuzp1q_u8(a, b)

#include "kernels/pool/pool_body.h"
