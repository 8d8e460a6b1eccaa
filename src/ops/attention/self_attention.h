/* SPDX-License-Identifier: Apache-2.0 */
/* What Attention and QAttention of com.microsoft share: all that comes after the projection of the input to
 * queries, keys and values, which stand side by side as floats, [batch, sequence, q + k + v]. */
#ifndef DQ_OPS_SELF_ATTENTION_H
#define DQ_OPS_SELF_ATTENTION_H

#include "ops/attention/attention_core.h"

/** Input numbers; the operator's input count and above: it has no such input. */
typedef struct dq_self_inputs {
    uint32_t input, weights, bias, mask, past, attention_bias, past_length;
} dq_self_inputs;

typedef struct dq_self_attention {
    dq_self_inputs at;
    size_t batch, rows, input; /* of the input */
    size_t width, v_width;     /* of queries and of keys; of values */
    size_t heads, size, v_size;
    size_t past, capacity; /* positions before; of past and present, or of this run, together */
    bool shared;           /* the past's length is an input, and capacity that of both buffers */
    dq_mask_kind mask;
    float scale, filter;
    bool causal;
    bool joined;                /* keys and values are put together with the past … */
    size_t projected_at, kv_at; /* … at this offset of scratch, when present is not theirs to use */
} dq_self_attention;

/** Checks shapes and gives the outputs theirs. */
dq_status dq_self_attention_infer(dq_op_call *call, const dq_self_inputs *at, dq_self_attention *s,
                                  dq_error *err);
/** After infer's work is in *s: raises the call's scratch sizes. */
dq_status dq_self_attention_prepare(dq_op_call *call, dq_self_attention *s, dq_error *err);
/** Where run wants the projection. */
float *dq_self_attention_projected(const dq_op_call *call, const dq_self_attention *s);
dq_status dq_self_attention_run(const dq_op_call *call, const dq_self_attention *s, dq_error *err);

#endif
