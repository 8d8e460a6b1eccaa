/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/suggest.h"

#include "io/text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int small_letter(char c)
{
    return tolower((unsigned char)c);
}

size_t cli_edit_distance(const char *a, const char *b)
{
    /* Three rows of the table of distances between prefixes of both words: row i is that of i bytes of a. */
    size_t rows[3][CLI_SUGGEST_BYTES + 1];
    size_t n = smaller(strlen(a), CLI_SUGGEST_BYTES), m = smaller(strlen(b), CLI_SUGGEST_BYTES);
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            int x = small_letter(a[i - 1]), y = small_letter(b[j - 1]);
            size_t best = smaller(above[j - 1] + (x != y), smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && x == small_letter(b[j - 2]) && y == small_letter(a[i - 2]))
                best = smaller(best, above2[j - 2] + 1);
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

cli_suggestion cli_suggest_for(const char *word)
{
    return (cli_suggestion){.word = word, .distance = SIZE_MAX};
}

void cli_suggest_try(cli_suggestion *s, const char *candidate)
{
    size_t length = strlen(candidate);
    if (length >= CLI_SUGGEST_BYTES || strlen(s->word) >= CLI_SUGGEST_BYTES)
        return;
    size_t distance = cli_edit_distance(s->word, candidate), most = (length + 2) / 3;
    if (distance > most || distance >= length || distance >= s->distance)
        return;
    s->distance = distance;
    memcpy(s->best, candidate, length + 1);
}

const char *cli_suggest_text(const cli_suggestion *s, const char *before, char buffer[CLI_SUGGEST_TEXT])
{
    *buffer = 0;
    if (s->distance != SIZE_MAX)
        snprintf(buffer, CLI_SUGGEST_TEXT, "; did you mean '%s%s'?", before, s->best);
    return io_printable(buffer);
}
