/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of dqrun-conformance: it finds cases, runs them in separate processes, and reports the results.
 *
 *     cf_find_cases / cf_read_batch  ->  cf_list  ->  cf_expect  ->  cf_run_all
 *         ->  cf_print_summary, cf_write_report
 *
 * This is a tool: a function that finds a mistake of the user prints one message on stderr and returns false.
 * Running out of memory ends the program with exit code 6. */
#ifndef DQRUN_TOOLS_CONFORMANCE_H
#define DQRUN_TOOLS_CONFORMANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum cf_outcome {
    CF_NOT_RUN,
    CF_PASSED,
    CF_FAILED, /**< Refused, a wrong result, or anything else that the expected file may excuse. */
    CF_BROKEN, /**< Crashed, hung or printed: a failure that nothing excuses. */
    CF_SKIPPED
} cf_outcome;

/** The child process's report of one case. Fixed in size, so that a pipe carries it in one write. */
typedef struct cf_result {
    uint32_t index;   /**< Index of the case in its list. */
    uint32_t outcome; /**< A cf_outcome; CF_NOT_RUN means that the case begins now. */
    double seconds;
    char op[96];        /**< operator under test: "QLinearConv", "com.microsoft.QGemm", "(several)" */
    char message[1400]; /**< The reason of the failure, in one sentence. */
} cf_result;

/** Bytes inside a batch file, which stays mapped. */
typedef struct cf_bytes {
    const uint8_t *data;
    size_t size;
} cf_bytes;

/** One case: a folder, or a record of a batch file. */
typedef struct cf_case {
    char *name;     /**< Path of the folder relative to DIR, or the record's name. */
    char *folder;   /**< NULL for a record. */
    cf_bytes batch; /**< The record's body; empty for a folder. */
    cf_outcome outcome;
    char op[96];
    double seconds;
    char *message;     /**< NULL: none */
    char *skip_reason; /**< From the expected file; NULL: the case must pass. */
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
    double timeout;      /**< Time limit of a case in seconds. */
    unsigned memory_mib; /**< Limit of a child's address space; 0: none. */
} cf_options;

/* ---- memory and text (util.c) ------------------------------------------------------------------------- */

/** realloc that never returns NULL; checks `count * size` for overflow. */
void *cf_realloc(void *old, size_t count, size_t size);
char *cf_strdup(const char *text);
/** A new string by printf rules. */
char *cf_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** Prints one message on stderr, after the program's name. Returns false. */
bool cf_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** Seconds of a monotonic clock. */
double cf_now(void);
/** Reads a whole file into new memory and appends a zero. NULL after an error message. */
uint8_t *cf_read_file(const char *path, size_t *size);

/* ---- cases (cases.c, batch.c) ------------------------------------------------------------------------- */

/** Adds `dir` if it holds model.onnx, else every folder below it that does, sorted by name. */
bool cf_find_cases(const char *dir, cf_list *list);
/** Adds every record of a batch file (docs/conformance.md has the layout). The file stays mapped. */
bool cf_read_batch(const char *path, cf_list *list);
/** Appends a case to the list, which takes ownership of `name`. */
cf_case *cf_add(cf_list *list, char *name);
/** Keeps the cases whose names match one of the globs; without globs, all. */
void cf_filter(cf_list *list, char *const *globs, size_t count);
void cf_free_list(cf_list *list);

/** A parsed record of a batch file. The pointers point into the record. */
typedef struct cf_record {
    cf_bytes name;
    cf_bytes model;
    double rtol;
    double atol;
    uint32_t input_count;
    uint32_t output_count;
    cf_bytes values; /**< Inputs, then outputs, each a length and a TensorProto: cf_next_value. */
} cf_record;

/** Parses a record's body. False if its lengths are inconsistent. */
bool cf_parse_record(cf_bytes body, cf_record *record);
/** Removes the next value from the front of `values`. False if its length does not fit. */
bool cf_next_value(cf_bytes *values, cf_bytes *value);

/* ---- what is expected (expected.c) -------------------------------------------------------------------- */

/** Sets the skip reason of each case from a table of case, "pass" or "skip", reason. A case that is not in
 * the table must pass. */
bool cf_expect(const char *path, cf_list *list);

/* ---- running (pool.c, run_case.c) --------------------------------------------------------------------- */

/** Runs one case and fills op, outcome and message, in a child process. It calls `begin` as soon as op is
 * known, so that a later crash is attributed to that operator. */
typedef void cf_runner(const cf_case *item, const cf_options *options, cf_result *result,
                       void (*begin)(const cf_result *));

/** Runs every case with `run`, in at most options->jobs processes at a time. A folder has its own process;
 * the records of batch files share one until it dies. Sets outcome, op, seconds and message of each case.
 * Cases with a skip reason run as well, and become CF_SKIPPED unless they pass or break. */
bool cf_run_all(cf_list *list, const cf_options *options, cf_runner *run);

/** The runner of the tool: loads the model, runs each data set, and compares. */
cf_runner cf_run_case;

/** Name of the operator under test: that of the only node; "(several)" for other graphs. The model's bytes
 * need not be valid. */
void cf_model_op(const uint8_t *model, size_t size, char *op, size_t op_size);

/* ---- reports (report.c) ------------------------------------------------------------------------------- */

typedef struct cf_counts {
    size_t passed;
    size_t failed;
    size_t skipped;
} cf_counts;

cf_counts cf_count(const cf_list *list);
/** Prints a table by operator, failures, unexpected passes, and "N passed, N failed, N skipped" as the last
 * line. */
void cf_print_summary(const cf_list *list, FILE *out);
/** Writes a report in the format of the file's extension: .tsv, .json or .xml (JUnit). */
bool cf_write_report(const cf_list *list, const char *path);
/** Whether cf_write_report supports the extension. */
bool cf_report_known(const char *path);

#endif
