/* SPDX-License-Identifier: Apache-2.0 */
/* src/tensor/items.c: lists that share memory, against plain arrays; and what loops make of them. */
#include "inner_graphs.h"
#include "support/random.h"
#include "support/test_program.h"
#include "tensor/items.h"

static dq_arena arena;

static void free_lists(void)
{
    dq_arena_free(&arena);
}

static dq_tensor empty(void)
{
    const dq_tensor **items;
    dq_tensor t;
    dq_items_describe(&t, DQ_KIND_SEQUENCE, DQ_KIND_TENSOR, DQ_FLOAT);
    ck_assert_int_eq(dq_items_alloc(&arena, &t, 0, &items, &err), DQ_OK);
    return t;
}

static dq_tensor inserted(const dq_tensor *from, size_t at, const dq_tensor *item)
{
    dq_tensor t = empty();
    ck_assert_int_eq(dq_items_insert(&arena, from, at, item, &t, &err), DQ_OK);
    return t;
}

static dq_tensor erased(const dq_tensor *from, size_t at)
{
    dq_tensor t = empty();
    ck_assert_int_eq(dq_items_erase(&arena, from, at, &t, &err), DQ_OK);
    return t;
}

/* Lists that were made of each other, and what they must hold. */
enum { LISTS = 8, MAX = 400 };
static dq_tensor lists[LISTS];
static const dq_tensor *expected[LISTS][MAX];
static size_t counts[LISTS];

static void check_lists(void)
{
    for (int k = 0; k < LISTS; k++) {
        ck_assert_uint_eq(lists[k].count, counts[k]);
        for (size_t i = 0; i < counts[k]; i++)
            ck_assert_ptr_eq(dq_item(&lists[k], i), expected[k][i]);
    }
}

START_TEST(changed_lists_leave_the_old_ones_as_they_were)
{
    static dq_tensor items[50000];
    uint64_t state = 7;
    for (int k = 0; k < LISTS; k++) {
        lists[k] = empty();
        counts[k] = 0;
    }
    for (int step = 0; step < 50000; step++) {
        const uint32_t from = random_below(&state, LISTS);
        const uint32_t to = random_below(&state, 4) ? from : random_below(&state, LISTS);
        const size_t n = counts[from];
        const bool longer = !n || (n < MAX && random_below(&state, 100) < (step / 5000 % 2 ? 40u : 60u));
        const uint32_t where = random_below(&state, 3);
        const size_t at = where == 0   ? 0
                          : where == 1 ? n - !longer
                                       : random_below(&state, (uint32_t)(n + longer));
        const dq_tensor *old[MAX];
        memcpy(old, expected[from], sizeof old);
        lists[to] = longer ? inserted(&lists[from], at, &items[step]) : erased(&lists[from], at);
        memcpy(expected[to], old, at * sizeof *old);
        if (longer)
            expected[to][at] = &items[step];
        memcpy(expected[to] + at + longer, old + at + !longer, (n - at - !longer) * sizeof *old);
        counts[to] = longer ? n + 1 : n - 1;
        if (step % 97 == 0)
            check_lists();
    }
    check_lists();
}
END_TEST

START_TEST(memory_grows_with_the_number_of_changes)
{
    enum { CHANGES = 20000, BYTES_EACH = 4000 };
    static const dq_tensor item;
    for (int kind = 0; kind < 5; kind++) {
        free_lists();
        dq_tensor list = empty(), other;
        for (size_t i = 0; i < CHANGES; i++) { /* at the end, in front, in the middle … */
            list = inserted(&list, kind == 1 ? 0 : kind == 2 ? list.count / 2 : list.count, &item);
            if (kind == 3 && i > 1000) /* … at the end, and off again … */
                list = erased(&list, list.count - 1);
            if (kind == 4) /* … and with another list made of each */
                other = inserted(&list, list.count / 2, &item);
        }
        (void)other;
        ck_assert_uint_lt(arena.used, (size_t)CHANGES * BYTES_EACH);
    }
}
END_TEST

/* ---- In graphs ---------------------------------------------------------------------------------------- */

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

/* Each iteration's list of pointers would be 64 MB together. */
START_TEST(a_loop_collects_in_memory_that_grows_with_what_it_collects)
{
    enum { TRIPS = 4000 };
    static const int64_t trips = TRIPS, places[] = {0, -1, TRIPS};
    const dq_limits limits = {.session_bytes = 8 << 20};
    for (int i = 0; i < 3; i++) { /* in front, before the last item, behind it */
        static const bool yes = true;
        tear_down();
        set_up();
        dq_ir_free(ir);
        begin(&limits);
        input(g, "x", DQ_FLOAT);
        constant(g, "yes", DQ_BOOL, 0, NULL, &yes);
        constant(g, "trips", DQ_INT64, 0, NULL, &trips);
        constant(g, "at", DQ_INT64, 0, NULL, &places[i]);
        node(g, "", "SequenceConstruct", "x,x", "s", 0);
        dq_graph *body = loop_body(g);
        dq_type seq = {.kind = DQ_KIND_SEQUENCE, .element = &(dq_type){.dtype = DQ_FLOAT}};
        ck_assert_int_eq(dq_graph_add_input(body, "list", &seq, &err), DQ_OK);
        node(body, "now", "Cast", "i", "t", 1)->attrs[0] =
            (dq_attr){.name = "to", .kind = DQ_ATTR_INT, .u.i = DQ_FLOAT};
        node(body, "grow", "SequenceInsert", places[i] == TRIPS ? "list,t" : "list,t,at", "longer", 0);
        output(body, "yes", DQ_BOOL);
        output(body, "longer", DQ_UNDEFINED);
        graph_attr(node(g, "collect", "Loop", "trips,yes,s", "y", 1), 0, "body", body);
        output(g, "y", DQ_UNDEFINED);
        check_program();
        const float x = -1;
        dq_tensor inputs[1] = {scalar(DQ_FLOAT, &x)};
        run_well(inputs);
        ck_assert_uint_eq(out(0)->count, TRIPS + 2);
        for (int k = 0; k < TRIPS; k++) {
            const size_t at = places[i] == 0 ? (size_t)(TRIPS - 1 - k) : places[i] < 0 ? 1u + k : 2u + k;
            ck_assert(dq_data(dq_item(out(0), at), float)[0] == (float)k);
        }
    }
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
    const dq_tensor *const items[1] = {&item};
    dq_item_list list = {.items = items};
    dq_tensor inputs[2] = {{.kind = DQ_KIND_SEQUENCE, .dtype = DQ_FLOAT, .count = 1, .data = &list},
                           tensor(DQ_FLOAT, 1, (int64_t[]){2}, two)};
    run_well(inputs);
    free(first); /* outputs do not lie in inputs */
    ck_assert_uint_eq(out(0)->count, 2);
    wanted_floats(dq_item(out(0), 0), 1, (int64_t[]){1}, one);
    wanted_floats(dq_item(out(0), 1), 1, (int64_t[]){2}, (float[]){-2, -3});
    ck_assert_uint_eq(out(1)->count, 1);
    wanted_floats(dq_item(out(1), 0), 1, (int64_t[]){1}, one);
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
    ck_assert_str_eq(err.message, "dq_sequence_create: item 1 is tensor(int8), expected tensor(float)");
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
    test_program tests = test_program_begin("items", NULL, free_lists);
    add_test(&tests, changed_lists_leave_the_old_ones_as_they_were);
    add_test(&tests, memory_grows_with_the_number_of_changes);
    add_test(&tests, lists_own_their_items);
    tests.set_up = set_up;
    tests.tear_down = tear_down;
    add_test(&tests, what_an_endless_loop_collects_obeys_the_limit);
    add_test(&tests, a_loop_collects_in_memory_that_grows_with_what_it_collects);
    add_test(&tests, sequences_outlive_what_they_were_made_of);
    add_test(&tests, positions_outside_a_sequence_are_refused);
    add_test(&tests, an_optional_is_empty_or_holds_a_value);
    return test_program_run(&tests);
}
