/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun: runs quantized ONNX models from the command line. cli/table.c lists commands and options; --help and
 * the manual page print them. */
#include "cli/bench.h"
#include "cli/compare_command.h"
#include "cli/help.h"
#include "cli/inspect.h"
#include "cli/interrupt.h"
#include "cli/lists.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/pack_command.h"
#include "cli/reduce_command.h"
#include "cli/run.h"
#include "cli/terminal.h"
#include "io/common.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Loads the schemas of --schema-dir; NULL: none, use the library's. */
static dq_status load_schemas(const cli_options *o, dq_schemas **schemas, dq_error *err)
{
    dq_status status = o->schema_dir_count ? dq_schemas_create(schemas, err) : DQ_OK;
    for (size_t i = 0; i < o->schema_dir_count && status == DQ_OK; i++)
        status = dq_schemas_add_dir(*schemas, o->schema_dirs[i], err);
    return status;
}

static dq_status check(dq_schemas *schemas, const cli_options *o, dq_error *err)
{
    dq_model *model = NULL;
    dq_status status = cli_model_load(o, schemas, &model, err);
    if (status == DQ_OK)
        status = cli_check(model, o, err);
    dq_model_free(model);
    return status;
}

static dq_status obey_with_schemas(const cli_options *o, bool *differ, dq_error *err)
{
    dq_schemas *schemas = NULL;
    dq_status status = load_schemas(o, &schemas, err);
    if (status == DQ_OK)
        status = o->command == CLI_OPS       ? cli_ops(schemas, o, err)
                 : o->command == CLI_BENCH   ? cli_bench(schemas, o, err)
                 : o->command == CLI_CHECK   ? check(schemas, o, err)
                 : o->command == CLI_INSPECT ? cli_inspect(schemas, o, err)
                 : o->command == CLI_COMPARE ? cli_compare(schemas, o, differ, err)
                 : o->command == CLI_PACK    ? cli_pack(schemas, o, err)
                 : o->command == CLI_REDUCE  ? cli_reduce(schemas, o, differ, err)
                                             : cli_run(schemas, o, differ, err);
    dq_schemas_free(schemas);
    return status;
}

static dq_status obey(const cli_options *o, bool *differ, dq_error *err)
{
    if (o->version) {
        printf("dqrun %s\n", dq_version());
        return DQ_OK;
    }
    switch (o->command) {
    case CLI_HELP:
        cli_print_help(stdout, o->topic);
        return DQ_OK;
    case CLI_COMPLETION:
        return cli_print_completion(stdout, o->argument, err);
    case CLI_MAN:
        cli_print_man(stdout);
        return DQ_OK;
    case CLI_PASSES:
        return cli_passes(o, err);
    case CLI_ALGORITHMS:
        return cli_algorithms(o, err);
    case CLI_ISA:
        return cli_isa(o, err);
    default:
        return obey_with_schemas(o, differ, err);
    }
}

int main(int argc, char **argv)
{
    dq_error err = {0};
    cli_options options;
    bool differ = false;
    signal(SIGXFSZ, SIG_IGN); /* Writing beyond the file size limit then fails and leaves no file. */
    dq_status status = cli_parse(argc, argv, &options, &err);
    cli_terminal_start(&options);
    if (status == DQ_OK && options.old_out)
        cli_warn("--out is now --output (-o); it will be removed in the next version");
    cli_interrupt_start(options.timeout);
    if (status == DQ_OK)
        status = obey(&options, &differ, &err);
    cli_options_clear(&options);
    cli_progress_end();
    if ((fflush(stdout) || ferror(stdout)) && status == DQ_OK)
        status = io_fail(&err, DQ_IO, "standard output cannot be written: %s", strerror(errno));
    if (status != DQ_OK && *err.message)
        cli_complain(err.message);
    return status != DQ_OK ? cli_interrupt_exit_code(status) : differ ? CLI_EXIT_DIFFERS : 0;
}
