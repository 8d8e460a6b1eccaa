/* SPDX-License-Identifier: Apache-2.0 */
/* Moving elements between strided places, whatever their type: Transpose, Slice, Concat, Split, Expand, Tile
 * and Pad are each one or a few of these. */
#ifndef DQ_OPS_COPY_ND_H
#define DQ_OPS_COPY_ND_H

#include "ops/op.h"

enum { DQ_MOVE_RANK = 2 * DQ_MAX_RANK };

/** Element (i0, i1 …) goes from from_base + Σ i·from[d] to to_base + Σ i·to[d], counted in elements. */
typedef struct dq_move {
    size_t rank; /* 0: one element */
    size_t dims[DQ_MOVE_RANK];
    int64_t from[DQ_MOVE_RANK];
    size_t to[DQ_MOVE_RANK];
    size_t from_base, to_base;
} dq_move;

/** Adds an axis inside those there are. */
static inline void dq_move_add(dq_move *m, size_t dim, int64_t from, size_t to)
{
    m->dims[m->rank] = dim;
    m->from[m->rank] = from;
    m->to[m->rank++] = to;
}

/** The part of `whole` that is `length` long along the axis and begins at `begin`, and that is dense where it
 *  stands alone: out of `whole`, or into it; joined. */
dq_move dq_move_part(const dq_tensor *whole, size_t axis, size_t begin, size_t length, bool into_whole);

/** Drops axes of length 1 and joins neighbours that are one stride; worth doing once, in prepare. */
void dq_move_join(dq_move *m);

/** Whether it is a copy of one stretch, from from_base on; joined. */
static inline bool dq_move_is_stretch(const dq_move *m)
{
    return m->rank == 0 || (m->rank == 1 && m->from[0] == 1 && m->to[0] == 1);
}

/** Moves. Places of the destination that the move does not name keep their bits. Strings stay where they
 * are: only who points to them is copied. */
void dq_move_run(const dq_op_call *call, const dq_move *m, dq_dtype dtype, void *to, const void *from);

/** Sets `count` elements of the destination to element 0 of `value`; NULL: to zero bits (an empty string). */
void dq_move_fill(dq_dtype dtype, void *to, size_t count, const void *value);

/** dq_op_impl.run of operators that are one move of input 0 to output 0, their state. */
dq_status dq_move_all(const dq_op_call *call, dq_error *err);

/** Elements of `width` bytes (not 0): to[i] = from[at[i]], or to[at[i]] = from[i] in this order. */
void dq_move_pick(size_t width, void *to, const void *from, const size_t *at, size_t n);
void dq_move_put(size_t width, void *to, const void *from, const size_t *at, size_t n);

/** Clears the last byte of a tensor of a packed type, before moves leave bits of it unset. */
void dq_move_clear_tail(dq_tensor *t);

/** Bytes of an element; 0 for packed types. */
static inline size_t dq_move_width(dq_dtype dtype)
{
    return dtype == DQ_STRING ? sizeof(dq_string) : dq_dtype_get(dtype)->bits / 8u;
}

#endif
