/* SPDX-License-Identifier: Apache-2.0 */
/* src/plan and src/exec over graphs built in code: memory from lifetimes, views, folding, re-planning. */
#include "plan/fold_constants.h"
#include "plan/memory_planner.h"
#include "planned.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Places ------------------------------------------------------------------------------------------- */

/* Pieces of random sizes and lives, at most `longest` steps each, hold no place twice at any time. */
static void check_places(size_t count, uint32_t steps, uint32_t longest, uint32_t seed)
{
    dq_interval *pieces = calloc(count, sizeof *pieces);
    size_t total = 0, sum = 0;
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t first = (seed >> 16) % steps;
        pieces[i] =
            (dq_interval){.size = seed >> 8 & 4095, .first = first, .last = first + (seed >> 20) % longest};
        sum += pieces[i].size + DQ_ALIGN;
    }
    ck_assert_int_eq(dq_assign_offsets(pieces, count, &total, &err), DQ_OK);
    ck_assert_uint_lt(total, sum / 2);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(pieces[i].offset % DQ_ALIGN, 0);
        ck_assert_uint_le(pieces[i].offset + pieces[i].size, total);
        for (size_t k = 0; k < i; k++) {
            bool together = pieces[i].first <= pieces[k].last && pieces[k].first <= pieces[i].last;
            bool disjoint = pieces[i].offset + pieces[i].size <= pieces[k].offset ||
                            pieces[k].offset + pieces[k].size <= pieces[i].offset;
            if (together && !disjoint && pieces[i].size && pieces[k].size)
                ck_abort_msg("pieces %zu and %zu overlap", k, i);
        }
    }
    free(pieces);
}

START_TEST(pieces_that_live_together_do_not_overlap)
{
    check_places(120, 64, 16, 1234u + (uint32_t)_i);
}
END_TEST

/* More than one search looks at. */
START_TEST(thousands_that_live_together_do_not_overlap)
{
    check_places(8000, 4000, 1000, 99);
    check_places(8000, 4000, 3, 98);
}
END_TEST

START_TEST(places_too_large_are_refused)
{
    size_t total;
    dq_interval pieces[] = {{.size = SIZE_MAX / 2 + 1, .last = 1}, {.size = SIZE_MAX / 2 + 1, .last = 1}};
    ck_assert_int_eq(dq_assign_offsets(pieces, 2, &total, &err), DQ_OUT_OF_MEMORY);
}
END_TEST

/* ---- Plans -------------------------------------------------------------------------------------------- */

static void node(const char *op, const char *in, const char *out)
{
    dq_node *n = NULL;
    ck_assert_int_eq(dq_graph_add_node(g, 1, 1, 0, &n, &err), DQ_OK);
    n->op_type = op;
    n->opset = 21;
    n->in_names[0] = in;
    n->out_names[0] = out;
}

static void split(const char *in, const char *const *out, uint32_t count)
{
    dq_node *n = NULL;
    ck_assert_int_eq(dq_graph_add_node(g, 1, count, 0, &n, &err), DQ_OK);
    n->op_type = "Split";
    n->opset = 13;
    n->in_names[0] = in;
    for (uint32_t i = 0; i < count; i++)
        n->out_names[i] = out[i];
}

static void float_input(const char *name)
{
    dq_type type = {.dtype = DQ_FLOAT};
    ck_assert_int_eq(dq_graph_add_input(g, name, &type, &err), DQ_OK);
}

static void check_program(void)
{
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_OK);
    ck_assert_int_eq(dq_program_create(ir, schemas, NULL, &program, &err), DQ_OK);
}

static dq_status make_plan(const dq_binding *bindings, uint32_t binding_count)
{
    dq_plan_request request = {.graph = g,
                               .bindings = bindings,
                               .binding_count = binding_count,
                               .requested = (const dq_value *const *)g->outputs,
                               .requested_count = g->output_count,
                               .kernels = &kernels};
    dq_plan_free(plan);
    plan = NULL;
    return dq_plan_create(program, &request, &plan, &err);
}

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
        const dq_binding bindings = {.value = g->inputs[0], .tensor = &x};
        ck_assert_int_eq(make_plan(&bindings, 1), DQ_OK);
        ck_assert_uint_eq(plan->step_count, 0);
        ck_assert_int_eq(dq_exec_run(&exec, plan, &bindings, 1, &err), DQ_OK);
        const dq_tensor *y = dq_plan_output(plan, g->outputs[0]);
        ck_assert_ptr_ne(y->data, data);
        ck_assert_uint_eq(y->count, (size_t)n * 3);
        ck_assert_mem_eq(y->data, data, y->size);
    }
}
END_TEST

/* Plans and runs g for x = 1 … 16; what its first output has. */
static const float *run_on_row(void)
{
    static float row[16];
    static dq_tensor x = {.data = row};
    for (int i = 0; i < 16; i++)
        row[i] = (float)(i + 1);
    ck_assert_int_eq(dq_tensor_set_shape(&x, DQ_FLOAT, 1, (int64_t[]){16}, 0, DQ_BAD_INPUT, &err), DQ_OK);
    const dq_binding bindings = {.value = g->inputs[0], .tensor = &x};
    ck_assert_int_eq(make_plan(&bindings, 1), DQ_OK);
    ck_assert_int_eq(dq_exec_run(&exec, plan, &bindings, 1, &err), DQ_OK);
    return dq_plan_output(plan, g->outputs[0])->data;
}

START_TEST(a_chain_is_computed_in_one_place)
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

START_TEST(what_is_read_later_keeps_its_place)
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
START_TEST(a_sum_of_codes_stands_in_an_operand)
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
START_TEST(a_sum_with_a_part_of_itself_has_its_own_place)
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

START_TEST(stretches_need_no_step)
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
static void part_behind_chain(int functions)
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
    const dq_binding bindings = {.value = g->inputs[0], .tensor = &x};
    ck_assert_int_eq(make_plan(&bindings, 1), DQ_OK);
    ck_assert_int_eq(dq_exec_run(&exec, plan, &bindings, 1, &err), DQ_OK);
    const float *y = dq_plan_output(plan, g->outputs[0])->data,
                *f = dq_plan_output(plan, g->outputs[1])->data;
    ck_assert(y[2] == 0 && y[3] == 5 && f[3] == 5);
}

START_TEST(a_small_part_does_not_keep_its_source)
{
    enum { ALL = sizeof(float) << 16 };
    part_behind_chain(12);
    ck_assert_uint_eq(plan->step_count, 1 + 1 + 12 + 1);
    ck_assert_uint_eq(plan->buffer_size, ALL + ALL / 16);
}
END_TEST

START_TEST(a_small_part_for_soon_is_a_view)
{
    enum { ALL = sizeof(float) << 16 };
    part_behind_chain(5);
    ck_assert_uint_eq(plan->step_count, 1 + 5 + 1);
    ck_assert_uint_ge(plan->buffer_size, 2 * ALL);
}
END_TEST

START_TEST(stretches_of_inputs_are_copied_for_the_caller)
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

static void concat(const char *const *in, uint32_t count, const char *out)
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
static void two_parts(void)
{
    float_input("x");
    node("Neg", "x", "a");
    node("Abs", "x", "b");
}

static void output(const char *name)
{
    ck_assert_int_eq(dq_graph_add_output(g, name, NULL, &err), DQ_OK);
}

/* 16 numbers, the first of which is `first`, the others in steps of `first`. */
static bool counts(const float *y, float first)
{
    for (int i = 0; i < 16; i++)
        if (y[i] != (float)(i + 1) * first)
            return false;
    return true;
}

START_TEST(what_is_joined_is_computed_in_its_place)
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

START_TEST(joined_values_are_parts_themselves)
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

START_TEST(what_cannot_be_computed_in_its_place_is_copied)
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
    const dq_binding bindings = {.value = g->inputs[0], .tensor = &x};
    ck_assert_int_eq(make_plan(&bindings, 1), DQ_OK);
    ck_assert_int_eq(dq_exec_run(&exec, plan, &bindings, 1, &err), DQ_OK);
    const float *y = dq_plan_output(plan, g->outputs[0])->data;
    ck_assert(y[2] == 0 && y[3] == -5 && y[(1 << 15) + 3] == 5);
}

START_TEST(an_early_part_is_copied)
{
    part_before_chain(20);
    ck_assert_uint_eq(plan->step_count, 1 + 20 + 1);
}
END_TEST

START_TEST(a_part_is_computed_in_its_place_some_steps_before)
{
    part_before_chain(8);
    ck_assert_uint_eq(plan->step_count, 1 + 8);
}
END_TEST

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
        static const char sentence[] =
            "m.onnx: node 0 (Cast-13): output 0 'output' is tensor(float8e5m2), expected ";
        ck_assert(opset > 13 || strncmp(err.message, sentence, sizeof sentence - 1) == 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan");
    test_group places = {.suite = suite}, plans = {.suite = suite};
    plans.setup = set_up;
    plans.teardown = tear_down;
    add_loop_test(&places, pieces_that_live_together_do_not_overlap, 0, 20);
    add_test(&places, thousands_that_live_together_do_not_overlap);
    add_test(&places, places_too_large_are_refused);
    add_test(&plans, views_need_no_step_and_outputs_are_no_ones_input);
    add_test(&plans, a_chain_is_computed_in_one_place);
    add_test(&plans, what_is_read_later_keeps_its_place);
    add_test(&plans, a_sum_with_a_part_of_itself_has_its_own_place);
    add_loop_test(&plans, a_sum_of_codes_stands_in_an_operand, 0, 2);
    add_test(&plans, stretches_need_no_step);
    add_test(&plans, a_small_part_does_not_keep_its_source);
    add_test(&plans, a_small_part_for_soon_is_a_view);
    add_test(&plans, stretches_of_inputs_are_copied_for_the_caller);
    add_test(&plans, what_is_joined_is_computed_in_its_place);
    add_test(&plans, a_part_that_is_read_later_keeps_its_bytes);
    add_test(&plans, a_whole_keeps_its_bytes_while_parts_are_read);
    add_test(&plans, joined_values_are_parts_themselves);
    add_test(&plans, what_cannot_be_computed_in_its_place_is_copied);
    add_test(&plans, parts_of_parts_are_copied);
    add_test(&plans, an_early_part_is_copied);
    add_test(&plans, a_part_is_computed_in_its_place_some_steps_before);
    add_test(&plans, constants_are_folded_once_for_all_plans);
    add_test(&plans, faults_are_kept_for_every_node);
    add_test(&plans, views_of_constants_are_no_copies);
    add_test(&plans, types_that_an_attribute_gives_are_held_against_the_schema);
    return run_suite(suite);
}
