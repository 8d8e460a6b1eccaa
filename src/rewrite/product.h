/* SPDX-License-Identifier: Apache-2.0 */
/* A quantized product that a pass lowers: its operands, and the parameters of its integer sums. Private to
 * src/rewrite. */
#ifndef DQ_REWRITE_PRODUCT_H
#define DQ_REWRITE_PRODUCT_H

#include "rewrite/match.h"

typedef struct dq_product {
    const dq_node *node;
    dq_dequantized x, w;
    const dq_value *bias; /* NULL: none. */
    bool added;           /* The bias comes from an Add after the product. */
    size_t channels;      /* Number of results that may have scales and biases of their own. */
    size_t inner;         /* Number of axes of a result after the channel axis. */
    double alpha, beta, y_scale;
    dq_value *sum_bias;  /* The bias as int32 in the scale of the products; NULL: none, or not computed. */
    dq_value *rest_bias; /* The bias as floats, if not all of them are multiples of that scale; else NULL. */
    bool bias_overflows; /* int32 sums that begin with the bias are not equal to the formula. */
} dq_product;

/** The bias as floats, one per channel; NULL: not possible. */
dq_value *dq_product_float_bias(dq_rewriter *f, const dq_product *p);
/** Computes sum_bias and rest_bias of a product with an 8-bit result, or sets bias_overflows and explains it;
 * `otherwise` says what the rewrite does then. False, with an explanation, if the bias is no constant of a
 * fitting shape. */
bool dq_product_int32_bias(dq_rewriter *f, dq_product *p, const char *otherwise);

/** Whether int32 holds every sum of the product, sum_bias included, whatever its operands' data. */
typedef enum dq_sum_bound {
    DQ_SUMS_FIT,
    /* Some data make them overflow. Explained; `otherwise` says what the rewrite does then. */
    DQ_SUMS_OVERFLOW,
    DQ_SUMS_UNKNOWN /* Both operands are computed, and the sums depend on their shapes, which are not known
                       yet. */
} dq_sum_bound;
dq_sum_bound dq_product_int32_sums(dq_rewriter *f, const dq_product *p, const char *otherwise);
/** Whether double holds the sums exactly, as products of 16-bit operands need it. True if nothing is known.
 * False comes with an explanation. */
bool dq_product_double_sums(dq_rewriter *f, const dq_product *p);

#endif
