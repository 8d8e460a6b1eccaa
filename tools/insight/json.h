/* SPDX-License-Identifier: Apache-2.0 */
/* Results as JSON (docs/inspect-json.md). Each call writes one object; the key is NULL at the top. */
#ifndef DQ_TOOLS_INSIGHT_JSON_H
#define DQ_TOOLS_INSIGHT_JSON_H

#include "cli/json.h"
#include "insight/compare.h"

void insight_model_json(const insight_model *m, cli_json *json);
void insight_comparison_json(const insight_comparison *c, cli_json *json);

#endif
