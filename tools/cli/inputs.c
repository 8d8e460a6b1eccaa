/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inputs.h"

#include "cli/model.h"
#include "cli/random.h"
#include "cli/suggest.h"
#include "io/common.h"
#include "io/npz.h"
#include "io/pb.h"
#include "io/text.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { EXPECTS_TEXT = 700, DECLARED_TEXT = 400 };

/* ---- Expectations of the model ------------------------------------------------------------------------ */

static bool is_tensor(const dq_value_info *info)
{
    return info->kind == DQ_KIND_TENSOR;
}

static bool is_list(const dq_value_info *info)
{
    return info->kind == DQ_KIND_SEQUENCE || info->kind == DQ_KIND_OPTIONAL;
}

const char *cli_declared_text(const dq_value_info *info, char *buffer, size_t size)
{
    if (!is_tensor(info)) {
        snprintf(buffer, size, "%s: %s", info->name, info->type);
        return buffer;
    }
    const char *type = info->dtype == DQ_UNDEFINED ? "any type" : dq_dtype_name(info->dtype);
    size_t used = (size_t)snprintf(buffer, size, "%s: %s%s", info->name, type, info->has_shape ? "[" : "");
    for (size_t i = 0; info->has_shape && i < info->rank && used < size; i++) {
        const char *sep = i ? "," : "";
        if (info->dims[i] >= 0)
            used += (size_t)snprintf(buffer + used, size - used, "%s%" PRId64, sep, info->dims[i]);
        else
            used += (size_t)snprintf(buffer + used, size - used, "%s%s", sep,
                                     info->dim_names && info->dim_names[i] ? info->dim_names[i] : "?");
    }
    if (used < size)
        snprintf(buffer + used, size - used, info->has_shape ? "]" : " of any shape");
    return buffer;
}

static const char *expects(const cli_inputs *inputs, char buffer[EXPECTS_TEXT])
{
    size_t used = 0;
    char one[DECLARED_TEXT];
    snprintf(buffer, EXPECTS_TEXT, "no inputs");
    for (size_t i = 0; i < inputs->count && used < EXPECTS_TEXT; i++) {
        const dq_value_info *info = &inputs->infos[i];
        used +=
            (size_t)snprintf(buffer + used, EXPECTS_TEXT - used, "%s%s%s", i ? ", " : "",
                             cli_declared_text(info, one, sizeof one), info->optional ? " (optional)" : "");
    }
    return buffer;
}

static size_t find(const cli_inputs *inputs, const char *name)
{
    size_t i = 0;
    while (i < inputs->count && strcmp(inputs->infos[i].name, name) != 0)
        i++;
    return i;
}

/* An array of a file and its input. It is refused before its data is read if it does not fit. */
typedef struct candidate {
    const char *file;  /* for messages */
    const char *array; /* Its name in the file; NULL if the file has only one. */
    size_t input;
} candidate;

static dq_status misfit(const candidate *c, const cli_inputs *inputs, const char *got, dq_error *err)
{
    char declared[DECLARED_TEXT];
    const dq_value_info *info = &inputs->infos[c->input];
    return io_fail(err, DQ_BAD_INPUT, "%s: %s%s%s is %s, and the model expects %s", c->file,
                   c->array ? "array '" : "the array", c->array ? c->array : "", c->array ? "'" : "", got,
                   cli_declared_text(info, declared, sizeof declared));
}

static dq_status check_once(const candidate *c, const cli_inputs *inputs, dq_error *err)
{
    if (!inputs->tensors[c->input])
        return DQ_OK;
    return io_fail(err, DQ_BAD_INPUT,
                   "%s: input '%s' is given a second time; for one run of each file use --batch", c->file,
                   inputs->infos[c->input].name);
}

static dq_status check_fit(const candidate *c, const cli_inputs *inputs, dq_dtype dtype, size_t rank,
                           const int64_t *dims, dq_error *err)
{
    const dq_value_info *info = &inputs->infos[c->input];
    char got[IO_TYPE_TEXT], declared[DECLARED_TEXT];
    dq_status status = check_once(c, inputs, err);
    if (status != DQ_OK)
        return status;
    if (!is_tensor(info))
        return io_fail(err, DQ_UNSUPPORTED, "%s: the file holds a tensor, and the model expects %s", c->file,
                       cli_declared_text(info, declared, sizeof declared));
    bool fits = info->dtype == DQ_UNDEFINED || info->dtype == dtype;
    fits = fits && (!info->has_shape || info->rank == rank);
    for (size_t i = 0; fits && info->has_shape && i < rank; i++)
        fits = info->dims[i] < 0 || info->dims[i] == dims[i];
    return fits ? DQ_OK : misfit(c, inputs, io_type_text(dtype, rank, dims, got), err);
}

static dq_status check_header(const candidate *c, const cli_inputs *inputs, const npy_header *h,
                              dq_error *err)
{
    char got[64];
    dq_dtype requested = inputs->infos[c->input].dtype, dtype = npy_type(h, requested);
    if (dtype != DQ_UNDEFINED)
        return check_fit(c, inputs, dtype, h->rank, h->dims, err);
    snprintf(got, sizeof got, "made of raw elements ('%s')", h->descr);
    return misfit(c, inputs, got, err);
}

/* ---- Sources ------------------------------------------------------------------------------------------- */

bool cli_position(const char *name, const char *before, const char *after, size_t *position)
{
    size_t n = strlen(before), value = 0, digits = 0;
    if (strncmp(name, before, n) != 0)
        return false;
    for (name += n; isdigit((unsigned char)*name) && digits < 9; name++, digits++)
        value = value * 10 + (size_t)(*name - '0');
    *position = value;
    return digits && !strcmp(name, after);
}

static dq_status no_such_input(const char *file, const char *what, const char *name, const cli_inputs *inputs,
                               dq_error *err)
{
    char text[EXPECTS_TEXT], closest[CLI_SUGGEST_TEXT];
    cli_suggestion suggestion = cli_suggest_for(name);
    for (size_t i = 0; i < inputs->count; i++)
        cli_suggest_try(&suggestion, inputs->infos[i].name);
    return io_fail(err, DQ_BAD_INPUT, "%s: %s '%s' is not an input of the model, which expects %s%s", file,
                   what, name, expects(inputs, text), cli_suggest_text(&suggestion, "", closest));
}

static dq_status prefix_array(dq_error *err, dq_status status, const char *file, const char *array)
{
    io_prefix(err, status, array);
    return io_prefix(err, status, file);
}

static dq_status take_array(npz *archive, size_t member, const char *path, cli_inputs *inputs, dq_error *err)
{
    const char *name = npz_name(archive, member);
    npy_header header;
    size_t position = 0;
    candidate c = {.file = path, .array = name, .input = find(inputs, name)};
    if (c.input == inputs->count && cli_position(name, "arr_", "", &position) && position < inputs->count)
        c.input = position;
    if (c.input == inputs->count)
        return no_such_input(path, "array", name, inputs, err);
    dq_status status = npz_header(archive, member, &header, err);
    if (status != DQ_OK)
        return prefix_array(err, status, path, name);
    status = check_header(&c, inputs, &header, err);
    if (status != DQ_OK)
        return status;
    status = npz_read(archive, member, inputs->infos[c.input].dtype, IO_TENSOR_LIMIT,
                      &inputs->tensors[c.input], err);
    return status == DQ_OK ? DQ_OK : prefix_array(err, status, path, name);
}

/* Takes the arrays of an archive; `status` is the result of npz_open. */
static dq_status take_arrays(npz *archive, dq_status status, const char *path, cli_inputs *inputs,
                             dq_error *err)
{
    if (status != DQ_OK)
        return io_prefix(err, status, path);
    if (!npz_count(archive) && inputs->count)
        status = io_fail(err, DQ_BAD_INPUT, "%s: holds no .npy array", path);
    for (size_t i = 0; i < npz_count(archive) && status == DQ_OK; i++)
        status = take_array(archive, i, path, inputs, err);
    npz_close(archive);
    return status;
}

static dq_status take_npz(const char *path, cli_inputs *inputs, dq_error *err)
{
    npz *archive = NULL;
    dq_status status = npz_open(path, &archive, err);
    return take_arrays(archive, status, path, inputs, err);
}

static dq_status take_standard_input(cli_inputs *inputs, dq_error *err)
{
    npz *archive = NULL;
    void *bytes = NULL;
    size_t size = 0;
    dq_status status = cli_read_standard_input("an .npz archive", IO_TENSOR_LIMIT, &bytes, &size, err);
    if (status != DQ_OK)
        return status;
    status = size ? npz_open_memory(bytes, size, &archive, err)
                  : io_fail(err, DQ_BAD_INPUT, "is empty, expected an .npz archive");
    status = take_arrays(archive, status, cli_standard_input, inputs, err);
    free(bytes);
    return status;
}

static dq_status take_npy(const char *path, size_t input, cli_inputs *inputs, dq_error *err)
{
    npy_header header;
    candidate c = {.file = path, .input = input};
    dq_status status = npy_file_header(path, &header, err);
    if (status != DQ_OK)
        return io_prefix(err, status, path);
    status = check_header(&c, inputs, &header, err);
    if (status != DQ_OK)
        return status;
    status = npy_file_read(path, inputs->infos[input].dtype, IO_TENSOR_LIMIT, &inputs->tensors[input], err);
    return status == DQ_OK ? DQ_OK : io_prefix(err, status, path);
}

static dq_status take_pb(const char *path, size_t input, cli_inputs *inputs, dq_error *err)
{
    char *name = NULL;
    dq_tensor *tensor = NULL;
    candidate c = {.file = path, .input = input};
    const dq_value_info *info = &inputs->infos[input];
    dq_status status = pb_read_value_file(path, info, IO_TENSOR_LIMIT, &name, &tensor, err);
    if (status != DQ_OK)
        return io_prefix(err, status, path);
    free(name);
    if (is_list(info))
        status = check_once(&c, inputs, err); /* Its tensors may have any shape. */
    else
        status = check_fit(&c, inputs, dq_tensor_dtype(tensor), dq_tensor_rank(tensor),
                           dq_tensor_dims(tensor), err);
    if (status == DQ_OK)
        inputs->tensors[input] = tensor;
    else
        dq_tensor_free(tensor);
    return status;
}

static dq_status take_folder(const char *path, cli_inputs *inputs, dq_error *err)
{
    DIR *folder = opendir(path);
    if (!folder)
        return io_fail(err, DQ_BAD_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    dq_status status = DQ_OK;
    size_t capacity = strlen(path) + 300, found = 0, position = 0;
    char *file = malloc(capacity);
    if (!file)
        status = io_no_memory(err);
    for (struct dirent *entry; status == DQ_OK && (entry = readdir(folder)) != NULL;) {
        if (!cli_position(entry->d_name, "input_", ".pb", &position))
            continue;
        found++;
        snprintf(file, capacity, "%s/%s", path, entry->d_name);
        status = position < inputs->count ? take_pb(file, position, inputs, err)
                                          : no_such_input(path, "file", entry->d_name, inputs, err);
    }
    closedir(folder);
    free(file);
    if (status == DQ_OK && !found && inputs->count)
        return io_fail(err, DQ_BAD_INPUT, "%s: holds no input_0.pb, input_1.pb…", path);
    return status;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* Parses NAME=FILE. The name may contain '=', too. */
static dq_status take_named(const char *argument, cli_inputs *inputs, dq_error *err)
{
    size_t input = inputs->count;
    const char *equals = argument;
    for (size_t i = 0; i < inputs->count; i++) {
        size_t n = strlen(inputs->infos[i].name);
        if (!strncmp(argument, inputs->infos[i].name, n) && argument[n] == '=') {
            input = i;
            equals = argument + n;
        }
    }
    if (input < inputs->count)
        return ends_with(argument, ".pb") ? take_pb(equals + 1, input, inputs, err)
                                          : take_npy(equals + 1, input, inputs, err);
    char name[256];
    equals = strchr(argument, '=');
    snprintf(name, sizeof name, "%.*s", (int)(equals - argument), argument);
    return no_such_input(equals + 1, "its name", name, inputs, err);
}

static dq_status take_argument(const char *argument, cli_inputs *inputs, dq_error *err)
{
    struct stat info;
    if (cli_is_standard_input(argument))
        return take_standard_input(inputs, err);
    const bool there = !stat(argument, &info), named = strchr(argument, '=') != NULL;
    if (there && S_ISDIR(info.st_mode))
        return take_folder(argument, inputs, err);
    if (ends_with(argument, ".npz") && (there || !named))
        return take_npz(argument, inputs, err);
    if (named && (ends_with(argument, ".npy") || ends_with(argument, ".pb")))
        return take_named(argument, inputs, err);
    char text[EXPECTS_TEXT];
    if (there && (ends_with(argument, ".npy") || ends_with(argument, ".pb")))
        return io_fail(err, DQ_INVALID_ARGUMENT,
                       "'%s' needs its input's name in front of it, NAME=%s; the model expects %s", argument,
                       argument, expects(inputs, text));
    return io_fail(err, DQ_INVALID_ARGUMENT,
                   "'%s' is not an input, expected FILE.npz, NAME=FILE.npy, NAME=FILE.pb, '-' or a folder "
                   "with input_0.pb…",
                   argument);
}

/* ---- Generated inputs --------------------------------------------------------------------------------- */

/* The size of a symbol from --dim or another input; else 1. */
static int64_t symbol_size(const cli_inputs *inputs, const cli_options *options, const char *symbol)
{
    for (size_t i = 0; symbol && i < options->dim_count; i++) {
        if (!strcmp(options->dims[i].name, symbol))
            return options->dims[i].size;
    }
    for (size_t i = 0; symbol && i < inputs->count; i++) {
        const dq_value_info *info = &inputs->infos[i];
        for (size_t d = 0; inputs->tensors[i] && info->has_shape && d < info->rank; d++) {
            if (info->dim_names && info->dim_names[d] && !strcmp(info->dim_names[d], symbol))
                return dq_tensor_dims(inputs->tensors[i])[d];
        }
    }
    return 1;
}

static dq_status make_up(cli_inputs *inputs, size_t i, const cli_options *options, dq_error *err)
{
    const dq_value_info *info = &inputs->infos[i];
    char text[DECLARED_TEXT];
    int64_t dims[DQ_MAX_RANK] = {0};
    if (!is_tensor(info) || info->dtype == DQ_UNDEFINED || !info->has_shape || info->rank > DQ_MAX_RANK)
        return io_fail(err, DQ_BAD_INPUT,
                       "an input without a declared element type and rank cannot be made up: %s",
                       cli_declared_text(info, text, sizeof text));
    for (size_t d = 0; d < info->rank; d++)
        dims[d] = info->dims[d] >= 0
                      ? info->dims[d]
                      : symbol_size(inputs, options, info->dim_names ? info->dim_names[d] : NULL);
    dq_status status = io_check_shape(info->dtype, info->rank, dims, IO_TENSOR_LIMIT, err);
    if (status == DQ_OK)
        status = dq_tensor_create(info->dtype, info->rank, dims, &inputs->tensors[i], err);
    if (status == DQ_OK)
        status = cli_random_fill(inputs->tensors[i], info->name, options->seed, err);
    return status == DQ_OK ? DQ_OK : io_prefix(err, status, info->name);
}

static bool has_symbol(const cli_inputs *inputs, const char *symbol)
{
    for (size_t i = 0; i < inputs->count; i++) {
        const dq_value_info *info = &inputs->infos[i];
        for (size_t d = 0; info->has_shape && info->dim_names && d < info->rank; d++) {
            if (info->dim_names[d] && !strcmp(info->dim_names[d], symbol))
                return true;
        }
    }
    return false;
}

static void suggest_symbols(const cli_inputs *inputs, cli_suggestion *suggestion)
{
    for (size_t i = 0; i < inputs->count; i++) {
        const dq_value_info *info = &inputs->infos[i];
        for (size_t d = 0; info->has_shape && info->dim_names && d < info->rank; d++) {
            if (info->dim_names[d])
                cli_suggest_try(suggestion, info->dim_names[d]);
        }
    }
}

static dq_status check_dims(const cli_inputs *inputs, const cli_options *options, dq_error *err)
{
    char text[EXPECTS_TEXT], closest[CLI_SUGGEST_TEXT];
    for (size_t i = 0; i < options->dim_count; i++) {
        const char *name = options->dims[i].name;
        if (has_symbol(inputs, name))
            continue;
        cli_suggestion suggestion = cli_suggest_for(name);
        suggest_symbols(inputs, &suggestion);
        return io_fail(err, DQ_INVALID_ARGUMENT,
                       "--dim names '%s', which no input has; the model expects %s%s", name,
                       expects(inputs, text), cli_suggest_text(&suggestion, "", closest));
    }
    return DQ_OK;
}

static dq_status complete(cli_inputs *inputs, const cli_options *options, const char *const *arguments,
                          size_t argument_count, dq_error *err)
{
    char text[EXPECTS_TEXT];
    for (size_t i = 0; i < inputs->count; i++) {
        dq_status status = DQ_OK;
        if (inputs->tensors[i] || inputs->infos[i].optional)
            continue;
        if (cli_inputs_made_up(options))
            status = make_up(inputs, i, options, err);
        else if (argument_count == 1)
            status = io_fail(err, DQ_BAD_INPUT, "%s: no array for input '%s'; the model expects %s",
                             cli_is_standard_input(arguments[0]) ? cli_standard_input : arguments[0],
                             inputs->infos[i].name, expects(inputs, text));
        else
            status = io_fail(err, DQ_BAD_INPUT, "nothing is given for input '%s'; the model expects %s",
                             inputs->infos[i].name, expects(inputs, text));
        if (status != DQ_OK)
            return status;
    }
    return DQ_OK;
}

bool cli_inputs_made_up(const cli_options *options)
{
    return options->random ||
           ((options->command == CLI_BENCH || options->command == CLI_PACK) && !options->input_count) ||
           options->command == CLI_INSPECT;
}

dq_status cli_inputs_gather(const dq_model *model, const cli_options *options, const char *const *arguments,
                            size_t argument_count, cli_inputs *inputs, dq_error *err)
{
    size_t count = dq_model_input_count(model);
    *inputs = (cli_inputs){.count = count};
    inputs->infos = calloc(count + 1, sizeof *inputs->infos);
    inputs->tensors = calloc(count + 1, sizeof *inputs->tensors);
    if (!inputs->infos || !inputs->tensors)
        return io_no_memory(err);
    for (size_t i = 0; i < count; i++)
        inputs->infos[i] = (dq_value_info)DQ_VALUE_INFO_INIT;
    dq_status status = DQ_OK;
    for (size_t i = 0; i < count && status == DQ_OK; i++)
        status = dq_model_input(model, i, &inputs->infos[i], err);
    if (status == DQ_OK)
        status = check_dims(inputs, options, err);
    for (size_t i = 0; i < argument_count && status == DQ_OK; i++)
        status = take_argument(arguments[i], inputs, err);
    return status == DQ_OK ? complete(inputs, options, arguments, argument_count, err) : status;
}

dq_status cli_inputs_set(const cli_inputs *inputs, dq_session *session, dq_error *err)
{
    dq_status status = DQ_OK;
    for (size_t i = 0; i < inputs->count && status == DQ_OK; i++)
        if (inputs->tensors[i])
            status = dq_session_set_input(session, inputs->infos[i].name, inputs->tensors[i], err);
    return status;
}

void cli_inputs_clear(cli_inputs *inputs)
{
    for (size_t i = 0; inputs->tensors && i < inputs->count; i++)
        dq_tensor_free(inputs->tensors[i]);
    free(inputs->tensors);
    free(inputs->infos);
    *inputs = (cli_inputs){0};
}
