/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Packs depthwise kernels with fused requantization for instructions
 * that multiply four contiguous bytes by four weights. Four bytes serve two outputs: once with the weights of
 * up to three neighboring elements first, and once with the weights after a zero. If int8 does not hold a
 * weight, another quad of the same bytes has the remainder. The file of the ISA level defines before the
 * include MIDDLE                the kernel subtracts it from each byte of x; init compensates for it float
 * exact_scale(const dq_requantize_to *to, double largest) a scale for sums of up to `largest` in magnitude;
 * 0: there is none */
#include "kernels/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUAD = 4, TAPS = 3 };

/* Weights for four contiguous bytes. */
typedef struct quad {
    int8_t w[2][QUAD]; /* with the weights first, and with the weights after a zero */
    uint32_t at;
} quad;

/* Head of a channel; its quads follow. */
typedef struct head {
    int32_t init, zero_point, lo;
    float scale, shift; /* shift: 0 without a bias of floats */
    size_t quads;
} head;

/* Maximum number of quads. Few elements may need PARTS quads for a weight; with more elements, neighbors
 * share quads. */
static size_t most_quads(size_t elements)
{
    enum { PARTS = 3 };
    return (elements + PARTS) / 2 * 2;
}

static size_t size(size_t elements)
{
    return sizeof(head) + most_quads(elements) * sizeof(quad);
}

/* Moves as much of each of `left` as int8 holds to w. Returns whether anything is left. */
static bool take(int16_t left[QUAD], int8_t w[QUAD])
{
    bool more = false;
    for (size_t e = 0; e < QUAD; e++) {
        w[e] = (int8_t)(left[e] < INT8_MIN ? INT8_MIN : left[e] > INT8_MAX ? INT8_MAX : left[e]);
        left[e] = (int16_t)(left[e] - w[e]);
        more = more || left[e] != 0;
    }
    return more;
}

/* Runs once per channel; optimized for size. */
static __attribute__((cold)) bool pack(const int16_t *w, const size_t *at, size_t n, int32_t init,
                                       const dq_requantize_to *to, void *packed)
{
    head *h = packed;
    quad *quads = (quad *)(h + 1);
    double largest = fabs((double)init);
    uint32_t start = (uint32_t)init;
    for (size_t i = 0; i < n; i++) {
        largest += 255 * abs(w[i]);
        start += (uint32_t)(MIDDLE * w[i]);
    }
    *h = (head){.init = (int32_t)start, .zero_point = to->zero_point, .lo = to->lo};
    h->shift = to->bias.shift ? (float)to->bias.shift[0] : 0;
    h->scale = exact_scale(to, largest);
    for (size_t i = 0, first; i < n && h->scale > 0;) {
        int16_t left[QUAD] = {0};
        if (w[i] == 0) {
            i++;
            continue;
        }
        for (first = at[i]; i < n && at[i] - first < TAPS; i++)
            left[at[i] - first] = (int16_t)(left[at[i] - first] + w[i]);
        for (bool more = true; more;) {
            if (h->quads == most_quads(n))
                return false;
            quads[h->quads].at = (uint32_t)first;
            more = take(left, quads[h->quads].w[0]);
            memcpy(quads[h->quads].w[1] + 1, quads[h->quads].w[0], TAPS);
            quads[h->quads++].w[1][0] = 0;
        }
    }
    return h->scale > 0;
}

static __attribute__((cold)) size_t resolve(const void *packed, size_t pitch, void *out)
{
    const head *h = packed;
    const quad *from = (const quad *)(h + 1);
    quad *to = out ? (quad *)((head *)out + 1) : NULL;
    if (out)
        memcpy(out, packed, sizeof *h + h->quads * sizeof *from);
    for (size_t i = 0; i < h->quads; i++) {
        size_t at = dq_conv_s8_offset(from[i].at, pitch);
        if (at > UINT32_MAX)
            return 0;
        if (out)
            to[i].at = (uint32_t)at;
    }
    return sizeof *h + (h->quads + 1) / 2 * 2 * sizeof *from;
}
