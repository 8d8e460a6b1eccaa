/* SPDX-License-Identifier: Apache-2.0 */
/* Scaled dot-product attention, softmax(scale * Q Kᵀ + bias) V for batches of heads in float, shared by all
 * attention operators. Operators pass queries, keys and values as floats. Callbacks set for each query which
 * keys it attends to, and add masks and biases to the scores.
 *
 * Few queries are computed one at a time, with sums in 16 partial sums (dots and
 * mix_heads of kernels/elementwise/float_rows.h), together for the heads that share a key/value head. More
 * queries are computed in tiles by float GEMMs, whose sums are in order (dq_gemm_block_f32_fn). Both use the
 * Softmax of float_rows.h. The bits of results depend on neither threads nor ISA. */
#ifndef DQ_OPS_ATTENTION_CORE_H
#define DQ_OPS_ATTENTION_CORE_H

#include "ops/op.h"

/** A strided float operand: row p of head n of batch b begins at b * batch + n * head + p * row. */
typedef struct dq_attention_operand {
    const float *data;
    size_t batch, head, row;
} dq_attention_operand;

/** The source of such rows: an input of any float type, with the same strides in elements from `base` on. */
typedef struct dq_attention_source {
    uint32_t input;
    size_t base, batch, head, row;
} dq_attention_source;

typedef struct dq_attention_position {
    size_t batch, head, position;
} dq_attention_position;

/** Loads the first n elements of the row at index `at` as floats. Adds elements of `bias` from `bias_at` on
 * unless it is NULL. */
void dq_attention_load(const dq_op_call *call, const dq_attention_source *from, dq_attention_position at,
                       size_t n, const dq_tensor *bias, size_t bias_at, float *to);

/** A query and its scores: it attends to keys first … end - 1, and scores[t] is the score of key t. */
typedef struct dq_attention_row {
    size_t batch, head, row;
    size_t first, end;
    float *scores;
} dq_attention_row;

/** Callback before the scores are computed: narrows first and end, alike for all heads. */
typedef void dq_attention_range_fn(const void *arg, dq_attention_row *row);
/** Callback after that: adds masks and biases to the scores. */
typedef void dq_attention_bias_fn(const void *arg, const dq_attention_row *row);
/** Stages of the scores: scaled products; after softcap; after the bias callback; after Softmax. */
typedef enum dq_attention_stage {
    DQ_ATTENTION_RAW,
    DQ_ATTENTION_CAPPED,
    DQ_ATTENTION_BIASED,
    DQ_ATTENTION_WEIGHTS
} dq_attention_stage;

/** Callback at one stage: reads the scores of all keys, which are 0 outside first … end - 1. */
typedef void dq_attention_scores_fn(const void *arg, const dq_attention_row *row);

/** Rows first … first + count - 1 of the keys of a head, or of its values. */
typedef struct dq_attention_rows {
    bool values;
    size_t batch, kv_head, first, count;
} dq_attention_rows;
/** Callback that converts such rows to floats, one row after the other at `to`. */
typedef void dq_attention_rows_fn(const void *arg, const dq_attention_rows *rows, float *to);

typedef struct dq_attention {
    size_t batch, heads, rows, keys;
    size_t heads_per_kv; /* neighboring query heads that share a key/value head (grouped-query attention) */
    size_t size, v_size; /* elements of a head of queries and keys; of values */
    float scale;
    float softcap;      /* scores become softcap * tanh(score / softcap) before the bias; 0: no cap */
    const float *sinks; /* for each head, a score that only adds to the Softmax denominator; NULL: none */
    dq_attention_operand q, k, v;
    dq_attention_rows_fn *load; /* replaces k and v if they are not floats; else NULL */
    dq_dtype precision; /* scores are rounded to this type before Softmax; DQ_UNDEFINED: they are not */
    dq_tensor *out;     /* of any float type; NULL: not requested */
    size_t out_batch, out_head, out_row; /* strides of `out`, as of operands */
    dq_attention_range_fn *range;        /* any of the three callbacks may be NULL */
    dq_attention_bias_fn *bias;
    dq_attention_scores_fn *on_scores;
    dq_attention_stage scores_stage;
    const void *arg;
} dq_attention;

/** Raises call->worker_scratch_size to the size that dq_attention_run needs for `rows` queries of a head and
 * at most `keys` keys. */
dq_status dq_attention_prepare(dq_op_call *call, size_t rows, size_t keys, size_t size, size_t v_size,
                               size_t heads_per_kv, dq_error *err);
void dq_attention_run(const dq_op_call *call, const dq_attention *a);

#endif
