/* SPDX-License-Identifier: Apache-2.0 */
/* Elements in order: numbers of which the larger come first, those of equal keys by their own number. */
#ifndef DQ_OPS_RANK_H
#define DQ_OPS_RANK_H

#include "tensor/tensor.h"

#include <string.h>

/** A float as a key: larger floats have larger ones, -0 that of 0, NaN the largest of all. */
static inline uint32_t dq_rank_float(float x)
{
    uint32_t bits, sign = (uint32_t)1 << 31;
    float zero = x + 0.0f; /* of -0 */
    memcpy(&bits, &zero, sizeof bits);
    bits ^= sign | (0 - (bits >> 31));
    return x != x ? UINT32_MAX : bits;
}

/** Keys of n <= DQ_ROW numbers or bools, `step` apart, so that the largest (or the smallest) come first.
 * Elements of fewer than 8 bits stand side by side. The key of NaN has all of its bits set (or none), 32 of
 * DQ_FLOAT and 64 of other types. */
void dq_rank_keys(const dq_tensor *t, size_t first, size_t n, size_t step, bool largest, uint64_t *keys);

typedef struct dq_ranked {
    uint64_t key, number;
} dq_ranked;

/** Sinks heap[i] until none below it comes later: then all of a heap's root comes last. */
void dq_rank_sink(dq_ranked *heap, size_t n, size_t i);

/** The first k (1 … n) of n such elements, in order: their numbers are 0 … n - 1. */
void dq_rank_select(const dq_tensor *t, size_t first, size_t n, size_t step, bool largest, size_t k,
                    dq_ranked *to);

#endif
