/* SPDX-License-Identifier: Apache-2.0 */
/* State shared by the files of the pass fuse_elementwise: fuse_elementwise.c and fuse_elementwise_cut.c. */
#ifndef DQ_REWRITE_FUSE_ELEMENTWISE_H
#define DQ_REWRITE_FUSE_ELEMENTWISE_H

#include "rewrite/match.h"

enum { DQ_CHAIN_INPUTS = 8, DQ_CHAIN_STEPS = 24, DQ_CHAIN_ARGS = 3 };

/** The state of the pass. It runs on the list of nodes that earlier passes left. */
typedef struct dq_chain_pass {
    dq_rewriter *f;
    /* By the index of a value: */
    uint32_t *uses;                  /* Reads by nodes that are needed … */
    dq_use_positions read_positions; /* … their positions … */
    /* … and the index of the first position that may still be a read; earlier ones are obsolete. */
    uint32_t *first;
    dq_node **by;         /* The needed node that produces it … */
    uint32_t *node_index; /* … and its position. */
    bool *needed;         /* By position. */
    /* Placeholder at the position of a node that was fused into a chain: it produces nothing. */
    dq_node *removed;
} dq_chain_pass;

/** A chain of nodes to be fused into one, the last node first. */
typedef struct dq_chain {
    const dq_node *nodes[DQ_CHAIN_STEPS];
    uint32_t count;
    /* The program of the fused node. */
    dq_value *in[DQ_CHAIN_INPUTS];
    dq_dequantized qvalues[DQ_CHAIN_INPUTS]; /* node NULL: the input is float. */
    uint32_t in_count, steps;
    const char *name[DQ_CHAIN_STEPS];
    const dq_node *like[DQ_CHAIN_STEPS];
    const dq_value *of[DQ_CHAIN_STEPS]; /* The value that the step produces; NULL: an intermediate result. */
    int64_t args[DQ_CHAIN_STEPS * DQ_CHAIN_ARGS];
} dq_chain;

/** The needed node that produces the value; NULL: there is none. */
static inline dq_node *dq_chain_producer(const dq_chain_pass *p, const dq_value *v)
{
    return p->by[dq_rewriter_index(p->f, v)];
}

/** The operands of a node of a chain. A QuantizeLinear and DequantizeLinear round trip is one step,
 * represented by its second node; its operands are those of the first. */
dq_value *const *dq_chain_operands(const dq_chain_pass *p, const dq_node *node, uint32_t *count);

/** Removes nodes from a chain that are faster separately: functions of one 16-bit quantized value. */
void dq_chain_cut(const dq_chain_pass *p, dq_chain *c);

#endif
