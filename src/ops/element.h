/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of elements of any type in contiguous blocks, and arithmetic with coordinates and indices. */
#ifndef DQ_OPS_ELEMENT_H
#define DQ_OPS_ELEMENT_H

#include "ops/copy_nd.h"

#include <string.h>

/** Copies n elements of `from`, from index `at` on, to `to`, from index to_at on; both have the same type.
 * Strings are shared: only the dq_string (pointer and length) is copied. */
static inline void dq_copy_elements(const dq_tensor *from, size_t at, dq_tensor *to, size_t to_at, size_t n)
{
    size_t width = dq_element_width(from->dtype);
    if (n == 1 && width == sizeof(float)) { /* No call of memcpy: callers loop over single indices. */
        memcpy((char *)to->data + to_at * sizeof(float), (const char *)from->data + at * sizeof(float),
               sizeof(float));
        return;
    }
    unsigned bits = dq_dtype_get(from->dtype)->bits;
    if (width)
        memcpy((char *)to->data + to_at * width, (const char *)from->data + at * width, n * width);
    for (size_t i = 0; width == 0 && i < n; i++)
        dq_put_bits(to->data, bits, to_at + i, dq_get_bits(from->data, bits, at + i));
}

/** Advances `coord` to the next coordinate in row-major order; the last one wraps around to zeros. */
static inline void dq_next_coord(size_t rank, const int64_t *dims, size_t *coord)
{
    for (size_t d = rank; d-- > 0;) {
        if (++coord[d] < (size_t)dims[d])
            return;
        coord[d] = 0;
    }
}

/** Sets *index to `given` as an index below n; negative values count from the end (from -n on). Returns false
 * if `given` is out of range. */
static inline bool dq_wrap_index(int64_t value, int64_t n, size_t *index)
{
    *index = (size_t)(value < 0 ? value + n : value);
    return value >= -n && value < n;
}

/** Computes the offsets of the slices of `data` that n index tuples name. Each tuple has `tuple` indices,
 * along the axes from `first` on. at[i] is an element offset, to which `base` is added. Returns how many
 * leading tuples are in range: n if all are. */
static inline size_t dq_find_slices(const dq_tensor *data, size_t first, size_t tuple, const int64_t *value,
                                    size_t n, size_t base, size_t *at)
{
    size_t strides[DQ_MAX_RANK], index;
    dq_strides(data->rank, data->dims, strides);
    for (size_t i = 0; i < n; i++) {
        size_t index_in_data = base;
        for (size_t d = first; d < first + tuple; d++) {
            if (!dq_wrap_index(*value++, data->dims[d], &index))
                return i;
            index_in_data += index * strides[d];
        }
        at[i] = index_in_data;
    }
    return n;
}

#endif
