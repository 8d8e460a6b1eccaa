/* SPDX-License-Identifier: Apache-2.0 */
/* src/parser: what a model says comes out as it was written, and what is wrong with it is said. */
#include "parse.h"
#include "support/random.h"

#include <stdlib.h>

/* ---- Attributes --------------------------------------------------------------------------------------- */

/* A model with one node that has the attribute `attr`. */
static ow attribute_model(const ow *attr)
{
    ow graph = {0}, more = {0};
    ow_msg(&more, OW_NODE_ATTR, attr);
    ow_node(&graph, OW_GRAPH_NODE, "n", "Op", "", "", "y", &more);
    return ow_model(&graph);
}

static ow attribute(const char *name, int type)
{
    ow attr = {0};
    ow_str(&attr, 1, name);
    if (type)
        ow_int(&attr, 20, type);
    return attr;
}

/* Writes a value of that kind. */
static void put_value(ow *attr, dq_attr_kind kind)
{
    static const int64_t ints[] = {3, -4}, one[] = {1};
    ow tensor = ow_tensor("", DQ_INT8, 1, one), graph = {0}, type = {0}, sparse = {0},
       index = ow_tensor("", DQ_INT64, 1, one);
    ow_ints(&tensor, 5, 1, ints);
    ow_ints(&index, 7, 1, (int64_t[]){0});
    ow_msg(&sparse, 1, &tensor);
    ow_msg(&sparse, 2, &index);
    ow_ints(&sparse, 3, 1, one);
    ow_str(&graph, 2, "inner");
    ow_msg(&type, 1, &(ow){.size = 2, .bytes = {8, DQ_INT8}});
    switch (kind) {
    case DQ_ATTR_FLOAT:
        ow_float(attr, 2, 1.5f);
        break;
    case DQ_ATTR_INT:
        ow_int(attr, 3, -7);
        break;
    case DQ_ATTR_STRING:
        ow_str(attr, 4, "text");
        break;
    case DQ_ATTR_FLOATS:
        ow_float(attr, 7, 1.5f);
        ow_float(attr, 7, 2.5f);
        break;
    case DQ_ATTR_INTS:
        ow_ints(attr, 8, 2, ints);
        break;
    case DQ_ATTR_STRINGS:
        ow_list(attr, 9, "a,bc");
        break;
    case DQ_ATTR_TENSOR:
        ow_msg(attr, 5, &tensor);
        break;
    case DQ_ATTR_TENSORS:
        ow_msg(attr, 10, &tensor);
        ow_msg(attr, 10, &tensor);
        break;
    case DQ_ATTR_GRAPH:
        ow_msg(attr, 6, &graph);
        break;
    case DQ_ATTR_GRAPHS:
        ow_msg(attr, 11, &graph);
        ow_msg(attr, 11, &graph);
        break;
    case DQ_ATTR_SPARSE_TENSOR:
        ow_msg(attr, 22, &sparse);
        break;
    case DQ_ATTR_SPARSE_TENSORS:
        ow_msg(attr, 23, &sparse);
        ow_msg(attr, 23, &sparse);
        break;
    case DQ_ATTR_TYPE_PROTO:
        ow_msg(attr, 14, &type);
        break;
    default:
        ow_msg(attr, 15, &type);
        ow_msg(attr, 15, &type);
    }
}

static bool value_is(const dq_attr *a, dq_attr_kind kind)
{
    switch (kind) {
    case DQ_ATTR_FLOAT:
        return a->u.f == 1.5f;
    case DQ_ATTR_INT:
        return a->u.i == -7;
    case DQ_ATTR_STRING:
        return a->u.s.length == 4 && strcmp(a->u.s.bytes, "text") == 0;
    case DQ_ATTR_FLOATS:
        return a->count == 2 && a->u.floats[0] == 1.5f && a->u.floats[1] == 2.5f;
    case DQ_ATTR_INTS:
        return a->count == 2 && a->u.ints[0] == 3 && a->u.ints[1] == -4;
    case DQ_ATTR_STRINGS:
        return a->count == 2 && strcmp(a->u.strings[1].bytes, "bc") == 0;
    case DQ_ATTR_TENSOR:
    case DQ_ATTR_SPARSE_TENSOR:
        return a->u.tensor->dtype == DQ_INT8 && dq_data(a->u.tensor, int8_t)[0] == 3;
    case DQ_ATTR_TENSORS:
    case DQ_ATTR_SPARSE_TENSORS:
        return a->count == 2 && dq_data(a->u.tensors[1], int8_t)[0] == 3;
    case DQ_ATTR_GRAPH:
        return strcmp(a->u.graph->name, "inner") == 0 && a->u.graph->outer != NULL;
    case DQ_ATTR_GRAPHS:
        return a->count == 2 && strcmp(a->u.graphs[1]->name, "inner") == 0;
    case DQ_ATTR_TYPE_PROTO:
        return a->u.type->kind == DQ_KIND_TENSOR && a->u.type->dtype == DQ_INT8;
    default:
        return a->count == 2 && a->u.types[1]->dtype == DQ_INT8;
    }
}

START_TEST(attributes_of_every_kind_with_and_without_their_type)
{
    dq_attr_kind kind = (dq_attr_kind)_i;
    dq_attr_kind dense = kind == DQ_ATTR_SPARSE_TENSOR    ? DQ_ATTR_TENSOR
                         : kind == DQ_ATTR_SPARSE_TENSORS ? DQ_ATTR_TENSORS
                                                          : kind;
    for (int typed = 0; typed < 2; typed++) {
        ow attr = attribute("a", typed ? (int)kind : 0);
        put_value(&attr, kind);
        ow model = attribute_model(&attr);
        dq_ir *ir = parsed(&model);
        const dq_attr *a = dq_node_attr(ir->graph->nodes[0], "a");
        ck_assert_ptr_nonnull(a);
        ck_assert_int_eq((int)a->kind, (int)dense);
        ck_assert_ptr_null(a->ref);
        ck_assert(value_is(a, kind));
        dq_ir_free(ir);
    }
}
END_TEST

START_TEST(wrong_attributes_are_refused)
{
    ow attr = attribute("a", DQ_ATTR_INT);
    put_value(&attr, DQ_ATTR_FLOAT);
    ow model = attribute_model(&attr);
    refused(&model, DQ_BAD_MODEL,
            "t.onnx: node 'n' (Op-21): attribute 'a' has the type int and a value of type float");
    put_value(&attr, DQ_ATTR_INT);
    model = attribute_model(&attr);
    refused(&model, DQ_BAD_MODEL,
            "t.onnx: node 'n' (Op-21): attribute 'a' has values of several types, expected one");
    attr = attribute("a", 0);
    model = attribute_model(&attr);
    refused(&model, DQ_BAD_MODEL, "t.onnx: node 'n' (Op-21): attribute 'a' has neither a type nor a value");
    attr = attribute("a", 15);
    model = attribute_model(&attr);
    refused(&model, DQ_BAD_MODEL,
            "t.onnx: node 'n' (Op-21): attribute 'a' has type 15, which is not one of ONNX's (1 to 14)");
    attr = attribute("a", DQ_ATTR_TENSOR);
    model = attribute_model(&attr);
    refused(&model, DQ_BAD_MODEL,
            "t.onnx: node 'n' (Op-21): attribute 'a' has no value, expected one of type tensor");
    attr = attribute("a", DQ_ATTR_INT);
    ow_str(&attr, 21, "b");
    model = attribute_model(&attr);
    refused(
        &model, DQ_BAD_MODEL,
        "t.onnx: node 'n' (Op-21): attribute 'a' refers to attribute 'b' of a function, and stands in none");
    attr = attribute("", DQ_ATTR_INT);
    model = attribute_model(&attr);
    refused(&model, DQ_BAD_MODEL, "t.onnx: node 'n' (Op-21): attribute 0 has no name");
}
END_TEST

START_TEST(two_attributes_of_one_name_are_refused)
{
    for (int k = 0; k < 4;
         k++) { /* a short list and a long one, the last as the first or of a name of its own */
        ow graph = {0}, more = {0};
        const int count = k < 2 ? 2 : 39;
        for (int i = 0; i < count; i++) {
            char name[16];
            snprintf(name, sizeof name, "a%d", k % 2 && i == count - 1 ? 0 : i);
            ow attr = attribute(name, DQ_ATTR_INT);
            ow_msg(&more, OW_NODE_ATTR, &attr);
        }
        ow_node(&graph, OW_GRAPH_NODE, "n", "Op", "", "", "y", &more);
        ow model = ow_model(&graph);
        dq_ir *ir = NULL;
        if (k % 2) {
            refused(&model, DQ_BAD_MODEL, "t.onnx: node 'n' (Op-21): two attributes are named 'a0'");
        } else {
            ck_assert_int_eq(parse(&model, &ir), DQ_OK);
            dq_ir_free(ir);
        }
    }
}
END_TEST

START_TEST(lists_that_are_searched_are_bounded)
{
    ow graph = {0}, more = {0}, attr = attribute("a", DQ_ATTR_INT);
    for (int i = 0; i < 1001; i++)
        ow_msg(&more, OW_NODE_ATTR, &attr);
    ow_node(&graph, OW_GRAPH_NODE, "n", "Op", "", "", "y", &more);
    ow model = ow_model(&graph);
    refused(&model, DQ_OUT_OF_MEMORY, "t.onnx: has 1001 attributes in a node, expected at most 1000");
    graph.size = 0;
    model = ow_model(&graph);
    for (int i = 0; i < 200; i++)
        ow_opset(&model, OW_MODEL_OPSET, "my", 1);
    refused(&model, DQ_OUT_OF_MEMORY, "t.onnx: imports 201 operator sets, expected at most 200");
}
END_TEST

/* ---- Types, graphs, functions ------------------------------------------------------------------------- */

START_TEST(declared_types)
{
    static const int64_t dims[] = {3};
    ow graph = {0}, shape = {0}, dim = {0}, tensor = {0}, type = {0}, list = {0}, value = {0}, map = {0};
    ow_str(&dim, 2, "N");
    ow_msg(&shape, 1, &dim);
    ow_msg(&shape, 1, &(ow){0});
    dim.size = 0;
    ow_int(&dim, 1, 5);
    ow_msg(&shape, 1, &dim);
    ow_int(&tensor, 1, DQ_FLOAT);
    ow_msg(&tensor, 2, &shape);
    ow_msg(&type, 1, &tensor);
    ow_msg(&list, 1, &type); /* sequence, optional: elem_type */
    ow sequence = {0}, optional = {0}, maybe = {0}, mapped = {0};
    ow_msg(&sequence, 4, &list);
    ow_msg(&maybe, 1, &sequence);
    ow_msg(&optional, 9, &maybe);
    ow_int(&map, 1, DQ_INT64);
    ow_msg(&map, 2, &type);
    ow_msg(&mapped, 5, &map);
    ow_str(&value, 1, "o");
    ow_msg(&value, 2, &optional);
    ow_msg(&graph, OW_GRAPH_IN, &value);
    value.size = 0;
    ow_str(&value, 1, "m");
    ow_msg(&value, 2, &mapped);
    ow_msg(&graph, OW_GRAPH_IN, &value);
    ow_value(&graph, OW_GRAPH_OUT, "y", DQ_INT8, 1, dims);
    ow model = ow_model(&graph);
    dq_ir *ir = parsed(&model);
    char text[DQ_TYPE_TEXT];
    const dq_type *o = &ir->graph->inputs[0]->type;
    ck_assert_str_eq(dq_type_text(o, text), "optional(seq(tensor(float)))");
    const dq_type *t = o->element->element;
    ck_assert(t->has_shape && t->rank == 3);
    ck_assert_int_eq(t->dims[0], -1);
    ck_assert_str_eq(t->dim_names[0], "N");
    ck_assert_int_eq(t->dims[1], -1);
    ck_assert_ptr_null(t->dim_names[1]);
    ck_assert_int_eq(t->dims[2], 5);
    ck_assert_str_eq(dq_type_text(&ir->graph->inputs[1]->type, text), "map(int64,tensor(float))");
    ck_assert_int_eq(ir->graph->output_types[0].dims[0], 3);
    dq_ir_free(ir);
}
END_TEST

START_TEST(initializers_may_be_inputs_too)
{
    static const int64_t dims[] = {1};
    ow tensor = ow_tensor("w", DQ_INT8, 1, dims), graph = {0};
    ow_raw(&tensor, 9, "x", 1);
    ow_msg(&graph, OW_GRAPH_INIT, &tensor); /* before the input, as a writer may */
    ow_value(&graph, OW_GRAPH_IN, "w", DQ_INT8, 1, dims);
    ow model = ow_model(&graph);
    dq_ir *ir = parsed(&model);
    ck_assert_uint_eq(ir->graph->input_count, 1);
    ck_assert_ptr_eq(ir->graph->inputs[0]->constant, constant(ir, "w"));
    dq_ir_free(ir);
}
END_TEST

START_TEST(functions_with_overloads_defaults_and_imports)
{
    ow graph = {0}, function = {0}, more = {0}, preset = attribute("k", DQ_ATTR_INT),
       ref = attribute("axis", DQ_ATTR_INT);
    ow_int(&preset, 3, 4);
    ow_str(&ref, 21, "k");
    ow_msg(&more, OW_NODE_ATTR, &ref);
    ow_str(&function, 1, "F");
    ow_list(&function, 4, "a,b");
    ow_list(&function, 5, "c");
    ow_list(&function, 6, "j");
    ow_node(&function, 7, "inner", "Concat", "ai.onnx", "a,b", "c", &more);
    ow_opset(&function, 9, "", 13);
    ow_str(&function, 10, "my");
    ow_msg(&function, 11, &preset);
    ow_str(&function, 13, "second");
    more.size = 0;
    ow_str(&more, OW_NODE_OVERLOAD, "second");
    ow_node(&graph, OW_GRAPH_NODE, "call", "F", "my", "x,-", "y", &more);
    ow model = ow_model(&graph);
    ow_opset(&model, OW_MODEL_OPSET, "my", 2);
    ow_msg(&model, OW_MODEL_FUNCTION, &function);
    dq_ir *ir = parsed(&model);
    const dq_node *call = ir->graph->nodes[0];
    ck_assert_str_eq(call->overload, "second");
    ck_assert_int_eq(call->opset, 2);
    ck_assert_str_eq(call->in_names[1], "");
    ck_assert_uint_eq(ir->function_count, 1);
    const dq_function *f = ir->functions;
    ck_assert_str_eq(f->name, "F");
    ck_assert_str_eq(f->domain, "my");
    ck_assert_str_eq(f->overload, "second");
    ck_assert(f->input_count == 2 && f->output_count == 1 && f->attr_name_count == 1 &&
              f->attr_default_count == 1);
    ck_assert_str_eq(f->attr_names[0], "j");
    ck_assert_int_eq(f->attr_defaults[0].u.i, 4);
    ck_assert_int_eq(f->body->nodes[0]->opset, 13);
    ck_assert_str_eq(f->body->nodes[0]->domain, "");
    ck_assert_str_eq(f->body->nodes[0]->attrs[0].ref, "k");
    ck_assert_int_eq((int)f->body->nodes[0]->attrs[0].kind, DQ_ATTR_INT);
    dq_ir_free(ir);
}
END_TEST

START_TEST(versions_that_are_too_new_are_named)
{
    ow graph = {0}, model = {0};
    ow_int(&model, 1, 10);
    ow_opset(&model, OW_MODEL_OPSET, "ai.onnx", 31);
    ow_msg(&model, OW_MODEL_GRAPH, &graph);
    refused(&model, DQ_UNSUPPORTED, "t.onnx: imports ai.onnx 31, expected at most 28");
    model.size = 0;
    ow_msg(&model, OW_MODEL_GRAPH, &graph);
    refused(&model, DQ_BAD_MODEL, "t.onnx: has IR version 0, expected 3 to 14");
    ow_int(&model, 1, 15);
    refused(&model, DQ_UNSUPPORTED, "t.onnx: has IR version 15, expected 3 to 14");
    model = ow_model(&graph);
    ow_opset(&model, OW_MODEL_OPSET, "ai.onnx", 13);
    refused(&model, DQ_BAD_MODEL, "t.onnx: imports both ai.onnx 21 and 13");
    model = ow_model(&graph);
    ow_opset(&model, OW_MODEL_OPSET, "my", 0);
    refused(&model, DQ_BAD_MODEL, "t.onnx: imports my 0, expected a version of 1 or more");
}
END_TEST

/* ---- Hostile bytes ------------------------------------------------------------------------------------ */

static void refused_bytes(const char *bytes, size_t size, const char *message)
{
    dq_ir *ir = NULL;
    ck_assert_int_eq(dq_parse_memory(bytes, size, "t.onnx", NULL, &ir, &err), DQ_BAD_MODEL);
    ck_assert_str_eq(err.message, message);
}

START_TEST(what_is_no_model_is_refused)
{
    refused_bytes("", 0, "t.onnx: is empty");
    refused_bytes("\x08\x0a", 2, "t.onnx: has no graph: it is no ONNX model or is damaged");
    refused_bytes("PK\x03\x04", 4, "t.onnx: is no ONNX model or is damaged: field number 0 at byte 2");
    refused_bytes("\x08\x80", 2, "t.onnx: is damaged or cut off: no whole number at byte 1");
    refused_bytes("\x93NUMPY", 6, "t.onnx: is no ONNX model or is damaged: wire type 3 at byte 0");
    refused_bytes("\x3a\x05", 2,
                  "t.onnx: is damaged or cut off: 5 bytes needed at byte 2, 0 left in their message");
    refused_bytes("\x3a\x02\x0d\x00", 4,
                  "t.onnx: is damaged or cut off: 4 bytes needed at byte 3, 1 left in their message");
    refused_bytes("\x38\x01", 2,
                  "t.onnx: is no ONNX model or is damaged: field 'graph' at byte 0 is not a message");
    refused_bytes("\x3a\x00\x3a\x00", 4,
                  "t.onnx: has two fields 'graph' in one ModelProto at byte 2, expected one");
    refused_bytes(
        "\x0d\x01\x01\x01\x01", 5,
        "t.onnx: is no ONNX model or is damaged: field 'ir_version' at byte 0 is not what its type says");
    refused_bytes("\x12\x02\x61\x00", 4,
                  "t.onnx: has a zero byte inside the string 'producer_name' at byte 0");
    refused_bytes("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12,
                  "t.onnx: is damaged or cut off: no whole number at byte 0");
}
END_TEST

/* Wraps a message in itself, `levels` times, along the given fields. */
static ow nested(int levels, size_t step_count, const unsigned *steps)
{
    ow inner = {0};
    for (int i = 0; i < levels; i++)
        for (size_t k = 0; k < step_count; k++) {
            ow outer = {0};
            ow_msg(&outer, steps[k], &inner);
            inner = outer;
        }
    return inner;
}

START_TEST(nesting_is_bounded)
{
    static const unsigned graph_steps[] = {6, 5, 1}, type_steps[] = {1, 4};
    ow graph = nested(33, 3, graph_steps), model = ow_model(&graph);
    refused(&model, DQ_OUT_OF_MEMORY, "t.onnx: nests graphs deeper than the limit of 32 levels");
    ow type = nested(150, 2, type_steps), value = {0};
    graph.size = 0;
    ow_msg(&value, 2, &type);
    ow_msg(&graph, OW_GRAPH_IN, &value);
    model = ow_model(&graph);
    refused(&model, DQ_OUT_OF_MEMORY, "t.onnx: nests its parts deeper than 256 levels");
}
END_TEST

/* COUNT empty messages of two bytes each, in the message that `path` leads to from the model. */
enum { COUNT = 300000 };

static uint8_t *many(size_t path_length, const unsigned *path, unsigned id, size_t *size)
{
    size_t left = 2 * COUNT + 6 * path_length, at = 0;
    uint8_t *bytes = malloc(left + 2);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < path_length; i++) {
        left -= 6;
        bytes[at++] = (uint8_t)(path[i] << 3 | 2);
        for (int k = 0; k < 5; k++) /* a length of five bytes, whether it needs them or not */
            bytes[at++] = (uint8_t)((left >> (7 * k) & 0x7F) | (k < 4 ? 0x80 : 0));
    }
    for (size_t i = 0; i < COUNT; i++) {
        bytes[at++] = (uint8_t)(id << 3 | 2);
        bytes[at++] = 0;
    }
    *size = at;
    return bytes;
}

static void refused_limits(const uint8_t *bytes, size_t size, const dq_limits *limits, const char *message)
{
    dq_ir *ir = NULL;
    ck_assert_int_eq(dq_parse_memory(bytes, size, "t.onnx", &(dq_load_options){.limits = limits}, &ir, &err),
                     DQ_OUT_OF_MEMORY);
    ck_assert_str_eq(err.message, message);
}

START_TEST(numbers_of_nodes_and_memory_are_bounded)
{
    static const unsigned to_graph[] = {7}, to_attribute[] = {7, 1, 5};
    const dq_limits nodes = {.nodes = 1000}, file = {.file_bytes = 1000};
    size_t size = 0;
    uint8_t *bytes = many(1, to_graph, OW_GRAPH_NODE, &size);
    refused_limits(bytes, size, &nodes, "t.onnx: has more nodes than the limit of 1000");
    refused_limits(bytes, 1001, &file, "t.onnx: has 1001 bytes, over the limit of 1000");
    free(bytes);
    ow graph = {0};
    for (int i = 0; i < 3; i++)
        ow_node(&graph, OW_GRAPH_NODE, "n", "Op", "", "", "", NULL);
    ow model = ow_model(&graph);
    const dq_limits three = {.nodes = 3}, two = {.nodes = 2};
    dq_ir *all = NULL;
    ck_assert_int_eq(
        dq_parse_memory(model.bytes, model.size, "t.onnx", &(dq_load_options){.limits = &three}, &all, &err),
        DQ_OK);
    dq_ir_free(all);
    refused_limits(model.bytes, model.size, &two, "t.onnx: has more nodes than the limit of 2");
    /* empty graphs in one attribute: a hundred bytes of memory for each byte of file */
    bytes = many(3, to_attribute, 11, &size);
    dq_ir *ir = NULL;
    ck_assert_int_eq(dq_parse_memory(bytes, size, "t.onnx", NULL, &ir, &err), DQ_OUT_OF_MEMORY);
    ck_assert_ptr_nonnull(strstr(err.message, "bytes of memory to read, out of proportion to its size"));
    free(bytes);
}
END_TEST

/* A small model with something of everything. */
static ow small_model(void)
{
    static const int64_t dims[] = {2, 2}, data[] = {1, -2, 3, -4};
    ow tensor = ow_tensor("w", DQ_INT8, 2, dims), graph = {0}, function = {0}, more = {0}, inner = {0};
    ow attr = attribute("then_branch", DQ_ATTR_GRAPH);
    ow_ints(&tensor, 5, 4, data);
    ow_msg(&graph, OW_GRAPH_INIT, &tensor);
    ow_value(&graph, OW_GRAPH_IN, "x", DQ_INT8, 2, dims);
    ow_value(&graph, OW_GRAPH_OUT, "y", DQ_INT32, 2, dims);
    ow_node(&inner, OW_GRAPH_NODE, "", "Identity", "", "x", "z", NULL);
    ow_value(&inner, OW_GRAPH_OUT, "z", DQ_INT8, -1, NULL);
    ow_msg(&attr, 6, &inner);
    ow_msg(&more, OW_NODE_ATTR, &attr);
    ow_node(&graph, OW_GRAPH_NODE, "if", "If", "", "x", "b", &more);
    ow_node(&graph, OW_GRAPH_NODE, "call", "F", "my", "b,w", "y", NULL);
    ow_str(&function, 1, "F");
    ow_list(&function, 4, "a,b");
    ow_list(&function, 5, "c");
    ow_node(&function, 7, "mm", "MatMulInteger", "", "a,b", "c", NULL);
    ow_opset(&function, 9, "", 21);
    ow_str(&function, 10, "my");
    ow model = ow_model(&graph);
    ow_msg(&model, OW_MODEL_FUNCTION, &function);
    return model;
}

/* Parses a copy of exactly that size, so that reading past its end is seen. */
static dq_status parse_copy(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    dq_ir *ir = NULL;
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size);
    dq_status status = dq_parse_memory(copy, size, "t.onnx", NULL, &ir, &err);
    if (status == DQ_OK) {
        dq_graph_link(ir->graph, &err);
    } else {
        ck_assert_str_eq((err.message[8] = '\0', err.message), "t.onnx: ");
        ck_assert_ptr_null(ir);
    }
    dq_ir_free(ir);
    free(copy);
    return status;
}

START_TEST(a_model_cut_anywhere)
{
    ow model = small_model();
    ck_assert_int_eq(parse_copy(model.bytes, model.size), DQ_OK);
    size_t refusals = 0;
    for (size_t size = 0; size < model.size; size++)
        refusals += parse_copy(model.bytes, size) != DQ_OK;
    /* only a cut behind the whole graph leaves a model */
    ck_assert_uint_ge(refusals + 1, model.size - 1);
}
END_TEST

START_TEST(a_model_with_random_damage)
{
    ow model = small_model();
    uint64_t state = 12345;
    for (int round = 0; round < 20000; round++) {
        ow damaged = model;
        for (int i = 0; i < 1 + round % 3; i++) {
            const uint32_t at = random_below(&state, (uint32_t)damaged.size);
            damaged.bytes[at] = (uint8_t)random_below(&state, 256);
        }
        parse_copy(damaged.bytes, damaged.size);
    }
}
END_TEST

START_TEST(files_that_cannot_be_read)
{
    dq_ir *ir = NULL;
    ck_assert_int_eq(dq_parse_file("/nonexistent/m.onnx", NULL, &ir, &err), DQ_BAD_MODEL);
    ck_assert_str_eq(err.message, "/nonexistent/m.onnx: cannot be opened: No such file or directory");
    ck_assert_int_eq(dq_parse_file("/", NULL, &ir, &err), DQ_BAD_MODEL);
    ck_assert_str_eq(err.message, "/: is a folder, expected a file");
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("parser", NULL, NULL);
    add_loop_test(&tests, attributes_of_every_kind_with_and_without_their_type, DQ_ATTR_FLOAT,
                  DQ_ATTR_TYPE_PROTOS + 1);
    add_test(&tests, wrong_attributes_are_refused);
    add_test(&tests, two_attributes_of_one_name_are_refused);
    add_test(&tests, lists_that_are_searched_are_bounded);
    add_test(&tests, declared_types);
    add_test(&tests, initializers_may_be_inputs_too);
    add_test(&tests, functions_with_overloads_defaults_and_imports);
    add_test(&tests, versions_that_are_too_new_are_named);
    add_test(&tests, what_is_no_model_is_refused);
    add_test(&tests, nesting_is_bounded);
    add_test(&tests, numbers_of_nodes_and_memory_are_bounded);
    add_test(&tests, a_model_cut_anywhere);
    add_test(&tests, a_model_with_random_damage);
    add_test(&tests, files_that_cannot_be_read);
    return test_program_run(&tests);
}
