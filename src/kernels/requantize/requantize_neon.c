/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/simd/vec_neon.h"

#define ISA(name) name##_neon

typedef struct bounds {
    float64x2_t low, high;
} bounds;

/* Scale and shift of two sums, for results in double. */
typedef struct term {
    float64x2_t scale, shift;
} term;

/* The products of two sums, clamped and rounded. A NaN product is quiet, as it is the result of arithmetic:
 * fmaxnm then returns the other operand. *off: the largest distance from an integer so far. */
static inline int32x2_t scaled(int64x2_t acc, const term *t, bounds b, float64x2_t *off)
{
    float64x2_t v = vaddq_f64(vmulq_f64(vcvtq_f64_s64(acc), t->scale), t->shift);
    v = vminnmq_f64(vmaxnmq_f64(v, b.low), b.high);
    *off = vmaxq_f64(*off, vabdq_f64(v, vrndnq_f64(v)));
    return vmovn_s64(vcvtnq_s64_f64(v));
}

static inline int16x4_t four(int32x4_t acc, const term t[2], bounds b, float64x2_t *off)
{
    int32x2_t low = scaled(vmovl_s32(vget_low_s32(acc)), t, b, off);
    int32x2_t high = scaled(vmovl_high_s32(acc), t + 1, b, off);
    return vmovn_s32(vcombine_s32(low, high));
}

static void exact(const int32_t *acc, size_t n, const dq_requantize_to *to, size_t first, size_t step,
                  uint8_t *out)
{
    const double *scale = to->scale + first, *shift = to->bias.shift ? to->bias.shift + first : NULL;
    size_t j = 0;
    if (n >= 8) {
        bounds b = {vdupq_n_f64(to->lo - to->zero_point), vdupq_n_f64(to->hi - to->zero_point)};
        term t[4];
        for (int v = 0; v < 4; v++)
            t[v] = (term){vdupq_n_f64(scale[0]), vdupq_n_f64(shift ? shift[0] : 0)};
        int16x8_t zero = vdupq_n_s16((int16_t)to->zero_point);
        for (; j + 8 <= n; j += 8) {
            for (int v = 0; v < 4 && step; v++) {
                t[v].scale = vld1q_f64(scale + j + 2 * v);
                t[v].shift = shift ? vld1q_f64(shift + j + 2 * v) : t[v].shift;
            }
            float64x2_t off = vdupq_n_f64(0);
            int16x4_t low = four(vld1q_s32(acc + j), t, b, &off);
            int16x4_t high = four(vld1q_s32(acc + j + 4), t + 2, b, &off);
            int16x8_t qvalues = vaddq_s16(vcombine_s16(low, high), zero);
            vst1_u8(out + j, vmovn_u16(vreinterpretq_u16_s16(qvalues)));
            if (vmaxvq_f64(off) >= dq_requantize_tie_margin(to))
                dq_requantize_near_tie(acc + j, 8, to, first + j * step, step, out + j);
        }
    }
    dq_requantize_s32_c(acc + j, n - j, to, first + j * step, step, out + j);
}

static inline void put_qvalues(const vi v[4], int32_t zero, int32_t sign_xor, uint8_t *out)
{
    const int16x8_t z = vdupq_n_s16((int16_t)zero);
    int16x8_t first = vqaddq_s16(vcombine_s16(vqmovn_s32(v[0]), vqmovn_s32(v[1])), z);
    int16x8_t second = vqaddq_s16(vcombine_s16(vqmovn_s32(v[2]), vqmovn_s32(v[3])), z);
    uint8x16_t qvalues = vcombine_u8(vqmovun_s16(first), vqmovun_s16(second));
    vst1q_u8(out, veorq_u8(qvalues, vdupq_n_u8((uint8_t)sign_xor)));
}

#include "kernels/requantize/requantize_body.h"
