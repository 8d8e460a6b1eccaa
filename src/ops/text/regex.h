/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions in the common subset of RE2's syntax, matched against whole strings without
 * backtracking. The time is at most proportional to pattern length times text length. Characters are code
 * points.
 *
 * Supported: literals; . [a-z] [^…] with [:alpha:] classes; \d \w \s and their capitals; \t \n \r \f \v \a
 * \xHH \x{H…} \Q…\E and escaped punctuation; ( ) (?: ) (?P<name> ) | * + ? {n} {n,} {n,m} and their lazy
 * forms (which match the same whole strings); ^ $ \A \z \b \B; a leading (?i) and (?s).
 *
 * Not supported: back references and look-around, as in RE2; \p{…} and other flags. */
#ifndef DQ_OPS_REGEX_H
#define DQ_OPS_REGEX_H

#include "base/arena.h"
#include "ops/text/text_case.h"

typedef struct dq_regex dq_regex;

/** Compiles a pattern into a program in the arena. DQ_BAD_MODEL: invalid pattern; DQ_UNSUPPORTED: unsupported
 * syntax; both with a message. */
dq_status dq_regex_compile(dq_string pattern, dq_arena *arena, dq_regex **out, dq_error *err);

/** Bytes of scratch that dq_regex_matches needs. */
size_t dq_regex_scratch(const dq_regex *r);

/** Whether the whole text matches. */
bool dq_regex_matches(const dq_regex *r, dq_string text, void *scratch);

#endif
