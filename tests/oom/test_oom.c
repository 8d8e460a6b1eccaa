/* Memory runs out at the first allocation, then at the second, and so on until everything passes: each time
 * the library must say so, free what it had, and work again at once.
 *
 *     test_oom MODEL… [--warm MODEL…]
 *
 * Each model is loaded and run on made-up inputs through the public API. Exits with 1 after the first
 * sentence on stderr, else prints how many failures each model went through. */
#include "alloc.h"

#include <dqrun/dqrun.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INPUTS = 8, MAX_FAILURES = 100000, UNKNOWN_DIM = 2 };

typedef struct trial {
    const char *path;
    dq_schemas *schemas;            /* NULL: each pass parses its own */
    dq_tensor *inputs[MAX_INPUTS];  /* made once, while memory is there */
    dq_tensor *targets[MAX_INPUTS]; /* of every other output: where it is written to */
    uint64_t wanted;                /* what the outputs hash to */
} trial;

/* Handles of one pass; all of them are freed at its end, however far it came. */
typedef struct pass {
    dq_model *model;
    dq_session *session;
    dq_error err;
} pass;

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        dq_status status_ = (call);                                                                          \
        if (status_ != DQ_OK)                                                                                \
            return status_;                                                                                  \
    } while (0)

static dq_status open_model(const trial *t, pass *p)
{
    dq_load_options load = {.schemas = t->schemas};
    return dq_model_load(t->path, &load, &p->model, &p->err);
}

static dq_status open_session(const trial *t, pass *p)
{
    dq_session_options options = {.threads = 1};
    TRY(dq_session_create(p->model, &options, &p->session, &p->err));
    for (size_t i = 0; i < dq_model_input_count(p->model) && i < MAX_INPUTS; i++) {
        dq_value_info info;
        TRY(dq_model_input(p->model, i, &info));
        if (t->inputs[i] != NULL)
            TRY(dq_session_set_input(p->session, info.name, t->inputs[i], &p->err));
    }
    for (size_t i = 0; i < dq_model_output_count(p->model) && i < MAX_INPUTS; i++) {
        dq_value_info info;
        TRY(dq_model_output(p->model, i, &info));
        TRY(dq_session_set_output(p->session, info.name, t->targets[i], &p->err));
    }
    return DQ_OK;
}

static void close_pass(pass *p)
{
    dq_session_free(p->session);
    dq_model_free(p->model);
}

static dq_status hash_outputs(pass *p, uint64_t *hash)
{
    *hash = 14695981039346656037u;
    for (size_t i = 0; i < dq_model_output_count(p->model); i++) {
        dq_value_info info;
        const dq_tensor *out = NULL;
        TRY(dq_model_output(p->model, i, &info));
        TRY(dq_session_get_output(p->session, info.name, &out, &p->err));
        const unsigned char *bytes = dq_tensor_data(out);
        for (size_t k = 0; k < dq_tensor_size(out); k++)
            *hash = (*hash ^ bytes[k]) * 1099511628211u;
    }
    return DQ_OK;
}

static int complain(const trial *t, size_t nth, const char *what, const pass *p)
{
    fprintf(stderr, "%s: allocation %zu failed, then %s: status %d, '%s'\n", t->path, nth, what,
            (int)p->err.status, p->err.message);
    return 1;
}

/* A status that is not DQ_OK must say that memory ran out. */
static bool said_so(dq_status status, const pass *p)
{
    return status == DQ_OK || (status == DQ_OUT_OF_MEMORY && p->err.status == status &&
                               strstr(p->err.message, "memory") != NULL);
}

/* After a failure inside run: the same session runs once memory is back. */
static int run_again(const trial *t, size_t nth, pass *p)
{
    uint64_t hash;
    if (dq_session_run(p->session, &p->err) != DQ_OK)
        return complain(t, nth, "the session did not run again", p);
    if (hash_outputs(p, &hash) != DQ_OK || hash != t->wanted)
        return complain(t, nth, "the session gave other outputs", p);
    return 0;
}

/* One pass in which allocation `nth` fails. `*came` says whether there were that many. */
static int one_pass(const trial *t, size_t nth, bool *came, size_t *refusals)
{
    pass p = {0};
    int code = 0;
    oom_arm(nth);
    dq_status status = open_model(t, &p);
    if (status == DQ_OK)
        status = open_session(t, &p);
    bool opened = status == DQ_OK;
    if (opened)
        status = dq_session_run(p.session, &p.err);
    *came = oom_disarm();
    *refusals += status != DQ_OK;
    if (!said_so(status, &p))
        code = complain(t, nth, "it was not said that memory ran out", &p);
    else if (status != DQ_OK && !*came)
        code = complain(t, nth, "memory ran out though no allocation failed", &p);
    else if (opened)
        code = run_again(t, nth, &p);
    close_pass(&p);
    return code;
}

static int sweep(const trial *t, size_t *failures, size_t *refusals)
{
    bool came = true;
    for (size_t nth = 1; came; nth++) {
        size_t before = oom_live();
        if (nth > MAX_FAILURES) {
            fprintf(stderr, "%s: more than %d allocations\n", t->path, MAX_FAILURES);
            return 1;
        }
        if (one_pass(t, nth, &came, refusals) != 0)
            return 1;
        *failures = nth - 1;
        if (oom_live() > before) {
            fprintf(stderr, "%s: %zu pieces were not freed after allocation %zu failed\n", t->path,
                    oom_live() - before, nth);
            return 1;
        }
    }
    return 0;
}

/* Bytes 0 to 3 in turn: whole numbers of every integer type, tiny numbers of every float type. */
static int make_inputs(trial *t, const dq_model *model)
{
    for (size_t i = 0; i < dq_model_input_count(model) && i < MAX_INPUTS; i++) {
        dq_value_info info;
        dq_error err;
        int64_t dims[DQ_MAX_RANK];
        if (dq_model_input(model, i, &info) != DQ_OK || info.rank > DQ_MAX_RANK)
            return 1;
        for (size_t k = 0; k < info.rank; k++)
            dims[k] = info.dims[k] < 0 ? UNKNOWN_DIM : info.dims[k];
        if (info.optional)
            continue;
        if (dq_tensor_create(info.dtype, info.rank, dims, &t->inputs[i], &err) != DQ_OK) {
            fprintf(stderr, "%s: input '%s': %s\n", t->path, info.name, err.message);
            return 1;
        }
        unsigned char *bytes = dq_tensor_data(t->inputs[i]);
        for (size_t k = 0; k < dq_tensor_size(t->inputs[i]); k++)
            bytes[k] = info.dtype == DQ_BOOL ? k & 1 : k & 3;
    }
    return 0;
}

static dq_status make_target(trial *t, pass *p, size_t i)
{
    dq_value_info info;
    const dq_tensor *out = NULL;
    TRY(dq_model_output(p->model, i, &info));
    TRY(dq_session_get_output(p->session, info.name, &out, &p->err));
    if (dq_tensor_kind(out) != DQ_KIND_TENSOR || dq_tensor_dtype(out) == DQ_STRING)
        return DQ_OK;
    return dq_tensor_create(dq_tensor_dtype(out), dq_tensor_rank(out), dq_tensor_dims(out), &t->targets[i],
                            &p->err);
}

/* Makes the inputs, and finds what the outputs should be. */
static int find_wanted(trial *t)
{
    pass p = {0};
    dq_status status = open_model(t, &p);
    int code = status == DQ_OK ? make_inputs(t, p.model) : 1;
    if (code == 0)
        status = open_session(t, &p);
    if (status == DQ_OK && code == 0)
        status = dq_session_run(p.session, &p.err);
    if (status == DQ_OK && code == 0)
        status = hash_outputs(&p, &t->wanted);
    for (size_t i = 0; status == DQ_OK && code == 0 && i < dq_model_output_count(p.model) && i < MAX_INPUTS;
         i += 2)
        status = make_target(t, &p, i);
    if (status != DQ_OK)
        fprintf(stderr, "%s\n", p.err.message);
    close_pass(&p);
    return status == DQ_OK ? code : 1;
}

static int try_model(const char *path, bool warm)
{
    trial t = {.path = path};
    dq_error err;
    size_t failures = 0, refusals = 0;
    int code = warm && dq_schemas_create(&t.schemas, &err) != DQ_OK;
    if (code == 0)
        code = find_wanted(&t);
    if (code == 0)
        code = sweep(&t, &failures, &refusals);
    for (size_t i = 0; i < MAX_INPUTS; i++) {
        dq_tensor_free(t.inputs[i]);
        dq_tensor_free(t.targets[i]);
    }
    dq_schemas_free(t.schemas);
    if (code == 0 && refusals == 0) {
        fprintf(stderr, "%s: no allocation was missed\n", path);
        code = 1;
    }
    if (code == 0)
        printf("%s: %zu allocations failed in turn, %zu were missed and said so\n", path, failures, refusals);
    return code;
}

int main(int argc, char **argv)
{
    bool warm = false;
    int passed = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--warm") == 0)
            warm = true;
        else if (try_model(argv[i], warm) == 0)
            passed++;
        else
            failed++;
    }
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
}
