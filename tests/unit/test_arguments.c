/* SPDX-License-Identifier: Apache-2.0 */
/* What the public functions refuse: NULL pointers, impossible tensors, unknown names, inputs that do not fit
 * the model; and what they answer past the end of a list. */
#define _GNU_SOURCE
#include "small_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t pair[] = {2};

/* x: float[N,3], and c, an int8 with a default -> y = x */
static void small(void)
{
    static int8_t three = 3;
    begin();
    must(dq_builder_input(b, "c", DQ_INT8, 0, NULL, NULL, &err));
    must(dq_builder_input(b, "x", DQ_FLOAT, 2, (int64_t[]){-1, 3}, (const char *[]){"N", NULL}, &err));
    constant("c", DQ_INT8, 0, NULL, &three);
    node("Relu", "x", NULL, "y");
    node("Identity", "c", NULL, "z");
    output("y");
    output("z");
    finish();
}

/* ---- NULL ---------------------------------------------------------------------------------------------- */

/* The header: a NULL that a call does not allow is DQ_INVALID_ARGUMENT, and the message names it. */
#define REFUSES_NULL(argument, call)                                                                         \
    do {                                                                                                     \
        char expected[128];                                                                                  \
        snprintf(expected, sizeof expected, "%.*s: %s is NULL", (int)strcspn(#call, "("), #call, argument);  \
        refused(call, DQ_INVALID_ARGUMENT, expected);                                                        \
    } while (0)

START_TEST(null_where_it_is_not_allowed)
{
    small();
    dq_tensor *t = NULL, *x = over(DQ_FLOAT, 1, pair, (float[2]){0});
    const dq_tensor *got = NULL;
    dq_model *other = NULL;
    dq_session *second = NULL;
    dq_thread_pool *pool = NULL;
    dq_value_info info = DQ_VALUE_INFO_INIT;
    dq_node_spec spec = DQ_NODE_SPEC_INIT;
    size_t at;
    REFUSES_NULL("dims", dq_tensor_create(DQ_FLOAT, 1, NULL, &t, &err));
    REFUSES_NULL("out", dq_tensor_create(DQ_FLOAT, 1, pair, NULL, &err));
    REFUSES_NULL("dims", dq_tensor_wrap(DQ_FLOAT, 1, NULL, &err, 8, &t, &err));
    REFUSES_NULL("data", dq_tensor_wrap(DQ_FLOAT, 1, pair, NULL, 8, &t, &err));
    REFUSES_NULL("out", dq_tensor_wrap(DQ_FLOAT, 1, pair, &err, 8, NULL, &err));
    REFUSES_NULL("items", dq_sequence_create(DQ_FLOAT, 1, NULL, &t, &err));
    REFUSES_NULL("out", dq_sequence_create(DQ_FLOAT, 0, NULL, NULL, &err));
    refused(dq_sequence_create(DQ_FLOAT, 1, &t, &t, &err), DQ_INVALID_ARGUMENT,
            "dq_sequence_create: item 0 is NULL, expected tensor(float)");
    REFUSES_NULL("out", dq_optional_create(DQ_KIND_TENSOR, DQ_FLOAT, NULL, NULL, &err));
    REFUSES_NULL("out", dq_schemas_create(NULL, &err));
    REFUSES_NULL("schemas", dq_schemas_add_dir(NULL, "/", &err));
    REFUSES_NULL("schemas", dq_schemas_add_yaml(NULL, "", 0, "text", &err));
    REFUSES_NULL("visit", dq_schemas_list(NULL, NULL, NULL, &err));
    REFUSES_NULL("path", dq_model_load(NULL, NULL, &other, &err));
    REFUSES_NULL("out", dq_model_load("m.onnx", NULL, NULL, &err));
    REFUSES_NULL("bytes", dq_model_load_memory(NULL, 1, "m", NULL, &other, &err));
    REFUSES_NULL("name", dq_model_load_memory("", 0, NULL, NULL, &other, &err));
    REFUSES_NULL("out", dq_model_load_memory("", 0, "m", NULL, NULL, &err));
    REFUSES_NULL("model", dq_model_input(NULL, 0, &info, &err));
    REFUSES_NULL("info", dq_model_input(model, 0, NULL, &err));
    REFUSES_NULL("model", dq_model_output(NULL, 0, &info, &err));
    REFUSES_NULL("info", dq_model_output(model, 0, NULL, &err));
    REFUSES_NULL("model", dq_model_check(NULL, NULL, NULL, &err));
    REFUSES_NULL("model", dq_model_save(NULL, "m.onnx", &err));
    REFUSES_NULL("path", dq_model_save(model, NULL, &err));
    REFUSES_NULL("out", dq_thread_pool_create(NULL, NULL, &err));
    REFUSES_NULL("model", dq_session_create(NULL, NULL, &second, &err));
    REFUSES_NULL("out", dq_session_create(model, NULL, NULL, &err));
    REFUSES_NULL("session", dq_session_set_input(NULL, "x", x, &err));
    REFUSES_NULL("session", dq_session_set_input(NULL, NULL, x, &err));
    REFUSES_NULL("session", dq_session_set_output(NULL, "y", x, &err));
    REFUSES_NULL("session", dq_session_run(NULL, &err));
    REFUSES_NULL("session", dq_session_get_output(NULL, "y", &got, &err));
    REFUSES_NULL("out", dq_session_get_output(session, "y", NULL, &err));
    REFUSES_NULL("session", dq_session_add_output(NULL, "y", &err));
    REFUSES_NULL("name", dq_session_add_output(session, NULL, &err));
    REFUSES_NULL("name", dq_builder_create(NULL, &b, &err));
    REFUSES_NULL("out", dq_builder_create("m", NULL, &err));
    must(dq_builder_create("m", &b, &err));
    must(dq_builder_opset(b, "", 21, &err));
    REFUSES_NULL("builder", dq_builder_opset(NULL, "", 21, &err));
    REFUSES_NULL("domain", dq_builder_opset(b, NULL, 21, &err));
    REFUSES_NULL("builder", dq_builder_input(NULL, "x", DQ_FLOAT, 0, NULL, NULL, &err));
    REFUSES_NULL("name", dq_builder_output(b, NULL, DQ_FLOAT, 0, NULL, NULL, &err));
    REFUSES_NULL("builder", dq_builder_initializer(NULL, "x", x, &err));
    REFUSES_NULL("name", dq_builder_initializer(b, NULL, x, &err));
    REFUSES_NULL("tensor", dq_builder_initializer(b, "x", NULL, &err));
    REFUSES_NULL("builder", dq_builder_node(NULL, &spec, NULL, &err));
    REFUSES_NULL("spec", dq_builder_node(b, NULL, NULL, &err));
    REFUSES_NULL("spec.op_type", dq_builder_node(b, &spec, NULL, &err));
    spec.op_type = "Relu";
    spec.input_count = 1;
    REFUSES_NULL("spec.inputs", dq_builder_node(b, &spec, NULL, &err));
    spec.input_count = 0;
    spec.attribute_count = 1;
    REFUSES_NULL("spec.attributes", dq_builder_node(b, &spec, NULL, &err));
    REFUSES_NULL("builder", dq_builder_finish(NULL, NULL, &other, &err));
    REFUSES_NULL("out", dq_builder_finish(b, NULL, NULL, &err)); /* frees the builder */
    REFUSES_NULL("tensor", dq_tensor_set_string(NULL, 0, "a", 1, &err));
    REFUSES_NULL("out", dq_tensor_wrap_const(DQ_FLOAT, 1, pair, &err, 8, NULL, &err));
    REFUSES_NULL("data", dq_tensor_wrap_const(DQ_FLOAT, 1, pair, NULL, 8, &t, &err));
    REFUSES_NULL("model", dq_model_find_input(NULL, "x", &at, &err));
    REFUSES_NULL("index", dq_model_find_input(model, "x", NULL, &err));
    REFUSES_NULL("model", dq_model_find_output(NULL, "y", &at, &err));
    REFUSES_NULL("index", dq_model_find_output(model, "y", NULL, &err));
    must(dq_thread_pool_create(NULL, &pool, &err));
    ck_assert_uint_gt(dq_thread_pool_threads(pool), 0);
    dq_thread_pool_free(pool);
    dq_thread_pool_free(NULL);
    dq_tensor_free(NULL);
    dq_schemas_free(NULL);
    dq_builder_free(NULL);
    tear_down();
    dq_session_free(NULL);
    dq_model_free(NULL);
}
END_TEST

/* ---- Tensors ------------------------------------------------------------------------------------------- */

START_TEST(tensors_that_cannot_be)
{
    dq_tensor *t = NULL, *strings = NULL;
    double workspace[4] = {0};
    const int64_t deep[DQ_MAX_RANK + 1] = {0}, below[] = {-1}, huge[] = {INT64_MAX, INT64_MAX};
    refused(dq_tensor_create(DQ_DTYPE_COUNT, 0, NULL, &t, &err), DQ_INVALID_ARGUMENT,
            "dq_tensor_create: 29 is no element type");
    ck_assert_int_eq(dq_tensor_create(DQ_FLOAT, DQ_MAX_RANK + 1, deep, &t, &err), DQ_UNSUPPORTED);
    ck_assert_int_eq(dq_tensor_create(DQ_FLOAT, 1, below, &t, &err), DQ_INVALID_ARGUMENT);
    ck_assert_int_eq(dq_tensor_create(DQ_FLOAT, 2, huge, &t, &err), DQ_OUT_OF_MEMORY);
    ck_assert_int_eq(dq_tensor_wrap(DQ_FLOAT, 1, below, workspace, 0, &t, &err), DQ_INVALID_ARGUMENT);
    refused(dq_tensor_wrap(DQ_FLOAT, 1, pair, workspace, 7, &t, &err), DQ_INVALID_ARGUMENT,
            "dq_tensor_wrap: size is 7 bytes, expected 8");
    refused(dq_tensor_wrap(DQ_FLOAT, 1, pair, (char *)workspace + 2, 8, &t, &err), DQ_INVALID_ARGUMENT,
            "dq_tensor_wrap: data is not aligned to 4 bytes");
    refused(dq_tensor_wrap(DQ_STRING, 1, pair, workspace, 32, &t, &err), DQ_INVALID_ARGUMENT,
            "dq_tensor_wrap: tensors of string cannot be wrapped");
    refused(dq_tensor_wrap((dq_dtype)-1, 1, pair, workspace, 32, &t, &err), DQ_INVALID_ARGUMENT,
            "dq_tensor_wrap: tensors of an unknown type cannot be wrapped");
    refused(dq_sequence_create(DQ_UNDEFINED, 0, NULL, &t, &err), DQ_INVALID_ARGUMENT,
            "dq_sequence_create: 0 is no element type");
    must(dq_tensor_create(DQ_STRING, 1, pair, &strings, &err));
    refused(dq_sequence_create(DQ_FLOAT, 1, &strings, &t, &err), DQ_INVALID_ARGUMENT,
            "dq_sequence_create: item 0 is tensor(string), expected tensor(float)");
    refused(dq_optional_create(DQ_KIND_MAP, DQ_FLOAT, NULL, &t, &err), DQ_INVALID_ARGUMENT,
            "dq_optional_create: expected a tensor or sequence of an element type");
    refused(dq_optional_create(DQ_KIND_SEQUENCE, DQ_STRING, strings, &t, &err), DQ_INVALID_ARGUMENT,
            "dq_optional_create: the item is tensor(string), expected a sequence of string");
    ck_assert_ptr_null(t);
    dq_tensor_free(strings);
}
END_TEST

START_TEST(elements_past_the_last)
{
    dq_tensor *strings = NULL, *list = NULL, *numbers = over(DQ_FLOAT, 1, pair, (float[]){1, 2});
    size_t length = 9;
    must(dq_tensor_create(DQ_STRING, 1, pair, &strings, &err));
    must(dq_tensor_set_string(strings, 1, "ab", 2, &err));
    must(dq_tensor_set_string(strings, 1, "abc", 3, &err));
    refused(dq_tensor_set_string(strings, 2, "a", 1, &err), DQ_INVALID_ARGUMENT,
            "dq_tensor_set_string: i is 2, expected less than 2");
    refused(dq_tensor_set_string(strings, 0, NULL, 1, &err), DQ_INVALID_ARGUMENT,
            "dq_tensor_set_string: bytes is NULL");
    refused(
        dq_tensor_set_string(numbers, 0, "a", 1, &err), DQ_INVALID_ARGUMENT,
        "dq_tensor_set_string: tensor is tensor(float), expected a tensor(string) made by dq_tensor_create");
    ck_assert_int_eq(dq_tensor_set_string(strings, 0, "a", SIZE_MAX, &err), DQ_OUT_OF_MEMORY);
    ck_assert_str_eq(dq_tensor_string(strings, 0, &length), ""); /* strings start empty */
    ck_assert_uint_eq(length, 0);
    ck_assert_mem_eq(dq_tensor_string(strings, 1, &length), "abc", 3);
    ck_assert_uint_eq(length, 3);
    ck_assert_ptr_null(dq_tensor_string(strings, 2, &length));
    ck_assert_uint_eq(length, 0);
    ck_assert_ptr_null(dq_tensor_string(numbers, 0, NULL));
    ck_assert_ptr_null(dq_tensor_data(strings));
    ck_assert_uint_eq(dq_tensor_size(strings), 0);
    ck_assert(isnan(dq_tensor_value(strings, 0)));
    ck_assert(isnan(dq_tensor_value(numbers, 2)));
    ck_assert_double_eq(dq_tensor_value(numbers, 1), 2);
    ck_assert_ptr_null(dq_tensor_item(numbers, 0));
    must(dq_sequence_create(DQ_STRING, 1, &strings, &list, &err));
    ck_assert_ptr_eq(dq_tensor_item(list, 0), strings);
    ck_assert_ptr_null(dq_tensor_item(list, 1));
    ck_assert(isnan(dq_tensor_value(list, 0)));
    ck_assert_ptr_null(dq_tensor_string(list, 0, NULL));
    ck_assert_ptr_null(dq_tensor_data(list));
    ck_assert_int_eq(dq_tensor_set_string(list, 0, "a", 1, &err), DQ_INVALID_ARGUMENT);
    dq_tensor_free(list);
    tear_down();
}
END_TEST

/* ---- Inputs and outputs -------------------------------------------------------------------------------- */

START_TEST(inputs_that_do_not_fit)
{
    small();
    static float six[6];
    static int32_t integers[6];
    const dq_tensor *y = NULL;
    dq_tensor *list = NULL;
    refused(dq_session_set_input(session, "w", NULL, &err), DQ_BAD_INPUT,
            "m: has no input 'w'; the model has x: float[N,3], c: int8[] (has a default)");
    refused(dq_session_run(session, &err), DQ_BAD_INPUT,
            "m: input 'x' is missing; the model has x: float[N,3], c: int8[] (has a default)");
    refused(dq_session_get_output(session, "y", &y, &err), DQ_INVALID_ARGUMENT,
            "m: output 'y' is there only after a run that succeeded");
    refused(dq_session_get_output(session, "x", &y, &err), DQ_INVALID_ARGUMENT, "m: has no output 'x'");
    refused(dq_session_add_output(session, "nothing", &err), DQ_INVALID_ARGUMENT,
            "m: has no value 'nothing'");
    refused(dq_session_set_input(session, "x", over(DQ_INT32, 2, (int64_t[]){2, 3}, integers), &err),
            DQ_BAD_INPUT, "m: input 'x' has type int32, expected float");
    refused(dq_session_set_input(session, "x", over(DQ_FLOAT, 2, (int64_t[]){3, 2}, six), &err), DQ_BAD_INPUT,
            "m: input 'x' has shape [3,2], expected [N,3]");
    refused(dq_session_set_input(session, "x", row(6, six), &err), DQ_BAD_INPUT,
            "m: input 'x' has shape [6], expected [N,3]");
    must(dq_sequence_create(DQ_FLOAT, 0, NULL, &list, &err));
    refused(dq_session_set_input(session, "x", list, &err), DQ_BAD_INPUT,
            "m: input 'x' is seq(tensor(float)), expected tensor(float)");
    dq_tensor_free(list);
    must(dq_session_set_input(session, "x", over(DQ_FLOAT, 2, (int64_t[]){2, 3}, six), &err));
    must(dq_session_run(session, &err));
    must(dq_session_set_input(session, "x", NULL, &err)); /* taken back */
    ck_assert_int_eq(dq_session_run(session, &err), DQ_BAD_INPUT);
    tear_down();
    begin();
    node("Constant", "", NULL, "y");
    must(dq_builder_finish(b, NULL, &model, &err));
    ck_assert_int_eq(dq_model_check(model, NULL, NULL, &err), DQ_BAD_MODEL);
    tear_down();
}
END_TEST

START_TEST(inputs_and_outputs_by_name)
{
    size_t at = 9;
    small();
    must(dq_model_find_input(model, "c", &at, &err));
    ck_assert_uint_eq(at, 1); /* after those without a default */
    must(dq_model_find_input(model, NULL, &at, &err));
    ck_assert_uint_eq(at, 0);
    must(dq_model_find_output(model, "z", &at, &err));
    ck_assert_uint_eq(at, 1);
    must(dq_model_find_output(model, NULL, &at, &err));
    ck_assert_uint_eq(at, 0);
    refused(dq_model_find_input(model, "y", &at, &err), DQ_BAD_INPUT,
            "m: has no input 'y'; the model has x: float[N,3], c: int8[] (has a default)");
    ck_assert_int_eq(dq_model_find_output(model, "x", &at, &err), DQ_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "m: has no output 'x'; the model has y: "));
    ck_assert_uint_eq(at, 0);
    static float six[] = {-1, 2, -3, 4, -5, 6};
    must(dq_session_set_input(session, NULL, over(DQ_FLOAT, 2, (int64_t[]){2, 3}, six), &err));
    must(dq_session_run(session, &err));
    ck_assert_mem_eq(data_of("y"), ((float[]){0, 2, 0, 4, 0, 6}), sizeof six);
    tear_down();
}
END_TEST

START_TEST(statuses_have_names)
{
    ck_assert_str_eq(dq_status_name(DQ_OK), "DQ_OK");
    ck_assert_str_eq(dq_status_name(DQ_BAD_INPUT), "DQ_BAD_INPUT");
    ck_assert_str_eq(dq_status_name(DQ_CANCELLED), "DQ_CANCELLED");
    ck_assert_str_eq(dq_status_name((dq_status)1), "unknown status");
}
END_TEST

/* Constant memory is read, and refused where it would be written to. */
START_TEST(constant_tensors)
{
    static const float six[] = {-1, 2, -3, 4, -5, 6};
    static float y[6];
    dq_tensor *x = NULL, *to = over(DQ_FLOAT, 2, (int64_t[]){2, 3}, y);
    small();
    must(dq_tensor_wrap_const(DQ_FLOAT, 2, (int64_t[]){2, 3}, six, sizeof six, &x, &err));
    ck_assert_ptr_eq(dq_tensor_data(x), six);
    ck_assert_ptr_null(dq_tensor_mutable_data(x));
    ck_assert_ptr_eq(dq_tensor_mutable_data(to), y);
    refused(dq_session_set_output(session, "y", x, &err), DQ_INVALID_ARGUMENT,
            "m: output 'y' cannot be written to a tensor of dq_tensor_wrap_const, expected one that may be "
            "written");
    must(dq_session_set_input(session, "x", x, &err));
    must(dq_session_set_output(session, "y", to, &err));
    must(dq_session_run(session, &err));
    ck_assert_mem_eq(y, ((float[]){0, 2, 0, 4, 0, 6}), sizeof y);
    dq_tensor_free(x);
    tear_down();
}
END_TEST

/* A model and its sessions keep the set of schemas alive. */
START_TEST(schemas_live_as_long_as_their_models)
{
    dq_schemas *own = NULL;
    dq_load_options options = DQ_LOAD_OPTIONS_INIT;
    static float six[6];
    must(dq_schemas_create(&own, &err));
    options.schemas = own;
    begin();
    input("x", DQ_FLOAT, 2, (int64_t[]){-1, 3});
    node("Relu", "x", NULL, "y");
    output("y");
    must(dq_builder_finish(b, &options, &model, &err));
    dq_schemas_free(own);
    must(dq_session_create(model, NULL, &session, &err));
    dq_model_free(model);
    model = NULL;
    must(dq_session_set_input(session, "x", over(DQ_FLOAT, 2, (int64_t[]){2, 3}, six), &err));
    must(dq_session_run(session, &err));
    tear_down();
}
END_TEST

/* The list of inputs in a sentence is cut where it would not fit. */
START_TEST(long_lists_are_cut)
{
    char name[100];
    begin();
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "%090d", i);
        input(name, DQ_FLOAT, 1, (int64_t[]){5});
        node("Relu", name, NULL, i ? name + 60 : "y");
    }
    output("y");
    finish();
    ck_assert_int_eq(dq_session_set_input(session, "none", NULL, &err), DQ_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "0: float[5], 0000"));
    ck_assert_uint_lt(strlen(err.message), 600);
    tear_down();
    begin();
    static float one = 1;
    constant("k", DQ_FLOAT, 0, NULL, &one);
    node("Relu", "k", NULL, "y");
    output("y");
    finish();
    refused(dq_session_set_input(session, "x", NULL, &err), DQ_BAD_INPUT,
            "m: has no input 'x'; the model has no inputs");
    must(dq_session_run(session, &err));
    tear_down();
}
END_TEST

START_TEST(unknown_levels)
{
    dq_session *none = NULL;
    small();
    const dq_session_options options = {.size = sizeof(dq_session_options), .isa = "mmx"};
    ck_assert_int_eq(dq_session_create(model, &options, &none, &err), DQ_INVALID_ARGUMENT);
    ck_assert_int_eq(strncmp(err.message, "ISA level 'mmx' is unknown, expected one of c", 43), 0);
    setenv("DQRUN_ISA", "mmx", 1); /* the library reads no environment variable */
    must(dq_session_create(model, NULL, &none, &err));
    ck_assert_str_ne(dq_session_isa(none), "mmx");
    unsetenv("DQRUN_ISA");
    dq_session_free(none);
    tear_down();
}
END_TEST

/* ---- Builders ------------------------------------------------------------------------------------------ */

START_TEST(attributes_without_a_value)
{
    static const dq_attribute empty[] = {
        {.size = sizeof(dq_attribute), .name = "a", .kind = DQ_ATTRIBUTE_STRING},
        {.size = sizeof(dq_attribute), .name = "a", .kind = DQ_ATTRIBUTE_TENSOR},
        {.size = sizeof(dq_attribute), .name = "a", .kind = DQ_ATTRIBUTE_FLOATS, .count = 1},
        {.size = sizeof(dq_attribute), .name = "a", .kind = DQ_ATTRIBUTE_INTS, .count = 1},
        {.size = sizeof(dq_attribute), .name = "a", .kind = DQ_ATTRIBUTE_STRINGS, .count = 1},
        {.size = sizeof(dq_attribute), .name = "a", .kind = (dq_attribute_kind)5},
        {.size = sizeof(dq_attribute), .name = NULL, .kind = DQ_ATTRIBUTE_INT},
    };
    const char *x = "x";
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        char message[80];
        const char *y = "y";
        begin();
        snprintf(message, sizeof message, "m: attribute '%s' has no value of kind %d",
                 empty[i].name ? "a" : "", (int)empty[i].kind);
        refused(add_node(b, "", "Relu", NULL, 1, &x, 1, &y, 1, &empty[i], &err), DQ_INVALID_ARGUMENT,
                message);
        dq_builder_free(b);
    }
}
END_TEST

START_TEST(builders_refuse)
{
    const char *y = "y";
    begin();
    refused(dq_builder_opset(b, "own", 0, &err), DQ_INVALID_ARGUMENT,
            "m: opset 0 of domain 'own', expected 1 or more");
    refused(dq_builder_input(b, "x", DQ_FLOAT, 1, (int64_t[]){-2}, NULL, &err), DQ_INVALID_ARGUMENT,
            "m: value 'x' has a dimension below -1");
    refused(dq_builder_input(b, "x", DQ_FLOAT, 1, NULL, NULL, &err), DQ_INVALID_ARGUMENT,
            "dq_builder_input: dims is NULL");
    refused(
        add_node(b, "", "Relu", NULL, (size_t)1 << 21, &y, 1, &y, 0, NULL, &err), DQ_INVALID_ARGUMENT,
        "m: a node of Relu has 2097152 inputs, 1 outputs and 0 attributes, expected at most 1048576 of each");
    dq_builder_free(b);
}
END_TEST

/* Attributes of every kind reach the operators, through a file, too. */
START_TEST(attributes_of_every_kind)
{
    static const float floats[] = {0.5f, 2};
    static const int64_t ints[] = {7, -8};
    static const char *const strings[] = {"ab", ""};
    dq_tensor *text = NULL;
    must(dq_tensor_create(DQ_STRING, 0, NULL, &text, &err));
    must(dq_tensor_set_string(text, 0, "deep", 4, &err));
    const dq_attribute values[] = {
        {.size = sizeof(dq_attribute), .name = "value_float", .kind = DQ_ATTRIBUTE_FLOAT, .f = 1.5f},
        {.size = sizeof(dq_attribute), .name = "value_int", .kind = DQ_ATTRIBUTE_INT, .i = -9},
        {.size = sizeof(dq_attribute), .name = "value_string", .kind = DQ_ATTRIBUTE_STRING, .s = "text"},
        {.size = sizeof(dq_attribute), .name = "value", .kind = DQ_ATTRIBUTE_TENSOR, .tensor = text},
        {.size = sizeof(dq_attribute),
         .name = "value_floats",
         .kind = DQ_ATTRIBUTE_FLOATS,
         .floats = floats,
         .count = 2},
        {.size = sizeof(dq_attribute),
         .name = "value_ints",
         .kind = DQ_ATTRIBUTE_INTS,
         .ints = ints,
         .count = 2},
        {.size = sizeof(dq_attribute),
         .name = "value_strings",
         .kind = DQ_ATTRIBUTE_STRINGS,
         .strings = strings,
         .count = 2},
        {.size = sizeof(dq_attribute), .name = "value_ints", .kind = DQ_ATTRIBUTE_INTS},
    };
    static const char *const names[] = {"f", "i", "s", "t", "fs", "is", "ss", "none"};
    begin();
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const char *out = names[i];
        must(add_node(b, "", "Constant", NULL, 0, NULL, 1, &out, 1, &values[i], &err));
        output(out);
    }
    dq_tensor_free(text); /* everything that a builder is given is copied */
    finish();
    must(dq_session_run(session, &err));
    const dq_tensor *t = NULL;
    ck_assert_mem_eq(data_of("f"), &values[0].f, sizeof(float));
    ck_assert_int_eq(*(const int64_t *)data_of("i"), -9);
    ck_assert_mem_eq(data_of("fs"), floats, sizeof floats);
    ck_assert_mem_eq(data_of("is"), ints, sizeof ints);
    must(dq_session_get_output(session, "s", &t, &err));
    ck_assert_str_eq(dq_tensor_string(t, 0, NULL), "text");
    must(dq_session_get_output(session, "t", &t, &err));
    ck_assert_str_eq(dq_tensor_string(t, 0, NULL), "deep");
    must(dq_session_get_output(session, "ss", &t, &err));
    ck_assert_str_eq(dq_tensor_string(t, 0, NULL), "ab");
    ck_assert_str_eq(dq_tensor_string(t, 1, NULL), "");
    must(dq_session_get_output(session, "none", &t, &err));
    ck_assert_uint_eq(dq_tensor_count(t), 0);
    tear_down();
}
END_TEST

/* ---- Schemas ------------------------------------------------------------------------------------------- */

static int stop_at_third(void *arg, const dq_operator_info *info)
{
    ck_assert_ptr_nonnull(info->name);
    return ++*(int *)arg == 3;
}

START_TEST(schemas_are_listed)
{
    int seen = 0;
    char text[200], cut[8];
    dq_schemas *own = NULL;
    const dq_operator_info
        relu = {.size = sizeof(dq_operator_info), .domain = "", .name = "Relu", .since_version = 14},
        unknown = {.size = sizeof(dq_operator_info), .domain = "", .name = "Nothing", .since_version = 1};
    must(dq_schemas_list(NULL, stop_at_third, &seen, &err));
    ck_assert_int_eq(seen, 3);
    must(dq_schemas_create(&own, &err));
    const size_t length = dq_schemas_types(own, &relu, text, sizeof text);
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_ptr_nonnull(strstr(text, "T: "));
    ck_assert_uint_eq(dq_schemas_types(NULL, &relu, cut, sizeof cut), length);
    ck_assert_mem_eq(cut, text, sizeof cut - 1);
    ck_assert_int_eq(cut[sizeof cut - 1], '\0');
    ck_assert_uint_eq(dq_schemas_types(own, &relu, NULL, 0), length);
    ck_assert_uint_eq(dq_schemas_types(own, &unknown, text, sizeof text), 0);
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(dq_schemas_add_dir(own, "/nonexistent", &err), DQ_INVALID_ARGUMENT);
    ck_assert_int_eq(dq_schemas_list(own, NULL, NULL, &err), DQ_INVALID_ARGUMENT);
    dq_schemas_free(own);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("arguments", NULL, NULL);
    add_test(&tests, null_where_it_is_not_allowed);
    add_test(&tests, tensors_that_cannot_be);
    add_test(&tests, elements_past_the_last);
    add_test(&tests, inputs_that_do_not_fit);
    add_test(&tests, inputs_and_outputs_by_name);
    add_test(&tests, statuses_have_names);
    add_test(&tests, constant_tensors);
    add_test(&tests, schemas_live_as_long_as_their_models);
    add_test(&tests, long_lists_are_cut);
    add_test(&tests, unknown_levels);
    add_test(&tests, attributes_without_a_value);
    add_test(&tests, builders_refuse);
    add_test(&tests, attributes_of_every_kind);
    add_test(&tests, schemas_are_listed);
    return test_program_run(&tests);
}
