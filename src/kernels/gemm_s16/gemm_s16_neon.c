/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit GEMM, GEMV and depthwise convolution with NEON, and requantization to 16 bits. */
#include "kernels/simd/vec_neon.h"

#define ISA(name) name##_neon

#include "kernels/dwconv/dwconv_rows_s16_body.h"
#include "kernels/gemm_s16/gemm_s16_body.h"
#include "kernels/gemm_s16/gemv_s16s8_body.h"

/* Constants of requantization to 16 bits, two sums at a time. As in requantize_neon.c, fmaxnm returns the
 * other operand if one is NaN. */
typedef struct q16_form {
    const dq_q16_sums *s;
    vd low, high;
    int32x2_t zero;
} q16_form;

/* Requantizes two sums. Updates `off`, the largest distance from a whole number. */
static inline int32x2_t two(const q16_form *f, size_t at, size_t extra, vd scale, vd shift, vd *off)
{
    vd v = vcvtq_f64_s64(vmovl_s32(vld1_s32(f->s->sums + at)));
    if (f->s->high)
        v = vd_add(v, vd_mul(vcvtq_f64_s64(vmovl_s32(vld1_s32(f->s->high + at))), vd_set(256)));
    if (f->s->extra)
        v = vd_add(v, vd_load(f->s->extra + extra));
    v = vd_add(vd_mul(v, scale), shift);
    v = vminnmq_f64(vmaxnmq_f64(v, f->low), f->high);
    *off = vmaxq_f64(*off, vabdq_f64(v, vrndnq_f64(v)));
    return vadd_s32(vmovn_s64(vcvtnq_s64_f64(v)), f->zero);
}

void dq_requantize_s64_neon(const dq_q16_sums *s, uint16_t *out)
{
    const q16_form f = {s, vd_set(s->lo - s->zero_point), vd_set(s->hi - s->zero_point),
                        vdup_n_s32(s->zero_point)};
    for (size_t i = 0; i < s->rows && s->cols > 0; i++) {
        const double *shift = s->shift + i * s->row_step, *scale = s->scale + i * s->row_step;
        vd o0 = vd_set(*shift), s0 = vd_set(*scale), o1 = o0, s1 = s0;
        size_t j = 0, at = i * s->stride, extra = i * s->extra_stride;
        uint16_t *to = out + i * s->out_stride;
        for (; j + 4 <= s->cols; j += 4) {
            if (s->col_step) {
                o0 = vd_load(shift + j);
                s0 = vd_load(scale + j);
                o1 = vd_load(shift + j + 2);
                s1 = vd_load(scale + j + 2);
            }
            vd off = vd_set(0);
            int32x4_t qvalues = vcombine_s32(two(&f, at + j, extra + j, s0, o0, &off),
                                             two(&f, at + j + 2, extra + j + 2, s1, o1, &off));
            vst1_u16(to + j, vmovn_u32(vreinterpretq_u32_s32(qvalues)));
            if (!(vmaxvq_f64(off) < 0.5 - s->error))
                dq_requantize_s64_part(s, i, j, 4, to + j);
        }
        dq_requantize_s64_part(s, i, j, s->cols - j, to + j);
    }
}
