/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/error.c: messages are valid text, cut between characters. */
#include "base/error.h"
#include "support/test_program.h"

#include <string.h>

START_TEST(errors_keep_whole_characters_when_cut)
{
    dq_error err;
    char text[2000];
    memset(text, 'x', sizeof text);
    /* two-byte characters all along, so that the cut falls beside one */
    for (size_t i = 0; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "ä", 2);
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(dq_fail(&err, DQ_BAD_MODEL, "%s", text), DQ_BAD_MODEL);
    size_t length = strlen(err.message);
    ck_assert_uint_lt(length, sizeof err.message);
    ck_assert_str_eq(err.message + length - 3, "…");
    ck_assert_int_eq((length - 3) % 2, 0);
    ck_assert_int_eq(dq_fail(NULL, DQ_IO, "nobody listens"), DQ_IO);
}
END_TEST

START_TEST(errors_are_text)
{
    dq_error err;
    dq_fail(
        &err, DQ_BAD_MODEL, "%s",
        "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 \xC3( \xE2\x82 \xF0( \xC0\x80 \xED\xA0\x80 \xF4\x90\x80\x80 "
        "\xFF \xC2\x85 \x7F");
    ck_assert_str_eq(err.message, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 ?( ?? ?( ?? ??? ???? ? ?? ?");
}
END_TEST

START_TEST(errors_take_a_prefix)
{
    dq_error err;
    dq_fail(&err, DQ_BAD_INPUT, "has 3, expected %d", 4);
    dq_error_prefix(&err, "m.onnx: node '%s': ", "a\nb");
    ck_assert_str_eq(err.message, "m.onnx: node 'a?b': has 3, expected 4");
    char text[1000];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    dq_error_prefix(&err, "%s", text);
    ck_assert_uint_lt(strlen(err.message), sizeof err.message);
    dq_error_prefix(&err, "%s", text);
    ck_assert_str_eq(err.message + strlen(err.message) - 3, "…");
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("error", NULL, NULL);
    add_test(&tests, errors_keep_whole_characters_when_cut);
    add_test(&tests, errors_are_text);
    add_test(&tests, errors_take_a_prefix);
    return test_program_run(&tests);
}
