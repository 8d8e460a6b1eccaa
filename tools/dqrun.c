/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun: runs a quantized ONNX model from the command line. What it takes and prints is in cli/options.c
 * (--help). */
#include "cli/bench.h"
#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/lists.h"
#include "cli/options.h"
#include "cli/outputs.h"
#include "io/common.h"
#include "io/npz.h"
#include "io/text.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_DIFFERS = 1 };

/* ---- Running ------------------------------------------------------------------------------------------- */

static dq_status write_outputs(const char *path, const cli_outputs *outputs, dq_error *err)
{
    for (size_t i = 0; i < outputs->count; i++)
        if (dq_tensor_kind(outputs->tensors[i]) != DQ_KIND_TENSOR)
            return io_fail(err, DQ_UNSUPPORTED,
                           "%s: output '%s' is a sequence or optional, and .npz files hold tensors only",
                           path, outputs->names[i]);
    dq_status status = npz_write(path, outputs->count, outputs->names, outputs->tensors, err);
    return status == DQ_OK ? DQ_OK : io_prefix(err, status, path);
}

static void trace(void *arg, const dq_trace_event *event)
{
    *(double *)arg += event->seconds;
    char node[256];
    snprintf(node, sizeof node, "%s", event->node ? event->node : "");
    fprintf(stderr, "%10.3f ms  %-28s %s\n", event->seconds * 1e3, event->op, io_printable(node));
}

static void why(void *arg, const char *sentence)
{
    (void)arg; /* the sum of times */
    char line[1024];
    snprintf(line, sizeof line, "%s", sentence);
    fprintf(stderr, "why: %s\n", io_printable(line));
}

/* `seconds` sums up the steps' times, and must live as long as the session. */
static dq_status open_session(dq_model *model, const cli_options *o, double *seconds, dq_session **session,
                              dq_error *err)
{
    dq_session_options options = cli_session_options(o);
    options.arg = seconds;
    if (o->verbose)
        options.trace = trace;
    if (o->why)
        options.why = why;
    dq_status status = dq_session_create(model, &options, session, err);
    if (status == DQ_OK && o->verbose)
        fprintf(stderr, "dqrun %s: ISA %s, %u thread%s\n", dq_version(), dq_session_isa(*session),
                dq_session_threads(*session), dq_session_threads(*session) == 1 ? "" : "s");
    return status;
}

static bool is_graph_output(const dq_model *model, const char *name)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    for (size_t i = 0; i < dq_model_output_count(model); i++) {
        if (dq_model_output(model, i, &info, NULL) == DQ_OK && !strcmp(info.name, name))
            return true;
    }
    return false;
}

/* The names of --output, or all of the graph's. */
static dq_status choose_outputs(const dq_model *model, dq_session *session, const cli_options *o,
                                cli_outputs *outputs, dq_error *err)
{
    size_t count = o->output_count ? o->output_count : dq_model_output_count(model);
    outputs->names = calloc(count + 1, sizeof *outputs->names);
    outputs->tensors = calloc(count + 1, sizeof *outputs->tensors);
    if (!outputs->names || !outputs->tensors)
        return io_fail(err, DQ_OUT_OF_MEMORY, "out of memory");
    outputs->count = count;
    for (size_t i = 0; i < count; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        dq_status status = DQ_OK;
        if (!o->output_count) {
            status = dq_model_output(model, i, &info, err);
            outputs->names[i] = info.name;
        } else {
            outputs->names[i] = o->outputs[i];
            if (!is_graph_output(model, o->outputs[i]))
                status = dq_session_add_output(session, o->outputs[i], err);
        }
        if (status != DQ_OK)
            return status;
    }
    return DQ_OK;
}

static dq_status compute(dq_session *session, const cli_inputs *inputs, cli_outputs *outputs, dq_error *err)
{
    dq_status status = cli_inputs_set(inputs, session, err);
    if (status == DQ_OK)
        status = dq_session_run(session, err);
    for (size_t i = 0; i < outputs->count && status == DQ_OK; i++)
        status = dq_session_get_output(session, outputs->names[i], &outputs->tensors[i], err);
    return status;
}

static dq_status use_outputs(const cli_options *o, const cli_outputs *outputs, bool *differ, dq_error *err)
{
    dq_status status = DQ_OK;
    if (o->out)
        status = write_outputs(o->out, outputs, err);
    if (status == DQ_OK && o->expect)
        status = cli_expect(outputs, o, differ, err);
    if (status == DQ_OK && o->labels)
        status = cli_labels(outputs, o, err);
    if (status == DQ_OK && !o->out && !o->expect && !o->labels && !o->quiet)
        status = cli_show(outputs, err);
    return status;
}

static dq_status run(dq_model *model, const cli_options *o, bool *differ, dq_error *err)
{
    dq_session *session = NULL;
    cli_outputs outputs = {0};
    cli_inputs inputs = {0};
    double seconds = 0;
    dq_status status = open_session(model, o, &seconds, &session, err);
    if (status == DQ_OK)
        status = choose_outputs(model, session, o, &outputs, err);
    if (status == DQ_OK)
        status = cli_inputs_gather(model, o, &inputs, err);
    if (status == DQ_OK) {
        cli_interrupt_watch(session);
        status = cli_interrupt_end(compute(session, &inputs, &outputs, err), err);
    }
    if (status == DQ_OK && o->verbose)
        fprintf(stderr, "%10.3f ms  all steps\n", seconds * 1e3);
    if (status == DQ_OK)
        status = use_outputs(o, &outputs, differ, err);
    dq_session_free(session);
    cli_inputs_clear(&inputs);
    free(outputs.names);
    free(outputs.tensors);
    return status;
}

/* ---- Commands ------------------------------------------------------------------------------------------ */

/* NULL when no --schema-dir asks for a set other than the library's. */
static dq_status load_schemas(const cli_options *o, dq_schemas **schemas, dq_error *err)
{
    dq_status status = o->schema_dir_count ? dq_schemas_create(schemas, err) : DQ_OK;
    for (size_t i = 0; i < o->schema_dir_count && status == DQ_OK; i++)
        status = dq_schemas_add_dir(*schemas, o->schema_dirs[i], err);
    return status;
}

static dq_status with_model(const cli_options *o, dq_schemas *schemas, bool *differ, dq_error *err)
{
    dq_load_options load = {.size = sizeof(dq_load_options), .schemas = schemas, .limits = &o->limits};
    dq_model *model = NULL;
    dq_status status = dq_model_load(o->model, &load, &model, err);
    if (status == DQ_OK)
        status = o->command == CLI_CHECK ? cli_check(model, o, err) : run(model, o, differ, err);
    dq_model_free(model);
    return status;
}

static dq_status obey(const cli_options *o, bool *differ, dq_error *err)
{
    if (o->command == CLI_HELP) {
        fputs(cli_help, stdout);
        return DQ_OK;
    }
    if (o->command == CLI_VERSION) {
        printf("dqrun %s\n", dq_version());
        return DQ_OK;
    }
    dq_schemas *schemas = NULL;
    dq_status status = load_schemas(o, &schemas, err);
    if (status == DQ_OK)
        status = o->command == CLI_OPS     ? cli_ops(schemas, o->json, err)
                 : o->command == CLI_BENCH ? cli_bench(schemas, o, err)
                                           : with_model(o, schemas, differ, err);
    dq_schemas_free(schemas);
    return status;
}

int main(int argc, char **argv)
{
    dq_error err = {0};
    cli_options options;
    bool differ = false;
    signal(SIGXFSZ, SIG_IGN); /* writing past the limit on files fails instead, and leaves none behind */
    dq_status status = cli_parse(argc, argv, &options, &err);
    cli_interrupt_start(options.timeout);
    if (status == DQ_OK)
        status = obey(&options, &differ, &err);
    cli_options_clear(&options);
    if ((fflush(stdout) || ferror(stdout)) && status == DQ_OK)
        status = io_fail(&err, DQ_IO, "standard output cannot be written: %s", strerror(errno));
    if (status != DQ_OK && *err.message)
        fprintf(stderr, "dqrun: %s\n", io_printable(err.message));
    return status != DQ_OK ? cli_interrupt_exit_code(status) : differ ? EXIT_DIFFERS : 0;
}
