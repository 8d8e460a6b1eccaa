/* SPDX-License-Identifier: Apache-2.0 */
/* Which elements of a quantized tensor share a scale: all (per tensor), those with the same index along an
 * axis (per axis), or those of a block along an axis (blocked). The shape of the scale says which, as
 * QuantizeLinear-28's text has it; QuantizeLinear and DequantizeLinear share this.
 *
 * Three readings where the text leaves room. A scale of one element and rank 0 or 1 is per tensor whatever
 * the input's shape, and `axis` and `block_size` are then not looked at. A rank-1 input makes `axis`
 * unnecessary, so that a vector scale runs along its only axis whatever `axis` says (its default of 1 would
 * be outside). And as the scale's shape decides, a scale of rank 1 over an input of higher rank is per axis
 * also where `block_size` is given. */
#ifndef DQ_OPS_GRANULARITY_H
#define DQ_OPS_GRANULARITY_H

#include "ops/op.h"

/** The input seen as outer × length × inner, its middle the axis. Element (o, a, i) has the scale
 *  o * outer_step + a / block * block_step + i * inner_step. */
typedef struct dq_scale_granularity {
    size_t length, inner; /* per tensor: 1 and the number of elements */
    size_t block;         /* at least 1 */
    size_t outer_step, block_step, inner_step;
} dq_scale_granularity;

/** A stretch of consecutive elements: element k of it has the scale `scale + k * step`. */
typedef struct dq_run {
    size_t length, scale, step; /* step 0 or 1 */
    size_t rest;                /* elements behind it that `end` cut off */
    size_t outer, along, stop;  /* o and a of its first element, and the a behind its last and the rest's */
} dq_run;

/** Reads attributes axis and block_size (where the node has them) and the shapes of inputs 0 (quantized or to
 * be), 1 (scale) and 2 (zero point, may be left out: has the scale's shape); refuses shapes that do not fit,
 * naming them. */
dq_status dq_granularity_read(const dq_op_call *call, dq_scale_granularity *out, dq_error *err);

/** The longest run that starts at element `first` and ends before or at `end`; first < end <= elements. */
dq_run dq_granularity_run(const dq_scale_granularity *g, size_t first, size_t end);
/** The run behind *run, from element `first` on, in its place: as dq_granularity_run has it, in fewer steps.
 */
void dq_granularity_next(const dq_scale_granularity *g, size_t first, size_t end, dq_run *run);

/** How many whole blocks begin at element `first`, where *run does, and end at or before `end`: contiguous,
 * with neighbouring scales. 0 where there are no blocks along the innermost axis. */
size_t dq_granularity_blocks(const dq_scale_granularity *g, size_t first, size_t end, const dq_run *run);

/** What each element of a run has in `t`, a scale or zero point, as n doubles. */
void dq_run_load(const dq_tensor *t, const dq_run *run, size_t n, double *out);

#endif
