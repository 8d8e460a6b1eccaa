/* SPDX-License-Identifier: Apache-2.0 */
/* StringSplit and StringNormalizer. */
#include "harness.h"

START_TEST(split_strings)
{
    ops_case c;
    ops_begin(&c, "", "StringSplit", 20);
    c.out_count = 2;
    ops_in_strings(&c, OPS_DIMS(3), (const char *const[]){"  a b ", "", "c"});
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_DIMS(3, 2), (const char *const[]){"a", "b", "", "", "c", ""});
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(3), OPS_VALUES(2, 0, 1));
    ops_end(&c);

    ops_begin(&c, "", "StringSplit", 20);
    ops_string(&c, "delimiter", "--");
    ops_int(&c, "maxsplit", 1);
    ops_in_strings(&c, OPS_SCALAR, (const char *const[]){"--a--b"});
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_DIMS(2), (const char *const[]){"", "a--b"});
    ops_end(&c);
}
END_TEST

START_TEST(string_normalizer_upper_case)
{
    ops_case c;
    ops_begin(&c, "", "StringNormalizer", 10);
    ops_string(&c, "case_change_action", "UPPER");
    ops_in_strings(&c, OPS_DIMS(1, 3),
                   (const char *const[]){"stra\xC3\x9F"
                                         "e",
                                         "\xC3\xA9\xFF", "\xD1\x91"});
    ops_must_run(&c); /* the sharp s has no upper case of one letter; a stray byte stays */
    ops_want_strings(&c, 0, OPS_DIMS(1, 3),
                     (const char *const[]){"STRA\xC3\x9F"
                                           "E",
                                           "\xC3\x89\xFF", "\xD0\x81"});
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("string", NULL, NULL);
    add_test(&tests, split_strings);
    add_test(&tests, string_normalizer_upper_case);
    return test_program_run(&tests);
}
