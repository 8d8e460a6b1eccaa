/* SPDX-License-Identifier: Apache-2.0 */
/* Wanted values in the caller's memory. What a run leaves there is what it would have if all values were
 * computed apart and copied there in the end: where a target overlaps inputs that are read after its memory
 * is first written to, it is done like that. */
#ifndef DQ_EXEC_BOUND_OUTPUTS_H
#define DQ_EXEC_BOUND_OUTPUTS_H

#include "exec/exec.h"

/** Before the steps, once inputs are bound: holds types and shapes against what is known, and points values
 * to their targets where they may be computed there. */
dq_status dq_targets_bind(const dq_exec *exec, dq_plan *plan, const dq_binding *bindings,
                          uint32_t binding_count, dq_error *err);
/** After the steps: copies what was computed elsewhere. */
dq_status dq_targets_fill(const dq_exec *exec, const dq_plan *plan, dq_error *err);

#endif
