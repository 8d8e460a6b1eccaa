/* SPDX-License-Identifier: Apache-2.0 */
/* The rewritten graphs of a program. Each is made once for a graph, a set of requested values and a set of
 * disabled passes. All sessions share it, and with it the packed weights. */
#ifndef DQ_PLAN_REWRITE_CACHE_H
#define DQ_PLAN_REWRITE_CACHE_H

#include "plan/plan.h"
#include "rewrite/rewrite.h"

typedef struct dq_rewritten_graph {
    dq_rewritten nodes;
    uint32_t overridden; /* The result of dq_rewrite_cache_override when it was made. */
} dq_rewritten_graph;

/** Gives the rewritten nodes of the request's graph, the main one or a subgraph, for callers that request its
 * values. They live as long as the program. Thread-safe. The only influence of the request's kernels is the
 * layout of convolutions (assign_layout_nhwc.c). Reports each decision to the request's `why`. */
dq_status dq_program_rewrite(dq_program *program, const dq_plan_request *request,
                             const dq_rewritten_graph **out, dq_error *err);

/** Makes the request plan these nodes; NULL: those of its graph. */
static inline void dq_plan_request_use(dq_plan_request *request, const dq_rewritten_graph *rewritten)
{
    request->nodes = rewritten ? rewritten->nodes.nodes : NULL;
    request->node_count = rewritten ? rewritten->nodes.node_count : 0;
    request->made = rewritten ? rewritten->nodes.values : NULL;
    request->made_count = rewritten ? rewritten->nodes.value_count : 0;
}

typedef struct dq_rewrite_cache dq_rewrite_cache;
/** The allocator (NULL: malloc) must outlive the cache. */
dq_status dq_rewrite_cache_create(uint32_t graph_count, const dq_allocator *allocator, dq_rewrite_cache **out,
                                  dq_error *err);
void dq_rewrite_cache_free(dq_rewrite_cache *cache);
/** Records that a run overrides the default of an input. Until then the rewriter takes defaults for
 * constants, because models before IR version 4 list every initializer among their inputs. Returns the number
 * of inputs that have been overridden: a graph that was rewritten at another number is not valid for this
 * run. Thread-safe. */
uint32_t dq_rewrite_cache_override(dq_rewrite_cache *cache, dq_value *v);

#endif
