/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/compare_command.h"

#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/model.h"
#include "cli/outputs.h"
#include "cli/paths.h"
#include "cli/references.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "insight/json.h"
#include "io/common.h"
#include "io/out_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct comparer {
    const cli_options *o;
    insight_request request;
    cli_paths list;
    cli_inputs inputs; /* of the current input */
    void *quantized_bytes, *reference_bytes;
    char *quantized_dir, *reference_dir;
    insight_map *maps;
    char **map_names; /* malloc'ed: the float names */
    int64_t *labels;
    const char *stage;         /* that the progress bar shows */
    cli_references references; /* of --ref */
} comparer;

/* ---- Models -------------------------------------------------------------------------------------------- */

static dq_status load_models(comparer *x, dq_schemas *schemas, dq_error *err)
{
    insight_request *r = &x->request;
    dq_status status = cli_model_load_bytes(x->o, x->o->model, schemas, &r->quantized, &x->quantized_bytes,
                                            &r->quantized_size, &x->quantized_dir, err);
    if (status == DQ_OK && x->o->float_model)
        status = cli_model_load_bytes(x->o, x->o->float_model, schemas, &r->reference, &x->reference_bytes,
                                      &r->reference_size, &x->reference_dir, err);
    r->quantized_bytes = x->quantized_bytes;
    r->reference_bytes = x->reference_bytes;
    r->quantized_dir = x->quantized_dir;
    r->reference_dir = x->reference_dir;
    return status;
}

/* ---- What else is read --------------------------------------------------------------------------------- */

static dq_status read_references(comparer *x, dq_error *err)
{
    dq_status status = cli_references_read(x->o->ref, NULL, &x->references, err);
    if (status != DQ_OK)
        return status;
    x->request.ref_count = x->references.count;
    x->request.ref_names = x->references.names;
    x->request.ref_tensors = (const dq_tensor *const *)x->references.tensors;
    return x->list.count == 1
               ? DQ_OK
               : io_fail(err, DQ_INVALID_ARGUMENT,
                         "--ref holds the values of one input, and %zu inputs are given", x->list.count);
}

static dq_status read_maps(comparer *x, dq_error *err)
{
    x->maps = calloc(x->o->map_count + 1, sizeof *x->maps);
    x->map_names = calloc(x->o->map_count + 1, sizeof *x->map_names);
    if (!x->maps || !x->map_names)
        return io_no_memory(err);
    for (size_t i = 0; i < x->o->map_count; i++) {
        const char *equals = strchr(x->o->maps[i], '=');
        x->map_names[i] = strndup(x->o->maps[i], (size_t)(equals - x->o->maps[i]));
        if (!x->map_names[i])
            return io_no_memory(err);
        x->maps[i] = (insight_map){x->map_names[i], equals + 1};
        if (!dq_model_find_value(x->request.quantized, equals + 1))
            return io_fail(err, DQ_INVALID_ARGUMENT, "--map is '%s', and %s has no value '%s'", x->o->maps[i],
                           x->o->model, equals + 1);
    }
    x->request.maps = x->maps;
    x->request.map_count = x->o->map_count;
    return DQ_OK;
}

static dq_status read_labels(comparer *x, dq_error *err)
{
    dq_tensor *t = NULL;
    dq_status status = cli_labels_read(x->o->labels, &t, err);
    if (status != DQ_OK)
        return io_prefix(err, status, x->o->labels);
    if (!io_is_integer(dq_tensor_dtype(t)))
        status = io_fail(err, DQ_BAD_INPUT, "%s: the labels are of type %s, expected integers", x->o->labels,
                         dq_dtype_name(dq_tensor_dtype(t)));
    x->request.label_count = dq_tensor_count(t);
    x->labels = calloc(x->request.label_count + 1, sizeof *x->labels);
    if (status == DQ_OK && !x->labels)
        status = io_no_memory(err);
    for (size_t i = 0; i < x->request.label_count && status == DQ_OK; i++)
        x->labels[i] = (int64_t)io_get_int(t, i);
    x->request.labels = x->labels;
    dq_tensor_free(t);
    return status;
}

/* ---- Inputs -------------------------------------------------------------------------------------------- */

static dq_status read_input(void *arg, size_t index, dq_tensor *const **tensors, dq_error *err)
{
    comparer *x = arg;
    cli_inputs_clear(&x->inputs);
    x->list.arguments[x->list.shared] = x->list.paths[index];
    dq_status status =
        cli_inputs_gather(x->request.quantized, x->o, x->list.arguments, x->list.shared + 1, &x->inputs, err);
    *tensors = x->inputs.tensors;
    return status;
}

static int show_progress(void *arg, const char *stage, double done)
{
    comparer *x = arg;
    if (stage != x->stage)
        cli_progress_begin(stage);
    x->stage = stage;
    cli_progress(done);
    return 0;
}

/* ---- Results ------------------------------------------------------------------------------------------- */

static dq_status print(const comparer *x, const insight_comparison *c, dq_error *err)
{
    cli_json json;
    if (!x->o->json) {
        cli_compare_table(c, x->o->verbose);
        return DQ_OK;
    }
    dq_status status = cli_json_start(&json, err);
    if (status != DQ_OK)
        return status;
    insight_comparison_json(c, &json);
    return cli_json_finish(&json, DQ_OK, err);
}

static dq_status write_fixed(const comparer *x, const insight_comparison *c, dq_error *err)
{
    void *bytes = NULL;
    size_t size = 0, changed = 0;
    out_file out;
    dq_status status = insight_fix(&x->request, c, &bytes, &size, &changed, err);
    if (status == DQ_OK) {
        status = out_open(x->o->fix, &out, err);
        if (status == DQ_OK) {
            const bool written = fwrite(bytes, 1, size, out.file) == size;
            status = out_close(
                &out, written ? DQ_OK : io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno)), err);
        }
        if (status != DQ_OK)
            io_prefix(err, status, x->o->fix);
    }
    free(bytes);
    if (status == DQ_OK && !x->o->json)
        printf("\n%s: written with %zu new range%s\n", x->o->fix, changed, changed == 1 ? "" : "s");
    return status;
}

/* The plan in the report is for the shapes of the last input. */
static dq_status write_report(const comparer *x, const insight_comparison *c, dq_error *err)
{
    insight_report report = {.comparison = c};
    return cli_report_write_with_model(x->o->report, &report, x->request.quantized, x->request.options,
                                       x->inputs.tensors, err);
}

static bool is_too_bad(const comparer *x, const insight_comparison *c)
{
    for (size_t i = 0; i < c->output_count; i++)
        if (insight_noise_ratio(&c->outputs[i].error) > x->o->fail_above)
            return true;
    return false;
}

/* Labels are for all rows of the outputs with classes. */
static dq_status check_labels(const comparer *x, const insight_comparison *c, dq_error *err)
{
    bool any = false;
    for (size_t i = 0; i < c->output_count; i++) {
        const insight_output *out = &c->outputs[i];
        any = any || out->has_classes;
        if (out->has_classes && out->rows != x->request.label_count)
            return io_fail(err, DQ_BAD_INPUT,
                           "%s: holds %zu labels, expected one for each of the %zu rows of output '%s'",
                           x->o->labels, x->request.label_count, out->rows, out->name);
    }
    return any ? DQ_OK
               : io_fail(err, DQ_BAD_INPUT,
                         "--labels: no output has the shape [rows, classes], which labels need");
}

static void clear(comparer *x)
{
    for (size_t i = 0; x->map_names && i < x->o->map_count; i++)
        free(x->map_names[i]);
    free(x->map_names);
    free(x->maps);
    free(x->labels);
    cli_references_clear(&x->references);
    cli_inputs_clear(&x->inputs);
    cli_paths_clear(&x->list);
    dq_model_free(x->request.quantized);
    dq_model_free(x->request.reference);
    free(x->quantized_bytes);
    free(x->reference_bytes);
    free(x->quantized_dir);
    free(x->reference_dir);
}

dq_status cli_compare(dq_schemas *schemas, const cli_options *o, bool *differ, dq_error *err)
{
    const dq_session_options options = cli_session_options(o);
    comparer x = {.o = o,
                  .request = {.schemas = schemas, .options = &options, .leave_one_out = o->leave_one_out}};
    insight_comparison c = {0};
    dq_status status = cli_paths_list(o, &x.list, err);
    if (status == DQ_OK)
        status = load_models(&x, schemas, err);
    if (status == DQ_OK)
        status = read_maps(&x, err);
    if (status == DQ_OK && o->ref)
        status = read_references(&x, err);
    if (status == DQ_OK && o->labels)
        status = read_labels(&x, err);
    if (status == DQ_OK) {
        x.request.feed = (insight_feed){x.list.count, read_input, &x, show_progress};
        status = insight_compare(&x.request, &c, err);
        cli_progress_end();
    }
    if (status == DQ_OK && o->labels)
        status = check_labels(&x, &c, err);
    if (status == DQ_OK)
        status = print(&x, &c, err);
    if (status == DQ_OK && o->report)
        status = write_report(&x, &c, err);
    if (status == DQ_OK && o->fix)
        status = write_fixed(&x, &c, err);
    *differ = status == DQ_OK && is_too_bad(&x, &c);
    insight_comparison_free(&c);
    clear(&x);
    return status;
}
