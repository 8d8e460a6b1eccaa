/* Operands of integer products in which codes of 16 bits take part: one side is packed in planes of bytes
 * (the weights: one of 8-bit codes, two of 16-bit codes), the other one stands in 16 bits. Sums are exact:
 *
 *   sum of (x - x_zero)(v - v_zero) = dq_wcodes_tile's + (extra - v_zero) · sum of x + corrections of v alone
 *
 * where x and v are codes less the middle of an unsigned type's range, their zero points likewise. */
#ifndef DQ_OPS_WIDE_CODES_H
#define DQ_OPS_WIDE_CODES_H

#include "ops/op.h"

/** The packed operand: `matrices` of n vectors of k codes. */
typedef struct dq_wcodes {
    /* filled in by the operator: */
    uint32_t input, lanes; /* lanes: DQ_WGEMM_ROWS or DQ_WGEMM_COLS, the side of a tile that it is */
    size_t matrices, n, k;
    size_t matrix_step, lane_step, outer_step, inner_step; /* elements; code p of a vector is at … */
    size_t inner; /* … p / inner * outer_step + p % inner * inner_step */
    /* by prepare: */
    size_t planes, panels, pairs; /* pairs of codes, the last one filled up with zeros */
    size_t size;                  /* bytes of the packed form */
    const void *packed;           /* NULL: dq_wcodes_pack makes it in each run */
} dq_wcodes;

enum { DQ_WCODES_EXTRA = 128 }; /* what two planes want for each x on top */

/** Packs a constant operand once. */
dq_status dq_wcodes_prepare(dq_op_call *call, dq_wcodes *w, dq_error *err);
/** Packs the operand of this run to `to`, w->size bytes aligned to 64. */
void dq_wcodes_pack(const dq_op_call *call, const dq_wcodes *w, void *to);

/** The zero point of vector `at`, or the only one, less the middle of its type, which is taken from codes,
 * too. */
int64_t dq_wcodes_zero(const dq_tensor *zero, size_t at);
/** n codes, less that middle. */
void dq_wcodes_load(dq_dtype dtype, const void *data, size_t first, size_t n, int16_t *to);
/** n codes of an integer type of up to 16 bits. */
void dq_wcodes_store(dq_dtype dtype, void *data, size_t first, size_t n, const int32_t *from);

/** Elements of a panel in 16 bits, and those elements. */
static inline size_t dq_wcodes_panel(const dq_wcodes *w)
{
    return w->planes * w->pairs * w->lanes * 2;
}
void dq_wcodes_expand(const dq_wcodes *w, const void *packed, size_t matrix, size_t panel, int16_t *to);
/** Sums of the vectors of a matrix. */
const int64_t *dq_wcodes_sums(const dq_wcodes *w, const void *packed, size_t matrix);

/** A tile of products of a panel with x, which stands as the kernel wants the other side. */
void dq_wcodes_tile(const dq_kernels *kernels, const dq_wcodes *w, const int16_t *codes, const int16_t *x,
                    double *c);

#endif
