/* SPDX-License-Identifier: Apache-2.0 */
/* A quantized product while it is fused: its operands, and what its integer sums need. Private to src/plan.
 */
#ifndef DQ_REWRITE_PRODUCT_H
#define DQ_REWRITE_PRODUCT_H

#include "rewrite/match.h"

typedef struct dq_product {
    const dq_node *node;
    dq_dequantized x, w;
    const dq_value *bias; /* NULL: none */
    bool added;           /* … which an Add behind the product adds */
    size_t channels;      /* results with scales and biases of their own that there may be */
    size_t inner;         /* axes of a result behind that of channels */
    double alpha, beta, y_scale;
    dq_value *sum_bias;  /* the bias as int32 in the scale of the products; NULL: none, or not worked out */
    dq_value *rest_bias; /* the same as floats, where they are not all multiples of it; else NULL */
    bool bias_overflows; /* int32 sums that begin with it do not give the formula */
} dq_product;

/** The bias as floats, one a channel; NULL when it cannot be. */
dq_value *dq_product_float_bias(dq_rewriter *f, const dq_product *p);
/** Works out sum_bias and rest_bias of a product to 8 bits, or sets bias_overflows and explains it;
 * `otherwise` says what the rewrite does then. False, with an explanation, if the bias is no constant that
 * fits. */
bool dq_product_int32_bias(dq_rewriter *f, dq_product *p, const char *otherwise);

/** Whether int32 holds every sum of the product, sum_bias included, whatever its operands' data. */
typedef enum dq_sum_bound {
    DQ_SUMS_FIT,
    DQ_SUMS_OVERFLOW, /* some data make them overflow; explained, `otherwise` says what the rewrite does then
                       */
    DQ_SUMS_UNKNOWN   /* both operands are computed: their shapes, which settle it, are not known yet */
} dq_sum_bound;
dq_sum_bound dq_product_int32_sums(dq_rewriter *f, const dq_product *p, const char *otherwise);
/** Whether double holds them exactly, as wider products have them; where nothing is known, they are taken to.
 * False: the reason told. */
bool dq_product_double_sums(dq_rewriter *f, const dq_product *p);

#endif
