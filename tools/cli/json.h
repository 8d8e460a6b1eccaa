/* SPDX-License-Identifier: Apache-2.0 */
/* JSON for scripts: one document on standard output, printed whole when a command has succeeded. */
#ifndef DQ_TOOLS_CLI_JSON_H
#define DQ_TOOLS_CLI_JSON_H

#include <dqrun/dqrun.h>

#include <stdio.h>

/** A document that is being written. Keys are NULL inside of arrays. */
typedef struct cli_json {
    FILE *to; /**< memory */
    char *text;
    size_t size;
    bool first; /**< nothing stands in the innermost object or array yet */
    size_t depth;
} cli_json;

dq_status cli_json_start(cli_json *json, dq_error *err);
/** Prints the document when `status` is DQ_OK, and frees it. Returns `status` or what failed. */
dq_status cli_json_finish(cli_json *json, dq_status status, dq_error *err);

void cli_json_begin_object(cli_json *json, const char *key);
void cli_json_end_object(cli_json *json);
void cli_json_begin_array(cli_json *json, const char *key);
void cli_json_end_array(cli_json *json);
/** Bytes that are not UTF-8 become U+FFFD, one each. NULL is null. */
void cli_json_text(cli_json *json, const char *key, const char *text);
void cli_json_text_of(cli_json *json, const char *key, const char *text, size_t length);
void cli_json_bool(cli_json *json, const char *key, bool value);
void cli_json_size(cli_json *json, const char *key, size_t value);
void cli_json_int(cli_json *json, const char *key, int64_t value);
/** With that many decimal places. */
void cli_json_decimal(cli_json *json, const char *key, double value, int places);
void cli_json_null(cli_json *json, const char *key);
/** Element i of a tensor: integers exactly, floats so that they read back as the same number; "NaN",
 * "Infinity" and "-Infinity" as texts, as JSON has no such numbers; complex numbers as texts. */
void cli_json_element(cli_json *json, const char *key, const dq_tensor *tensor, size_t i);
/** The same for a double. */
void cli_json_double(cli_json *json, const char *key, double value);

#endif
