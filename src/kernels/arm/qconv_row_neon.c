/* Sixteen outputs at a time, their bytes as 16-bit numbers: smlal by a tap's weight is exact. */
#include "kernels/kernels.h"

#include <arm_neon.h>
#include <string.h>

enum { LANES = 16 };

static inline void sixteen(const uint8_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps,
                           size_t stride, int32_t init, int32_t *out)
{
    int32x4_t sum[4];
    for (int v = 0; v < 4; v++)
        sum[v] = vdupq_n_s32(init);
    for (size_t t = 0; t < taps; t++) {
        const uint8_t *from = x + offsets[t];
        uint8x16_t bytes = stride == 1 ? vld1q_u8(from) : vld2q_u8(from).val[0];
        int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes)));
        int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(bytes));
        sum[0] = vmlal_n_s16(sum[0], vget_low_s16(low), w[t]);
        sum[1] = vmlal_high_n_s16(sum[1], low, w[t]);
        sum[2] = vmlal_n_s16(sum[2], vget_low_s16(high), w[t]);
        sum[3] = vmlal_high_n_s16(sum[3], high, w[t]);
    }
    for (int v = 0; v < 4; v++)
        vst1q_s32(out + 4 * v, sum[v]);
}

static inline __attribute__((always_inline)) void row(const uint8_t *x, const ptrdiff_t *offsets,
                                                      const int16_t *w, size_t taps, size_t stride,
                                                      int32_t init, size_t n, int32_t *out)
{
    size_t j = 0;
    for (; j + LANES <= n; j += LANES)
        sixteen(x + j * stride, offsets, w, taps, stride, init, out + j);
    if (j < n) {
        int32_t rest[LANES];
        sixteen(x + j * stride, offsets, w, taps, stride, init, rest);
        memcpy(out + j, rest, (n - j) * sizeof *out);
    }
}

void dq_qconv_row_neon(const uint8_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps,
                       size_t stride, int32_t init, size_t n, int32_t *out)
{
    if (stride == 1)
        row(x, offsets, w, taps, 1, init, n, out);
    else if (stride == 2)
        row(x, offsets, w, taps, 2, init, n, out);
    else
        dq_qconv_row_c(x, offsets, w, taps, stride, init, n, out);
}
