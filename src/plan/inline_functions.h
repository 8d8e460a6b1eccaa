/* SPDX-License-Identifier: Apache-2.0 */
/* Inlining of model-local functions: calls become copies of the body. */
#ifndef DQ_PLAN_INLINE_FUNCTIONS_H
#define DQ_PLAN_INLINE_FUNCTIONS_H

#include "graph/graph.h"

/** Replaces every node that calls one of ir->functions (same domain, name and overload) by the nodes of the
 * function, also in subgraphs and inside other functions. A function takes precedence over a standard
 * operator of the same name. Values of the body get unique names, which begin with the name of the calling
 * node. An attribute reference becomes the caller's attribute, else the function's default, else nothing.
 * Runs before dq_graph_link.
 *
 * Errors: a function that calls itself, directly or not (DQ_BAD_MODEL; the message names the cycle); a call
 * that does not fit the function; growth beyond ir->limits.nodes or nesting (DQ_OUT_OF_MEMORY). */
dq_status dq_inline_functions(dq_ir *ir, dq_error *err);

#endif
