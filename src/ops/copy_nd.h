/* SPDX-License-Identifier: Apache-2.0 */
/* Strided N-dimensional copy of elements of any type. Transpose, Slice, Concat, Split, Expand, Tile and Pad
 * are each one or a few such copies. */
#ifndef DQ_OPS_COPY_ND_H
#define DQ_OPS_COPY_ND_H

#include "ops/op.h"

enum { DQ_MOVE_RANK = 2 * DQ_MAX_RANK };

/** Element (i0, i1, …) is copied from offset from_base + Σ i·from[d] to offset to_base + Σ i·to[d], in
 * elements. */
typedef struct dq_copy_nd {
    size_t rank; /* 0: one element */
    size_t dims[DQ_MOVE_RANK];
    int64_t from[DQ_MOVE_RANK];
    size_t to[DQ_MOVE_RANK];
    size_t from_base, to_base;
} dq_copy_nd;

/** Adds an innermost axis. */
static inline void dq_copy_nd_add(dq_copy_nd *m, size_t dim, int64_t from, size_t to)
{
    m->dims[m->rank] = dim;
    m->from[m->rank] = from;
    m->to[m->rank++] = to;
}

/** The copy between a slice of `whole` and a dense tensor. The slice is [begin, begin + length) along `axis`.
 * Copies out of `whole`, or into it if into_whole. Axes are merged (dq_copy_nd_coalesce). */
dq_copy_nd dq_copy_nd_part(const dq_tensor *whole, size_t axis, size_t begin, size_t length, bool into_whole);

/** Drops axes of length 1 and merges adjacent axes that share a stride. Done once, in prepare. */
void dq_copy_nd_coalesce(dq_copy_nd *m);

/** Whether the copy is one contiguous block from from_base on. Requires merged axes. */
static inline bool dq_copy_nd_is_contiguous(const dq_copy_nd *m)
{
    return m->rank == 0 || (m->rank == 1 && m->from[0] == 1 && m->to[0] == 1);
}

/** Runs the copy. Elements of the destination that it does not address keep their values. Strings are shared:
 * only their dq_string is copied. */
void dq_copy_nd_run(const dq_op_call *call, const dq_copy_nd *m, dq_dtype dtype, void *to, const void *from);

/** Fills `count` elements of the destination with element 0 of `value`. NULL: with zero bits (an empty
 * string). */
void dq_fill_elements(dq_dtype dtype, void *to, size_t count, const void *value);

/** dq_op_impl.run of operators whose state is one dq_copy_nd, from input 0 to output 0. */
dq_status dq_copy_all(const dq_op_call *call, dq_error *err);

/** Gather: to[i] = from[at[i]]; scatter: to[at[i]] = from[i], in the order of i. `width`: bytes of an
 * element, not 0. */
void dq_gather_elements(size_t width, void *to, const void *from, const size_t *at, size_t n);
void dq_scatter_elements(size_t width, void *to, const void *from, const size_t *at, size_t n);

/** Clears the last byte of a tensor of a packed type, whose padding bits no copy writes. */
void dq_clear_tail_bits(dq_tensor *t);

/** Bytes of an element; 0 for packed types. */
static inline size_t dq_element_width(dq_dtype dtype)
{
    return dtype == DQ_STRING ? sizeof(dq_string) : dq_dtype_get(dtype)->bits / 8u;
}

#endif
