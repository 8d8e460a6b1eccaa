/* SPDX-License-Identifier: Apache-2.0 */
/* Views of a linked graph for the introspection API: lists of consumers, and texts as C strings. Each is made
 * on first request and lives as long as the graph. Thread-safe. */
#ifndef DQ_GRAPH_VIEWS_H
#define DQ_GRAPH_VIEWS_H

#include "graph/graph.h"

typedef struct dq_views dq_views;

/** Creates an empty set of views, which holds only a lock. The allocator must outlive it. */
dq_status dq_views_create(const dq_allocator *allocator, dq_views **out, dq_error *err);
void dq_views_free(dq_views *views);

/** Lists the nodes of all graphs of the model that have the value as an input. Each is listed once, in the
 * order of the graphs' nodes; nodes of a subgraph follow the node that holds it. */
dq_status dq_views_consumers(dq_ir *ir, const dq_value *v, size_t *count, const dq_node *const **nodes,
                             dq_error *err);
/** Gives a list of strings as an array of C strings. The same list always gives the same array. */
dq_status dq_views_strings(dq_ir *ir, const dq_string *strings, size_t count, const char *const **texts,
                           dq_error *err);
/** The text of dq_type_text, in memory that lives as long as the graph. */
dq_status dq_views_type(dq_ir *ir, const dq_type *type, const char **text, dq_error *err);
/** The same for each type of an attribute. */
dq_status dq_views_types(dq_ir *ir, const dq_type *const *types, size_t count, const char *const **texts,
                         dq_error *err);

#endif
