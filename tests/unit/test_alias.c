/* SPDX-License-Identifier: Apache-2.0 */
/* plan/alias.c and plan/allocate.c: values computed inside a Concat's result, and scratch that steps share.
 */
#include "threads_of.h"

#include "planned.h" /* whose variables the parameters above would shadow */
#include "support/suite.h"

static void output(const char *name)
{
    ck_assert_int_eq(dq_graph_add_output(g, name, NULL, &err), DQ_OK);
}

/* Plans for an input x of these dimensions. */
static void plan_for(dq_tensor *x, size_t rank, const int64_t *dims, dq_threads *threads)
{
    ck_assert_int_eq(dq_tensor_set_shape(x, DQ_FLOAT, rank, dims, 0, DQ_BAD_INPUT, &err), DQ_OK);
    const dq_binding given = {.value = g->inputs[0], .tensor = x};
    const dq_plan_request request = {.graph = g,
                                     .bindings = &given,
                                     .binding_count = 1,
                                     .requested = (const dq_value *const *)g->outputs,
                                     .requested_count = g->output_count,
                                     .kernels = &kernels,
                                     .threads = threads};
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_OK);
    ck_assert_int_eq(dq_program_create(ir, schemas, NULL, &program, &err), DQ_OK);
    ck_assert_int_eq(dq_plan_create(program, &request, &plan, &err), DQ_OK);
}

static void float_input(void)
{
    dq_type type = {.dtype = DQ_FLOAT};
    ck_assert_int_eq(dq_graph_add_input(g, "x", &type, &err), DQ_OK);
}

/* p lives between the parts a and b of y, which are computed where y is: y has its memory from a on. */
START_TEST(a_whole_has_its_memory_from_its_first_part_on)
{
    float row[16];
    dq_tensor x = {.data = row};
    for (int i = 0; i < 16; i++)
        row[i] = (float)(i + 1);
    float_input();
    add("", "Neg", (const char *[]){"x", NULL}, "a", 0);
    add("", "Abs", (const char *[]){"x", NULL}, "p", 0);
    add("", "ReduceMax", (const char *[]){"p", NULL}, "most", 0);
    add("", "Neg", (const char *[]){"x", NULL}, "b", 0);
    dq_node *concat = add("", "Concat", (const char *[]){"a", "b", NULL}, "y", 1);
    concat->attrs[0] = (dq_attr){.name = "axis", .kind = DQ_ATTR_INT, .u.i = 0};
    output("y");
    output("most");
    plan_for(&x, 1, (int64_t[]){16}, NULL);
    const dq_binding given = {.value = g->inputs[0], .tensor = &x};
    ck_assert_int_eq(dq_exec_run(&exec, plan, &given, 1, &err), DQ_OK);
    ck_assert_uint_eq(plan->step_count, 4); /* no copy */
    const float *y = dq_plan_output(plan, g->outputs[0])->data;
    for (int i = 0; i < 32; i++)
        ck_assert(y[i] == (float)-(i % 16 + 1));
    ck_assert(*(const float *)dq_plan_output(plan, g->outputs[1])->data == 16);
}
END_TEST

/* A worker's scratch stands in the same place in all steps: it is as large as the step with the most wants.
 */
START_TEST(workers_scratch_is_that_of_the_largest_step)
{
    static const int64_t window[] = {3, 3};
    static float image[64 * 64];
    dq_tensor x = {.data = image};
    dq_threads *threads = NULL;
    ck_assert_int_eq(threads_of(2, &threads, &err), DQ_OK);
    float_input();
    dq_node *pool = add("", "MaxPool", (const char *[]){"x", NULL}, "y", 1);
    pool->attrs[0] = (dq_attr){.name = "kernel_shape", .kind = DQ_ATTR_INTS, .count = 2, .u.ints = window};
    add("", "Neg", (const char *[]){"x", NULL}, "z", 0);
    output("y");
    output("z");
    plan_for(&x, 4, (int64_t[]){1, 1, 64, 64}, threads);
    ck_assert_uint_eq(plan->step_count, 2);
    ck_assert_uint_ge(plan->steps[0]->call.worker_scratch_size, 64 * sizeof(float)); /* a row of x */
    dq_plan_free(plan);
    plan = NULL;
    dq_threads_free(threads);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("alias");
    test_group tests = {.suite = suite};
    tests.setup = set_up;
    tests.teardown = tear_down;
    add_test(&tests, a_whole_has_its_memory_from_its_first_part_on);
    add_test(&tests, workers_scratch_is_that_of_the_largest_step);
    return run_suite(suite);
}
