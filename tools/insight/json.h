/* SPDX-License-Identifier: Apache-2.0 */
/* Results as JSON (docs/inspect-json.md). Each call writes one object; the key is NULL at the top. */
#ifndef DQ_TOOLS_INSIGHT_JSON_H
#define DQ_TOOLS_INSIGHT_JSON_H

#include "cli/json.h"
#include "insight/compare.h"

void insight_model_json(const insight_model *m, cli_json *json);
void insight_comparison_json(const insight_comparison *c, cli_json *json);
/** Positions of the drawing of insight_write_svg: `{"width": …, "height": …, "vertices": [[kind, index, x,
 * y], …], "edges": [[from, to], …]}`, with kind 0 for a node, 1 for a value, 2 for a bend of an edge (index
 * null); x is the middle of a box, y its top. */
dq_status insight_layout_json(const insight_model *m, cli_json *json, dq_error *err);

#endif
