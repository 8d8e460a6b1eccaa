/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of depthwise kernels with smlal of bytes, sixteen outputs at a time.
 *
 * A tap is a weight of eight bits and the offset of its byte. x minus 128 is multiplied, and 128 times the
 * sum of the weights is added (taps_start). Taps are summed in 16 bits, in groups whose weights are at most
 * GROUP_MAX in magnitude sum, so that no sum overflows. */
#ifndef DQ_KERNELS_DWCONV_TAPS_NEON_H
#define DQ_KERNELS_DWCONV_TAPS_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TAP_MAX = 127, GROUP_MAX = 255 /* maximum magnitude (sums) of a tap and of a group */ };
enum { TAPS_MAX = 256, TAPS_3X3 = 9, GROUPS_3X3 = 3 /* taps and groups of sums without loops over them */ };
enum { CHUNK = 16 /* outputs at a time */ };

typedef struct tap {
    int32_t w;
    uint32_t at;
} tap;

/* The first count % groups groups have one more tap than the others. */
typedef struct tap_groups {
    uint32_t count, groups;
} tap_groups;

static size_t taps_in_group(tap_groups g, size_t i)
{
    return g.count / g.groups + (i < g.count % g.groups);
}

/* 128 times the sum of the weights, modulo 2^32. */
static uint32_t taps_start(const int16_t *w, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (uint32_t)w[i];
    return 128 * sum;
}

/* Splits weights into taps, sorted by magnitude, the heaviest first. Returns false if there are more than
 * `most`.
 */
static bool find_taps(const int16_t *w, const size_t *at, size_t n, size_t most, tap *taps, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < n; i++)
        for (int left = w[i]; left != 0;) {
            int part = left < -TAP_MAX ? -TAP_MAX : left > TAP_MAX ? TAP_MAX : left;
            size_t to = (*count)++;
            if (to == most)
                return false;
            for (; to > 0 && abs(taps[to - 1].w) < abs(part); to--)
                taps[to] = taps[to - 1];
            taps[to] = (tap){part, (uint32_t)at[i]};
            left -= part;
        }
    return true;
}

/* Distributes the taps among the groups, each to the lightest one. Returns false if a group becomes too
 * heavy. */
static bool distribute_taps(const tap *taps, tap_groups g, tap *out)
{
    int sizes[TAPS_MAX] = {0};
    size_t taken[TAPS_MAX] = {0};
    for (size_t i = 0; i < g.count; i++) {
        size_t lightest = g.groups, at = 0;
        for (size_t k = 0; k < g.groups; k++)
            if (taken[k] < taps_in_group(g, k) && (lightest == g.groups || sizes[k] < sizes[lightest]))
                lightest = k;
        sizes[lightest] += abs(taps[i].w);
        if (sizes[lightest] > GROUP_MAX)
            return false;
        for (size_t k = 0; k < lightest; k++)
            at += taps_in_group(g, k);
        out[at + taken[lightest]++] = taps[i];
    }
    return true;
}

/* Finds the smallest number of groups. One tap a group is light enough. */
static tap_groups group_taps(const tap *taps, size_t count, tap *out)
{
    tap_groups g = {(uint32_t)count, 1};
    while (!distribute_taps(taps, g, out))
        g.groups++;
    return g;
}

/* The weights and offsets of some taps. */
typedef struct taps_kept {
    int8x16_t w[TAPS_3X3];
    size_t at[TAPS_3X3];
} taps_kept;

static inline taps_kept keep_taps(const tap *taps)
{
    taps_kept k;
    for (size_t t = 0; t < TAPS_3X3; t++) {
        k.w[t] = vdupq_n_s8((int8_t)taps[t].w);
        k.at[t] = taps[t].at;
    }
    return k;
}

/* The bytes of sixteen outputs, minus 128. */
static inline __attribute__((always_inline)) int8x16_t bytes_of_outputs(const uint8_t *x, bool strided)
{
    return vreinterpretq_s8_u8(veorq_u8(strided ? vld2q_u8(x).val[0] : vld1q_u8(x), vdupq_n_u8(0x80)));
}

/* Adds the sums of a group. */
static inline void add_group(const int16x8_t group[2], int32x4_t sums[4])
{
    for (int k = 0; k < 2; k++) {
        sums[2 * k] = vaddw_s16(sums[2 * k], vget_low_s16(group[k]));
        sums[2 * k + 1] = vaddw_high_s16(sums[2 * k + 1], group[k]);
    }
}

/* Sums the taps of sixteen outputs. `groups` is constant in each call. */
static inline __attribute__((always_inline)) void sum_kept(const uint8_t *x, const taps_kept *taps,
                                                           size_t groups, int32x4_t init, int32x4_t sums[4])
{
    const tap_groups all = {TAPS_3X3, (uint32_t)groups};
    for (size_t k = 0; k < 4; k++)
        sums[k] = init;
    for (size_t g = 0, t = 0; g < groups; g++) {
        int8x16_t bytes = bytes_of_outputs(x + taps->at[t], false);
        int16x8_t group[2] = {vmull_s8(vget_low_s8(bytes), vget_low_s8(taps->w[t])),
                              vmull_high_s8(bytes, taps->w[t])};
        for (size_t end = t++ + taps_in_group(all, g); t < end; t++) {
            bytes = bytes_of_outputs(x + taps->at[t], false);
            group[0] = vmlal_s8(group[0], vget_low_s8(bytes), vget_low_s8(taps->w[t]));
            group[1] = vmlal_high_s8(group[1], bytes, taps->w[t]);
        }
        add_group(group, sums);
    }
}

/* Sums any number of taps. `strided` is constant in each call: outputs are two bytes apart. */
static inline __attribute__((always_inline)) void sum_any(const uint8_t *x, const tap *taps, tap_groups all,
                                                          bool strided, int32x4_t init, int32x4_t sums[4])
{
    for (size_t k = 0; k < 4; k++)
        sums[k] = init;
    for (size_t g = 0; g < all.groups; g++) {
        int16x8_t group[2] = {vdupq_n_s16(0), vdupq_n_s16(0)};
        for (const tap *end = taps + taps_in_group(all, g); taps < end; taps++) {
            const int8x16_t bytes = bytes_of_outputs(x + taps->at, strided), w = vdupq_n_s8((int8_t)taps->w);
            group[0] = vmlal_s8(group[0], vget_low_s8(bytes), vget_low_s8(w));
            group[1] = vmlal_high_s8(group[1], bytes, w);
        }
        add_group(group, sums);
    }
}

#endif
