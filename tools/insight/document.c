/* SPDX-License-Identifier: Apache-2.0 */
#include "insight/document.h"

#include "insight/report.h"
#include "io/common.h"

#include <stdlib.h>
#include <string.h>

static dq_status write_html(const insight_report *report, insight_document *out, dq_error *err)
{
    FILE *to = open_memstream(&out->html, &out->html_size);
    if (!to)
        return io_no_memory(err);
    dq_status status = insight_write_report(report, to, err);
    const bool bad = ferror(to) != 0;
    return (fclose(to) || bad) && status == DQ_OK ? io_no_memory(err) : status;
}

dq_status insight_document_inspect(dq_model *model, const dq_session_options *options,
                                   dq_tensor *const *tensors, insight_document *out, dq_error *err)
{
    insight_model m = {0};
    cli_json json;
    *out = (insight_document){0};
    dq_status status = insight_inspect(model, options, tensors, NULL, &m, err);
    if (status == DQ_OK)
        status = cli_json_start(&json, err);
    if (status == DQ_OK) {
        insight_model_json(&m, &json);
        status = cli_json_take(&json, &out->json, &out->json_size, err);
    }
    if (status == DQ_OK)
        status = write_html(&(insight_report){.model = &m}, out, err);
    insight_model_free(&m);
    return status;
}

static insight_request request_of(const insight_task *task, const insight_map *maps)
{
    return (insight_request){.quantized = task->quantized,
                             .reference = task->reference,
                             .ref_count = task->ref_count,
                             .ref_names = task->ref_names,
                             .ref_tensors = task->ref_tensors,
                             .quantized_bytes = task->quantized_bytes,
                             .reference_bytes = task->reference_bytes,
                             .quantized_size = task->quantized_size,
                             .reference_size = task->reference_size,
                             .quantized_dir = task->quantized_dir,
                             .reference_dir = task->reference_dir,
                             .options = task->options,
                             .maps = maps,
                             .map_count = task->map_count,
                             .leave_one_out = task->leave_one_out,
                             .labels = task->labels,
                             .label_count = task->label_count,
                             .feed = {task->input_count, task->read, task->arg, task->progress}};
}

/* The page shows the plan for the shapes of the first input. */
static dq_status write_comparison(const insight_task *task, const insight_comparison *c,
                                  insight_document *out, dq_error *err)
{
    insight_model m = {0};
    cli_json json;
    dq_tensor *const *tensors = NULL;
    dq_status status = cli_json_start(&json, err);
    if (status == DQ_OK) {
        insight_comparison_json(c, &json);
        status = cli_json_take(&json, &out->json, &out->json_size, err);
    }
    if (status == DQ_OK && task->input_count)
        status = task->read(task->arg, 0, &tensors, err);
    if (status == DQ_OK)
        status = insight_inspect(task->quantized, task->options, tensors, NULL, &m, err);
    if (status == DQ_OK)
        status = write_html(&(insight_report){.comparison = c, .model = &m}, out, err);
    insight_model_free(&m);
    return status;
}

dq_status insight_document_compare(const insight_task *task, insight_document *out, dq_error *err)
{
    insight_comparison c = {0};
    insight_map *maps = calloc(task->map_count + 1, sizeof *maps);
    *out = (insight_document){0};
    if (!maps)
        return io_no_memory(err);
    for (size_t i = 0; i < task->map_count; i++)
        maps[i] = (insight_map){task->map_floats[i], task->map_names[i]};
    const insight_request request = request_of(task, maps);
    dq_status status = insight_compare(&request, &c, err);
    if (status == DQ_OK)
        status = write_comparison(task, &c, out, err);
    if (status == DQ_OK && task->fixes)
        status = insight_fix(&request, &c, &out->fixed, &out->fixed_size, &out->fixed_count, err);
    insight_comparison_free(&c);
    free(maps);
    return status;
}

void insight_document_free(insight_document *document)
{
    free(document->json);
    free(document->html);
    free(document->fixed);
    *document = (insight_document){0};
}
