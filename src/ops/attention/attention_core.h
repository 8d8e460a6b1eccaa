/* SPDX-License-Identifier: Apache-2.0 */
/* softmax(scale * Q K^T + bias) V for batches of heads, in float: what all attention operators share. They
 * bring queries, keys and values as floats, and say row by row what may be seen and what is added to the
 * scores.
 *
 * Few queries are taken one by one: their products are sums in 16 lanes (dots and mix of
 * kernels/elementwise/float_rows.h). More are taken in tiles of float matrix products, whose sums run in
 * order (dq_gemm_block_f32_fn). The softmax is float_rows.h's in either case: the bits depend on neither
 * threads nor ISA.
 */
#ifndef DQ_OPS_ATTENTION_CORE_H
#define DQ_OPS_ATTENTION_CORE_H

#include "ops/op.h"

/** Rows of floats: those of (batch b, head n, position p) begin at b * batch + n * head + p * row. */
typedef struct dq_attention_operand {
    const float *data;
    size_t batch, head, row;
} dq_attention_operand;

/** Where such rows come from: elements of an input, of any float type, with the same strides from `base` on.
 */
typedef struct dq_attention_source {
    uint32_t input;
    size_t base, batch, head, row;
} dq_attention_source;

typedef struct dq_attention_position {
    size_t batch, head, position;
} dq_attention_position;

/** n elements of the row at a place, plus those of `bias` from `bias_at` on unless it is NULL. */
void dq_attention_load(const dq_op_call *call, const dq_attention_source *from, dq_attention_position at,
                       size_t n, const dq_tensor *bias, size_t bias_at, float *to);

/** One query on its way: what it sees is keys first … end - 1. scores[t] is that of key t. */
typedef struct dq_attention_row {
    size_t batch, head, row;
    size_t first, end;
    float *scores;
} dq_attention_row;

/** Called before the scores are worked out, to narrow first and end; … */
typedef void dq_attention_range_fn(const void *arg, dq_attention_row *row);
/** … after, to add to them; … */
typedef void dq_attention_bias_fn(const void *arg, const dq_attention_row *row);
/** The scores on their way: products times scale; capped; with what the bias function added; the weights. */
typedef enum dq_attention_stage {
    DQ_ATTENTION_RAW,
    DQ_ATTENTION_CAPPED,
    DQ_ATTENTION_BIASED,
    DQ_ATTENTION_WEIGHTS
} dq_attention_stage;

/** … and, at one stage, with the scores of all other keys set to 0, to look at them. */
typedef void dq_attention_look_fn(const void *arg, const dq_attention_row *row);

typedef struct dq_attention {
    size_t batch, heads, rows, keys;
    size_t heads_per_kv; /* neighbouring heads of queries that share one of keys and values */
    size_t size, v_size; /* elements of a head of queries and keys; of values */
    float scale;
    float softcap;      /* scores become softcap * tanh(score / softcap) before the bias; 0: no cap */
    const float *sinks; /* of each head, a score that only joins the denominator; NULL: none */
    dq_attention_operand q, k, v;
    dq_dtype precision; /* scores are rounded to it before the softmax; DQ_UNDEFINED: they are not */
    dq_tensor *out;     /* of any float type; NULL: not wanted */
    size_t out_batch, out_head, out_row; /* its strides, as of operands */
    dq_attention_range_fn *range;        /* each of the three may be NULL */
    dq_attention_bias_fn *bias;
    dq_attention_look_fn *look;
    dq_attention_stage look_at;
    const void *arg;
} dq_attention;

/** Raises call->worker_scratch_size to what dq_attention_run needs for so many queries of a head and at most
 * that many keys. */
dq_status dq_attention_prepare(dq_op_call *call, size_t rows, size_t keys, size_t size, size_t v_size,
                               dq_error *err);
void dq_attention_run(const dq_op_call *call, const dq_attention *a);

/* ---- Masks -------------------------------------------------------------------------------------------- */

typedef enum dq_mask_kind {
    DQ_MASK_NONE,
    DQ_MASK_LENGTHS, /* [batch], or [3 * batch + 2] where only those count: keys from there on are hidden */
    DQ_MASK_SPANS,   /* [2 * batch]: ends, then begins */
    DQ_MASK_KEYS,    /* [batch, keys]: not positive: hidden */
    DQ_MASK_ROWS,    /* [batch, rows, keys] */
    DQ_MASK_SQUARE   /* [batch, 1, most, most]: positions by positions */
} dq_mask_kind;

typedef struct dq_mask {
    dq_mask_kind kind;
    const int32_t *data;
    size_t batch, rows, keys, most, past; /* past: keys before the first query's own */
    float filter;                         /* what a hidden key's score gets added … */
    bool causal;           /* … and keys after a query's own have the lowest float as score */
    const dq_tensor *bias; /* added too: [batch or 1, heads or 1, rows, keys]; NULL: none */
} dq_mask;

/** Which kind of mask input i is, by its shape; none when the input is left out. */
dq_status dq_mask_infer(const dq_op_call *call, uint32_t i, size_t batch, size_t rows, size_t keys,
                        dq_mask_kind *kind, dq_error *err);
/** Fails unless input i is left out or a bias of the scores. */
dq_status dq_mask_check_bias(const dq_op_call *call, uint32_t i, size_t batch, size_t heads, size_t rows,
                             size_t keys, dq_error *err);
/** A dq_attention_bias_fn's work: adds mask and bias to the scores. */
void dq_mask_add(const dq_mask *mask, const dq_attention_row *row);

#endif
