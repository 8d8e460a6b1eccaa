/* SPDX-License-Identifier: Apache-2.0 */
/* dq_allocator: the long-lived memory of models and sessions comes from the caller's functions, each release
 * has the size of its allocation, and a refused allocation gives DQ_OUT_OF_MEMORY and leaks nothing. */
#include "counted.h"
#include "onnx_writer.h"
#include "small_model.h"

enum { IN = 64, OUT = 8 };

static counted model_heap, session_heap;
static ow file;       /* the model that make_file writes */
static float x[IN];   /* its input */
static float y0;      /* the first element of its output y */
static float weights; /* each element of the matrix */

/* ---- A model of all kinds of memory -------------------------------------------------------------------- */

static void floats(ow *graph, const char *name, size_t rank, const int64_t *dims, size_t count, float value)
{
    float data[IN * OUT];
    ow tensor = ow_tensor(name, DQ_FLOAT, rank, dims);
    for (size_t i = 0; i < count; i++)
        data[i] = value;
    ow_raw(&tensor, 9, data, count * sizeof *data);
    ow_msg(graph, OW_GRAPH_INIT, &tensor);
}

static void scalar(ow *graph, const char *name, int dtype, int64_t value, size_t bytes)
{
    ow tensor = ow_tensor(name, dtype, 0, NULL);
    ow_raw(&tensor, 9, &value, bytes);
    ow_msg(graph, OW_GRAPH_INIT, &tensor);
}

/* state' = state + p of the graph outside, and each state before. */
static ow body(void)
{
    ow graph = {0}, attribute = {0}, more = {0};
    ow_str(&graph, 2, "body");
    ow_node(&graph, OW_GRAPH_NODE, "b0", "Identity", "", "go", "go_on", NULL);
    ow_node(&graph, OW_GRAPH_NODE, "b1", "Add", "", "state,p", "next", NULL);
    ow_node(&graph, OW_GRAPH_NODE, "b2", "Identity", "", "state", "before", NULL);
    ow_value(&graph, OW_GRAPH_IN, "i", DQ_INT64, 0, NULL);
    ow_value(&graph, OW_GRAPH_IN, "go", DQ_BOOL, 0, NULL);
    ow_value(&graph, OW_GRAPH_IN, "state", DQ_FLOAT, -1, NULL);
    ow_value(&graph, OW_GRAPH_OUT, "go_on", DQ_BOOL, 0, NULL);
    ow_value(&graph, OW_GRAPH_OUT, "next", DQ_FLOAT, -1, NULL);
    ow_value(&graph, OW_GRAPH_OUT, "before", DQ_FLOAT, -1, NULL);
    ow_str(&attribute, 1, "body");
    ow_msg(&attribute, 6, &graph);
    ow_int(&attribute, 20, 5);
    ow_msg(&more, OW_NODE_ATTR, &attribute);
    return more;
}

/* Packed weights, a folded constant, a value that is an output, a shape that depends on data, an inner graph
 * and a sequence. */
static void make_file(void)
{
    static const char *const outputs[] = {"y", "late", "state", "states"};
    static const int types[] = {DQ_FLOAT, DQ_INT64, DQ_FLOAT, DQ_FLOAT};
    const ow loop = body();
    ow graph = {0};
    weights = 0.5f;
    for (int i = 0; i < IN; i++)
        x[i] = (float)i;
    y0 = IN * (IN - 1) / 2 * weights + 9;
    ow_str(&graph, 2, "g");
    ow_value(&graph, OW_GRAPH_IN, "x", DQ_FLOAT, -1, NULL);
    floats(&graph, "w", 2, (int64_t[]){IN, OUT}, IN * OUT, weights);
    floats(&graph, "k", 1, (int64_t[]){OUT}, OUT, 3);
    scalar(&graph, "trips", DQ_INT64, 3, 8);
    scalar(&graph, "true", DQ_BOOL, 1, 1);
    ow_node(&graph, OW_GRAPH_NODE, "n0", "MatMul", "", "x,w", "p", NULL);
    ow_node(&graph, OW_GRAPH_NODE, "n1", "Mul", "", "k,k", "folded", NULL);
    ow_node(&graph, OW_GRAPH_NODE, "n2", "Add", "", "p,folded", "y", NULL);
    ow_node(&graph, OW_GRAPH_NODE, "n3", "NonZero", "", "p", "late", NULL);
    ow_node(&graph, OW_GRAPH_NODE, "n4", "Loop", "", "trips,true,p", "state,states", &loop);
    ow_node(&graph, OW_GRAPH_NODE, "n5", "SequenceConstruct", "", "p,y", "list", NULL);
    ow_node(&graph, OW_GRAPH_NODE, "n6", "SequenceLength", "", "list", "length", NULL);
    for (int i = 0; i < 4; i++)
        ow_value(&graph, OW_GRAPH_OUT, outputs[i], types[i], -1, NULL);
    ow_value(&graph, OW_GRAPH_OUT, "length", DQ_INT64, 0, NULL);
    file = ow_model(&graph);
}

/* ---- Loading and running ------------------------------------------------------------------------------- */

static ptrdiff_t read_file(void *arg, void *buffer, size_t workspace)
{
    size_t *at = arg, n = file.size - *at;
    n = n < workspace ? n : workspace;
    memcpy(buffer, file.bytes + *at, n);
    *at += n;
    return (ptrdiff_t)n;
}

static dq_status load(void)
{
    size_t at = 0;
    dq_load_options options = DQ_LOAD_OPTIONS_INIT;
    dq_allocator allocator = counted_allocator(&model_heap);
    options.allocator = &allocator;
    const dq_status status = dq_model_load_read(read_file, &at, "m", &options, &model, &err);
    memset(&allocator, 0xFF, sizeof allocator); /* it was copied */
    return status;
}

static dq_status open_with_allocator(void)
{
    dq_session_options options = DQ_SESSION_OPTIONS_INIT;
    dq_allocator allocator = counted_allocator(&session_heap);
    options.allocator = &allocator;
    options.threads = 1;
    const dq_status status = dq_session_create(model, &options, &session, &err);
    memset(&allocator, 0xFF, sizeof allocator);
    return status;
}

static dq_status run(size_t rows)
{
    enum { MAX_ROWS = 4 };
    float in[MAX_ROWS * IN];
    dq_tensor *t = NULL;
    for (size_t i = 0; i < rows && i < MAX_ROWS; i++)
        memcpy(in + i * IN, x, sizeof x);
    must(dq_tensor_wrap(DQ_FLOAT, 2, (int64_t[]){(int64_t)rows, IN}, in, rows * sizeof x, &t, &err));
    must(dq_session_set_input(session, "x", t, &err));
    const dq_status status = dq_session_run(session, &err);
    dq_error kept = err;
    must(dq_session_set_input(session, "x", NULL, &err));
    err = kept;
    dq_tensor_free(t);
    return status;
}

/* Takes outputs of the last run and looks at them; they outlive what follows. */
static dq_status take(size_t rows)
{
    static const char *const names[] = {"y", "late", "states", "length"};
    for (int i = 0; i < 4; i++) {
        dq_tensor *t = NULL;
        const dq_status status = dq_session_take_output(session, names[i], &t, &err);
        if (status != DQ_OK)
            return status;
        keep(t);
        if (i == 0)
            ck_assert(((const float *)dq_tensor_data(t))[0] == y0);
        if (i == 1)
            ck_assert_int_eq(dq_tensor_dims(t)[1], (int64_t)rows * OUT);
        if (i == 2)
            ck_assert(((const float *)dq_tensor_data(t))[2 * rows * OUT] == 3 * (y0 - 9));
    }
    return DQ_OK;
}

static dq_status add_output(void)
{
    return dq_session_add_output(session, "list", &err);
}

static void set_up(void)
{
    model_heap = session_heap = (counted){0};
    make_file();
}

static void all_is_released(void)
{
    tear_down();
    ck_assert_uint_eq(model_heap.live, 0);
    ck_assert_uint_eq(model_heap.bytes, 0);
    ck_assert_uint_eq(session_heap.live, 0);
    ck_assert_uint_eq(session_heap.bytes, 0);
}

START_TEST(models_and_sessions_release_all)
{
    must(load());
    ck_assert_uint_ge(model_heap.bytes, file.size); /* what was read */
    ck_assert_uint_eq(session_heap.allocations, 0);
    must(open_with_allocator());
    ck_assert_uint_gt(session_heap.live, 0);
    const size_t before = model_heap.bytes;
    must(run(1));
    ck_assert_uint_ge(model_heap.bytes, before + IN * OUT * sizeof(float)); /* packed weights */
    for (size_t rows = 1; rows <= 4; rows++)
        for (int i = 0; i < 2; i++) {
            must(run(rows));
            must(take(rows));
        }
    const size_t ran = model_heap.bytes;
    must(run(4));
    ck_assert_uint_eq(model_heap.bytes, ran);
    must(add_output());
    must(run(2));
    dq_session_free(session); /* what was taken lives on */
    session = NULL;
    ck_assert_uint_gt(session_heap.live, 0);
    dq_model_free(model);
    model = NULL;
    ck_assert_uint_eq(model_heap.live, 0);
    ck_assert(((const float *)dq_tensor_data(made[0]))[0] == y0);
}
END_TEST

/* After the first two runs of a shape the session asks for no memory, but for what is taken. */
START_TEST(later_runs_allocate_nothing)
{
    must(load());
    must(open_with_allocator());
    must(run(2));
    must(run(2));
    const size_t allocations = session_heap.allocations, of_model = model_heap.allocations;
    must(run(2));
    ck_assert_uint_eq(session_heap.allocations, allocations);
    ck_assert_uint_eq(model_heap.allocations, of_model);
}
END_TEST

/* ---- Memory that is refused ---------------------------------------------------------------------------- */

static dq_status whole_life(size_t rows)
{
    dq_status status = model ? DQ_OK : load();
    if (status == DQ_OK && !session)
        status = open_with_allocator();
    for (int i = 0; i < 2 && status == DQ_OK; i++) {
        status = run(rows);
        if (status == DQ_OK)
            status = take(rows);
    }
    if (status == DQ_OK)
        status = add_output();
    return status;
}

/* What memory was refused to fails with DQ_OUT_OF_MEMORY, and can be done again. */
static void refuse_each(counted *heap)
{
    size_t n = 1;
    for (;; n++) {
        heap->allocations = 0;
        heap->refused = false;
        heap->refuse_at = n;
        const dq_status status = whole_life(2);
        heap->refuse_at = 0;
        if (!heap->refused) {
            must(status);
            break;
        }
        ck_assert_msg(status == DQ_OUT_OF_MEMORY, "allocation %zu: status %d: %s", n, (int)status,
                      err.message);
        ck_assert_ptr_nonnull(strstr(err.message, "memory"));
        must(whole_life(2)); /* with what is there */
        all_is_released();
    }
    ck_assert_uint_gt(n, 20);
}

START_TEST(models_may_be_refused_memory)
{
    refuse_each(&model_heap);
}
END_TEST

START_TEST(sessions_may_be_refused_memory)
{
    refuse_each(&session_heap);
}
END_TEST

/* ---- Other ways ---------------------------------------------------------------------------------------- */

START_TEST(built_models_have_the_allocator_of_what_follows)
{
    float one = 1, in[] = {1, 2};
    dq_load_options options = DQ_LOAD_OPTIONS_INIT;
    const dq_allocator allocator = counted_allocator(&model_heap);
    options.allocator = &allocator;
    begin();
    input("x", DQ_FLOAT, 1, (int64_t[]){2});
    constant("one", DQ_FLOAT, 0, NULL, &one);
    node("Add", "x", "one", "y");
    output("y");
    must(dq_builder_finish(b, &options, &model, &err));
    ck_assert_uint_gt(model_heap.live, 0);
    must(open_with_allocator());
    must(dq_session_set_input(session, "x", row(2, in), &err));
    must(dq_session_run(session, &err));
    ck_assert(((const float *)data_of("y"))[1] == 3);
}
END_TEST

START_TEST(allocators_without_functions_are_refused)
{
    dq_allocator allocator = DQ_ALLOCATOR_INIT;
    dq_load_options load_options = DQ_LOAD_OPTIONS_INIT;
    dq_session_options options = DQ_SESSION_OPTIONS_INIT;
    load_options.allocator = options.allocator = &allocator;
    refused(dq_model_load_memory(file.bytes, file.size, "m", &load_options, &model, &err),
            DQ_INVALID_ARGUMENT, "dq_model_load_memory: options.allocator.allocate is NULL");
    must(dq_model_load_memory(file.bytes, file.size, "m", NULL, &model, &err));
    allocator.allocate = counted_allocate;
    refused(dq_session_create(model, &options, &session, &err), DQ_INVALID_ARGUMENT,
            "dq_session_create: options.allocator.release is NULL");
    allocator.size = 0;
    ck_assert_int_eq(dq_session_create(model, &options, &session, &err), DQ_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "dq_session_create: options.allocator.size is 0"));
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("allocator", set_up, all_is_released);
    add_test(&tests, models_and_sessions_release_all);
    add_test(&tests, later_runs_allocate_nothing);
    add_test(&tests, models_may_be_refused_memory);
    add_test(&tests, sessions_may_be_refused_memory);
    add_test(&tests, built_models_have_the_allocator_of_what_follows);
    add_test(&tests, allocators_without_functions_are_refused);
    return test_program_run(&tests);
}
