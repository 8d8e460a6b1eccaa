/* SPDX-License-Identifier: Apache-2.0 */
/* .npz: zip archives of .npy arrays, read and written through minizip. */
#ifndef DQ_TOOLS_IO_NPZ_H
#define DQ_TOOLS_IO_NPZ_H

#include "npy.h"

/** An archive open for reading. Members that are no .npy are left out, as numpy does. */
typedef struct npz npz;

/** Opens an archive, which may hold no array. DQ_BAD_INPUT when it is no archive or holds two arrays of one
 * name. Messages do not name the path. */
dq_status npz_open(const char *path, npz **out, dq_error *err);
/** The same from memory, which must outlive the handle. */
dq_status npz_open_memory(const void *bytes, size_t size, npz **out, dq_error *err);
void npz_close(npz *archive);

size_t npz_count(const npz *archive);
/** The name of array i, without ".npy"; lives as long as the handle. */
const char *npz_name(const npz *archive, size_t i);
/** The array of that name, or npz_count when there is none. */
size_t npz_find(const npz *archive, const char *name);

/** The header of array i: reads no more than that, so that a caller can refuse it before memory is asked for.
 */
dq_status npz_header(npz *archive, size_t i, npy_header *header, dq_error *err);
/** Array i, as npy_read_data reads it. The member's checksum is checked too. */
dq_status npz_read(npz *archive, size_t i, dq_dtype requested, uint64_t limit, dq_tensor **out,
                   dq_error *err);

/** Writes an archive as numpy.savez does (stored, not compressed; the same bytes for the same tensors), as a
 * whole or not at all (out_file.h). Sentences do not name the path. */
dq_status npz_write(const char *path, size_t count, const char *const *names, const dq_tensor *const *tensors,
                    dq_error *err);

#endif
