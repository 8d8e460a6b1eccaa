/* SPDX-License-Identifier: Apache-2.0 */
/* Printing of outputs as a table or JSON. */
#include "cli/outputs.h"

#include "cli/terminal.h"
#include "io/common.h"
#include "io/hash.h"
#include "io/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 6, FIRST_VALUES = 5, CELL = 320 };

typedef struct row {
    char cell[COLUMNS][CELL];
} row;

static const row titles = {{"output", "type", "shape", "range", "mean", "first values"}};

/* Terminal columns of UTF-8 text of narrow characters. */
static int width(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static void put_shape(const dq_tensor *t, char *cell)
{
    size_t used = (size_t)snprintf(cell, CELL, "[");
    for (size_t i = 0; i < dq_tensor_rank(t) && used < CELL; i++)
        used += (size_t)snprintf(cell + used, CELL - used, "%s%" PRId64, i ? "," : "", dq_tensor_dims(t)[i]);
    if (used < CELL)
        snprintf(cell + used, CELL - used, "]");
}

typedef struct statistics {
    bool are_numbers;      /* The type is ordered. */
    size_t count, numbers; /* Number of elements; number of those that are not NaN. */
    size_t low, high;      /* Indices of the smallest and largest element. */
    double mean;
} statistics;

static statistics statistics_of(const dq_tensor *t)
{
    dq_dtype dtype = dq_tensor_dtype(t);
    statistics s = {.count = dq_tensor_count(t)};
    s.are_numbers = dtype != DQ_STRING && dtype != DQ_COMPLEX64 && dtype != DQ_COMPLEX128;
    double sum = 0, least = 0, most = 0;
    for (size_t i = 0; s.are_numbers && i < s.count; i++) {
        double value = dq_tensor_value(t, i);
        if (isnan(value))
            continue;
        if (!s.numbers || value < least)
            least = value, s.low = i;
        if (!s.numbers || value > most)
            most = value, s.high = i;
        sum += value;
        s.numbers++;
    }
    s.mean = s.numbers ? io_unsigned_nan(sum / (double)s.numbers) : 0;
    return s;
}

static void put_statistics(const dq_tensor *t, char *range, char *mean)
{
    statistics s = statistics_of(t);
    snprintf(range, CELL, "-");
    snprintf(mean, CELL, "-");
    if (!s.are_numbers)
        return;
    char from[IO_VALUE_TEXT], to[IO_VALUE_TEXT], nans[40] = "";
    if (s.numbers < s.count)
        snprintf(nans, sizeof nans, "%s%zu NaN", s.numbers ? ", " : "", s.count - s.numbers);
    if (s.numbers) {
        snprintf(range, CELL, "%s … %s%s", io_value_text(t, s.low, 6, from), io_value_text(t, s.high, 6, to),
                 nans);
        snprintf(mean, CELL, "%.6g", s.mean);
    } else if (s.count) {
        snprintf(range, CELL, "%s", nans);
    }
}

static void put_values(const dq_tensor *t, char *cell)
{
    size_t count = dq_tensor_count(t), used = 0;
    char value[IO_VALUE_TEXT];
    *cell = 0;
    for (size_t i = 0; i < count && i < FIRST_VALUES && used + IO_VALUE_TEXT < CELL; i++)
        used +=
            (size_t)snprintf(cell + used, CELL - used, "%s%s", i ? " " : "", io_value_text(t, i, 6, value));
    if (count > FIRST_VALUES && used < CELL)
        snprintf(cell + used, CELL - used, " …");
}

static void fill(const char *name, const dq_tensor *t, row *r)
{
    snprintf(r->cell[0], CELL, "%s", name);
    io_printable(r->cell[0]);
    if (dq_tensor_kind(t) != DQ_KIND_TENSOR) {
        size_t count = dq_tensor_count(t);
        bool sequence = dq_tensor_kind(t) == DQ_KIND_SEQUENCE;
        snprintf(r->cell[1], CELL, "%s(%s)", sequence ? "seq" : "optional",
                 dq_dtype_name(dq_tensor_dtype(t)));
        if (sequence)
            snprintf(r->cell[2], CELL, "%zu item%s", count, count == 1 ? "" : "s");
        else
            snprintf(r->cell[2], CELL, count ? "holds a value" : "empty");
        for (int c = 3; c < COLUMNS; c++)
            snprintf(r->cell[c], CELL, "-");
        return;
    }
    snprintf(r->cell[1], CELL, "%s", dq_dtype_name(dq_tensor_dtype(t)));
    put_shape(t, r->cell[2]);
    put_statistics(t, r->cell[3], r->cell[4]);
    put_values(t, r->cell[5]);
}

/* A list has a row of its own, and rows for up to this number of items. */
enum { MAX_ITEMS = 100 };

static size_t rows_of(const dq_tensor *t)
{
    size_t rows = 1;
    for (size_t i = 0; i < MAX_ITEMS && dq_tensor_item(t, i); i++)
        rows += rows_of(dq_tensor_item(t, i));
    return rows;
}

static row *fill_all(const char *name, const dq_tensor *t, row *r)
{
    fill(name, t, r++);
    for (size_t i = 0; i < MAX_ITEMS && dq_tensor_item(t, i); i++) {
        char item[CELL];
        snprintf(item, sizeof item, "%.280s[%zu]", name, i);
        r = fill_all(item, dq_tensor_item(t, i), r);
    }
    return r;
}

static void print(const row *r, const int widths[COLUMNS], bool is_title)
{
    if (is_title)
        fputs(cli_style_on(stdout, CLI_STYLE_TITLE), stdout);
    for (int c = 0; c < COLUMNS - 1; c++)
        printf("%s%*s  ", r->cell[c], widths[c] - width(r->cell[c]), "");
    printf("%s%s\n", r->cell[COLUMNS - 1], is_title ? cli_style_off(stdout) : "");
}

dq_status cli_show(const cli_outputs *outputs, dq_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < outputs->count; i++)
        count += rows_of(outputs->tensors[i]);
    row *rows = calloc(count + 1, sizeof *rows);
    if (!rows)
        return io_no_memory(err);
    int widths[COLUMNS] = {0};
    rows[0] = titles;
    row *next = rows + 1;
    for (size_t i = 0; i < outputs->count; i++)
        next = fill_all(outputs->names[i], outputs->tensors[i], next);
    for (size_t i = 0; i <= count; i++) {
        for (int c = 0; c < COLUMNS; c++) {
            int w = width(rows[i].cell[c]);
            widths[c] = w > widths[c] ? w : widths[c];
        }
    }
    for (size_t i = 0; i <= count; i++)
        print(&rows[i], widths, i == 0);
    free(rows);
    return DQ_OK;
}

void cli_show_line(const cli_outputs *outputs)
{
    row r;
    for (size_t i = 0; i < outputs->count; i++) {
        fill(outputs->names[i], outputs->tensors[i], &r);
        printf("%s%s %s%s%s", i ? ", " : "", r.cell[0], r.cell[1],
               dq_tensor_kind(outputs->tensors[i]) == DQ_KIND_TENSOR ? "" : " ", r.cell[2]);
        if (*r.cell[3] != '-' || r.cell[3][1])
            printf(" %s", r.cell[3]);
    }
}

/* The type as "float[1,10]" or "seq(float)[2]". */
static void put_type(const dq_tensor *t, char *cell)
{
    char text[IO_TYPE_TEXT];
    if (dq_tensor_kind(t) == DQ_KIND_TENSOR)
        snprintf(cell, CELL, "%.300s",
                 io_type_text(dq_tensor_dtype(t), dq_tensor_rank(t), dq_tensor_dims(t), text));
    else
        snprintf(cell, CELL, "%s(%s)[%zu]", dq_tensor_kind(t) == DQ_KIND_SEQUENCE ? "seq" : "optional",
                 dq_dtype_name(dq_tensor_dtype(t)), dq_tensor_count(t));
}

void cli_show_hashes(const cli_outputs *outputs, const char *prefix)
{
    char hash[SHA256_TEXT], name[1024], type[CELL];
    for (size_t i = 0; i < outputs->count; i++) {
        put_type(outputs->tensors[i], type);
        snprintf(name, sizeof name, "%.500s%s%.500s", prefix ? prefix : "", prefix ? ": " : "",
                 outputs->names[i]);
        printf("%s  %s %s\n", io_hash(outputs->tensors[i], hash), io_printable(name), type);
    }
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void put_tensor(const dq_tensor *t, cli_json *json)
{
    statistics s = statistics_of(t);
    cli_json_begin_array(json, "shape");
    for (size_t i = 0; i < dq_tensor_rank(t); i++)
        cli_json_int(json, NULL, dq_tensor_dims(t)[i]);
    cli_json_end_array(json);
    if (s.numbers) {
        cli_json_element(json, "min", t, s.low);
        cli_json_element(json, "max", t, s.high);
        cli_json_double(json, "mean", s.mean);
    } else {
        cli_json_null(json, "min");
        cli_json_null(json, "max");
        cli_json_null(json, "mean");
    }
    cli_json_size(json, "nan", s.are_numbers ? s.count - s.numbers : 0);
    cli_json_begin_array(json, "first");
    for (size_t i = 0; i < s.count && i < FIRST_VALUES; i++)
        cli_json_element(json, NULL, t, i);
    cli_json_end_array(json);
}

static void put_output(const char *name, const dq_tensor *t, bool hashes, cli_json *json)
{
    static const char *const kinds[] = {
        [DQ_KIND_TENSOR] = "tensor", [DQ_KIND_SEQUENCE] = "sequence", [DQ_KIND_OPTIONAL] = "optional"};
    dq_kind kind = dq_tensor_kind(t);
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "name", name);
    cli_json_text(json, "kind", kinds[kind]);
    cli_json_text(json, "type", dq_dtype_name(dq_tensor_dtype(t)));
    if (hashes) {
        char hash[SHA256_TEXT];
        cli_json_text(json, "sha256", io_hash(t, hash));
    }
    if (kind == DQ_KIND_TENSOR) {
        put_tensor(t, json);
    } else {
        char item[CELL];
        cli_json_begin_array(json, "items");
        for (size_t i = 0; dq_tensor_item(t, i); i++) {
            snprintf(item, sizeof item, "%.280s[%zu]", name, i);
            put_output(item, dq_tensor_item(t, i), false, json);
        }
        cli_json_end_array(json);
    }
    cli_json_end_object(json);
}

void cli_show_json(const cli_outputs *outputs, bool hashes, cli_json *json)
{
    cli_json_begin_array(json, "outputs");
    for (size_t i = 0; i < outputs->count; i++)
        put_output(outputs->names[i], outputs->tensors[i], hashes, json);
    cli_json_end_array(json);
}
