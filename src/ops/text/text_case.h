/* SPDX-License-Identifier: Apache-2.0 */
/* Upper and lower case of UTF-8 text, by itself: no locale of the system has a say. Covered are the letters
 * of one code point of Latin (ASCII, Latin-1, Extended-A), Greek and Cyrillic; others stay as they are. */
#ifndef DQ_OPS_TEXT_CASE_H
#define DQ_OPS_TEXT_CASE_H

#include "tensor/tensor.h"

/** The text in upper or lower case, in the arena; false when memory ran out. Bytes that are no UTF-8 stay. */
bool dq_text_change(dq_arena *arena, dq_string text, bool upper, dq_string *out);

/** The other case of a code point; itself when it has none. */
uint32_t dq_code_lower(uint32_t code);
uint32_t dq_code_upper(uint32_t code);

/** The code point at byte `at`, and its length in bytes; a byte that begins none stands for itself, as 0xDC00
 * and up. */
uint32_t dq_text_code(dq_string text, size_t at, size_t *length);

#endif
