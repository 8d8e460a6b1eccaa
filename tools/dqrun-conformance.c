/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun-conformance: runs folders of model.onnx and test_data_set_N, or batch files, and counts passed cases.
 */
#include "conformance/conformance.h"
#include "dqrun/dqrun.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_GOOD = 0, EXIT_DIFFERS = 1, EXIT_USAGE = 2, EXIT_NO_RESOURCES = 6, EXIT_NOT_WRITTEN = 74 };

static const char usage_text[] =
    "usage: dqrun-conformance [options] DIR…\n"
    "       dqrun-conformance [options] --batch FILE…\n"
    "Runs ONNX test cases and compares their outputs. DIR is a case (model.onnx, "
    "test_data_set_N/{input,output}_M.pb)\n"
    "or holds cases, also further down. Each case runs in a process of its own.\n"
    "\n"
    "  --batch             the arguments are batch files of many cases (docs/dqrun-conformance.md)\n"
    "  --filter GLOB       only cases whose name matches; may be given several times\n"
    "  --expected FILE     a .tsv of case, pass or skip, reason: cases marked skip may fail\n"
    "  --report FILE       write the results to FILE: .tsv, .json or .xml (JUnit)\n"
    "  --jobs N            processes at a time (default: the number of processors)\n"
    "  --timeout SECONDS   time a case may take (default 60)\n"
    "  --memory MIB        address space a case may take, 0 for no limit (default 8192)\n"
    "  --isa LEVEL         highest instruction set to use (default: environment variable DQRUN_ISA, else the "
    "best)\n"
    "  --list-isa          print the instruction sets that this processor has, and do nothing else\n"
    "  --threads N         threads of each case (default 1)\n"
    "  --no-fuse           run the graphs as written\n"
    "  --schema-dir DIR    operator schemas that override or add to the library's\n"
    "  -v, --verbose       a line for each case\n"
    "  -h, --help          this text\n"
    "  --version           the library's version\n"
    "\n"
    "Floats agree within rtol 1e-3 and atol 1e-7, NaN with NaN; integers, types and shapes exactly. The last "
    "line is\n"
    "\"N passed, N failed, N skipped\". Exit codes: 0 nothing failed, 1 something failed, 2 usage, 6 out of "
    "memory,\n"
    "74 the report could not be written.\n";

typedef struct arguments {
    cf_options options;
    bool batch;
    char **globs;
    size_t glob_count;
    const char *expected;
    const char *report;
} arguments;

static bool parse_number(const char *option, const char *text, unsigned long low, unsigned long high,
                         unsigned *out)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || text[0] == '-' || n < low || n > high)
        return cf_complain("--%s is '%s', expected a whole number from %lu to %lu", option, text, low, high);
    *out = (unsigned)n;
    return true;
}

static bool parse_seconds(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end != '\0' || !(*out > 0 && *out <= 86400))
        return cf_complain("--timeout is '%s', expected seconds, more than 0 and at most 86400", text);
    return true;
}

/* Whether the level exists. `source` is the option or environment variable that names it. */
static bool known_isa(const char *source, const char *name)
{
    bool available;
    const char *known;
    for (size_t i = 0; (known = dq_isa_name(i, &available)) != NULL; i++)
        if (strcmp(name, known) == 0)
            return available || cf_complain("%s is '%s', which this processor does not have", source, name);
    fprintf(stderr, "dqrun-conformance: %s is '%s', expected one of", source, name);
    for (size_t i = 0; (known = dq_isa_name(i, &available)) != NULL; i++)
        fprintf(stderr, " %s", known);
    fputc('\n', stderr);
    return false;
}

static void list_isa(void)
{
    bool available;
    const char *name;
    for (size_t i = 0; (name = dq_isa_name(i, &available)) != NULL; i++)
        if (available)
            puts(name);
}

static bool take_option(int which, arguments *a)
{
    switch (which) {
    case 'b':
        a->batch = true;
        return true;
    case 'f':
        a->globs = cf_realloc(a->globs, a->glob_count + 1, sizeof *a->globs);
        a->globs[a->glob_count++] = optarg;
        return true;
    case 'e':
        a->expected = optarg;
        return true;
    case 'r':
        a->report = optarg;
        return cf_report_known(optarg) ||
               cf_complain("--report is '%s', expected a name that ends in .tsv, .json or .xml", optarg);
    case 'j':
        return parse_number("jobs", optarg, 1, 1024, &a->options.jobs);
    case 't':
        return parse_seconds(optarg, &a->options.timeout);
    case 'm':
        return parse_number("memory", optarg, 0, 1u << 24, &a->options.memory_mib);
    case 'i':
        a->options.isa = optarg;
        return known_isa("--isa", optarg);
    case 'n':
        return parse_number("threads", optarg, 1, 1024, &a->options.threads);
    case 'u':
        a->options.no_fuse = true;
        return true;
    case 's':
        a->options.schema_dir = optarg;
        return true;
    case 'v':
        a->options.verbose = true;
        return true;
    default:
        fputs("dqrun-conformance: --help lists the options\n", stderr);
        return false;
    }
}

/* Parses the arguments. Ends the program for options that only print. */
static bool parse_arguments(int argc, char **argv, arguments *a)
{
    static const struct option known[] = {
        {"batch", no_argument, NULL, 'b'},          {"filter", required_argument, NULL, 'f'},
        {"expected", required_argument, NULL, 'e'}, {"report", required_argument, NULL, 'r'},
        {"jobs", required_argument, NULL, 'j'},     {"timeout", required_argument, NULL, 't'},
        {"memory", required_argument, NULL, 'm'},   {"isa", required_argument, NULL, 'i'},
        {"list-isa", no_argument, NULL, 'l'},       {"threads", required_argument, NULL, 'n'},
        {"no-fuse", no_argument, NULL, 'u'},        {"schema-dir", required_argument, NULL, 's'},
        {"verbose", no_argument, NULL, 'v'},        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},        {NULL, 0, NULL, 0}};
    int which;
    while ((which = getopt_long(argc, argv, "hv", known, NULL)) != -1) {
        if (which == 'h')
            fputs(usage_text, stdout);
        else if (which == 'V')
            printf("dqrun-conformance %s\n", dq_version());
        else if (which == 'l')
            list_isa();
        if (which == 'h' || which == 'V' || which == 'l')
            exit(fflush(stdout) == 0 ? EXIT_GOOD : EXIT_NOT_WRITTEN);
        if (!take_option(which, a))
            return false;
    }
    if (optind == argc)
        return cf_complain(a->batch ? "no batch file is named"
                                    : "no folder of cases is named; --help says more");
    const char *isa = getenv("DQRUN_ISA");
    if (a->options.isa || !isa || !*isa)
        return true;
    a->options.isa = isa;
    return known_isa("environment variable DQRUN_ISA", isa);
}

static bool find_cases(int argc, char **argv, const arguments *a, cf_list *list)
{
    for (int i = optind; i < argc; i++)
        if (!(a->batch ? cf_read_batch(argv[i], list) : cf_find_cases(argv[i], list)))
            return false;
    cf_filter(list, a->globs, a->glob_count);
    if (list->count == 0)
        return cf_complain("no case has a name that matches --filter");
    if (list->count > UINT32_MAX)
        return cf_complain("%zu cases are more than one run takes", list->count);
    return a->expected == NULL || cf_expect(a->expected, list);
}

static int run_and_report(const arguments *a, cf_list *list)
{
    if (!cf_run_all(list, &a->options, cf_run_case))
        return EXIT_NO_RESOURCES;
    bool written = a->report == NULL || cf_write_report(list, a->report);
    cf_print_summary(list, stdout);
    if (fflush(stdout) != 0 || !written)
        return EXIT_NOT_WRITTEN;
    return cf_count(list).failed == 0 ? EXIT_GOOD : EXIT_DIFFERS;
}

int main(int argc, char **argv)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    arguments a = {.options = {.jobs = processors > 0 && processors < 1024 ? (unsigned)processors : 1,
                               .threads = 1,
                               .timeout = 60,
                               .memory_mib = 8192}};
    cf_list list = {NULL, 0, 0};
    int code = EXIT_USAGE;
    if (parse_arguments(argc, argv, &a) && find_cases(argc, argv, &a, &list))
        code = run_and_report(&a, &list);
    cf_free_list(&list);
    free(a.globs);
    return code;
}
