/* SPDX-License-Identifier: Apache-2.0 */
/* Small graphs of float operators for tests of plans, built in planned.h's main graph. */
#ifndef DQ_TESTS_PLAN_GRAPHS_H
#define DQ_TESTS_PLAN_GRAPHS_H

#include "planned.h"

static inline void node(const char *op, const char *in, const char *out)
{
    dq_node *n = NULL;
    ck_assert_int_eq(dq_graph_add_node(g, 1, 1, 0, &n, &err), DQ_OK);
    n->op_type = op;
    n->opset = 21;
    n->in_names[0] = in;
    n->out_names[0] = out;
}

static inline void split(const char *in, const char *const *out, uint32_t count)
{
    dq_node *n = NULL;
    ck_assert_int_eq(dq_graph_add_node(g, 1, count, 0, &n, &err), DQ_OK);
    n->op_type = "Split";
    n->opset = 13;
    n->in_names[0] = in;
    for (uint32_t i = 0; i < count; i++)
        n->out_names[i] = out[i];
}

static inline void float_input(const char *name)
{
    dq_type type = {.dtype = DQ_FLOAT};
    ck_assert_int_eq(dq_graph_add_input(g, name, &type, &err), DQ_OK);
}

static inline void check_program(void)
{
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_OK);
    ck_assert_int_eq(dq_program_create(ir, schemas, NULL, &program, &err), DQ_OK);
}

static inline dq_status make_plan(const dq_binding *given, uint32_t binding_count)
{
    dq_plan_request request = {.graph = g,
                               .bindings = given,
                               .binding_count = binding_count,
                               .requested = (const dq_value *const *)g->outputs,
                               .requested_count = g->output_count,
                               .kernels = &kernels};
    dq_plan_free(plan);
    plan = NULL;
    return dq_plan_create(program, &request, &plan, &err);
}

/* Plans and runs g for x = 1 … 16; what its first output has. */
static inline const float *run_on_row(void)
{
    static float row[16];
    static dq_tensor x = {.data = row};
    for (int i = 0; i < 16; i++)
        row[i] = (float)(i + 1);
    ck_assert_int_eq(dq_tensor_set_shape(&x, DQ_FLOAT, 1, (int64_t[]){16}, 0, DQ_BAD_INPUT, &err), DQ_OK);
    const dq_binding given = {.value = g->inputs[0], .tensor = &x};
    ck_assert_int_eq(make_plan(&given, 1), DQ_OK);
    ck_assert_int_eq(dq_exec_run(&exec, plan, &given, 1, &err), DQ_OK);
    return dq_plan_output(plan, g->outputs[0])->data;
}

static inline void concat(const char *const *in, uint32_t count, const char *out)
{
    dq_node *n = NULL;
    ck_assert_int_eq(dq_graph_add_node(g, count, 1, 1, &n, &err), DQ_OK);
    n->op_type = "Concat";
    n->opset = 13;
    for (uint32_t i = 0; i < count; i++)
        n->in_names[i] = in[i];
    n->out_names[0] = out;
    n->attrs[0] = (dq_attr){.name = "axis", .kind = DQ_ATTR_INT, .u.i = 0};
}

/* Of x = 1 … 16: a = -1 … -16, b = 1 … 16. */
static inline void two_parts(void)
{
    float_input("x");
    node("Neg", "x", "a");
    node("Abs", "x", "b");
}

static inline void output(const char *name)
{
    ck_assert_int_eq(dq_graph_add_output(g, name, NULL, &err), DQ_OK);
}

/* 16 numbers, the first of which is `first`, the others in steps of `first`. */
static inline bool counts(const float *y, float first)
{
    for (int i = 0; i < 16; i++)
        if (y[i] != (float)(i + 1) * first)
            return false;
    return true;
}

#endif
