/* SPDX-License-Identifier: Apache-2.0 */
/* Epilogue matching: chains of nodes after a convolution or another product with constant weights, each the
 * only reader of its predecessor. Private to src/rewrite. */
#ifndef DQ_REWRITE_MATCH_EPILOGUE_H
#define DQ_REWRITE_MATCH_EPILOGUE_H

#include "rewrite/match.h"

#include <math.h>

enum { DQ_EPILOGUE_MAX_VALUES = 12 };

/** The epilogue matched so far: its last value and the position of its node. It begins with the result of the
 * convolution. */
typedef struct dq_epilogue {
    size_t rank, channels; /* Of the values; rank is the least rank that is known. */
    size_t trailing_axes;  /* Number of axes after the channel axis. */
    dq_value *last;
    uint32_t at;
    dq_value *inner[DQ_EPILOGUE_MAX_VALUES]; /* Values that only the chain reads. */
    uint32_t inner_count;
    /* The matched operators. */
    dq_value *z;
    dq_clip clip;
    bool gated;
    dq_hswish_f32 gate;
} dq_epilogue;

dq_epilogue dq_epilogue_begin(const dq_value *conv_out, uint32_t at, const dq_tensor *weights);
/** The only reader of the chain's last value, if it is this operator; *other is its other operand. NULL: no
 * such reader. */
const dq_node *dq_epilogue_next(const dq_rewriter *f, const dq_epilogue *c, const char *op, uint32_t *at,
                                dq_value **other);
void dq_epilogue_append(dq_epilogue *c, const dq_node *node, uint32_t at);
/** The constant floats, one or one per channel, if `v` is such a constant or a Reshape of one that broadcasts
 * along the channels; else NULL. */
dq_value *dq_epilogue_per_channel(const dq_epilogue *c, dq_value *v);
/** Extends the chain by a sum with another tensor, if there is one. */
void dq_epilogue_match_sum(const dq_rewriter *f, dq_epilogue *c);
/** Extends the chain by Relu and Clip. */
void dq_epilogue_match_clips(const dq_rewriter *f, dq_epilogue *c);
/** Extends the chain by hard swish (a value times its own hard sigmoid) in any of its forms, a divisor, a
 * factor and a term. */
void dq_epilogue_match_gate(const dq_rewriter *f, dq_epilogue *c);
static inline bool dq_epilogue_clips(const dq_epilogue *c)
{
    return c->clip.lo > -HUGE_VALF || c->clip.hi < HUGE_VALF;
}
/** These write the bounds, and the parameters of the gate, as an attribute. */
bool dq_epilogue_clip_attr(dq_rewriter *f, const dq_epilogue *c, const char *name, dq_attr *attr);
bool dq_epilogue_gate_attr(dq_rewriter *f, const dq_epilogue *c, const char *name, dq_attr *attr);
/** Replaces the chain's last node by `made`. Nothing reads the others then. */
void dq_epilogue_replace(dq_rewriter *f, const dq_epilogue *c, dq_node *made);
/** Replaces the convolution and the chain by a dqrun.ConvIntegerToFloat with these inputs, conv's attributes
 * and the chain's bounds. */
bool dq_epilogue_to_float(dq_rewriter *f, const dq_epilogue *c, const dq_node *conv, uint32_t in_count,
                          dq_value **in);

#endif
