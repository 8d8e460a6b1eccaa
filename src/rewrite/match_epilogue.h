/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of nodes behind a convolution or another product of constant weights, each the only reader of the
 * one before it. Private to src/plan. */
#ifndef DQ_REWRITE_MATCH_EPILOGUE_H
#define DQ_REWRITE_MATCH_EPILOGUE_H

#include "rewrite/match.h"

#include <math.h>

enum { DQ_EPILOGUE_MAX_VALUES = 12 };

/** What has been read so far: the last value, and where its node stands. Begins with the convolution's. */
typedef struct dq_epilogue {
    size_t rank, channels; /* of the values; the rank that is known at least */
    size_t trailing_axes;  /* axes behind that of the channels */
    dq_value *last;
    uint32_t at;
    dq_value *inner[DQ_EPILOGUE_MAX_VALUES]; /* values that only the chain reads */
    uint32_t inner_count;
    /* what was found */
    dq_value *z;
    dq_clip clip;
    bool gated;
    dq_hswish_f32 gate;
} dq_epilogue;

dq_epilogue dq_epilogue_begin(const dq_value *conv_out, uint32_t at, const dq_tensor *weights);
/** The one reader of the chain's last value, when it is this operator; *other is the operand beside it. NULL:
 * something else. */
const dq_node *dq_epilogue_next(const dq_rewriter *f, const dq_epilogue *c, const char *op, uint32_t *at,
                                dq_value **other);
void dq_epilogue_append(dq_epilogue *c, const dq_node *node, uint32_t at);
/** The constant floats, one or one a channel, that `v` is, or is a Reshape of, where broadcasting lays them
 * along the channels; NULL: none. */
dq_value *dq_epilogue_per_channel(const dq_epilogue *c, dq_value *v);
/** Goes on over a sum with another image, if it is there. */
void dq_epilogue_match_sum(const dq_rewriter *f, dq_epilogue *c);
/** Goes on over bounds. */
void dq_epilogue_match_clips(const dq_rewriter *f, dq_epilogue *c);
/** Goes on over a value times its own hard sigmoid (hard swish, written in one way or another), a divisor, a
 * factor and a term. */
void dq_epilogue_match_gate(const dq_rewriter *f, dq_epilogue *c);
static inline bool dq_epilogue_clips(const dq_epilogue *c)
{
    return c->clip.lo > -HUGE_VALF || c->clip.hi < HUGE_VALF;
}
/** The bounds, and the gate's numbers, as an attribute. */
bool dq_epilogue_clip_attr(dq_rewriter *f, const dq_epilogue *c, const char *name, dq_attr *attr);
bool dq_epilogue_gate_attr(dq_rewriter *f, const dq_epilogue *c, const char *name, dq_attr *attr);
/** Puts `made` in place of the chain's last node, and makes the others needless. */
void dq_epilogue_replace(dq_rewriter *f, const dq_epilogue *c, dq_node *made);
/** Puts dqrun.ConvIntegerToFloat of these inputs, with conv's attributes and the chain's bounds, in place of
 * both. */
bool dq_epilogue_to_float(dq_rewriter *f, const dq_epilogue *c, const dq_node *conv, uint32_t in_count,
                          dq_value **in);

#endif
