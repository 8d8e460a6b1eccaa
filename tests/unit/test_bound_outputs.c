/* SPDX-License-Identifier: Apache-2.0 */
/* src/exec/bound_outputs.c: outputs in the caller's memory, inputs that they overlap, and traces that show
 * them. */
#include "onnx_writer.h"
#include "small_model.h"

#include <stdlib.h>
#include <string.h>

/* y = s + x, z = relu(y), all of four floats. */
static void make_sum(void)
{
    begin();
    input("s", DQ_FLOAT, 1, (int64_t[]){4});
    input("x", DQ_FLOAT, 1, (int64_t[]){4});
    node("Add", "s", "x", "y");
    node("Relu", "y", NULL, "z");
    output("y");
    output("z");
    finish();
}

/* ---- Where outputs go ---------------------------------------------------------------------------------- */

static void count_record(void *arg, const dq_log_record *record)
{
    (void)record;
    ++*(unsigned *)arg;
}

START_TEST(outputs_are_computed_in_memory_that_moves)
{
    float s[4] = {-1, 2, -3, 4}, x[4] = {0, 1, 2, -8}, y[10] = {0}, z[5];
    unsigned messages = 0, planned;
    make_sum();
    dq_session_free(session);
    open_session(1, false, count_record, &messages);
    must(dq_session_set_input(session, "s", row(4, s), &err));
    must(dq_session_set_input(session, "x", row(4, x), &err));
    must(dq_session_run(session, &err));
    planned = messages;
    for (int i = 0; i < 6; i++) {
        y[i + 4] = 77;
        must(dq_session_set_output(session, "y", row(4, y + i), &err));
        must(dq_session_set_output(session, "z", i % 2 ? row(4, z + 1) : NULL, &err));
        must(dq_session_run(session, &err));
        ck_assert_mem_eq(y + i, ((float[]){-1, 3, -1, -4}), sizeof s);
        ck_assert(y[i + 4] == 77);
        ck_assert_ptr_eq(data_of("y"), y + i);
        ck_assert_mem_eq(data_of("z"), ((float[]){0, 3, 0, 0}), sizeof s);
        ck_assert_int_eq(data_of("z") == z + 1, i % 2);
    }
    ck_assert_uint_eq(messages, planned);
}
END_TEST

START_TEST(a_state_is_updated_in_place)
{
    float s[4] = {1, 2, 3, 4}, x[4] = {1, 10, 100, -1000};
    make_sum();
    dq_tensor *state = row(4, s);
    must(dq_session_set_input(session, "s", state, &err));
    must(dq_session_set_input(session, "x", row(4, x), &err));
    must(dq_session_set_output(session, NULL, state, &err)); /* the first: y */
    for (int i = 0; i < 3; i++)
        must(dq_session_run(session, &err));
    ck_assert_mem_eq(s, ((float[]){4, 32, 303, -2996}), sizeof s);
    ck_assert_ptr_eq(data_of(NULL), s);
    ck_assert_mem_eq(data_of("z"), ((float[]){4, 32, 303, 0}), sizeof s);
}
END_TEST

START_TEST(two_inputs_overlap_the_output)
{
    enum { N = 4096 };
    static float memory[N + 5], expected[N];
    begin();
    input("s", DQ_FLOAT, 1, (int64_t[]){N});
    input("x", DQ_FLOAT, 1, (int64_t[]){N});
    node("Add", "s", "x", "a"); /* fused: any of the two may be written over */
    node("Neg", "a", NULL, "y");
    output("y");
    finish();
    for (int i = 0; i < N + 5; i++)
        memory[i] = (float)(i % 97);
    for (int i = 0; i < N; i++)
        expected[i] = -(memory[i] + memory[i + 5]);
    dq_tensor *x = row(N, memory + 5);
    must(dq_session_set_input(session, "s", row(N, memory), &err));
    must(dq_session_set_input(session, "x", x, &err));
    must(dq_session_set_output(session, "y", x, &err));
    must(dq_session_run(session, &err));
    ck_assert_mem_eq(memory + 5, expected, sizeof expected);
}
END_TEST

START_TEST(an_input_that_is_read_later_keeps_its_value)
{
    float s[4] = {-1, -2, 3, 4}, expected[4] = {-1, -2, 6, 8}, x[4] = {0};
    begin();
    input("s", DQ_FLOAT, 1, (int64_t[]){4});
    input("x", DQ_FLOAT, 1, (int64_t[]){4});
    node("Relu", "s", NULL, "y");
    node("MatMul", "s", "x", "m"); /* all of s for each element */
    node("Add", "y", "m", "n");
    node("Add", "n", "s", "z");
    output("y");
    output("z");
    finish();
    dq_tensor *state = row(4, s);
    must(dq_session_set_input(session, "s", state, &err));
    must(dq_session_set_input(session, "x", row(4, x), &err));
    must(dq_session_set_output(session, "y", state, &err));
    must(dq_session_run(session, &err));
    ck_assert_mem_eq(data_of("z"), expected, sizeof expected);
    ck_assert_mem_eq(s, ((float[]){0, 0, 3, 4}), sizeof s);
    ck_assert_ptr_ne(data_of("y"), s);
}
END_TEST

START_TEST(outputs_that_are_inputs_or_constants)
{
    float memory[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, c[4] = {10, 20, 30, 40}, k[4] = {0};
    begin();
    input("a", DQ_FLOAT, 1, (int64_t[]){4});
    input("b", DQ_FLOAT, 1, (int64_t[]){4});
    constant("c", DQ_FLOAT, 1, (int64_t[]){4}, c);
    node("Identity", "a", NULL, "p");
    node("Identity", "b", NULL, "q");
    node("Identity", "c", NULL, "k");
    output("p");
    output("q");
    output("k");
    output("a");
    finish();
    must(dq_session_set_input(session, "a", row(4, memory), &err));
    must(dq_session_set_input(session, "b", row(4, memory + 4), &err));
    must(dq_session_set_output(session, "p", row(4, memory + 5), &err)); /* over a part of b */
    must(dq_session_set_output(session, "q", row(4, memory + 1), &err));
    must(dq_session_set_output(session, "k", row(4, k), &err));
    must(dq_session_run(session, &err));
    ck_assert_mem_eq(memory, ((float[]){1, 5, 6, 7, 8, 1, 2, 3, 4}), sizeof memory);
    ck_assert_mem_eq(k, c, sizeof c);
    ck_assert_mem_eq(data_of("a"), ((float[]){1, 2, 3, 4}), sizeof c);
}
END_TEST

START_TEST(values_inside_the_graph_have_tensors_too)
{
    float s[4] = {1, 2, 3, 4}, y[4];
    begin();
    input("s", DQ_FLOAT, 1, (int64_t[]){4});
    node("Neg", "s", NULL, "y");
    node("Relu", "y", NULL, "z");
    output("z");
    finish();
    refused(dq_session_set_output(session, "y", row(4, y), &err), DQ_INVALID_ARGUMENT,
            "m: has no output 'y'");
    must(dq_session_set_input(session, "s", row(4, s), &err));
    must(dq_session_add_output(session, "y", &err));
    must(dq_session_set_output(session, "y", row(4, y), &err));
    must(dq_session_add_output(session, "s", &err));
    must(dq_session_run(session, &err));
    ck_assert_mem_eq(y, ((float[]){-1, -2, -3, -4}), sizeof y);
}
END_TEST

START_TEST(empty_outputs)
{
    float nothing[1] = {5};
    begin();
    input("s", DQ_FLOAT, 1, (int64_t[]){-1});
    node("Neg", "s", NULL, "y");
    output("y");
    finish();
    dq_tensor *empty = row(0, nothing);
    must(dq_session_set_input(session, "s", empty, &err));
    must(dq_session_set_output(session, "y", empty, &err));
    must(dq_session_run(session, &err));
    ck_assert(nothing[0] == 5);
}
END_TEST

/* ---- What is refused ----------------------------------------------------------------------------------- */

START_TEST(types_and_shapes_are_checked)
{
    float s[8] = {0}, y[8];
    int32_t whole[4];
    dq_tensor *strings = NULL, *list = NULL;
    begin();
    input("s", DQ_FLOAT, 1, (int64_t[]){-1});
    node("Neg", "s", NULL, "y");
    node("Abs", "s", NULL, "z");
    must(dq_builder_output(b, "y", DQ_FLOAT, 1, (int64_t[]){3}, NULL, &err)); /* not so */
    output("z");
    finish();
    refused(dq_session_set_output(NULL, "y", row(4, y), &err), DQ_INVALID_ARGUMENT,
            "dq_session_set_output: session is NULL");
    refused(dq_session_get_output(session, "y", NULL, &err), DQ_INVALID_ARGUMENT,
            "dq_session_get_output: out is NULL");
    refused(dq_session_set_output(session, "v", NULL, &err), DQ_INVALID_ARGUMENT, "m: has no output 'v'");
    refused(dq_session_set_output(session, "y", over(DQ_INT32, 1, (int64_t[]){4}, whole), &err), DQ_BAD_INPUT,
            "m: the tensor for output 'y' is tensor(int32), expected tensor(float)");
    must(dq_tensor_create(DQ_STRING, 0, NULL, &strings, &err));
    must(dq_sequence_create(DQ_FLOAT, 0, NULL, &list, &err));
    refused(dq_session_set_output(session, "y", keep(strings), &err), DQ_INVALID_ARGUMENT,
            "m: output 'y' cannot be written to tensor(string), expected a tensor of numbers");
    refused(dq_session_set_output(session, "y", keep(list), &err), DQ_INVALID_ARGUMENT,
            "m: output 'y' cannot be written to seq(tensor(float)), expected a tensor of numbers");

    must(dq_session_set_input(session, "s", row(5, s), &err));
    must(dq_session_set_output(session, "y", row(4, y), &err));
    refused(dq_session_run(session, &err), DQ_BAD_INPUT,
            "m: the tensor for output 'y' is float [4], expected float [5]");
    must(dq_session_set_output(session, "y", row(5, y), &err));
    must(dq_session_set_output(session, "z", over(DQ_INT32, 1, (int64_t[]){4}, whole), &err));
    refused(dq_session_run(session, &err), DQ_BAD_INPUT,
            "m: the tensor for output 'z' is int32 [4], expected float [5]");
    must(dq_session_set_output(session, "z", NULL, &err));
    must(dq_session_run(session, &err));
    ck_assert_ptr_eq(data_of("y"), y);
}
END_TEST

START_TEST(two_outputs_do_not_overlap)
{
    float s[4] = {0}, x[4] = {0}, y[8];
    make_sum();
    must(dq_session_set_input(session, "s", row(4, s), &err));
    must(dq_session_set_input(session, "x", row(4, x), &err));
    must(dq_session_set_output(session, "y", row(4, y), &err));
    must(dq_session_set_output(session, "z", row(4, y + 3), &err));
    refused(dq_session_run(session, &err), DQ_INVALID_ARGUMENT,
            "m: the tensors for outputs 'y' and 'z' overlap, expected memory for each");
    must(dq_session_set_output(session, "z", row(4, y + 4), &err));
    must(dq_session_run(session, &err));
}
END_TEST

START_TEST(a_run_that_fails_can_be_repeated)
{
    float s[4] = {1, 2, 3, 4};
    int64_t index = 4;
    begin();
    input("s", DQ_FLOAT, 1, (int64_t[]){4});
    input("i", DQ_INT64, 0, NULL);
    node("Neg", "s", NULL, "y");
    node("Gather", "y", "i", "z");
    output("y");
    output("z");
    finish();
    dq_tensor *state = row(4, s);
    must(dq_session_set_input(session, "s", state, &err));
    must(dq_session_set_input(session, "i", over(DQ_INT64, 0, NULL, &index), &err));
    must(dq_session_set_output(session, "y", state, &err));
    ck_assert_int_eq(dq_session_run(session, &err), DQ_BAD_INPUT);
    index = 1;
    memcpy(s, (float[]){1, 2, 3, 4}, sizeof s);
    must(dq_session_run(session, &err));
    ck_assert_mem_eq(s, ((float[]){-1, -2, -3, -4}), sizeof s);
    ck_assert(*(const float *)data_of("z") == -2);
}
END_TEST

/* ---- Slices of a batch --------------------------------------------------------------------------------- */

static void note_slices(void *arg, const dq_log_record *record)
{
    *(bool *)arg |= strstr(record->message, "in batch tiles") != NULL;
}

/* `middle` comes from slices, `last` from what runs behind them. */
static void make_batch(int64_t count, int64_t size, unsigned threads)
{
    begin();
    input("x", DQ_FLOAT, 2, (int64_t[]){count, size});
    node("Softmax", "x", NULL, "first");
    node("Softmax", "first", NULL, "middle");
    node("Softmax", "middle", NULL, "before");
    node("Transpose", "before", NULL, "last");
    output("middle");
    output("last");
    finish();
    bool told = false;
    dq_session_free(session);
    open_session(threads, false, note_slices, &told);
    float *zeros = calloc((size_t)(count * size), sizeof *zeros);
    must(dq_session_set_input(session, "x", over(DQ_FLOAT, 2, (int64_t[]){count, size}, zeros), &err));
    must(dq_session_run(session, &err));
    ck_assert(told);
    free(zeros);
}

/* Slices read their part of an input as long as others write to theirs of an output. */
START_TEST(outputs_of_slices_overlap_their_input)
{
    enum { COUNT = 24, SIZE = 40960, ALL = COUNT * SIZE };
    const size_t bytes = ALL * sizeof(float);
    float *memory = malloc(2 * bytes), *x = malloc(bytes), *middle = malloc(bytes), *last = malloc(bytes);
    const size_t at[] = {0, 3 * SIZE, SIZE / 2, ALL};
    const int64_t dims[] = {COUNT, SIZE};
    for (int i = 0; i < ALL; i++)
        x[i] = (float)(i % 1031) / 64;
    make_batch(COUNT, SIZE, _i ? 2 : 1);
    must(dq_session_set_input(session, "x", over(DQ_FLOAT, 2, dims, x), &err));
    must(dq_session_run(session, &err));
    memcpy(middle, data_of("middle"), bytes);
    memcpy(last, data_of("last"), bytes);
    for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
        memcpy(memory, x, bytes);
        must(dq_session_set_input(session, "x", over(DQ_FLOAT, 2, dims, memory), &err));
        must(dq_session_set_output(session, "middle", over(DQ_FLOAT, 2, dims, memory + at[k]), &err));
        must(dq_session_run(session, &err));
        ck_assert_mem_eq(memory + at[k], middle, bytes);
        ck_assert_mem_eq(data_of("last"), last, bytes);
        must(dq_session_set_output(session, "middle", NULL, &err));
        memcpy(memory, x, bytes);
        must(dq_session_set_output(session, "last",
                                   over(DQ_FLOAT, 2, (int64_t[]){SIZE, COUNT}, memory + at[k]), &err));
        must(dq_session_run(session, &err));
        ck_assert_mem_eq(memory + at[k], last, bytes);
        ck_assert_mem_eq(data_of("middle"), middle, bytes);
        must(dq_session_set_output(session, "last", NULL, &err));
    }
    free(memory);
    free(x);
    free(middle);
    free(last);
}
END_TEST

/* ---- Shapes that are known late ------------------------------------------------------------------------ */

START_TEST(late_outputs)
{
    float s[4] = {0, 2, 0, 4}, x[4] = {1, 0, 0, 0};
    int64_t where[4] = {9, 9, 9, 9}, back[4];
    begin();
    input("s", DQ_FLOAT, 1, (int64_t[]){4});
    input("x", DQ_FLOAT, 1, (int64_t[]){4});
    node("NonZero", "s", NULL, "n");
    node("Neg", "n", NULL, "m");
    node("Add", "s", "x", "y");
    output("n");
    output("m");
    output("y");
    finish();
    dq_tensor *state = row(4, s);
    must(dq_session_set_input(session, "s", state, &err));
    must(dq_session_set_input(session, "x", row(4, x), &err));
    must(dq_session_set_output(session, "n", over(DQ_INT64, 2, (int64_t[]){1, 2}, where), &err));
    must(dq_session_set_output(session, "m", over(DQ_INT64, 2, (int64_t[]){1, 2}, back), &err));
    must(dq_session_set_output(session, "y", state, &err)); /* s decides on the shape, and is overwritten */
    must(dq_session_run(session, &err));
    ck_assert_mem_eq(where, ((int64_t[]){1, 3, 9, 9}), sizeof where);
    ck_assert_mem_eq(back, ((int64_t[]){-1, -3}), 16);
    ck_assert_mem_eq(s, ((float[]){1, 2, 0, 4}), sizeof s);
    ck_assert_ptr_eq(data_of("n"), where);
    refused(dq_session_run(session, &err), DQ_BAD_INPUT,
            "m: the tensor for output 'n' is int64 [1,2], expected int64 [1,3]");
    /* a fused plan with dynamic steps may have to be run once more, as written, from the same inputs */
    ck_assert_mem_eq(s, ((float[]){1, 2, 0, 4}), sizeof s);
    must(dq_session_set_output(session, "n", over(DQ_INT64, 2, (int64_t[]){1, 3}, where), &err));
    must(dq_session_set_output(session, "m", NULL, &err));
    must(dq_session_run(session, &err));
    ck_assert_mem_eq(where, ((int64_t[]){0, 1, 3, 9}), sizeof where);
    ck_assert_mem_eq(data_of("m"), ((int64_t[]){0, -1, -3}), 24);
}
END_TEST

static void value_info(ow *to, unsigned id, const char *name, int dtype, int64_t dim)
{
    ow type = {0}, tensor = {0}, shape = {0}, d = {0}, info = {0};
    ow_int(&tensor, 1, dtype);
    if (dim) {
        ow_int(&d, 1, dim);
        ow_msg(&shape, 1, &d);
    }
    ow_msg(&tensor, 2, &shape);
    ow_msg(&type, 1, &tensor);
    ow_str(&info, 1, name);
    ow_msg(&info, 2, &type);
    ow_msg(to, id, &info);
}

/* A branch: out = op(x), x from outside. */
static void branch(ow *to, const char *attribute, const char *op, const char *out)
{
    ow n = {0}, g = {0}, a = {0};
    ow_str(&n, 1, "x");
    ow_str(&n, 2, out);
    ow_str(&n, 4, op);
    ow_msg(&g, OW_GRAPH_NODE, &n);
    ow_str(&g, 2, attribute);
    value_info(&g, OW_GRAPH_OUT, out, DQ_FLOAT, 4);
    ow_str(&a, 1, attribute);
    ow_msg(&a, 6, &g);
    ow_int(&a, 20, 5);
    ow_msg(to, OW_NODE_ATTR, &a);
}

START_TEST(outputs_of_control_flow)
{
    static ow m, g, n, opset;
    float x[4] = {1, -2, 3, -4};
    bool c = true;
    m = g = n = opset = (ow){0};
    ow_str(&n, 1, "c");
    ow_str(&n, 2, "y");
    ow_str(&n, 4, "If");
    branch(&n, "then_branch", "Neg", "t");
    branch(&n, "else_branch", "Identity", "e");
    ow_msg(&g, OW_GRAPH_NODE, &n);
    ow_str(&g, 2, "g");
    value_info(&g, OW_GRAPH_IN, "c", DQ_BOOL, 0);
    value_info(&g, OW_GRAPH_IN, "x", DQ_FLOAT, 4);
    value_info(&g, OW_GRAPH_OUT, "y", DQ_FLOAT, 4);
    ow_int(&m, 1, 10);
    ow_msg(&m, OW_MODEL_GRAPH, &g);
    ow_str(&opset, 1, "");
    ow_int(&opset, 2, 21);
    ow_msg(&m, OW_MODEL_OPSET, &opset);
    must(dq_model_load_memory(m.bytes, m.size, "m", NULL, &model, &err));
    open_session(1, false, NULL, NULL);
    dq_tensor *state = row(4, x);
    must(dq_session_set_input(session, "c", over(DQ_BOOL, 0, NULL, &c), &err));
    must(dq_session_set_input(session, "x", state, &err));
    must(dq_session_set_output(session, "y", state, &err));
    must(dq_session_run(session, &err));
    ck_assert_mem_eq(x, ((float[]){-1, 2, -3, 4}), sizeof x);
    c = false;
    must(dq_session_run(session, &err));
    ck_assert_mem_eq(x, ((float[]){-1, 2, -3, 4}), sizeof x);
}
END_TEST

/* ---- What a trace shows of them ------------------------------------------------------------------------ */

static void take_event(void *arg, const dq_trace_event *event)
{
    unsigned *events = arg;
    const char *value = *events == 0 ? "y" : "z";
    const float expected[2][4] = {{0, 4, -1, -4}, {0, 4, 0, 0}};
    ck_assert_str_eq(event->node, value); /* the nodes of small models have the names of their outputs */
    ck_assert_str_eq(event->op, *events == 0 ? "Add-14" : "Relu-14");
    ck_assert(event->seconds >= 0);
    ck_assert_uint_eq(event->output_count, 1);
    ck_assert_str_eq(event->output_names[0], value);
    ck_assert_uint_eq(dq_tensor_size(event->outputs[0]), sizeof expected[0]);
    ck_assert_mem_eq(dq_tensor_data(event->outputs[0]), expected[*events], sizeof expected[0]);
    ++*events;
}

START_TEST(a_trace_shows_the_outputs_of_each_step)
{
    float s[4] = {-1, 2, -3, 4}, x[4] = {1, 2, 2, -8};
    unsigned events = 0;
    const dq_session_options options = {.size = sizeof(dq_session_options),
                                        .threads = 1,
                                        .no_fuse = true,
                                        .trace = take_event,
                                        .arg = &events};
    make_sum();
    dq_session_free(session);
    must(dq_session_create(model, &options, &session, &err));
    must(dq_session_set_input(session, "s", row(4, s), &err));
    must(dq_session_set_input(session, "x", row(4, x), &err));
    must(dq_session_run(session, &err));
    ck_assert_uint_eq(events, 2);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("bound_outputs", NULL, tear_down);
    add_test(&tests, outputs_are_computed_in_memory_that_moves);
    add_test(&tests, a_state_is_updated_in_place);
    add_test(&tests, two_inputs_overlap_the_output);
    add_test(&tests, an_input_that_is_read_later_keeps_its_value);
    add_test(&tests, outputs_that_are_inputs_or_constants);
    add_test(&tests, values_inside_the_graph_have_tensors_too);
    add_test(&tests, empty_outputs);
    add_test(&tests, types_and_shapes_are_checked);
    add_test(&tests, two_outputs_do_not_overlap);
    add_test(&tests, a_run_that_fails_can_be_repeated);
    add_test(&tests, late_outputs);
    add_test(&tests, outputs_of_control_flow);
    add_loop_test(&tests, outputs_of_slices_overlap_their_input, 0, 2);
    add_test(&tests, a_trace_shows_the_outputs_of_each_step);
    return test_program_run(&tests);
}
