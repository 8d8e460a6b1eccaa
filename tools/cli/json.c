/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json.h"

#include "io/common.h"
#include "io/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

dq_status cli_json_start(cli_json *json, dq_error *err)
{
    *json = (cli_json){.first = true};
    json->to = open_memstream(&json->text, &json->size);
    return json->to ? DQ_OK : io_no_memory(err);
}

dq_status cli_json_take(cli_json *json, char **text, size_t *size, dq_error *err)
{
    bool bad = ferror(json->to) != 0;
    if (fclose(json->to))
        bad = true;
    *text = json->text;
    *size = json->size;
    *json = (cli_json){0};
    if (!bad)
        return DQ_OK;
    free(*text);
    *text = NULL;
    return io_no_memory(err);
}

dq_status cli_json_finish(cli_json *json, dq_status status, dq_error *err)
{
    char *text = NULL;
    size_t size = 0;
    dq_status taken = cli_json_take(json, &text, &size, status == DQ_OK ? err : NULL);
    if (status == DQ_OK && taken == DQ_OK) {
        fwrite(text, 1, size, stdout);
        putchar('\n');
    }
    free(text);
    return status == DQ_OK ? taken : status;
}

enum { LINE_DEPTH = 2 }; /* Objects in arrays begin a line down to that depth. */

/* Writes a comma after the previous value, then the key. */
static void put_key(cli_json *json, const char *key)
{
    if (!json->first)
        fputs(", ", json->to);
    json->first = false;
    if (!key)
        return;
    io_write_json(json->to, key, strlen(key));
    fputs(": ", json->to);
}

static void open_bracket(cli_json *json, const char *key, char bracket)
{
    put_key(json, key);
    fputc(bracket, json->to);
    json->first = true;
    json->depth++;
}

static void close_bracket(cli_json *json, char bracket)
{
    fputc(bracket, json->to);
    json->first = false;
    json->depth--;
}

void cli_json_begin_object(cli_json *json, const char *key)
{
    if (!key && json->depth && json->depth <= LINE_DEPTH) {
        fputs(json->first ? "\n  " : ",\n  ", json->to);
        json->first = true; /* The comma is already written. */
    }
    open_bracket(json, key, '{');
}

void cli_json_end_object(cli_json *json)
{
    close_bracket(json, '}');
}

void cli_json_begin_array(cli_json *json, const char *key)
{
    open_bracket(json, key, '[');
}

void cli_json_end_array(cli_json *json)
{
    close_bracket(json, ']');
}

void cli_json_text_of(cli_json *json, const char *key, const char *text, size_t length)
{
    put_key(json, key);
    io_write_json(json->to, text, length);
}

void cli_json_text(cli_json *json, const char *key, const char *text)
{
    if (text)
        cli_json_text_of(json, key, text, strlen(text));
    else
        cli_json_null(json, key);
}

void cli_json_bool(cli_json *json, const char *key, bool value)
{
    put_key(json, key);
    fputs(value ? "true" : "false", json->to);
}

void cli_json_size(cli_json *json, const char *key, size_t value)
{
    put_key(json, key);
    fprintf(json->to, "%zu", value);
}

void cli_json_int(cli_json *json, const char *key, int64_t value)
{
    put_key(json, key);
    fprintf(json->to, "%" PRId64, value);
}

void cli_json_decimal(cli_json *json, const char *key, double value, int places)
{
    put_key(json, key);
    fprintf(json->to, "%.*f", places, value);
}

void cli_json_null(cli_json *json, const char *key)
{
    put_key(json, key);
    fputs("null", json->to);
}

/* `digits`: enough to distinguish all numbers of the type. */
static void put_number(cli_json *json, const char *key, double value, int digits)
{
    if (isnan(value)) {
        cli_json_text(json, key, "NaN");
    } else if (isinf(value)) {
        cli_json_text(json, key, value > 0 ? "Infinity" : "-Infinity");
    } else {
        put_key(json, key);
        fprintf(json->to, "%.*g", digits, value);
    }
}

void cli_json_double(cli_json *json, const char *key, double value)
{
    put_number(json, key, value, 17);
}

void cli_json_element(cli_json *json, const char *key, const dq_tensor *tensor, size_t i)
{
    dq_dtype dtype = dq_tensor_dtype(tensor);
    char text[IO_VALUE_TEXT];
    if (dtype == DQ_STRING) {
        size_t length = 0;
        const char *string = dq_tensor_string(tensor, i, &length);
        cli_json_text_of(json, key, string ? string : "", string ? length : 0);
    } else if (io_is_integer(dtype) || dtype == DQ_BOOL) {
        put_key(json, key);
        fputs(io_value_text(tensor, i, 17, text), json->to);
    } else if (dtype == DQ_COMPLEX64 || dtype == DQ_COMPLEX128) {
        cli_json_text(json, key, io_value_text(tensor, i, dtype == DQ_COMPLEX64 ? 9 : 17, text));
    } else {
        put_number(json, key, dq_tensor_value(tensor, i), dtype == DQ_DOUBLE ? 17 : 9);
    }
}
