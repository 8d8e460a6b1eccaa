/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *outcome_word(const cf_case *item)
{
    if (item->outcome == CF_PASSED)
        return "pass";
    return item->outcome == CF_SKIPPED ? "skip" : "fail";
}

static void count_case(cf_counts *counts, const cf_case *item)
{
    if (item->outcome == CF_PASSED)
        counts->passed++;
    else if (item->outcome == CF_SKIPPED)
        counts->skipped++;
    else
        counts->failed++;
}

cf_counts cf_count(const cf_list *list)
{
    cf_counts counts = {0, 0, 0};
    for (size_t i = 0; i < list->count; i++)
        count_case(&counts, &list->items[i]);
    return counts;
}

static const char *operator_of(const cf_case *item)
{
    return item->op[0] == '\0' ? "(unknown)" : item->op;
}

/* The reason why a case did not pass: for a skip that of the expected file, for a failure its message. */
static const char *reason_of(const cf_case *item)
{
    if (item->outcome == CF_PASSED)
        return "";
    const char *text = item->outcome == CF_SKIPPED ? item->skip_reason : item->message;
    return text == NULL ? "" : text;
}

/* ---- summary ---- */

static int by_operator(const void *a, const void *b)
{
    return strcmp(operator_of(*(cf_case *const *)a), operator_of(*(cf_case *const *)b));
}

static void print_table(const cf_list *list, FILE *out)
{
    cf_case **sorted = cf_realloc(NULL, list->count, sizeof *sorted);
    for (size_t i = 0; i < list->count; i++)
        sorted[i] = &list->items[i];
    qsort(sorted, list->count, sizeof *sorted, by_operator);
    fprintf(out, "%-40s %8s %8s %8s\n", "operator", "passed", "failed", "skipped");
    for (size_t i = 0; i < list->count;) {
        cf_counts counts = {0, 0, 0};
        const char *op = operator_of(sorted[i]);
        for (; i < list->count && strcmp(op, operator_of(sorted[i])) == 0; i++)
            count_case(&counts, sorted[i]);
        fprintf(out, "%-40s %8zu %8zu %8zu\n", op, counts.passed, counts.failed, counts.skipped);
    }
    free(sorted);
}

static void print_failures(const cf_list *list, size_t failed, FILE *out)
{
    if (failed == 0)
        return;
    fprintf(out, "\n%zu failed:\n", failed);
    for (size_t i = 0; i < list->count; i++) {
        const cf_case *item = &list->items[i];
        if (strcmp(outcome_word(item), "fail") == 0)
            fprintf(out, "  %s (%s): %s\n", item->name, operator_of(item), reason_of(item));
    }
}

static void print_surprises(const cf_list *list, FILE *out)
{
    size_t surprises = 0;
    for (size_t i = 0; i < list->count; i++) {
        const cf_case *item = &list->items[i];
        if (item->outcome != CF_PASSED || item->skip_reason == NULL)
            continue;
        if (surprises++ == 0)
            fputs("\npassed, though expected to be skipped:\n", out);
        fprintf(out, "  %s (%s): %s\n", item->name, operator_of(item), item->skip_reason);
    }
}

void cf_print_summary(const cf_list *list, FILE *out)
{
    cf_counts counts = cf_count(list);
    print_table(list, out);
    print_failures(list, counts.failed, out);
    print_surprises(list, out);
    fprintf(out, "\n%zu passed, %zu failed, %zu skipped\n", counts.passed, counts.failed, counts.skipped);
}

/* ---- files ---- */

static void write_tsv_text(const char *text, FILE *out)
{
    for (; *text != '\0'; text++)
        fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
}

static void write_tsv(const cf_list *list, FILE *out)
{
    fputs("case\top\tstatus\tseconds\tmessage\n", out);
    for (size_t i = 0; i < list->count; i++) {
        const cf_case *item = &list->items[i];
        write_tsv_text(item->name, out);
        fprintf(out, "\t%s\t%s\t%.6f\t", operator_of(item), outcome_word(item), item->seconds);
        write_tsv_text(reason_of(item), out);
        fputc('\n', out);
    }
}

static void write_json_text(const char *text, FILE *out)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < ' ')
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void write_json(const cf_list *list, FILE *out)
{
    cf_counts counts = cf_count(list);
    fprintf(out, "{\"passed\": %zu, \"failed\": %zu, \"skipped\": %zu,\n \"cases\": [", counts.passed,
            counts.failed, counts.skipped);
    for (size_t i = 0; i < list->count; i++) {
        const cf_case *item = &list->items[i];
        fputs(i == 0 ? "\n  {\"case\": " : ",\n  {\"case\": ", out);
        write_json_text(item->name, out);
        fputs(", \"op\": ", out);
        write_json_text(operator_of(item), out);
        fprintf(out, ", \"status\": \"%s\", \"seconds\": %.6f, \"message\": ", outcome_word(item),
                item->seconds);
        write_json_text(reason_of(item), out);
        fputc('}', out);
    }
    fputs("\n ]}\n", out);
}

static void write_xml_text(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '<' || c == '>' || c == '&' || c == '"')
            fprintf(out, "&#%d;", c);
        else
            fputc(c < ' ' ? ' ' : c, out);
    }
}

static void write_xml(const cf_list *list, FILE *out)
{
    cf_counts counts = cf_count(list);
    double seconds = 0;
    for (size_t i = 0; i < list->count; i++)
        seconds += list->items[i].seconds;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"dqrun-conformance\" tests=\"%zu\" "
            "failures=\"%zu\" skipped=\"%zu\" time=\"%.3f\">\n",
            list->count, counts.failed, counts.skipped, seconds);
    for (size_t i = 0; i < list->count; i++) {
        const cf_case *item = &list->items[i];
        fputs("<testcase classname=\"", out);
        write_xml_text(operator_of(item), out);
        fputs("\" name=\"", out);
        write_xml_text(item->name, out);
        fprintf(out, "\" time=\"%.6f\"", item->seconds);
        if (item->outcome == CF_PASSED) {
            fputs("/>\n", out);
            continue;
        }
        fputs(item->outcome == CF_SKIPPED ? "><skipped message=\"" : "><failure message=\"", out);
        write_xml_text(reason_of(item), out);
        fputs("\"/></testcase>\n", out);
    }
    fputs("</testsuite>\n", out);
}

static const struct {
    const char *ending;
    void (*write)(const cf_list *list, FILE *out);
} forms[] = {{".tsv", write_tsv}, {".json", write_json}, {".xml", write_xml}};

/* Index in `forms`, or their number. */
static size_t form_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    size_t i = 0;
    while (i < sizeof forms / sizeof forms[0] && (dot == NULL || strcmp(dot, forms[i].ending) != 0))
        i++;
    return i;
}

bool cf_report_known(const char *path)
{
    return form_of(path) < sizeof forms / sizeof forms[0];
}

bool cf_write_report(const cf_list *list, const char *path)
{
    char *part = cf_format("%s.part", path);
    FILE *out = fopen(part, "w");
    bool good = out != NULL;
    if (good) {
        forms[form_of(path)].write(list, out);
        good = ferror(out) == 0;
        good = fclose(out) == 0 && good;
        good = good && rename(part, path) == 0;
    }
    if (!good)
        cf_complain("%s: could not be written: %s", path, strerror(errno));
    free(part);
    return good;
}
