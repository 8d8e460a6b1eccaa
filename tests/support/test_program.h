/* SPDX-License-Identifier: Apache-2.0 */
/* The main function of a C test program. Every test is a test case of check, named for its function, so that
 * CK_RUN_CASE=<function> runs it alone:
 *
 *     int main(void)
 *     {
 *         test_program tests = test_program_begin("parser", set_up, tear_down);
 *         add_test(&tests, attributes_are_read);
 *         add_loop_test(&tests, wrong_attributes_are_refused, 0, 4);
 *         return test_program_run(&tests);
 *     } */
#ifndef DQ_TESTS_TEST_PROGRAM_H
#define DQ_TESTS_TEST_PROGRAM_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct test_program {
    Suite *suite;
    SFun set_up, tear_down; /* run before and after each test that is added from here on; NULL: none */
} test_program;

static inline test_program test_program_begin(const char *name, SFun before, SFun after)
{
    return (test_program){suite_create(name), before, after};
}

/** Returns a new test case. Its time limit is 60 s, or $CK_DEFAULT_TIMEOUT: check's own limit of 4 s is too
 * short for a busy machine. */
static inline TCase *test_program_case(const test_program *p, const char *name)
{
    enum { SECONDS = 60 };
    TCase *one = tcase_create(name);
    if (!getenv("CK_DEFAULT_TIMEOUT"))
        tcase_set_timeout(one, SECONDS);
    tcase_add_checked_fixture(one, p->set_up, p->tear_down);
    suite_add_tcase(p->suite, one);
    return one;
}

/** Adds a function of START_TEST; the loop form runs it with _i from `first` to `end` - 1. */
#define add_test(program, function) tcase_add_test(test_program_case(program, #function), function)
#define add_loop_test(program, function, first, end)                                                         \
    tcase_add_loop_test(test_program_case(program, #function), function, first, end)

/** Runs the tests ($CK_VERBOSITY says what is printed) and returns the exit code of main. A program that runs
 * no test fails: $CK_RUN_CASE has a name that none of them has. */
static inline int test_program_run(const test_program *p)
{
    SRunner *runner = srunner_create(p->suite);
    srunner_run_all(runner, CK_ENV);
    const bool none = srunner_ntests_run(runner) == 0, failed = srunner_ntests_failed(runner) != 0;
    srunner_free(runner);
    if (none)
        fprintf(stderr, "no test ran: CK_RUN_CASE takes the name of one START_TEST function\n");
    return none || failed;
}

#endif
