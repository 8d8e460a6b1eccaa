/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/references.h"

#include "io/common.h"

#include <stdlib.h>

/* The element type of the model's value; DQ_UNDEFINED if the model does not say it. */
static dq_dtype type_of(const dq_model *model, const char *name)
{
    const dq_value *value = model ? dq_model_find_value(model, name) : NULL;
    dq_value_info info = DQ_VALUE_INFO_INIT;
    return value && dq_value_describe(value, &info, NULL) == DQ_OK ? info.dtype : DQ_UNDEFINED;
}

dq_status cli_references_read(const char *path, const dq_model *model, cli_references *references,
                              dq_error *err)
{
    cli_references *r = references;
    *r = (cli_references){.archive = NULL};
    dq_status status = npz_open(path, &r->archive, err);
    if (status != DQ_OK)
        return io_prefix(err, status, path);
    const size_t count = npz_count(r->archive);
    r->names = calloc(count + 1, sizeof *r->names);
    r->tensors = calloc(count + 1, sizeof *r->tensors);
    if (!r->names || !r->tensors)
        return io_no_memory(err);
    for (; r->count < count && status == DQ_OK; r->count += status == DQ_OK) {
        const size_t i = r->count;
        r->names[i] = npz_name(r->archive, i);
        status = npz_read(r->archive, i, type_of(model, r->names[i]), IO_TENSOR_LIMIT, &r->tensors[i], err);
    }
    return status == DQ_OK ? DQ_OK : io_prefix(err, status, path);
}

void cli_references_clear(cli_references *references)
{
    for (size_t i = 0; i < references->count; i++)
        dq_tensor_free(references->tensors[i]);
    free(references->tensors);
    free(references->names);
    if (references->archive)
        npz_close(references->archive);
    *references = (cli_references){.archive = NULL};
}
