/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions in the common part of RE2's syntax, matched against whole strings without backtracking:
 * the time is at most proportional to the pattern times the text. Characters are code points.
 *
 * Known: literals; . [a-z] [^…] with [:alpha:] classes; \d \w \s and their capitals; \t \n \r \f \v \a \xHH
 * \x{H…} \Q…\E and escaped punctuation; ( ) (?: ) (?P<name> ) | * + ? {n} {n,} {n,m} and their lazy forms
 * (which match the same whole strings); ^ $ \A \z \b \B; a leading (?i) and (?s). Refused: back references
 * and look-around, as in RE2; \p{…} and other flags. */
#ifndef DQ_OPS_REGEX_H
#define DQ_OPS_REGEX_H

#include "base/arena.h"
#include "ops/text/text_case.h"

typedef struct dq_regex dq_regex;

/** A program in the arena. DQ_BAD_MODEL for a pattern that is none, DQ_UNSUPPORTED for what is not known
 * here, with a sentence. */
dq_status dq_regex_compile(dq_string pattern, dq_arena *arena, dq_regex **out, dq_error *err);

/** Bytes that dq_regex_matches wants. */
size_t dq_regex_scratch(const dq_regex *r);

/** Whether all of the text matches. */
bool dq_regex_matches(const dq_regex *r, dq_string text, void *scratch);

#endif
