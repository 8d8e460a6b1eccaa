/* SPDX-License-Identifier: Apache-2.0 */
/* Operators with subgraphs: the executor runs them (exec/control_flow.h). */
#include "ops/op.h"

const dq_op_impl dq_op_flow = {NULL, NULL, NULL, DQ_OP_SUBGRAPH};
