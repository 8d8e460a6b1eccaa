/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect.h"

#include "cli/inputs.h"
#include "cli/model.h"
#include "cli/report.h"
#include "insight/json.h"

#include <string.h>

static dq_status print(const insight_model *m, const cli_options *o, dq_error *err)
{
    cli_json json;
    if (o->svg)
        return insight_write_svg(m, stdout, err);
    if (o->dot) {
        insight_write_dot(m, stdout);
        return DQ_OK;
    }
    if (!o->json) {
        cli_inspect_table(m);
        return DQ_OK;
    }
    dq_status status = cli_json_start(&json, err);
    if (status != DQ_OK)
        return status;
    insight_model_json(m, &json);
    return cli_json_finish(&json, DQ_OK, err);
}

/* Inputs that cannot be made up leave the model without a plan; what the user gives must fit. */
static bool may_go_without(const cli_options *o, dq_status status)
{
    return !o->input_count && !o->dim_count && status == DQ_BAD_INPUT;
}

dq_status cli_inspect(dq_schemas *schemas, const cli_options *o, dq_error *err)
{
    const dq_session_options options = cli_session_options(o);
    dq_model *model = NULL;
    cli_inputs inputs = {0};
    insight_model m = {0};
    const char *why_not = NULL;
    dq_status status = cli_model_load(o, schemas, &model, err);
    if (status == DQ_OK) {
        status = cli_inputs_gather(model, o, o->inputs, o->input_count, &inputs, err);
        if (may_go_without(o, status)) {
            why_not = err->message;
            status = DQ_OK;
        }
    }
    if (status == DQ_OK)
        status = insight_inspect(model, &options, why_not ? NULL : inputs.tensors, why_not, &m, err);
    if (status == DQ_OK)
        status = print(&m, o, err);
    if (status == DQ_OK && o->report)
        status = cli_report_write(o->report, &(insight_report){.model = &m}, err);
    insight_model_free(&m);
    cli_inputs_clear(&inputs);
    dq_model_free(model);
    return status;
}
