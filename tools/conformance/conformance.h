/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun-conformance from the inside: cases are found, run in processes of their own, and reported.
 *
 *     cf_find_cases / cf_read_batch  ->  cf_list  ->  cf_expect  ->  cf_run_all  ->  cf_print_summary,
 * cf_write_report
 *
 * This is a tool: functions that meet a mistake of the user's print one sentence on stderr and return false;
 * running out of memory ends the program with exit code 6. */
#ifndef DQRUN_TOOLS_CONFORMANCE_H
#define DQRUN_TOOLS_CONFORMANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum cf_outcome {
    CF_NOT_RUN,
    CF_PASSED,
    CF_FAILED, /**< refused, a wrong result, or anything else that the expected file may excuse */
    CF_BROKEN, /**< crashed, hung or printed: a failure that nothing excuses */
    CF_SKIPPED
} cf_outcome;

/** What the child process tells of one case. Fixed in size, so that a pipe carries it in one write. */
typedef struct cf_result {
    uint32_t index;   /**< the case's place in its list */
    uint32_t outcome; /**< a cf_outcome; CF_NOT_RUN says that the case begins now */
    double seconds;
    char op[96];        /**< operator under test: "QLinearConv", "com.microsoft.QGemm", "(several)" */
    char message[1400]; /**< why it did not pass, in one sentence */
} cf_result;

/** Bytes inside a batch file that stays mapped. */
typedef struct cf_bytes {
    const uint8_t *data;
    size_t size;
} cf_bytes;

/** One case: a folder, or a record of a batch file. */
typedef struct cf_case {
    char *name;     /**< folder below the DIR that was named, or the record's name */
    char *folder;   /**< NULL for a record */
    cf_bytes batch; /**< the record's body; empty for a folder */
    cf_outcome outcome;
    char op[96];
    double seconds;
    char *message;     /**< NULL: none */
    char *skip_reason; /**< the expected file's; NULL: the case must pass */
} cf_case;

typedef struct cf_list {
    cf_case *items;
    size_t count;
    size_t capacity;
} cf_list;

typedef struct cf_options {
    unsigned jobs;
    unsigned threads;
    const char *isa;        /**< NULL: the library's choice */
    const char *schema_dir; /**< NULL: the library's own schemas */
    bool no_fuse;
    bool verbose;
    double timeout;      /**< seconds a case may take */
    unsigned memory_mib; /**< address space of a child; 0: no limit */
} cf_options;

/* ---- memory and text (util.c) ------------------------------------------------------------------------- */

/** realloc that never returns NULL; `count * size` is checked. */
void *cf_realloc(void *old, size_t count, size_t size);
char *cf_strdup(const char *text);
/** A new string by printf rules. */
char *cf_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** One sentence on stderr, with the program's name before it. Returns false. */
bool cf_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** Seconds of a clock that only goes forward. */
double cf_now(void);
/** A whole file in new memory, with a zero after it, or NULL after a complaint. */
uint8_t *cf_read_file(const char *path, size_t *size);

/* ---- cases (cases.c, batch.c) ------------------------------------------------------------------------- */

/** Adds `dir` if it holds model.onnx, else every folder below it that does, sorted by name. */
bool cf_find_cases(const char *dir, cf_list *list);
/** Adds every record of a batch file (docs/conformance.md has the layout). The file stays mapped. */
bool cf_read_batch(const char *path, cf_list *list);
/** A new case at the end of the list, which takes over `name`. */
cf_case *cf_add(cf_list *list, char *name);
/** Keeps the cases whose name matches one of the globs; no globs keep all. */
void cf_filter(cf_list *list, char *const *globs, size_t count);
void cf_free_list(cf_list *list);

/** A record of a batch file, taken apart. The pointers point into the record. */
typedef struct cf_record {
    cf_bytes name;
    cf_bytes model;
    double rtol;
    double atol;
    uint32_t input_count;
    uint32_t output_count;
    cf_bytes values; /**< inputs, then outputs, each a length and a TensorProto: cf_next_value */
} cf_record;

/** Takes a record's body apart; false when its lengths do not add up. */
bool cf_parse_record(cf_bytes body, cf_record *record);
/** Cuts the next value off the front of `values`; false at a length that does not fit. */
bool cf_next_value(cf_bytes *values, cf_bytes *value);

/* ---- what is expected (expected.c) -------------------------------------------------------------------- */

/** Gives each case its skip reason from a table of case, "pass" or "skip", reason. A case that the table does
 *  not have must pass. */
bool cf_expect(const char *path, cf_list *list);

/* ---- running (pool.c, run_case.c) --------------------------------------------------------------------- */

/** Runs one case and fills op, outcome and message. Called in a child process. `begin` is to be called as
 * soon as op is known, so that a crash after it can be charged to that operator. */
typedef void cf_runner(const cf_case *item, const cf_options *options, cf_result *result,
                       void (*begin)(const cf_result *));

/** Runs every case with `run`, at most options->jobs processes at a time: a folder has a process of its own,
 * the records of batch files share one until it dies. Cases end with outcome, op, seconds and message. Cases
 * with a skip reason run as well; they become CF_SKIPPED unless they pass or break. */
bool cf_run_all(cf_list *list, const cf_options *options, cf_runner *run);

/** The real runner: loads the model, runs each data set, compares. */
cf_runner cf_run_case;

/** Name of the operator under test: that of the only node; "(several)" for other graphs. Reads the model's
 * bytes without trusting them. */
void cf_model_op(const uint8_t *model, size_t size, char *op, size_t op_size);

/* ---- reports (report.c) ------------------------------------------------------------------------------- */

typedef struct cf_counts {
    size_t passed;
    size_t failed;
    size_t skipped;
} cf_counts;

cf_counts cf_count(const cf_list *list);
/** Table by operator, failures, surprises, and "N passed, N failed, N skipped" as the last line. */
void cf_print_summary(const cf_list *list, FILE *out);
/** Writes a report in the form that the file's ending names: .tsv, .json or .xml (JUnit). */
bool cf_write_report(const cf_list *list, const char *path);
/** Whether cf_write_report knows the ending. */
bool cf_report_known(const char *path);

#endif
