/* SPDX-License-Identifier: Apache-2.0 */
/* What schemas decide, on models built in code: oneDNN Graph's operators, and DynamicQuantizeLinear to int8,
 * which the standard's schema refuses and a schema file admits. */
#include "public.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static dq_tensor *floats(size_t rank, const int64_t *dims, const float *values)
{
    return tensor_of(DQ_FLOAT, rank, dims, values);
}

/* A model of one node, domain `onednn` or "", over inputs a (float or codes) and whatever else is named. */
typedef struct one_node {
    const char *domain, *op;
    dq_dtype in, out;
    size_t rank;
    const int64_t *dims;
    size_t attribute_count;
    const dq_attribute *attributes;
    size_t input_count; /* initializers "i1", "i2" beside "a" */
    const dq_tensor *inputs[2];
    dq_schemas *schemas;
} one_node;

static dq_status make(const one_node *n, dq_model **model, dq_session **session)
{
    dq_builder *b = NULL;
    const char *names[] = {"a", "i1", "i2"}, *out = "y";
    dq_load_options options = {.size = sizeof(dq_load_options), .schemas = n->schemas};
    must(dq_builder_create("m", &b, &err));
    must(dq_builder_opset(b, "", 13, &err));
    must(dq_builder_opset(b, "onednn", 1, &err));
    must(dq_builder_input(b, "a", n->in, n->rank, n->dims, NULL, &err));
    for (size_t i = 0; i < n->input_count; i++)
        must(dq_builder_initializer(b, names[i + 1], n->inputs[i], &err));
    must(add_node(b, n->domain, n->op, "n", 1 + n->input_count, names, 1, &out, n->attribute_count,
                  n->attributes, &err));
    must(dq_builder_output(b, "y", n->out, DQ_ANY_SHAPE, NULL, NULL, &err));
    must(dq_builder_finish(b, &options, model, &err));
    return dq_session_create(*model, NULL, session, &err);
}

/* Runs the node on `a`; the output's bytes must be `wanted`. */
static void want(const one_node *n, const dq_tensor *a, const void *expected, size_t size)
{
    dq_model *model = NULL;
    dq_session *session = NULL;
    const dq_tensor *y = NULL;
    must(make(n, &model, &session));
    must(dq_session_set_input(session, "a", a, &err));
    must(dq_session_run(session, &err));
    must(dq_session_get_output(session, "y", &y, &err));
    ck_assert_uint_eq(dq_tensor_size(y), size);
    ck_assert_int_eq(dq_tensor_dtype(y), n->out);
    ck_assert_mem_eq(dq_tensor_data(y), expected, size);
    dq_session_free(session);
    dq_model_free(model);
}

static void refuse(const one_node *n, const dq_tensor *a, const char *message)
{
    dq_model *model = NULL;
    dq_session *session = NULL;
    dq_status status = make(n, &model, &session);
    if (status == DQ_OK) {
        must(dq_session_set_input(session, "a", a, &err));
        status = dq_session_run(session, &err);
    }
    ck_assert_int_ne(status, DQ_OK);
    ck_assert_str_eq(err.message, message);
    dq_session_free(session);
    dq_model_free(model);
}

/* ---- oneDNN Graph ------------------------------------------------------------------------------------- */

START_TEST(quantize_rounds_the_sum_with_the_zero_point)
{
    /* 0.5 / 1 + 1 = 1.5 rounds to 2; ONNX's operator gives round(0.5) + 1 = 1 */
    const float values[] = {0.5f, -3, 300, NAN, INFINITY, -INFINITY, 1.5f, 2.5f};
    dq_tensor *a = floats(1, (int64_t[]){8}, values);
    dq_attribute attributes[] = {{.size = sizeof(dq_attribute),
                                  .name = "scales",
                                  .kind = DQ_ATTRIBUTE_FLOATS,
                                  .floats = (float[]){1},
                                  .count = 1},
                                 {.size = sizeof(dq_attribute),
                                  .name = "zps",
                                  .kind = DQ_ATTRIBUTE_INTS,
                                  .ints = (int64_t[]){1},
                                  .count = 1}};
    one_node n = {"onednn", "Quantize", DQ_FLOAT, DQ_UINT8, 1, (int64_t[]){8}, 2, attributes, 0, {0}, NULL};
    want(&n, a, ((uint8_t[]){2, 0, 255, 0, 255, 0, 2, 4}), 8);
    n.out = DQ_INT8;
    want(&n, a, ((int8_t[]){2, -2, 127, -128, 127, -128, 2, 4}), 8);
    dq_tensor_free(a);
}
END_TEST

START_TEST(channels_run_along_any_axis)
{
    dq_tensor *a = floats(2, (int64_t[]){2, 3}, (float[]){1, 2, 3, -1, -2, -3});
    dq_attribute attributes[] = {
        {.size = sizeof(dq_attribute), .name = "qtype", .kind = DQ_ATTRIBUTE_STRING, .s = "per_channel"},
        {.size = sizeof(dq_attribute), .name = "axis", .kind = DQ_ATTRIBUTE_INT, .i = -2},
        {.size = sizeof(dq_attribute),
         .name = "scales",
         .kind = DQ_ATTRIBUTE_FLOATS,
         .floats = (float[]){0.5f, 0.25f},
         .count = 2}};
    one_node n = {"onednn", "Quantize", DQ_FLOAT, DQ_INT8, 2, (int64_t[]){2, 3}, 3, attributes, 0, {0}, NULL};
    want(&n, a, ((int8_t[]){2, 4, 6, -4, -8, -12}), 6);
    attributes[1].i = 1; /* the default, of three channels */
    refuse(&n, a, "m: node 'n' (onednn.Quantize-1): has 2 scales, expected 3");
    attributes[1].i = 2;
    refuse(&n, a, "m: node 'n' (onednn.Quantize-1): attribute 'axis' is 2, expected -2 to 1");
    dq_tensor_free(a);
}
END_TEST

START_TEST(dequantize_subtracts_and_scales)
{
    dq_tensor *a = NULL;
    must(dq_tensor_create(DQ_UINT8, 1, (int64_t[]){3}, &a, &err));
    memcpy(dq_tensor_mutable_data(a), ((uint8_t[]){0, 128, 255}), 3);
    dq_attribute attributes[] = {{.size = sizeof(dq_attribute),
                                  .name = "scales",
                                  .kind = DQ_ATTRIBUTE_FLOATS,
                                  .floats = (float[]){0.1f},
                                  .count = 1},
                                 {.size = sizeof(dq_attribute),
                                  .name = "zps",
                                  .kind = DQ_ATTRIBUTE_INTS,
                                  .ints = (int64_t[]){128},
                                  .count = 1}};
    one_node n = {"onednn", "Dequantize", DQ_UINT8, DQ_FLOAT, 1, (int64_t[]){3}, 2, attributes, 0, {0}, NULL};
    want(&n, a, ((float[]){-128 * 0.1f, 0, 127 * 0.1f}), 3 * sizeof(float));
    dq_tensor_free(a);
}
END_TEST

START_TEST(dynamic_ones_take_scales_and_zero_points_as_inputs)
{
    static const dq_dtype types[] = {DQ_INT8, DQ_UINT8, DQ_INT32};
    dq_tensor *a = floats(2, (int64_t[]){2, 2}, (float[]){1, 2, 3, 4}), *codes = NULL;
    dq_tensor *scales = floats(1, (int64_t[]){2}, (float[]){0.5f, 2}), *zps = NULL;
    dq_attribute per_channel = {
        .size = sizeof(dq_attribute), .name = "qtype", .kind = DQ_ATTRIBUTE_STRING, .s = "per_channel"};
    must(dq_tensor_create(types[_i], 1, (int64_t[]){2}, &zps, &err));
    if (types[_i] == DQ_INT32)
        memcpy(dq_tensor_mutable_data(zps), ((int32_t[]){7, 1}), 8);
    else
        memcpy(dq_tensor_mutable_data(zps), ((uint8_t[]){7, 1}), 2);
    one_node n = {"onednn", "DynamicQuantize", DQ_FLOAT, DQ_UINT8,      2,   (int64_t[]){2, 2},
                  1,        &per_channel,      2,        {scales, zps}, NULL};
    want(&n, a, ((uint8_t[]){9, 2, 13, 3}), 4);
    must(dq_tensor_create(DQ_INT8, 2, (int64_t[]){2, 2}, &codes, &err));
    memcpy(dq_tensor_mutable_data(codes), ((int8_t[]){9, 2, 13, -3}), 4);
    n.op = "DynamicDequantize";
    n.in = DQ_INT8;
    n.out = DQ_FLOAT;
    want(&n, codes, ((float[]){1, 2, 3, -8}), 16);
    dq_tensor_free(a);
    dq_tensor_free(codes);
    dq_tensor_free(scales);
    dq_tensor_free(zps);
}
END_TEST

START_TEST(the_type_is_the_declared_one)
{
    dq_tensor *a = floats(1, (int64_t[]){1}, (float[]){1});
    dq_attribute scales = {.size = sizeof(dq_attribute),
                           .name = "scales",
                           .kind = DQ_ATTRIBUTE_FLOATS,
                           .floats = (float[]){1},
                           .count = 1};
    one_node n = {"onednn", "Quantize", DQ_FLOAT, DQ_UNDEFINED, 1, (int64_t[]){1}, 1, &scales, 0, {0}, NULL};
    refuse(
        &n, a,
        "m: node 'n' (onednn.Quantize-1): output 0 'dst' is declared undefined in the graph, expected int8 "
        "or uint8, "
        "which is its only say in the type");
    dq_tensor_free(a);
}
END_TEST

/* ---- A schema file that admits more -------------------------------------------------------------------- */

static const char admits_int8[] =
    "domain: ''\n"
    "name: DynamicQuantizeLinear\n"
    "since_version: 11\n"
    "min_input: 1\n"
    "max_input: 1\n"
    "min_output: 3\n"
    "max_output: 3\n"
    "doc: ''\n"
    "attributes: []\n"
    "inputs:\n"
    "- {name: x, type_str: T1, description: '', min_arity: 1, tags: []}\n"
    "outputs:\n"
    "- {name: y, type_str: T2, description: '', min_arity: 1, tags: []}\n"
    "- {name: y_scale, type_str: tensor(float), description: '', min_arity: 1, tags: []}\n"
    "- {name: y_zero_point, type_str: T2, description: '', min_arity: 1, tags: []}\n"
    "type_constraints:\n"
    "- {type_param_str: T1, description: '', allowed_type_strs: [tensor(float)]}\n"
    "- {type_param_str: T2, description: '', allowed_type_strs: [tensor(int8)]}\n"
    "support_level: COMMON\n"
    "deprecated: false\n";

static dq_status run_dynamic(dq_schemas *schemas, dq_dtype declared, const dq_tensor *x, int8_t *y,
                             float *scale)
{
    dq_builder *b = NULL;
    dq_model *model = NULL;
    dq_session *session = NULL;
    const dq_tensor *t = NULL;
    const char *outs[] = {"y", "scale", "zero"};
    dq_load_options options = {.size = sizeof(dq_load_options), .schemas = schemas};
    must(dq_builder_create("m", &b, &err));
    must(dq_builder_opset(b, "", 13, &err));
    must(dq_builder_input(b, "x", DQ_FLOAT, DQ_ANY_SHAPE, NULL, NULL, &err));
    must(add_node(b, "", "DynamicQuantizeLinear", "d", 1, (const char *[]){"x"}, 3, outs, 0, NULL, &err));
    must(dq_builder_output(b, "y", declared, DQ_ANY_SHAPE, NULL, NULL, &err));
    must(dq_builder_output(b, "scale", DQ_FLOAT, DQ_ANY_SHAPE, NULL, NULL, &err));
    must(dq_builder_finish(b, &options, &model, &err));
    dq_status status = dq_session_create(model, NULL, &session, &err);
    if (status == DQ_OK) {
        must(dq_session_set_input(session, "x", x, &err));
        status = dq_session_run(session, &err);
    }
    if (status == DQ_OK) {
        must(dq_session_get_output(session, "y", &t, &err));
        ck_assert_int_eq(dq_tensor_dtype(t), DQ_INT8);
        memcpy(y, dq_tensor_data(t), dq_tensor_size(t));
        must(dq_session_get_output(session, "scale", &t, &err));
        *scale = *(const float *)dq_tensor_data(t);
    }
    dq_session_free(session);
    dq_model_free(model);
    return status;
}

START_TEST(a_schema_file_makes_an_int8_model_run)
{
    dq_tensor *x = floats(1, (int64_t[]){4}, (float[]){-1.27f, 0, 1.27f, 0.635f});
    dq_schemas *schemas = NULL;
    int8_t y[4];
    float scale;
    ck_assert_int_eq(run_dynamic(NULL, DQ_INT8, x, y, &scale), DQ_BAD_MODEL);
    ck_assert_str_eq(err.message,
                     "m: node 'd' (DynamicQuantizeLinear-11): output 0 'y' is declared tensor(int8), and the "
                     "node gives tensor(uint8)");
    must(dq_schemas_create(&schemas, &err));
    must(dq_schemas_add_yaml(schemas, admits_int8, strlen(admits_int8), "mine.yaml", &err));
    must(run_dynamic(schemas, DQ_INT8, x, y, &scale));
    /* range 2.54 over 254 steps from -127: the zero point is 0 */
    ck_assert(scale == 2.54f / 254);
    ck_assert_mem_eq(y, ((int8_t[]){-127, 0, 127, 64}), 4);
    dq_schemas_free(schemas);
    dq_tensor_free(x);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("custom_operators", NULL, NULL);
    add_test(&tests, quantize_rounds_the_sum_with_the_zero_point);
    add_test(&tests, channels_run_along_any_axis);
    add_test(&tests, dequantize_subtracts_and_scales);
    add_loop_test(&tests, dynamic_ones_take_scales_and_zero_points_as_inputs, 0, 3);
    add_test(&tests, the_type_is_the_declared_one);
    add_test(&tests, a_schema_file_makes_an_int8_model_run);
    return test_program_run(&tests);
}
