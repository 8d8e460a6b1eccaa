/* SPDX-License-Identifier: Apache-2.0 */
/* Suites of check in which every test is a TCase of its own, named after the test: CK_RUN_CASE=<test> runs a
 * single one. */
#ifndef DQ_TESTS_SUPPORT_SUITE_H
#define DQ_TESTS_SUPPORT_SUITE_H

#include <check.h>

/** What some tests of a suite share. Set before tests are added. */
typedef struct test_group {
    Suite *suite;
    SFun setup, teardown;           /* run in the process of each test; NULL: none */
    SFun setup_once, teardown_once; /* run around each test in the parent process; NULL: none */
    double timeout;                 /* seconds for each test; 0: check's default, or CK_DEFAULT_TIMEOUT */
} test_group;

/** Adds a test that runs once for each number from `begin` to end - 1, which it finds in `_i`. */
static inline void add_loop_test(const test_group *group, const TTest *test, int begin, int end)
{
    TCase *tests = tcase_create(test->name);
    if (group->timeout > 0)
        tcase_set_timeout(tests, group->timeout);
    if (group->setup || group->teardown)
        tcase_add_checked_fixture(tests, group->setup, group->teardown);
    if (group->setup_once || group->teardown_once)
        tcase_add_unchecked_fixture(tests, group->setup_once, group->teardown_once);
    tcase_add_loop_test(tests, test, begin, end);
    suite_add_tcase(group->suite, tests);
}

static inline void add_test(const test_group *group, const TTest *test)
{
    add_loop_test(group, test, 0, 1);
}

/** Runs the suite, or the test that CK_RUN_CASE names; CK_VERBOSITY says how much is printed. Returns the
 * program's exit code, which is 1 also when no test ran. */
static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int run = srunner_ntests_run(runner), failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0 || run == 0;
}

#endif
