/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a test program's main. */
#ifndef DQ_TESTS_SUITE_H
#define DQ_TESTS_SUITE_H

#include <check.h>

/** Runs it (CK_VERBOSITY says what is printed); the program's exit code. */
static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
