/* SPDX-License-Identifier: Apache-2.0 */
/* Padded input of a band of output rows, as int16 (uint16 values less 32768). The inputs of one kernel
 * element are at a constant offset from the output positions, and contiguous along the last axis. The layout,
 * from outer to inner:
 *
 *   planes: one for each pair of channels, or for each channel if `single`
 *
 *     rows: the axes before the last, as far as windows reach; every stride-th for kernel length 1
 *
 *       phases: columns of equal remainder modulo the stride that a kernel element reads
 *
 *         positions: `pitch` pairs of two channels' values, or `pitch` single values */
#ifndef DQ_OPS_INPUT_BAND_H
#define DQ_OPS_INPUT_BAND_H

#include "ops/conv/conv_shape.h"

typedef struct dq_input_band {
    dq_window w;                /* without trivial axes; one axis if all windows are single pixels */
    size_t band, bands;         /* outputs of a band along the first axis; number of bands */
    size_t extent[DQ_MAX_RANK]; /* rows along each axis before the last */
    size_t stride[DQ_MAX_RANK]; /* rows between outputs, along each axis before the last */
    size_t each;                /* int16 values per position: 2 for pairs, 1 for single */
    size_t phases, pitch, row;  /* phases of a row; positions of a phase; int16 values of a row */
    size_t plane;               /* int16 values of a plane */
    size_t *phase;              /* remainder modulo the stride of each phase */
    uint32_t *taps; /* offset of each kernel element from its output's position, in int16 values */
} dq_input_band;

/** Called in prepare: chooses a band so that `planes` planes of pairs, or of single channels if `single`,
 * take about `bytes`. Allocates in call->arena. */
dq_status dq_input_band_prepare(dq_op_call *call, const dq_conv_shape *s, size_t planes, bool single,
                                size_t bytes, dq_input_band *b, dq_error *err);

/** int16 values of `planes` planes, with the slack that kernels read after them. False if there are more than
 * 32-bit offsets can address. */
bool dq_input_band_size(const dq_input_band *b, size_t planes, size_t *elements);

/** Gives the range of outputs along the first axis of band `at`: first … first + count - 1. */
void dq_input_band_range(const dq_input_band *b, size_t at, size_t *first, size_t *count);

/** For `count` outputs along the first axis: the number of output rows; the length of a row; and the offset
 * in a plane of the first output of row `row`, in int16 values. */
size_t dq_input_band_rows(const dq_input_band *b, size_t count);
static inline size_t dq_input_band_columns(const dq_input_band *b, size_t count)
{
    return b->w.rank == 1 ? count : (size_t)b->w.out[b->w.rank - 1];
}
size_t dq_input_band_offset(const dq_input_band *b, size_t row);

/** Fills the band that begins at output `first`, with `channels` channels that begin at element `at` of x, as
 * pairs of channels. An odd last channel is paired with zeros. */
void dq_input_band_fill(const dq_input_band *b, const dq_tensor *x, size_t first, size_t at, size_t channels,
                        int16_t pad, int16_t *to);
/** The same for groups of four channels of a 16-bit x: each group has a plane of low bytes, then a plane of
 * high bytes, which are signed. Missing channels of the last group have arbitrary values. */
void dq_input_band_fill_quads(const dq_input_band *b, const dq_tensor *x, size_t first, size_t at,
                              size_t channels, int16_t pad, int16_t *to);
/** The same for a `single` plane: the channel that begins at element `at` of x. */
void dq_input_band_fill_single(const dq_input_band *b, const dq_tensor *x, size_t first, size_t at,
                               int16_t pad, int16_t *to);

#endif
