/* SPDX-License-Identifier: Apache-2.0 */
/* Exact integer products with 16-bit quantized values: packing of the weights, sums, and their epilogue.
 *
 * The weights w are packed into panels in the order in which the kernel reads them. A run expands each panel
 * to int16 before use: it subtracts the zero point, which leaves v. 8-bit weights make one plane. 16-bit
 * weights make two planes of 8 bits each, v = 256 · first plane + second plane. The other operand is x. From
 * unsigned values, and from their zero points, the midpoint of the type is subtracted first: 128 or 32768.
 * Sums are exact:
 *
 *   sum of (x - x_zero) · v = sum of x · v (dq_qgemm16_tiles) - x_zero · sum of v
 *
 * All operators that use this have their inputs in the order of DQ_Q16_…. */
#ifndef DQ_OPS_QGEMM16_PACK_H
#define DQ_OPS_QGEMM16_PACK_H

#include "ops/op.h"

enum {
    DQ_Q16_X,
    DQ_Q16_X_SCALE,
    DQ_Q16_X_ZERO,
    DQ_Q16_W,
    DQ_Q16_W_SCALE,
    DQ_Q16_W_ZERO,
    DQ_Q16_Y_SCALE, /* optional; without it the result is float */
    DQ_Q16_Y_ZERO,
    DQ_Q16_BIAS /* float; optional */
};

/** The packed operand w: `matrices` matrices of n vectors of outer · inner quantized values. A pair holds two
 * neighbors along the outer axis. If `outer` is odd, the last pairs are padded: x must be 0 there. */
typedef struct dq_qgemm16 {
    /* Set by the operator: */
    uint32_t strip_width; /* vectors of a panel: DQ_GEMM_S16_ROWS if w is A, DQ_GEMM_S16_NR if w is B */
    size_t matrices, n, outer, inner;
    size_t matrix_step, lane_step, outer_step, inner_step; /* in elements; lane_step: between vectors */
    /* Set by dq_qgemm16_prepare: */
    size_t planes, panels, pairs; /* pair q * inner + r holds elements (2q, r) and (2q + 1, r) of a vector */
    size_t size;                  /* bytes of the packed form */
    const void *packed;           /* NULL: dq_qgemm16_begin packs in each run, into call->scratch */
} dq_qgemm16;

/** Packs a constant operand once for all runs; for another one it reserves scratch. */
dq_status dq_qgemm16_prepare(dq_op_call *call, dq_qgemm16 *w, dq_error *err);

/** The packed operand in a run. */
typedef struct dq_qgemm16_run {
    const dq_op_call *call;
    const dq_qgemm16 *w;
    const void *packed;
    size_t span;    /* so many pairs can be summed in int32 without overflow */
    bool symmetric; /* all zero points are 0 */
    double factor;  /* dq_q16_factor */
} dq_qgemm16_run;
dq_qgemm16_run dq_qgemm16_begin(const dq_op_call *call, const dq_qgemm16 *w);

/** The zero point of vector `at` (or the single zero point), minus the midpoint of its type: 128 for uint8,
 * 32768 for uint16, else 0. */
int64_t dq_qgemm16_zero(const dq_tensor *zero, size_t at);
/** Loads n quantized values from element `first` on, minus that midpoint. */
void dq_qgemm16_load(dq_dtype dtype, const void *data, size_t first, size_t n, int16_t *to);
/** Stores n quantized values as an integer type of 8 or 16 bits. */
void dq_qgemm16_store(dq_dtype dtype, void *data, size_t first, size_t n, const uint16_t *from);

/** Number of int16 elements of an expanded panel. dq_qgemm16_expand writes them to `to`, plane by plane. */
static inline size_t dq_qgemm16_panel(const dq_qgemm16 *w)
{
    return w->planes * w->pairs * w->strip_width * 2;
}
void dq_qgemm16_expand(const dq_qgemm16_run *r, size_t matrix, size_t panel, int16_t *to);

/** Whether the byte split is applicable: x has 16 bits, and the weights are constant, and all their zero
 * points are 0 (after dq_qgemm16_zero). The `depth` products of a sum are at least one, and so few that int32
 * holds it, or with weights of 16 bits the sum of two. */
bool dq_q16_can_bytesplit(const dq_op_call *call, size_t depth);

/** alpha * x_scale. */
double dq_q16_factor(const dq_op_call *call);

/** Epilogue terms of some outputs, as in dq_q16_sums. The arrays are in the caller's memory. */
typedef struct dq_q16_terms {
    double *offset, *scale, *shift, error;
} dq_q16_terms;
/** Terms of n outputs, in a workspace of 3 * n doubles. */
static inline dq_q16_terms dq_q16_terms_in(double *workspace, size_t n)
{
    return (dq_q16_terms){workspace, workspace + n, workspace + 2 * n, 0};
}
/** Sets entry i of *terms to those of output `at`. `offset` is added to the exact sums of that output. */
void dq_q16_term(const dq_op_call *call, double factor, size_t at, double offset, size_t i,
                 dq_q16_terms *terms);
/** Sets scale, shift and error of entries 0 … n - 1, which belong to outputs at … at + n - 1, from their
 * offsets. */
void dq_q16_terms_fill(const dq_op_call *call, double factor, size_t at, size_t n, dq_q16_terms *terms);
/** Sets entries 0 … count - 1 for the sums of vectors first … first + count - 1 of a matrix of w. */
void dq_qgemm16_terms(const dq_qgemm16_run *r, size_t matrix, size_t first, size_t count,
                      dq_q16_terms *terms);
/** Sets the terms of *s to entries i … of *terms. Entry i belongs to output `at`. */
void dq_q16_sums_by(const dq_op_call *call, double factor, const dq_q16_terms *terms, size_t i, size_t at,
                    dq_q16_sums *s);

enum { DQ_Q16_TILE = DQ_GEMM_S16_ROWS * DQ_GEMM_S16_COLS, DQ_Q16_TILES = 4 };

/** Sums of tiles that share their columns. A sum is sums + 256 * high + extra; high and extra are undefined,
 * and count as 0, without has_high and has_extra. */
typedef struct dq_q16_tiles {
    int32_t sums[DQ_Q16_TILES][DQ_Q16_TILE], high[DQ_Q16_TILES][DQ_Q16_TILE];
    double extra[DQ_Q16_TILES][DQ_Q16_TILE];
    bool has_high, has_extra;
} dq_q16_tiles;

/** Multiplies `count` panels of rows, a_step elements from one to the next, by `blocks` groups of
 * DQ_GEMM_S16_NR columns (1 to DQ_GEMM_S16_BLOCKS). The operand w is expanded; it is either side. */
void dq_qgemm16_tiles(const dq_qgemm16_run *r, const int16_t *a, size_t a_step, size_t count,
                      const int16_t *const b[DQ_GEMM_S16_BLOCKS], const uint32_t *offsets, size_t blocks,
                      dq_q16_tiles *out);

/** GEMV: multiplies one vector x by up to DQ_GEMM_S16_BLOCKS panels of 8-bit weights as packed, without
 * expansion. out->extra gets the sums; out->sums are 0. */
void dq_qgemm16_row(const dq_qgemm16_run *r, size_t matrix, size_t panel, size_t panels, const int16_t *x,
                    dq_q16_tiles *out);

/** Epilogue parameters with zero point and bounds of the output; the caller sets the other fields. */
dq_q16_sums dq_qgemm16_sums(const dq_op_call *call);

/** Requantizes sums (or dequantizes them, if the output is float) and writes them from element `at` of the
 * output on. s->out_stride is in elements of the output. */
void dq_qgemm16_put(const dq_op_call *call, const dq_q16_sums *s, size_t at);

/** Divides products of `blocks` blocks of rows (positions) among threads. Blocks that would leave some idle
 * are split by groups of `group` panels. */
dq_partition dq_qgemm16_cut(const dq_qgemm16 *w, const dq_threads *threads, size_t blocks, size_t group);
/** Gives the block of task i, and its panels [*panel, *end). */
size_t dq_qgemm16_task(const dq_qgemm16 *w, const dq_partition *cut, size_t i, size_t group, size_t *panel,
                       size_t *end);

#endif
