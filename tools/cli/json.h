/* SPDX-License-Identifier: Apache-2.0 */
/* JSON for scripts: one document on standard output, printed whole when a command has succeeded. */
#ifndef DQ_TOOLS_CLI_JSON_H
#define DQ_TOOLS_CLI_JSON_H

#include <dqrun/dqrun.h>

#include <stdio.h>

/** A document that is being written. Keys are NULL inside arrays. */
typedef struct cli_json {
    FILE *to; /**< A memory stream. */
    char *text;
    size_t size;
    bool first; /**< The innermost object or array is still empty. */
    size_t depth;
} cli_json;

dq_status cli_json_start(cli_json *json, dq_error *err);
/** Prints the document if `status` is DQ_OK, and frees it. Returns `status` or an error of its own. */
dq_status cli_json_finish(cli_json *json, dq_status status, dq_error *err);
/** In place of cli_json_finish: gives the document, malloc'ed and with a NUL after it, to the caller. */
dq_status cli_json_take(cli_json *json, char **text, size_t *size, dq_error *err);

void cli_json_begin_object(cli_json *json, const char *key);
void cli_json_end_object(cli_json *json);
void cli_json_begin_array(cli_json *json, const char *key);
void cli_json_end_array(cli_json *json);
/** Writes a text. Each byte that is not UTF-8 becomes U+FFFD. NULL becomes null. */
void cli_json_text(cli_json *json, const char *key, const char *text);
void cli_json_text_of(cli_json *json, const char *key, const char *text, size_t length);
void cli_json_bool(cli_json *json, const char *key, bool value);
void cli_json_size(cli_json *json, const char *key, size_t value);
void cli_json_int(cli_json *json, const char *key, int64_t value);
/** Writes a number with that many decimal places. */
void cli_json_decimal(cli_json *json, const char *key, double value, int places);
void cli_json_null(cli_json *json, const char *key);
/** Writes element i of a tensor: integers exactly, and floats so that they read back as the same number.
 * "NaN", "Infinity" and "-Infinity" become texts, because JSON has no such numbers; so do complex numbers. */
void cli_json_element(cli_json *json, const char *key, const dq_tensor *tensor, size_t i);
/** The same for a double. */
void cli_json_double(cli_json *json, const char *key, double value);

#endif
