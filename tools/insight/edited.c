/* SPDX-License-Identifier: Apache-2.0 */
#include "insight/edited.h"

#include <stdlib.h>
#include <string.h>

static dq_status start(insight_run *run, const insight_request *r, dq_error *err)
{
    dq_session_options options = *r->options;
    options.no_fuse = true;
    options.trace = NULL;
    options.log = NULL;
    options.progress = NULL;
    return dq_session_create(run->model, &options, &run->session, err);
}

dq_status insight_run_model(insight_run *run, dq_model *model, const insight_request *r, dq_error *err)
{
    run->model = model;
    return start(run, r, err);
}

dq_status insight_run_edit(insight_run *run, const model_edit *edit, const dq_model *like, const char *dir,
                           const insight_request *r, dq_error *err)
{
    size_t size = 0;
    dq_load_options load = DQ_LOAD_OPTIONS_INIT;
    dq_model_info info = DQ_MODEL_INFO_INIT;
    load.schemas = r->schemas;
    load.base_dir = dir;
    dq_status status = dq_model_describe(like, &info, err);
    if (status == DQ_OK)
        status = model_edit_pack(edit, &run->bytes, &size, err);
    if (status == DQ_OK)
        status = dq_model_load_memory(run->bytes, size, info.name, &load, &run->model, err);
    run->owns_model = status == DQ_OK;
    return status == DQ_OK ? start(run, r, err) : status;
}

void insight_run_close(insight_run *run)
{
    dq_session_free(run->session);
    if (run->owns_model)
        dq_model_free(run->model);
    free(run->bytes);
    *run = (insight_run){0};
}

dq_status insight_run_add_output(insight_run *run, const char *name, dq_error *err)
{
    size_t index = 0;
    return dq_model_find_output(run->model, name, &index, NULL) == DQ_OK
               ? DQ_OK
               : dq_session_add_output(run->session, name, err);
}

dq_status insight_run_set_feed(insight_run *run, const insight_request *r, dq_tensor *const *tensors,
                               dq_error *err)
{
    dq_status status = DQ_OK;
    for (size_t i = 0; i < dq_model_input_count(r->quantized) && status == DQ_OK; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT, own = DQ_VALUE_INFO_INIT;
        size_t index = i;
        status = dq_model_input(r->quantized, i, &info, err);
        if (status != DQ_OK || !tensors[i])
            continue;
        if (dq_model_find_input(run->model, info.name, &index, NULL) != DQ_OK)
            index = i;
        status = dq_model_input(run->model, index, &own, err);
        if (status == DQ_OK)
            status = dq_session_set_input(run->session, own.name, tensors[i], err);
    }
    return status;
}
