#include "kernels/arm/vec_neon.h"

#define ISA(name) name##_neon

#include "kernels/wconv_rows_body.h"
#include "kernels/wgemm_body.h"
#include "kernels/wrow_body.h"

/* Sums to 16 bits, two at a time: as in requantize_neon.c, fmaxnm gives the other operand where one is NaN.
 */
typedef struct wide_form {
    const dq_wide_sums *s;
    vd low, high;
    int32x2_t zero;
} wide_form;

static inline int32x2_t two(const wide_form *f, size_t at, size_t extra, const double *more, vd offset,
                            vd scale)
{
    vd v = vcvtq_f64_s64(vmovl_s32(vld1_s32(f->s->sums + at)));
    if (f->s->high)
        v = vd_add(v, vd_mul(vcvtq_f64_s64(vmovl_s32(vld1_s32(f->s->high + at))), vd_set(256)));
    if (f->s->extra)
        v = vd_add(v, vd_load(f->s->extra + extra));
    if (more)
        v = vd_add(v, f->s->col_step ? vd_load(more) : vd_set(*more));
    v = vd_mul(vd_add(v, offset), scale);
    v = vminnmq_f64(vmaxnmq_f64(v, f->low), f->high);
    return vadd_s32(vmovn_s64(vcvtnq_s64_f64(v)), f->zero);
}

void dq_requantize_wide_neon(const dq_wide_sums *s, uint16_t *out)
{
    const wide_form f = {s, vd_set(s->lo - s->zero_point), vd_set(s->hi - s->zero_point),
                         vdup_n_s32(s->zero_point)};
    for (size_t i = 0; i < s->rows && s->cols > 0; i++) {
        const double *offset = s->offset + i * s->row_step, *scale = s->scale + i * s->row_step;
        const double *more = s->fixed ? s->fixed + i * s->row_step : NULL;
        vd o0 = vd_set(*offset), s0 = vd_set(*scale), o1 = o0, s1 = s0;
        size_t j = 0, at = i * s->stride, extra = i * s->extra_stride;
        uint16_t *to = out + i * s->out_stride;
        for (; j + 4 <= s->cols; j += 4) {
            if (s->col_step) {
                o0 = vd_load(offset + j);
                s0 = vd_load(scale + j);
                o1 = vd_load(offset + j + 2);
                s1 = vd_load(scale + j + 2);
            }
            const double *first = more ? more + j * s->col_step : NULL;
            const double *second = more ? first + 2 * s->col_step : NULL;
            int32x4_t codes = vcombine_s32(two(&f, at + j, extra + j, first, o0, s0),
                                           two(&f, at + j + 2, extra + j + 2, second, o1, s1));
            vst1_u16(to + j, vmovn_u32(vreinterpretq_u32_s32(codes)));
        }
        const dq_wide_sums rest = dq_wide_rest(s, i, j);
        dq_requantize_wide_c(&rest, to + j);
    }
}
