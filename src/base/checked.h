/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of sizes, checked for overflow if a file or a user influences them. */
#ifndef DQ_BASE_CHECKED_H
#define DQ_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 64-bit indices convert to size_t without a check. */
_Static_assert(SIZE_MAX == UINT64_MAX, "dqrun is for 64-bit processors");

/** Alignment in bytes of tensor data, scratch and packed weights: a cache line, and the longest vector. */
enum { DQ_ALIGN = 64 };

/** The smaller one. */
static inline size_t dq_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/** *out = a * b. False, with an unspecified *out, if it overflows. */
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

/** Rounds `size` up to a multiple of `align`, a power of two. False if it overflows. */
static inline bool dq_align_size(size_t size, size_t align, size_t *out)
{
    if (!dq_add_size(size, align - 1, out))
        return false;
    *out &= ~(align - 1);
    return true;
}

/** Appends `count` elements of `size` bytes to a layout with *used bytes. *at is their offset; it and the new
 * *used are multiples of `align`, as *used must be. False if it overflows. */
static inline bool dq_reserve_size(size_t *used, size_t count, size_t size, size_t align, size_t *at)
{
    size_t bytes;
    *at = *used;
    return dq_mul_size(count, size, &bytes) && dq_add_size(*used, bytes, used) &&
           dq_align_size(*used, align, used);
}

#endif
