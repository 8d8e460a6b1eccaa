/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level without a dot-product instruction for bytes. NC4HW4 convolution
 * with pairwise multiplication of bytes. The file of the ISA level includes its vec_<isa>.h before;
 * nc4hw4_sse41.c packs the panels for all of them.
 *
 * A pair of products of uint8 and int8 is summed in 16 bits. This is safe if the weights of each sign sum to
 * at most 128 in magnitude: 255 * 128 < 2^15. So each weight is split into a safe part, whose pairs obey this
 * bound, and a rest, which is almost always zero. The pairs of two steps are summed in 16 bits, too, if their
 * sum obeys the bound. Packing matches the steps of a panel so that nearly all are in such a pair. The rests
 * follow the safe parts as records: a step, and four more weights for it. Records come in pairs that may be
 * summed as steps are. */
#ifndef DQ_KERNELS_NC4HW4_SUMS_H
#define DQ_KERNELS_NC4HW4_SUMS_H

#include "base/checked.h"
#include "kernels/kernels.h"

#include <string.h>

enum { STEP = DQ_NC4HW4_STEP, OUTS = DQ_NC4HW4_OUTS, VECTORS = 2 /* per tile */ };
enum { PIXELS = VECTORS * VF_LANES, BYTES = STEP * VF_LANES };

/* Head of a panel. After it: the steps in the order of their safe parts, the safe parts, and the records. */
typedef struct head {
    uint32_t matched;       /* number of steps summed in pairs; the other steps follow them */
    uint32_t records[OUTS]; /* number for each channel; even */
    uint8_t unused[DQ_ALIGN - (OUTS + 1) * sizeof(uint32_t)];
} head;

typedef struct record {
    uint32_t step;
    int8_t w[STEP];
} record;

static inline vi four(const int8_t *w)
{
    int32_t bytes;
    memcpy(&bytes, w, sizeof bytes);
    return vi_set(bytes);
}

typedef struct task {
    const uint8_t *x;
    const ptrdiff_t *offsets;
    size_t steps;
    const head *panel;
    const int32_t *init;
} task;

/* `vectors` is constant in each call, so that the loops unroll and sums stay in registers. */
static inline __attribute__((always_inline)) void tile(const task *t, int vectors, int32_t *c,
                                                       size_t c_stride)
{
    const uint32_t *order = (const uint32_t *)(t->panel + 1), *end = order + t->steps;
    const int8_t *w = (const int8_t *)end;
    vi acc[OUTS][VECTORS];
    for (int j = 0; j < OUTS; j++)
        for (int v = 0; v < vectors; v++)
            acc[j][v] = vi_set(t->init[j]);
    for (size_t pairs = t->panel->matched / 2; pairs; pairs--, order += 2, w += 2 * OUTS * STEP) {
        const uint8_t *here = t->x + t->offsets[order[0]], *next = t->x + t->offsets[order[1]];
        vi x[VECTORS], y[VECTORS];
        for (int v = 0; v < vectors; v++) {
            x[v] = vi_load(here + BYTES * v);
            y[v] = vi_load(next + BYTES * v);
        }
        for (int j = 0; j < OUTS; j++) {
            vi a = four(w + j * STEP), b = four(w + (OUTS + j) * STEP);
            for (int v = 0; v < vectors; v++) {
                vi sum = vi_add_16(vi_pairs_8(x[v], a), vi_pairs_8(y[v], b));
                acc[j][v] = vi_add(acc[j][v], vi_pairs_16(sum));
            }
        }
    }
    for (; order < end; order++, w += OUTS * STEP)
        for (int j = 0; j < OUTS; j++)
            for (int v = 0; v < vectors; v++) {
                vi sum = vi_pairs_8(vi_load(t->x + t->offsets[*order] + BYTES * v), four(w + j * STEP));
                acc[j][v] = vi_add(acc[j][v], vi_pairs_16(sum));
            }
    for (int j = 0; j < OUTS; j++)
        for (int v = 0; v < vectors; v++)
            vi_store(c + (size_t)j * c_stride + v * VF_LANES, acc[j][v]);
}

/* Adds the records, two at a time, for all pixels: rows of sums stay in the L1 cache, and the branches at
 * the ends of loops are predicted. */
static void add_rests(const task *t, size_t n, int32_t *c, size_t c_stride)
{
    const record *r =
        (const record *)((const uint32_t *)(t->panel + 1) + t->steps * (1 + OUTS * STEP / sizeof(uint32_t)));
    for (int j = 0; j < OUTS; j++, c += c_stride)
        for (const record *end = r + t->panel->records[j]; r < end; r += 2) {
            const uint8_t *x = t->x + t->offsets[r[0].step], *y = t->x + t->offsets[r[1].step];
            const vi a = four(r[0].w), b = four(r[1].w);
            for (size_t p = 0; p < n; p += VF_LANES) {
                vi sum =
                    vi_add_16(vi_pairs_8(vi_load(x + STEP * p), a), vi_pairs_8(vi_load(y + STEP * p), b));
                vi_store(c + p, vi_add(vi_load(c + p), vi_pairs_16(sum)));
            }
        }
}

static void sums(const uint8_t *x, const ptrdiff_t *offsets, size_t steps, const void *panel,
                 const int32_t *init, size_t n, int32_t *c, size_t c_stride)
{
    task t = {x, offsets, steps, panel, init};
    for (size_t p = 0; p < n; p += PIXELS, t.x += PIXELS * STEP)
        if (n - p <= VF_LANES)
            tile(&t, 1, c + p, c_stride);
        else
            tile(&t, 2, c + p, c_stride);
    t.x = x;
    add_rests(&t, n, c, c_stride);
}

#endif
