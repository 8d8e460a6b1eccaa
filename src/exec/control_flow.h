/* SPDX-License-Identifier: Apache-2.0 */
/* Control flow: the steps of nodes that hold graphs. An inner graph gets a plan and a buffer of its own, kept
 * from run to run in the step; the values that it takes from the graphs around it are given to it like
 * inputs, those that are constant as constants, so that weights outside a loop are packed once. When the
 * plan around it was made again, so is its own; when else a shape differs from that of the last run, the
 * graph is planned once more, with the value as a varying one. */
#ifndef DQ_EXEC_CONTROL_FLOW_H
#define DQ_EXEC_CONTROL_FLOW_H

#include "exec/exec.h"

/** Runs If, Loop, Scan or SequenceMap. Outputs lie in the step's memory until it runs again. */
dq_status dq_flow_run(dq_plan *plan, dq_step *step, dq_error *err);

#endif
