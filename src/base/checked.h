/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of sizes; checked, where a file or a user has a hand in one. */
#ifndef DQ_BASE_CHECKED_H
#define DQ_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Indices of 64 bits become sizes where they stand. */
_Static_assert(SIZE_MAX == UINT64_MAX, "dqrun is for 64-bit processors");

/** Bytes: where tensors' data, scratch and packed weights begin, at a multiple of a cache line and of the
 * longest vector. */
enum { DQ_ALIGN = 64 };

/** The smaller one. */
static inline size_t dq_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/** *out = a * b; false, and *out unchanged in meaning, when it does not fit. */
static inline bool dq_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool dq_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool dq_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool dq_add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/** size rounded up to a multiple of `align`, a power of two; false when it does not fit. */
static inline bool dq_align_size(size_t size, size_t align, size_t *out)
{
    if (!dq_add_size(size, align - 1, out))
        return false;
    *out &= ~(align - 1);
    return true;
}

/** Adds `count` elements of `size` bytes to a layout of which *used bytes are taken: *at is where they begin,
 * a multiple of `align` as *used is. False when it does not fit. */
static inline bool dq_reserve_size(size_t *used, size_t count, size_t size, size_t align, size_t *at)
{
    size_t bytes;
    *at = *used;
    return dq_mul_size(count, size, &bytes) && dq_add_size(*used, bytes, used) &&
           dq_align_size(*used, align, used);
}

#endif
