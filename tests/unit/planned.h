/* SPDX-License-Identifier: Apache-2.0 */
/* What graphs built in code are run on: an empty main graph, and all that comes of it, anew in each test. */
#ifndef DQ_TESTS_PLANNED_H
#define DQ_TESTS_PLANNED_H

#include "exec/exec.h"

#include <check.h>

static dq_ir *ir;
static dq_graph *g;
static dq_schemas *schemas;
static dq_program *program;
static dq_kernels kernels;
static dq_exec exec;
static dq_plan *plan;
static dq_error err;

static void begin(const dq_limits *limits)
{
    ck_assert_int_eq(dq_ir_create("m.onnx", limits, NULL, &ir, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_create(ir, "main", NULL, &g, &err), DQ_OK);
    ir->graph = g;
}

static void set_up(void)
{
    exec = (dq_exec){0};
    plan = NULL;
    program = NULL;
    dq_kernels_select(1, &kernels);
    ck_assert_int_eq(dq_schemas_create(&schemas, &err), DQ_OK);
    begin(NULL);
}

static void tear_down(void)
{
    dq_plan_free(plan);
    dq_exec_free(&exec);
    if (program)
        dq_program_free(program);
    else
        dq_ir_free(ir);
    dq_schemas_free(schemas);
}

/* A node of one result. `in` ends with NULL. */
static inline dq_node *add(const char *domain, const char *op, const char *const *in, const char *out,
                           uint32_t attr_count)
{
    uint32_t count = 0;
    while (in[count])
        count++;
    dq_node *n = NULL;
    ck_assert_int_eq(dq_graph_add_node(g, count, 1, attr_count, &n, &err), DQ_OK);
    n->domain = domain;
    n->op_type = op;
    n->opset = *domain ? 1 : 21;
    for (uint32_t i = 0; i < count; i++)
        n->in_names[i] = in[i];
    n->out_names[0] = out;
    return n;
}

#endif
