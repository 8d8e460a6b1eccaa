/* SPDX-License-Identifier: Apache-2.0 */
/* Bound outputs: requested values that are computed in the caller's memory. The result is as if every value
 * were computed elsewhere and copied there at the end. If a target overlaps inputs that are read after the
 * first write to it, the value is in fact computed elsewhere and copied. */
#ifndef DQ_EXEC_BOUND_OUTPUTS_H
#define DQ_EXEC_BOUND_OUTPUTS_H

#include "exec/exec.h"

/** Runs before the steps, after inputs are bound. Checks types and shapes as far as they are known, and
 * points values to their targets if they may be computed there. */
dq_status dq_targets_bind(const dq_exec *exec, dq_plan *plan, const dq_binding *bindings,
                          uint32_t binding_count, dq_error *err);
/** Runs after the steps: copies the values that were computed elsewhere. */
dq_status dq_targets_fill(const dq_exec *exec, const dq_plan *plan, dq_error *err);

#endif
