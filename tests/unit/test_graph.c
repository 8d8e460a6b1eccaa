/* SPDX-License-Identifier: Apache-2.0 */
/* src/graph: building, linking, topological order. */
#include "graph/graph.h"
#include "support/test_program.h"

#include <string.h>

static dq_ir *ir;
static dq_graph *g;
static dq_error err;

static void set_up(void)
{
    ck_assert_int_eq(dq_ir_create("m.onnx", NULL, NULL, &ir, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_create(ir, "main", NULL, &g, &err), DQ_OK);
    ir->graph = g;
}

static void tear_down(void)
{
    dq_ir_free(ir);
}

static dq_node *node(dq_graph *graph, const char *name, const char *in, const char *out)
{
    dq_node *n = NULL;
    ck_assert_int_eq(dq_graph_add_node(graph, 1, 1, 0, &n, &err), DQ_OK);
    n->name = name;
    n->op_type = "Identity";
    n->opset = 13;
    n->in_names[0] = in;
    n->out_names[0] = out;
    return n;
}

static void ports(dq_graph *graph, const char *in, const char *out)
{
    if (in)
        ck_assert_int_eq(dq_graph_add_input(graph, in, NULL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_output(graph, out, NULL, &err), DQ_OK);
}

START_TEST(link_ties_names_and_keeps_a_good_order)
{
    ports(g, "x", "z");
    dq_node *a = node(g, "a", "x", "y"), *b = node(g, "b", "y", "z");
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_OK);
    ck_assert_ptr_eq(a->out[0], b->in[0]);
    ck_assert_ptr_eq(b->in[0]->producer, a);
    ck_assert_ptr_eq(g->outputs[0], b->out[0]);
    ck_assert(g->outputs[0]->is_output);
    ck_assert_ptr_eq(g->nodes[0], a);
}
END_TEST

START_TEST(link_sorts_a_scrambled_order)
{
    ports(g, "x", "d");
    node(g, "n3", "c", "d");
    node(g, "n1", "a", "b");
    node(g, "n2", "b", "c");
    node(g, "n0", "x", "a");
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_OK);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(g->nodes[i]->name[1], (char)('0' + i));
        ck_assert_uint_eq(g->nodes[i]->position, i);
    }
}
END_TEST

START_TEST(link_refuses_a_cycle)
{
    ports(g, "x", "c");
    node(g, "ok", "x", "y");
    node(g, "n1", "b", "a");
    node(g, "n2", "a", "b");
    node(g, "n3", "b", "c");
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_BAD_MODEL);
    ck_assert_str_eq(err.message, "node 'n1' (Identity-13) is part of, or waits for, a cycle of nodes");
}
END_TEST

START_TEST(link_refuses_a_name_that_nothing_gives)
{
    ports(g, "x", "y");
    node(g, "n", "q", "y");
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_BAD_MODEL);
    ck_assert_str_eq(err.message,
                     "node 'n' (Identity-13): input 0 'q' is given by no node, input or initializer");
}
END_TEST

START_TEST(link_finds_initializers)
{
    static const dq_tensor t = {.dtype = DQ_FLOAT, .count = 1};
    dq_graph *inner = NULL;
    dq_node *branch = NULL;
    ck_assert_int_eq(dq_graph_add_initializer(g, "w", &t, &err), DQ_OK);
    ports(g, NULL, "z");
    dq_node *own = node(g, "n", "w", "y");
    ck_assert_int_eq(dq_graph_add_node(g, 1, 1, 1, &branch, &err), DQ_OK);
    branch->in_names[0] = "y";
    branch->out_names[0] = "z";
    ck_assert_int_eq(dq_graph_create(ir, "then", g, &inner, &err), DQ_OK);
    branch->attrs[0] = (dq_attr){.name = "then_branch", .kind = DQ_ATTR_GRAPH, .u.graph = inner};
    ports(inner, NULL, "v");
    dq_node *inside = node(inner, "inside", "w", "v");
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_OK);
    ck_assert_ptr_eq(own->in[0]->constant, &t);
    ck_assert_ptr_eq(inside->in[0], own->in[0]);
}
END_TEST

START_TEST(link_refuses_a_value_given_twice)
{
    ports(g, "x", "y");
    node(g, "n", "x", "y");
    node(g, "", "x", "y");
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_BAD_MODEL);
    ck_assert_str_eq(err.message,
                     "node 1 (Identity-13): output 'y' is already given by node 'n' (Identity-13)");
}
END_TEST

START_TEST(link_refuses_an_output_over_an_input)
{
    ports(g, "x", "x");
    node(g, "n", "x", "x");
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_BAD_MODEL);
    ck_assert_str_eq(err.message, "node 'n' (Identity-13): output 'x' is already an input of the graph");
}
END_TEST

START_TEST(link_refuses_a_missing_output)
{
    ports(g, "x", "y");
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_BAD_MODEL);
    ck_assert_str_eq(err.message, "graph 'main': output 'y' is given by no node, input or initializer");
}
END_TEST

START_TEST(a_value_info_alone_gives_nothing)
{
    dq_type type = {.dtype = DQ_FLOAT};
    ports(g, "x", "y");
    ck_assert_int_eq(dq_graph_add_value_info(g, "q", &type, &err), DQ_OK);
    node(g, "n", "q", "y");
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_BAD_MODEL);
}
END_TEST

START_TEST(names_are_given_once)
{
    static const dq_tensor t = {.dtype = DQ_FLOAT, .count = 1};
    ck_assert_int_eq(dq_graph_add_input(g, "x", NULL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_input(g, "x", NULL, &err), DQ_BAD_MODEL);
    ck_assert_int_eq(dq_graph_add_initializer(g, "w", &t, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_initializer(g, "w", &t, &err), DQ_BAD_MODEL);
    ck_assert_int_eq(dq_graph_add_initializer(g, "x", &t, &err), DQ_OK); /* an input with a default */
}
END_TEST

START_TEST(inner_graphs_wait_for_what_they_take)
{
    /* 'if' stands first and its branch takes y from the outer graph, which 'a' gives */
    dq_graph *inner = NULL;
    dq_node *branch = NULL;
    ports(g, "x", "z");
    ck_assert_int_eq(dq_graph_add_node(g, 1, 1, 1, &branch, &err), DQ_OK);
    branch->name = "if";
    branch->in_names[0] = "x";
    branch->out_names[0] = "z";
    ck_assert_int_eq(dq_graph_create(ir, "then", g, &inner, &err), DQ_OK);
    branch->attrs[0] = (dq_attr){.name = "then_branch", .kind = DQ_ATTR_GRAPH, .u.graph = inner};
    ports(inner, NULL, "w");
    dq_node *n = node(inner, "inside", "y", "w");
    dq_node *a = node(g, "a", "x", "y");
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_OK);
    ck_assert_ptr_eq(g->nodes[0], a);
    ck_assert_ptr_eq(n->in[0], a->out[0]);
}
END_TEST

START_TEST(many_nodes_in_a_chain)
{
    static char names[20001][8];
    for (int i = 0; i <= 20000; i++) {
        names[i][0] = 'v';
        for (int k = 0, v = i; k < 5; k++, v /= 10)
            names[i][5 - k] = (char)('0' + v % 10);
    }
    ports(g, names[0], names[20000]);
    for (int i = 19999; i >= 0; i--)
        node(g, names[i], names[i], names[i + 1]);
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_OK);
    ck_assert_str_eq(g->nodes[123]->name, names[123]);
}
END_TEST

START_TEST(types_print_as_onnx_writes_them)
{
    char text[DQ_TYPE_TEXT];
    dq_type f = {.dtype = DQ_FLOAT8E4M3FN}, seq = {.kind = DQ_KIND_SEQUENCE, .element = &f};
    dq_type opt = {.kind = DQ_KIND_OPTIONAL, .element = &seq},
            map = {.kind = DQ_KIND_MAP, .dtype = DQ_STRING, .element = &f};
    ck_assert_str_eq(dq_type_text(&opt, text), "optional(seq(tensor(float8e4m3fn)))");
    ck_assert_str_eq(dq_type_text(&map, text), "map(string,tensor(float8e4m3fn))");
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("graph", set_up, tear_down);
    add_test(&tests, link_ties_names_and_keeps_a_good_order);
    add_test(&tests, link_sorts_a_scrambled_order);
    add_test(&tests, link_refuses_a_cycle);
    add_test(&tests, link_refuses_a_name_that_nothing_gives);
    add_test(&tests, link_finds_initializers);
    add_test(&tests, link_refuses_a_value_given_twice);
    add_test(&tests, link_refuses_an_output_over_an_input);
    add_test(&tests, link_refuses_a_missing_output);
    add_test(&tests, a_value_info_alone_gives_nothing);
    add_test(&tests, names_are_given_once);
    add_test(&tests, inner_graphs_wait_for_what_they_take);
    add_test(&tests, many_nodes_in_a_chain);
    add_test(&tests, types_print_as_onnx_writes_them);
    return test_program_run(&tests);
}
