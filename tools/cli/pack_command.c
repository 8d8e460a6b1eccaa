/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pack_command.h"

#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/model.h"
#include "io/common.h"
#include "io/out_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct packer {
    dq_model *model;
    dq_session *session;
    cli_inputs inputs;
    out_file out;
    uint64_t bytes;
    int fault; /* errno of the failed write, or 0 */
} packer;

static dq_status plan(packer *p, dq_schemas *schemas, const cli_options *o, dq_error *err)
{
    const dq_session_options options = cli_session_options(o);
    dq_status status = cli_model_load(o, schemas, &p->model, err);
    if (status == DQ_OK)
        status = dq_session_create(p->model, &options, &p->session, err);
    if (status == DQ_OK)
        status = cli_inputs_gather(p->model, o, o->inputs, o->input_count, &p->inputs, err);
    if (status == DQ_OK)
        status = cli_inputs_set(&p->inputs, p->session, err);
    if (status != DQ_OK)
        return status;
    cli_interrupt_watch(p->session);
    return cli_interrupt_end(dq_session_prepare(p->session, err), err);
}

static int put(void *arg, const void *bytes, size_t size)
{
    packer *p = arg;
    p->bytes += size;
    if (fwrite(bytes, 1, size, p->out.file) != size)
        p->fault = errno ? errno : EIO;
    return p->fault;
}

static dq_status write_file(packer *p, const char *path, dq_error *err)
{
    dq_status status = out_open(path, &p->out, err);
    if (status == DQ_OK) {
        status = dq_session_save_packed_write(p->session, put, p, err);
        if (p->fault)
            status = io_fail(err, DQ_IO, "cannot be written: %s", strerror(p->fault));
        status = out_close(&p->out, status, err);
    }
    return status == DQ_OK ? DQ_OK : io_prefix(err, status, path);
}

/* "MODEL.packed", malloc'ed. */
static char *default_path(const char *model)
{
    const size_t size = strlen(model) + sizeof ".packed";
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s.packed", model);
    return path;
}

dq_status cli_pack(dq_schemas *schemas, const cli_options *o, dq_error *err)
{
    packer p = {0};
    char *path = o->output ? strdup(o->output) : default_path(o->model);
    dq_status status = path ? plan(&p, schemas, o, err) : io_no_memory(err);
    if (status == DQ_OK)
        status = write_file(&p, path, err);
    if (status == DQ_OK && !cli_is_standard_input(path))
        printf("%s: %" PRIu64 " bytes of packed weights for ISA level %s\n", path, p.bytes,
               dq_session_isa(p.session));
    cli_inputs_clear(&p.inputs);
    dq_session_free(p.session);
    dq_model_free(p.model);
    free(path);
    return status;
}
