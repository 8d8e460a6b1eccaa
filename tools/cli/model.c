/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model.h"

#include "io/common.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char cli_standard_input[] = "standard input";

bool cli_is_standard_input(const char *argument)
{
    return !strcmp(argument, "-");
}

static dq_status refuse_terminal(const char *what, dq_error *err)
{
    return isatty(STDIN_FILENO)
               ? io_fail(err, DQ_INVALID_ARGUMENT,
                         "standard input is a terminal, expected %s from a file or pipe", what)
               : DQ_OK;
}

dq_status cli_read_standard_input(const char *what, uint64_t limit, void **bytes, size_t *size, dq_error *err)
{
    dq_status status = refuse_terminal(what, err);
    if (status != DQ_OK)
        return status;
    status = io_read_stream(stdin, limit, bytes, size, err);
    return status == DQ_OK ? DQ_OK : io_prefix(err, status, cli_standard_input);
}

dq_status cli_model_load(const cli_options *options, dq_schemas *schemas, dq_model **model, dq_error *err)
{
    dq_load_options load = DQ_LOAD_OPTIONS_INIT;
    load.schemas = schemas;
    load.limits = &options->limits;
    load.packed_path = options->packed;
    if (!cli_is_standard_input(options->model))
        return dq_model_load(options->model, &load, model, err);
    dq_status status = refuse_terminal("a model", err);
    return status == DQ_OK ? dq_model_load_fd(STDIN_FILENO, cli_standard_input, &load, model, err) : status;
}

dq_status cli_model_load_bytes(const cli_options *o, const char *path, dq_schemas *schemas, dq_model **model,
                               void **bytes, size_t *size, char **folder, dq_error *err)
{
    dq_load_options options = DQ_LOAD_OPTIONS_INIT;
    options.schemas = schemas;
    options.limits = &o->limits;
    const uint64_t most = o->limits.file_bytes ? o->limits.file_bytes : (uint64_t)64 << 30;
    if (cli_is_standard_input(path)) {
        dq_status status = cli_read_standard_input("a model", most, bytes, size, err);
        return status == DQ_OK ? dq_model_load_memory(*bytes, *size, cli_standard_input, &options, model, err)
                               : status;
    }
    const char *slash = strrchr(path, '/');
    *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    options.base_dir = *folder;
    dq_status status = *folder ? dq_model_load(path, &options, model, err) : io_no_memory(err);
    if (status != DQ_OK)
        return status;
    status = io_read_file(path, most, bytes, size, err);
    return status == DQ_OK ? DQ_OK : io_prefix(err, status, path);
}
