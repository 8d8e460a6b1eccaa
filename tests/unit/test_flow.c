/* Graphs inside nodes, and sequences: src/exec/flow.c, inner.c, scan.c and the plans under them, over graphs
 * built in code. */
#include "exec/inner.h"
#include "planned.h"
#include "suite.h"
#include "tensor/items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPSET = 21 };

/* ---- Building ----------------------------------------------------------------------------------------- */

/* "a,b" into an array of names; "-" is one that is left out. */
static uint32_t names(const char *list, const char **out)
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

static dq_node *node(dq_graph *in, const char *name, const char *op, const char *ins, const char *outs,
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

static dq_graph *inner(dq_graph *outer, const char *name)
{
    dq_graph *made = NULL;
    ck_assert_int_eq(dq_graph_create(ir, name, outer, &made, &err), DQ_OK);
    return made;
}

static void graph_attr(dq_node *n, uint32_t i, const char *name, dq_graph *graph)
{
    n->attrs[i] = (dq_attr){.name = name, .kind = DQ_ATTR_GRAPH, .u.graph = graph};
}

static void int_attr(dq_node *n, uint32_t i, const char *name, int64_t value)
{
    n->attrs[i] = (dq_attr){.name = name, .kind = DQ_ATTR_INT, .u.i = value};
}

static void ints_attr(dq_node *n, uint32_t i, const char *name, const int64_t *values, size_t count)
{
    n->attrs[i] = (dq_attr){.name = name, .kind = DQ_ATTR_INTS, .count = count, .u.ints = values};
}

static void input(dq_graph *to, const char *name, dq_dtype dtype)
{
    dq_type type = {.dtype = dtype};
    ck_assert_int_eq(dq_graph_add_input(to, name, &type, &err), DQ_OK);
}

static void output(dq_graph *to, const char *name, dq_dtype dtype)
{
    dq_type type = {.dtype = dtype};
    ck_assert_int_eq(dq_graph_add_output(to, name, dtype ? &type : NULL, &err), DQ_OK);
}

static void constant(dq_graph *to, const char *name, dq_dtype dtype, size_t rank, const int64_t *dims,
                     const void *data)
{
    dq_tensor *t = NULL;
    ck_assert_int_eq(dq_tensor_new(&ir->arena, dtype, rank, dims, 0, &t, &err), DQ_OK);
    memcpy(t->data, data, t->size);
    ck_assert_int_eq(dq_graph_add_initializer(to, name, t, &err), DQ_OK);
}

/* The inputs that every body of a Loop has. */
static dq_graph *loop_body(dq_graph *outer)
{
    dq_graph *body = inner(outer, "body");
    input(body, "i", DQ_INT64);
    input(body, "go_in", DQ_BOOL);
    return body;
}

/* ---- Running ------------------------------------------------------------------------------------------ */

static void check_program(void)
{
    ck_assert_msg(dq_graph_link(g, &err) == DQ_OK, "%s", err.message);
    ck_assert_msg(dq_program_create(ir, schemas, &program, &err) == DQ_OK, "%s", err.message);
    ck_assert_msg(program->fault_count == 0, "%s", program->fault_count ? program->faults[0].message : "");
}

static dq_status run(const dq_tensor *inputs)
{
    dq_given given[4];
    for (uint32_t i = 0; i < g->input_count; i++)
        given[i] = (dq_given){.value = g->inputs[i], .tensor = &inputs[i]};
    dq_plan_request request = {.graph = g,
                               .given = given,
                               .given_count = g->input_count,
                               .wanted = (const dq_value *const *)g->outputs,
                               .wanted_count = g->output_count,
                               .kernels = &kernels};
    if (!plan)
        DQ_TRY(dq_plan_create(program, &request, &plan, &err));
    return dq_exec_run(&exec, plan, given, g->input_count, &err);
}

static void run_well(const dq_tensor *inputs)
{
    dq_status status = run(inputs);
    ck_assert_msg(status == DQ_OK, "%s", err.message);
}

static dq_tensor tensor(dq_dtype dtype, size_t rank, const int64_t *dims, const void *data)
{
    dq_tensor t = {.data = (void *)(uintptr_t)data};
    ck_assert_int_eq(dq_tensor_set_shape(&t, dtype, rank, dims, 0, DQ_BAD_INPUT, &err), DQ_OK);
    return t;
}

static dq_tensor scalar(dq_dtype dtype, const void *data)
{
    return tensor(dtype, 0, NULL, data);
}

static void wanted_floats(const dq_tensor *t, size_t rank, const int64_t *dims, const float *values)
{
    ck_assert_int_eq(t->kind, DQ_KIND_TENSOR);
    ck_assert_int_eq(t->dtype, DQ_FLOAT);
    ck_assert_uint_eq(t->rank, rank);
    for (size_t d = 0; d < rank; d++)
        ck_assert_int_eq(t->dims[d], dims[d]);
    for (size_t i = 0; i < t->count; i++)
        ck_assert_double_eq((double)dq_data(t, float)[i], (double)values[i]);
}

static const dq_tensor *out(uint32_t i)
{
    return dq_plan_output(plan, g->outputs[i]);
}

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
    static const char wanted[] = "m.onnx: node 'choice' (If-21): node 'bend' (Reshape-21): ";
    ck_assert_msg(strncmp(err.message, wanted, sizeof wanted - 1) == 0, "%s", err.message);
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

START_TEST(what_an_endless_loop_collects_obeys_the_limit)
{
    static const bool yes = true;
    const dq_limits limits = {.session_bytes = 1 << 20};
    dq_ir_free(ir);
    begin(&limits);
    input(g, "x", DQ_FLOAT);
    constant(g, "yes", DQ_BOOL, 0, NULL, &yes);
    node(g, "", "SequenceConstruct", "x", "s", 0);
    dq_graph *body = loop_body(g);
    dq_type seq = {.kind = DQ_KIND_SEQUENCE, .element = &(dq_type){.dtype = DQ_FLOAT}};
    ck_assert_int_eq(dq_graph_add_input(body, "list", &seq, &err), DQ_OK);
    node(body, "grow", "SequenceInsert", "list,x", "longer", 0);
    output(body, "yes", DQ_BOOL);
    output(body, "longer", DQ_UNDEFINED);
    dq_node *loop = node(g, "forever", "Loop", "-,yes,s", "y", 1);
    graph_attr(loop, 0, "body", body);
    output(g, "y", DQ_UNDEFINED);
    check_program();
    const float x[64] = {0};
    dq_tensor inputs[1] = {tensor(DQ_FLOAT, 1, (int64_t[]){64}, x)};
    ck_assert_int_eq(run(inputs), DQ_OUT_OF_MEMORY);
    ck_assert_ptr_nonnull(strstr(err.message, "node 'forever' (Loop-21): node 'grow' (SequenceInsert-11): "
                                              "the strings and sequences of the run take "));
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

/* ---- Sequences ---------------------------------------------------------------------------------------- */

START_TEST(sequences_outlive_what_they_were_made_of)
{
    const float one[1] = {1}, two[2] = {2, 3};
    dq_type seq = {.kind = DQ_KIND_SEQUENCE, .element = &(dq_type){.dtype = DQ_FLOAT}};
    ck_assert_int_eq(dq_graph_add_input(g, "list", &seq, &err), DQ_OK);
    input(g, "x", DQ_FLOAT);
    node(g, "", "Neg", "x", "a", 0);
    node(g, "", "SequenceInsert", "list,a", "longer", 0);
    node(g, "", "Abs", "a", "b", 0);
    node(g, "", "SequenceLength", "longer", "n", 0);
    output(g, "longer", DQ_UNDEFINED);
    output(g, "list", DQ_UNDEFINED);
    output(g, "b", DQ_UNDEFINED);
    output(g, "n", DQ_UNDEFINED);
    check_program();
    float *first = malloc(sizeof *first);
    ck_assert_ptr_nonnull(first);
    *first = *one;
    dq_tensor item = tensor(DQ_FLOAT, 1, (int64_t[]){1}, first);
    const dq_tensor *items[1] = {&item};
    dq_tensor inputs[2] = {{.kind = DQ_KIND_SEQUENCE, .dtype = DQ_FLOAT, .count = 1, .data = (void *)items},
                           tensor(DQ_FLOAT, 1, (int64_t[]){2}, two)};
    run_well(inputs);
    free(first); /* outputs do not lie in inputs */
    ck_assert_uint_eq(out(0)->count, 2);
    wanted_floats(dq_items(out(0))[0], 1, (int64_t[]){1}, one);
    wanted_floats(dq_items(out(0))[1], 1, (int64_t[]){2}, (float[]){-2, -3});
    ck_assert_uint_eq(out(1)->count, 1);
    wanted_floats(dq_items(out(1))[0], 1, (int64_t[]){1}, one);
    ck_assert_int_eq(*dq_data(out(3), int64_t), 2);
}
END_TEST

START_TEST(positions_outside_a_sequence_are_refused)
{
    input(g, "x", DQ_FLOAT);
    input(g, "at", DQ_INT64);
    node(g, "", "SequenceConstruct", "x,x", "s", 0);
    node(g, "take", "SequenceAt", "s,at", "y", 0);
    output(g, "y", DQ_UNDEFINED);
    check_program();
    const float x = 1;
    for (int64_t at = -3; at <= 2; at++) {
        dq_tensor inputs[2] = {scalar(DQ_FLOAT, &x), scalar(DQ_INT64, &at)};
        dq_status status = run(inputs);
        ck_assert_int_eq(status, at < -2 || at > 1 ? DQ_BAD_MODEL : DQ_OK);
        if (at == 2)
            ck_assert_str_eq(err.message, "m.onnx: node 'take' (SequenceAt-11): input 1 'position' is 2, "
                                          "outside a sequence of 2 items");
    }
}
END_TEST

START_TEST(an_optional_is_empty_or_holds_a_value)
{
    static const bool yes = true;
    input(g, "x", DQ_FLOAT);
    constant(g, "yes", DQ_BOOL, 0, NULL, &yes);
    dq_node *none = node(g, "", "Optional", "", "none", 1);
    none->attrs[0] =
        (dq_attr){.name = "type", .kind = DQ_ATTR_TYPE_PROTO, .u.type = &(dq_type){.dtype = DQ_FLOAT}};
    node(g, "", "Optional", "x", "some", 0);
    node(g, "", "OptionalHasElement", "none", "has_none", 0);
    node(g, "", "OptionalHasElement", "some", "has_some", 0);
    node(g, "", "OptionalGetElement", "some", "y", 0);
    output(g, "has_none", DQ_UNDEFINED);
    output(g, "has_some", DQ_UNDEFINED);
    output(g, "y", DQ_UNDEFINED);
    check_program();
    const float x[2] = {4, 5};
    dq_tensor inputs[1] = {tensor(DQ_FLOAT, 1, (int64_t[]){2}, x)};
    run_well(inputs);
    ck_assert_int_eq(dq_tensor_get_int(out(0), 0), 0);
    ck_assert_int_eq(dq_tensor_get_int(out(1), 0), 1);
    wanted_floats(out(2), 1, (int64_t[]){2}, x);
}
END_TEST

/* ---- The public API ----------------------------------------------------------------------------------- */

START_TEST(lists_own_their_items)
{
    dq_tensor *items[2] = {NULL, NULL}, *wrong = NULL, *list = NULL, *optional = NULL;
    const int64_t dims[1] = {2};
    ck_assert_int_eq(dq_tensor_create(DQ_FLOAT, 1, dims, &items[0], &err), DQ_OK);
    ck_assert_int_eq(dq_tensor_create(DQ_FLOAT, 0, NULL, &items[1], &err), DQ_OK);
    ck_assert_int_eq(dq_tensor_create(DQ_INT8, 0, NULL, &wrong, &err), DQ_OK);
    dq_tensor *mixed[2] = {items[0], wrong};
    ck_assert_int_eq(dq_sequence_create(DQ_FLOAT, 2, mixed, &list, &err), DQ_INVALID_ARGUMENT);
    ck_assert_str_eq(err.message, "dq_sequence_create: item 1 is tensor(int8), wanted tensor(float)");
    ck_assert_int_eq(dq_sequence_create(DQ_FLOAT, 2, items, &list, &err), DQ_OK);
    ck_assert_int_eq(dq_optional_create(DQ_KIND_TENSOR, DQ_FLOAT, list, &optional, &err),
                     DQ_INVALID_ARGUMENT);
    ck_assert_int_eq(dq_optional_create(DQ_KIND_SEQUENCE, DQ_FLOAT, list, &optional, &err), DQ_OK);
    ck_assert_int_eq(dq_tensor_kind(optional), DQ_KIND_OPTIONAL);
    ck_assert_ptr_eq(dq_tensor_item(optional, 0), list);
    ck_assert_ptr_null(dq_tensor_item(optional, 1));
    ck_assert_ptr_null(dq_tensor_data(list));
    ck_assert_uint_eq(dq_tensor_size(list), 0);
    ck_assert_ptr_eq(dq_tensor_item(list, 1), items[1]);
    dq_tensor_free(optional); /* and all in it, as the leak checker sees */
    dq_tensor_free(wrong);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flow");
    TCase *flow = tcase_create("flow");
    tcase_add_checked_fixture(flow, set_up, tear_down);
    tcase_add_loop_test(flow, branches_read_values_of_the_graphs_around_them, 0, 2);
    tcase_add_test(flow, a_fault_inside_names_the_nodes_around_it);
    tcase_add_test(flow, a_loop_carries_values_and_stacks_others);
    tcase_add_test(flow, a_loop_ends_with_its_condition);
    tcase_add_test(flow, a_loop_takes_states_that_it_does_not_change_from_outside);
    tcase_add_test(flow, what_an_endless_loop_collects_obeys_the_limit);
    tcase_add_test(flow, a_scan_goes_along_any_axis_both_ways);
    tcase_add_test(flow, a_scan_takes_states_that_it_does_not_change_from_outside);
    tcase_add_test(flow, a_scan_moves_packed_elements);
    tcase_add_test(flow, sequences_outlive_what_they_were_made_of);
    tcase_add_test(flow, positions_outside_a_sequence_are_refused);
    tcase_add_test(flow, an_optional_is_empty_or_holds_a_value);
    suite_add_tcase(suite, flow);
    TCase *api = tcase_create("api");
    tcase_add_test(api, lists_own_their_items);
    suite_add_tcase(suite, api);
    return run_suite(suite);
}
