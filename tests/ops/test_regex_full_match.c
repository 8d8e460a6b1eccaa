/* SPDX-License-Identifier: Apache-2.0 */
/* RegexFullMatch. */
#include "harness.h"

#include <string.h>

static bool matches(const char *pattern, const char *text)
{
    ops_case c;
    ops_begin(&c, "", "RegexFullMatch", 20);
    ops_string(&c, "pattern", pattern);
    ops_in_strings(&c, OPS_SCALAR, &text);
    ops_must_run(&c);
    bool result = dq_data(c.out[0], uint8_t)[0] != 0;
    ops_end(&c);
    return result;
}

START_TEST(patterns)
{
    static const struct {
        const char *pattern, *yes, *no;
    } rows[] = {
        {"", "", "a"},
        {"abc", "abc", "abcd"},
        {"a.c",
         "a\xC3\xA9"
         "c",
         "a\nc"},
        {"(?s)a.c", "a\nc", "ac"},
        {"(?i)[a-c]X", "Bx", "dx"},
        {"a*b+c?", "bb", "aac"},
        {"(a|bc|)d", "bcd", "bd"},
        {"(?:one|two|three)+", "threeone", "thre"},
        {"(a{2,3}){2}", "aaaaa", "aaaaaaa"},
        {"x{0}y{1,}?z{,2}", "yyz{,2}", "xyz"},
        {"a{0,2}", "aa", "aaa"},
        {"(a*)*b", "aaab", "aaa"},
        {"[^a-c\\d]+", "xyz", "x1"},
        {"[]a-]+", "]-a", "b"},
        {"[[:alpha:]_]\\w*", "_9", "9_"},
        {"\\D\\S\\W", "ab ", "1b "},
        {"\\x41\\x{3b1}\\.", "A\xCE\xB1.", "A\xCE\xB1x"},
        {"\\Qa.b\\E+", "a.bb", "axb"},
        {"\\Q|)\\E", "|)", "|"},
        {"^ab$", "ab", "b"},
        {"\\bab\\b.*", "ab c", "abc"},
        {"(?P<n>a)\\B.", "ab", "a."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(matches(rows[i].pattern, rows[i].yes), "%s does not match %s", rows[i].pattern,
                      rows[i].yes);
        ck_assert_msg(!matches(rows[i].pattern, rows[i].no), "%s matches %s", rows[i].pattern, rows[i].no);
    }
    char many[2001] = {0}; /* takes for ever where matching goes back and forth */
    memset(many, 'a', 2000);
    ck_assert(!matches("(a|a|aa)*(a+)+b", many));
}
END_TEST

START_TEST(wrong_patterns)
{
    static const struct {
        const char *pattern;
        dq_status status;
    } wrong[] = {{"(", DQ_BAD_MODEL},
                 {")", DQ_BAD_MODEL},
                 {"[a", DQ_BAD_MODEL},
                 {"*a", DQ_BAD_MODEL},
                 {"[b-a]", DQ_BAD_MODEL},
                 {"a\\", DQ_BAD_MODEL},
                 {"a{2,1}", DQ_BAD_MODEL},
                 {"(a)\\1", DQ_UNSUPPORTED},
                 {"(?=a)", DQ_UNSUPPORTED},
                 {"(?<=a)", DQ_UNSUPPORTED},
                 {"((a{1000}){1000}){1000}", DQ_OUT_OF_MEMORY}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ops_case c;
        ops_begin(&c, "", "RegexFullMatch", 20);
        ops_string(&c, "pattern", wrong[i].pattern);
        ops_in_strings(&c, OPS_DIMS(0), NULL);
        ck_assert_msg(ops_run(&c) == wrong[i].status, "%s", wrong[i].pattern);
        ops_end(&c);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("regex_full_match", NULL, NULL);
    add_test(&tests, patterns);
    add_test(&tests, wrong_patterns);
    return test_program_run(&tests);
}
