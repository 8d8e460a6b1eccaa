/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of integer products in which codes of 16 bits take part. One side (the weights) is packed with
 * its codes beside each other as the kernel wants them, and brought to 16-bit planes panel by panel when it
 * is used: its zero point is taken away, and what is then wider than 9 bits is split, v = 256 · first plane +
 * second plane. The other side, x, is a code less the middle of an unsigned type's range, which is taken from
 * zero points, too. Sums are exact:
 *
 *   sum of (x - x_zero)(v - v_zero) = dq_qgemm16_tiles' - x_zero · sum of (v - v_zero)
 *
 * The operators that use this have their inputs in one order. */
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
    DQ_Q16_Y_SCALE, /* may be left out: floats come out */
    DQ_Q16_Y_ZERO,
    DQ_Q16_BIAS /* floats; may be left out */
};

/** The packed operand: `matrices` of n vectors of outer · inner codes. Pairs are of neighbours on the outer
 * axis; the last one is filled up, and what x has there must be 0. */
typedef struct dq_qgemm16 {
    /* filled in by the operator: */
    uint32_t strip_width; /* of a panel: DQ_GEMM_S16_ROWS or DQ_GEMM_S16_NR, the side of a tile that it is */
    size_t matrices, n, outer, inner;
    size_t matrix_step, lane_step, outer_step, inner_step; /* elements */
    /* by prepare: */
    size_t planes, panels, pairs; /* pair number q * inner + r is of codes 2q and 2q + 1, r */
    size_t size;                  /* bytes of the packed form */
    const void *packed;           /* NULL: dq_qgemm16_begin makes it in each run, in call->scratch */
} dq_qgemm16;

/** Packs a constant operand once, else asks for scratch. */
dq_status dq_qgemm16_prepare(dq_op_call *call, dq_qgemm16 *w, dq_error *err);

/** The operand in a run. */
typedef struct dq_qconv16_run {
    const dq_op_call *call;
    const dq_qgemm16 *w;
    const void *packed;
    size_t span;    /* pairs of which 32 bits hold the sum */
    bool symmetric; /* all zero points are 0 */
    double factor;  /* dq_q16_factor */
} dq_qconv16_run;
dq_qconv16_run dq_qgemm16_begin(const dq_op_call *call, const dq_qgemm16 *w);

/** The zero point of vector `at`, or the only one, less the middle of its type. */
int64_t dq_qgemm16_zero(const dq_tensor *zero, size_t at);
/** n codes, less that middle. */
void dq_qgemm16_load(dq_dtype dtype, const void *data, size_t first, size_t n, int16_t *to);
/** n codes of an integer type of up to 16 bits. */
void dq_qgemm16_store(dq_dtype dtype, void *data, size_t first, size_t n, const uint16_t *from);

/** Elements of a panel in 16 bits, and those elements, plane by plane. */
static inline size_t dq_qgemm16_panel(const dq_qgemm16 *w)
{
    return w->planes * w->pairs * w->strip_width * 2;
}
void dq_qgemm16_expand(const dq_qconv16_run *r, size_t matrix, size_t panel, int16_t *to);

/** Whether sums may be those of x's bytes: x has 16 bits, and the weights are constant ones of 8 bits without
 * zero points, some but so few that sums fit in 32 bits. */
bool dq_q16_by_bytes(const dq_op_call *call, size_t depth);

/** alpha * x_scale. */
double dq_q16_factor(const dq_op_call *call);

/** What sums of some outputs are multiplied by and so on, as dq_q16_sums has it: arrays in the caller's
 * memory. */
typedef struct dq_q16_terms {
    double *offset, *scale, *shift, error;
} dq_q16_terms;
/** Those of n outputs, in 3 * n doubles. */
static inline dq_q16_terms dq_q16_terms_in(double *workspace, size_t n)
{
    return (dq_q16_terms){workspace, workspace + n, workspace + 2 * n, 0};
}
/** Fills in number i, for output `at`, to whose exact sums `offset` is added. */
void dq_q16_term(const dq_op_call *call, double factor, size_t at, double offset, size_t i,
                 dq_q16_terms *terms);
/** Numbers 0 … count - 1, for the sums of `count` vectors. */
void dq_qgemm16_terms(const dq_qconv16_run *r, size_t matrix, size_t first, size_t count,
                      dq_q16_terms *terms);
/** Has sums multiplied by the terms from number i on, the first of which is output `at`'s. */
void dq_q16_sums_by(const dq_op_call *call, double factor, const dq_q16_terms *terms, size_t i, size_t at,
                    dq_q16_sums *s);

enum { DQ_Q16_TILE = DQ_GEMM_S16_ROWS * DQ_GEMM_S16_COLS, DQ_Q16_TILES = 4 };

/** Sums of tiles that share their columns, each of which is sums + extra, when `has_extra`. */
typedef struct dq_q16_tiles {
    int32_t sums[DQ_Q16_TILES][DQ_Q16_TILE];
    double extra[DQ_Q16_TILES][DQ_Q16_TILE];
    bool has_extra;
} dq_q16_tiles;

/** Products of `count` panels of rows, `a_step` elements apart, with one to three octets of columns. */
void dq_qgemm16_tiles(const dq_qconv16_run *r, const int16_t *a, size_t a_step, size_t count,
                      const int16_t *const b[DQ_GEMM_S16_BLOCKS], const uint32_t *offsets, size_t blocks,
                      dq_q16_tiles *out);

/** The same for one x, whole, and up to three panels of 8-bit codes as they are packed: `sums` are 0. */
void dq_qgemm16_row(const dq_qconv16_run *r, size_t matrix, size_t panel, size_t panels, const int16_t *x,
                    dq_q16_tiles *out);

/** What becomes of sums; the rest is the caller's. */
dq_q16_sums dq_qgemm16_sums(const dq_op_call *call);

/** Sums become the codes (or floats) from element `at` of the output on, s->out_stride being elements of it.
 */
void dq_qgemm16_put(const dq_op_call *call, const dq_q16_sums *s, size_t at);

/** Pieces of `least` panels or more, of all where `blocks` of positions alone keep threads busy. */
size_t dq_qgemm16_chunk(const dq_qgemm16 *w, size_t blocks, size_t least);

#endif
