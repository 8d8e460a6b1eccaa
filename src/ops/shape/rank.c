/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/shape/rank.h"
#include "ops/copy_nd.h"
#include "ops/rows.h"

#include <math.h>

static uint64_t rank_double(double x)
{
    const uint64_t sign = (uint64_t)1 << 63;
    uint64_t key;
    x += 0.0; /* -0 becomes 0 */
    memcpy(&key, &x, sizeof key);
    return isnan(x) ? UINT64_MAX : key & sign ? ~key : key | sign;
}

/* Keys of n <= DQ_ROW contiguous elements. */
static void rank_some(const dq_tensor *t, size_t first, size_t n, uint64_t order, uint64_t *keys)
{
    const unsigned cls = dq_dtype_get(t->dtype)->cls;
    double workspace[DQ_ROW];
    if (t->dtype == DQ_FLOAT) {
        const float *x = dq_data(t, float) + first;
        for (size_t i = 0; i < n; i++)
            keys[i] = dq_rank_float(x[i]) ^ order;
        return;
    }
    if (cls == DQ_CLASS_FLOAT) {
        dq_load_doubles(t->dtype, t->data, first, n, workspace);
        for (size_t i = 0; i < n; i++)
            keys[i] = rank_double(workspace[i]) ^ order;
        return;
    }
    dq_load_ints(t->dtype, t->data, first, n, (int64_t *)keys);
    order ^= cls == DQ_CLASS_INT ? (uint64_t)1 << 63 : 0; /* maps signed order to unsigned order */
    for (size_t i = 0; i < n; i++)
        keys[i] ^= order;
}

/* Keys of n <= DQ_ROW elements with stride `step`. */
static void rank_strided(const dq_tensor *t, size_t first, size_t n, size_t step, uint64_t order,
                         uint64_t *keys)
{
    uint64_t workspace[DQ_ROW];
    size_t at[DQ_ROW];
    for (size_t i = 0; i < n; i++)
        at[i] = first + i * step;
    dq_gather_elements(dq_element_width(t->dtype), workspace, t->data, at, n);
    rank_some(&(dq_tensor){.dtype = t->dtype, .data = workspace}, 0, n, order, keys);
}

void dq_rank_keys(const dq_tensor *t, size_t first, size_t n, size_t step, bool largest, uint64_t *keys)
{
    const uint64_t order = largest ? 0 : UINT64_MAX;
    if (step == 1)
        rank_some(t, first, n, order, keys);
    else
        rank_strided(t, first, n, step, order, keys);
}

static inline bool later(const dq_ranked *a, const dq_ranked *b)
{
    return (a->key < b->key) | ((a->key == b->key) & (a->number > b->number));
}

void dq_rank_sink(dq_ranked *heap, size_t n, size_t i)
{
    const dq_ranked sunk = heap[i];
    for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        child += child + 1 < n && later(&heap[child + 1], &heap[child]);
        if (!later(&heap[child], &sunk))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = sunk;
}

/* Inserts elements from number `first` on into the heap of the best k, whose worst element is at the top.
 * These elements rank below an equal one in the heap. */
static void push_better(const uint64_t *keys, size_t first, size_t n, size_t k, dq_ranked *top)
{
#pragma GCC unroll 4
    for (size_t i = 0; i < n; i++)
        if (keys[i] > top[0].key) {
            top[0] = (dq_ranked){keys[i], first + i};
            dq_rank_sink(top, k, 0);
        }
}

void dq_rank_select(const dq_tensor *t, size_t first, size_t n, size_t step, bool largest, size_t k,
                    dq_ranked *to)
{
    uint64_t keys[DQ_ROW];
    for (size_t i = 0, few, own; i < n; i += few) {
        few = n - i < DQ_ROW ? n - i : DQ_ROW;
        own = i >= k ? 0 : k - i < few ? k - i : few;
        dq_rank_keys(t, first + i * step, few, step, largest, keys);
        for (size_t j = 0; j < own; j++)
            to[i + j] = (dq_ranked){keys[j], i + j};
        for (size_t h = own && i + own == k ? k / 2 : 0; h-- > 0;)
            dq_rank_sink(to, k, h);
        push_better(keys + own, i + own, few - own, k, to);
    }
    for (size_t left = k; left > 1; left--) { /* moves the worst remaining element to the end */
        dq_ranked last = to[0];
        to[0] = to[left - 1];
        to[left - 1] = last;
        dq_rank_sink(to, left - 1, 0);
    }
}
