/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run.h"

#include "cli/interrupt.h"
#include "cli/suggest.h"
#include "cli/terminal.h"
#include "io/common.h"
#include "io/npz.h"
#include "io/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Writing ------------------------------------------------------------------------------------------- */

static bool is_npy(const char *path)
{
    size_t length = strlen(path);
    return length >= 4 && !strcmp(path + length - 4, ".npy");
}

dq_status cli_write_outputs(const char *path, const cli_outputs *outputs, dq_error *err)
{
    bool npy = is_npy(path);
    if (npy && outputs->count != 1)
        return io_fail(
            err, DQ_INVALID_ARGUMENT,
            "%s: there are %zu outputs, expected one for a .npy file; choose it with --value, or write .npz",
            path, outputs->count);
    for (size_t i = 0; i < outputs->count; i++)
        if (dq_tensor_kind(outputs->tensors[i]) != DQ_KIND_TENSOR)
            return io_fail(err, DQ_UNSUPPORTED,
                           "%s: output '%s' is a sequence or optional, and .npz files hold tensors only",
                           path, outputs->names[i]);
    dq_status status = npy ? npy_file_write(path, outputs->tensors[0], err)
                           : npz_write(path, outputs->count, outputs->names, outputs->tensors, err);
    return status == DQ_OK ? DQ_OK
                           : io_prefix(err, status, strcmp(path, "-") != 0 ? path : "standard output");
}

static dq_status check_terminal(const char *output, dq_error *err)
{
    if (output && !strcmp(output, "-") && isatty(STDOUT_FILENO))
        return io_fail(
            err, DQ_INVALID_ARGUMENT,
            "standard output is a terminal, expected a file or pipe for the archive of --output -");
    return DQ_OK;
}

/* ---- The session --------------------------------------------------------------------------------------- */

static void trace(void *arg, const dq_trace_event *event)
{
    cli_runner *runner = arg;
    runner->step_seconds += event->seconds;
    char node[256];
    snprintf(node, sizeof node, "%s", event->node ? event->node : "");
    fprintf(stderr, "%10.3f ms  %-28s %s%s%s%s\n", event->seconds * 1e3, event->op, io_printable(node),
            event->algorithm ? " (" : "", event->algorithm ? event->algorithm : "",
            event->algorithm ? ")" : "");
}

static void print_decision(void *arg, const dq_log_record *record)
{
    (void)arg; /* The runner. */
    const char *next, *part = record->message;
    for (bool first = true; part; first = false, part = next) { /* Text after "; " gets its own line. */
        char line[1024];
        next = strstr(part, "; ");
        snprintf(line, sizeof line, "%.*s", next ? (int)(next - part) : (int)strlen(part), part);
        fprintf(stderr, "%s%s\n", first ? "why: " : "         ", io_printable(line));
        next = next ? next + strlen("; ") : NULL;
    }
}

/* Shows progress. A run of unknown work shows its number of nodes, unless it is one of many. */
static int show_progress(void *arg, const dq_progress *progress)
{
    const cli_runner *r = arg;
    if (progress->phase == DQ_PHASE_RUN && progress->total_work)
        cli_progress(((double)r->run + (double)progress->work / (double)progress->total_work) /
                     (double)r->runs);
    else if (r->runs == 1)
        cli_progress_nodes(progress->nodes);
    return 0;
}

static dq_status open_session(cli_runner *r, dq_error *err)
{
    dq_session_options options = cli_session_options(r->options);
    options.arg = r;
    if (r->options->verbose)
        options.trace = trace;
    if (r->options->why)
        options.log = print_decision;
    if (cli_progress_allowed())
        options.progress = show_progress;
    dq_status status = dq_session_create(r->model, &options, &r->session, err);
    if (status == DQ_OK && r->options->verbose)
        fprintf(stderr, "dqrun %s: ISA %s, %u thread%s\n", dq_version(), dq_session_isa(r->session),
                dq_session_threads(r->session), dq_session_threads(r->session) == 1 ? "" : "s");
    return status;
}

/* ---- Choice of outputs -------------------------------------------------------------------------------- */

static bool is_output(const cli_runner *r, const char *name)
{
    size_t index;
    return dq_model_find_output(r->model, name, &index, NULL) == DQ_OK;
}

static dq_status no_such_value(const cli_runner *r, const char *name, dq_error *err)
{
    dq_model_info model = DQ_MODEL_INFO_INIT;
    dq_graph_info graph = DQ_GRAPH_INFO_INIT;
    dq_value_info value = DQ_VALUE_INFO_INIT;
    char text[CLI_SUGGEST_TEXT];
    cli_suggestion suggestion = cli_suggest_for(name);
    dq_status status = dq_model_describe(r->model, &model, err);
    if (status == DQ_OK)
        status = dq_graph_describe(model.graph, &graph, err);
    for (size_t i = 0; i < graph.output_count && status == DQ_OK; i++)
        cli_suggest_try(&suggestion, graph.output_names[i]);
    for (size_t i = 0; i < graph.value_count && status == DQ_OK; i++) {
        status = dq_value_describe(graph.values[i], &value, err);
        if (status == DQ_OK)
            cli_suggest_try(&suggestion, value.name);
    }
    if (status != DQ_OK)
        return status;
    return io_fail(err, DQ_INVALID_ARGUMENT, "--value is '%s', and %s has no value of that name%s", name,
                   cli_is_standard_input(r->options->model) ? cli_standard_input : r->options->model,
                   cli_suggest_text(&suggestion, "", text));
}

/* Makes a value an output of the session. */
static dq_status add_value(const cli_runner *r, const char *name, dq_error *err)
{
    if (is_output(r, name))
        return DQ_OK;
    return dq_model_find_value(r->model, name) ? dq_session_add_output(r->session, name, err)
                                               : no_such_value(r, name, err);
}

/* `--output X` of dqrun 0.1 named a value, and still does if the model has it. */
static dq_status resolve_files_or_values(cli_runner *r, const char **values, size_t *count, dq_error *err)
{
    const cli_options *o = r->options;
    for (size_t i = 0; i < o->file_or_value_count; i++) {
        const char *word = o->files_or_values[i];
        if (is_output(r, word) || dq_model_find_value(r->model, word)) {
            dq_status status = add_value(r, word, err);
            if (status != DQ_OK)
                return status;
            cli_warn("--output %s: values are chosen with --value %s; --output will only name a file", word,
                     word);
            values[(*count)++] = word;
        } else if (r->output) {
            return io_fail(err, DQ_INVALID_ARGUMENT, "--output is given twice: '%s' and '%s'", r->output,
                           word);
        } else {
            r->output = word;
        }
    }
    return DQ_OK;
}

/* Adds the inputs, and the results of the nodes in their order. `names` NULL: counts them only. */
static dq_status add_all_values(const cli_runner *r, const char **names, size_t *count, dq_error *err)
{
    dq_model_info model = DQ_MODEL_INFO_INIT;
    dq_graph_info graph = DQ_GRAPH_INFO_INIT;
    dq_status status = dq_model_describe(r->model, &model, err);
    if (status == DQ_OK)
        status = dq_graph_describe(model.graph, &graph, err);
    *count = 0;
    for (size_t i = 0; i < graph.input_count + graph.node_count && status == DQ_OK; i++) {
        dq_node_info node = DQ_NODE_INFO_INIT;
        if (i < graph.input_count) {
            node.output_count = 1;
            node.outputs = &graph.inputs[i];
        } else {
            status = dq_node_describe(graph.nodes[i - graph.input_count], &node, err);
        }
        for (size_t k = 0; k < node.output_count && status == DQ_OK; k++) {
            dq_value_info value = DQ_VALUE_INFO_INIT;
            if (!node.outputs[k])
                continue;
            status = dq_value_describe(node.outputs[k], &value, err);
            if (status == DQ_OK && names)
                status = add_value(r, value.name, err);
            if (status == DQ_OK && names)
                names[*count] = value.name;
            ++*count;
        }
    }
    return status;
}

/* Chooses the requested values, or all outputs of the graph. */
static dq_status choose_outputs(cli_runner *r, dq_error *err)
{
    const cli_options *o = r->options;
    size_t graph_count = dq_model_output_count(r->model), asked = 0;
    size_t capacity = graph_count + o->value_count + o->file_or_value_count + 1, all = 0;
    cli_outputs *outputs = &r->outputs;
    dq_status status = o->hash_values ? add_all_values(r, NULL, &all, err) : DQ_OK;
    if (status != DQ_OK)
        return status;
    capacity += all;
    outputs->names = calloc(capacity, sizeof *outputs->names);
    outputs->tensors = calloc(capacity, sizeof *outputs->tensors);
    if (!outputs->names || !outputs->tensors)
        return io_no_memory(err);
    r->output = o->output;
    for (; asked < o->value_count; asked++) {
        status = add_value(r, o->values[asked], err);
        if (status != DQ_OK)
            return status;
        outputs->names[asked] = o->values[asked];
    }
    status = o->hash_values ? add_all_values(r, outputs->names, &asked, err) : DQ_OK;
    if (status == DQ_OK)
        status = resolve_files_or_values(r, outputs->names, &asked, err);
    for (size_t i = 0; i < graph_count && !asked && status == DQ_OK; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        status = dq_model_output(r->model, i, &info, err);
        if (status == DQ_OK)
            outputs->names[i] = info.name;
    }
    outputs->count = asked ? asked : graph_count;
    return status == DQ_OK ? check_terminal(r->output, err) : status;
}

/* ---- A run --------------------------------------------------------------------------------------------- */

dq_status cli_run_once(cli_runner *r, const char *const *arguments, size_t count, dq_error *err)
{
    cli_inputs_clear(&r->inputs);
    dq_status status = cli_inputs_gather(r->model, r->options, arguments, count, &r->inputs, err);
    if (status == DQ_OK)
        status = cli_inputs_set(&r->inputs, r->session, err);
    if (status == DQ_OK)
        status = dq_session_run(r->session, err);
    for (size_t i = 0; i < r->outputs.count && status == DQ_OK; i++)
        status = dq_session_get_output(r->session, r->outputs.names[i], &r->outputs.tensors[i], err);
    return status;
}

void cli_run_json(const cli_runner *r, cli_json *json)
{
    cli_json_text(json, "model", r->options->model);
    cli_json_text(json, "isa", dq_session_isa(r->session));
    cli_json_size(json, "threads", dq_session_threads(r->session));
}

static dq_status report_json(cli_runner *r, bool *differ, dq_error *err)
{
    const cli_options *o = r->options;
    cli_json json;
    cli_comparison comparison = {.json = &json};
    dq_status status = cli_json_start(&json, err);
    if (status != DQ_OK)
        return status;
    cli_json_begin_object(&json, NULL);
    cli_run_json(r, &json);
    cli_show_json(&r->outputs, o->hash, &json);
    if (o->expect) {
        cli_json_begin_object(&json, "comparison");
        cli_json_begin_array(&json, "outputs");
        status = cli_expect(&r->outputs, o->expect, o, &comparison, err);
        cli_json_end_array(&json);
        cli_json_bool(&json, "equal", !comparison.different);
        cli_json_end_object(&json);
    }
    if (status == DQ_OK && o->labels)
        status = cli_labels(&r->outputs, o, &json, err);
    cli_json_end_object(&json);
    *differ = comparison.different != 0;
    return cli_json_finish(&json, status, err);
}

static dq_status report_text(cli_runner *r, bool *differ, dq_error *err)
{
    const cli_options *o = r->options;
    cli_comparison comparison = {.lines = !o->quiet};
    dq_status status = DQ_OK;
    if (o->hash)
        cli_show_hashes(&r->outputs, NULL);
    if (o->expect)
        status = cli_expect(&r->outputs, o->expect, o, &comparison, err);
    *differ = comparison.different != 0;
    if (status == DQ_OK && o->labels)
        status = cli_labels(&r->outputs, o, NULL, err);
    if (status == DQ_OK && !r->output && !o->expect && !o->labels && !o->quiet && !o->hash)
        status = cli_show(&r->outputs, err);
    return status;
}

static dq_status run_single(cli_runner *r, bool *differ, dq_error *err)
{
    const cli_options *o = r->options;
    cli_interrupt_watch(r->session);
    cli_progress_begin("run");
    dq_status status = cli_run_once(r, o->inputs, o->input_count, err);
    cli_progress_end();
    status = cli_interrupt_end(status, err);
    if (status == DQ_OK && o->verbose)
        fprintf(stderr, "%10.3f ms  all steps\n", r->step_seconds * 1e3);
    if (status == DQ_OK && r->output)
        status = cli_write_outputs(r->output, &r->outputs, err);
    if (status == DQ_OK)
        status = o->json ? report_json(r, differ, err) : report_text(r, differ, err);
    return status;
}

dq_status cli_run(dq_schemas *schemas, const cli_options *options, bool *differ, dq_error *err)
{
    cli_runner r = {.options = options, .runs = 1};
    dq_status status = cli_model_load(options, schemas, &r.model, err);
    if (status == DQ_OK)
        status = open_session(&r, err);
    if (status == DQ_OK)
        status = choose_outputs(&r, err);
    if (status == DQ_OK)
        status = cli_is_batch(options) ? cli_batch(&r, differ, err) : run_single(&r, differ, err);
    dq_session_free(r.session);
    cli_inputs_clear(&r.inputs);
    free(r.outputs.names);
    free(r.outputs.tensors);
    dq_model_free(r.model);
    return status;
}
