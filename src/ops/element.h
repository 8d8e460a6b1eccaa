/* SPDX-License-Identifier: Apache-2.0 */
/* Copying elements of any type, one stretch at a time. */
#ifndef DQ_OPS_ELEMENT_H
#define DQ_OPS_ELEMENT_H

#include "ops/copy_nd.h"

#include <string.h>

/** Elements at … at + n - 1 of `from` to places to_at … of `to`, of the same type. Strings: who points to
 * them. */
static inline void dq_copy_elements(const dq_tensor *from, size_t at, dq_tensor *to, size_t to_at, size_t n)
{
    size_t width = dq_move_width(from->dtype);
    if (n == 1 && width == sizeof(float)) { /* without a call, as loops over indices want it */
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

/** The next coordinate in row-major order; after the last comes the first. */
static inline void dq_next_coord(size_t rank, const int64_t *dims, size_t *coord)
{
    for (size_t d = rank; d-- > 0;) {
        if (++coord[d] < (size_t)dims[d])
            return;
        coord[d] = 0;
    }
}

/** `given`, from -n on counted from the end, as an index below n; false when it is outside. */
static inline bool dq_wrap_index(int64_t given, int64_t n, size_t *index)
{
    *index = (size_t)(given < 0 ? given + n : given);
    return given >= -n && given < n;
}

/** Where the slices begin that n tuples of indices name, along the axes from `first` on: at[i], from `base`
 * on. How many tuples are good, from the first on. */
static inline size_t dq_find_slices(const dq_tensor *data, size_t first, size_t tuple, const int64_t *given,
                                    size_t n, size_t base, size_t *at)
{
    size_t strides[DQ_MAX_RANK], index;
    dq_strides(data->rank, data->dims, strides);
    for (size_t i = 0; i < n; i++) {
        size_t place = base;
        for (size_t d = first; d < first + tuple; d++) {
            if (!dq_wrap_index(*given++, data->dims[d], &index))
                return i;
            place += index * strides[d];
        }
        at[i] = place;
    }
    return n;
}

#endif
