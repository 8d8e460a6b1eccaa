/* SPDX-License-Identifier: Apache-2.0 */
/* The table of outputs. */
#include "cli/outputs.h"

#include "io/common.h"
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

/* Columns that a terminal gives to UTF-8 text of narrow characters. */
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

static void put_statistics(const dq_tensor *t, char *range, char *mean)
{
    dq_dtype dtype = dq_tensor_dtype(t);
    snprintf(range, CELL, "-");
    snprintf(mean, CELL, "-");
    if (dtype == DQ_STRING || dtype == DQ_COMPLEX64 || dtype == DQ_COMPLEX128)
        return;
    size_t count = dq_tensor_count(t), low = 0, high = 0, numbers = 0;
    double sum = 0, least = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        double value = dq_tensor_value(t, i);
        if (isnan(value))
            continue;
        if (!numbers || value < least)
            least = value, low = i;
        if (!numbers || value > most)
            most = value, high = i;
        sum += value;
        numbers++;
    }
    char from[IO_VALUE_TEXT], to[IO_VALUE_TEXT], nans[40] = "";
    if (numbers < count)
        snprintf(nans, sizeof nans, "%s%zu NaN", numbers ? ", " : "", count - numbers);
    if (numbers) {
        snprintf(range, CELL, "%s … %s%s", io_value_text(t, low, 6, from), io_value_text(t, high, 6, to),
                 nans);
        snprintf(mean, CELL, "%.6g", io_unsigned_nan(sum / (double)numbers));
    } else if (count) {
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

/* A list has a row for itself and rows for its items, as far as a table is good for it. */
enum { MOST_ITEMS = 100 };

static size_t rows_of(const dq_tensor *t)
{
    size_t rows = 1;
    for (size_t i = 0; i < MOST_ITEMS && dq_tensor_item(t, i); i++)
        rows += rows_of(dq_tensor_item(t, i));
    return rows;
}

static row *fill_all(const char *name, const dq_tensor *t, row *r)
{
    fill(name, t, r++);
    for (size_t i = 0; i < MOST_ITEMS && dq_tensor_item(t, i); i++) {
        char item[CELL];
        snprintf(item, sizeof item, "%.280s[%zu]", name, i);
        r = fill_all(item, dq_tensor_item(t, i), r);
    }
    return r;
}

static void print(const row *r, const int widths[COLUMNS])
{
    for (int c = 0; c < COLUMNS - 1; c++)
        printf("%s%*s  ", r->cell[c], widths[c] - width(r->cell[c]), "");
    printf("%s\n", r->cell[COLUMNS - 1]);
}

dq_status cli_show(const cli_outputs *outputs, dq_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < outputs->count; i++)
        count += rows_of(outputs->tensors[i]);
    row *rows = calloc(count + 1, sizeof *rows);
    if (!rows)
        return io_fail(err, DQ_OUT_OF_MEMORY, "out of memory");
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
        print(&rows[i], widths);
    free(rows);
    return DQ_OK;
}
