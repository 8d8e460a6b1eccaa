/* SPDX-License-Identifier: Apache-2.0 */
/* .npz: zip archives of .npy arrays, read and written with minizip. */
#ifndef DQ_TOOLS_IO_NPZ_H
#define DQ_TOOLS_IO_NPZ_H

#include "npy.h"

/** An archive that is open for reading. It skips members that are no .npy, as numpy does. */
typedef struct npz npz;

/** Opens an archive, which may be empty. DQ_BAD_INPUT if it is no archive or has two arrays of one name.
 * Messages do not name the path. */
dq_status npz_open(const char *path, npz **out, dq_error *err);
/** The same from memory, which must outlive the handle. */
dq_status npz_open_memory(const void *bytes, size_t size, npz **out, dq_error *err);
void npz_close(npz *archive);

size_t npz_count(const npz *archive);
/** The name of array i, without ".npy"; lives as long as the handle. */
const char *npz_name(const npz *archive, size_t i);
/** Index of the array of that name; npz_count if there is none. */
size_t npz_find(const npz *archive, const char *name);

/** Reads only the header of array i, so that the caller can refuse it before memory is allocated. */
dq_status npz_header(npz *archive, size_t i, npy_header *header, dq_error *err);
/** Reads array i as npy_read_data does, and checks the member's checksum. */
dq_status npz_read(npz *archive, size_t i, dq_dtype requested, uint64_t limit, dq_tensor **out,
                   dq_error *err);

/** Writes an archive as numpy.savez does (stored, not compressed; equal bytes for equal tensors), atomically
 * (out_file.h). Messages do not name the path. */
dq_status npz_write(const char *path, size_t count, const char *const *names, const dq_tensor *const *tensors,
                    dq_error *err);

#endif
