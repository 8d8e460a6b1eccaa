/* SPDX-License-Identifier: Apache-2.0 */
/* src/api/handover.c: dq_session_take_output hands an output over to the caller. */
#include "counted.h"
#include "small_model.h"

static counted heap; /* of the session */

static void open_counted(void)
{
    dq_session_options options = DQ_SESSION_OPTIONS_INIT;
    const dq_allocator allocator = counted_allocator(&heap);
    options.threads = 1;
    options.allocator = &allocator; /* copied */
    must(dq_session_create(model, &options, &session, &err));
}

static void finish_counted(void)
{
    must(dq_builder_finish(b, NULL, &model, &err));
    open_counted();
}

static void set_up(void)
{
    heap = (counted){0};
}

/* All memory is back once the test has freed what it has. */
static void check_counts(void)
{
    tear_down();
    ck_assert_uint_eq(heap.live, 0);
}

static dq_tensor *take(const char *name)
{
    dq_tensor *t = NULL;
    must(dq_session_take_output(session, name, &t, &err));
    return t;
}

static void run_with(const char *name, size_t n, float *data)
{
    must(dq_session_set_input(session, name, row(n, data), &err));
    must(dq_session_run(session, &err));
}

static void is_row(const dq_tensor *t, size_t n, const float *expected)
{
    ck_assert_int_eq(dq_tensor_dtype(t), DQ_FLOAT);
    ck_assert_uint_eq(dq_tensor_rank(t), 1);
    ck_assert_uint_eq(dq_tensor_count(t), n);
    for (size_t i = 0; i < n; i++)
        ck_assert(((const float *)dq_tensor_data(t))[i] == expected[i]);
}

/* y = x + 1, of any number of elements. */
static void add_one(void)
{
    float one = 1;
    begin();
    input("x", DQ_FLOAT, 1, (int64_t[]){-1});
    constant("one", DQ_FLOAT, 0, NULL, &one);
    node("Add", "x", "one", "y");
    output("y");
    finish_counted();
}

START_TEST(it_outlives_later_runs_session_and_model)
{
    dq_tensor *taken[4];
    add_one();
    for (int i = 0; i < 4; i++) {
        float x[] = {(float)i, 10};
        run_with("x", 2, x);
        taken[i] = take(i % 2 ? "y" : NULL);
        ck_assert(((const float *)dq_tensor_data(taken[i]))[0] == (float)i + 1);
    }
    tear_down();
    for (int i = 0; i < 4; i++) {
        is_row(taken[i], 2, (float[]){(float)i + 1, 11});
        dq_tensor_free(taken[i]);
    }
}
END_TEST

START_TEST(from_the_second_run_on_nothing_is_copied)
{
    float x[] = {1, 2, 3};
    add_one();
    run_with("x", 3, x);
    dq_tensor *first = take("y");
    for (int i = 0; i < 3; i++) {
        const dq_tensor *seen = NULL;
        run_with("x", 3, x);
        must(dq_session_get_output(session, "y", &seen, &err));
        const void *computed = dq_tensor_data(seen);
        const size_t allocations = heap.allocations;
        dq_tensor *t = take("y");
        ck_assert_ptr_eq(dq_tensor_data(t), computed);
        ck_assert_uint_eq(heap.allocations, allocations);
        is_row(t, 3, (float[]){2, 3, 4});
        dq_tensor_free(t);
    }
    is_row(first, 3, (float[]){2, 3, 4});
    dq_tensor_free(first);
}
END_TEST

START_TEST(memory_that_is_not_taken_is_used_again)
{
    float x[] = {1, 2, 3};
    add_one();
    run_with("x", 3, x);
    dq_tensor_free(take("y"));
    run_with("x", 3, x);
    const void *computed = data_of("y");
    const size_t allocations = heap.allocations;
    run_with("x", 3, x);
    ck_assert_ptr_eq(data_of("y"), computed);
    ck_assert_uint_eq(heap.allocations, allocations);
    run_with("x", 2, x); /* another shape has other memory */
    dq_tensor *two = take("y");
    is_row(two, 2, (float[]){2, 3});
    run_with("x", 3, x); /* a shape that comes again */
    dq_tensor *three = take("y");
    is_row(three, 3, (float[]){2, 3, 4});
    is_row(two, 2, (float[]){2, 3});
    dq_tensor_free(two);
    dq_tensor_free(three);
}
END_TEST

START_TEST(it_can_be_taken_once)
{
    float x = 1;
    dq_tensor *t = NULL;
    const dq_tensor *seen;
    add_one();
    refused(dq_session_take_output(session, "y", &t, &err), DQ_INVALID_ARGUMENT,
            "m: output 'y' is there only after a run that succeeded");
    run_with("x", 1, &x);
    for (int i = 0; i < 2; i++) { /* copied, then handed over */
        dq_tensor_free(take("y"));
        refused(dq_session_take_output(session, "y", &t, &err), DQ_INVALID_ARGUMENT,
                "m: output 'y' of the last run has been taken");
        refused(dq_session_get_output(session, "y", &seen, &err), DQ_INVALID_ARGUMENT,
                "m: output 'y' of the last run has been taken");
        run_with("x", 1, &x);
    }
    is_row(seen = take("y"), 1, (float[]){2});
    dq_tensor_free((dq_tensor *)(uintptr_t)seen);
    refused(dq_session_take_output(NULL, "y", &t, &err), DQ_INVALID_ARGUMENT,
            "dq_session_take_output: session is NULL");
    refused(dq_session_take_output(session, "y", NULL, &err), DQ_INVALID_ARGUMENT,
            "dq_session_take_output: out is NULL");
    ck_assert_int_eq(dq_session_take_output(session, "none", &t, &err), DQ_INVALID_ARGUMENT);
}
END_TEST

/* What is taken from one run is an input of the next one, as states are. */
START_TEST(it_may_be_the_next_input)
{
    float x = 0;
    dq_tensor *state = NULL;
    add_one();
    run_with("x", 1, &x);
    for (int i = 1; i <= 5; i++) {
        dq_tensor *next = take("y");
        dq_tensor_free(state);
        state = next;
        is_row(state, 1, (float[]){(float)i});
        must(dq_session_set_input(session, "x", state, &err));
        must(dq_session_run(session, &err));
    }
    must(dq_session_set_input(session, "x", NULL, &err));
    dq_tensor_free(state);
}
END_TEST

START_TEST(a_tensor_of_the_callers_goes_first)
{
    float x = 1, own = 0;
    add_one();
    run_with("x", 1, &x);
    dq_tensor_free(take("y"));
    must(dq_session_set_output(session, "y", row(1, &own), &err));
    run_with("x", 1, &x);
    ck_assert(own == 2);
    dq_tensor *copy = take("y");
    own = 0;
    is_row(copy, 1, (float[]){2});
    dq_tensor_free(copy);
    must(dq_session_set_output(session, "y", NULL, &err));
    x = 5;
    run_with("x", 1, &x);
    ck_assert(own == 0);
    dq_tensor *t = take("y");
    is_row(t, 1, (float[]){6});
    dq_tensor_free(t);
}
END_TEST

/* y and its view, one value by two names, an input and a constant that are outputs as they are. */
START_TEST(outputs_that_share_memory_are_copied)
{
    static const char *const names[] = {"y", "view", "x", "c", "same"};
    float x[] = {1, 2}, c[] = {7, 8};
    begin();
    input("x", DQ_FLOAT, 1, (int64_t[]){2});
    constant("c", DQ_FLOAT, 1, (int64_t[]){2}, c);
    constant("shape", DQ_INT64, 1, (int64_t[]){1}, (int64_t[]){2});
    node("Add", "x", "c", "y");
    node("Reshape", "y", "shape", "view");
    node("Identity", "y", NULL, "same");
    for (int i = 0; i < 5; i++)
        output(names[i]);
    finish_counted();
    const float expected[][2] = {{8, 10}, {8, 10}, {1, 2}, {7, 8}, {8, 10}};
    for (int round = 0; round < 12; round++) {
        dq_tensor *taken[5];
        const int begin_at = round % 5, step = round % 4 + 1; /* in different orders */
        run_with("x", 2, x);
        for (int i = 0, at = begin_at; i < 5; i++, at = (at + step) % 5) {
            taken[at] = take(names[at]);
            memset(dq_tensor_mutable_data(taken[at]), round,
                   dq_tensor_size(taken[at])); /* nobody else's memory */
            for (int k = i + 1, other = (at + step) % 5; k < 5; k++, other = (other + step) % 5) {
                const dq_tensor *left = NULL;
                must(dq_session_get_output(session, names[other], &left, &err));
                ck_assert_mem_eq(dq_tensor_data(left), expected[other], sizeof expected[other]);
            }
        }
        for (int i = 0; i < 5; i++)
            dq_tensor_free(taken[i]);
        ck_assert(x[0] == 1 && x[1] == 2);
    }
}
END_TEST

START_TEST(an_added_output_can_be_taken)
{
    float x[] = {1, 2}, one = 1;
    begin();
    input("x", DQ_FLOAT, 1, (int64_t[]){2});
    constant("one", DQ_FLOAT, 0, NULL, &one);
    node("Add", "x", "one", "inside");
    node("Mul", "inside", "inside", "y");
    output("y");
    finish_counted();
    run_with("x", 2, x);
    dq_tensor_free(take("y"));
    must(dq_session_add_output(session, "inside", &err));
    for (int i = 0; i < 3; i++) {
        run_with("x", 2, x);
        dq_tensor *inside = take("inside"), *y = take("y");
        is_row(inside, 2, (float[]){2, 3});
        is_row(y, 2, (float[]){4, 9});
        dq_tensor_free(inside);
        dq_tensor_free(y);
    }
}
END_TEST

/* The shape of y is known after NonZero has run. */
START_TEST(late_shapes_are_copied)
{
    begin();
    input("x", DQ_FLOAT, 1, (int64_t[]){-1});
    node("NonZero", "x", NULL, "y");
    output("y");
    finish_counted();
    for (int i = 0; i < 3; i++) {
        float x[] = {(float)(i > 0), (float)(i > 1), 1};
        run_with("x", 3, x);
        dq_tensor *y = take("y");
        ck_assert_uint_eq(dq_tensor_count(y), (size_t)i + 1);
        ck_assert_int_eq(((const int64_t *)dq_tensor_data(y))[i], 2);
        dq_tensor_free(y);
    }
}
END_TEST

START_TEST(strings_and_sequences_are_copied)
{
    begin();
    input("s", DQ_STRING, 1, (int64_t[]){2});
    input("x", DQ_FLOAT, 1, (int64_t[]){2});
    node("Identity", "s", NULL, "t");
    node("Add", "x", "x", "y");
    node("SequenceConstruct", "y", "x", "list");
    node("SequenceConstruct", "t", NULL, "texts");
    output("t");
    output("y");
    output("list");
    output("texts");
    finish_counted();
    dq_tensor *s = NULL;
    must(dq_tensor_create(DQ_STRING, 1, (int64_t[]){2}, &s, &err));
    keep(s);
    must(dq_tensor_set_string(s, 0, "a\0b", 3, &err));
    must(dq_session_set_input(session, "s", s, &err));
    dq_tensor *t[2], *list[2], *texts[2], *y[2];
    float x[] = {1, 2};
    for (int i = 0; i < 2; i++) {
        run_with("x", 2, x);
        y[i] = take("y");
        t[i] = take("t");
        list[i] = take("list");
        texts[i] = take("texts");
    }
    tear_down();
    for (int i = 0; i < 2; i++) {
        size_t length = 0;
        ck_assert_mem_eq(dq_tensor_string(t[i], 0, &length), "a\0b", 4);
        ck_assert_uint_eq(length, 3);
        ck_assert_str_eq(dq_tensor_string(t[i], 1, &length), "");
        must(dq_tensor_set_string(t[i], 1, "new", 3, &err)); /* it is the caller's */
        ck_assert_str_eq(dq_tensor_string(t[i], 1, NULL), "new");
        ck_assert_int_eq(dq_tensor_kind(list[i]), DQ_KIND_SEQUENCE);
        ck_assert_uint_eq(dq_tensor_count(list[i]), 2);
        is_row(dq_tensor_item(list[i], 0), 2, (float[]){2, 4});
        is_row(dq_tensor_item(list[i], 1), 2, (float[]){1, 2});
        is_row(y[i], 2, (float[]){2, 4});
        ck_assert_mem_eq(dq_tensor_string(dq_tensor_item(texts[i], 0), 0, NULL), "a\0b", 4);
        dq_tensor_free(t[i]);
        dq_tensor_free(list[i]);
        dq_tensor_free(texts[i]);
        dq_tensor_free(y[i]);
    }
}
END_TEST

START_TEST(failed_runs_keep_what_was_taken)
{
    float x[] = {1, 2};
    dq_tensor *t = NULL;
    add_one();
    run_with("x", 2, x);
    dq_tensor *first = take("y");
    dq_session_cancel(session);
    ck_assert_int_eq(dq_session_run(session, &err), DQ_CANCELLED);
    refused(dq_session_take_output(session, "y", &t, &err), DQ_INVALID_ARGUMENT,
            "m: output 'y' is there only after a run that succeeded");
    must(dq_session_run(session, &err));
    heap.refuse_at = heap.allocations + 1; /* the next run's memory */
    dq_tensor_free(take("y"));
    ck_assert_int_eq(dq_session_run(session, &err), DQ_OUT_OF_MEMORY);
    must(dq_session_run(session, &err));
    t = take("y");
    is_row(t, 2, (float[]){2, 3});
    is_row(first, 2, (float[]){2, 3});
    dq_tensor_free(t);
    dq_tensor_free(first);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("handover", set_up, check_counts);
    add_test(&tests, it_outlives_later_runs_session_and_model);
    add_test(&tests, from_the_second_run_on_nothing_is_copied);
    add_test(&tests, memory_that_is_not_taken_is_used_again);
    add_test(&tests, it_can_be_taken_once);
    add_test(&tests, it_may_be_the_next_input);
    add_test(&tests, a_tensor_of_the_callers_goes_first);
    add_test(&tests, outputs_that_share_memory_are_copied);
    add_test(&tests, an_added_output_can_be_taken);
    add_test(&tests, late_shapes_are_copied);
    add_test(&tests, strings_and_sequences_are_copied);
    add_test(&tests, failed_runs_keep_what_was_taken);
    return test_program_run(&tests);
}
