/* SPDX-License-Identifier: Apache-2.0 */
/* Types, elements and positions of tensors as text. */
#ifndef DQ_TOOLS_IO_TEXT_H
#define DQ_TOOLS_IO_TEXT_H

#include <dqrun/dqrun.h>

#include <stdio.h>

/** Buffer sizes for io_type_text, io_index_text and io_value_text of any tensor. */
enum { IO_TYPE_TEXT = 32 + DQ_MAX_RANK * 24, IO_INDEX_TEXT = DQ_MAX_RANK * 21 + 3, IO_VALUE_TEXT = 80 };

/** "float[2,3]", "int64[]"; -1 prints as "?". Returns buffer. */
const char *io_type_text(dq_dtype dtype, size_t rank, const int64_t *dims, char buffer[IO_TYPE_TEXT]);

/** The index of element i in row-major order: "[0,3]", "[]" for a scalar. Returns `buffer`. */
const char *io_index_text(const dq_tensor *tensor, size_t i, char buffer[IO_INDEX_TEXT]);

/** Element i: integers exactly, floats with that many significant digits, strings quoted and truncated to 40
 * bytes. Returns `buffer`. */
const char *io_value_text(const dq_tensor *tensor, size_t i, int digits, char buffer[IO_VALUE_TEXT]);

/** The real (0) or imaginary (1) part of element i; the latter is 0 for other types. */
double io_part(const dq_tensor *tensor, size_t i, int which);

/** The number to print: without the sign of a NaN, which means nothing and differs between CPUs. */
double io_unsigned_nan(double value);

/** Writes text as a JSON string. Each byte that is not UTF-8 becomes U+FFFD. */
void io_write_json(FILE *to, const char *text, size_t length);

/** Replaces control characters by '?', so that names from a file cannot control a terminal. Returns `text`.
 */
char *io_printable(char *text);

#endif
