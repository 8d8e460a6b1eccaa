/* SPDX-License-Identifier: Apache-2.0 */
/* src/plan/inline_functions.c: calls of model-local functions become copies of their bodies. */
#include "parse.h"
#include "plan/inline_functions.h"

#include <stdlib.h>

/* ---- Writing functions -------------------------------------------------------------------------------- */

static ow function(const char *name, const char *in, const char *out)
{
    ow f = {0};
    ow_str(&f, 1, name);
    ow_list(&f, 4, in);
    ow_list(&f, 5, out);
    ow_opset(&f, 9, "", 17);
    ow_str(&f, 10, "my");
    return f;
}

static void body(ow *f, const char *name, const char *op, const char *domain, const char *in, const char *out,
                 const ow *more)
{
    ow_node(f, 7, name, op, domain, in, out, more);
}

static void call(ow *graph, const char *name, const char *op, const char *in, const char *out, const ow *more)
{
    ow_node(graph, OW_GRAPH_NODE, name, op, "my", in, out, more);
}

/* A NodeProto's attribute of an int, and one that refers to a function's attribute. */
static void int_attr(ow *more, const char *name, int64_t value)
{
    ow attr = {0};
    ow_str(&attr, 1, name);
    ow_int(&attr, 3, value);
    ow_int(&attr, 20, DQ_ATTR_INT);
    ow_msg(more, OW_NODE_ATTR, &attr);
}

static void ref_attr(ow *more, const char *name, const char *ref, dq_attr_kind kind)
{
    ow attr = {0};
    ow_str(&attr, 1, name);
    ow_int(&attr, 20, (int)kind);
    ow_str(&attr, 21, ref);
    ow_msg(more, OW_NODE_ATTR, &attr);
}

static void graph_attr(ow *more, const char *name, const ow *graph)
{
    ow attr = {0};
    ow_str(&attr, 1, name);
    ow_msg(&attr, 6, graph);
    ow_int(&attr, 20, DQ_ATTR_GRAPH);
    ow_msg(more, OW_NODE_ATTR, &attr);
}

static ow with_functions(const ow *graph, size_t count, const ow *const *functions)
{
    ow model = ow_model(graph);
    for (size_t i = 0; i < count; i++)
        ow_msg(&model, OW_MODEL_FUNCTION, functions[i]);
    return model;
}

/* ---- Reading results ---------------------------------------------------------------------------------- */

static char text[8192];

static void say(const char *piece)
{
    strncat(text, piece, sizeof text - strlen(text) - 1);
}

static void say_names(uint32_t count, const char **names)
{
    for (uint32_t i = 0; i < count; i++) {
        say(i ? "," : "");
        say(*names[i] ? names[i] : "-");
    }
}

/* "Add(a,b){axis=1,body=[…]}>c; …" */
static void say_graph(const dq_graph *g)
{
    for (uint32_t i = 0; i < g->node_count; i++) {
        const dq_node *node = g->nodes[i];
        ck_assert_ptr_eq(node->graph, g);
        say(i ? " " : "");
        say(node->op_type);
        say("(");
        say_names(node->in_count, node->in_names);
        say(")");
        for (uint32_t k = 0; k < node->attr_count; k++) {
            char number[32];
            const dq_attr *a = &node->attrs[k];
            ck_assert_ptr_null(a->ref);
            say("{");
            say(a->name);
            if (a->kind == DQ_ATTR_GRAPH) {
                ck_assert_ptr_eq(a->u.graph->outer, g);
                say("=[");
                say_graph(a->u.graph);
                say("]");
            } else {
                snprintf(number, sizeof number, "=%d", (int)a->u.i);
                say(number);
            }
            say("}");
        }
        say(">");
        say_names(node->out_count, node->out_names);
    }
    for (uint32_t i = 0; g->outer && i < g->output_count; i++) {
        say(" =");
        say(g->output_names[i]);
    }
}

static void becomes(const ow *model, const char *expected)
{
    dq_ir *ir = parsed(model);
    dq_status status = dq_inline_functions(ir, &err);
    ck_assert_msg(status == DQ_OK, "%s", err.message);
    text[0] = '\0';
    say_graph(ir->graph);
    ck_assert_str_eq(text, expected);
    dq_ir_free(ir);
}

static void inlining_refused(const ow *model, const dq_limits *limits, dq_status expected,
                             const char *message)
{
    dq_ir *ir = NULL;
    dq_status status =
        dq_parse_memory(model->bytes, model->size, "t.onnx", &(dq_load_options){.limits = limits}, &ir, &err);
    ck_assert_msg(status == DQ_OK, "%s", err.message);
    ck_assert_int_eq(dq_inline_functions(ir, &err), expected);
    ck_assert_str_eq(err.message, message);
    dq_ir_free(ir);
}

/* ---- Tests -------------------------------------------------------------------------------------------- */

START_TEST(a_call_becomes_the_body)
{
    ow graph = {0}, f = function("F", "a,b", "c");
    body(&f, "first", "Mul", "", "a,b", "t", NULL);
    body(&f, "", "Add", "", "t,a", "c", NULL);
    ow_node(&graph, OW_GRAPH_NODE, "pre", "Abs", "", "x", "v", NULL);
    call(&graph, "k", "F", "v,x", "y", NULL);
    call(&graph, "", "F", "y,y", "z", NULL);
    ow model = with_functions(&graph, 1, (const ow *const[]){&f});
    becomes(&model, "Abs(x)>v Mul(v,x)>k/t Add(k/t,v)>y Mul(y,y)>F/t Add(F/t,y)>z");
    dq_ir *ir = parsed(&model);
    ck_assert_int_eq(dq_inline_functions(ir, &err), DQ_OK);
    ck_assert_str_eq(ir->graph->nodes[1]->name, "k/first");
    ck_assert_str_eq(ir->graph->nodes[2]->name, "k");
    ck_assert_int_eq(ir->graph->nodes[0]->opset, 21); /* the model's import, and the function's */
    ck_assert_int_eq(ir->graph->nodes[1]->opset, 17);
    dq_ir_free(ir);
}
END_TEST

START_TEST(names_do_not_collide)
{
    ow graph = {0}, f = function("F", "a", "c");
    body(&f, "", "Abs", "", "a", "t", NULL);
    body(&f, "", "Neg", "", "t", "c", NULL);
    ow_node(&graph, OW_GRAPH_NODE, "", "Abs", "", "x", "k/t", NULL);
    call(&graph, "k", "F", "k/t", "y", NULL);
    call(&graph, "k", "F", "y", "t", NULL);
    ow model = with_functions(&graph, 1, (const ow *const[]){&f});
    becomes(&model, "Abs(x)>k/t Abs(k/t)>k/t.1 Neg(k/t.1)>y Abs(y)>k/t.2 Neg(k/t.2)>t");
}
END_TEST

START_TEST(what_a_call_leaves_out)
{
    ow graph = {0}, f = function("F", "a,b,c", "u,v");
    body(&f, "", "Clip", "", "a,b,c", "v", NULL);
    body(&f, "", "Neg", "", "v", "u", NULL);
    call(&graph, "k", "F", "x,-,m", "y", NULL);
    call(&graph, "l", "F", "y", "-,w", NULL);
    ow model = with_functions(&graph, 1, (const ow *const[]){&f});
    becomes(&model, "Clip(x,-,m)>k/v Neg(k/v)>y Clip(y,-,-)>w Neg(w)>l/u");
}
END_TEST

START_TEST(outputs_that_pass_through)
{
    ow graph = {0}, f = function("F", "a", "a,b,b");
    body(&f, "", "Neg", "", "a", "b", NULL);
    call(&graph, "k", "F", "x", "p,q,r", NULL);
    ow model = with_functions(&graph, 1, (const ow *const[]){&f});
    becomes(&model, "Identity(x)>p Identity(q)>r Neg(x)>q");
    graph.size = 0;
    call(&graph, "k", "F", "-", "p", NULL);
    model = with_functions(&graph, 1, (const ow *const[]){&f});
    inlining_refused(&model, NULL, DQ_BAD_MODEL,
                     "node 'k' (my.F-0): output 0 is input 'a' of the function, which the call leaves out");
}
END_TEST

START_TEST(attributes_come_from_the_call_the_default_or_nowhere)
{
    ow graph = {0}, f = function("F", "a", "b"), inner = {0}, outer = {0}, preset = {0};
    ref_attr(&inner, "axis", "given", DQ_ATTR_INT);
    ref_attr(&inner, "axis2", "preset", DQ_ATTR_INT);
    ref_attr(&inner, "axis3", "absent", DQ_ATTR_INT);
    int_attr(&inner, "axis4", 4);
    body(&f, "", "Op", "", "a", "b", &inner);
    ow_list(&f, 6, "given,absent");
    ow_str(&preset, 1, "preset");
    ow_int(&preset, 3, 2);
    ow_int(&preset, 20, DQ_ATTR_INT);
    ow_msg(&f, 11, &preset);
    int_attr(&outer, "given", 1);
    call(&graph, "k", "F", "x", "y", &outer);
    int_attr(&outer, "preset", 9);
    call(&graph, "k", "F", "y", "z", &outer);
    ow model = with_functions(&graph, 1, (const ow *const[]){&f});
    becomes(&model, "Op(x){axis=1}{axis2=2}{axis4=4}>y Op(y){axis=1}{axis2=9}{axis4=4}>z");
    int_attr(&outer, "other", 9);
    graph.size = 0;
    call(&graph, "k", "F", "y", "z", &outer);
    model = with_functions(&graph, 1, (const ow *const[]){&f});
    inlining_refused(&model, NULL, DQ_BAD_MODEL,
                     "node 'k' (my.F-0): has attribute 'other', which the function does not declare");
}
END_TEST

START_TEST(an_attribute_of_another_type_is_refused)
{
    ow graph = {0}, f = function("F", "a", "b"), inner = {0}, outer = {0};
    ref_attr(&inner, "axes", "k", DQ_ATTR_INTS);
    body(&f, "", "Op", "", "a", "b", &inner);
    ow_list(&f, 6, "k");
    int_attr(&outer, "k", 1);
    call(&graph, "k", "F", "x", "y", &outer);
    ow model = with_functions(&graph, 1, (const ow *const[]){&f});
    inlining_refused(
        &model, NULL, DQ_BAD_MODEL,
        "node 'k' (my.F-0): attribute 'axes' has type ints, and attribute 'k' of function 'F', which it "
        "refers to, int");
}
END_TEST

START_TEST(functions_call_functions)
{
    ow graph = {0}, f = function("F", "a", "b"), g = function("G", "a", "b"), inner = {0}, outer = {0},
       deep = {0};
    ref_attr(&inner, "j", "k", DQ_ATTR_INT);
    body(&f, "in", "G", "my", "a", "t", &inner);
    body(&f, "", "Neg", "", "t", "b", NULL);
    ow_list(&f, 6, "k");
    ref_attr(&deep, "axis", "j", DQ_ATTR_INT);
    body(&g, "", "Abs", "", "a", "t", &deep);
    body(&g, "", "Exp", "", "t", "b", NULL);
    ow_list(&g, 6, "j");
    int_attr(&outer, "k", 3);
    call(&graph, "k", "F", "x", "y", &outer);
    ow model = with_functions(&graph, 2, (const ow *const[]){&f, &g});
    becomes(&model, "Abs(x){axis=3}>k/in/t Exp(k/in/t)>k/t Neg(k/t)>y");
}
END_TEST

/* Graphs in nodes of the model, of a body, and one that a call hands to a body twice. */
START_TEST(subgraphs)
{
    ow graph = {0}, f = function("F", "a", "b"), branch = {0}, more = {0};
    ow_node(&branch, OW_GRAPH_NODE, "", "Abs", "", "a", "t", NULL);
    ow_node(&branch, OW_GRAPH_NODE, "g", "G", "my", "t", "r", NULL);
    ow_value(&branch, OW_GRAPH_OUT, "r", 1, -1, NULL);
    graph_attr(&more, "then", &branch);
    body(&f, "if", "If", "", "a", "b", &more);
    ow g = function("G", "p", "q");
    body(&g, "", "Neg", "", "p", "q", NULL);
    ow here = {0}, outer = {0};
    ow_node(&here, OW_GRAPH_NODE, "h", "G", "my", "x", "s", NULL);
    ow_value(&here, OW_GRAPH_OUT, "s", 1, -1, NULL);
    graph_attr(&outer, "else", &here);
    ow_node(&graph, OW_GRAPH_NODE, "", "If", "", "c", "v", &outer);
    call(&graph, "k", "F", "x", "y", NULL);
    ow model = with_functions(&graph, 2, (const ow *const[]){&f, &g});
    becomes(&model, "If(c){else=[Neg(x)>s =s]}>v If(x){then=[Abs(x)>k/t Neg(k/t)>k/r =k/r]}>y");

    more.size = 0;
    ow twice = function("T", "a", "b,c");
    ow_list(&twice, 6, "branch");
    ref_attr(&more, "then", "branch", DQ_ATTR_GRAPH);
    body(&twice, "", "If", "", "a", "b", &more);
    body(&twice, "", "If", "", "a", "c", &more);
    outer.size = graph.size = 0;
    graph_attr(&outer, "branch", &here);
    call(&graph, "k", "T", "x", "y,z", &outer);
    model = with_functions(&graph, 2, (const ow *const[]){&twice, &g});
    becomes(&model, "If(x){then=[Neg(x)>s =s]}>y If(x){then=[Neg(x)>s =s]}>z");
    dq_ir *ir = parsed(&model);
    ck_assert_int_eq(dq_inline_functions(ir, &err), DQ_OK);
    ck_assert_ptr_ne(ir->graph->nodes[0]->attrs[0].u.graph, ir->graph->nodes[1]->attrs[0].u.graph);
    dq_ir_free(ir);
}
END_TEST

START_TEST(overloads_and_standard_names)
{
    ow graph = {0}, f = function("F", "a", "b"), g = function("F", "a", "b"), relu = {0}, more = {0};
    body(&f, "", "Neg", "", "a", "b", NULL);
    body(&g, "", "Abs", "", "a", "b", NULL);
    ow_str(&g, 13, "two");
    ow_str(&relu, 1, "Relu"); /* in the standard's own domain */
    ow_list(&relu, 4, "a");
    ow_list(&relu, 5, "b");
    ow_opset(&relu, 9, "", 17);
    body(&relu, "", "Exp", "", "a", "b", NULL);
    ow_str(&more, OW_NODE_OVERLOAD, "two");
    call(&graph, "k", "F", "x", "v", NULL);
    call(&graph, "l", "F", "v", "w", &more);
    ow_node(&graph, OW_GRAPH_NODE, "m", "Relu", "ai.onnx", "w", "y", NULL);
    ow model = with_functions(&graph, 3, (const ow *const[]){&f, &g, &relu});
    becomes(&model, "Neg(x)>v Abs(v)>w Exp(w)>y");
    model = with_functions(&graph, 2, (const ow *const[]){&f, &f});
    inlining_refused(&model, NULL, DQ_BAD_MODEL, "two functions are named 'F' in domain 'my'");
}
END_TEST

/* Functions are looked up by their domain, name and overload in lines. */
START_TEST(names_with_newlines)
{
    ow graph = {0}, f = function("F\nG", "a", "b");
    body(&f, "", "Neg", "", "a", "b", NULL);
    ow_node(&graph, OW_GRAPH_NODE, "k", "G", "my\nF", "x", "v", NULL);
    call(&graph, "l", "F\nG", "v", "y", NULL);
    ow model = with_functions(&graph, 1, (const ow *const[]){&f});
    becomes(&model, "G(x)>v Neg(v)>y");
}
END_TEST

/* F has a graph that calls G, which has one, too: four levels. */
START_TEST(the_limit_of_nesting_counts_functions_and_graphs)
{
    ow graph = {0}, f = function("F", "a", "b"), g = function("G", "p", "q"), outer = {0}, inner = {0};
    ow in_f = {0}, in_g = {0};
    ow_node(&inner, OW_GRAPH_NODE, "", "Neg", "", "p", "r", NULL);
    ow_value(&inner, OW_GRAPH_OUT, "r", 1, -1, NULL);
    graph_attr(&in_g, "then", &inner);
    body(&g, "", "If", "", "p", "q", &in_g);
    ow_node(&outer, OW_GRAPH_NODE, "", "G", "my", "a", "s", NULL);
    ow_value(&outer, OW_GRAPH_OUT, "s", 1, -1, NULL);
    graph_attr(&in_f, "then", &outer);
    body(&f, "", "If", "", "a", "b", &in_f);
    call(&graph, "k", "F", "x", "y", NULL);
    ow model = with_functions(&graph, 2, (const ow *const[]){&f, &g});
    dq_ir *ir = NULL;
    const dq_limits limits = {.nesting = 4};
    ck_assert_int_eq(
        dq_parse_memory(model.bytes, model.size, "t.onnx", &(dq_load_options){.limits = &limits}, &ir, &err),
        DQ_OK);
    ck_assert_msg(dq_inline_functions(ir, &err) == DQ_OK, "%s", err.message);
    dq_ir_free(ir);
    inlining_refused(&model, &(dq_limits){.nesting = 3}, DQ_OUT_OF_MEMORY,
                     "node 'k' (my.F-0): functions and subgraphs nest deeper than the limit of 3 levels");
}
END_TEST

START_TEST(recursion_is_refused)
{
    ow graph = {0}, f = function("F", "a", "b"), g = function("G", "a", "b"), h = function("H", "a", "b");
    body(&f, "", "G", "my", "a", "b", NULL);
    body(&g, "", "H", "my", "a", "b", NULL);
    body(&h, "", "G", "my", "a", "b", NULL);
    call(&graph, "k", "F", "x", "y", NULL);
    ow model = with_functions(&graph, 3, (const ow *const[]){&f, &g, &h});
    inlining_refused(&model, NULL, DQ_BAD_MODEL, "node 'k' (my.F-0): function 'G' calls itself: G -> H -> G");
}
END_TEST

START_TEST(calls_that_do_not_fit)
{
    ow graph = {0}, f = function("F", "a", "b");
    call(&graph, "k", "F", "x,x", "y", NULL);
    ow model = with_functions(&graph, 1, (const ow *const[]){&f});
    inlining_refused(&model, NULL, DQ_BAD_MODEL,
                     "node 'k' (my.F-0): has 2 inputs, and the function takes at most 1");
    graph.size = 0;
    call(&graph, "k", "F", "x", "y,z", NULL);
    model = with_functions(&graph, 1, (const ow *const[]){&f});
    inlining_refused(&model, NULL, DQ_BAD_MODEL,
                     "node 'k' (my.F-0): has 2 outputs, and the function gives at most 1");
}
END_TEST

/* F0 calls F1 eight times, F1 calls F2 eight times, …: 8^9 copies of the last, which may even be empty. */
/* The model's own nodes, those in its graphs, and those that functions become: neither calls nor their names.
 */
START_TEST(the_limit_counts_nodes)
{
    ow graph = {0}, f = function("F", "a", "b");
    body(&f, "", "Neg", "", "a", "t", NULL);
    body(&f, "", "Abs", "", "t", "u", NULL);
    body(&f, "", "Neg", "", "u", "b", NULL);
    call(&graph, "k", "F", "x", "m", NULL);
    call(&graph, "l", "F", "m", "n", NULL);
    ow_node(&graph, OW_GRAPH_NODE, "", "Neg", "", "n", "y", NULL);
    ow model = ow_model(&graph);
    ow_msg(&model, OW_MODEL_FUNCTION, &f);
    dq_ir *ir = NULL;
    ck_assert_int_eq(dq_parse_memory(model.bytes, model.size, "t.onnx",
                                     &(dq_load_options){.limits = &(dq_limits){.nodes = 7}}, &ir, &err),
                     DQ_OK);
    ck_assert_msg(dq_inline_functions(ir, &err) == DQ_OK, "%s", err.message);
    ck_assert_uint_eq(ir->graph->node_count, 7);
    dq_ir_free(ir);
    inlining_refused(&model, &(dq_limits){.nodes = 6}, DQ_OUT_OF_MEMORY,
                     "has more nodes than the limit of 6 once functions are inlined");
}
END_TEST

START_TEST(expansion_is_bounded)
{
    enum { LEVELS = 10 };
    ow graph = {0}, model;
    call(&graph, "k", "F0", "x", "y", NULL);
    for (int full = 0; full < 2; full++) {
        model = ow_model(&graph);
        for (int i = 0; i < LEVELS; i++) {
            char name[16], next[16];
            snprintf(name, sizeof name, "F%d", i);
            snprintf(next, sizeof next, "F%d", i + 1);
            ow f = function(name, "a", "b");
            for (int k = 0; k < 8 && (full || i + 1 < LEVELS); k++)
                body(&f, "", next, "my", "a", k ? "" : "b", NULL);
            ow_msg(&model, OW_MODEL_FUNCTION, &f);
        }
        inlining_refused(
            &model, NULL, DQ_OUT_OF_MEMORY,
            full ? "node 'k' (my.F0-0): has more nodes than the limit of 1000000 once functions are inlined"
                 : "node 'k' (my.F0-0): its functions hold more names, attributes and calls than 16000000 "
                   "once they are inlined, 16 for each node of the limit");
    }
    const dq_limits limits = {.nesting = 5};
    inlining_refused(&model, &limits, DQ_OUT_OF_MEMORY,
                     "node 'k' (my.F0-0): functions and subgraphs nest deeper than the limit of 5 levels");
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("inline_functions", NULL, NULL);
    add_test(&tests, a_call_becomes_the_body);
    add_test(&tests, names_do_not_collide);
    add_test(&tests, what_a_call_leaves_out);
    add_test(&tests, outputs_that_pass_through);
    add_test(&tests, attributes_come_from_the_call_the_default_or_nowhere);
    add_test(&tests, an_attribute_of_another_type_is_refused);
    add_test(&tests, functions_call_functions);
    add_test(&tests, subgraphs);
    add_test(&tests, overloads_and_standard_names);
    add_test(&tests, names_with_newlines);
    add_test(&tests, the_limit_of_nesting_counts_functions_and_graphs);
    add_test(&tests, recursion_is_refused);
    add_test(&tests, calls_that_do_not_fit);
    add_test(&tests, the_limit_counts_nodes);
    add_test(&tests, expansion_is_bounded);
    return test_program_run(&tests);
}
