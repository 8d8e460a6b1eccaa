/* SPDX-License-Identifier: Apache-2.0 */
/* Holds what sessions say of themselves against runs of whole models.
 *
 *     inspect_models [--dim N] MODEL.onnx|FOLDER…
 *
 * A folder has the form of ONNX's tests (model.onnx, test_data_set_0/input_N.pb) or holds such folders.
 * Inputs of a lone model are zeros, with N for each unknown dimension (2). Each model is one test: its steps
 * cover each node once, values that live together share no bytes, shapes told without a run are those of the
 * run; fused, and as written. The last line is "N passed, N failed, N skipped"; models that cannot run are
 * skipped. */
#include "inspected.h"

#include "io/pb.h"

#include <dirent.h>
#include <sys/stat.h>

enum { MAX_INPUTS = 256 };

static int64_t unknown_dim = 2;
static size_t passed, failed, skipped, values, shaped_outputs;

typedef struct inputs {
    size_t count;
    dq_tensor *tensors[MAX_INPUTS];
    dq_shape shapes[MAX_INPUTS];
    size_t shape_count; /* of tensors alone */
} inputs;

static void free_inputs(inputs *in)
{
    for (size_t i = 0; i < in->count; i++)
        dq_tensor_free(in->tensors[i]);
    in->count = in->shape_count = 0;
}

static bool zeros(const dq_value_info *info, dq_tensor **t)
{
    int64_t dims[DQ_MAX_RANK];
    for (size_t d = 0; d < info->rank; d++)
        dims[d] = info->dims[d] < 0 ? unknown_dim : info->dims[d];
    return info->kind == DQ_KIND_TENSOR &&
           dq_tensor_create(info->dtype, info->rank, dims, t, &inspect_err) == DQ_OK;
}

/* The inputs of the first test data set, or zeros. False: there are none that fit. */
static bool read_inputs(const dq_model *model, const char *folder, inputs *in)
{
    const size_t count = dq_model_input_count(model);
    for (size_t i = 0; i < count && in->count < MAX_INPUTS; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        char path[4096], *name = NULL;
        dq_tensor *t = NULL;
        dq_model_input(model, i, &info, NULL);
        snprintf(path, sizeof path, "%s/test_data_set_0/input_%zu.pb", folder ? folder : "", i);
        const bool there =
            folder && pb_read_value_file(path, &info, IO_TENSOR_LIMIT, &name, &t, &inspect_err) == DQ_OK;
        free(name);
        if (!there && info.optional)
            continue;
        if (!there && (folder || !zeros(&info, &t)))
            return false;
        in->tensors[in->count++] = t;
        if (dq_tensor_kind(t) == DQ_KIND_TENSOR)
            in->shapes[in->shape_count++] = (dq_shape){.size = sizeof(dq_shape),
                                                       .name = info.name,
                                                       .rank = dq_tensor_rank(t),
                                                       .dims = dq_tensor_dims(t)};
    }
    return true;
}

static bool set_inputs(const dq_model *model, dq_session *session, const inputs *in)
{
    for (size_t i = 0, k = 0; i < dq_model_input_count(model) && k < in->count; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        dq_model_input(model, i, &info, NULL);
        if (dq_session_set_input(session, info.name, in->tensors[k], &inspect_err) == DQ_OK)
            k++;
        else if (!info.optional)
            return false;
    }
    return true;
}

/* False: a check failed. *runs: the model ran. */
static bool check_session(dq_model *model, const inputs *in, bool no_fuse, bool *runs)
{
    const dq_session_options options = {.size = sizeof options, .threads = 2, .no_fuse = no_fuse};
    dq_session *session = NULL, *teller = NULL;
    size_t count = 0;
    bool good = true;
    *runs = dq_session_create(model, &options, &session, &inspect_err) == DQ_OK &&
            dq_session_create(model, &options, &teller, &inspect_err) == DQ_OK &&
            set_inputs(model, session, in) && set_inputs(model, teller, in) &&
            dq_session_run(session, &inspect_err) == DQ_OK;
    if (*runs) {
        good = check_steps(model, session) && check_lifetimes(session, &count) &&
               check_told(teller, session, in->shape_count, in->shapes, &shaped_outputs);
        values += count;
    }
    dq_session_free(teller);
    dq_session_free(session);
    return good;
}

static void check_model(const char *path, const char *folder)
{
    dq_model *model = NULL;
    inputs in = {0};
    bool runs = dq_model_load(path, NULL, &model, &inspect_err) == DQ_OK && read_inputs(model, folder, &in);
    bool good = true;
    for (int no_fuse = 0; good && runs && no_fuse < 2; no_fuse++)
        good = check_session(model, &in, no_fuse, &runs);
    if (!good)
        printf("FAILED: %s: %s\n", path, fault);
    *(!good ? &failed : runs ? &passed : &skipped) += 1;
    free_inputs(&in);
    dq_model_free(model);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void check_path(const char *path)
{
    struct stat info;
    char model[4096];
    struct dirent **entries = NULL;
    if (stat(path, &info) != 0)
        return;
    if (!S_ISDIR(info.st_mode)) {
        if (strlen(path) > 5 && strcmp(path + strlen(path) - 5, ".onnx") == 0)
            check_model(path, NULL);
        return;
    }
    snprintf(model, sizeof model, "%s/model.onnx", path);
    char data[4096];
    snprintf(data, sizeof data, "%s/test_data_set_0", path);
    if (stat(model, &info) == 0 && stat(data, &info) == 0) {
        check_model(model, path);
        return;
    }
    const int count = scandir(path, &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        snprintf(model, sizeof model, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            check_path(model);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    const int first = argc > 2 && strcmp(argv[1], "--dim") == 0 ? 3 : 1;
    if (first > 1)
        unknown_dim = strtoll(argv[2], NULL, 10);
    for (int i = first; i < argc; i++)
        check_path(argv[i]);
    printf("%zu lifetimes, %zu outputs with shapes\n", values, shaped_outputs);
    printf("%zu passed, %zu failed, %zu skipped\n", passed, failed, skipped);
    return failed != 0;
}
