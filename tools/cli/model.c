/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model.h"

#include "io/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char cli_standard_input[] = "standard input";

/* The library's default for dq_limits.file_bytes. */
static const uint64_t FILE_BYTES_DEFAULT = (uint64_t)64 << 30;

bool cli_is_standard_input(const char *argument)
{
    return !strcmp(argument, "-");
}

dq_status cli_read_standard_input(const char *what, uint64_t limit, void **bytes, size_t *size, dq_error *err)
{
    if (isatty(STDIN_FILENO))
        return io_fail(err, DQ_INVALID_ARGUMENT,
                       "standard input is a terminal, expected %s from a file or pipe", what);
    dq_status status = io_read_stream(stdin, limit, bytes, size, err);
    return status == DQ_OK ? DQ_OK : io_prefix(err, status, cli_standard_input);
}

dq_status cli_model_load(const cli_options *options, dq_schemas *schemas, cli_model *model, dq_error *err)
{
    dq_load_options load = {.size = sizeof(dq_load_options), .schemas = schemas, .limits = &options->limits};
    uint64_t limit = options->limits.file_bytes ? options->limits.file_bytes : FILE_BYTES_DEFAULT;
    size_t size = 0;
    *model = (cli_model){0};
    if (!cli_is_standard_input(options->model))
        return dq_model_load(options->model, &load, &model->model, err);
    dq_status status = cli_read_standard_input("a model", limit, &model->bytes, &size, err);
    if (status == DQ_BAD_INPUT)
        status = err->status = DQ_BAD_MODEL;
    if (status != DQ_OK)
        return status;
    return dq_model_load_memory(model->bytes, size, cli_standard_input, &load, &model->model, err);
}

void cli_model_free(cli_model *model)
{
    dq_model_free(model->model);
    free(model->bytes);
    *model = (cli_model){0};
}
