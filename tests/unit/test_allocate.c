/* SPDX-License-Identifier: Apache-2.0 */
/* src/plan/allocate.c: scratch that steps share. */
#include "support/threads_of.h"

#include "planned.h" /* whose variables the parameters above would shadow */
#include "support/test_program.h"

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

/* All steps share a worker's scratch: it is as large as the step with the largest scratch requires. */
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
    test_program tests = test_program_begin("allocate", set_up, tear_down);
    add_test(&tests, workers_scratch_is_that_of_the_largest_step);
    return test_program_run(&tests);
}
