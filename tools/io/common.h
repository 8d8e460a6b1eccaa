/* SPDX-License-Identifier: Apache-2.0 */
/* Common functions of the readers and writers of tensor files: messages, whole files, packed elements.
 *
 * This folder uses only the public header of dqrun. Its functions follow the library's rule for errors: a
 * dq_status, and one message without the file's name, which the caller prefixes (io_prefix). */
#ifndef DQ_TOOLS_IO_COMMON_H
#define DQ_TOOLS_IO_COMMON_H

#include <dqrun/dqrun.h>

#include <stdio.h>

/** Default limit of the bytes of one tensor from a file: 16 GiB, as dq_limits.tensor_bytes. */
#define IO_TENSOR_LIMIT ((uint64_t)16 << 30)

/** Fills `err` (may be NULL) and returns `status`. A message that does not fit ends in "…". */
dq_status io_fail(dq_error *err, dq_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Fills `err` with "out of memory" and returns DQ_OUT_OF_MEMORY. */
dq_status io_no_memory(dq_error *err);

/** Returns a malloc'ed list of `count` elements of `size` bytes with room for one more, perhaps in another
 * place; NULL: memory ran out, and the list is as it was. Capacities double. An empty list may be NULL. */
void *io_room(void *list, size_t count, size_t *capacity, size_t size);

/** Prefixes the message in `err` (may be NULL) with "<where>: ". Returns its status. */
dq_status io_prefix(dq_error *err, dq_status status, const char *where);

/** The number of elements. False if it overflows size_t or a dimension is negative. */
bool io_count(size_t rank, const int64_t *dims, size_t *count);

/** Bytes of `count` packed elements. False if that overflows size_t. Not for strings. */
bool io_packed_size(dq_dtype dtype, size_t count, size_t *size);

/** Checks that a tensor may be made: known type, rank, no overflow, at most `limit` bytes. A string counts
 * 16; the caller counts its bytes. DQ_BAD_INPUT or DQ_OUT_OF_MEMORY. */
dq_status io_check_shape(dq_dtype dtype, size_t rank, const int64_t *dims, uint64_t limit, dq_error *err);

/** Element i of packed elements of 2, 4 or 6 bits, as its bits. */
unsigned io_get_bits(const void *data, unsigned bits, size_t i);
/** Writes the lowest `bits` bits of `value` as element i. */
void io_put_bits(void *data, unsigned bits, size_t i, unsigned value);

/** Element i of a tensor of an integer or bool type, exactly: signed types are sign-extended, unsigned ones
 * zero-extended. */
uint64_t io_get_int(const dq_tensor *tensor, size_t i);

/** Properties of types for io_get_int and comparisons. */
bool io_is_integer(dq_dtype dtype); /**< any width, signed or not; not bool */
bool io_is_signed(dq_dtype dtype);  /**< signed integer */

/** Opens a regular file for reading, without blocking on another program. DQ_BAD_INPUT if it cannot be opened
 * or is no regular file. */
dq_status io_open_file(const char *path, FILE **file, uint64_t *size, dq_error *err);
/** Reads exactly `size` bytes or fails. */
dq_status io_read_exactly(FILE *file, void *buffer, size_t size, dq_error *err);

/** Reads a whole file into malloc'ed memory. DQ_BAD_INPUT: it cannot be read or is no regular file.
 * DQ_OUT_OF_MEMORY: it has more than `limit` bytes. */
dq_status io_read_file(const char *path, uint64_t limit, void **bytes, size_t *size, dq_error *err);

/** Reads a stream, such as a pipe, to its end into malloc'ed memory. Otherwise like io_read_file. */
dq_status io_read_stream(FILE *stream, uint64_t limit, void **bytes, size_t *size, dq_error *err);

#endif
