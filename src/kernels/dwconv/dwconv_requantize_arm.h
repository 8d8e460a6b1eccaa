/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Depthwise convolutions with fused requantization for ARM, sixteen
 * outputs at a time. Sums start with the bits of EXACT_SCALE_MAGIC, so that they are floats without a
 * conversion. One fused product then requantizes them, with a scale for which this was proven exact. The file
 * of the ISA level defines before the include the type head: a channel's parameters, with init, zero_point,
 * lo, scale and shift; and CHUNK. */
#include "kernels/kernels.h"

#include <arm_neon.h>
#include <string.h>

/* Adding it to a float below 2^22 in magnitude leaves the rounded integer in the sum's low bits; its bits
 * plus an integer below 2^22 in magnitude are the float of their sum. */
#define EXACT_SCALE_MAGIC 12582912.0f
enum { EXACT_SCALE_BITS = 0x4b400000 };

typedef struct form {
    int32x4_t init; /* with EXACT_SCALE_BITS */
    float32x4_t scale, shift, middle;
    uint8x16_t sign_xor;
} form;

static inline form form_of(const head *h)
{
    return (form){.init = vdupq_n_s32((int32_t)((uint32_t)h->init + EXACT_SCALE_BITS)),
                  .scale = vdupq_n_f32(h->scale),
                  .shift = vdupq_n_f32(h->shift),
                  .middle = vdupq_n_f32(EXACT_SCALE_MAGIC + (float)(h->zero_point - h->lo)),
                  .sign_xor = vdupq_n_u8((uint8_t)h->lo)};
}

/* Products of four sums plus the zero point, rounded, in the lower 16 bits of each lane. `shifted` is
 * constant in most calls. */
static inline __attribute__((always_inline)) int16x8_t requantize_sums(int32x4_t sums, bool shifted,
                                                                       const form *f)
{
    const float32x4_t v = vsubq_f32(vreinterpretq_f32_s32(sums), vdupq_n_f32(EXACT_SCALE_MAGIC));
    return vreinterpretq_s16_f32(shifted ? vaddq_f32(vfmaq_f32(f->shift, v, f->scale), f->middle)
                                         : vfmaq_f32(f->middle, v, f->scale));
}

/* Computes n outputs of each of some rows and of windows after them, in whole chunks. */
static void make_rows(const uint8_t *x, size_t row_pitch, size_t rows, const head *h, bool strided, size_t n,
                      uint8_t *out);

/* Copies rows to contiguous memory. Short rows are written as whole vectors if these end before the end of
 * `out`; the next rows overwrite the excess. */
static void put_rows(const uint8_t *from, size_t pitch, size_t rows, size_t n, uint8_t *out)
{
    enum { SHORT_ROW = 16 };
    const uint8_t *end = out + rows * n;
    for (; n < SHORT_ROW && end - out >= SHORT_ROW; from += pitch, out += n)
        vst1q_u8(out, vld1q_u8(from));
    for (; out < end; from += pitch, out += n)
        dq_copy_row(out, from, n);
}

/* Either all rows are computed as one long row, and put_rows() skips the outputs between rows; or each row
 * has whole chunks. The way with fewer chunks is chosen. */
static void put(const uint8_t *x, size_t row_pitch, size_t stride, size_t rows, const void *packed, size_t n,
                uint8_t *out)
{
    enum { BLOCK = 1024 /* outputs at a time, about */ };
    uint8_t made[BLOCK + CHUNK];
    const bool strided = stride != 1;
    const size_t whole = (n + CHUNK - 1) / CHUNK * CHUNK, step = row_pitch / stride;
    const bool one = row_pitch % stride == 0 && step < whole;
    const size_t pitch = one ? step : whole, rows_at_once = n && n < BLOCK ? 1 + (BLOCK - n) / pitch : 1;
    for (size_t i = 0, some; i < rows; i += some) {
        some = rows - i < rows_at_once ? rows - i : rows_at_once;
        for (size_t j = 0, width; j < n; j += width) {
            width = n - j < BLOCK ? n - j : BLOCK;
            make_rows(x + i * row_pitch + j * stride, row_pitch, one ? 1 : some, packed, strided,
                      one ? (some - 1) * pitch + width : width, made);
            put_rows(made, pitch, some, width, out + i * n + j);
        }
    }
}
