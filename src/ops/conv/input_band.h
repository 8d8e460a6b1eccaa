/* SPDX-License-Identifier: Apache-2.0 */
/* The padded input of a band of output rows, of 16-bit values (less 32768 if unsigned). The inputs of one
 * kernel element are at a constant offset from the output positions, and contiguous along the last axis:
 * pairs of channels.
 *
 *   plane of a pair of channels, or of one channel
 *     rows: the other axes, as far as windows reach (every stride-th where the kernel has one element there)
 *       phases: the elements that kernel elements meet which lie alike in the stride
 *         pairs, `pitch` of them; of one channel's codes alone where bands are single */
#ifndef DQ_OPS_INPUT_BAND_H
#define DQ_OPS_INPUT_BAND_H

#include "ops/conv/conv_shape.h"

typedef struct dq_input_band {
    dq_window w;                /* axes that matter; one axis where nothing but a pixel is under a window */
    size_t band, bands;         /* outputs of a band on the first axis */
    size_t extent[DQ_MAX_RANK]; /* rows on the axes before the last */
    size_t stride[DQ_MAX_RANK]; /* from output to output, in rows */
    size_t each;                /* int16 elements of a place: 2, of single codes 1 */
    size_t phases, pitch, row;  /* row: int16 elements of all its phases */
    size_t plane;               /* int16 elements */
    size_t *phase;              /* what each phase begins at */
    uint32_t *taps;             /* where each kernel element is from an output's place, in int16 elements */
} dq_input_band;

/** Lays out bands of `planes` planes each, of pairs or (`single`) of codes alone, that take about `bytes`;
 * state goes to call->arena. */
dq_status dq_input_band_prepare(dq_op_call *call, const dq_conv_shape *s, size_t planes, bool single,
                                size_t bytes, dq_input_band *b, dq_error *err);

/** int16 elements of `planes` planes, some behind them that kernels read too; false: too many. */
bool dq_input_band_size(const dq_input_band *b, size_t planes, size_t *elements);

/** Outputs first … first + count - 1 of the first axis of band number `at`. */
void dq_input_band_range(const dq_input_band *b, size_t at, size_t *first, size_t *count);

/** Rows of outputs in `count` places on the first axis, their length, and the place of the first output of
 * one. */
size_t dq_input_band_rows(const dq_input_band *b, size_t count);
static inline size_t dq_input_band_columns(const dq_input_band *b, size_t count)
{
    return b->w.rank == 1 ? count : (size_t)b->w.out[b->w.rank - 1];
}
size_t dq_input_band_offset(const dq_input_band *b, size_t row);

/** Fills the planes of `channels` channels, from element `at` of x on, of the band that begins at output
 * `first`: pairs of channels; an odd last channel is paired with zeros. */
void dq_input_band_fill(const dq_input_band *b, const dq_tensor *x, size_t first, size_t at, size_t channels,
                        int16_t pad, int16_t *to);
/** The same for groups of four 16-bit channels: of each group a plane of low bytes, then a plane of high
 * bytes, which are signed. Missing channels of the last group have arbitrary values. */
void dq_input_band_fill_quads(const dq_input_band *b, const dq_tensor *x, size_t first, size_t at,
                              size_t channels, int16_t pad, int16_t *to);
/** The plane of the single channel that begins at element `at`. */
void dq_input_band_fill_single(const dq_input_band *b, const dq_tensor *x, size_t first, size_t at,
                               int16_t pad, int16_t *to);

#endif
