/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizations of one value that are the same, as quantizers write them for each reader. */
#ifndef DQ_REWRITE_CSE_QUANTIZE_H
#define DQ_REWRITE_CSE_QUANTIZE_H

#include "graph/graph.h"

/** Has the readers of equal QuantizeLinear nodes of a value read the codes of the first one, so that the
 * value has one reader, as patterns of fusion want it. Nodes stay, for callers that want their codes; and so
 * do the names that nodes have of their inputs. No other operators: their floats are best computed by each
 * reader on its way. After the check; false: memory ran out. */
bool dq_cse_quantize(dq_ir *ir);

#endif
