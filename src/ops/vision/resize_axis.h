/* SPDX-License-Identifier: Apache-2.0 */
/* Resampling along one axis: the input elements of each output element, and their weights. */
#ifndef DQ_OPS_RESIZE_AXIS_H
#define DQ_OPS_RESIZE_AXIS_H

#include "ops/op.h"

typedef enum dq_resize_mode { DQ_RESIZE_NEAREST, DQ_RESIZE_LINEAR, DQ_RESIZE_CUBIC } dq_resize_mode;

typedef enum dq_resize_coordinate {
    DQ_HALF_PIXEL,
    DQ_HALF_PIXEL_SYMMETRIC,
    DQ_PYTORCH_HALF_PIXEL,
    DQ_ALIGN_CORNERS,
    DQ_ASYMMETRIC,
    DQ_TF_CROP_AND_RESIZE,
    DQ_TF_HALF_PIXEL_FOR_NN
} dq_resize_coordinate;

typedef enum dq_resize_nearest {
    DQ_ROUND_PREFER_FLOOR,
    DQ_ROUND_PREFER_CEIL,
    DQ_NEAREST_FLOOR,
    DQ_NEAREST_CEIL
} dq_resize_nearest;

typedef struct dq_resize {
    dq_resize_mode mode;
    dq_resize_coordinate coordinate;
    dq_resize_nearest nearest;
    double cubic_a;
    bool antialias, exclude_outside;
} dq_resize;

/** One axis. The caller sets the lengths, scale and region; dq_resize_axis_make sets the rest. */
typedef struct dq_resize_axis {
    size_t in, out;
    double scale;              /* as given, or out / in */
    double roi_start, roi_end; /* region of tf_crop_and_resize, as fractions of the input's length */
    size_t taps;               /* input elements of one output element */
    size_t *index;             /* [out][taps], each below `in` */
    double *weight;            /* [out][taps]; they sum to 1 */
    bool *outside;             /* [out]: extrapolated; NULL: none is */
} dq_resize_axis;

/** Makes the tables, in the arena. Requires in > 0 unless out is 0. */
dq_status dq_resize_axis_make(const dq_resize *r, dq_resize_axis *a, dq_arena *arena, dq_error *err);

/** Merges the axis with the next one, of n elements, which is not resampled. */
dq_status dq_resize_axis_widen(dq_resize_axis *a, size_t n, dq_arena *arena, dq_error *err);

/** Whether each element is duplicated: nearest-neighbor upsampling by two. */
bool dq_resize_is_twice(const dq_resize_axis *a);

/** Whether each element is the mean of the next two elements, or (`taps` 1) the next element. */
bool dq_resize_is_mean(const dq_resize_axis *a, size_t taps);

/** Redirects elements with weight 0, which may be infinite, to element `in`, a 0 after each row. */
void dq_resize_leave_out(dq_resize_axis *a);

/** Resamples a row of `in` elements along the axis; writes x[in], too. */
void dq_resize_along(const dq_resize_axis *a, double *x, double *to);

/** Stores n results from element `at` on, rounded once; integers are truncated and saturated. */
void dq_resize_put(dq_tensor *out, size_t at, const double *row, size_t n);

#endif
