/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/reduce_command.h"

#include "cli/inputs.h"
#include "cli/json.h"
#include "cli/model.h"
#include "cli/references.h"
#include "cli/terminal.h"
#include "insight/reduce.h"
#include "io/common.h"
#include "io/npz.h"
#include "io/out_file.h"
#include "io/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct reducer {
    const cli_options *o;
    insight_reduce_request request;
    dq_session_options options, against;
    dq_model *model;
    void *bytes;
    char *model_folder;
    cli_inputs inputs;
    const char **input_names;
    cli_references references; /* of --ref */
    char *options_text;        /* of the command that shows the difference */
} reducer;

/* ---- What is read -------------------------------------------------------------------------------------- */

static dq_status read_inputs(reducer *x, dq_error *err)
{
    dq_status status = cli_inputs_gather(x->model, x->o, x->o->inputs, x->o->input_count, &x->inputs, err);
    x->input_names = calloc(x->inputs.count + 1, sizeof *x->input_names);
    if (status == DQ_OK && !x->input_names)
        return io_no_memory(err);
    for (size_t i = 0; i < x->inputs.count && status == DQ_OK; i++) {
        x->input_names[i] = x->inputs.infos[i].name;
        if (x->inputs.tensors[i] && dq_tensor_kind(x->inputs.tensors[i]) != DQ_KIND_TENSOR)
            return io_fail(
                err, DQ_UNSUPPORTED,
                "input '%s' is a sequence or optional, expected tensors only: reduce writes .npz files",
                x->input_names[i]);
    }
    x->request.input_count = x->inputs.count;
    x->request.input_names = x->input_names;
    x->request.input_tensors = (const dq_tensor *const *)x->inputs.tensors;
    return status;
}

static dq_status read_references(reducer *x, dq_error *err)
{
    dq_status status = cli_references_read(x->o->ref, x->model, &x->references, err);
    x->request.ref_count = x->references.count;
    x->request.ref_names = x->references.names;
    x->request.ref_tensors = (const dq_tensor *const *)x->references.tensors;
    return status;
}

/* ---- Progress ------------------------------------------------------------------------------------------ */

static void report(void *arg, const insight_reduce_step *step)
{
    (void)arg; /* the reducer */
    char text[1024];
    snprintf(text, sizeof text, "%s", *step->difference ? step->difference : "equal");
    fprintf(stderr, "%-6s  %4zu node%s  %s%s%s\n", step->phase, step->nodes, step->nodes == 1 ? " " : "s",
            cli_style_on(stderr, step->differs ? CLI_STYLE_BAD : CLI_STYLE_GOOD), io_printable(text),
            cli_style_off(stderr));
}

/* ---- What is written ----------------------------------------------------------------------------------- */

/* "FOLDER/NAME", malloc'ed. */
static char *path_of(const reducer *x, const char *name)
{
    const size_t length = strlen(x->o->output), size = length + strlen(name) + 2;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s%s%s", x->o->output, length && x->o->output[length - 1] == '/' ? "" : "/",
                 name);
    return path;
}

static dq_status write_bytes(const char *path, const void *bytes, size_t size, dq_error *err)
{
    out_file out;
    dq_status status = out_open(path, &out, err);
    if (status != DQ_OK)
        return status;
    const bool written = fwrite(bytes, 1, size, out.file) == size;
    return out_close(&out, written ? DQ_OK : io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno)),
                     err);
}

/* Puts a word for the shell in single quotes where it needs them. */
static void put_word(FILE *to, const char *word)
{
    if (*word &&
        !word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./=,:-")]) {
        fputs(word, to);
        return;
    }
    fputc('\'', to);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, 0}, to);
    fputc('\'', to);
}

static void put_option(FILE *to, const char *name, const char *value)
{
    if (!value)
        return;
    fprintf(to, " %s ", name);
    put_word(to, value);
}

/* The options under which the part differs from expected.npz. */
static dq_status make_options(reducer *x, dq_error *err)
{
    const cli_options *o = x->o;
    size_t size = 0;
    FILE *to = open_memstream(&x->options_text, &size);
    if (!to)
        return io_no_memory(err);
    if (o->rtol < COMPARE_RTOL || o->rtol > COMPARE_RTOL)
        fprintf(to, " --rtol %.9g", o->rtol);
    if (o->atol < COMPARE_ATOL || o->atol > COMPARE_ATOL)
        fprintf(to, " --atol %.9g", o->atol);
    put_option(to, "--isa", o->isa);
    put_option(to, "--disable-pass", o->disabled_passes);
    put_option(to, "--algorithm", o->algorithms);
    for (size_t i = 0; i < o->schema_dir_count; i++)
        put_option(to, "--schema-dir", o->schema_dirs[i]);
    if (o->threads)
        fprintf(to, " --threads %u", o->threads);
    fputs(o->no_fuse ? " --no-fuse" : "", to);
    fputs(o->honor_accuracy_level ? " --honor-accuracy-level" : "", to);
    return fclose(to) ? io_no_memory(err) : DQ_OK;
}

/* The command, malloc'ed, for files that have `before` in front of their names. */
static char *command_of(const reducer *x, const char *before)
{
    static const char *const parts[] = {"model.onnx ", "inputs.npz --expect ", "expected.npz"};
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    fputs("dqrun ", to);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        fprintf(to, "%s%s", before, parts[i]);
    fprintf(to, "%s", x->options_text);
    return fclose(to) ? NULL : text;
}

static dq_status write_script(const reducer *x, const char *path, dq_error *err)
{
    char *command = command_of(x, "\"$folder\"/"), *text = NULL;
    size_t size = 0;
    FILE *to = command ? open_memstream(&text, &size) : NULL;
    dq_status status = to ? DQ_OK : io_no_memory(err);
    if (to) {
        fprintf(to, "#!/bin/sh\nfolder=$(dirname \"$0\")\n%s\n", command);
        status = fclose(to) ? io_no_memory(err) : write_bytes(path, text, size, err);
    }
    free(command);
    free(text);
    return status;
}

static dq_status write_inputs(const insight_trial *best, const char *path, dq_error *err)
{
    const char **names = calloc(best->input_count + 1, sizeof *names);
    const dq_tensor **tensors = calloc(best->input_count + 1, sizeof *tensors);
    size_t count = 0;
    dq_status status = names && tensors ? DQ_OK : io_no_memory(err);
    for (size_t i = 0; i < best->input_count && status == DQ_OK; i++) {
        if (!best->input_tensors[i])
            continue;
        names[count] = best->input_names[i];
        tensors[count++] = best->input_tensors[i];
    }
    status = status == DQ_OK ? npz_write(path, count, names, tensors, err) : status;
    free(names);
    free(tensors);
    return status;
}

/* Refuses a file in place of the folder before the search. */
static dq_status check_folder(const char *folder, dq_error *err)
{
    struct stat info;
    return !stat(folder, &info) && !S_ISDIR(info.st_mode)
               ? io_fail(err, DQ_IO, "%s: is a file, expected a folder or nothing", folder)
               : DQ_OK;
}

static dq_status write_part(const reducer *x, const insight_trial *best, dq_error *err)
{
    static const char *const names[] = {"model.onnx", "inputs.npz", "expected.npz", "rerun.sh"};
    struct stat info;
    const char *folder = x->o->output;
    if (mkdir(folder, 0777) && !(errno == EEXIST && !stat(folder, &info) && S_ISDIR(info.st_mode)))
        return io_fail(err, DQ_IO, "%s: cannot be made as a folder: %s", folder, strerror(errno));
    dq_status status = DQ_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && status == DQ_OK; i++) {
        char *path = path_of(x, names[i]);
        status = !path    ? io_no_memory(err)
                 : i == 0 ? write_bytes(path, best->bytes, best->size, err)
                 : i == 1 ? write_inputs(best, path, err)
                 : i == 2 ? npz_write(path, best->output_count, best->output_names, best->expected, err)
                          : write_script(x, path, err);
        if (path && status != DQ_OK)
            io_prefix(err, status, path);
        free(path);
    }
    return status;
}

/* ---- The summary --------------------------------------------------------------------------------------- */

static dq_status print_json(const reducer *x, const insight_reduction *r, const char *command, dq_error *err)
{
    cli_json json;
    dq_status status = cli_json_start(&json, err);
    if (status != DQ_OK)
        return status;
    cli_json_begin_object(&json, NULL);
    cli_json_text(&json, "model", x->o->model);
    cli_json_bool(&json, "differs", r->differs);
    cli_json_size(&json, "nodes_before", r->nodes_before);
    cli_json_size(&json, "candidates", r->trials);
    if (r->differs) {
        cli_json_size(&json, "nodes_after", r->best.nodes);
        cli_json_begin_array(&json, "operators");
        for (size_t i = 0; i < r->best.nodes; i++)
            cli_json_text(&json, NULL, r->operators[i]);
        cli_json_end_array(&json);
        cli_json_text(&json, "difference", r->best.difference);
        cli_json_text(&json, "folder", x->o->output);
        cli_json_text(&json, "command", command);
    }
    cli_json_end_object(&json);
    return cli_json_finish(&json, DQ_OK, err);
}

static void print_text(const reducer *x, const insight_reduction *r, const char *command)
{
    enum { SHOWN = 12 };
    const cli_options *o = x->o;
    const insight_trial *best = &r->best;
    char text[1024];
    if (!r->differs) {
        printf("%snothing differs%s between %s (%zu nodes)\n", cli_style_on(stdout, CLI_STYLE_GOOD),
               cli_style_off(stdout),
               o->ref           ? "the model and the reference values"
               : o->against_isa ? "the two levels"
                                : "the graph as written and the rewritten one",
               r->nodes_before);
        return;
    }
    printf("%zu of %zu nodes still differ%s, after %zu candidate%s:", best->nodes, r->nodes_before,
           best->nodes == 1 ? "s" : "", r->trials, r->trials == 1 ? "" : "s");
    for (size_t i = 0; i < best->nodes && i < SHOWN; i++) {
        snprintf(text, sizeof text, "%s", r->operators[i]);
        printf(" %s", io_printable(text));
    }
    snprintf(text, sizeof text, "%s", best->difference);
    printf("%s\n%s%s%s\n%s: written; to see the difference:\n%s\n", best->nodes > SHOWN ? " …" : "",
           cli_style_on(stdout, CLI_STYLE_BAD), io_printable(text), cli_style_off(stdout), o->output,
           command);
}

static dq_status print(const reducer *x, const insight_reduction *r, dq_error *err)
{
    char *before = path_of(x, ""), *quoted = NULL;
    size_t size = 0;
    FILE *to = before ? open_memstream(&quoted, &size) : NULL;
    if (to) {
        put_word(to, before);
        fclose(to);
    }
    char *command = quoted ? command_of(x, quoted) : NULL;
    dq_status status = command ? DQ_OK : io_no_memory(err);
    if (command && x->o->json)
        status = print_json(x, r, command, err);
    else if (command)
        print_text(x, r, command);
    free(before);
    free(quoted);
    free(command);
    return status;
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

static void clear(reducer *x)
{
    cli_references_clear(&x->references);
    free(x->input_names);
    cli_inputs_clear(&x->inputs);
    dq_model_free(x->model);
    free(x->bytes);
    free(x->model_folder);
    free(x->options_text);
}

static void set_request(reducer *x, dq_schemas *schemas)
{
    const cli_options *o = x->o;
    x->options = x->against = cli_session_options(o);
    if (o->against_isa)
        x->against.isa = o->against_isa;
    else
        x->against.no_fuse = true;
    x->request = (insight_reduce_request){.schemas = schemas,
                                          .limits = &o->limits,
                                          .options = &x->options,
                                          .against = o->ref ? NULL : &x->against,
                                          .tolerance = {o->rtol, o->atol},
                                          .report = cli_progress_allowed() || o->verbose ? report : NULL};
}

dq_status cli_reduce(dq_schemas *schemas, const cli_options *o, bool *differ, dq_error *err)
{
    reducer x = {.o = o};
    insight_reduction r = {0};
    set_request(&x, schemas);
    dq_status status = check_folder(o->output, err);
    if (status == DQ_OK)
        status = cli_model_load_bytes(o, o->model, schemas, &x.model, &x.bytes, &x.request.size,
                                      &x.model_folder, err);
    x.request.model = x.model;
    x.request.bytes = x.bytes;
    if (status == DQ_OK)
        status = read_inputs(&x, err);
    if (status == DQ_OK && o->ref)
        status = read_references(&x, err);
    if (status == DQ_OK)
        status = make_options(&x, err);
    if (status == DQ_OK) {
        status = insight_reduce(&x.request, &r, err);
        if (status == DQ_BAD_INPUT && o->ref)
            io_prefix(err, status, o->ref);
    }
    if (status == DQ_OK && r.differs)
        status = write_part(&x, &r.best, err);
    if (status == DQ_OK)
        status = print(&x, &r, err);
    *differ = status == DQ_OK && r.differs;
    insight_reduction_free(&r);
    clear(&x);
    return status;
}
