/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions with sdot, sixteen outputs at a time. sdot multiplies four contiguous bytes minus
 * 128 by weights of up to three neighboring elements of a kernel row. A load from the first byte of a window
 * gives outputs 4i and 4i + 1, a load two bytes further outputs 4i + 2 and 4i + 3. No byte is shuffled
 * before. */
#include "base/copy.h"
#include "kernels/kernels.h"

#include <arm_neon.h>

enum { MIDDLE = 128, CHUNK = 16 };
#define exact_scale dq_dwconv_exact_scale_neon

#include "kernels/dwconv/dwconv_quads.h"

#include "kernels/dwconv/dwconv_requantize_arm.h"

static inline int8x16_t load(const uint8_t *x)
{
    return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(x), vdupq_n_u8(0x80)));
}

static inline int8x16_t weights(const int8_t w[QUAD])
{
    int32_t four;
    memcpy(&four, w, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

/* ---- Fused requantization ----------------------------------------------------------------------------- */

/* Weights of a quad: for outputs that begin with its first byte, and with its second. */
typedef struct quad_weights {
    int8x16_t first, second;
} quad_weights;

static inline quad_weights weights_of(const quad *q)
{
    return (quad_weights){weights(q->w[0]), weights(q->w[1])};
}

/* Adds a quad to sums of outputs 4i, 4i + 1, 4i + 2 and 4i + 3; at stride 2, of 2i, 2i + 1, 2i + 8 and 2i
 * + 9. */
static inline __attribute__((always_inline)) void add_quad(const uint8_t *x, quad_weights w, bool strided,
                                                           int32x4_t sums[4])
{
    const int8x16_t low = load(x), high = load(x + 2);
    sums[0] = vdotq_s32(sums[0], low, w.first);
    sums[1] = vdotq_s32(sums[1], strided ? high : low, strided ? w.first : w.second);
    sums[2] = vdotq_s32(sums[2], strided ? load(x + CHUNK) : high, w.first);
    sums[3] = vdotq_s32(sums[3], strided ? load(x + CHUNK + 2) : high, strided ? w.first : w.second);
}

static const uint8_t alternate[CHUNK] = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};

static inline __attribute__((always_inline)) void put_chunk(const int32x4_t sums[4], bool strided,
                                                            bool shifted, const form *f, uint8_t *out)
{
    int16x8_t v[4], even, odd;
    for (int k = 0; k < 4; k++)
        v[k] = requantize_sums(sums[k], shifted, f);
    even = strided ? vuzp1q_s16(v[0], v[2]) : vtrn1q_s16(v[0], v[2]);
    odd = strided ? vuzp1q_s16(v[1], v[3]) : vtrn1q_s16(v[1], v[3]);
    const uint8x16_t qvalues = vqtbl1q_u8(vqmovun_high_s16(vqmovun_s16(even), odd), vld1q_u8(alternate));
    vst1q_u8(out, veorq_u8(qvalues, f->sign_xor));
}

/* Three quads, as those of 3x3 kernels at stride 1. */
static void make_three(const uint8_t *x, size_t row_pitch, size_t rows, const head *h, size_t n, uint8_t *out)
{
    enum { QUADS = 3 };
    const form f = form_of(h);
    const quad *q = (const quad *)(h + 1);
    const size_t at[QUADS] = {q[0].at, q[1].at, q[2].at};
    const quad_weights w[QUADS] = {weights_of(q), weights_of(q + 1), weights_of(q + 2)};
    for (; rows; rows--, x += row_pitch)
        for (size_t j = 0; j < n; j += CHUNK, out += CHUNK) {
            int32x4_t sums[4] = {f.init, f.init, f.init, f.init};
            for (size_t i = 0; i < QUADS; i++)
                add_quad(x + j + at[i], w[i], false, sums);
            put_chunk(sums, false, false, &f, out);
        }
}

/* `strided` is constant in each call. */
static inline __attribute__((always_inline)) void
make_any(const uint8_t *x, size_t row_pitch, size_t rows, const head *h, bool strided, size_t n, uint8_t *out)
{
    const form f = form_of(h);
    const quad *q = (const quad *)(h + 1);
    for (; rows; rows--, x += row_pitch)
        for (size_t j = 0; j < n; j += CHUNK, out += CHUNK) {
            int32x4_t sums[4] = {f.init, f.init, f.init, f.init};
            for (size_t i = 0; i < h->quads; i++)
                add_quad(x + (strided ? 2 * j : j) + q[i].at, weights_of(q + i), strided, sums);
            put_chunk(sums, strided, h->shift != 0, &f, out);
        }
}

static void make_rows(const uint8_t *x, size_t row_pitch, size_t rows, const head *h, bool strided, size_t n,
                      uint8_t *out)
{
    if (strided)
        make_any(x, row_pitch, rows, h, true, n, out);
    else if (h->quads == 3 && h->shift == 0)
        make_three(x, row_pitch, rows, h, n, out);
    else
        make_any(x, row_pitch, rows, h, false, n, out);
}

const dq_dwconv_requantize_s8 dq_dwconv_requantize_s8_dotprod = {
    .size = size, .pack = pack, .resolve = resolve, .put = put};

/* ---- 3x3 from bytes ----------------------------------------------------------------------------------- */

enum { SIDE = 3, PARTS = 2 /* int8 summands of a weight */ };

/* Computes sixteen outputs. `parts` is constant in each call. */
static inline __attribute__((always_inline)) int32x4x4_t
sixteen(const uint8_t *x, size_t step, quad_weights w[SIDE][PARTS], int parts, int32x4_t init)
{
    int32x4x4_t out;
    int32x4_t sums[4] = {init, init, init, init};
    for (int r = 0; r < SIDE; r++, x += step)
        for (int p = 0; p < parts; p++)
            add_quad(x, w[r][p], false, sums);
    for (int k = 0; k < 4; k++)
        out.val[k] = sums[k];
    return out;
}

static inline __attribute__((always_inline)) void rows_of(const uint8_t *x, size_t step, size_t rows,
                                                          quad_weights w[SIDE][PARTS], int parts,
                                                          int32_t init, size_t n, int32_t *out)
{
    const int32x4_t start = vdupq_n_s32(init);
    for (; rows; rows--, x += step, out += n)
        for (size_t at = 0; at < n; at += CHUNK) {
            const size_t j = dq_dwconv_chunk_at(at, n, CHUNK);
            vst4q_s32(out + j, sixteen(x + j, step, w, parts, start));
        }
}

static void rows_of_bytes(const uint8_t *x, size_t step, size_t rows, const int16_t *w, int32_t init,
                          size_t n, int32_t *out)
{
    quad_weights kept[SIDE][PARTS];
    const size_t whole = dq_dwconv_whole_chunks(rows, n, CHUNK);
    uint32_t start = (uint32_t)init;
    bool more[PARTS] = {false};
    for (size_t r = 0; r < SIDE; r++) {
        int16_t left[QUAD];
        memcpy(left, w + QUAD * r, sizeof left);
        for (size_t e = 0; e < QUAD; e++)
            start += (uint32_t)(MIDDLE * left[e]);
        for (size_t p = 0; p < PARTS; p++) {
            quad q = {.w = {{0}}};
            more[p] = take(left, q.w[0]) || more[p];
            memcpy(q.w[1] + 1, q.w[0], TAPS);
            kept[r][p] = weights_of(&q);
        }
    }
    if (more[1]) { /* a weight is above 254 in magnitude */
        dq_dwconv_3x3_s8_neon.rows(x, step, rows, w, init, n, out);
        return;
    }
    if (more[0])
        rows_of(x, step, whole, kept, PARTS, (int32_t)start, n, out);
    else
        rows_of(x, step, whole, kept, 1, (int32_t)start, n, out);
    if (whole < rows)
        dq_dwconv_3x3_s8_neon.rows(x + whole * step, step, rows - whole, w, init, n, out + whole * n);
}

const dq_dwconv_3x3_s8 dq_dwconv_3x3_s8_dotprod = {.least = CHUNK, .rows = rows_of_bytes};
