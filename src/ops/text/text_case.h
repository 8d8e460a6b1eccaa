/* SPDX-License-Identifier: Apache-2.0 */
/* Upper and lower case of UTF-8 text, independent of the system's locale. It covers letters of one code point
 * of Latin (ASCII, Latin-1, Extended-A), Greek and Cyrillic; other characters do not change. */
#ifndef DQ_OPS_TEXT_CASE_H
#define DQ_OPS_TEXT_CASE_H

#include "tensor/tensor.h"

/** Converts the text to upper or lower case, in the arena; false if memory ran out. Bytes that are not UTF-8
 * stay. */
bool dq_text_change(dq_arena *arena, dq_string text, bool upper, dq_string *out);

/** The other case of a code point; itself if it has none. */
uint32_t dq_code_lower(uint32_t code);
uint32_t dq_code_upper(uint32_t code);

/** Decodes the code point at byte `at` and its length in bytes. A byte that does not begin one gives 0xDC00
 * plus its value. */
uint32_t dq_text_code(dq_string text, size_t at, size_t *length);

#endif
