/* SPDX-License-Identifier: Apache-2.0 */
/* Other shapes for the same plan: dq_plan_reshape gives what a plan made from nothing is, and dynamic steps
 * are prepared for the shapes of each run. */
#include "planned.h"
#include "support/random.h"
#include "support/test_program.h"

#include <string.h>

enum { WIDTH = 4096, MAX = 6, ROUNDS = 150, SLICES = 16, PICTURE = 1 << 17 };

static float numbers[2][MAX * WIDTH];
static dq_tensor inputs[2];

static dq_graph *to; /* where nodes go */

static dq_node *node(const char *op, uint32_t in_count, const char *const *in, uint32_t out_count,
                     const char *const *out, const char *axis)
{
    dq_node *n = NULL;
    ck_assert_int_eq(dq_graph_add_node(to, in_count, out_count, axis ? 1 : 0, &n, &err), DQ_OK);
    n->op_type = op;
    n->opset = 13;
    memcpy(n->in_names, in, in_count * sizeof *in);
    memcpy(n->out_names, out, out_count * sizeof *out);
    if (axis)
        n->attrs[0] = (dq_attr){.name = axis, .kind = DQ_ATTR_INT};
    return n;
}

static void one(const char *op, const char *in, const char *out)
{
    node(op, 1, &in, 1, &out, NULL);
}

static void two(const char *op, const char *a, const char *b, const char *out, const char *axis)
{
    node(op, 2, (const char *[]){a, b}, 1, &out, axis);
}

/* Shapes that are computed, what depends on one input alone, views, stretches, joined values; `late`: also
 * what only a run can tell. */
static void build(bool dynamic)
{
    static const dq_type type = {.dtype = DQ_FLOAT};
    to = g;
    ck_assert_int_eq(dq_graph_add_input(g, "a", &type, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_input(g, "b", &type, &err), DQ_OK);
    one("Neg", "a", "a1");
    one("Abs", "a1", "a2");
    one("Neg", "b", "b1");
    two("Concat", "a2", "b1", "c", "axis");
    one("Neg", "c", "d");
    one("Shape", "b", "sb");
    one("ConstantOfShape", "sb", "zeros");
    two("Add", "b", "zeros", "b2", NULL);
    one("Shape", "c", "sc");
    one("Identity", "sc", "sd");
    two("Reshape", "d", "sd", "e", NULL);
    node("Split", 1, (const char *[]){"e"}, 2, (const char *[]){"e1", "e2"}, "axis");
    one("Abs", "e1", "y0");
    one("Identity", "e2", "y1");
    one("Identity", "a", "y2");
    one("Neg", "b2", "y3");
    if (dynamic) {
        one("NonZero", "a", "n");
        one("Shape", "n", "y4");
    }
    const char *outputs[] = {"y0", "y1", "y2", "y3", dynamic ? "y4" : "sd"};
    for (size_t i = 0; i < 5; i++)
        ck_assert_int_eq(dq_graph_add_output(g, outputs[i], NULL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_OK);
    ck_assert_int_eq(dq_program_create(ir, schemas, NULL, &program, &err), DQ_OK);
}

static dq_plan_request request_of(const dq_binding *given)
{
    return (dq_plan_request){.graph = g,
                             .bindings = given,
                             .binding_count = 2,
                             .requested = (const dq_value *const *)g->outputs,
                             .requested_count = g->output_count,
                             .kernels = &kernels,
                             .by_batch_tiles = true};
}

/* Plans from nothing where there is none. */
static dq_status make(const dq_binding *given, dq_plan **out)
{
    const dq_plan_request request = request_of(given);
    return *out ? dq_plan_reshape(out, &request, &err) : dq_plan_create(program, &request, out, &err);
}

static void shape(dq_tensor *t, float *data, int64_t rows, int64_t columns)
{
    ck_assert_int_eq(dq_tensor_set_shape(t, DQ_FLOAT, 2, (int64_t[]){rows, columns}, 0, DQ_BAD_INPUT, &err),
                     DQ_OK);
    t->data = data;
}

static void check_same_plan(const dq_plan *again, const dq_plan *fresh)
{
    ck_assert_uint_eq(again->buffer_size, fresh->buffer_size);
    ck_assert_uint_eq(again->step_count, fresh->step_count);
    ck_assert_uint_eq(again->copy_count, fresh->copy_count);
    ck_assert_uint_eq(again->caller_slot_count, fresh->caller_slot_count);
    ck_assert_uint_eq(again->output_binding_count, fresh->output_binding_count);
    for (uint32_t i = 0; i < fresh->output_binding_count; i++) {
        ck_assert_uint_eq(again->output_bindings[i].first, fresh->output_bindings[i].first);
        ck_assert_uint_eq(again->output_bindings[i].slots, fresh->output_bindings[i].slots);
        ck_assert_uint_eq(again->output_bindings[i].offset, fresh->output_bindings[i].offset);
    }
    ck_assert_int_eq(!again->tiling, !fresh->tiling);
    for (uint32_t i = 0; i < fresh->step_count; i++) {
        const dq_step *x = again->steps[i], *y = fresh->steps[i];
        ck_assert_ptr_eq(x->node, y->node);
        ck_assert_int_eq(x->dynamic, y->dynamic);
        ck_assert(x->dynamic || x->scratch_offset == y->scratch_offset);
        ck_assert_uint_eq(x->call.constant_inputs, y->call.constant_inputs);
    }
    for (uint32_t i = 0; i < fresh->slot_count; i++) {
        const dq_slot *x = &again->slots[i], *y = &fresh->slots[i];
        ck_assert_int_eq(x->where, y->where);
        ck_assert_int_eq(x->shaped, y->shaped);
        ck_assert_int_eq(x->fixed, y->fixed);
        ck_assert_int_eq(x->persistent, y->persistent);
        ck_assert_uint_eq(x->touched, y->touched);
        ck_assert_uint_eq(x->read_from, y->read_from);
        ck_assert_uint_eq(x->next, y->next);
        if (y->where == DQ_AT_BUFFER || y->where == DQ_AT_INPUT) {
            ck_assert_uint_eq(x->root, y->root);
            ck_assert_uint_eq(x->shift, y->shift);
            ck_assert_uint_eq(x->offset, y->offset);
        }
        if (y->shaped) {
            ck_assert_int_eq(x->t.dtype, y->t.dtype);
            ck_assert_uint_eq(x->t.size, y->t.size);
            ck_assert(dq_tensor_same_shape(&x->t, &y->t));
        }
    }
}

static void check_same_outputs(const dq_plan *again, const dq_plan *fresh)
{
    for (uint32_t i = 0; i < g->output_count; i++) {
        const dq_tensor *x = dq_plan_output(again, g->outputs[i]), *y = dq_plan_output(fresh, g->outputs[i]);
        ck_assert(dq_tensor_same_shape(x, y));
        ck_assert_uint_eq(x->size, y->size);
        ck_assert(x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
    }
}

START_TEST(a_plan_made_again_is_that_made_from_nothing)
{
    uint64_t state = 1;
    uint32_t made = 0, refused = 0;
    dq_exec alone = {0};
    build(_i);
    for (int i = 0; i < 2 * MAX * WIDTH; i++)
        numbers[i % 2][i / 2] = (float)(i % 3 - 1);
    for (int round = 0; round < ROUNDS; round++) {
        dq_plan *fresh = NULL;
        dq_binding given[2];
        for (int i = 0; i < 2; i++) {
            const uint64_t random = random_bits(&state);
            /* e is split in two, so that its rows must be even; half of the rounds one input stays */
            if (round == 0 || i != (int)(random >> 28 & 1))
                shape(&inputs[i], numbers[i], (int64_t)(random >> 24 & 6), random >> 16 & 3 ? WIDTH : 5);
            given[i] = (dq_binding){.value = g->inputs[i], .tensor = &inputs[i]};
        }
        const dq_status status = make(given, &fresh);
        made += plan && status == DQ_OK;
        ck_assert_int_eq(make(given, &plan), status);
        if (status != DQ_OK) { /* widths differ */
            ck_assert_ptr_null(plan);
            refused++;
            continue;
        }
        check_same_plan(plan, fresh);
        ck_assert_int_eq(dq_exec_run(&exec, plan, given, 2, &err), DQ_OK);
        ck_assert_int_eq(dq_exec_run(&alone, fresh, given, 2, &err), DQ_OK);
        check_same_outputs(plan, fresh);
        dq_plan_free(fresh);
    }
    ck_assert_uint_gt(made, ROUNDS / 4);
    ck_assert_uint_gt(refused, 0);
    dq_exec_free(&alone);
}
END_TEST

/* Few slices run at once, many some at a time: to and fro. */
START_TEST(slices_come_and_go)
{
    static const dq_type type = {.dtype = DQ_FLOAT};
    static float pictures[SLICES * PICTURE], others[1];
    static const char *const y = "y0";
    dq_exec alone = {0};
    to = g;
    ck_assert_int_eq(dq_graph_add_input(g, "a", &type, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_input(g, "b", &type, &err), DQ_OK);
    one("Abs", "a", "a1");
    one("Softmax", "a1", "a2");
    one("Neg", "a2", "a3");
    one("Softmax", "a3", "a4");
    two("Add", "a4", "b", y, NULL);
    ck_assert_int_eq(dq_graph_add_output(g, y, NULL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_OK);
    ck_assert_int_eq(dq_program_create(ir, schemas, NULL, &program, &err), DQ_OK);
    for (int i = 0; i < SLICES * PICTURE; i++)
        pictures[i] = (float)(i % 7 - 3);
    for (int round = 0; round < 8; round++) {
        static const int64_t counts[8] = {SLICES, SLICES / 2, 1, SLICES, 1, 2, SLICES / 4, SLICES};
        dq_plan *fresh = NULL;
        shape(&inputs[0], pictures, counts[round], PICTURE);
        shape(&inputs[1], others, 1, 1);
        const dq_binding given[2] = {{.value = g->inputs[0], .tensor = &inputs[0]},
                                     {.value = g->inputs[1], .tensor = &inputs[1]}};
        ck_assert_int_eq(make(given, &fresh), DQ_OK);
        ck_assert_int_eq(make(given, &plan), DQ_OK);
        if (counts[round] == SLICES || counts[round] == 1)
            ck_assert_int_eq(plan->tiling != NULL, counts[round] == SLICES);
        check_same_plan(plan, fresh);
        ck_assert_int_eq(dq_exec_run(&exec, plan, given, 2, &err), DQ_OK);
        ck_assert_int_eq(dq_exec_run(&alone, fresh, given, 2, &err), DQ_OK);
        check_same_outputs(plan, fresh);
        dq_plan_free(fresh);
    }
    dq_exec_free(&alone);
}
END_TEST

static dq_graph *branch(const char *name)
{
    dq_graph *made = NULL;
    ck_assert_int_eq(dq_graph_create(ir, name, g, &made, &err), DQ_OK);
    return to = made;
}

/* c ? -(x + zeros of the shape that the graph around knows) : |x|, and that shape. */
static void build_branches(void)
{
    static const dq_type type = {.dtype = DQ_FLOAT}, truth = {.dtype = DQ_BOOL};
    ck_assert_int_eq(dq_graph_add_input(g, "x", &type, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_input(g, "c", &truth, &err), DQ_OK);
    to = g;
    one("Shape", "x", "s");
    dq_graph *then = branch("then");
    one("Identity", "s", "s1");
    one("ConstantOfShape", "s1", "zeros");
    two("Add", "x", "zeros", "sum", NULL);
    one("Neg", "sum", "y1");
    one("Identity", "s1", "t1");
    dq_graph *other = branch("else");
    one("Abs", "x", "y2");
    one("Identity", "s", "t2");
    const char *outputs[2][2] = {{"y1", "t1"}, {"y2", "t2"}}, *both[] = {"y", "t"}, *condition = "c";
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(dq_graph_add_output(then, outputs[0][i], NULL, &err), DQ_OK);
        ck_assert_int_eq(dq_graph_add_output(other, outputs[1][i], NULL, &err), DQ_OK);
        ck_assert_int_eq(dq_graph_add_output(g, both[i], NULL, &err), DQ_OK);
    }
    dq_node *n = NULL;
    ck_assert_int_eq(dq_graph_add_node(g, 1, 2, 2, &n, &err), DQ_OK);
    n->op_type = "If";
    n->opset = 13;
    n->in_names[0] = condition;
    memcpy(n->out_names, both, sizeof both);
    n->attrs[0] = (dq_attr){.name = "then_branch", .kind = DQ_ATTR_GRAPH, .u.graph = then};
    n->attrs[1] = (dq_attr){.name = "else_branch", .kind = DQ_ATTR_GRAPH, .u.graph = other};
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_OK);
    ck_assert_int_eq(dq_program_create(ir, schemas, NULL, &program, &err), DQ_OK);
}

START_TEST(inner_graphs_are_planned_again)
{
    uint64_t state = 7;
    build_branches();
    for (int i = 0; i < MAX * WIDTH; i++)
        numbers[0][i] = (float)(i % 5 + 1);
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t dims[2] = {random_below(&state, 4), 1 + random_below(&state, 4)};
        bool first = random_below(&state, 2);
        dq_tensor x = {.data = numbers[0]}, c = {.data = &first};
        ck_assert_int_eq(dq_tensor_set_shape(&x, DQ_FLOAT, 2, dims, 0, DQ_BAD_INPUT, &err), DQ_OK);
        ck_assert_int_eq(dq_tensor_set_shape(&c, DQ_BOOL, 0, NULL, 0, DQ_BAD_INPUT, &err), DQ_OK);
        const dq_binding given[2] = {{.value = g->inputs[0], .tensor = &x},
                                     {.value = g->inputs[1], .tensor = &c}};
        ck_assert_int_eq(make(given, &plan), DQ_OK);
        ck_assert_msg(dq_exec_run(&exec, plan, given, 2, &err) == DQ_OK, "%s", err.message);
        const dq_tensor *y = dq_plan_output(plan, g->outputs[0]), *t = dq_plan_output(plan, g->outputs[1]);
        ck_assert(dq_tensor_same_shape(y, &x));
        for (size_t i = 0; i < y->count; i++)
            ck_assert(((const float *)y->data)[i] == (first ? -numbers[0][i] : numbers[0][i]));
        ck_assert_mem_eq(t->data, dims, sizeof dims);
    }
}
END_TEST

/* What steps knew of earlier shapes goes: here, constants that grow. */
START_TEST(memory_of_plans_made_again_is_bounded)
{
    enum { LONG = 1 << 17, MORE = 1 << 12, MAX_HELD = 16 };
    build(false);
    for (int round = 0; round < ROUNDS; round++) {
        dq_binding given[2];
        for (int i = 0; i < 2; i++) {
            shape(&inputs[i], NULL, 2, LONG + round * MORE);
            given[i] = (dq_binding){.value = g->inputs[i], .tensor = &inputs[i]};
        }
        ck_assert_int_eq(make(given, &plan), DQ_OK);
        ck_assert_uint_le(plan->shaped.used, 4 * inputs[0].size);
        ck_assert_uint_le(plan->shaped.held, MAX_HELD * inputs[0].size);
    }
}
END_TEST

/* A Reshape to a shape that is an input, and steps after it, whose shapes depend on shapes only. */
static void build_dynamic(void)
{
    static const dq_type type = {.dtype = DQ_FLOAT}, integers = {.dtype = DQ_INT64};
    ck_assert_int_eq(dq_graph_add_input(g, "a", &type, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_input(g, "to", &integers, &err), DQ_OK);
    to = g;
    two("Reshape", "a", "to", "reshaped", NULL);
    one("Softmax", "reshaped", "y0");
    one("Transpose", "y0", "transposed");
    two("MatMul", "y0", "transposed", "y1", NULL);
    const char *outputs[] = {"y0", "y1"};
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(dq_graph_add_output(g, outputs[i], NULL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_OK);
    ck_assert_int_eq(dq_program_create(ir, schemas, NULL, &program, &err), DQ_OK);
}

/* One plan runs with shapes that change or stay, and with other values each time. A step whose shapes depend
 * on shapes only is prepared when they change, and only then. */
START_TEST(dynamic_steps_stay_prepared)
{
    enum { COUNT = 12 };
    static const int64_t shapes[][2] = {{2, 6}, {3, 4}, {6, 2}, {12, 1}};
    uint64_t state = 3;
    uint32_t stayed = 0, changed = 0;
    size_t last = 0;
    dq_exec alone = {0};
    build_dynamic();
    for (int round = 0; round < ROUNDS; round++) {
        const size_t now = (size_t)random_below(&state, 4);
        dq_plan *fresh = NULL;
        dq_tensor a, shape_of_a = {.data = (void *)(uintptr_t)shapes[now]};
        for (int i = 0; i < COUNT; i++)
            numbers[0][i] = (float)random_below(&state, 100) / 32;
        a = (dq_tensor){0};
        shape(&a, numbers[0], 1, COUNT);
        ck_assert_int_eq(dq_tensor_set_shape(&shape_of_a, DQ_INT64, 1, (int64_t[]){2}, 0, DQ_BAD_INPUT, &err),
                         DQ_OK);
        const dq_binding given[2] = {{.value = g->inputs[0], .tensor = &a},
                                     {.value = g->inputs[1], .tensor = &shape_of_a}};
        ck_assert_int_eq(make(given, &fresh), DQ_OK);
        if (!plan)
            ck_assert_int_eq(make(given, &plan), DQ_OK);
        ck_assert_int_eq(dq_exec_run(&exec, plan, given, 2, &err), DQ_OK);
        ck_assert_int_eq(dq_exec_run(&alone, fresh, given, 2, &err), DQ_OK);
        check_same_outputs(plan, fresh);
        for (uint32_t i = 0; i < plan->step_count; i++) {
            const dq_step *step = plan->steps[i];
            const bool reshapes = strcmp(step->node->op_type, "Reshape") == 0;
            ck_assert(step->dynamic && step->reads_values == reshapes && !step->prepared_for == reshapes);
            if (reshapes)
                continue;
            if (round > 0) /* the mark of the last round is there if nothing was prepared since */
                ck_assert_int_eq(step->prepared_for[0].mapped, now == last);
            step->prepared_for[0].mapped = true;
        }
        stayed += round > 0 && now == last;
        changed += now != last;
        last = now;
        dq_plan_free(fresh);
    }
    ck_assert_uint_gt(stayed, ROUNDS / 8);
    ck_assert_uint_gt(changed, ROUNDS / 8);
    dq_exec_free(&alone);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("plan_reshape", set_up, tear_down);
    add_loop_test(&tests, a_plan_made_again_is_that_made_from_nothing, 0, 2);
    add_test(&tests, slices_come_and_go);
    add_test(&tests, inner_graphs_are_planned_again);
    add_test(&tests, memory_of_plans_made_again_is_bounded);
    add_test(&tests, dynamic_steps_stay_prepared);
    return test_program_run(&tests);
}
