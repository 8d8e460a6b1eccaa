/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that hold graphs: they are run by the executor (exec/control_flow.h). */
#include "ops/op.h"

const dq_op_impl dq_op_flow = {NULL, NULL, NULL, DQ_OP_SUBGRAPH};
