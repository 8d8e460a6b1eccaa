/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance runner's machinery, with runners that pass, fail, crash, hang and print. */
#include "conformance/conformance.h"
#include "support/test_program.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/dqrun-test-XXXXXX";

static void make_folder(void)
{
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    char *command = cf_format("rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    free(command);
}

static char *write_file(const char *name, const void *data, size_t size)
{
    char *path = cf_format("%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    fclose(file);
    return path;
}

static char *read_text(const char *path)
{
    size_t size;
    char *text = (char *)cf_read_file(path, &size);
    ck_assert_ptr_nonnull(text);
    return text;
}

/* Silences the sentences that a test provokes. Returns what restores stderr. */
static int quiet(void)
{
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
    return saved;
}

static void loud(int saved)
{
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
}

/* ---- processes ---- */

/* What a case does stands in its name. */
static void act(const cf_case *item, const cf_options *options, cf_result *result,
                void (*begin)(const cf_result *))
{
    (void)options;
    strcpy(result->op, "Op");
    begin(result);
    result->outcome = CF_PASSED;
    if (strcmp(item->name, "fail") == 0) {
        result->outcome = CF_FAILED;
        strcpy(result->message, "differs");
    } else if (strcmp(item->name, "crash") == 0) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    } else if (strcmp(item->name, "exit") == 0) {
        _exit(3);
    } else if (strcmp(item->name, "hang") == 0) {
        for (;;)
            pause();
    } else if (strcmp(item->name, "print") == 0) {
        fputs("hello\nthere\n", stderr);
    }
}

static const cf_options options = {.jobs = 2, .threads = 1, .timeout = 1};

static cf_list run_names(const char *const *names, size_t count, bool batch, const char *skip_reason)
{
    cf_list list = {NULL, 0, 0};
    for (size_t i = 0; i < count; i++) {
        cf_case *item = cf_add(&list, cf_strdup(names[i]));
        if (!batch)
            item->folder = cf_strdup("unused");
        if (skip_reason != NULL)
            item->skip_reason = cf_strdup(skip_reason);
    }
    int saved = quiet();
    bool good = cf_run_all(&list, &options, act);
    loud(saved);
    ck_assert(good);
    return list;
}

static const char *const every_end[] = {"pass", "fail", "crash", "exit", "hang", "print", "pass"};
static const cf_outcome every_outcome[] = {CF_PASSED, CF_FAILED, CF_BROKEN, CF_BROKEN,
                                           CF_BROKEN, CF_BROKEN, CF_PASSED};

static void check_every_end(const cf_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        ck_assert_msg(list->items[i].outcome == every_outcome[i], "case %zu, %s", i, list->items[i].name);
        ck_assert_str_eq(list->items[i].op, "Op");
    }
    ck_assert_str_eq(list->items[1].message, "differs");
    ck_assert_str_eq(list->items[2].message, "crashed with SIGSEGV (signal 11)");
    ck_assert_str_eq(list->items[3].message, "its process exited with code 3");
    ck_assert_str_eq(list->items[4].message, "took longer than 1 s");
    ck_assert_str_eq(list->items[5].message, "its process printed something: hello");
    cf_counts counts = cf_count(list);
    ck_assert_uint_eq(counts.passed, 2);
    ck_assert_uint_eq(counts.failed, 5);
    ck_assert_uint_eq(counts.skipped, 0);
}

START_TEST(each_folder_ends_on_its_own)
{
    cf_list list = run_names(every_end, 7, false, NULL);
    check_every_end(&list);
    cf_free_list(&list);
}
END_TEST

START_TEST(a_batch_goes_on_behind_a_crash)
{
    /* Long enough that cases of every kind share a process with others. */
    const char *names[200];
    for (size_t i = 0; i < 200; i++)
        names[i] = i % 20 == 3 ? "crash" : i % 20 == 7 ? "exit" : i % 20 == 9 ? "fail" : "pass";
    cf_list list = run_names(names, 200, true, NULL);
    for (size_t i = 0; i < 200; i++) {
        cf_outcome expected = i % 20 == 3 || i % 20 == 7 ? CF_BROKEN : i % 20 == 9 ? CF_FAILED : CF_PASSED;
        ck_assert_msg(list.items[i].outcome == expected, "case %zu, %s", i, names[i]);
    }
    cf_free_list(&list);
}
END_TEST

START_TEST(a_skip_excuses_a_failure_but_no_crash)
{
    cf_list list = run_names(every_end, 7, false, "not yet");
    static const cf_outcome expected[] = {CF_PASSED, CF_SKIPPED, CF_BROKEN, CF_BROKEN,
                                          CF_BROKEN, CF_BROKEN,  CF_PASSED};
    for (size_t i = 0; i < list.count; i++)
        ck_assert_msg(list.items[i].outcome == expected[i], "case %zu", i);
    char *path = cf_format("%s/report.tsv", folder);
    ck_assert(cf_write_report(&list, path));
    char *text = read_text(path);
    ck_assert_ptr_nonnull(strstr(text, "case\top\tstatus\tseconds\tmessage\npass\tOp\tpass\t"));
    ck_assert_ptr_nonnull(strstr(text, "\nfail\tOp\tskip\t"));
    ck_assert_ptr_nonnull(strstr(text, "\tnot yet\ncrash\tOp\tfail\t0.000000\tcrashed with SIGSEGV"));
    free(text);
    free(path);
    cf_free_list(&list);
}
END_TEST

/* ---- cases ---- */

START_TEST(folders_are_found_at_any_depth_in_order)
{
    char *command =
        cf_format("cd %s && mkdir -p b/deep/er a empty && touch b/deep/er/model.onnx a/model.onnx", folder);
    ck_assert_int_eq(system(command), 0);
    free(command);
    cf_list list = {NULL, 0, 0};
    ck_assert(cf_find_cases(folder, &list));
    ck_assert_uint_eq(list.count, 2);
    ck_assert_str_eq(list.items[0].name, "a");
    ck_assert_str_eq(list.items[1].name, "b/deep/er");
    char *one = cf_format("%s/b/deep/er/", folder);
    ck_assert(cf_find_cases(one, &list));
    ck_assert_str_eq(list.items[2].name, "er");
    char glob[] = "b/*";
    char *globs[] = {glob};
    cf_filter(&list, globs, 1);
    ck_assert_uint_eq(list.count, 1);
    ck_assert_str_eq(list.items[0].name, "b/deep/er");
    char *none = cf_format("%s/empty", folder);
    int saved = quiet();
    bool found = cf_find_cases(none, &list);
    loud(saved);
    ck_assert(!found);
    free(none);
    free(one);
    cf_free_list(&list);
}
END_TEST

/* One record: name "n", model "MM", rtol 0.5, atol 0, one input "in", one output "o". */
static const uint8_t batch[] = {
    'D', 'Q', 'C', 'A', 'S', 'E', 'S', '1', 58, 0, 0, 0, 0,    0,    0,   0, 1, 0, 0, 0, 'n', 2, 0, 0,  0,
    0,   0,   0,   0,   'M', 'M', 0,   0,   0,  0, 0, 0, 0xe0, 0x3f, 0,   0, 0, 0, 0, 0, 0,   0, 1, 0,  0,
    0,   1,   0,   0,   0,   2,   0,   0,   0,  0, 0, 0, 0,    'i',  'n', 1, 0, 0, 0, 0, 0,   0, 0, 'o'};

START_TEST(a_batch_is_taken_apart)
{
    cf_list list = {NULL, 0, 0};
    char *path = write_file("b", batch, sizeof batch);
    ck_assert(cf_read_batch(path, &list));
    ck_assert_uint_eq(list.count, 1);
    ck_assert_str_eq(list.items[0].name, "n");
    cf_record record;
    ck_assert(cf_parse_record(list.items[0].batch, &record));
    ck_assert_uint_eq(record.model.size, 2);
    ck_assert_int_eq(memcmp(record.model.data, "MM", 2), 0);
    ck_assert(record.rtol == 0.5);
    ck_assert(record.atol == 0);
    ck_assert_uint_eq(record.input_count, 1);
    ck_assert_uint_eq(record.output_count, 1);
    cf_bytes value;
    ck_assert(cf_next_value(&record.values, &value));
    ck_assert_int_eq(memcmp(value.data, "in", 2), 0);
    ck_assert(cf_next_value(&record.values, &value));
    ck_assert_int_eq(value.data[0], 'o');
    ck_assert_uint_eq(record.values.size, 0);
    free(path);
    cf_free_list(&list);
}
END_TEST

START_TEST(a_damaged_batch_is_refused)
{
    int saved = quiet();
    for (size_t size = 0; size < sizeof batch; size++) {
        cf_list list = {NULL, 0, 0};
        char *path = write_file("b", batch, size);
        ck_assert_msg(!cf_read_batch(path, &list), "cut to %zu bytes", size);
        free(path);
        cf_free_list(&list);
    }
    /* Each length made huge. */
    static const size_t lengths[] = {8, 16, 21, 47, 51, 55, 65};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint8_t bytes[sizeof batch];
        memcpy(bytes, batch, sizeof batch);
        memset(bytes + lengths[i], 0xff, 4);
        cf_list list = {NULL, 0, 0};
        char *path = write_file("b", bytes, sizeof bytes);
        ck_assert_msg(!cf_read_batch(path, &list), "length at %zu", lengths[i]);
        free(path);
        cf_free_list(&list);
    }
    loud(saved);
}
END_TEST

static bool expect(const char *table, cf_list *list)
{
    char *path = write_file("expected.tsv", table, strlen(table));
    int saved = quiet();
    bool good = cf_expect(path, list);
    loud(saved);
    free(path);
    return good;
}

START_TEST(expectations_are_read)
{
    cf_list list = {NULL, 0, 0};
    cf_add(&list, cf_strdup("a"));
    cf_add(&list, cf_strdup("b"));
    cf_add(&list, cf_strdup("c"));
    ck_assert(expect("case\texpected\treason\nb\tskip\twhy, then\na\tpass\t\n", &list));
    ck_assert_ptr_null(list.items[0].skip_reason);
    ck_assert_str_eq(list.items[1].skip_reason, "why, then");
    ck_assert_ptr_null(list.items[2].skip_reason);
    ck_assert(!expect("", &list));
    ck_assert(!expect("a\tpass\t\n", &list));
    ck_assert(!expect("case\texpected\treason\na\tmaybe\t\n", &list));
    ck_assert(!expect("case\texpected\treason\na\tpass\n", &list));
    ck_assert(!expect("case\texpected\treason\na\tpass\t\t\n", &list));
    ck_assert(!expect("case\texpected\treason\na\tpass\t\na\tskip\tx\n", &list));
    cf_free_list(&list);
}
END_TEST

/* ---- models and reports ---- */

static void check_op(const char *model, size_t size, const char *expected)
{
    char op[96] = "";
    cf_model_op((const uint8_t *)model, size, op, sizeof op);
    ck_assert_str_eq(op, expected);
}

START_TEST(the_operator_is_named)
{
    check_op("\x08\x0e\x3a\x05\x0a\x03\x22\x01X", 9, "X");
    check_op("\x3a\x09\x0a\x07\x22\x02Xb\x3a\x01m", 11, "m.Xb");
    check_op("\x3a\x0a\x0a\x03\x22\x01X\x0a\x03\x22\x01Y", 12, "(several)");
    check_op("", 0, "(none)");
    check_op("\x3a\x7f\x0a", 3, "(none)");
    check_op("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12, "(none)");
    check_op("\x3a\x02\x0a\x00", 4, "");
}
END_TEST

START_TEST(reports_escape_what_they_hold)
{
    cf_list list = {NULL, 0, 0};
    cf_case *item = cf_add(&list, cf_strdup("a<b"));
    item->outcome = CF_FAILED;
    item->message = cf_strdup("got \"1\"\tand\n2 & 3");
    char *json = cf_format("%s/r.json", folder), *xml = cf_format("%s/r.xml", folder);
    ck_assert(cf_write_report(&list, json));
    ck_assert(cf_write_report(&list, xml));
    char *text = read_text(json);
    ck_assert_ptr_nonnull(strstr(text, "\"case\": \"a<b\""));
    ck_assert_ptr_nonnull(strstr(text, "\"got \\\"1\\\"\\u0009and\\u000a2 & 3\""));
    free(text);
    text = read_text(xml);
    ck_assert_ptr_nonnull(strstr(text, "name=\"a&#60;b\""));
    ck_assert_ptr_nonnull(strstr(text, "<failure message=\"got &#34;1&#34; and 2 &#38; 3\"/>"));
    free(text);
    free(json);
    free(xml);
    cf_free_list(&list);
    ck_assert(cf_report_known("a.b.tsv"));
    ck_assert(!cf_report_known("report"));
    ck_assert(!cf_report_known("report.csv"));
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("conformance", make_folder, remove_folder);
    add_test(&tests, each_folder_ends_on_its_own);
    add_test(&tests, a_batch_goes_on_behind_a_crash);
    add_test(&tests, a_skip_excuses_a_failure_but_no_crash);
    add_test(&tests, folders_are_found_at_any_depth_in_order);
    add_test(&tests, a_batch_is_taken_apart);
    add_test(&tests, a_damaged_batch_is_refused);
    add_test(&tests, expectations_are_read);
    add_test(&tests, the_operator_is_named);
    add_test(&tests, reports_escape_what_they_hold);
    return test_program_run(&tests);
}
