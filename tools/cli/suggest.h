/* SPDX-License-Identifier: Apache-2.0 */
/* "did you mean": finds the candidate that is closest to a mistyped word. */
#ifndef DQ_TOOLS_CLI_SUGGEST_H
#define DQ_TOOLS_CLI_SUGGEST_H

#include <stddef.h>

enum { CLI_SUGGEST_BYTES = 128, CLI_SUGGEST_TEXT = CLI_SUGGEST_BYTES + 32 };

typedef struct cli_suggestion {
    const char *word;
    char best[CLI_SUGGEST_BYTES];
    size_t distance; /**< Of the best candidate; SIZE_MAX: none. */
} cli_suggestion;

cli_suggestion cli_suggest_for(const char *word);

/** Keeps `candidate` if it is closer to the word than earlier ones, and at most a third of its letters
 * differ. Words longer than CLI_SUGGEST_BYTES are not suggested. */
void cli_suggest_try(cli_suggestion *suggestion, const char *candidate);

/** "; did you mean 'x'?", or "" if no candidate is close. `before` is a prefix of x, such as "--". Returns
 * `buffer`. */
const char *cli_suggest_text(const cli_suggestion *suggestion, const char *before,
                             char buffer[CLI_SUGGEST_TEXT]);

/** The edit distance of two words: insertions, deletions, substitutions and swaps of neighboring letters
 * (optimal string alignment), ignoring case. Only the first CLI_SUGGEST_BYTES bytes count. */
size_t cli_edit_distance(const char *a, const char *b);

#endif
