#include "ops/move/rank.h"
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

void dq_rank_keys(const dq_tensor *t, size_t first, size_t n, size_t step, bool largest, uint64_t *keys)
{
    unsigned cls = dq_dtype_get(t->dtype)->cls;
    const uint64_t flip = cls == DQ_CLASS_INT ? (uint64_t)1 << 63 : 0, turn = largest ? 0 : UINT64_MAX;
    const float *x = dq_data(t, float);
    if (t->dtype == DQ_FLOAT && step == 1)
        for (size_t i = 0; i < n; i++)
            keys[i] = dq_rank_float(x[first + i]) ^ turn;
    else if (t->dtype == DQ_FLOAT)
        for (size_t i = 0; i < n; i++)
            keys[i] = dq_rank_float(x[first + i * step]) ^ turn;
    else if (cls == DQ_CLASS_FLOAT)
        for (size_t i = 0; i < n; i++)
            keys[i] = rank_double(dq_tensor_get_double(t, first + i * step)) ^ turn;
    else if (step == 1) {
        dq_load_ints(t->dtype, t->data, first, n, (int64_t *)keys);
        for (size_t i = 0; i < n; i++)
            keys[i] ^= flip ^ turn;
    } else
        for (size_t i = 0; i < n; i++)
            keys[i] = (uint64_t)dq_tensor_get_int(t, first + i * step) ^ flip ^ turn;
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

void dq_rank_select(const uint64_t *keys, size_t n, size_t k, dq_ranked *to)
{
    for (size_t i = 0; i < k; i++)
        to[i] = (dq_ranked){keys[i], i};
    for (size_t i = k / 2; i-- > 0;)
        dq_rank_sink(to, k, i);
    for (size_t i = k; i < n; i++)
        if (keys[i] > to[0].key) {
            to[0] = (dq_ranked){keys[i], i};
            dq_rank_sink(to, k, 0);
        }
    for (size_t left = k; left > 1; left--) { /* the last of what is left goes behind it */
        dq_ranked last = to[0];
        to[0] = to[left - 1];
        to[left - 1] = last;
        dq_rank_sink(to, left - 1, 0);
    }
}
