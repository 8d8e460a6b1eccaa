/* SPDX-License-Identifier: Apache-2.0 */
/* Granularity: which elements of a quantized tensor share a scale. All do (per tensor), or those with the
 * same index along an axis (per axis), or those of a block along an axis (blocked). The shape of the scale
 * decides, as QuantizeLinear-28 specifies. QuantizeLinear and DequantizeLinear share this code.
 *
 * Three interpretations where the specification is ambiguous:
 *
 * - A scale of one element and rank 0 or 1 is per tensor for any shape of the input; `axis` and `block_size`
 * are then ignored.
 *
 * - For a rank-1 input `axis` is ignored: a vector scale can only run along the single axis, and the default
 * of 1 would be out of range.
 *
 * - A rank-1 scale over an input of higher rank is per axis even if `block_size` is set, as the scale's shape
 * decides. */
#ifndef DQ_OPS_GRANULARITY_H
#define DQ_OPS_GRANULARITY_H

#include "ops/op.h"

/** The input viewed as [outer, length, inner], where the middle axis is the quantization axis. Element (o, a,
 * i) uses scale number o * outer_step + a / block * block_step + i * inner_step. */
typedef struct dq_scale_granularity {
    size_t length, inner; /* per tensor: 1 and the number of elements */
    size_t block;         /* at least 1 */
    size_t outer_step, block_step, inner_step;
} dq_scale_granularity;

/** A contiguous segment of elements whose scales follow one pattern: element k uses scale `scale + k * step`.
 */
typedef struct dq_scale_segment {
    size_t length, scale, step;    /* step 0 or 1 */
    size_t remainder;              /* elements of the natural segment that `end` cut off */
    size_t outer, along, axis_end; /* outer index and axis index of the first element; axis index after the
                                  last element (of `rest`, too) */
} dq_scale_segment;

/** Reads attributes axis and block_size (if the node has them) and the shapes of inputs 0 (the quantized
 * tensor, or the one to quantize), 1 (scale) and 2 (zero point: may be omitted, else has the scale's shape).
 * Shapes that do not fit are an error that names them. */
dq_status dq_granularity_read(const dq_op_call *call, dq_scale_granularity *out, dq_error *err);

/** Returns the longest segment that starts at element `first` and ends at or before `end`. Requires
 * first < end <= elements. */
dq_scale_segment dq_granularity_segment(const dq_scale_granularity *g, size_t first, size_t end);
/** Advances *run to the segment that follows it and starts at element `first`. Same result as
 * dq_granularity_segment, without its divisions. */
void dq_granularity_next(const dq_scale_granularity *g, size_t first, size_t end, dq_scale_segment *run);

/** Counts the whole blocks from element `first`, where *run starts, that end at or before `end`. They are
 * contiguous and have consecutive scales. 0 unless blocks run along the innermost axis. */
size_t dq_granularity_blocks(const dq_scale_granularity *g, size_t first, size_t end,
                             const dq_scale_segment *run);

/** Loads the values of `t`, a scale or zero point, for the first n elements of a segment, as doubles. */
void dq_scale_segment_load(const dq_tensor *t, const dq_scale_segment *run, size_t n, double *out);

#endif
