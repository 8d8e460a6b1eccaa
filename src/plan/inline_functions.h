/* SPDX-License-Identifier: Apache-2.0 */
/* Model-local functions: calls become copies of the body. */
#ifndef DQ_PLAN_INLINE_FUNCTIONS_H
#define DQ_PLAN_INLINE_FUNCTIONS_H

#include "graph/graph.h"

/** Replaces every node that calls one of ir->functions (same domain, name and overload), also in subgraphs
 * and inside other functions, by the nodes of the function; such a function comes before a standard operator
 * of the same name. Values of the body get names that nothing else in the model has, beginning with the name
 * of the calling node; attribute references become the caller's attribute, else the function's default, else
 * nothing. Runs before dq_graph_link.
 *
 * Refused with a sentence: a function that calls itself, by whatever way (DQ_BAD_MODEL; the way is named); a
 * call that does not fit the function; growth over ir->limits.nodes or nesting (DQ_OUT_OF_MEMORY). */
dq_status dq_inline_functions(dq_ir *ir, dq_error *err);

#endif
