/* Finished sums, four at a time. */
#include "kernels/kernels.h"

#include <arm_neon.h>

typedef struct finish {
    float32x4_t scale, bias, low, high;
} finish;

static inline float32x4_t finished(const finish *f, const float *y)
{
    float32x4_t v = vcvtq_f32_s32(vreinterpretq_s32_f32(vld1q_f32(y)));
    return vaddq_f32(vmulq_f32(v, f->scale), f->bias);
}

/* Comparing and choosing lets NaN and -0 pass. */
static inline void put(const finish *f, float *y, float32x4_t v)
{
    v = vbslq_f32(vcltq_f32(v, f->low), f->low, v);
    vst1q_f32(y, vbslq_f32(vcgtq_f32(v, f->high), f->high, v));
}

void dq_finish_s32_f32_neon(float *y, size_t n, float scale, float bias, const float *z, float low,
                            float high)
{
    const finish f = {vdupq_n_f32(scale), vdupq_n_f32(bias), vdupq_n_f32(low), vdupq_n_f32(high)};
    size_t i = 0;
    if (z)
        for (; i + 4 <= n; i += 4)
            put(&f, y + i, vaddq_f32(finished(&f, y + i), vld1q_f32(z + i)));
    else
        for (; i + 4 <= n; i += 4)
            put(&f, y + i, finished(&f, y + i));
    dq_finish_s32_f32_c(y + i, n - i, scale, bias, z ? z + i : NULL, low, high);
}
