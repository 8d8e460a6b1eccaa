/* SPDX-License-Identifier: Apache-2.0 */
/* The reference convolution of all C tests: one result at a time, one product after the other. */
#ifndef DQ_TESTS_REFERENCE_CONV_H
#define DQ_TESTS_REFERENCE_CONV_H

#include "tensor/tensor.h"

enum { REF_AXES = 3 };

/** A convolution of x [batch, channels, in…] by w [channels, group_in, kernel…] to y [batch, channels, out…].
 */
typedef struct ref_conv {
    size_t axes;
    int64_t batch, group, group_in, group_out; /* the last two: channels of a group */
    int64_t in[REF_AXES], kernel[REF_AXES], stride[REF_AXES], dilation[REF_AXES], begin[REF_AXES],
        end[REF_AXES];    /* begin, end: padding */
    const char *auto_pad; /* NULL: none */
    bool channels_last;   /* x is [batch, in…, channels], y likewise */
    int64_t out[REF_AXES];
} ref_conv;

/** An initializer: the fields up to `end`, in their order. */
#define REF_CONV(...)                                                                                        \
    {                                                                                                        \
        __VA_ARGS__, NULL, false,                                                                            \
        {                                                                                                    \
            0                                                                                                \
        }                                                                                                    \
    }

/** Returns a random convolution, finished. */
ref_conv ref_conv_random(uint64_t *state);
/** Sets `out`, and the padding that auto_pad means. False when a window is longer than an axis. */
bool ref_conv_finish(ref_conv *g);
/** Number of elements that a window spans along an axis. */
int64_t ref_conv_span(const ref_conv *g, size_t axis);
/** Writes the attribute pads: all begins, then all ends. */
void ref_conv_pads(const ref_conv *g, int64_t pads[2 * REF_AXES]);
/** Writes a shape: batch, channels and the spatial dimensions, in the order of g. Returns its rank. */
size_t ref_conv_dims(const ref_conv *g, int64_t channels, const int64_t *spatial, int64_t *dims);
/** Numbers of elements of x, w and y. */
size_t ref_conv_x_count(const ref_conv *g);
size_t ref_conv_w_count(const ref_conv *g);
size_t ref_conv_y_count(const ref_conv *g);

/** The channel of y[i]. */
size_t ref_conv_channel(const ref_conv *g, size_t i);
/** The zero point of a channel; of NULL, 0. */
int64_t ref_zero_point(const dq_tensor *zero, size_t channel);

/** y[i] = sum (x - x_zero)(w - w_zero); zero points may be NULL. */
int64_t ref_conv_integer(const ref_conv *g, const dq_tensor *x, const dq_tensor *x_zero, const dq_tensor *w,
                         const dq_tensor *w_zero, size_t i);
/** y[i] as one chain of fused multiply-adds over the channels and then the kernel; padding is zeros. x and w
 * hold floats. */
float ref_conv_f32(const ref_conv *g, const double *x, const double *w, size_t i);
/** The transposed convolution: adds y[i] * w to each x that contributes to y[i], for all i. */
void ref_conv_add_transposed(const ref_conv *g, const double *y, const double *w, double *x);

#endif
