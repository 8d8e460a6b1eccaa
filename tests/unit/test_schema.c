/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas: reading YAML from friends and strangers, finding versions, holding nodes and types against them.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema_set.h"
#include "support/test_program.h"

static dq_ir *ir;

static void setup(void)
{
    ck_assert_int_eq(dq_schemas_create(&set, &err), DQ_OK);
    ck_assert_int_eq(dq_ir_create("test", NULL, NULL, &ir, &err), DQ_OK);
    if (!ir->graph)
        ck_assert_int_eq(dq_graph_create(ir, "main", NULL, &ir->graph, &err), DQ_OK);
}

static void teardown(void)
{
    dq_ir_free(ir);
    dq_schemas_free(set);
}

static void must_add(const char *yaml)
{
    ck_assert_msg(dq_schemas_add_yaml(set, yaml, strlen(yaml), "f.yaml", &err) == DQ_OK, "%s", err.message);
}

/* A node with `in` inputs and `out` outputs; a name in `gaps` ("i1", "o0") is left out. */
static dq_node *node_of(uint32_t in, uint32_t out, uint32_t attrs, const char *gaps)
{
    dq_node *node = NULL;
    ck_assert_int_eq(dq_graph_add_node(ir->graph, in, out, attrs, &node, &err), DQ_OK);
    node->name = "";
    node->domain = node->overload = "";
    node->op_type = "Test";
    for (uint32_t i = 0; i < in; i++) {
        char name[16];
        snprintf(name, sizeof name, "i%u", i);
        node->in_names[i] = strstr(gaps, name) ? "" : "x";
    }
    for (uint32_t i = 0; i < out; i++) {
        char name[16];
        snprintf(name, sizeof name, "o%u", i);
        node->out_names[i] = strstr(gaps, name) ? "" : "y";
    }
    return node;
}

static void expect(dq_status got, dq_status expected, const char *message)
{
    ck_assert_int_eq(got, expected);
    ck_assert_int_eq(err.status, expected);
    ck_assert_str_eq(err.message, message);
}

/* ---- Finding ----------------------------------------------------------------------------------------- */

START_TEST(newest_version_not_above_the_import)
{
    static const int expected[][2] = {{10, 10}, {12, 10}, {13, 13}, {18, 13}, {19, 19}, {20, 19}, {21, 21},
                                      {22, 21}, {23, 23}, {24, 24}, {25, 25}, {27, 25}, {28, 28}, {99, 28}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        ck_assert_int_eq(find("QuantizeLinear", expected[i][0])->since_version, expected[i][1]);
    const dq_schema *same = NULL;
    ck_assert_int_eq(dq_schemas_find(set, "ai.onnx", "QuantizeLinear", 28, &same, &err), DQ_OK);
    ck_assert_ptr_eq(same, find("QuantizeLinear", 28));
}
END_TEST

START_TEST(what_is_not_found_says_why)
{
    const dq_schema *schema = NULL;
    expect(dq_schemas_find(set, "", "Quantise", 21, &schema, &err), DQ_UNSUPPORTED,
           "there is no schema for operator 'Quantise' of domain 'ai.onnx'");
    expect(dq_schemas_find(set, "my.domain", "Add", 1, &schema, &err), DQ_UNSUPPORTED,
           "there is no schema for operator 'Add' of domain 'my.domain'");
    expect(dq_schemas_find(set, "", "BitCast", 21, &schema, &err), DQ_BAD_MODEL,
           "operator 'BitCast' came with version 26 of domain 'ai.onnx', the model imports version 21");
    expect(dq_schemas_find(set, "com.microsoft", "QGemm", 0, &schema, &err), DQ_BAD_MODEL,
           "operator 'QGemm' is of domain 'com.microsoft', which the model does not import");
    ck_assert_ptr_null(schema);
}
END_TEST

typedef struct last_row {
    const dq_schema *schema;
    size_t count;
} last_row;

static int check_order(void *arg, const dq_schema *schema)
{
    last_row *last = arg;
    if (last->schema) {
        int order = strcmp(last->schema->domain, schema->domain);
        order = order ? order : strcmp(last->schema->name, schema->name);
        ck_assert(order < 0 || (order == 0 && last->schema->since_version < schema->since_version));
    }
    ck_assert_uint_le(schema->min_input, schema->max_input);
    *last = (last_row){schema, last->count + 1};
    return 0;
}

START_TEST(all_embedded_schemas_are_read_in_order)
{
    last_row last = {0};
    must_add("domain: a.b\nname: Zed\nsince_version: 1\ninputs: []\noutputs: []\n---\n"
             "domain: ai.onnx\nname: AAA\nsince_version: 1\ninputs: []\noutputs: []\n");
    ck_assert_ptr_nonnull(find("AAA", 1));
    ck_assert_msg(dq_schemas_each(set, check_order, &last, &err) == DQ_OK, "%s", err.message);
    ck_assert_uint_ge(last.count, 250);
    ck_assert_uint_ge(dq_embedded_schema_count, 50);
}
END_TEST

static void *find_many(void *arg)
{
    (void)arg;
    static const char *const names[] = {"Cast", "Conv", "QuantizeLinear", "Identity", "Max", "Reshape"};
    const dq_schema *schema = NULL;
    for (unsigned i = 0; i < 200; i++)
        if (dq_schemas_find(set, "", names[i % 6], 28, &schema, NULL) ||
            strcmp(schema->name, names[i % 6]) != 0)
            return &set;
    return NULL;
}

START_TEST(threads_may_look_up_at_once)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, find_many, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
}
END_TEST

/* ---- What rows hold ---------------------------------------------------------------------------------- */

START_TEST(a_row_holds_what_the_standard_says)
{
    const dq_schema *s = find("QuantizeLinear", 21);
    ck_assert_uint_eq(s->min_input, 2);
    ck_assert_uint_eq(s->max_input, 3);
    ck_assert_str_eq(s->inputs[2].name, "y_zero_point");
    ck_assert_int_eq(s->inputs[1].option, DQ_SINGLE);
    ck_assert_int_eq(s->inputs[2].option, DQ_OPTIONAL);
    ck_assert(dq_type_set_has(&s->inputs[2].types, DQ_FORM_TENSOR, DQ_INT4));
    ck_assert(!dq_type_set_has(&s->inputs[2].types, DQ_FORM_TENSOR, DQ_INT2));
    ck_assert(!dq_type_set_has(&s->inputs[2].types, DQ_FORM_SEQUENCE, DQ_INT4));
    ck_assert_int_eq(attr_of(s, "saturate")->value.u.i, 1);
    ck_assert(attr_of(find("Cast", 21), "to")->required);
    ck_assert(!attr_of(find("ConstantOfShape", 21), "value")->has_default);
    const dq_attr *alpha = &attr_of(find("Gemm", 13), "alpha")->value;
    ck_assert_int_eq(alpha->kind, DQ_ATTR_FLOAT);
    ck_assert(same_float(alpha->u.f, 1.0f));
    const dq_attr *pad = &attr_of(find("Conv", 22), "auto_pad")->value;
    ck_assert_str_eq(pad->u.s.bytes, "NOTSET");
    ck_assert_uint_eq(pad->u.s.length, 6);
    s = find("Concat", 13);
    ck_assert_int_eq(s->inputs[0].option, DQ_VARIADIC);
    ck_assert_uint_eq(s->max_input, DQ_UNBOUNDED);
    ck_assert_ptr_eq(dq_schema_input(s, 7), &s->inputs[0]);
    ck_assert(dq_type_set_has(&find("Identity", 16)->inputs[0].types, DQ_FORM_OPTIONAL_SEQUENCE, DQ_STRING));
}
END_TEST

#define HEAD "name: N\nsince_version: 1\n"

/* ---- Nodes ------------------------------------------------------------------------------------------- */

START_TEST(arity_is_checked)
{
    const dq_schema *quantize = find("QuantizeLinear", 21), *conv = find("QLinearConv", 10);
    expect(dq_schema_check_node(quantize, node_of(1, 1, 0, ""), &err), DQ_BAD_MODEL,
           "has 1 input, expected 2 to 3");
    expect(dq_schema_check_node(quantize, node_of(4, 1, 0, ""), &err), DQ_BAD_MODEL,
           "has 4 inputs, expected 2 to 3");
    expect(dq_schema_check_node(quantize, node_of(2, 2, 0, ""), &err), DQ_BAD_MODEL,
           "has 2 outputs, expected 1");
    expect(dq_schema_check_node(find("Concat", 13), node_of(0, 1, 0, ""), &err), DQ_BAD_MODEL,
           "has 0 inputs, expected at least 1");
    expect(dq_schema_check_node(conv, node_of(8, 1, 0, "i4"), &err), DQ_BAD_MODEL,
           "input 4 'w_scale' is left out, and it is not optional");
    expect(dq_schema_check_node(find("Concat", 13), node_of(3, 1, 0, "i1"), &err), DQ_BAD_MODEL,
           "input 1 'inputs' is left out, and it is not optional");
    expect(dq_schema_check_node(conv, node_of(8, 1, 0, "o0"), &err), DQ_BAD_MODEL,
           "output 0 'y' is left out, and it is not optional");
    ck_assert_int_eq(dq_schema_check_node(conv, node_of(9, 1, 0, "i8"), &err), DQ_OK);
    ck_assert_int_eq(dq_schema_check_node(find("Clip", 13), node_of(3, 1, 0, "i1"), &err), DQ_OK);
    ck_assert_int_eq(dq_schema_check_node(find("MaxPool", 12), node_of(1, 2, 0, "o1"), &err), DQ_BAD_MODEL);
    ck_assert_str_eq(err.message, "lacks the attribute 'kernel_shape' of type ints, which is required");
}
END_TEST

START_TEST(a_user_row_decides_the_arity)
{
    must_add("name: Relu\nsince_version: 13\nmin_input: 2\nmax_input: 2\ninputs:\n- {name: X, type_str: "
             "tensor(float)}\n"
             "outputs:\n- {name: Y, type_str: tensor(float)}\n");
    expect(dq_schema_check_node(find("Relu", 13), node_of(1, 1, 0, ""), &err), DQ_BAD_MODEL,
           "has 1 input, expected 2");
    ck_assert_int_eq(dq_schema_check_node(find("Relu", 14), node_of(1, 1, 0, ""), &err), DQ_OK);
}
END_TEST

START_TEST(attributes_are_checked)
{
    const dq_schema *cast = find("Cast", 21);
    dq_node *node = node_of(1, 1, 1, "");
    node->attrs[0] = (dq_attr){.name = "too", .kind = DQ_ATTR_INT};
    expect(dq_schema_check_node(cast, node, &err), DQ_BAD_MODEL,
           "has the attribute 'too', which the operator does not know; it has saturate, to");
    node->attrs[0] = (dq_attr){.name = "to", .kind = DQ_ATTR_STRING, .u.s = {"FLOAT", 5}};
    expect(dq_schema_check_node(cast, node, &err), DQ_BAD_MODEL,
           "attribute 'to' is of type string, expected int");
    node->attrs[0] = (dq_attr){.name = "to", .kind = DQ_ATTR_INT, .ref = "dtype"};
    expect(dq_schema_check_node(cast, node, &err), DQ_BAD_MODEL,
           "attribute 'to' refers to attribute 'dtype' of a function, and is in none");
    node->attrs[0].ref = NULL;
    ck_assert_int_eq(dq_schema_check_node(cast, node, &err), DQ_OK);
    ck_assert_ptr_eq(node->schema, cast);
    node = node_of(1, 1, 2, "");
    node->attrs[0] = node->attrs[1] = (dq_attr){.name = "to", .kind = DQ_ATTR_INT};
    expect(dq_schema_check_node(cast, node, &err), DQ_BAD_MODEL, "has the attribute 'to' twice");
    node = node_of(1, 1, 1, "");
    node->attrs[0] = (dq_attr){.name = "to", .kind = DQ_ATTR_INT};
    expect(dq_schema_check_node(find("Relu", 14), node, &err), DQ_BAD_MODEL,
           "has the attribute 'to', which the operator does not know; it has none");
    node = node_of(1, 1, 1, "");
    node->attrs[0] = (dq_attr){.name = "alpha", .kind = DQ_ATTR_INT};
    expect(dq_schema_check_node(find("Elu", 22), node, &err), DQ_BAD_MODEL,
           "attribute 'alpha' is of type int, expected float");
    node = node_of(0, 1, 1, "");
    node->attrs[0] = (dq_attr){.name = "sparse_value", .kind = DQ_ATTR_TENSOR};
    ck_assert_int_eq(dq_schema_check_node(find("Constant", 21), node, &err), DQ_OK);
}
END_TEST

START_TEST(absent_attributes_get_their_defaults)
{
    dq_node *node = node_of(2, 1, 1, "");
    node->attrs[0] = (dq_attr){.name = "axis", .kind = DQ_ATTR_INT, .u.i = -1};
    ck_assert_int_eq(dq_schema_check_node(find("QuantizeLinear", 21), node, &err), DQ_OK);
    ck_assert_uint_eq(node->attr_count, 4);
    ck_assert_int_eq(dq_node_int(node, "axis", 99), -1);
    ck_assert_int_eq(dq_node_int(node, "saturate", 99), 1);
    ck_assert_int_eq(dq_node_int(node, "block_size", 99), 0);
    ck_assert_int_eq(dq_node_int(node, "precision", 99), 99);
    ck_assert_int_eq(dq_schema_check_node(find("QuantizeLinear", 21), node, &err), DQ_OK);
    ck_assert_uint_eq(node->attr_count, 4);
    node = node_of(2, 1, 0, "");
    ck_assert_int_eq(dq_schema_check_node(find("Conv", 22), node, &err), DQ_OK);
    ck_assert_str_eq(dq_node_string(node, "auto_pad", ""), "NOTSET");
    ck_assert_ptr_null(dq_node_attr(node, "pads"));
}
END_TEST

START_TEST(withdrawn_operators_are_refused)
{
    must_add(HEAD "inputs: []\noutputs: []\n---\nname: N\nsince_version: 5\ninputs: []\noutputs: []\n"
                  "deprecated: true\n");
    ck_assert_int_eq(dq_schema_check_node(find("N", 4), node_of(0, 0, 0, ""), &err), DQ_OK);
    expect(dq_schema_check_node(find("N", 6), node_of(0, 0, 0, ""), &err), DQ_BAD_MODEL,
           "the operator is withdrawn since version 5 of its domain");
}
END_TEST

/* ---- Types ------------------------------------------------------------------------------------------- */

#define TENSOR(d) (&(const dq_type){.kind = DQ_KIND_TENSOR, .dtype = (d)})

static void expect_type(const dq_type *type, const char *expected)
{
    char text[DQ_TYPE_TEXT];
    ck_assert_str_eq(dq_type_text(type, text), expected);
}

START_TEST(types_are_bound_through_variables)
{
    dq_type out[3];
    const dq_schema *s = find("QuantizeLinear", 21);
    const dq_node *node = node_of(3, 1, 0, "");
    const dq_type *in[3] = {TENSOR(DQ_FLOAT), TENSOR(DQ_FLOAT), TENSOR(DQ_INT8)};
    ck_assert_int_eq(dq_schema_bind_types(s, node, in, out, &err), DQ_OK);
    expect_type(&out[0], "tensor(int8)");
    in[2] = TENSOR(DQ_INT32);
    expect(dq_schema_bind_types(s, node, in, out, &err), DQ_BAD_MODEL,
           "input 2 'y_zero_point' is tensor(int32), expected one of tensor(uint8), tensor(int8), "
           "tensor(uint16), "
           "tensor(int16), tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2), "
           "tensor(float8e5m2fnuz), tensor(uint4), tensor(int4)");
    in[1] = TENSOR(DQ_FLOAT16);
    in[2] = NULL;
    expect(dq_schema_bind_types(s, node, in, out, &err), DQ_BAD_MODEL,
           "input 1 'y_scale' is tensor(float16), expected tensor(float), the type of input 0 'x'");
    in[1] = TENSOR(DQ_UNDEFINED);
    ck_assert_int_eq(dq_schema_bind_types(s, node, in, out, &err), DQ_OK);
    ck_assert_int_eq(out[0].kind, DQ_KIND_TENSOR);
    ck_assert_int_eq(out[0].dtype, DQ_UNDEFINED);
}
END_TEST

START_TEST(types_that_one_schema_fixes)
{
    dq_type out[3];
    const dq_type *in[4] = {TENSOR(DQ_UINT8), TENSOR(DQ_INT8), NULL, TENSOR(DQ_INT8)};
    ck_assert_int_eq(dq_schema_bind_types(find("MatMulInteger", 10), node_of(4, 1, 0, "i2"), in, out, &err),
                     DQ_OK);
    expect_type(&out[0], "tensor(int32)");
    in[3] = TENSOR(DQ_UINT8);
    expect(dq_schema_bind_types(find("MatMulInteger", 10), node_of(4, 1, 0, "i2"), in, out, &err),
           DQ_BAD_MODEL,
           "input 3 'b_zero_point' is tensor(uint8), expected tensor(int8), the type of input 1 'B'");
    in[0] = TENSOR(DQ_DOUBLE);
    expect(dq_schema_bind_types(find("DynamicQuantizeLinear", 11), node_of(1, 3, 0, ""), in, out, &err),
           DQ_BAD_MODEL, "input 0 'x' is tensor(double), expected tensor(float)");
    in[0] = TENSOR(DQ_FLOAT);
    ck_assert_int_eq(
        dq_schema_bind_types(find("DynamicQuantizeLinear", 11), node_of(1, 3, 0, ""), in, out, &err), DQ_OK);
    expect_type(&out[0], "tensor(uint8)");
    expect_type(&out[1], "tensor(float)");
    in[1] = TENSOR(DQ_FLOAT);
    in[2] = TENSOR(DQ_DOUBLE);
    expect(dq_schema_bind_types(find("Concat", 13), node_of(3, 1, 0, ""), in, out, &err), DQ_BAD_MODEL,
           "input 2 'inputs' is tensor(double), expected tensor(float), the type of input 0 'inputs'");
}
END_TEST

START_TEST(sequences_optionals_and_maps_are_bound)
{
    dq_type out[1], sequence = {.kind = DQ_KIND_SEQUENCE, .element = TENSOR(DQ_INT8)};
    dq_type optional = {.kind = DQ_KIND_OPTIONAL, .element = &sequence};
    dq_type nested = {.kind = DQ_KIND_SEQUENCE, .element = &sequence};
    dq_type map = {.kind = DQ_KIND_MAP, .dtype = DQ_STRING, .element = TENSOR(DQ_FLOAT)};
    const dq_type *in[1] = {&optional};
    const dq_node *node = node_of(1, 1, 0, "");
    ck_assert_int_eq(dq_schema_bind_types(find("Identity", 16), node, in, out, &err), DQ_OK);
    expect_type(&out[0], "optional(seq(tensor(int8)))");
    in[0] = &sequence;
    ck_assert_int_eq(dq_schema_bind_types(find("Identity", 16), node, in, out, &err), DQ_OK);
    expect_type(&out[0], "seq(tensor(int8))");
    expect(dq_schema_bind_types(find("Abs", 6), node, in, out, &err), DQ_BAD_MODEL,
           "input 0 'X' is seq(tensor(int8)), expected one of tensor(float), tensor(uint8), tensor(int8), "
           "tensor(uint16), tensor(int16), tensor(int32), tensor(int64), tensor(float16), tensor(double), "
           "tensor(uint32), tensor(uint64)");
    must_add(
        HEAD
        "inputs: [{name: x, type_str: T, tags: [variadic, heterogeneous]}]\n"
        "outputs: [{name: y, type_str: T}]\n"
        "type_constraints: [{type_param_str: T, allowed_type_strs: ['map(string, float)', tensor(int8)]}]\n");
    in[0] = &nested;
    expect(dq_schema_bind_types(find("N", 1), node, in, out, &err), DQ_BAD_MODEL,
           "input 0 'x' is seq(seq(tensor(int8))), expected one of tensor(int8), map(string, float)");
    const dq_type *mixed[2] = {&map, TENSOR(DQ_INT8)};
    ck_assert_msg(dq_schema_bind_types(find("N", 1), node_of(2, 1, 0, ""), mixed, out, &err) == DQ_OK, "%s",
                  err.message);
    ck_assert_int_eq(out[0].dtype, DQ_UNDEFINED);
}
END_TEST

START_TEST(a_variable_binds_form_and_element)
{
    dq_type out[1], sequence = {.kind = DQ_KIND_SEQUENCE, .element = TENSOR(DQ_INT8)};
    dq_type map = {.kind = DQ_KIND_MAP, .dtype = DQ_STRING, .element = TENSOR(DQ_FLOAT)};
    dq_type maps = {.kind = DQ_KIND_SEQUENCE, .element = &map};
    must_add(HEAD
             "inputs: [{name: x, type_str: T}, {name: y, type_str: T}]\noutputs: [{name: z, type_str: T}]\n"
             "type_constraints:\n- type_param_str: T\n"
             "  allowed_type_strs: [tensor(int8), seq(tensor(int8)), 'seq(map(string, float))']\n");
    const dq_type *in[2] = {TENSOR(DQ_INT8), &sequence};
    expect(dq_schema_bind_types(find("N", 1), node_of(2, 1, 0, ""), in, out, &err), DQ_BAD_MODEL,
           "input 1 'y' is seq(tensor(int8)), expected tensor(int8), the type of input 0 'x'");
    in[0] = in[1] = &maps;
    ck_assert_int_eq(dq_schema_bind_types(find("N", 1), node_of(2, 1, 0, ""), in, out, &err), DQ_OK);
    ck_assert_int_eq(out[0].kind, DQ_KIND_SEQUENCE);
    ck_assert_int_eq(out[0].element->kind, DQ_KIND_MAP);
    ck_assert_int_eq(out[0].element->dtype, DQ_STRING);
    ck_assert_int_eq(out[0].element->element->dtype, DQ_FLOAT);
    in[0] = in[1] = &map;
    ck_assert_int_eq(dq_schema_bind_types(find("N", 1), node_of(2, 1, 0, ""), in, out, &err), DQ_BAD_MODEL);
}
END_TEST

START_TEST(constraints_as_text)
{
    char text[64];
    static const char expected[] = "T1: tensor(float); T2: tensor(uint8)";
    ck_assert_uint_eq(dq_schema_types_text(find("DynamicQuantizeLinear", 11), text, sizeof text),
                      strlen(expected));
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(dq_schema_types_text(find("DynamicQuantizeLinear", 11), text, 12), strlen(expected));
    ck_assert_str_eq(text, "T1: tensor(");
    ck_assert_uint_eq(dq_schema_types_text(find("DynamicQuantizeLinear", 11), NULL, 0), strlen(expected));
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("schema", setup, teardown);
    add_test(&tests, newest_version_not_above_the_import);
    add_test(&tests, what_is_not_found_says_why);
    add_test(&tests, all_embedded_schemas_are_read_in_order);
    add_test(&tests, threads_may_look_up_at_once);
    add_test(&tests, a_row_holds_what_the_standard_says);
    add_test(&tests, arity_is_checked);
    add_test(&tests, a_user_row_decides_the_arity);
    add_test(&tests, attributes_are_checked);
    add_test(&tests, absent_attributes_get_their_defaults);
    add_test(&tests, withdrawn_operators_are_refused);
    add_test(&tests, types_are_bound_through_variables);
    add_test(&tests, types_that_one_schema_fixes);
    add_test(&tests, sequences_optionals_and_maps_are_bound);
    add_test(&tests, a_variable_binds_form_and_element);
    add_test(&tests, constraints_as_text);
    return test_program_run(&tests);
}
