/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs inside nodes: src/exec/control_flow.c, inner.c, scan.c and the plans under them, over graphs built
 * in code.
 */
#include "inner_graphs.h"
#include "support/test_program.h"

#include <stdio.h>

/* ---- If ----------------------------------------------------------------------------------------------- */

/* Alone, and (_i 1) in a large graph, beside which plans of the branches stay small. */
START_TEST(branches_read_values_of_the_graphs_around_them)
{
    enum { MANY = 200 };
    static const float two = 2;
    input(g, "x", DQ_FLOAT);
    input(g, "deep", DQ_BOOL);
    constant(g, "two", DQ_FLOAT, 0, NULL, &two);
    for (int i = 0; i < MANY * _i; i++) {
        char name[32];
        snprintf(name, sizeof name, "unused%d", i);
        constant(g, dq_arena_string(&ir->arena, name, strlen(name)), DQ_FLOAT, 0, NULL, &two);
    }
    node(g, "", "Neg", "x", "a", 0);
    /* these would take a's memory, were it free */
    node(g, "", "Abs", "a", "b", 0);
    node(g, "", "Neg", "b", "c", 0);
    node(g, "", "Abs", "c", "d", 0);
    dq_graph *then = inner(g, "then"), *otherwise = inner(g, "otherwise");
    dq_graph *nested = inner(then, "nested"), *other = inner(then, "other");
    node(nested, "", "Mul", "a,two", "r", 0);
    output(nested, "r", DQ_UNDEFINED);
    output(other, "d", DQ_UNDEFINED); /* an outer value as it is */
    dq_node *second = node(then, "second", "If", "deep", "t", 2);
    graph_attr(second, 0, "then_branch", nested);
    graph_attr(second, 1, "else_branch", other);
    output(then, "t", DQ_UNDEFINED);
    output(otherwise, "d", DQ_UNDEFINED);
    dq_node *first = node(g, "first", "If", "deep", "y", 2);
    graph_attr(first, 0, "then_branch", then);
    graph_attr(first, 1, "else_branch", otherwise);
    output(g, "y", DQ_UNDEFINED);
    check_program();
    const float x[3] = {1, -2, 3};
    const int64_t dims[1] = {3};
    for (int k = 0; k < 4; k++) {
        bool deep = k % 2 == 0;
        dq_tensor inputs[2] = {tensor(DQ_FLOAT, 1, dims, x), scalar(DQ_BOOL, &deep)};
        run_well(inputs);
        wanted_floats(out(0), 1, dims, deep ? (float[]){-2, 4, -6} : (float[]){1, 2, 3});
    }
    const dq_flow *flow = plan->steps[plan->step_count - 1]->flow;
    for (int i = 0; i < 2 && _i == 1; i++)
        ck_assert_uint_lt(flow->inners[i]->plan->slot_count, MANY / 4);
}
END_TEST

START_TEST(a_fault_inside_names_the_nodes_around_it)
{
    static const int64_t shape[2] = {2, 2}, two[1] = {2};
    input(g, "x", DQ_FLOAT);
    input(g, "c", DQ_BOOL);
    constant(g, "shape", DQ_INT64, 1, two, shape);
    dq_graph *then = inner(g, "then"), *otherwise = inner(g, "otherwise");
    node(then, "bend", "Reshape", "x,shape", "r", 0);
    output(then, "r", DQ_UNDEFINED);
    output(otherwise, "x", DQ_UNDEFINED);
    dq_node *choice = node(g, "choice", "If", "c", "y", 2);
    graph_attr(choice, 0, "then_branch", then);
    graph_attr(choice, 1, "else_branch", otherwise);
    output(g, "y", DQ_UNDEFINED);
    check_program();
    const float x[3] = {0};
    bool yes = true;
    dq_tensor inputs[2] = {tensor(DQ_FLOAT, 1, (int64_t[]){3}, x), scalar(DQ_BOOL, &yes)};
    ck_assert_int_eq(run(inputs), DQ_BAD_MODEL);
    static const char expected[] = "m.onnx: node 'choice' (If-21): node 'bend' (Reshape-21): ";
    ck_assert_msg(strncmp(err.message, expected, sizeof expected - 1) == 0, "%s", err.message);
}
END_TEST

/* ---- Loop --------------------------------------------------------------------------------------------- */

/* sum += a (of outside); grown = [grown, 1]; each sum is a scan output. */
static void build_sums(const char *condition)
{
    static const float one = 1;
    static const bool no = false;
    const int64_t dims[1] = {1};
    input(g, "x", DQ_FLOAT);
    input(g, "trips", DQ_INT64);
    input(g, "go", DQ_BOOL);
    constant(g, "one", DQ_FLOAT, 1, dims, &one);
    constant(g, "no", DQ_BOOL, 0, NULL, &no);
    node(g, "", "Neg", "x", "a", 0);
    dq_graph *body = loop_body(g);
    input(body, "sum", DQ_FLOAT);
    input(body, "grown", DQ_FLOAT);
    node(body, "", "Add", "sum,a", "next", 0);
    dq_node *concat = node(body, "", "Concat", "grown,one", "longer", 1);
    int_attr(concat, 0, "axis", 0);
    output(body, "no", DQ_BOOL);
    output(body, "next", DQ_FLOAT);
    output(body, "longer", DQ_FLOAT);
    output(body, "next", DQ_FLOAT);
    char *ins = dq_arena_printf(&ir->arena, "trips,%s,x,one", condition);
    dq_node *loop = node(g, "sums", "Loop", ins, "last,all_ones,sums", 1);
    graph_attr(loop, 0, "body", body);
    output(g, "last", DQ_UNDEFINED);
    output(g, "all_ones", DQ_UNDEFINED);
    output(g, "sums", DQ_UNDEFINED);
    check_program();
}

START_TEST(a_loop_carries_values_and_stacks_others)
{
    const float x[2] = {1, -2}, ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const bool go = true;
    build_sums("-"); /* no condition: the body's is ignored */
    for (int64_t trips = 5; trips >= 0; trips--) {
        dq_tensor inputs[3] = {tensor(DQ_FLOAT, 1, (int64_t[]){2}, x), scalar(DQ_INT64, &trips),
                               scalar(DQ_BOOL, &go)};
        run_well(inputs);
        float sums[10];
        for (int k = 0; k < trips; k++)
            for (int i = 0; i < 2; i++)
                sums[2 * k + i] = x[i] * (float)-k;
        wanted_floats(out(0), 1, (int64_t[]){2}, trips ? &sums[2 * (trips - 1)] : x);
        wanted_floats(out(1), 1, (int64_t[]){trips + 1}, ones);
        if (trips)
            wanted_floats(out(2), 2, (int64_t[]){trips, 2}, sums);
        else
            ck_assert_uint_eq(out(2)->count, 0);
    }
}
END_TEST

START_TEST(a_loop_ends_with_its_condition)
{
    const float x[2] = {1, -2};
    const int64_t trips = 5;
    build_sums("go");
    for (int k = 0; k < 2; k++) {
        const bool go = k == 0;
        dq_tensor inputs[3] = {tensor(DQ_FLOAT, 1, (int64_t[]){2}, x), scalar(DQ_INT64, &trips),
                               scalar(DQ_BOOL, &go)};
        run_well(inputs);
        ck_assert_int_eq(out(1)->dims[0], go ? 2 : 1); /* the body says no at once */
    }
}
END_TEST

/* sum += x + w; x of the caller and w, a constant, are states that each iteration gives back. */
START_TEST(a_loop_takes_states_that_it_does_not_change_from_outside)
{
    static const float w[2] = {10, 20}, zero[2] = {0, 0};
    static const bool yes = true;
    const int64_t dims[1] = {2};
    input(g, "x", DQ_FLOAT);
    input(g, "trips", DQ_INT64);
    constant(g, "w", DQ_FLOAT, 1, dims, w);
    constant(g, "zero", DQ_FLOAT, 1, dims, zero);
    constant(g, "yes", DQ_BOOL, 0, NULL, &yes);
    node(g, "", "Neg", "x", "a", 0);
    dq_graph *body = loop_body(g);
    input(body, "sum", DQ_FLOAT);
    input(body, "w_in", DQ_FLOAT);
    input(body, "a_in", DQ_FLOAT);
    node(body, "", "Add", "sum,w_in", "half", 0);
    node(body, "", "Add", "half,a_in", "next", 0);
    node(body, "", "Identity", "a_in", "a_same", 0);
    node(body, "", "Identity", "a_same", "a_out", 0);
    output(body, "yes", DQ_BOOL);
    output(body, "next", DQ_FLOAT);
    output(body, "w_in", DQ_FLOAT);
    output(body, "a_out", DQ_FLOAT);
    graph_attr(node(g, "", "Loop", "trips,-,zero,w,a", "sum_out,w_out,a_last", 1), 0, "body", body);
    node(g, "", "Add", "x,x", "twice", 0); /* may have the memory of a, which nothing reads any more */
    node(g, "", "Neg", "twice", "behind", 0);
    output(g, "sum_out", DQ_UNDEFINED);
    output(g, "w_out", DQ_UNDEFINED);
    output(g, "a_last", DQ_UNDEFINED);
    output(g, "behind", DQ_UNDEFINED);
    check_program();
    for (int64_t trips = 3; trips >= 0; trips--) {
        const float x[2] = {(float)trips, -5}, t = (float)trips;
        dq_tensor inputs[2] = {tensor(DQ_FLOAT, 1, dims, x), scalar(DQ_INT64, &trips)};
        run_well(inputs);
        wanted_floats(out(0), 1, dims, (float[]){t * (10 - t), t * 25});
        wanted_floats(out(1), 1, dims, w);
        wanted_floats(out(2), 1, dims, (float[]){-t, 5});
        ck_assert_ptr_eq(out(1)->data, dq_plan_slot(plan, g->nodes[1]->in[3])->t.data); /* not a copy */
    }
}
END_TEST

/* ---- Scan --------------------------------------------------------------------------------------------- */

START_TEST(a_scan_goes_along_any_axis_both_ways)
{
    static const int64_t one[1] = {1}, back[1] = {1};
    const float x[6] = {1, 2, 3, 4, 5, 6}, zero[2] = {0, 0};
    input(g, "start", DQ_FLOAT);
    input(g, "x", DQ_FLOAT);
    dq_graph *body = inner(g, "body");
    input(body, "sum", DQ_FLOAT);
    input(body, "slice", DQ_FLOAT);
    node(body, "", "Add", "sum,slice", "next", 0);
    output(body, "next", DQ_FLOAT);
    output(body, "next", DQ_FLOAT);
    dq_node *scan = node(g, "", "Scan", "start,x", "last,sums", 5);
    graph_attr(scan, 0, "body", body);
    int_attr(scan, 1, "num_scan_inputs", 1);
    ints_attr(scan, 2, "scan_input_axes", one, 1);
    ints_attr(scan, 3, "scan_input_directions", back, 1);
    ints_attr(scan, 4, "scan_output_axes", one, 1);
    output(g, "last", DQ_UNDEFINED);
    output(g, "sums", DQ_UNDEFINED);
    check_program();
    dq_tensor inputs[2] = {tensor(DQ_FLOAT, 1, (int64_t[]){2}, zero),
                           tensor(DQ_FLOAT, 2, (int64_t[]){2, 3}, x)};
    for (int k = 0; k < 2; k++) {
        run_well(inputs);
        wanted_floats(out(0), 1, (int64_t[]){2}, (float[]){6, 15});
        wanted_floats(out(1), 2, (int64_t[]){2, 3}, (float[]){3, 5, 6, 6, 11, 15});
    }
}
END_TEST

START_TEST(a_scan_takes_states_that_it_does_not_change_from_outside)
{
    const float x[6] = {1, 2, 3, 4, 5, 6}, zero[2] = {0, 0}, step[2] = {10, 20};
    const int64_t two[1] = {2};
    input(g, "start", DQ_FLOAT);
    input(g, "step", DQ_FLOAT);
    input(g, "x", DQ_FLOAT);
    dq_graph *body = inner(g, "body");
    input(body, "sum", DQ_FLOAT);
    input(body, "step_in", DQ_FLOAT);
    input(body, "slice", DQ_FLOAT);
    node(body, "", "Add", "sum,slice", "half", 0);
    node(body, "", "Add", "half,step_in", "next", 0);
    output(body, "next", DQ_FLOAT);
    output(body, "step_in", DQ_FLOAT);
    dq_node *scan = node(g, "", "Scan", "start,step,x", "last,step_out", 2);
    graph_attr(scan, 0, "body", body);
    int_attr(scan, 1, "num_scan_inputs", 1);
    output(g, "last", DQ_UNDEFINED);
    output(g, "step_out", DQ_UNDEFINED);
    check_program();
    dq_tensor inputs[3] = {tensor(DQ_FLOAT, 1, two, zero), tensor(DQ_FLOAT, 1, two, step),
                           tensor(DQ_FLOAT, 2, (int64_t[]){3, 2}, x)};
    for (int k = 0; k < 2; k++) {
        run_well(inputs);
        wanted_floats(out(0), 1, two, (float[]){39, 72});
        wanted_floats(out(1), 1, two, step);
    }
}
END_TEST

START_TEST(a_scan_moves_packed_elements)
{
    static const int64_t one[1] = {1}, back[1] = {1};
    const uint8_t x[5] = {0x10, 0x32, 0x54, 0x76, 0x08}; /* 3x3 of 0 to 8 */
    input(g, "x", DQ_UINT4);
    dq_graph *body = inner(g, "body");
    input(body, "slice", DQ_UINT4);
    node(body, "", "Identity", "slice", "same", 0);
    output(body, "same", DQ_UINT4);
    dq_node *scan = node(g, "", "Scan", "x", "y", 4);
    graph_attr(scan, 0, "body", body);
    int_attr(scan, 1, "num_scan_inputs", 1);
    ints_attr(scan, 2, "scan_input_axes", one, 1);
    ints_attr(scan, 3, "scan_output_directions", back, 1);
    output(g, "y", DQ_UNDEFINED);
    check_program();
    dq_tensor inputs[1] = {tensor(DQ_UINT4, 2, (int64_t[]){3, 3}, x)};
    run_well(inputs);
    for (int64_t r = 0; r < 3; r++)
        for (int64_t c = 0; c < 3; c++)
            ck_assert_int_eq(dq_tensor_get_int(out(0), (size_t)(r * 3 + c)), c * 3 + 2 - r);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("control_flow", set_up, tear_down);
    add_loop_test(&tests, branches_read_values_of_the_graphs_around_them, 0, 2);
    add_test(&tests, a_fault_inside_names_the_nodes_around_it);
    add_test(&tests, a_loop_carries_values_and_stacks_others);
    add_test(&tests, a_loop_ends_with_its_condition);
    add_test(&tests, a_loop_takes_states_that_it_does_not_change_from_outside);
    add_test(&tests, a_scan_goes_along_any_axis_both_ways);
    add_test(&tests, a_scan_takes_states_that_it_does_not_change_from_outside);
    add_test(&tests, a_scan_moves_packed_elements);
    return test_program_run(&tests);
}
