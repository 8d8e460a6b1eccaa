/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

typedef struct row {
    const char *name;
    const char *reason; /* NULL: must pass. */
} row;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const row *)a)->name, ((const row *)b)->name);
}

/* Splits the line at its tabs. False unless there are exactly three columns. */
static bool cut(char *line, char *column[3])
{
    for (int i = 0; i < 3; i++) {
        column[i] = line;
        char *tab = strchr(line, '\t');
        if ((tab == NULL) != (i == 2))
            return false;
        if (tab != NULL) {
            *tab = '\0';
            line = tab + 1;
        }
    }
    return true;
}

/* Reads the rows of the table; names and reasons point into `text`. NULL after an error message. */
static row *read_rows(const char *path, char *text, size_t *count)
{
    row *rows = NULL;
    size_t capacity = 0, number = 0;
    *count = 0;
    for (char *line = text; line != NULL && *line != '\0';) {
        char *next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        char *column[3];
        bool good = cut(line, column);
        if (number++ == 0)
            good = good && strcmp(column[0], "case") == 0;
        else
            good = good && (strcmp(column[1], "pass") == 0 || strcmp(column[1], "skip") == 0);
        if (!good) {
            cf_complain("%s: line %zu is not: case, tab, pass or skip, tab, reason", path, number);
            free(rows);
            return NULL;
        }
        if (*count == capacity) {
            capacity = capacity * 2 + 64;
            rows = cf_realloc(rows, capacity, sizeof *rows);
        }
        if (number > 1)
            rows[(*count)++] = (row){column[0], column[1][0] == 's' ? column[2] : NULL};
        line = next;
    }
    if (number == 0)
        cf_complain("%s: is empty, expected a table that begins with the line: case, expected, reason", path);
    return rows;
}

bool cf_expect(const char *path, cf_list *list)
{
    size_t size, count;
    char *text = (char *)cf_read_file(path, &size);
    if (text == NULL)
        return false;
    row *rows = read_rows(path, text, &count);
    if (rows == NULL) {
        free(text);
        return false;
    }
    qsort(rows, count, sizeof *rows, by_name);
    bool good = true;
    for (size_t i = 1; i < count && good; i++)
        if (strcmp(rows[i - 1].name, rows[i].name) == 0)
            good = cf_complain("%s: has the case %s twice", path, rows[i].name);
    for (size_t i = 0; i < list->count && good; i++) {
        row key = {list->items[i].name, NULL};
        const row *found = bsearch(&key, rows, count, sizeof *rows, by_name);
        if (found != NULL && found->reason != NULL)
            list->items[i].skip_reason = cf_strdup(found->reason);
    }
    free(rows);
    free(text);
    return good;
}
