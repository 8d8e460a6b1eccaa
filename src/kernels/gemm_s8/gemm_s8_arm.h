/* SPDX-License-Identifier: Apache-2.0 */
/* What the ARM 8-bit GEMM kernels share.
 *
 * Some instructions multiply int8 by int8. Rows of A are uint8: these kernels multiply (a - 128) and add 128
 * times the column's sum of weights, which the head of the panel holds.
 *
 * Kernels with dot products pack the rows of a block, eight at a time: then a tile reads vectors in order,
 * with loads of pairs, from a single pointer. */
#ifndef DQ_KERNELS_GEMM_S8_ARM_H
#define DQ_KERNELS_GEMM_S8_ARM_H

#include "base/checked.h"
#include "kernels/gemm_s8/gemm_s8_pack.h"

#include <arm_neon.h>
#include <string.h>

enum {
    DQ_ARM_HEAD = 64, /* bytes: up to 16 columns */
    DQ_ARM_MR = 64,   /* rows of a block, packed together */
    DQ_ARM_STRIP = 8, /* rows of a register tile */
    DQ_ARM_STEP = 16  /* positions of a vector of a row */
};

static inline size_t dq_arm_panel_size(size_t runs, size_t run, size_t nr, size_t group)
{
    size_t body = dq_gemm_s8_panel_size(runs, run, nr, group), bytes;
    return body && dq_add_size(body, DQ_ARM_HEAD, &bytes) ? bytes : 0;
}

static inline size_t dq_arm_pack(const dq_gemm_s8_b *b, size_t first, size_t nr, size_t group, void *panel,
                                 int32_t *sums)
{
    int32_t head[DQ_ARM_HEAD / sizeof(int32_t)] = {0};
    size_t used = dq_gemm_s8_pack(b, first, nr, group, (uint8_t *)panel + DQ_ARM_HEAD, sums);
    for (size_t j = 0; j < nr; j++)
        head[j] = (int32_t)(128 * (uint32_t)sums[j]);
    memcpy(panel, head, sizeof head);
    return used + DQ_ARM_HEAD;
}

/** Bytes of packed rows: a head, whose first byte tells whether they are packed, and the strips. */
static inline size_t dq_arm_packed_a_size(const dq_gemm_s8_b *b, size_t rows, size_t group)
{
    return dq_align_size(rows, DQ_ARM_STRIP, &rows) ? dq_arm_panel_size(b->runs, b->run, rows, group) : 0;
}

/** Pointers to the rows of a strip. Rows that it lacks repeat its last one. */
static inline void dq_arm_strip_rows(const dq_gemm_s8_a *a, size_t first, size_t rows,
                                     const uint8_t *x[DQ_ARM_STRIP])
{
    for (size_t i = 0; i < DQ_ARM_STRIP; i++)
        x[i] = a->rows[first + i < rows ? first + i : rows - 1];
}

typedef void dq_arm_pack_rows_fn(const dq_gemm_s8_a *a, size_t rows, uint8_t *to);

/** The strips of these rows. The first tile packs them with `pack_rows`. */
static inline const uint8_t *dq_arm_strips(const dq_gemm_s8_a *a, size_t rows, dq_arm_pack_rows_fn *pack_rows)
{
    uint8_t *packed = a->packed;
    if (!*packed) {
        pack_rows(a, rows, packed + DQ_ARM_HEAD);
        *packed = 1;
    }
    return packed + DQ_ARM_HEAD;
}

/** Groups of `group` positions, the last one perhaps in part. */
static inline size_t dq_arm_groups(size_t positions, size_t group)
{
    return (positions + group - 1) / group;
}

#endif
