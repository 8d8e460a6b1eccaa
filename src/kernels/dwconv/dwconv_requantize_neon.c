/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions with fused requantization, by smlal of bytes (dwconv_taps_neon.h). */
#include "base/copy.h"
#include "kernels/dwconv/dwconv_taps_neon.h"
#include "kernels/kernels.h"

#include <math.h>

/* Head of a channel; its taps follow. */
typedef struct head {
    int32_t init, zero_point, lo;
    float scale, shift; /* shift: 0 without a bias of floats */
    tap_groups taps;
    uint32_t unused; /* taps come in whole words */
} head;

#include "kernels/dwconv/dwconv_requantize_arm.h"

/* ---- Scales ------------------------------------------------------------------------------------------- */

/* The shift of column 0; 0 if there is no float bias. */
static float shift_of(const dq_requantize_to *to)
{
    return to->bias.shift ? (float)to->bias.shift[0] : 0;
}

/* What requantize_sums() gives for a sum, without the zero point. */
static int32_t requantized(double sum, float scale, const dq_requantize_to *to)
{
    const float middle = EXACT_SCALE_MAGIC + (float)(to->zero_point - to->lo), shift = shift_of(to);
    const float v = shift != 0 ? fmaf((float)sum, scale, shift) + middle : fmaf((float)sum, scale, middle);
    return (int32_t)(v - middle);
}

/* Whether products with the float `scale` are rounded as the exact ones are. Both are monotonic in the sum,
 * so that it is enough to compare the sums next to each tie, where the result steps from one whole number to
 * the next.
 *
 * A float next to the nearest one, and the rounding of a sum with the shift, move a tie by at most TIE_MARGIN
 * of its position without the shift. Ties farther than this from any whole sum need no check. */
static bool is_exact(const dq_requantize_to *to, float scale)
{
    const double margin = 0x1p-21, inverse = 1 / to->scale[0], shift = to->bias.shift ? to->bias.shift[0] : 0;
    for (int32_t k = to->lo - to->zero_point; k < to->hi - to->zero_point; k++) {
        const double tie = (k + 0.5 - shift) * inverse, sum = nearbyint(tie);
        if (fabs(tie - sum) > fabs((k + 0.5) * inverse) * margin)
            continue;
        for (int i = -1; i <= 1; i++)
            if (requantized(sum + i, scale, to) != dq_requantize_exactly((int32_t)sum + i, to, 0))
                return false;
    }
    return true;
}

float dq_dwconv_exact_scale_neon(const dq_requantize_to *to, double largest)
{
    enum { TRIES = 3, ZERO_POINT_MAX = 255 };
    const double scale = to->scale[0];
    const float nearest = (float)scale,
                tries[TRIES] = {nearest, nextafterf(nearest, 0), nextafterf(nearest, 1)};
    if (!(scale >= 0x1p-14) || !(largest < 0x1p22) || !(largest * scale + ZERO_POINT_MAX + 1 < INT16_MAX))
        return 0;
    for (size_t i = 0; i < TRIES; i++)
        if (is_exact(to, tries[i]))
            return tries[i];
    return 0;
}

/* ---- Weights ------------------------------------------------------------------------------------------ */

/* Maximum number of taps. Few elements may need PARTS taps for a weight. */
static size_t most_taps(size_t elements)
{
    enum { PARTS = 3 };
    return elements + PARTS < TAPS_MAX ? elements + PARTS : TAPS_MAX;
}

static size_t size(size_t elements)
{
    return sizeof(head) + most_taps(elements) * sizeof(tap);
}

/* Runs once per channel; optimized for size. */
static __attribute__((cold)) bool pack(const int16_t *w, const size_t *at, size_t n, int32_t init,
                                       const dq_requantize_to *to, void *packed)
{
    head *h = packed;
    tap taps[TAPS_MAX];
    double largest = fabs((double)init);
    size_t count;
    for (size_t i = 0; i < n; i++)
        largest += 255 * abs(w[i]);
    *h = (head){
        .init = (int32_t)((uint32_t)init + taps_start(w, n)), .zero_point = to->zero_point, .lo = to->lo};
    h->shift = shift_of(to);
    h->scale = dq_dwconv_exact_scale_neon(to, largest);
    if (h->scale == 0 || !find_taps(w, at, n, most_taps(n), taps, &count))
        return false;
    h->taps = group_taps(taps, count, (tap *)(h + 1));
    return true;
}

static __attribute__((cold)) size_t resolve(const void *packed, size_t pitch, void *out)
{
    const head *h = packed;
    const size_t bytes = sizeof *h + h->taps.count * sizeof(tap);
    const tap *from = (const tap *)(h + 1);
    tap *to = out ? (tap *)((head *)out + 1) : NULL;
    if (out)
        memcpy(out, packed, bytes);
    for (size_t i = 0; i < h->taps.count; i++) {
        size_t at = dq_conv_s8_offset(from[i].at, pitch);
        if (at > UINT32_MAX)
            return 0;
        if (out)
            to[i].at = (uint32_t)at;
    }
    return bytes;
}

/* ---- Outputs ------------------------------------------------------------------------------------------ */

static inline __attribute__((always_inline)) void put_qvalues(const int32x4_t sums[4], bool shifted,
                                                              const form *f, uint8_t *out)
{
    int16x8_t half[4];
    for (size_t k = 0; k < 4; k++)
        half[k] = requantize_sums(sums[k], shifted, f);
    const uint8x8_t low = vqmovun_s16(vuzp1q_s16(half[0], half[1]));
    vst1q_u8(out, veorq_u8(vqmovun_high_s16(low, vuzp1q_s16(half[2], half[3])), f->sign_xor));
}

/* Nine taps in `groups` groups, which is constant in each call. */
static inline __attribute__((always_inline)) void make_3x3(const uint8_t *x, size_t row_pitch, size_t rows,
                                                           const head *h, size_t groups, size_t n,
                                                           uint8_t *out)
{
    const form f = form_of(h);
    const taps_kept taps = keep_taps((const tap *)(h + 1));
    for (; rows; rows--, x += row_pitch)
        for (size_t j = 0; j < n; j += CHUNK, out += CHUNK) {
            int32x4_t sums[4];
            sum_kept(x + j, &taps, groups, f.init, sums);
            put_qvalues(sums, false, &f, out);
        }
}

/* `strided` is constant in each call. */
static inline __attribute__((always_inline)) void
make_any(const uint8_t *x, size_t row_pitch, size_t rows, const head *h, bool strided, size_t n, uint8_t *out)
{
    const form f = form_of(h);
    for (; rows; rows--, x += row_pitch)
        for (size_t j = 0; j < n; j += CHUNK, out += CHUNK) {
            int32x4_t sums[4];
            sum_any(x + (strided ? 2 * j : j), (const tap *)(h + 1), h->taps, strided, f.init, sums);
            put_qvalues(sums, h->shift != 0, &f, out);
        }
}

static void make_rows(const uint8_t *x, size_t row_pitch, size_t rows, const head *h, bool strided, size_t n,
                      uint8_t *out)
{
    const bool shifted = h->shift != 0;
    if (strided)
        make_any(x, row_pitch, rows, h, true, n, out);
    else if (h->taps.count != TAPS_3X3 || h->taps.groups > GROUPS_3X3 || shifted)
        make_any(x, row_pitch, rows, h, false, n, out);
    else if (h->taps.groups == 1)
        make_3x3(x, row_pitch, rows, h, 1, n, out);
    else if (h->taps.groups == 2)
        make_3x3(x, row_pitch, rows, h, 2, n, out);
    else
        make_3x3(x, row_pitch, rows, h, GROUPS_3X3, n, out);
}

const dq_dwconv_requantize_s8 dq_dwconv_requantize_s8_neon = {
    .size = size, .pack = pack, .resolve = resolve, .put = put};
