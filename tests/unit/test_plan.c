/* SPDX-License-Identifier: Apache-2.0 */
/* src/plan and src/exec over graphs built in code: folded constants, faults, types. */
#include "plan/fold_constants.h"
#include "plan_graphs.h"
#include "support/test_program.h"

#include <string.h>

START_TEST(constants_are_folded_once_for_all_plans)
{
    static float w[2] = {7, 8};
    static dq_tensor t = {.data = w};
    ck_assert_int_eq(dq_tensor_set_shape(&t, DQ_FLOAT, 1, (int64_t[]){2}, 0, DQ_BAD_MODEL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_initializer(g, "w", &t, &err), DQ_OK);
    node("Identity", "w", "a");
    node("Identity", "a", "b");
    ck_assert_int_eq(dq_graph_add_output(g, "b", NULL, &err), DQ_OK);
    check_program();
    const void *first = NULL;
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(make_plan(NULL, 0), DQ_OK);
        ck_assert_uint_eq(plan->step_count, 0);
        ck_assert_int_eq(dq_exec_run(&exec, plan, NULL, 0, &err), DQ_OK);
        const dq_tensor *y = dq_plan_output(plan, g->outputs[0]);
        ck_assert_mem_eq(y->data, w, sizeof w);
        ck_assert(round == 0 || y->data == first);
        first = y->data;
    }
}
END_TEST

START_TEST(views_of_constants_are_no_copies)
{
    static float w[2] = {7, 8};
    static dq_tensor t = {.data = w};
    ck_assert_int_eq(dq_tensor_set_shape(&t, DQ_FLOAT, 1, (int64_t[]){2}, 0, DQ_BAD_MODEL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_initializer(g, "w", &t, &err), DQ_OK);
    node("Identity", "w", "a");
    node("Neg", "a", "b");
    ck_assert_int_eq(dq_graph_add_output(g, "b", NULL, &err), DQ_OK);
    check_program();
    ck_assert_int_eq(make_plan(NULL, 0), DQ_OK);
    ck_assert_ptr_eq(dq_plan_slot(plan, g->nodes[0]->out[0])->t.data, w);
    ck_assert_ptr_null(dq_folded_get(program->folded, g->nodes[0]->out[0]->id));
    ck_assert_ptr_nonnull(dq_folded_get(program->folded, g->nodes[1]->out[0]->id));
}
END_TEST

START_TEST(faults_are_kept_for_every_node)
{
    float_input("x");
    node("Identity", "x", "a");
    node("Indentity", "x", "b");
    node("Identity", "x", "c");
    g->nodes[2]->opset = 0;
    ck_assert_int_eq(dq_graph_add_output(g, "a", NULL, &err), DQ_OK);
    check_program();
    ck_assert_uint_eq(program->fault_count, 2);
    ck_assert_int_eq(program->faults[0].status, DQ_UNSUPPORTED);
    ck_assert_int_eq(strncmp(program->faults[0].message, "m.onnx: node 1 (Indentity-21): ", 31), 0);
    ck_assert_int_eq(program->faults[1].status, DQ_BAD_MODEL);
}
END_TEST

/* Cast-13 knows no float8, though the operator's code does. */
START_TEST(types_that_an_attribute_gives_are_held_against_the_schema)
{
    static const dq_attr to = {.name = "to", .kind = DQ_ATTR_INT, .u.i = DQ_FLOAT8E5M2};
    for (int opset = 13; opset <= 19; opset += 6) {
        if (opset > 13) {
            tear_down();
            set_up();
        }
        float_input("x");
        dq_node *n = NULL;
        ck_assert_int_eq(dq_graph_add_node(g, 1, 1, 1, &n, &err), DQ_OK);
        n->op_type = "Cast";
        n->opset = opset;
        n->in_names[0] = "x";
        n->out_names[0] = "y";
        n->attrs[0] = to;
        ck_assert_int_eq(dq_graph_add_output(g, "y", NULL, &err), DQ_OK);
        check_program();
        float one = 1;
        dq_tensor x = {.data = &one};
        ck_assert_int_eq(dq_tensor_set_shape(&x, DQ_FLOAT, 0, NULL, 0, DQ_BAD_INPUT, &err), DQ_OK);
        const dq_binding bindings = {.value = g->inputs[0], .tensor = &x};
        dq_status status = make_plan(&bindings, 1);
        ck_assert_int_eq(status, opset == 13 ? DQ_BAD_MODEL : DQ_OK);
        static const char message[] =
            "m.onnx: node 0 (Cast-13): output 0 'output' is tensor(float8e5m2), expected ";
        ck_assert(opset > 13 || strncmp(err.message, message, sizeof message - 1) == 0);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("plan", set_up, tear_down);
    add_test(&tests, constants_are_folded_once_for_all_plans);
    add_test(&tests, views_of_constants_are_no_copies);
    add_test(&tests, faults_are_kept_for_every_node);
    add_test(&tests, types_that_an_attribute_gives_are_held_against_the_schema);
    return test_program_run(&tests);
}
