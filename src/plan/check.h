/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a whole model before anything runs. */
#ifndef DQ_PLAN_CHECK_H
#define DQ_PLAN_CHECK_H

#include "schema/schema.h"

/** Checks each node of `g` and of its subgraphs: sets node->schema, node->version and node->op, and adds the
 * defaults of attributes. Calls `fault`, with a complete message, for each node that cannot run. Returns only
 * DQ_OUT_OF_MEMORY or an error of `fault`. dtypes[id] becomes the element type of each tensor as far as it
 * follows. */
typedef dq_status (*dq_fault_fn)(void *arg, const dq_error *fault);
dq_status dq_check_graph(dq_graph *g, dq_schemas *schemas, dq_fault_fn fault, void *arg, dq_dtype *dtypes,
                         dq_error *err);

#endif
