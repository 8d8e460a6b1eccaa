/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion: the nodes of a graph with patterns of nodes replaced by single ones that compute the same in the
 * integer domain. The graph itself stays as it is; a plan takes the list of nodes instead of the graph's own.
 *
 * A fused node means what the graph as written means in real numbers, rounded once; scales that are no normal
 * numbers and values that may be NaN stop fusion (value_range.c). A quantized result of a fused node differs
 * from the graph's as written by at most one quantum; inside regions of half precision by its roundings, too
 * (promote_half.c). What is exact to the bit, and what rounds elsewhere, stands over each
 * pattern (fuse_*.c). A value that a caller wants is computed as the graph is written: fusion stops there. */
#ifndef DQ_REWRITE_REWRITE_H
#define DQ_REWRITE_REWRITE_H

#include "plan/plan.h"

typedef struct dq_rewritten {
    dq_node *const *nodes; /* in topological order */
    uint32_t node_count;
    dq_value *const *values; /* made for them, ids from ir->value_count on */
    uint32_t made_count;
    uint32_t fed; /* as dq_rewrite_cache_feed said then */
} dq_rewritten;

typedef void (*dq_why_fn)(void *arg, const char *sentence);

/** The fused nodes of the request's graph, the main one or an inner one, for callers that want its values.
 * Made once for each set of values and kept by the program, so that packed weights are shared; thread-safe.
 * The request's kernels decide in what layout codes go from convolution to convolution, and nothing else; its
 * `why` is told what was fused, and what stopped the rest. What else it says is for the plan. */
dq_status dq_rewrite(dq_program *program, const dq_plan_request *request, const dq_rewritten **out,
                     dq_error *err);

/** What a program keeps of it. */
typedef struct dq_rewrite_cache dq_rewrite_cache;
/** The allocator (NULL: malloc) outlives it. */
dq_status dq_rewrite_cache_create(uint32_t graph_count, const dq_allocator *allocator, dq_rewrite_cache **out,
                                  dq_error *err);
void dq_rewrite_cache_free(dq_rewrite_cache *fusions);
/** Before a run is given a value for an input that has a default: fusion takes defaults for constants until
 * then, as models before version 4 of the format list every initializer among their inputs. Returns how many
 * have been fed; what was fused when it was another number is not for this run. Thread-safe. */
uint32_t dq_rewrite_cache_feed(dq_rewrite_cache *fusions, dq_value *v);

#endif
