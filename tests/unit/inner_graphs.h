/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs inside nodes, built in code and run: for the tests of control flow and of sequences. */
#ifndef DQ_TESTS_INNER_GRAPHS_H
#define DQ_TESTS_INNER_GRAPHS_H

#include "exec/inner.h"
#include "planned.h"

#include <stdlib.h>
#include <string.h>

enum { OPSET = 21 };

/* ---- Building ----------------------------------------------------------------------------------------- */

/* "a,b" into an array of names; "-" is one that is left out. */
static inline uint32_t names(const char *list, const char **out)
{
    uint32_t count = 0;
    while (*list) {
        size_t length = strcspn(list, ",");
        char *copy = dq_arena_string(&ir->arena, list, length);
        ck_assert_ptr_nonnull(copy);
        out[count++] = strcmp(copy, "-") == 0 ? "" : copy;
        list += length + (list[length] == ',');
    }
    return count;
}

static inline dq_node *node(dq_graph *in, const char *name, const char *op, const char *ins, const char *outs,
                            uint32_t attrs)
{
    const char *from[8], *to[8];
    uint32_t n = names(ins, from), m = names(outs, to);
    dq_node *made = NULL;
    ck_assert_int_eq(dq_graph_add_node(in, n, m, attrs, &made, &err), DQ_OK);
    made->name = name;
    made->op_type = op;
    made->opset = OPSET;
    for (uint32_t i = 0; i < n; i++)
        made->in_names[i] = from[i];
    for (uint32_t i = 0; i < m; i++)
        made->out_names[i] = to[i];
    return made;
}

static inline dq_graph *inner(dq_graph *outer, const char *name)
{
    dq_graph *made = NULL;
    ck_assert_int_eq(dq_graph_create(ir, name, outer, &made, &err), DQ_OK);
    return made;
}

static inline void graph_attr(dq_node *n, uint32_t i, const char *name, dq_graph *graph)
{
    n->attrs[i] = (dq_attr){.name = name, .kind = DQ_ATTR_GRAPH, .u.graph = graph};
}

static inline void int_attr(dq_node *n, uint32_t i, const char *name, int64_t value)
{
    n->attrs[i] = (dq_attr){.name = name, .kind = DQ_ATTR_INT, .u.i = value};
}

static inline void ints_attr(dq_node *n, uint32_t i, const char *name, const int64_t *values, size_t count)
{
    n->attrs[i] = (dq_attr){.name = name, .kind = DQ_ATTR_INTS, .count = count, .u.ints = values};
}

static inline void input(dq_graph *to, const char *name, dq_dtype dtype)
{
    dq_type type = {.dtype = dtype};
    ck_assert_int_eq(dq_graph_add_input(to, name, &type, &err), DQ_OK);
}

static inline void output(dq_graph *to, const char *name, dq_dtype dtype)
{
    dq_type type = {.dtype = dtype};
    ck_assert_int_eq(dq_graph_add_output(to, name, dtype ? &type : NULL, &err), DQ_OK);
}

static inline void constant(dq_graph *to, const char *name, dq_dtype dtype, size_t rank, const int64_t *dims,
                            const void *data)
{
    dq_tensor *t = NULL;
    ck_assert_int_eq(dq_tensor_new(&ir->arena, dtype, rank, dims, 0, &t, &err), DQ_OK);
    memcpy(t->data, data, t->size);
    ck_assert_int_eq(dq_graph_add_initializer(to, name, t, &err), DQ_OK);
}

/* The inputs that every body of a Loop has. */
static inline dq_graph *loop_body(dq_graph *outer)
{
    dq_graph *body = inner(outer, "body");
    input(body, "i", DQ_INT64);
    input(body, "go_in", DQ_BOOL);
    return body;
}

/* ---- Running ------------------------------------------------------------------------------------------ */

static inline void check_program(void)
{
    ck_assert_msg(dq_graph_link(g, &err) == DQ_OK, "%s", err.message);
    ck_assert_msg(dq_program_create(ir, schemas, NULL, &program, &err) == DQ_OK, "%s", err.message);
    ck_assert_msg(program->fault_count == 0, "%s", program->fault_count ? program->faults[0].message : "");
}

static inline dq_status run(const dq_tensor *inputs)
{
    dq_binding given[4];
    for (uint32_t i = 0; i < g->input_count; i++)
        given[i] = (dq_binding){.value = g->inputs[i], .tensor = &inputs[i]};
    dq_plan_request request = {.graph = g,
                               .bindings = given,
                               .binding_count = g->input_count,
                               .requested = (const dq_value *const *)g->outputs,
                               .requested_count = g->output_count,
                               .kernels = &kernels};
    if (!plan)
        DQ_TRY(dq_plan_create(program, &request, &plan, &err));
    return dq_exec_run(&exec, plan, given, g->input_count, &err);
}

static inline void run_well(const dq_tensor *inputs)
{
    dq_status status = run(inputs);
    ck_assert_msg(status == DQ_OK, "%s", err.message);
}

static inline dq_tensor tensor(dq_dtype dtype, size_t rank, const int64_t *dims, const void *data)
{
    dq_tensor t = {.data = (void *)(uintptr_t)data};
    ck_assert_int_eq(dq_tensor_set_shape(&t, dtype, rank, dims, 0, DQ_BAD_INPUT, &err), DQ_OK);
    return t;
}

static inline dq_tensor scalar(dq_dtype dtype, const void *data)
{
    return tensor(dtype, 0, NULL, data);
}

static inline void wanted_floats(const dq_tensor *t, size_t rank, const int64_t *dims, const float *values)
{
    ck_assert_int_eq(t->kind, DQ_KIND_TENSOR);
    ck_assert_int_eq(t->dtype, DQ_FLOAT);
    ck_assert_uint_eq(t->rank, rank);
    for (size_t d = 0; d < rank; d++)
        ck_assert_int_eq(t->dims[d], dims[d]);
    for (size_t i = 0; i < t->count; i++)
        ck_assert_double_eq((double)dq_data(t, float)[i], (double)values[i]);
}

static inline const dq_tensor *out(uint32_t i)
{
    return dq_plan_output(plan, g->outputs[i]);
}

#endif
