/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of a linked graph that only its readers from outside want: lists of consumers, and texts in the form
 * of C strings. Each is made when it is first asked for and lives as long as the graph. Any thread may ask.
 */
#ifndef DQ_GRAPH_VIEWS_H
#define DQ_GRAPH_VIEWS_H

#include "graph/graph.h"

typedef struct dq_views dq_views;

/** Empty: costs a lock. The allocator lives longer. */
dq_status dq_views_create(const dq_allocator *allocator, dq_views **out, dq_error *err);
void dq_views_free(dq_views *views);

/** The nodes, of all graphs of the model, that have the value among their inputs: each once, in the order of
 * the graphs' nodes, those of an inner graph after the node that holds it. */
dq_status dq_views_consumers(dq_ir *ir, const dq_value *v, size_t *count, const dq_node *const **nodes,
                             dq_error *err);
/** A list of strings as an array of their bytes; one array for each list, wherever it is found. */
dq_status dq_views_strings(dq_ir *ir, const dq_string *strings, size_t count, const char *const **texts,
                           dq_error *err);
/** "tensor(float)": dq_type_text that lasts. */
dq_status dq_views_type(dq_ir *ir, const dq_type *type, const char **text, dq_error *err);
/** The same of each type of an attribute. */
dq_status dq_views_types(dq_ir *ir, const dq_type *const *types, size_t count, const char *const **texts,
                         dq_error *err);

#endif
