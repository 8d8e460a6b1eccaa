/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one case through the public API: loads the model, runs each data set, and compares each output. */
#include "compare.h"
#include "conformance.h"
#include "io/pb.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Inputs or outputs of one data set. */
typedef struct values {
    dq_tensor **tensors;
    char **names; /* From the files, often empty. */
    size_t count;
} values;

typedef struct case_run {
    const cf_options *options;
    cf_result *result;
    dq_schemas *schemas;
    dq_model *model;
    dq_session *session;
} case_run;

/* Records why the case failed. Returns false. */
static bool fail(case_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fail(case_run *run, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(run->result->message, sizeof run->result->message, format, args);
    va_end(args);
    run->result->outcome = CF_FAILED;
    return false;
}

static void free_values(values *v)
{
    for (size_t i = 0; i < v->count; i++) {
        dq_tensor_free(v->tensors[i]);
        free(v->names[i]);
    }
    free(v->tensors);
    free(v->names);
    *v = (values){NULL, NULL, 0};
}

/* Adds space for one more value. */
static void grow(values *v)
{
    v->tensors = cf_realloc(v->tensors, v->count + 1, sizeof *v->tensors);
    v->names = cf_realloc(v->names, v->count + 1, sizeof *v->names);
    v->tensors[v->count] = NULL;
    v->names[v->count] = NULL;
    v->count++;
}

/* The model's declaration of the value of that number; empty if it has none. */
static dq_value_info declaration(const case_run *run, const char *kind, size_t i)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    if (strcmp(kind, "input") == 0)
        dq_model_input(run->model, i, &info, NULL);
    else
        dq_model_output(run->model, i, &info, NULL);
    return info;
}

/* Reads the files <kind>_0.pb, <kind>_1.pb … of a folder, up to the first missing one. */
static bool read_files(case_run *run, const char *folder, const char *kind, values *v)
{
    for (;;) {
        char *path = cf_format("%s/%s_%zu.pb", folder, kind, v->count);
        struct stat info;
        if (stat(path, &info) != 0) {
            free(path);
            return true;
        }
        grow(v);
        dq_error err;
        size_t i = v->count - 1;
        dq_value_info declared = declaration(run, kind, i);
        dq_status status =
            pb_read_value_file(path, &declared, IO_TENSOR_LIMIT, &v->names[i], &v->tensors[i], &err);
        if (status != DQ_OK)
            fail(run, "%s_%zu.pb: %s", kind, i, err.message);
        free(path);
        if (status != DQ_OK)
            return false;
    }
}

/* Reads the next `count` values of a record. */
static bool read_record(case_run *run, cf_bytes *bytes, uint32_t count, const char *kind, values *v)
{
    for (uint32_t i = 0; i < count; i++) {
        cf_bytes value;
        dq_error err;
        grow(v);
        if (!cf_next_value(bytes, &value))
            return fail(run, "%s %u is cut off", kind, i);
        dq_value_info declared = declaration(run, kind, i);
        if (pb_read_value(value.data, value.size, &declared, IO_TENSOR_LIMIT, &v->names[i], &v->tensors[i],
                          &err) != DQ_OK)
            return fail(run, "%s %u: %s", kind, i, err.message);
    }
    return true;
}

/* Finds the model's input for a value: by name, else by position. */
static bool input_name(const case_run *run, const values *v, size_t i, const char **name)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    size_t count = dq_model_input_count(run->model);
    for (size_t k = 0; k < count && v->names[i][0] != '\0'; k++) {
        if (dq_model_input(run->model, k, &info, NULL) == DQ_OK && strcmp(info.name, v->names[i]) == 0) {
            *name = info.name;
            return true;
        }
    }
    if (i >= count || dq_model_input(run->model, i, &info, NULL) != DQ_OK)
        return false;
    *name = info.name;
    return true;
}

static bool set_inputs(case_run *run, const values *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        const char *name;
        dq_error err;
        if (!input_name(run, inputs, i, &name))
            return fail(run, "there is a value for input %zu, the model has %zu inputs", i,
                        dq_model_input_count(run->model));
        if (dq_session_set_input(run->session, name, inputs->tensors[i], &err) != DQ_OK)
            return fail(run, "%s", err.message);
    }
    return true;
}

static bool compare_outputs(case_run *run, const values *requested, const compare_tolerance *tolerance)
{
    if (requested->count == 0)
        return fail(run, "there is no value to compare an output with");
    for (size_t i = 0; i < requested->count; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        dq_error err;
        const dq_tensor *got = NULL;
        if (dq_model_output(run->model, i, &info, NULL) != DQ_OK)
            return fail(run, "there is a value for output %zu, the model has %zu outputs", i,
                        dq_model_output_count(run->model));
        if (dq_session_get_output(run->session, info.name, &got, &err) != DQ_OK)
            return fail(run, "%s", err.message);
        compare_result compared;
        compare_tensors(got, requested->tensors[i], tolerance, &compared);
        if (!compared.same)
            return fail(run, "output '%s': %s", info.name, compared.message);
    }
    return true;
}

/* Makes a tensor like an output. Its memory ends with the data and is aligned only to its type, so that
 * overruns are detected. NULL for strings, sequences and optionals. */
static dq_tensor *memory_like(const dq_tensor *t, char **memory)
{
    size_t align = dq_dtype_bits(dq_tensor_dtype(t)) / 8, size = dq_tensor_size(t);
    dq_tensor *buffer = NULL;
    dq_error err;
    if (dq_tensor_kind(t) != DQ_KIND_TENSOR || dq_tensor_dtype(t) == DQ_STRING)
        return NULL;
    align = align == 0 ? 1 : align > 8 ? 8 : align;
    *memory = cf_realloc(NULL, align + size, 1);
    memset(*memory, 0xA5, align + size);
    dq_tensor_wrap(dq_tensor_dtype(t), dq_tensor_rank(t), dq_tensor_dims(t), *memory + align, size, &buffer,
                   &err);
    return buffer;
}

/* Runs once more, with the outputs in memory of the caller. */
static bool run_into(case_run *run, const values *requested, const compare_tolerance *tolerance)
{
    size_t count = requested->count;
    dq_tensor **buffers = cf_realloc(NULL, count, sizeof *buffers);
    char **memory = cf_realloc(NULL, count, sizeof *memory);
    bool good = true;
    dq_value_info info = DQ_VALUE_INFO_INIT;
    dq_error err;
    for (size_t i = 0; i < count; i++) {
        const dq_tensor *got;
        memory[i] = NULL;
        buffers[i] = NULL;
        dq_model_output(run->model, i, &info, NULL);
        if (dq_session_get_output(run->session, info.name, &got, &err) == DQ_OK)
            buffers[i] = memory_like(got, &memory[i]);
        if (buffers[i] && dq_session_set_output(run->session, info.name, buffers[i], &err) != DQ_OK)
            good = fail(run, "%s", err.message);
    }
    if (good && dq_session_run(run->session, &err) != DQ_OK)
        good = fail(run, "into the caller's memory: %s", err.message);
    for (size_t i = 0; i < count; i++) {
        compare_result compared = {.same = true};
        dq_model_output(run->model, i, &info, NULL);
        if (good && buffers[i])
            compare_tensors(buffers[i], requested->tensors[i], tolerance, &compared);
        if (!compared.same)
            good = fail(run, "output '%s' in the caller's memory: %s", info.name, compared.message);
        if (buffers[i])
            dq_session_set_output(run->session, info.name, NULL, &err);
        dq_tensor_free(buffers[i]);
        free(memory[i]);
    }
    free(buffers);
    free(memory);
    return good;
}

static bool run_data_set(case_run *run, const values *inputs, const values *outputs,
                         const compare_tolerance *tolerance)
{
    dq_error err;
    if (!set_inputs(run, inputs))
        return false;
    if (dq_session_run(run->session, &err) != DQ_OK)
        return fail(run, "%s", err.message);
    return compare_outputs(run, outputs, tolerance) && run_into(run, outputs, tolerance);
}

/* Runs a data set. True if it exists and passes; `*there`: whether it exists. */
static bool run_folder_set(case_run *run, const char *folder, size_t number, bool *there)
{
    static const compare_tolerance tolerance = {COMPARE_RTOL, COMPARE_ATOL};
    char *path = cf_format("%s/test_data_set_%zu", folder, number);
    struct stat info;
    *there = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    values inputs = {NULL, NULL, 0}, outputs = {NULL, NULL, 0};
    bool good = *there && read_files(run, path, "input", &inputs) &&
                read_files(run, path, "output", &outputs) && run_data_set(run, &inputs, &outputs, &tolerance);
    free_values(&inputs);
    free_values(&outputs);
    free(path);
    return good;
}

static bool run_folder(case_run *run, const char *folder)
{
    bool there;
    size_t number = 0;
    while (run_folder_set(run, folder, number, &there))
        number++;
    if (there)
        return false;
    return number > 0 || fail(run, "there is no folder test_data_set_0 next to model.onnx");
}

static bool run_record(case_run *run, const cf_record *record)
{
    compare_tolerance tolerance = {record->rtol, record->atol};
    cf_bytes bytes = record->values;
    values inputs = {NULL, NULL, 0}, outputs = {NULL, NULL, 0};
    bool good = read_record(run, &bytes, record->input_count, "input", &inputs) &&
                read_record(run, &bytes, record->output_count, "output", &outputs) &&
                run_data_set(run, &inputs, &outputs, &tolerance);
    free_values(&inputs);
    free_values(&outputs);
    return good;
}

static bool make_session(case_run *run, const cf_case *item, const cf_record *record)
{
    dq_error err;
    if (run->options->schema_dir != NULL &&
        (dq_schemas_create(&run->schemas, &err) != DQ_OK ||
         dq_schemas_add_dir(run->schemas, run->options->schema_dir, &err) != DQ_OK))
        return fail(run, "%s", err.message);
    dq_load_options load = {.size = sizeof(dq_load_options), .schemas = run->schemas};
    dq_session_options session = {.size = sizeof(dq_session_options),
                                  .threads = run->options->threads,
                                  .isa = run->options->isa,
                                  .no_fuse = run->options->no_fuse};
    dq_status status;
    if (item->folder != NULL) {
        char *path = cf_format("%s/model.onnx", item->folder);
        status = dq_model_load(path, &load, &run->model, &err);
        free(path);
    } else {
        status = dq_model_load_memory(record->model.data, record->model.size, item->name, &load, &run->model,
                                      &err);
    }
    if (status != DQ_OK || dq_session_create(run->model, &session, &run->session, &err) != DQ_OK)
        return fail(run, "%s", err.message);
    return true;
}

/* Finds the model's bytes, and names its operator before anything can fail. */
static bool open_case(case_run *run, const cf_case *item, cf_record *record)
{
    if (item->folder == NULL) {
        if (!cf_parse_record(item->batch, record))
            return fail(run, "the record's lengths do not add up");
        cf_model_op(record->model.data, record->model.size, run->result->op, sizeof run->result->op);
        return true;
    }
    char *path = cf_format("%s/model.onnx", item->folder);
    size_t size;
    uint8_t *bytes = cf_read_file(path, &size);
    free(path);
    if (bytes == NULL)
        return fail(run, "model.onnx cannot be read");
    cf_model_op(bytes, size, run->result->op, sizeof run->result->op);
    free(bytes);
    return true;
}

void cf_run_case(const cf_case *item, const cf_options *options, cf_result *result,
                 void (*begin)(const cf_result *))
{
    case_run run = {.options = options, .result = result};
    cf_record record = {0};
    if (open_case(&run, item, &record)) {
        begin(result);
        if (make_session(&run, item, &record) &&
            (item->folder != NULL ? run_folder(&run, item->folder) : run_record(&run, &record)))
            result->outcome = CF_PASSED;
    }
    dq_session_free(run.session);
    dq_model_free(run.model);
    dq_schemas_free(run.schemas);
}
