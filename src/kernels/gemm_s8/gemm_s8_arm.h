/* SPDX-License-Identifier: Apache-2.0 */
/* Packing shared by the ARM 8-bit GEMM kernels whose instructions multiply int8 by int8. Rows of A are uint8:
 * the kernels multiply (a - 128) and add 128 times the column's sum of weights, which the head of the panel
 * holds. */
#ifndef DQ_KERNELS_GEMM_S8_ARM_H
#define DQ_KERNELS_GEMM_S8_ARM_H

#include "base/checked.h"
#include "kernels/gemm_s8/gemm_s8_pack.h"

#include <string.h>

enum { DQ_ARM_HEAD = 64 }; /* bytes: up to 16 columns */

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

#endif
