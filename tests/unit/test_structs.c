/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of dqrun.h that grow: what programs that were compiled with other sizes get. */
#include "public.h"

#include <stdio.h>
#include <string.h>

static dq_model *model;
static dq_session *session;

static void set_up(void)
{
    static const int64_t dims[] = {-1, 4};
    dq_builder *b = NULL;
    const char *in = "x", *out = "y";
    must(dq_builder_create("m", &b, &err));
    must(dq_builder_opset(b, "", 21, &err));
    must(dq_builder_input(b, "x", DQ_FLOAT, 2, dims, NULL, &err));
    must(add_node(b, "", "Relu", NULL, 1, &in, 1, &out, 0, NULL, &err));
    must(dq_builder_output(b, "y", DQ_FLOAT, 2, dims, NULL, &err));
    must(dq_builder_finish(b, NULL, &model, &err));
}

static void tear_down(void)
{
    dq_session_free(session);
    dq_model_free(model);
    session = NULL;
}

static void refused(dq_status status, dq_status expected, const char *message)
{
    ck_assert_int_eq(status, expected);
    ck_assert_str_eq(err.message, message);
}

/* The options of a program that was compiled with a later header, which has one more field. */
typedef struct later_options {
    dq_session_options known;
    uint64_t field;
} later_options;

START_TEST(a_struct_without_size_is_refused)
{
    char message[256];
    dq_session_options options;
    memset(&options, 0, sizeof options);
    snprintf(message, sizeof message,
             "dq_session_create: options.size is 0, expected at least %zu; initialize with "
             "DQ_SESSION_OPTIONS_INIT",
             offsetof(dq_session_options, pool) + sizeof options.pool);
    refused(dq_session_create(model, &options, &session, &err), DQ_INVALID_ARGUMENT, message);
    dq_limits limits = DQ_LIMITS_INIT;
    dq_load_options load = DQ_LOAD_OPTIONS_INIT;
    load.limits = &limits;
    limits.size = 8;
    dq_model *none = NULL;
    snprintf(message, sizeof message,
             "dq_model_load: options.limits.size is 8, expected at least %zu; initialize with "
             "DQ_LIMITS_INIT",
             sizeof limits);
    refused(dq_model_load("m.onnx", &load, &none, &err), DQ_INVALID_ARGUMENT, message);
    ck_assert_ptr_null(none);
    dq_value_info info;
    memset(&info, 0, sizeof info);
    snprintf(message, sizeof message,
             "dq_model_input: info.size is 0, expected at least %zu; initialize with DQ_VALUE_INFO_INIT",
             offsetof(dq_value_info, dim_names) + sizeof info.dim_names);
    refused(dq_model_input(model, 0, &info, &err), DQ_INVALID_ARGUMENT, message);
    refused(dq_model_output(model, 0, NULL, &err), DQ_INVALID_ARGUMENT, "dq_model_output: info is NULL");
    refused(dq_model_output(model, 1, &info, &err), DQ_INVALID_ARGUMENT,
            "dq_model_output: i is 1, expected less than 1, the number of outputs");
}
END_TEST

START_TEST(fields_of_a_later_header_must_be_zero)
{
    char message[256];
    later_options options = {.known = {.size = sizeof options, .threads = 1, .isa = "c"}, .field = 0};
    must(dq_session_create(model, &options.known, &session, &err));
    ck_assert_uint_eq(dq_session_threads(session), 1);
    ck_assert_str_eq(dq_session_isa(session), "c");
    options.field = (uint64_t)1 << 56;
    snprintf(message, sizeof message,
             "dq_session_create: options.size is %zu, and byte %zu is set; this library's "
             "dq_session_options has %zu bytes, the rest must be 0",
             sizeof options, sizeof options - 1, sizeof options.known);
    dq_session *none = NULL;
    refused(dq_session_create(model, &options.known, &none, &err), DQ_UNSUPPORTED, message);
    ck_assert_ptr_null(none);
}
END_TEST

/* An older program's dq_value_info ends with dim_names, the last field of the first version. */
START_TEST(as_much_is_written_as_the_program_has)
{
    struct {
        dq_value_info info;
        char after[16];
    } workspace;
    const size_t first = offsetof(dq_value_info, dim_names) + sizeof workspace.info.dim_names;
    memset(&workspace, 0x5a, sizeof workspace);
    workspace.info.size = first;
    must(dq_model_input(model, 0, &workspace.info, &err));
    ck_assert_str_eq(workspace.info.name, "x");
    ck_assert_uint_eq(workspace.info.size, first);
    ck_assert_int_eq(workspace.info.dims[1], 4);
    for (const char *p = (const char *)&workspace + first; p < (const char *)(&workspace + 1); p++)
        ck_assert_int_eq(*p, 0x5a);
    workspace.info.size = sizeof workspace;
    must(dq_model_input(model, 0, &workspace.info, &err));
    ck_assert_uint_eq(workspace.info.size, sizeof workspace);
    for (size_t i = 0; i < sizeof workspace.after; i++)
        ck_assert_int_eq(workspace.after[i], 0x5a);
}
END_TEST

/* The attributes of a node stand as far apart as the first one's size says. */
START_TEST(attributes_may_be_larger)
{
    static const int64_t dims[] = {2, 2};
    struct {
        dq_attribute known;
        uint64_t field;
    } attributes[] = {
        {.known = {.size = sizeof attributes[0], .name = "axis", .kind = DQ_ATTRIBUTE_INT}},
        {.known = {.size = sizeof attributes[0], .name = "keepdims", .kind = DQ_ATTRIBUTE_INT}}};
    dq_builder *b = NULL;
    dq_model *built = NULL;
    const char *in = "x", *out = "y";
    char message[256];
    for (int set = 0; set < 2; set++) {
        attributes[1].field = (uint64_t)set;
        must(dq_builder_create("m", &b, &err));
        must(dq_builder_opset(b, "", 21, &err));
        must(dq_builder_input(b, "x", DQ_FLOAT, 2, dims, NULL, &err));
        must(dq_builder_output(b, "y", DQ_INT64, DQ_ANY_SHAPE, NULL, NULL, &err));
        dq_status status = add_node(b, "", "ArgMax", NULL, 1, &in, 1, &out, 2, &attributes[0].known, &err);
        if (set) {
            snprintf(message, sizeof message,
                     "dq_builder_node: spec.attributes[1].size is %zu, and byte %zu is set; this library's "
                     "dq_attribute has %zu bytes, the rest must be 0",
                     sizeof attributes[0], sizeof attributes[0] - 8, sizeof attributes[0].known);
            refused(status, DQ_UNSUPPORTED, message);
            dq_builder_free(b);
        } else {
            must(status);
            must(dq_builder_finish(b, NULL, &built, &err));
            dq_model_free(built);
        }
    }
}
END_TEST

/* Later fields lie beyond each older size only if no struct has padding at its end. */
START_TEST(no_struct_has_padding_at_its_end)
{
#define ENDS_WITH(type, field)                                                                               \
    ck_assert_uint_eq(sizeof(type), offsetof(type, field) + sizeof(((type *)NULL)->field))
    ENDS_WITH(dq_limits, work);
    ENDS_WITH(dq_operator_info, name);
    ENDS_WITH(dq_allocator, arg);
    ENDS_WITH(dq_load_options, packed_path);
    ENDS_WITH(dq_value_info, producer);
    ENDS_WITH(dq_attribute, types);
    ENDS_WITH(dq_model_info, metadata_count);
    ENDS_WITH(dq_graph_info, values);
    ENDS_WITH(dq_node_info, graph);
    ENDS_WITH(dq_quantization, node);
    ENDS_WITH(dq_shape, dims);
    ENDS_WITH(dq_memory_info, constant_bytes);
    ENDS_WITH(dq_step_info, bytes);
    ENDS_WITH(dq_pass_info, exactness);
    ENDS_WITH(dq_algorithm_info, result);
    ENDS_WITH(dq_lifetime, last_step);
    ENDS_WITH(dq_node_spec, attributes);
    ENDS_WITH(dq_thread_pool_options, cpu_count);
    ENDS_WITH(dq_trace_event, algorithm);
    ENDS_WITH(dq_session_options, algorithms);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("structs", set_up, tear_down);
    add_test(&tests, a_struct_without_size_is_refused);
    add_test(&tests, fields_of_a_later_header_must_be_zero);
    add_test(&tests, as_much_is_written_as_the_program_has);
    add_test(&tests, attributes_may_be_larger);
    add_test(&tests, no_struct_has_padding_at_its_end);
    return test_program_run(&tests);
}
