/* SPDX-License-Identifier: Apache-2.0 */
/* Self-attention after the projection, shared by Attention and QAttention of com.microsoft. The operator
 * projects the input to floats [batch, sequence, q + k + v]: queries, keys and values of each position are
 * contiguous. */
#ifndef DQ_OPS_SELF_ATTENTION_H
#define DQ_OPS_SELF_ATTENTION_H

#include "ops/attention/attention_mask.h"

/** Input numbers. Numbers past the inputs of the operator mean that it has no such input. */
typedef struct dq_self_inputs {
    uint32_t input, weights, bias, mask, past, attention_bias, past_length;
} dq_self_inputs;

typedef struct dq_self_attention {
    dq_self_inputs at;
    size_t batch, rows, input; /* axes of the input; rows: positions */
    size_t width, v_width;     /* elements of all heads of queries, as of keys; of values */
    size_t heads, size, v_size;
    size_t past, capacity; /* positions in the past; positions that keys and values have memory for */
    bool shared;           /* past and present share a buffer of `capacity`; the past length is an input */
    dq_mask_kind mask;
    float scale, filter;
    bool causal;
    bool joined; /* keys and values are concatenated with the past */
    /* Byte offsets in scratch: of the projection; of the concatenation, if it is not in a float output. */
    size_t projected_at, kv_at;
} dq_self_attention;

/** Checks the input shapes, sets *s, and sets types and shapes of the outputs. */
dq_status dq_self_attention_infer(dq_op_call *call, const dq_self_inputs *at, dq_self_attention *s,
                                  dq_error *err);
/** In prepare, after dq_self_attention_infer has set *s: reads the attributes and reserves scratch. */
dq_status dq_self_attention_prepare(dq_op_call *call, dq_self_attention *s, dq_error *err);
/** The memory that the operator writes its projection to, before dq_self_attention_run. */
float *dq_self_attention_projected(const dq_op_call *call, const dq_self_attention *s);
/** Computes the attention of the projection, and the outputs. */
dq_status dq_self_attention_run(const dq_op_call *call, const dq_self_attention *s, dq_error *err);

#endif
