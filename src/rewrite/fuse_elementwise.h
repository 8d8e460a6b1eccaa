/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of one pass share, fuse_elementwise.c and fuse_elementwise_cut.c. */
#ifndef DQ_REWRITE_FUSE_ELEMENTWISE_H
#define DQ_REWRITE_FUSE_ELEMENTWISE_H

#include "rewrite/match.h"

enum { DQ_CHAIN_INPUTS = 8, DQ_CHAIN_STEPS = 24, DQ_CHAIN_ARGS = 3 };

/** The list as the other patterns left it. */
typedef struct dq_chain_pass {
    dq_rewriter *f;
    /* by the index of a value: */
    uint32_t *uses;            /* reads by nodes that are needed … */
    dq_use_positions readings; /* … and their positions … */
    uint32_t *first;           /* … and 0, or the first of those that may still be there */
    dq_node **by;              /* the needed node that gives it … */
    uint32_t *node_index;      /* … and its position */
    bool *needed;              /* by position */
    dq_node *gone;             /* stands where a node was that went into a chain: gives nothing */
} dq_chain_pass;

/** Nodes, their last one first, that shall be one. */
typedef struct dq_chain {
    const dq_node *nodes[DQ_CHAIN_STEPS];
    uint32_t count;
    /* the program */
    dq_value *in[DQ_CHAIN_INPUTS];
    dq_dequantized qvalues[DQ_CHAIN_INPUTS]; /* node NULL: the input is float */
    uint32_t in_count, steps;
    const char *name[DQ_CHAIN_STEPS];
    const dq_node *like[DQ_CHAIN_STEPS];
    const dq_value *of[DQ_CHAIN_STEPS]; /* the value that the step gives; NULL: one in between */
    int64_t args[DQ_CHAIN_STEPS * DQ_CHAIN_ARGS];
} dq_chain;

/** The needed node that gives the value; NULL: there is none. */
static inline dq_node *dq_chain_giver(const dq_chain_pass *p, const dq_value *v)
{
    return p->by[dq_rewriter_index(p->f, v)];
}

/** What a node of a chain reads. Both nodes of a round trip are one step, in chains the second one stands for
 * it: what it is done with. */
dq_value *const *dq_chain_operands(const dq_chain_pass *p, const dq_node *node, uint32_t *count);

/** Takes nodes out of a chain that would rather be one of their own: functions of one 16-bit code. */
void dq_chain_cut(const dq_chain_pass *p, dq_chain *c);

#endif
