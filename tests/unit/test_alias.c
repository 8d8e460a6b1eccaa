/* SPDX-License-Identifier: Apache-2.0 */
/* src/plan/alias.c over graphs built in code: views, operators in place, Split and Concat without copies. */
#include "plan_graphs.h"
#include "support/test_program.h"

#include <stdio.h>

START_TEST(views_need_no_step_and_outputs_are_no_ones_input)
{
    float_input("x");
    node("Identity", "x", "a");
    node("Identity", "a", "b");
    node("Identity", "x", "unused");
    ck_assert_int_eq(dq_graph_add_output(g, "b", NULL, &err), DQ_OK);
    check_program();
    float data[6] = {1, 2, 3, 4, 5, 6};
    dq_tensor x = {.data = data};
    for (int64_t n = 2; n >= 1; n--) {
        ck_assert_int_eq(dq_tensor_set_shape(&x, DQ_FLOAT, 2, (int64_t[]){n, 3}, 0, DQ_BAD_INPUT, &err),
                         DQ_OK);
        const dq_binding given = {.value = g->inputs[0], .tensor = &x};
        ck_assert_int_eq(make_plan(&given, 1), DQ_OK);
        ck_assert_uint_eq(plan->step_count, 0);
        ck_assert_int_eq(dq_exec_run(&exec, plan, &given, 1, &err), DQ_OK);
        const dq_tensor *y = dq_plan_output(plan, g->outputs[0]);
        ck_assert_ptr_ne(y->data, data);
        ck_assert_uint_eq(y->count, (size_t)n * 3);
        ck_assert_mem_eq(y->data, data, y->size);
    }
}
END_TEST

START_TEST(a_chain_is_computed_in_place)
{
    float_input("x");
    node("Neg", "x", "a");
    node("Identity", "a", "view");
    node("Abs", "view", "b");
    node("Neg", "b", "c");
    ck_assert_int_eq(dq_graph_add_output(g, "c", NULL, &err), DQ_OK);
    check_program();
    const float *y = run_on_row();
    ck_assert_uint_eq(plan->step_count, 3);
    ck_assert_uint_eq(plan->buffer_size, 64);
    ck_assert(y[0] == -1 && y[15] == -16);
}
END_TEST

START_TEST(a_value_that_is_read_later_keeps_its_buffer)
{
    float_input("x");
    node("Neg", "x", "a");
    node("Identity", "a", "view");
    node("Abs", "a", "b");
    node("Neg", "view", "c"); /* a is read no more then, but b is */
    ck_assert_int_eq(dq_graph_add_output(g, "b", NULL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_output(g, "c", NULL, &err), DQ_OK);
    check_program();
    const float *b = run_on_row(), *c = dq_plan_output(plan, g->outputs[1])->data;
    ck_assert_uint_eq(plan->buffer_size, 128);
    ck_assert(b[0] == 1 && b[15] == 16 && c[0] == 1 && c[15] == 16);
}
END_TEST

/* A sum of codes takes the memory of the operand that nobody wants, be it the first or the second. */
START_TEST(a_quantized_sum_is_computed_in_an_operand)
{
    static float one = 1, half = 0.5f;
    static uint8_t zero = 0;
    static dq_tensor scale = {.data = &one}, smaller = {.data = &half}, zero_point = {.data = &zero};
    ck_assert_int_eq(dq_tensor_set_shape(&scale, DQ_FLOAT, 0, NULL, 0, DQ_BAD_MODEL, &err), DQ_OK);
    ck_assert_int_eq(dq_tensor_set_shape(&smaller, DQ_FLOAT, 0, NULL, 0, DQ_BAD_MODEL, &err), DQ_OK);
    ck_assert_int_eq(dq_tensor_set_shape(&zero_point, DQ_UINT8, 0, NULL, 0, DQ_BAD_MODEL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_initializer(g, "s", &scale, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_initializer(g, "h", &smaller, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_initializer(g, "z", &zero_point, &err), DQ_OK);
    float_input("x");
    add("", "QuantizeLinear", (const char *[]){"x", "s", "z", NULL}, "a", 0);
    add("", "QuantizeLinear", (const char *[]){"x", "h", "z", NULL}, "b", 0);
    add("com.microsoft", "QLinearAdd", (const char *[]){"a", "s", "z", "b", "h", "z", "s", "z", NULL}, "sum",
        0);
    ck_assert_int_eq(dq_graph_add_output(g, "sum", NULL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_output(g, _i ? "a" : "b", NULL, &err), DQ_OK);
    check_program();
    const uint8_t *sum = (const uint8_t *)run_on_row(), *kept = dq_plan_output(plan, g->outputs[1])->data;
    ck_assert_uint_eq(plan->buffer_size, 64 + 16); /* places are multiples of 64 */
    for (int i = 0; i < 16; i++)
        ck_assert(sum[i] == 2 * (i + 1) && kept[i] == (_i ? 1 : 2) * (i + 1));
}
END_TEST

/* A part of what would be overwritten is read for each row. */
START_TEST(a_sum_with_a_part_of_itself_has_its_own_buffer)
{
    static int64_t shape[2] = {2, 8};
    static dq_tensor t = {.data = shape};
    ck_assert_int_eq(dq_tensor_set_shape(&t, DQ_INT64, 1, (int64_t[]){2}, 0, DQ_BAD_MODEL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_initializer(g, "shape", &t, &err), DQ_OK);
    float_input("x");
    add("", "Reshape", (const char *[]){"x", "shape", NULL}, "rows", 0);
    node("Neg", "rows", "a");
    split("a", (const char *[]){"p", "q"}, 2);
    add("", "Add", (const char *[]){"a", "p", NULL}, "y", 0);
    ck_assert_int_eq(dq_graph_add_output(g, "y", NULL, &err), DQ_OK);
    check_program();
    const float *y = run_on_row();
    ck_assert_uint_eq(plan->step_count, 2);
    for (int i = 0; i < 16; i++)
        ck_assert(y[i] == (float)(-(i + 1) - (i % 8 + 1)));
}
END_TEST

START_TEST(outputs_of_split_need_no_step)
{
    float_input("x");
    node("Neg", "x", "a");
    split("a", (const char *[]){"p", "q"}, 2);
    node("Abs", "q", "c"); /* its operand ends here, but not the memory: p is wanted */
    ck_assert_int_eq(dq_graph_add_output(g, "p", NULL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_output(g, "c", NULL, &err), DQ_OK);
    check_program();
    const float *first = run_on_row(), *c = dq_plan_output(plan, g->outputs[1])->data;
    ck_assert_uint_eq(plan->step_count, 2);
    ck_assert_uint_eq(plan->buffer_size, 96);
    ck_assert(first[0] == -1 && first[7] == -8 && c[0] == 9 && c[7] == 16);
}
END_TEST

/* A sixteenth of `a` and, after a chain of functions of all of it, a view of that sixteenth. */
static void part_after_chain(int functions)
{
    static float row[1 << 16];
    static char names[32][4];
    static const char *const parts[16] = {"p",  "p1", "p2",  "p3",  "p4",  "p5",  "p6",  "p7",
                                          "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15"};
    const char *last = "a";
    dq_tensor x = {.data = row};
    float_input("x");
    node("Neg", "x", "a");
    split("a", parts, 16);
    for (int i = 0; i < functions; i++) {
        snprintf(names[i], sizeof names[i], "f%d", i);
        node("Abs", last, names[i]);
        last = names[i];
    }
    node("Identity", "p", "view");
    node("Neg", "view", "y");
    ck_assert_int_eq(dq_graph_add_output(g, "y", NULL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_output(g, last, NULL, &err), DQ_OK);
    check_program();
    row[3] = 5;
    ck_assert_int_eq(dq_tensor_set_shape(&x, DQ_FLOAT, 1, (int64_t[]){1 << 16}, 0, DQ_BAD_MODEL, &err),
                     DQ_OK);
    const dq_binding given = {.value = g->inputs[0], .tensor = &x};
    ck_assert_int_eq(make_plan(&given, 1), DQ_OK);
    ck_assert_int_eq(dq_exec_run(&exec, plan, &given, 1, &err), DQ_OK);
    const float *y = dq_plan_output(plan, g->outputs[0])->data,
                *f = dq_plan_output(plan, g->outputs[1])->data;
    ck_assert(y[2] == 0 && y[3] == 5 && f[3] == 5);
}

START_TEST(a_small_part_does_not_keep_its_source)
{
    enum { ALL = sizeof(float) << 16 };
    part_after_chain(12);
    ck_assert_uint_eq(plan->step_count, 1 + 1 + 12 + 1);
    ck_assert_uint_eq(plan->buffer_size, ALL + ALL / 16);
}
END_TEST

START_TEST(a_small_part_for_soon_is_a_view)
{
    enum { ALL = sizeof(float) << 16 };
    part_after_chain(5);
    ck_assert_uint_eq(plan->step_count, 1 + 5 + 1);
    ck_assert_uint_ge(plan->buffer_size, 2 * ALL);
}
END_TEST

START_TEST(parts_of_inputs_are_copied_for_the_caller)
{
    float_input("x");
    split("x", (const char *[]){"p", "q"}, 2);
    node("Neg", "q", "c");
    ck_assert_int_eq(dq_graph_add_output(g, "q", NULL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_output(g, "c", NULL, &err), DQ_OK);
    check_program();
    const float *q = run_on_row(), *c = dq_plan_output(plan, g->outputs[1])->data;
    ck_assert_uint_eq(plan->step_count, 1);
    ck_assert(q[0] == 9 && q[7] == 16 && c[0] == -9 && c[7] == -16);
}
END_TEST

START_TEST(operands_of_concat_are_computed_in_its_result)
{
    two_parts();
    concat((const char *[]){"a", "b"}, 2, "c");
    node("Neg", "c", "y"); /* in place */
    output("y");
    check_program();
    const float *y = run_on_row();
    ck_assert_uint_eq(plan->step_count, 3);
    ck_assert_uint_eq(plan->buffer_size, 128);
    ck_assert(counts(y, 1) && counts(y + 16, -1));
}
END_TEST

START_TEST(a_part_that_is_read_later_keeps_its_bytes)
{
    two_parts();
    concat((const char *[]){"a", "b"}, 2, "c");
    node("Neg", "a", "y"); /* not in place */
    output("y");
    output("c");
    check_program();
    const float *y = run_on_row(), *c = dq_plan_output(plan, g->outputs[1])->data;
    ck_assert_uint_eq(plan->step_count, 3);
    ck_assert_uint_eq(plan->buffer_size, 128 + 64);
    ck_assert(counts(y, 1) && counts(c, -1) && counts(c + 16, 1));
}
END_TEST

START_TEST(a_whole_keeps_its_bytes_while_parts_are_read)
{
    two_parts();
    concat((const char *[]){"a", "b"}, 2, "c");
    node("Neg", "c", "n"); /* not in place */
    node("Neg", "a", "y");
    output("y");
    output("n");
    check_program();
    const float *y = run_on_row(), *n = dq_plan_output(plan, g->outputs[1])->data;
    ck_assert_uint_eq(plan->step_count, 4);
    ck_assert(counts(y, 1) && counts(n, 1) && counts(n + 16, -1));
}
END_TEST

START_TEST(results_of_concat_are_operands_of_another)
{
    two_parts();
    concat((const char *[]){"a", "b"}, 2, "c");
    node("Neg", "b", "d");
    concat((const char *[]){"d", "c"}, 2, "y");
    output("y");
    check_program();
    const float *y = run_on_row();
    ck_assert_uint_eq(plan->step_count, 3);
    ck_assert_uint_eq(plan->buffer_size, 192);
    ck_assert(counts(y, -1) && counts(y + 16, -1) && counts(y + 32, 1));
}
END_TEST

START_TEST(operands_that_cannot_be_computed_in_the_result_are_copied)
{
    two_parts();
    concat((const char *[]){"a", "b", "a", "x"}, 4, "y"); /* the second a and the caller's x are */
    concat((const char *[]){"b", "a"}, 2, "z");           /* both have their place */
    output("y");
    output("z");
    check_program();
    const float *y = run_on_row(), *z = dq_plan_output(plan, g->outputs[1])->data;
    ck_assert_uint_eq(plan->step_count, 4);
    ck_assert_uint_eq(plan->buffer_size, 256 + 128);
    ck_assert(counts(y, -1) && counts(y + 16, 1) && counts(y + 32, -1) && counts(y + 48, 1));
    ck_assert(counts(z, 1) && counts(z + 16, -1));
}
END_TEST

START_TEST(parts_of_parts_are_copied)
{
    float_input("x");
    node("Neg", "x", "a");
    split("a", (const char *[]){"p", "q"}, 2);
    node("Abs", "p", "b");
    node("Neg", "q", "d");
    concat((const char *[]){"q", "p"}, 2, "y");
    concat((const char *[]){"b", "d"}, 2, "z"); /* b has half a cache line: d would not be aligned */
    output("y");
    output("z");
    check_program();
    const float *y = run_on_row(), *z = dq_plan_output(plan, g->outputs[1])->data;
    ck_assert_uint_eq(plan->step_count, 5);
    ck_assert(y[0] == -9 && y[7] == -16 && y[8] == -1 && y[15] == -8 && counts(z, 1));
}
END_TEST

/* A part that is there long before the rest does not hold memory for it. */
static void part_before_chain(uint32_t functions)
{
    static float row[1 << 15];
    static char names[32][4];
    const char *last = "x";
    dq_tensor x = {.data = row};
    float_input("x");
    node("Neg", "x", "a");
    for (uint32_t i = 0; i < functions; i++) {
        snprintf(names[i], sizeof names[i], "f%u", i);
        node("Abs", last, names[i]);
        last = names[i];
    }
    concat((const char *[]){"a", last}, 2, "y");
    output("y");
    check_program();
    row[3] = 5;
    ck_assert_int_eq(dq_tensor_set_shape(&x, DQ_FLOAT, 1, (int64_t[]){1 << 15}, 0, DQ_BAD_MODEL, &err),
                     DQ_OK);
    const dq_binding given = {.value = g->inputs[0], .tensor = &x};
    ck_assert_int_eq(make_plan(&given, 1), DQ_OK);
    ck_assert_int_eq(dq_exec_run(&exec, plan, &given, 1, &err), DQ_OK);
    const float *y = dq_plan_output(plan, g->outputs[0])->data;
    ck_assert(y[2] == 0 && y[3] == -5 && y[(1 << 15) + 3] == 5);
}

START_TEST(an_early_part_is_copied)
{
    part_before_chain(20);
    ck_assert_uint_eq(plan->step_count, 1 + 20 + 1);
}
END_TEST

START_TEST(a_part_is_computed_in_the_result_some_steps_before)
{
    part_before_chain(8);
    ck_assert_uint_eq(plan->step_count, 1 + 8);
}
END_TEST

/* p lives between the parts a and b of y, which are computed where y is: y has its memory from a on. */
START_TEST(a_result_of_concat_has_its_memory_from_its_first_operand_on)
{
    float_input("x");
    add("", "Neg", (const char *[]){"x", NULL}, "a", 0);
    add("", "Abs", (const char *[]){"x", NULL}, "p", 0);
    add("", "ReduceMax", (const char *[]){"p", NULL}, "most", 0);
    add("", "Neg", (const char *[]){"x", NULL}, "b", 0);
    dq_node *concat = add("", "Concat", (const char *[]){"a", "b", NULL}, "y", 1);
    concat->attrs[0] = (dq_attr){.name = "axis", .kind = DQ_ATTR_INT, .u.i = 0};
    output("y");
    output("most");
    check_program();
    const float *y = run_on_row();
    ck_assert_uint_eq(plan->step_count, 4); /* no copy */
    for (int i = 0; i < 32; i++)
        ck_assert(y[i] == (float)-(i % 16 + 1));
    ck_assert(*(const float *)dq_plan_output(plan, g->outputs[1])->data == 16);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("alias", set_up, tear_down);
    add_test(&tests, views_need_no_step_and_outputs_are_no_ones_input);
    add_test(&tests, a_chain_is_computed_in_place);
    add_test(&tests, a_value_that_is_read_later_keeps_its_buffer);
    add_loop_test(&tests, a_quantized_sum_is_computed_in_an_operand, 0, 2);
    add_test(&tests, a_sum_with_a_part_of_itself_has_its_own_buffer);
    add_test(&tests, outputs_of_split_need_no_step);
    add_test(&tests, a_small_part_does_not_keep_its_source);
    add_test(&tests, a_small_part_for_soon_is_a_view);
    add_test(&tests, parts_of_inputs_are_copied_for_the_caller);
    add_test(&tests, operands_of_concat_are_computed_in_its_result);
    add_test(&tests, a_part_that_is_read_later_keeps_its_bytes);
    add_test(&tests, a_whole_keeps_its_bytes_while_parts_are_read);
    add_test(&tests, results_of_concat_are_operands_of_another);
    add_test(&tests, operands_that_cannot_be_computed_in_the_result_are_copied);
    add_test(&tests, parts_of_parts_are_copied);
    add_test(&tests, an_early_part_is_copied);
    add_test(&tests, a_part_is_computed_in_the_result_some_steps_before);
    add_test(&tests, a_result_of_concat_has_its_memory_from_its_first_operand_on);
    return test_program_run(&tests);
}
