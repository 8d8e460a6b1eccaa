/* SPDX-License-Identifier: Apache-2.0 */
/* What reports leave out over their limit. */
#include "insight/report.h"
#include "support/test_program.h"

#include <stdlib.h>
#include <string.h>

static char *cut(const char *json, insight_cut *cuts, size_t count)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(to);
    insight_cut_json(json, strlen(json), cuts, count, to);
    ck_assert_int_eq(fclose(to), 0);
    return text;
}

static void gives(const char *json, insight_cut *cuts, size_t count, const char *expected)
{
    char *got = cut(json, cuts, count);
    ck_assert_str_eq(got, expected);
    free(got);
}

START_TEST(without_cuts_it_is_a_copy)
{
    gives("{}", NULL, 0, "{}");
    gives("", NULL, 0, "");
    gives("{\"a\": [1, 2, {\"b\": null}], \"c\": \"]\\\"}\"}", NULL, 0,
          "{\"a\": [1, 2, {\"b\": null}], \"c\": \"]\\\"}\"}");
}
END_TEST

START_TEST(nothing_ends_the_script_element)
{
    gives("{\"</script>\": \"<!--\"}", NULL, 0, "{\"\\u003c/script>\": \"\\u003c!--\"}");
}
END_TEST

START_TEST(lists_keep_their_first_items)
{
    insight_cut cuts[] = {{.list = "nodes", .most = 2}, {.list = "steps", .most = 0}};
    gives("{\"nodes\": [{\"nodes\": [1, 2, 3]}, [4], 5], \"x\": [1, 2, 3], \"steps\": [1, 2], \"y\": 0}",
          cuts, 2, "{\"nodes\": [{\"nodes\": [1, 2, 3]}, [4]], \"x\": [1, 2, 3], \"steps\": [], \"y\": 0}");
    ck_assert_uint_eq(cuts[0].total, 3);
    ck_assert_uint_eq(cuts[0].kept, 2);
    ck_assert_uint_eq(cuts[1].total, 2);
    ck_assert_uint_eq(cuts[1].kept, 0);
}
END_TEST

START_TEST(details_become_empty)
{
    static const char *const drops[] = {"counts", NULL};
    static const bool keeps[] = {true, false};
    insight_cut c = {.list = "values", .most = 9, .keeps = keeps, .drops = drops};
    gives(
        "{\"values\": [{\"h\": {\"counts\": [1, [2]]}, \"z\": [1]}, {\"h\": {\"counts\": [1, [2]]}, \"z\": "
        "[1]}]}",
        &c, 1,
        "{\"values\": [{\"h\": {\"counts\": [1, [2]]}, \"z\": [1]}, {\"h\": {\"counts\": []}, \"z\": [1]}]}");
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("report", NULL, NULL);
    add_test(&tests, without_cuts_it_is_a_copy);
    add_test(&tests, nothing_ends_the_script_element);
    add_test(&tests, lists_keep_their_first_items);
    add_test(&tests, details_become_empty);
    return test_program_run(&tests);
}
