/* SPDX-License-Identifier: Apache-2.0 */
/* "did you mean": the candidate that is closest to a mistyped word. */
#ifndef DQ_TOOLS_CLI_SUGGEST_H
#define DQ_TOOLS_CLI_SUGGEST_H

#include <stddef.h>

enum { CLI_SUGGEST_BYTES = 128, CLI_SUGGEST_TEXT = CLI_SUGGEST_BYTES + 32 };

typedef struct cli_suggestion {
    const char *word;
    char best[CLI_SUGGEST_BYTES];
    size_t distance; /**< of the best; SIZE_MAX: there is none */
} cli_suggestion;

cli_suggestion cli_suggest_for(const char *word);

/** Keeps `candidate` when it is closer to the word than those before it, and close enough to be meant: at
 * most a third of its letters differ. Longer words than CLI_SUGGEST_BYTES are not suggested. */
void cli_suggest_try(cli_suggestion *suggestion, const char *candidate);

/** "; did you mean 'x'?", or "" when nothing is close. `before` stands in front of x, such as "--". Returns
 * buffer. */
const char *cli_suggest_text(const cli_suggestion *suggestion, const char *before,
                             char buffer[CLI_SUGGEST_TEXT]);

/** Insertions, deletions, substitutions and swaps of neighbours that make one word of the other (optimal
 * string alignment); letters that differ in case are equal. Of the first CLI_SUGGEST_BYTES bytes. */
size_t cli_edit_distance(const char *a, const char *b);

#endif
