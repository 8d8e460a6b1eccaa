/* SPDX-License-Identifier: Apache-2.0 */
/* Looking into models through the public header: from code, and from messages written byte by byte where no
 * builder makes what is looked for. */
#include "onnx_writer.h"
#include "small_model.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ATTR_TYPE_FIELD = 20 };

static dq_model *load(const ow *message)
{
    dq_model *loaded = NULL;
    must(dq_model_load_memory(message->bytes, message->size, "t.onnx", NULL, &loaded, &err));
    return loaded;
}

static dq_graph_info main_graph(const dq_model *of)
{
    dq_model_info info = DQ_MODEL_INFO_INIT;
    dq_graph_info g = DQ_GRAPH_INFO_INIT;
    must(dq_model_describe(of, &info, &err));
    must(dq_graph_describe(info.graph, &g, &err));
    return g;
}

static dq_node_info node_info(const dq_node *of)
{
    dq_node_info info = DQ_NODE_INFO_INIT;
    must(dq_node_describe(of, &info, &err));
    return info;
}

static dq_value_info value_info(const dq_value *of)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    must(dq_value_describe(of, &info, &err));
    return info;
}

static dq_attribute attribute(const dq_node *of, size_t i)
{
    dq_attribute a = DQ_ATTRIBUTE_INIT;
    must(dq_node_attribute(of, i, &a, &err));
    return a;
}

/* ---- The model ----------------------------------------------------------------------------------------- */

static void check_origin(const dq_model *of)
{
    dq_model_info info = DQ_MODEL_INFO_INIT;
    const char *key, *value, *domain;
    int version;
    must(dq_model_describe(of, &info, &err));
    ck_assert_int_eq(info.ir_version, 10);
    ck_assert_str_eq(info.producer_name, "maker");
    ck_assert_str_eq(info.producer_version, "1.2");
    ck_assert_str_eq(info.domain, "org.example");
    ck_assert_int_eq(info.model_version, 7);
    ck_assert_str_eq(info.doc, "what it is for");
    ck_assert_uint_eq(info.metadata_count, 2);
    must(dq_model_metadata(of, 1, &key, &value, &err));
    ck_assert_str_eq(key, "license");
    ck_assert_str_eq(value, "none");
    must(dq_model_metadata(of, 0, &key, NULL, &err));
    ck_assert_str_eq(key, "author");
    refused(dq_model_metadata(of, 2, &key, &value, &err), DQ_INVALID_ARGUMENT,
            "dq_model_metadata: i is 2, expected less than 2, the number of entries");
    ck_assert_uint_eq(info.opset_count, 2);
    must(dq_model_opset(of, 1, &domain, &version, &err));
    ck_assert_str_eq(domain, "org.example");
    ck_assert_int_eq(version, 3);
    must(dq_model_opset(of, 0, NULL, &version, &err));
    ck_assert_int_eq(version, 21);
    refused(dq_model_opset(of, 2, &domain, &version, &err), DQ_INVALID_ARGUMENT,
            "dq_model_opset: i is 2, expected less than 2, the number of imports");
}

START_TEST(what_a_model_says_of_itself_is_read_and_saved)
{
    ow graph = {0}, author = {0}, license = {0};
    char path[] = "/tmp/dqrun-introspect-XXXXXX";
    ow_value(&graph, OW_GRAPH_IN, "x", DQ_FLOAT, 1, (int64_t[]){3});
    ow_value(&graph, OW_GRAPH_OUT, "x", DQ_FLOAT, 1, (int64_t[]){3});
    ow message = ow_model(&graph);
    ow_str(&author, 1, "author");
    ow_str(&author, 2, "somebody");
    ow_str(&license, 1, "license");
    ow_str(&license, 2, "none");
    ow_str(&message, 2, "maker");
    ow_str(&message, 3, "1.2");
    ow_str(&message, 4, "org.example");
    ow_int(&message, 5, 7);
    ow_str(&message, 6, "what it is for");
    ow_msg(&message, 14, &author);
    ow_msg(&message, 14, &license);
    ow_opset(&message, OW_MODEL_OPSET, "org.example", 3);
    dq_model *first = load(&message);
    dq_model_info info = DQ_MODEL_INFO_INIT;
    must(dq_model_describe(first, &info, &err));
    ck_assert_str_eq(info.name, "t.onnx");
    check_origin(first);
    close(mkstemp(path));
    must(dq_model_save(first, path, &err));
    dq_model_free(first);
    must(dq_model_load(path, NULL, &model, &err));
    unlink(path);
    check_origin(model);
}
END_TEST

START_TEST(a_model_that_says_nothing_has_empty_texts)
{
    dq_model_info info = DQ_MODEL_INFO_INIT;
    begin();
    input("x", DQ_FLOAT, 0, NULL);
    output("x");
    finish();
    must(dq_model_describe(model, &info, &err));
    ck_assert_str_eq(info.name, "m");
    ck_assert_str_eq(info.producer_name, "");
    ck_assert_str_eq(info.producer_version, "");
    ck_assert_str_eq(info.domain, "");
    ck_assert_str_eq(info.doc, "");
    ck_assert_int_eq(info.model_version, 0);
    ck_assert_uint_eq(info.metadata_count, 0);
    refused(dq_model_describe(NULL, &info, &err), DQ_INVALID_ARGUMENT, "dq_model_describe: model is NULL");
    refused(dq_model_describe(model, NULL, &err), DQ_INVALID_ARGUMENT, "dq_model_describe: info is NULL");
    info.size = 8;
    ck_assert_int_eq(dq_model_describe(model, &info, &err), DQ_INVALID_ARGUMENT);
}
END_TEST

/* ---- Graphs, nodes, values ----------------------------------------------------------------------------- */

/* y = Clip(x + x, no least, greatest), added last node first. */
static void sum_and_clip(void)
{
    const char *y = "y";
    begin();
    must(dq_builder_input(b, "x", DQ_FLOAT, 2, (int64_t[]){-1, 2}, (const char *[]){"N", NULL}, &err));
    constant("greatest", DQ_FLOAT, 0, NULL, (float[]){4});
    must(add_node(b, "", "Clip", "clip", 3, (const char *[]){"sum", "", "greatest"}, 1, &y, 0, NULL, &err));
    node("Add", "x", "x", "sum");
    output("y");
    finish();
}

START_TEST(a_graph_shows_its_nodes_and_values)
{
    sum_and_clip();
    const dq_graph_info g = main_graph(model);
    ck_assert_ptr_null(g.outer);
    ck_assert_uint_eq(g.node_count, 2);
    ck_assert_uint_eq(g.input_count, 1);
    ck_assert_uint_eq(g.output_count, 1);
    ck_assert_str_eq(g.output_names[0], "y");
    ck_assert_uint_eq(g.value_count, 4);
    const dq_node_info sum = node_info(g.nodes[0]), clip = node_info(g.nodes[1]);
    ck_assert_str_eq(sum.op_type, "Add");
    ck_assert_str_eq(sum.domain, "");
    ck_assert_int_eq(sum.since_version, 14);
    ck_assert_int_eq(sum.opset, 21);
    ck_assert(!sum.synthetic);
    ck_assert_ptr_eq(sum.inputs[0], g.inputs[0]);
    ck_assert_ptr_eq(sum.inputs[1], g.inputs[0]);
    ck_assert_str_eq(clip.name, "clip");
    ck_assert_uint_eq(clip.input_count, 3);
    ck_assert_ptr_eq(clip.inputs[0], sum.outputs[0]);
    ck_assert_ptr_null(clip.inputs[1]);
    ck_assert_ptr_eq(clip.outputs[0], g.outputs[0]);
    const dq_graph_info again = main_graph(model);
    ck_assert_ptr_eq(again.nodes, g.nodes);
    refused(dq_graph_describe(NULL, &(dq_graph_info)DQ_GRAPH_INFO_INIT, &err), DQ_INVALID_ARGUMENT,
            "dq_graph_describe: graph is NULL");
    refused(dq_node_describe(NULL, &(dq_node_info)DQ_NODE_INFO_INIT, &err), DQ_INVALID_ARGUMENT,
            "dq_node_describe: node is NULL");
}
END_TEST

START_TEST(a_value_shows_its_type_shape_and_neighbours)
{
    sum_and_clip();
    const dq_graph_info g = main_graph(model);
    const dq_value *x = dq_model_find_value(model, "x"), *sum = dq_model_find_value(model, "sum"),
                   *greatest = dq_model_find_value(model, "greatest");
    const dq_value_info x_info = value_info(x), sum_info = value_info(sum), limit = value_info(greatest);
    ck_assert_str_eq(x_info.type, "tensor(float)");
    ck_assert(x_info.is_input && !x_info.is_output && !x_info.optional && x_info.has_shape);
    ck_assert_uint_eq(x_info.rank, 2);
    ck_assert_int_eq(x_info.dims[0], -1);
    ck_assert_str_eq(x_info.dim_names[0], "N");
    ck_assert_int_eq(x_info.dims[1], 2);
    ck_assert_ptr_null(x_info.dim_names[1]);
    ck_assert_ptr_null(x_info.producer);
    ck_assert_ptr_null(x_info.initializer);
    /* nothing is declared of it: the schema of Add tells its type */
    ck_assert_int_eq(sum_info.dtype, DQ_FLOAT);
    ck_assert(!sum_info.has_shape);
    ck_assert_ptr_eq(sum_info.producer, g.nodes[0]);
    ck_assert(!sum_info.is_input && !sum_info.is_output);
    ck_assert(value_info(g.outputs[0]).is_output);
    ck_assert_str_eq(limit.name, "greatest");
    ck_assert(limit.has_shape);
    ck_assert_uint_eq(limit.rank, 0);
    ck_assert_double_eq(dq_tensor_value(limit.initializer, 0), 4);
    ck_assert_ptr_eq(dq_graph_find_value(x_info.graph, "sum"), sum);
    ck_assert_ptr_null(dq_model_find_value(model, "nothing"));
    ck_assert_ptr_null(dq_model_find_value(model, NULL));
    refused(dq_value_describe(NULL, &(dq_value_info)DQ_VALUE_INFO_INIT, &err), DQ_INVALID_ARGUMENT,
            "dq_value_describe: value is NULL");
}
END_TEST

START_TEST(consumers_are_listed_once_each)
{
    const dq_node *const *nodes = NULL;
    size_t count = 0;
    sum_and_clip();
    const dq_graph_info g = main_graph(model);
    must(dq_value_consumers(model, dq_model_find_value(model, "x"), &count, &nodes, &err));
    ck_assert_uint_eq(count, 1); /* Add reads it twice */
    ck_assert_ptr_eq(nodes[0], g.nodes[0]);
    must(dq_value_consumers(model, dq_model_find_value(model, "greatest"), &count, &nodes, &err));
    ck_assert_uint_eq(count, 1);
    ck_assert_ptr_eq(nodes[0], g.nodes[1]);
    must(dq_value_consumers(model, g.outputs[0], &count, &nodes, &err));
    ck_assert_uint_eq(count, 0);
    refused(dq_value_consumers(model, NULL, &count, &nodes, &err), DQ_INVALID_ARGUMENT,
            "dq_value_consumers: value is NULL");
}
END_TEST

/* The file's bytes before its data decide how it is aligned: each of four graph names, one byte longer than
 * the last, moves it by one. */
START_TEST(large_initializers_are_read_where_they_lie)
{
    enum { ROWS = 512, COLUMNS = 512 };
    static const char *const graph_names[] = {"g", "gg", "ggg", "gggg"};
    char path[] = "/tmp/dqrun-introspect-XXXXXX";
    static float elements[ROWS * COLUMNS];
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        elements[i] = (float)i + 0.5f;
    must(dq_builder_create(graph_names[_i], &b, &err));
    must(dq_builder_opset(b, "", 21, &err));
    input("x", DQ_FLOAT, 2, (int64_t[]){ROWS, COLUMNS});
    constant("w", DQ_FLOAT, 2, (int64_t[]){ROWS, COLUMNS}, elements);
    node("Add", "x", "w", "y");
    output("y");
    dq_model *built = NULL;
    must(dq_builder_finish(b, NULL, &built, &err));
    close(mkstemp(path));
    must(dq_model_save(built, path, &err));
    dq_model_free(built);
    must(dq_model_load(path, NULL, &model, &err));
    unlink(path);
    const dq_tensor *w = value_info(dq_model_find_value(model, "w")).initializer;
    ck_assert_mem_eq(dq_tensor_data(w), elements, sizeof elements);
    ck_assert_double_eq(dq_tensor_value(w, 1), 1.5);
    ck_assert_double_eq(dq_tensor_value(w, ROWS * COLUMNS - 1), ROWS * COLUMNS - 0.5);
}
END_TEST

enum { READERS = 4 };

/* What one thread saw: the lists are the model's, whoever has them made. */
typedef struct seen {
    pthread_t thread;
    dq_status status;
    size_t count;
    const dq_node *const *nodes;
    dq_value_info info;
} seen;

static void *look(void *arg)
{
    seen *s = arg;
    dq_error own;
    const dq_value *x = dq_model_find_value(model, "x");
    s->info = (dq_value_info)DQ_VALUE_INFO_INIT;
    s->status = dq_value_consumers(model, x, &s->count, &s->nodes, &own);
    if (s->status == DQ_OK)
        s->status = dq_value_describe(x, &s->info, &own);
    return NULL;
}

START_TEST(many_threads_may_look_at_once)
{
    seen all[READERS];
    sum_and_clip();
    for (int i = 0; i < READERS; i++)
        ck_assert_int_eq(pthread_create(&all[i].thread, NULL, look, &all[i]), 0);
    for (int i = 0; i < READERS; i++) {
        pthread_join(all[i].thread, NULL);
        ck_assert_int_eq(all[i].status, DQ_OK);
        ck_assert_uint_eq(all[i].count, 1);
        ck_assert_ptr_eq(all[i].nodes, all[0].nodes);
        ck_assert_ptr_eq(all[i].info.type, all[0].info.type);
    }
}
END_TEST

/* ---- Inner graphs -------------------------------------------------------------------------------------- */

static ow branch(const char *op, const char *in, const char *out)
{
    ow graph = {0};
    ow_str(&graph, 2, op);
    ow_node(&graph, OW_GRAPH_NODE, op, op, "", in, out, NULL);
    ow_value(&graph, OW_GRAPH_OUT, out, DQ_FLOAT, -1, NULL);
    return graph;
}

static void graph_attribute(ow *node, const char *name, const ow *graph)
{
    ow attr = {0};
    ow_str(&attr, 1, name);
    ow_msg(&attr, 6, graph);
    ow_int(&attr, ATTR_TYPE_FIELD, DQ_ATTRIBUTE_GRAPH);
    ow_msg(node, OW_NODE_ATTR, &attr);
}

START_TEST(inner_graphs_are_attributes_and_read_outer_values)
{
    ow graph = {0}, branches = {0}, then_branch = branch("Neg", "x", "a"),
       else_branch = branch("Abs", "x", "b");
    const dq_node *const *nodes = NULL;
    size_t count = 0;
    graph_attribute(&branches, "then_branch", &then_branch);
    graph_attribute(&branches, "else_branch", &else_branch);
    ow_node(&graph, OW_GRAPH_NODE, "choice", "If", "", "condition", "y", &branches);
    ow_node(&graph, OW_GRAPH_NODE, "after", "Neg", "", "x", "z", NULL);
    ow_value(&graph, OW_GRAPH_IN, "condition", DQ_BOOL, 0, NULL);
    ow_value(&graph, OW_GRAPH_IN, "x", DQ_FLOAT, 1, (int64_t[]){2});
    ow_value(&graph, OW_GRAPH_OUT, "y", DQ_FLOAT, -1, NULL);
    ow_value(&graph, OW_GRAPH_OUT, "z", DQ_FLOAT, -1, NULL);
    ow message = ow_model(&graph);
    model = load(&message);
    const dq_graph_info g = main_graph(model);
    const dq_node_info choice = node_info(g.nodes[0]);
    ck_assert_uint_eq(choice.attribute_count, 2);
    const dq_attribute a = attribute(g.nodes[0], 0), c = attribute(g.nodes[0], 1);
    ck_assert_str_eq(a.name, "then_branch");
    ck_assert_int_eq(a.kind, DQ_ATTRIBUTE_GRAPH);
    dq_graph_info inside = DQ_GRAPH_INFO_INIT, other = DQ_GRAPH_INFO_INIT;
    must(dq_graph_describe(a.graph, &inside, &err));
    must(dq_graph_describe(c.graph, &other, &err));
    ck_assert_str_eq(inside.name, "Neg");
    ck_assert_ptr_eq(inside.outer, choice.graph);
    ck_assert_uint_eq(inside.node_count, 1);
    ck_assert_ptr_eq(node_info(inside.nodes[0]).graph, a.graph);
    ck_assert_ptr_eq(node_info(inside.nodes[0]).inputs[0], dq_model_find_value(model, "x"));
    ck_assert_ptr_eq(value_info(inside.outputs[0]).graph, a.graph);
    ck_assert_ptr_null(dq_graph_find_value(a.graph, "x"));
    must(dq_value_consumers(model, dq_model_find_value(model, "x"), &count, &nodes, &err));
    ck_assert_uint_eq(count, 3);
    ck_assert_ptr_eq(nodes[0], inside.nodes[0]);
    ck_assert_ptr_eq(nodes[1], other.nodes[0]);
    ck_assert_ptr_eq(nodes[2], g.nodes[1]);
}
END_TEST

/* ---- Attributes ---------------------------------------------------------------------------------------- */

static ow attr_named(const char *name, int kind)
{
    ow attr = {0};
    ow_str(&attr, 1, name);
    ow_int(&attr, ATTR_TYPE_FIELD, kind);
    return attr;
}

static ow tensor_type(int dtype)
{
    ow tensor = {0}, type = {0};
    ow_int(&tensor, 1, dtype);
    ow_msg(&type, 1, &tensor);
    return type;
}

/* seq(tensor(dtype)) */
static ow sequence_type(int dtype)
{
    ow inner = tensor_type(dtype), sequence = {0}, type = {0};
    ow_msg(&sequence, 1, &inner);
    ow_msg(&type, 4, &sequence);
    return type;
}

static ow number(float value)
{
    ow tensor = ow_tensor("", DQ_FLOAT, 0, NULL);
    ow_raw(&tensor, 9, &value, sizeof value);
    return tensor;
}

/* Attributes of an operator that nobody knows, one of each kind. */
static ow all_kinds(void)
{
    ow node = {0}, one = number(1), two = number(2), graph = branch("Neg", "x", "inner");
    ow types[] = {sequence_type(DQ_INT8), tensor_type(DQ_FLOAT)};
    ow attrs[] = {attr_named("f", DQ_ATTRIBUTE_FLOAT),           attr_named("i", DQ_ATTRIBUTE_INT),
                  attr_named("s", DQ_ATTRIBUTE_STRING),          attr_named("tensor", DQ_ATTRIBUTE_TENSOR),
                  attr_named("graph", DQ_ATTRIBUTE_GRAPH),       attr_named("floats", DQ_ATTRIBUTE_FLOATS),
                  attr_named("ints", DQ_ATTRIBUTE_INTS),         attr_named("strings", DQ_ATTRIBUTE_STRINGS),
                  attr_named("tensors", DQ_ATTRIBUTE_TENSORS),   attr_named("graphs", DQ_ATTRIBUTE_GRAPHS),
                  attr_named("type", DQ_ATTRIBUTE_TYPE),         attr_named("types", DQ_ATTRIBUTE_TYPES),
                  attr_named("no strings", DQ_ATTRIBUTE_STRINGS)};
    ow_float(&attrs[0], 2, 0.5f);
    ow_int(&attrs[1], 3, -7);
    ow_raw(&attrs[2], 4, "a\0b", 3);
    ow_msg(&attrs[3], 5, &one);
    ow_msg(&attrs[4], 6, &graph);
    ow_float(&attrs[5], 7, 1.5f);
    ow_float(&attrs[5], 7, 2.5f);
    ow_ints(&attrs[6], 8, 3, (int64_t[]){1, 2, 3});
    ow_str(&attrs[7], 9, "left");
    ow_str(&attrs[7], 9, "");
    ow_msg(&attrs[8], 10, &one);
    ow_msg(&attrs[8], 10, &two);
    ow_msg(&attrs[9], 11, &graph);
    ow_msg(&attrs[10], 14, &types[0]);
    ow_msg(&attrs[11], 15, &types[0]);
    ow_msg(&attrs[11], 15, &types[1]);
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++)
        ow_msg(&node, OW_NODE_ATTR, &attrs[i]);
    return node;
}

static void check_kinds(const dq_node *of)
{
    ck_assert_double_eq((double)attribute(of, 0).f, 0.5);
    ck_assert_int_eq(attribute(of, 1).i, -7);
    ck_assert_uint_eq(attribute(of, 2).count, 3);
    ck_assert_mem_eq(attribute(of, 2).s, "a\0b", 4);
    ck_assert_double_eq(dq_tensor_value(attribute(of, 3).tensor, 0), 1);
    ck_assert_ptr_nonnull(attribute(of, 4).graph);
    ck_assert_uint_eq(attribute(of, 5).count, 2);
    ck_assert_double_eq((double)attribute(of, 5).floats[1], 2.5);
    ck_assert_uint_eq(attribute(of, 6).count, 3);
    ck_assert_int_eq(attribute(of, 6).ints[2], 3);
    ck_assert_uint_eq(attribute(of, 7).count, 2);
    ck_assert_str_eq(attribute(of, 7).strings[0], "left");
    ck_assert_str_eq(attribute(of, 7).strings[1], "");
    ck_assert_ptr_eq(attribute(of, 7).strings, attribute(of, 7).strings); /* made once */
    ck_assert_uint_eq(attribute(of, 8).count, 2);
    ck_assert_double_eq(dq_tensor_value(attribute(of, 8).tensors[1], 0), 2);
    ck_assert_uint_eq(attribute(of, 9).count, 1);
    ck_assert_ptr_nonnull(attribute(of, 9).graphs[0]);
    ck_assert_str_eq(attribute(of, 10).type, "seq(tensor(int8))");
    ck_assert_uint_eq(attribute(of, 11).count, 2);
    ck_assert_str_eq(attribute(of, 11).types[0], "seq(tensor(int8))");
    ck_assert_str_eq(attribute(of, 11).types[1], "tensor(float)");
    ck_assert_uint_eq(attribute(of, 12).count, 0);
}

START_TEST(attributes_of_every_kind)
{
    static const dq_attribute_kind kinds[] = {DQ_ATTRIBUTE_FLOAT,  DQ_ATTRIBUTE_INT,     DQ_ATTRIBUTE_STRING,
                                              DQ_ATTRIBUTE_TENSOR, DQ_ATTRIBUTE_GRAPH,   DQ_ATTRIBUTE_FLOATS,
                                              DQ_ATTRIBUTE_INTS,   DQ_ATTRIBUTE_STRINGS, DQ_ATTRIBUTE_TENSORS,
                                              DQ_ATTRIBUTE_GRAPHS, DQ_ATTRIBUTE_TYPE,    DQ_ATTRIBUTE_TYPES,
                                              DQ_ATTRIBUTE_STRINGS};
    const size_t count = sizeof kinds / sizeof *kinds;
    ow graph = {0}, attrs = all_kinds();
    dq_attribute a = DQ_ATTRIBUTE_INIT;
    ow_node(&graph, OW_GRAPH_NODE, "n", "Unknown", "", "x", "y", &attrs);
    ow_value(&graph, OW_GRAPH_IN, "x", DQ_FLOAT, 1, (int64_t[]){2});
    ow_value(&graph, OW_GRAPH_OUT, "y", DQ_FLOAT, -1, NULL);
    ow message = ow_model(&graph);
    model = load(&message);
    const dq_node *n = main_graph(model).nodes[0];
    ck_assert_int_eq(node_info(n).since_version, 0);
    ck_assert_uint_eq(node_info(n).attribute_count, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(attribute(n, i).kind, kinds[i]);
    check_kinds(n);
    refused(dq_node_attribute(n, count, &a, &err), DQ_INVALID_ARGUMENT,
            "dq_node_attribute: i is 13, expected less than 13, the number of attributes");
    refused(dq_node_attribute(n, 0, NULL, &err), DQ_INVALID_ARGUMENT, "dq_node_attribute: attribute is NULL");
}
END_TEST

START_TEST(attributes_that_a_node_leaves_out_have_their_defaults)
{
    bool found = false;
    begin();
    input("x", DQ_FLOAT, 1, (int64_t[]){2});
    node("LeakyRelu", "x", NULL, "y");
    output("y");
    finish();
    const dq_node *n = main_graph(model).nodes[0];
    for (size_t i = 0; i < node_info(n).attribute_count; i++) {
        const dq_attribute a = attribute(n, i);
        found = found || (strcmp(a.name, "alpha") == 0 && a.f == 0.01f);
    }
    ck_assert(found);
}
END_TEST

START_TEST(a_program_of_an_earlier_struct_gets_what_it_knows)
{
    struct {
        dq_attribute a;
        char beyond[8];
    } small;
    begin();
    input("x", DQ_FLOAT, 1, (int64_t[]){2});
    node("LeakyRelu", "x", NULL, "y");
    output("y");
    finish();
    memset(&small, 0x55, sizeof small);
    small.a.size = offsetof(dq_attribute, graph); /* the first version ends there */
    must(dq_node_attribute(main_graph(model).nodes[0], 0, &small.a, &err));
    ck_assert_str_eq(small.a.name, "alpha");
    ck_assert_mem_eq(&small.a.graph, "UUUUUUUU", sizeof small.a.graph);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("introspect", NULL, tear_down);
    add_test(&tests, what_a_model_says_of_itself_is_read_and_saved);
    add_test(&tests, a_model_that_says_nothing_has_empty_texts);
    add_test(&tests, a_graph_shows_its_nodes_and_values);
    add_test(&tests, a_value_shows_its_type_shape_and_neighbours);
    add_test(&tests, consumers_are_listed_once_each);
    add_test(&tests, many_threads_may_look_at_once);
    add_loop_test(&tests, large_initializers_are_read_where_they_lie, 0, 4);
    add_test(&tests, inner_graphs_are_attributes_and_read_outer_values);
    add_test(&tests, attributes_of_every_kind);
    add_test(&tests, attributes_that_a_node_leaves_out_have_their_defaults);
    add_test(&tests, a_program_of_an_earlier_struct_gets_what_it_knows);
    return test_program_run(&tests);
}
