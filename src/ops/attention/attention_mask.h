/* SPDX-License-Identifier: Apache-2.0 */
/* Masks and biases of the scores of attention operators. */
#ifndef DQ_OPS_ATTENTION_MASK_H
#define DQ_OPS_ATTENTION_MASK_H

#include "ops/attention/attention_core.h"

typedef enum dq_mask_kind {
    DQ_MASK_NONE,
    DQ_MASK_LENGTHS, /* [batch], or the first `batch` of [3 * batch + 2]: keys from there on are masked */
    DQ_MASK_SPANS,   /* [2 * batch]: ends, then begins, of the keys that are not masked */
    DQ_MASK_KEYS,    /* [batch, keys]: values that are not positive mask their key */
    DQ_MASK_ROWS,    /* [batch, rows, keys]: the same for each query */
    DQ_MASK_SQUARE   /* [batch, 1, most, most]: the same, by positions of query and key */
} dq_mask_kind;

typedef struct dq_mask {
    dq_mask_kind kind;
    const int32_t *data;
    size_t batch, rows, keys, most, past; /* past: keys before the first query's position */
    float filter;                         /* added to the scores of masked keys (mask_filter_value) */
    bool causal;           /* -FLT_MAX is added to the scores of keys after the query's own position */
    const dq_tensor *bias; /* added too: [batch or 1, heads or 1, rows, keys]; NULL: none */
} dq_mask;

/** Finds the kind of mask input i from its shape: DQ_MASK_NONE if it is omitted, an error if it fits none. */
dq_status dq_mask_infer(const dq_op_call *call, uint32_t i, size_t batch, size_t rows, size_t keys,
                        dq_mask_kind *kind, dq_error *err);
/** Fails unless input i is omitted or has the shape of a bias of the scores (dq_mask.bias). */
dq_status dq_mask_check_bias(const dq_op_call *call, uint32_t i, size_t batch, size_t heads, size_t rows,
                             size_t keys, dq_error *err);
/** Adds mask and bias to the scores: the work of a dq_attention_bias_fn. */
void dq_mask_add(const dq_mask *mask, const dq_attention_row *row);

#endif
