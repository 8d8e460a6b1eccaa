/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of nodes behind a convolution or another product of constant weights, each the only reader of the
 * one before it. Private to src/plan. */
#ifndef DQ_PLAN_FUSE_BEHIND_H
#define DQ_PLAN_FUSE_BEHIND_H

#include "plan/fuser.h"

#include <math.h>

enum { DQ_BEHIND_STEPS = 12 };

/** What has been read so far: the last value, and where its node stands. Begins with the convolution's. */
typedef struct dq_behind {
    size_t rank, channels; /* of the values; the rank that is known at least */
    size_t behind;         /* axes behind that of the channels */
    dq_value *last;
    uint32_t at;
    dq_value *inner[DQ_BEHIND_STEPS]; /* values that only the chain reads */
    uint32_t inner_count;
    /* what was found */
    dq_value *z;
    dq_clip clip;
    bool gated;
    dq_fgate gate;
} dq_behind;

dq_behind dq_behind_begin(const dq_value *conv_out, uint32_t at, const dq_tensor *weights);
/** The one reader of the chain's last value, when it is this operator; *other is the operand beside it. NULL:
 * something else. */
const dq_node *dq_behind_next(const dq_fuser *f, const dq_behind *c, const char *op, uint32_t *at,
                              dq_value **other);
void dq_behind_go_on(dq_behind *c, const dq_node *node, uint32_t at);
/** The constant floats, one or one a channel, that `v` is, or is a Reshape of, where broadcasting lays them
 * along the channels; NULL: none. */
dq_value *dq_behind_channels(const dq_behind *c, dq_value *v);
/** Goes on over a sum with another image, if it is there. */
void dq_behind_sum(const dq_fuser *f, dq_behind *c);
/** Goes on over bounds. */
void dq_behind_clips(const dq_fuser *f, dq_behind *c);
/** Goes on over a value times its own hard sigmoid (hard swish, written in one way or another), a divisor, a
 * factor and a term. */
void dq_behind_gate(const dq_fuser *f, dq_behind *c);
static inline bool dq_behind_bounded(const dq_behind *c)
{
    return c->clip.lo > -HUGE_VALF || c->clip.hi < HUGE_VALF;
}
/** The bounds, and the gate's numbers, as an attribute. */
bool dq_behind_bounds(dq_fuser *f, const dq_behind *c, const char *name, dq_attr *attr);
bool dq_behind_gate_params(dq_fuser *f, const dq_behind *c, const char *name, dq_attr *attr);
/** Puts `made` in place of the chain's last node, and makes the others needless. */
void dq_behind_replace(dq_fuser *f, const dq_behind *c, dq_node *made);
/** Puts dqrun.ConvIntegerToFloat of these inputs, with conv's attributes and the chain's bounds, in place of
 * both. */
bool dq_behind_to_float(dq_fuser *f, const dq_behind *c, const dq_node *conv, uint32_t in_count,
                        dq_value **in);

#endif
