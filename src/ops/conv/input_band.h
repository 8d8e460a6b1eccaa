/* SPDX-License-Identifier: Apache-2.0 */
/* The input under the windows of a band of outputs, copied so that what one kernel element meets stands at
 * one distance from the outputs' places, and beside each other along the last axis: pairs of 16-bit codes
 * (less their middle), padding in place.
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
size_t dq_input_band_place(const dq_input_band *b, size_t row);

/** Fills the planes of `channels` channels from element `at` of x on, for a band that begins at `first`:
 * pairs of channels, an odd last one beside zeros. */
void dq_input_band_fill(const dq_input_band *b, const dq_tensor *x, size_t first, size_t at, size_t channels,
                        int16_t pad, int16_t *to);
/** The same for quads of channels of 16 bits: of each a plane of their lower bytes, then one of their upper
 * ones, which are signed; what stands for channels that an odd last quad lacks is of no consequence. */
void dq_input_band_fill_quads(const dq_input_band *b, const dq_tensor *x, size_t first, size_t at,
                              size_t channels, int16_t pad, int16_t *to);
/** The plane of the channel from element `at` on, of codes alone. */
void dq_input_band_fill_single(const dq_input_band *b, const dq_tensor *x, size_t first, size_t at,
                               int16_t pad, int16_t *to);

#endif
