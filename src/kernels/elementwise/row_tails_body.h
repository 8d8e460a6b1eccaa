/* SPDX-License-Identifier: Apache-2.0 */
/* Template: loads and stores of the tails of rows, which are shorter than a vector or a group of 16 elements.
 * float_rows_body.h includes it after the vec_<isa>.h of a level. */
#include <stddef.h>
#include <string.h>

enum { GROUP = 16 };

static __attribute__((noinline)) vf load_few(const float *x, size_t n)
{
    float few[VF_LANES] = {0};
    memcpy(few, x, n * sizeof *x);
    return vf_load(few);
}

static __attribute__((noinline)) void store_few(float *y, size_t n, vf a)
{
    float few[VF_LANES];
    vf_store(few, a);
    memcpy(y, few, n * sizeof *y);
}

#ifdef vf_load_first_or
/* Returns the tail of a row, from element i on, padded with `fill` to a group, in `workspace`. */
static __attribute__((noinline)) const float *fill_up(const float *x, size_t i, size_t n, float fill,
                                                      float workspace[2 * GROUP])
{
    const vf padding = vf_set(fill);
    for (float *to = workspace; to < workspace + GROUP; to += VF_LANES) {
        const size_t left = n - i;
        vf_store(to, left >= VF_LANES ? vf_load(x + i) : vf_load_first_or(x + i, left, padding));
        i += left >= VF_LANES ? VF_LANES : left;
    }
    return workspace;
}

/* Stores the first n elements of a group, n < GROUP. */
static inline void store_tail(float *y, size_t n, const float group[GROUP])
{
    for (; n >= VF_LANES; n -= VF_LANES, y += VF_LANES, group += VF_LANES)
        vf_store(y, vf_load(group));
    vf_store_some(y, n, vf_load(group));
}
#else
/* Returns the tail of a row, from element i on, padded with `fill` to a group, in `workspace`. If the row has
 * a whole group, it copies that group's last elements, too: a copy of constant size takes a tenth of the
 * time. */
static __attribute__((noinline)) const float *fill_up(const float *x, size_t i, size_t n, float fill,
                                                      float workspace[2 * GROUP])
{
    float *at = workspace + GROUP - (n - i);
    for (int p = 0; p < GROUP / VF_LANES; p++)
        vf_store(workspace + GROUP + p * VF_LANES, vf_set(fill));
    for (int p = 0; p < GROUP / VF_LANES && i >= GROUP; p++)
        vf_store(workspace + p * VF_LANES, vf_load(x + n - GROUP + p * VF_LANES));
    if (i < GROUP)
        memcpy(at, x + i, (n - i) * sizeof *x);
    return at;
}

/* Stores the first n elements of a group, n < GROUP. */
static inline void store_tail(float *y, size_t n, const float group[GROUP])
{
    memcpy(y, group, n * sizeof *y);
}
#endif

/* A whole group of the row from i on; the tail is padded. */
static inline const float *group_at(const float *x, size_t i, size_t n, float fill,
                                    float workspace[2 * GROUP])
{
    return n - i >= GROUP ? x + i : fill_up(x, i, n, fill, workspace);
}
