/* SPDX-License-Identifier: Apache-2.0 */
/* The rewritten graphs of a program: made once for each graph, set of wanted values and set of disabled
 * passes, and shared by all sessions, so that packed weights are shared, too. */
#ifndef DQ_PLAN_REWRITE_CACHE_H
#define DQ_PLAN_REWRITE_CACHE_H

#include "plan/plan.h"
#include "rewrite/rewrite.h"

typedef struct dq_rewritten_graph {
    dq_rewritten nodes;
    uint32_t fed; /* what dq_rewrite_cache_feed gave when it was made */
} dq_rewritten_graph;

/** The rewritten nodes of the request's graph, the main one or an inner one, for callers that want its
 * values. They live as long as the program. Thread-safe. Of the request's kernels only the layout of
 * convolutions depends (assign_layout_nhwc.c). The request's `why` is told each decision. */
dq_status dq_program_rewrite(dq_program *program, const dq_plan_request *request,
                             const dq_rewritten_graph **out, dq_error *err);

/** Makes the request take these nodes; NULL: those of its graph. */
static inline void dq_plan_request_use(dq_plan_request *request, const dq_rewritten_graph *rewritten)
{
    request->nodes = rewritten ? rewritten->nodes.nodes : NULL;
    request->node_count = rewritten ? rewritten->nodes.node_count : 0;
    request->made = rewritten ? rewritten->nodes.values : NULL;
    request->made_count = rewritten ? rewritten->nodes.value_count : 0;
}

typedef struct dq_rewrite_cache dq_rewrite_cache;
/** The allocator (NULL: malloc) outlives it. */
dq_status dq_rewrite_cache_create(uint32_t graph_count, const dq_allocator *allocator, dq_rewrite_cache **out,
                                  dq_error *err);
void dq_rewrite_cache_free(dq_rewrite_cache *cache);
/** Says that a run is given a value for an input that has a default. Rewriting takes defaults for constants
 * until then, as models before IR version 4 list every initializer among their inputs. Returns how many
 * inputs have been fed: what was rewritten at another number is not for this run. Thread-safe. */
uint32_t dq_rewrite_cache_feed(dq_rewrite_cache *cache, dq_value *v);

#endif
