/* SPDX-License-Identifier: Apache-2.0 */
/* Ranking of elements by unsigned keys: larger keys come first, equal keys by the element's number. */
#ifndef DQ_OPS_RANK_H
#define DQ_OPS_RANK_H

#include "tensor/tensor.h"

#include <string.h>

/** Maps a float to a key: larger floats have larger keys, -0 equals 0, NaN is the largest. */
static inline uint32_t dq_rank_float(float x)
{
    uint32_t bits, sign = (uint32_t)1 << 31;
    float zero = x + 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &zero, sizeof bits);
    bits ^= sign | (0 - (bits >> 31));
    return x != x ? UINT32_MAX : bits;
}

/** Keys of n <= DQ_ROW numbers or bools with stride `step`, so that the largest (else the smallest) come
 * first. Elements of fewer than 8 bits must be contiguous. The key of NaN has all bits set (or none): 32 bits
 * for DQ_FLOAT, 64 for other types. */
void dq_rank_keys(const dq_tensor *t, size_t first, size_t n, size_t step, bool largest, uint64_t *keys);

typedef struct dq_ranked {
    uint64_t key, number;
} dq_ranked;

/** Sifts heap[i] down until none of its children ranks after it. The root of a heap is its last element in
 * order. */
void dq_rank_sink(dq_ranked *heap, size_t n, size_t i);

/** Selects the first k (1 … n) of n such elements, in order; elements are numbered 0 … n - 1. */
void dq_rank_select(const dq_tensor *t, size_t first, size_t n, size_t step, bool largest, size_t k,
                    dq_ranked *to);

#endif
