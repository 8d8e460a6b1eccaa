/* SPDX-License-Identifier: Apache-2.0 */
/* Memory runs out at the first allocation, then at the second, and so on until everything passes: each time
 * the library must say so, free what it had, and work again at once.
 *
 *     test_oom MODEL… [--threads N] [--warm MODEL…]
 *
 * Each model is loaded and, unless a node cannot run, run on made-up inputs through the public API; where its
 * inputs leave dimensions open, also on more sets of shapes and on the first again. Exits with 1 after the
 * first sentence on stderr, else prints how many failures each model went through. */
#include "alloc.h"

#include <dqrun/dqrun.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_INPUTS = 64,
    MAX_FAILURES = 100000,
    UNKNOWN_DIM = 2,
    SHAPES = 5 /* one more than a session keeps */
};

/* Inputs of one set of shapes, made once, while memory is there. */
typedef struct feed {
    dq_tensor *inputs[MAX_INPUTS];
    uint64_t expected; /* what the outputs hash to */
} feed;

typedef struct trial {
    const char *path;
    unsigned threads;
    dq_schemas *schemas; /* NULL: each pass parses its own */
    bool refused;        /* a node cannot run: the model is only loaded */
    feed feeds[SHAPES];
    unsigned shapes;                /* how many feeds there are */
    dq_tensor *targets[MAX_INPUTS]; /* of every other output of the first feed: where it is written to */
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
    dq_load_options load = {.size = sizeof(dq_load_options), .schemas = t->schemas};
    return dq_model_load(t->path, &load, &p->model, &p->err);
}

static dq_status open_session(const trial *t, pass *p)
{
    dq_session_options options = {.size = sizeof(dq_session_options), .threads = t->threads};
    return dq_session_create(p->model, &options, &p->session, &p->err);
}

static dq_status set_feed(const trial *t, unsigned shape, pass *p)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    for (size_t i = 0; i < dq_model_input_count(p->model) && i < MAX_INPUTS; i++) {
        TRY(dq_model_input(p->model, i, &info, NULL));
        if (t->feeds[shape].inputs[i] != NULL)
            TRY(dq_session_set_input(p->session, info.name, t->feeds[shape].inputs[i], &p->err));
    }
    for (size_t i = 0; i < dq_model_output_count(p->model) && i < MAX_INPUTS; i++) {
        TRY(dq_model_output(p->model, i, &info, NULL));
        TRY(dq_session_set_output(p->session, info.name, shape == 0 ? t->targets[i] : NULL, &p->err));
    }
    return DQ_OK;
}

static void close_pass(pass *p)
{
    dq_session_free(p->session);
    dq_model_free(p->model);
}

static void hash_bytes(uint64_t *hash, const void *bytes, size_t size)
{
    for (size_t k = 0; k < size; k++)
        *hash = (*hash ^ ((const unsigned char *)bytes)[k]) * 1099511628211u;
}

static void hash_tensor(uint64_t *hash, const dq_tensor *tensor)
{
    size_t length;
    for (size_t i = 0; dq_tensor_kind(tensor) != DQ_KIND_TENSOR && i < dq_tensor_count(tensor); i++)
        hash_tensor(hash, dq_tensor_item(tensor, i));
    hash_bytes(hash, dq_tensor_data(tensor), dq_tensor_size(tensor));
    for (size_t i = 0; dq_tensor_dtype(tensor) == DQ_STRING && i < dq_tensor_count(tensor); i++) {
        const char *text = dq_tensor_string(tensor, i, &length);
        hash_bytes(hash, text, length);
    }
}

/* Of the last run; `take`: taken over, which leaves memory of the next run in the session. */
static dq_status hash_outputs(pass *p, bool take, uint64_t *hash)
{
    *hash = 14695981039346656037u;
    for (size_t i = 0; i < dq_model_output_count(p->model); i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        const dq_tensor *out = NULL;
        dq_tensor *taken = NULL;
        TRY(dq_model_output(p->model, i, &info, NULL));
        if (take)
            TRY(dq_session_take_output(p->session, info.name, &taken, &p->err));
        else
            TRY(dq_session_get_output(p->session, info.name, &out, &p->err));
        hash_tensor(hash, take ? taken : out);
        dq_tensor_free(taken);
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

static int pass_over(void *arg, const dq_lifetime *lifetime)
{
    (void)arg;
    (void)lifetime;
    return 0;
}

/* All that is found only when it is asked for. */
static dq_status look_inside(pass *p)
{
    dq_model_info model = DQ_MODEL_INFO_INIT;
    dq_graph_info graph = DQ_GRAPH_INFO_INIT;
    dq_memory_info memory = DQ_MEMORY_INFO_INIT;
    TRY(dq_model_describe(p->model, &model, &p->err));
    TRY(dq_graph_describe(model.graph, &graph, &p->err));
    for (size_t i = 0; i < graph.value_count; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        dq_quantization q = DQ_QUANTIZATION_INIT;
        TRY(dq_value_describe(graph.values[i], &info, &p->err));
        TRY(dq_value_quantization(p->model, graph.values[i], &q, &p->err));
    }
    for (size_t i = 0; i < dq_session_step_count(p->session); i++) {
        dq_step_info step = DQ_STEP_INFO_INIT;
        TRY(dq_session_step(p->session, i, &step, &p->err));
    }
    TRY(dq_session_lifetimes(p->session, pass_over, NULL, &p->err));
    return dq_session_infer(p->session, 0, NULL, NULL, NULL, &memory, &p->err);
}

/* All feeds one after the other, then the first again; hashes of the outputs, or NULL. */
static dq_status run_feeds(const trial *t, pass *p, uint64_t *hashes)
{
    for (unsigned i = 0; i < t->shapes + (t->shapes > 1); i++) {
        TRY(set_feed(t, i % t->shapes, p));
        TRY(dq_session_run(p->session, &p->err));
        if (i == 0)
            TRY(look_inside(p));
        uint64_t hash = 0;
        const bool take = i % 2 == 1;
        if (hashes != NULL || take)
            TRY(hash_outputs(p, take, &hash));
        if (hashes != NULL)
            hashes[i % t->shapes] = hash;
    }
    return DQ_OK;
}

/* What cannot be saved, as an attribute has no form for it, says so each time. */
static dq_status save(pass *p)
{
    void *bytes = NULL;
    size_t size = 0;
    const dq_status status = dq_model_save_memory(p->model, &bytes, &size, &p->err);
    dq_free(bytes);
    return status == DQ_UNSUPPORTED ? DQ_OK : status;
}

/* After a failure inside a run: the same session runs once memory is back. */
static int run_again(const trial *t, size_t nth, pass *p)
{
    uint64_t hashes[SHAPES];
    if (run_feeds(t, p, hashes) != DQ_OK)
        return complain(t, nth, "the session did not run again", p);
    for (unsigned i = 0; i < t->shapes; i++)
        if (hashes[i] != t->feeds[i].expected)
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
    if (status == DQ_OK && !t->refused)
        status = open_session(t, &p);
    bool opened = status == DQ_OK && !t->refused;
    if (opened)
        status = run_feeds(t, &p, NULL);
    if (status == DQ_OK && opened)
        status = save(&p);
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

/* The same failure twice: what the first leaves behind may be a schema that nothing had asked for before, the
 * second must leave nothing. */
static int leaves_nothing(const trial *t, size_t nth, bool *came, size_t *refusals)
{
    size_t before = oom_live(), again = 0;
    if (one_pass(t, nth, came, refusals) != 0)
        return 1;
    if (oom_live() <= before)
        return 0;
    before = oom_live();
    if (one_pass(t, nth, came, &again) != 0)
        return 1;
    if (oom_live() <= before)
        return 0;
    fprintf(stderr, "%s: %zu pieces were not freed after allocation %zu failed\n", t->path,
            oom_live() - before, nth);
    return 1;
}

static int sweep(const trial *t, size_t *failures, size_t *refusals)
{
    bool came = true;
    for (size_t nth = 1; came; nth++) {
        if (nth > MAX_FAILURES) {
            fprintf(stderr, "%s: more than %d allocations\n", t->path, MAX_FAILURES);
            return 1;
        }
        if (leaves_nothing(t, nth, &came, refusals) != 0)
            return 1;
        *failures = nth - 1;
    }
    return 0;
}

/* Bytes 0 to 3 in turn: whole numbers of every integer type, tiny numbers of every float type. Shapes and
 * indices are int64, and are that small themselves. */
static dq_status fill(dq_tensor *tensor, dq_error *err)
{
    unsigned char *bytes = dq_tensor_mutable_data(tensor);
    const size_t stride = dq_tensor_dtype(tensor) == DQ_INT64 ? sizeof(int64_t) : 1;
    for (size_t k = 0; k < dq_tensor_size(tensor) / stride; k++)
        bytes[k * stride] = dq_tensor_dtype(tensor) == DQ_BOOL ? k & 1 : k & 3;
    for (size_t k = 0; dq_tensor_dtype(tensor) == DQ_STRING && k < dq_tensor_count(tensor); k++)
        TRY(dq_tensor_set_string(tensor, k, "a b,c", k % 6, err));
    return DQ_OK;
}

/* A list holds one tensor of that many elements. */
static dq_status make_input(const dq_value_info *info, int64_t unknown, dq_tensor **out, dq_error *err)
{
    int64_t dims[DQ_MAX_RANK] = {unknown};
    const bool plain = info->kind == DQ_KIND_TENSOR;
    const size_t rank = plain ? info->rank : 1;
    dq_tensor *item = NULL;
    for (size_t k = 0; plain && k < rank; k++)
        dims[k] = info->dims[k] < 0 ? unknown : info->dims[k];
    TRY(dq_tensor_create(plain ? info->dtype : info->item_dtype, rank, dims, &item, err));
    TRY(fill(item, err));
    *out = item;
    if (info->kind == DQ_KIND_SEQUENCE ||
        (info->kind == DQ_KIND_OPTIONAL && info->item_kind == DQ_KIND_SEQUENCE))
        TRY(dq_sequence_create(info->item_dtype, 1, (dq_tensor *[]){item}, out, err));
    item = *out;
    if (info->kind == DQ_KIND_OPTIONAL)
        TRY(dq_optional_create(info->item_kind, info->item_dtype, item, out, err));
    return DQ_OK;
}

static int make_inputs(trial *t, const dq_model *model)
{
    t->shapes = 1;
    for (size_t i = 0; i < dq_model_input_count(model) && i < MAX_INPUTS; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        dq_error err;
        if (dq_model_input(model, i, &info, NULL) != DQ_OK || info.rank > DQ_MAX_RANK)
            return 1;
        if (info.optional)
            continue;
        for (unsigned shape = 0; shape < SHAPES; shape++)
            if (make_input(&info, UNKNOWN_DIM + shape, &t->feeds[shape].inputs[i], &err) != DQ_OK) {
                fprintf(stderr, "%s: input '%s': %s\n", t->path, info.name, err.message);
                return 1;
            }
        for (size_t k = 0; k < info.rank; k++)
            if (info.dims[k] < 0)
                t->shapes = SHAPES;
    }
    return 0;
}

static dq_status make_target(trial *t, pass *p, size_t i)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    const dq_tensor *out = NULL;
    TRY(dq_model_output(p->model, i, &info, NULL));
    TRY(dq_session_get_output(p->session, info.name, &out, &p->err));
    if (dq_tensor_kind(out) != DQ_KIND_TENSOR || dq_tensor_dtype(out) == DQ_STRING)
        return DQ_OK;
    return dq_tensor_create(dq_tensor_dtype(out), dq_tensor_rank(out), dq_tensor_dims(out), &t->targets[i],
                            &p->err);
}

/* Of a model that takes the first set of shapes only, the others are left out. */
static dq_status run_first(trial *t, pass *p)
{
    uint64_t hashes[SHAPES];
    if (t->shapes > 1 && run_feeds(t, p, hashes) != DQ_OK)
        t->shapes = 1;
    TRY(run_feeds(t, p, hashes));
    for (unsigned i = 0; i < t->shapes; i++)
        t->feeds[i].expected = hashes[i];
    return DQ_OK;
}

/* Makes the inputs, and finds what the outputs should be. */
static int find_wanted(trial *t)
{
    pass p = {0};
    dq_status status = open_model(t, &p);
    t->refused = status == DQ_OK && dq_model_check(p.model, NULL, NULL, &p.err) != DQ_OK;
    if (t->refused) {
        close_pass(&p);
        return 0;
    }
    int code = status == DQ_OK ? make_inputs(t, p.model) : 1;
    if (code == 0)
        status = open_session(t, &p);
    if (status == DQ_OK && code == 0)
        status = run_first(t, &p);
    if (status == DQ_OK && code == 0 && t->shapes > 1 && (status = set_feed(t, 0, &p)) == DQ_OK)
        status = dq_session_run(p.session, &p.err);
    for (size_t i = 0; status == DQ_OK && code == 0 && i < dq_model_output_count(p.model) && i < MAX_INPUTS;
         i += 2)
        status = make_target(t, &p, i);
    if (status != DQ_OK)
        fprintf(stderr, "%s\n", p.err.message);
    close_pass(&p);
    return status == DQ_OK ? code : 1;
}

static int try_model(const char *path, unsigned threads, bool warm)
{
    trial t = {.path = path, .threads = threads};
    dq_error err;
    size_t failures = 0, refusals = 0;
    int code = warm && dq_schemas_create(&t.schemas, &err) != DQ_OK;
    if (code == 0)
        code = find_wanted(&t);
    if (code == 0)
        code = sweep(&t, &failures, &refusals);
    for (size_t i = 0; i < MAX_INPUTS; i++) {
        for (unsigned shape = 0; shape < SHAPES; shape++)
            dq_tensor_free(t.feeds[shape].inputs[i]);
        dq_tensor_free(t.targets[i]);
    }
    dq_schemas_free(t.schemas);
    if (code == 0 && refusals == 0) {
        fprintf(stderr, "%s: no allocation was missed\n", path);
        code = 1;
    }
    if (code == 0)
        printf("%s: %u set%s of shapes, %zu allocations failed in turn, %zu were missed and said so\n", path,
               t.shapes, t.shapes == 1 ? "" : "s", failures, refusals);
    return code;
}

int main(int argc, char **argv)
{
    bool warm = false;
    unsigned threads = 1;
    int passed = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--warm") == 0)
            warm = true;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            threads = (unsigned)atoi(argv[++i]);
        else if (try_model(argv[i], threads, warm) == 0)
            passed++;
        else
            failed++;
    }
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
}
