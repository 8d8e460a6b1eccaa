/* SPDX-License-Identifier: Apache-2.0 */
/* Looking into sessions through the public header: plans without a run, shapes before one, steps, memory. The
 * argument is the folder of the shipped examples. */
#include "inspected.h"
#include "small_model.h"

static const char *examples;
static const char *const names[] = {"digits_qdq.onnx", "digits_qoperator.onnx", "digits_dynamic.onnx"};
enum { MODELS = 3, BATCHES = 3 };
static const int64_t batches[BATCHES] = {1, 7, 1024}; /* the last one runs by slices, where the model can */

static void holds(bool good)
{
    ck_assert_msg(good, "%s", fault);
}

static void load_example(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", examples, name);
    must(dq_model_load(path, NULL, &model, &err));
}

/* A tensor of zeros for the one input, which takes batches of pictures. */
static const dq_shape *set_batch(dq_session *of, int64_t batch)
{
    static int64_t dims[DQ_MAX_RANK];
    static dq_shape shape = DQ_SHAPE_INIT;
    dq_value_info info = DQ_VALUE_INFO_INIT;
    dq_tensor *x = NULL;
    must(dq_model_input(model, 0, &info, &err));
    for (size_t d = 0; d < info.rank; d++)
        dims[d] = info.dims[d] < 0 ? batch : info.dims[d];
    must(dq_tensor_create(info.dtype, info.rank, dims, &x, &err));
    must(dq_session_set_input(of, info.name, keep(x), &err));
    shape.name = info.name;
    shape.rank = info.rank;
    shape.dims = dims;
    return &shape;
}

static void count_records(void *arg, const dq_log_record *record)
{
    (void)record;
    ++*(size_t *)arg;
}

/* ---- Prepare ------------------------------------------------------------------------------------------- */

START_TEST(a_prepared_session_plans_no_more)
{
    size_t records = 0;
    const dq_tensor *y = NULL;
    load_example(names[_i]);
    open_session(1, false, count_records, &records);
    set_batch(session, 3);
    must(dq_session_prepare(session, &err));
    ck_assert_uint_gt(records, 0);
    ck_assert_uint_gt(dq_session_step_count(session), 0);
    const size_t prepared = records;
    must(dq_session_run(session, &err));
    ck_assert_uint_eq(records, prepared);
    dq_value_info output = DQ_VALUE_INFO_INIT;
    must(dq_model_output(model, 0, &output, &err));
    must(dq_session_get_output(session, output.name, &y, &err));
    must(dq_session_prepare(session, &err));
    ck_assert_int_eq(dq_session_get_output(session, output.name, &y, &err), DQ_INVALID_ARGUMENT);
}
END_TEST

/* Two convolutions and a matrix: 25,600 multiply-adds an image, whether the batch runs in tiles or not. */
START_TEST(multiply_adds_follow_from_shapes)
{
    enum { PER_IMAGE = 8 * 64 * 9 + 16 * 16 * 72 + 256 * 10 };
    load_example(names[_i]);
    open_session(1, false, NULL, NULL);
    for (size_t k = 0; k < BATCHES; k++) {
        uint64_t macs = 0, bytes = 0;
        set_batch(session, batches[k]);
        must(dq_session_prepare(session, &err));
        for (size_t i = 0; i < dq_session_step_count(session); i++) {
            dq_step_info step = DQ_STEP_INFO_INIT;
            must(dq_session_step(session, i, &step, &err));
            ck_assert_uint_le(step.macs, step.work);
            ck_assert_uint_gt(step.bytes, 0);
            macs += step.macs;
            bytes += step.bytes;
        }
        ck_assert_uint_eq(macs, (uint64_t)(PER_IMAGE * batches[k]));
        ck_assert_uint_gt(bytes, (uint64_t)batches[k] * (64 * 4 + 512 + 256 + 40)); /* input, results */
    }
}
END_TEST

START_TEST(what_a_session_without_a_plan_refuses)
{
    dq_step_info step = DQ_STEP_INFO_INIT;
    dq_memory_info memory = DQ_MEMORY_INFO_INIT;
    lifetimes all = {0};
    load_example(names[0]);
    open_session(1, false, NULL, NULL);
    ck_assert_uint_eq(dq_session_step_count(session), 0);
    refused(dq_session_step(session, 0, &step, &err), DQ_INVALID_ARGUMENT,
            "dq_session_step: the session has not planned, expected dq_session_prepare or a run first");
    ck_assert_int_eq(dq_session_memory(session, &memory, &err), DQ_INVALID_ARGUMENT);
    ck_assert_int_eq(dq_session_lifetimes(session, add_lifetime, &all, &err), DQ_INVALID_ARGUMENT);
    ck_assert_int_eq(dq_session_prepare(session, &err), DQ_BAD_INPUT); /* no input is set */
    refused(dq_session_prepare(NULL, &err), DQ_INVALID_ARGUMENT, "dq_session_prepare: session is NULL");
    set_batch(session, 1);
    must(dq_session_prepare(session, &err));
    const size_t count = dq_session_step_count(session);
    ck_assert_int_eq(dq_session_step(session, count, &step, &err), DQ_INVALID_ARGUMENT);
    ck_assert_int_eq(dq_session_step(session, 0, NULL, &err), DQ_INVALID_ARGUMENT);
    refused(dq_session_lifetimes(session, NULL, NULL, &err), DQ_INVALID_ARGUMENT,
            "dq_session_lifetimes: visit is NULL");
}
END_TEST

/* ---- Steps, lifetimes, shapes over the examples -------------------------------------------------------- */

/* By number: a model, fused or not, one thread or two. */
static void open_example(int number, const char **name)
{
    *name = names[number % MODELS];
    load_example(*name);
    open_session(number / (2 * MODELS) ? 2 : 1, number / MODELS % 2, NULL, NULL);
}

enum { OPENED = 4 * MODELS };

START_TEST(each_node_is_covered_by_one_step)
{
    const char *name;
    open_example(_i, &name);
    for (int i = 0; i < BATCHES; i++) {
        set_batch(session, batches[i]);
        must(dq_session_prepare(session, &err));
        holds(check_steps(model, session));
    }
    /* a plan that was there before, and one more output, at which fusion stops */
    dq_value_info info = DQ_VALUE_INFO_INIT;
    dq_graph_info g = DQ_GRAPH_INFO_INIT;
    dq_model_info main_graph = DQ_MODEL_INFO_INIT;
    dq_node_info first = DQ_NODE_INFO_INIT;
    set_batch(session, batches[0]);
    must(dq_session_prepare(session, &err));
    holds(check_steps(model, session));
    must(dq_model_describe(model, &main_graph, &err));
    must(dq_graph_describe(main_graph.graph, &g, &err));
    must(dq_node_describe(g.nodes[0], &first, &err));
    must(dq_value_describe(first.outputs[0], &info, &err));
    must(dq_session_add_output(session, info.name, &err));
    ck_assert_uint_eq(dq_session_step_count(session), 0);
    must(dq_session_prepare(session, &err));
    holds(check_steps(model, session));
}
END_TEST

START_TEST(values_share_no_bytes_at_the_same_time)
{
    const char *name;
    size_t count;
    open_example(_i, &name);
    for (int i = 0; i < BATCHES; i++) {
        set_batch(session, batches[i]);
        must(dq_session_prepare(session, &err));
        holds(check_lifetimes(session, &count));
        ck_assert_uint_gt(count, 0);
    }
}
END_TEST

START_TEST(shapes_are_those_of_a_run)
{
    const char *name;
    size_t shaped = 0;
    dq_session *teller = session = NULL;
    open_example(_i, &name);
    teller = session;
    open_session(_i / (2 * MODELS) ? 2 : 1, _i / MODELS % 2, NULL, NULL);
    for (int i = 0; i < BATCHES; i++) {
        const dq_shape *shape = set_batch(session, batches[i]);
        must(dq_session_run(session, &err));
        holds(check_told(teller, session, 1, shape, &shaped));
    }
    ck_assert_uint_ge(shaped, BATCHES);
    ck_assert_uint_eq(dq_session_step_count(teller), 0); /* no plan of its own */
    dq_session_free(teller);
}
END_TEST

/* ---- A batch that runs by slices ----------------------------------------------------------------------- */

static void find_slices(void *arg, const dq_log_record *record)
{
    bool *found = arg;
    *found = *found || strstr(record->message, "nodes run in batch tiles");
}

static void pool(const char *in, const char *out)
{
    static const int64_t three[] = {3, 3}, ones[] = {1, 1, 1, 1};
    const dq_attribute attrs[] = {
        {.size = sizeof *attrs, .name = "kernel_shape", .kind = DQ_ATTRIBUTE_INTS, .ints = three, .count = 2},
        {.size = sizeof *attrs, .name = "pads", .kind = DQ_ATTRIBUTE_INTS, .ints = ones, .count = 4}};
    must(add_node(b, "", "MaxPool", out, 1, &in, 1, &out, 2, attrs, &err));
}

/* Pools over a batch of large pictures, then a sum over the whole batch. */
START_TEST(slices_are_listed_once_with_their_memory)
{
    enum { PICTURES = 8, CHANNELS = 16, SIDE = 96, POOLS = 4 };
    static float x[PICTURES * CHANNELS * SIDE * SIDE];
    const int64_t shape[] = {PICTURES, CHANNELS, SIDE, SIDE};
    const char *const pooled[] = {"x", "a", "b", "c", "d"};
    bool is_batched = false;
    size_t count = 0, shaped = 0;
    dq_step_info first = DQ_STEP_INFO_INIT;
    dq_session *teller = NULL;
    begin();
    input("x", DQ_FLOAT, 4, shape);
    for (int i = 0; i < POOLS; i++)
        pool(pooled[i], pooled[i + 1]);
    node("ReduceMax", "d", NULL, "y");
    output("y");
    output("b");
    must(dq_builder_finish(b, NULL, &model, &err));
    open_session((unsigned)_i, false, find_slices, &is_batched);
    teller = session;
    open_session((unsigned)_i, false, find_slices, &is_batched);
    must(dq_session_set_input(session, "x", over(DQ_FLOAT, 4, shape, x), &err));
    must(dq_session_run(session, &err));
    ck_assert(is_batched);
    ck_assert_uint_eq(dq_session_step_count(session), POOLS + 1);
    must(dq_session_step(session, 0, &first, &err));
    ck_assert_uint_eq(first.work, 1 + 9 * sizeof x / sizeof *x); /* all pictures, though some at a time */
    holds(check_steps(model, session));
    holds(check_lifetimes(session, &count));
    ck_assert_uint_gt(count, POOLS);
    holds(check_told(teller, session, 0, NULL, &shaped));
    ck_assert_uint_eq(shaped, 2);
    dq_session_free(teller);
}
END_TEST

/* ---- Shapes: what is given, and what is not ------------------------------------------------------------ */

static int take_dims(void *arg, const dq_value_info *info)
{
    int64_t *dims = arg;
    ck_assert(info->has_shape);
    for (size_t d = 0; d < info->rank; d++)
        dims[d] = info->dims[d];
    dims[info->rank] = (int64_t)info->dtype;
    return 0;
}

/* y = x + x, of N rows */
static void rows(void)
{
    begin();
    must(dq_builder_input(b, "x", DQ_FLOAT, 2, (int64_t[]){-1, 3}, (const char *[]){"N", NULL}, &err));
    node("Add", "x", "x", "y");
    output("y");
    finish();
}

START_TEST(an_input_that_is_not_given_has_the_shape_of_its_tensor)
{
    int64_t dims[3] = {0};
    rows();
    refused(dq_session_infer(session, 0, NULL, take_dims, dims, NULL, &err), DQ_BAD_INPUT,
            "m: the shape of input 'x' is missing; the model wants x: float[N,3]");
    must(dq_session_set_input(session, "x", over(DQ_FLOAT, 2, (int64_t[]){2, 3}, (float[6]){0}), &err));
    must(dq_session_infer(session, 0, NULL, take_dims, dims, NULL, &err));
    ck_assert_mem_eq(dims, ((int64_t[]){2, 3, DQ_FLOAT}), sizeof dims);
    /* a shape goes before the tensor, and NULL is the first input */
    const dq_shape shape = {.size = sizeof shape, .rank = 2, .dims = (int64_t[]){5, 3}};
    must(dq_session_infer(session, 1, &shape, take_dims, dims, NULL, &err));
    ck_assert_mem_eq(dims, ((int64_t[]){5, 3, DQ_FLOAT}), sizeof dims);
    must(dq_session_infer(session, 1, &shape, NULL, NULL, NULL, &err));
}
END_TEST

START_TEST(outputs_stay_while_shapes_are_asked_for)
{
    float x[3] = {1, 2, 3};
    const dq_shape shape = {.size = sizeof shape, .name = "x", .rank = 2, .dims = (int64_t[]){9, 3}};
    rows();
    must(dq_session_set_input(session, "x", over(DQ_FLOAT, 2, (int64_t[]){1, 3}, x), &err));
    must(dq_session_run(session, &err));
    must(dq_session_infer(session, 1, &shape, NULL, NULL, NULL, &err));
    ck_assert_mem_eq(data_of("y"), ((float[]){2, 4, 6}), sizeof x);
}
END_TEST

START_TEST(shapes_that_do_not_fit_are_refused)
{
    dq_shape shape = {.size = sizeof shape, .name = "x", .rank = 2, .dims = (int64_t[]){5, 4}};
    rows();
    ck_assert_int_eq(dq_session_infer(session, 1, &shape, NULL, NULL, NULL, &err), DQ_BAD_INPUT);
    shape.dims = (int64_t[]){-1, 3};
    ck_assert_int_eq(dq_session_infer(session, 1, &shape, NULL, NULL, NULL, &err), DQ_BAD_INPUT);
    shape.dims = NULL;
    refused(dq_session_infer(session, 1, &shape, NULL, NULL, NULL, &err), DQ_INVALID_ARGUMENT,
            "dq_session_infer: inputs[0].dims is NULL, expected 2 dimensions");
    shape.name = "w";
    ck_assert_int_eq(dq_session_infer(session, 1, &shape, NULL, NULL, NULL, &err), DQ_BAD_INPUT);
    refused(dq_session_infer(session, 1, NULL, NULL, NULL, NULL, &err), DQ_INVALID_ARGUMENT,
            "dq_session_infer: inputs is NULL");
    shape.size = 0;
    ck_assert_int_eq(dq_session_infer(session, 1, &shape, NULL, NULL, NULL, &err), DQ_INVALID_ARGUMENT);
    refused(dq_session_infer(NULL, 0, NULL, NULL, NULL, NULL, &err), DQ_INVALID_ARGUMENT,
            "dq_session_infer: session is NULL");
}
END_TEST

static int has_no_shape(void *arg, const dq_value_info *info)
{
    ck_assert(!info->has_shape);
    ck_assert_int_eq(info->dtype, DQ_INT64);
    ++*(int *)arg;
    return 0;
}

START_TEST(a_shape_that_depends_on_data_is_not_told)
{
    int outputs = 0;
    dq_step_info step = DQ_STEP_INFO_INIT;
    begin();
    input("x", DQ_FLOAT, 1, (int64_t[]){4});
    node("NonZero", "x", NULL, "y");
    output("y");
    finish();
    must(dq_session_infer(session, 0, NULL, has_no_shape, &outputs, NULL, &err));
    ck_assert_int_eq(outputs, 1);
    must(dq_session_set_input(session, "x", row(4, (float[]){0, 1, 0, 1}), &err));
    must(dq_session_run(session, &err));
    ck_assert_uint_eq(dq_session_step_count(session), 1);
    must(dq_session_step(session, 0, &step, &err));
    ck_assert_str_eq(step.op, "NonZero-13");
    ck_assert_ptr_nonnull(step.decision);
    ck_assert_uint_eq(step.work, 0);
    ck_assert_uint_eq(step.written_count, 1);
    ck_assert_ptr_eq(step.written[0], step.node);
}
END_TEST

/* ---- What steps cover ---------------------------------------------------------------------------------- */

/* DequantizeLinear -> Relu -> Sigmoid -> QuantizeLinear, and a Reshape of the result. */
static void quantized_relu(void)
{
    const int64_t shape[] = {2, 2};
    static int64_t four[] = {4};
    begin();
    input("x", DQ_INT8, 2, shape);
    constant("scale", DQ_FLOAT, 0, NULL, (float[]){0.5f});
    constant("zero", DQ_INT8, 0, NULL, (int8_t[]){0});
    constant("flat", DQ_INT64, 1, (int64_t[]){1}, four);
    const char *outs[] = {"real", "codes"};
    must(add_node(b, "", "DequantizeLinear", "dq", 3, (const char *[]){"x", "scale", "zero"}, 1, outs, 0,
                  NULL, &err));
    node("Relu", "real", NULL, "positive");
    node("Sigmoid", "positive", NULL, "half");
    must(add_node(b, "", "QuantizeLinear", "q", 3, (const char *[]){"half", "scale", "zero"}, 1, outs + 1, 0,
                  NULL, &err));
    node("Reshape", "codes", "flat", "y");
    output("y");
    finish();
    must(dq_session_set_input(session, "x", over(DQ_INT8, 2, shape, (int8_t[]){1, 2, 3, 4}), &err));
}

START_TEST(a_fused_step_covers_what_it_replaces_and_views_of_its_result)
{
    dq_step_info step = DQ_STEP_INFO_INIT;
    dq_node_info node = DQ_NODE_INFO_INIT;
    quantized_relu();
    must(dq_session_prepare(session, &err));
    ck_assert_uint_eq(dq_session_step_count(session), 1);
    must(dq_session_step(session, 0, &step, &err));
    must(dq_node_describe(step.node, &node, &err));
    ck_assert(node.synthetic);
    ck_assert_str_eq(step.op, "dqrun.TableLookup-1");
    ck_assert_uint_eq(step.written_count, 5);
    ck_assert_uint_eq(step.work, 5); /* one for the node, and its elements */
    holds(check_steps(model, session));
    /* attributes and values of a node that fusion made can be looked at, too */
    for (size_t i = 0; i < node.input_count; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        must(dq_value_describe(node.inputs[i], &info, &err));
        ck_assert_ptr_nonnull(info.type);
    }
}
END_TEST

int main(int argc, char **argv)
{
    examples = argc > 1 ? argv[1] : "examples";
    test_program tests = test_program_begin("session_inspect", NULL, tear_down);
    add_loop_test(&tests, a_prepared_session_plans_no_more, 0, MODELS);
    add_loop_test(&tests, multiply_adds_follow_from_shapes, 0, MODELS);
    add_test(&tests, what_a_session_without_a_plan_refuses);
    add_loop_test(&tests, each_node_is_covered_by_one_step, 0, OPENED);
    add_loop_test(&tests, values_share_no_bytes_at_the_same_time, 0, OPENED);
    add_loop_test(&tests, shapes_are_those_of_a_run, 0, OPENED);
    add_loop_test(&tests, slices_are_listed_once_with_their_memory, 1, 3);
    add_test(&tests, an_input_that_is_not_given_has_the_shape_of_its_tensor);
    add_test(&tests, outputs_stay_while_shapes_are_asked_for);
    add_test(&tests, shapes_that_do_not_fit_are_refused);
    add_test(&tests, a_shape_that_depends_on_data_is_not_told);
    add_test(&tests, a_fused_step_covers_what_it_replaces_and_views_of_its_result);
    return test_program_run(&tests);
}
