/* SPDX-License-Identifier: Apache-2.0 */
/* Control flow: steps of nodes with subgraphs. The step keeps a plan and a buffer for each subgraph from run
 * to run. Values that a subgraph captures are bound like inputs, constant ones as constants, so that weights
 * outside a loop are packed once. If the outer plan was reshaped, the plan of the subgraph is, too. If a
 * shape differs from that of the last run for another reason, the subgraph is planned again with that value
 * as a varying one. */
#ifndef DQ_EXEC_CONTROL_FLOW_H
#define DQ_EXEC_CONTROL_FLOW_H

#include "exec/exec.h"

/** Runs If, Loop, Scan or SequenceMap. Outputs are in memory of the step until it runs again. */
dq_status dq_flow_run(dq_plan *plan, dq_step *step, dq_error *err);

#endif
