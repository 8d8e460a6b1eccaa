/* SPDX-License-Identifier: Apache-2.0 */
/* Files: read-only ones in memory, and written ones that appear whole or not at all. */
#ifndef DQ_BASE_FILE_H
#define DQ_BASE_FILE_H

#include "base/error.h"

#include <stdio.h>

/** Files up to this size are read; larger ones are mapped. */
enum { DQ_FILE_READ = 1 << 20 };

/** A file in memory. Zero-initialised is none. */
typedef struct dq_file {
    const unsigned char *bytes; /* not NULL once open, also when size is 0 */
    size_t size, capacity;      /* capacity: of an owned copy, as it was allocated */
    bool mapped;                /* else a copy, or static */
    bool owned;
    const dq_allocator *allocator; /* of an owned copy; NULL: malloc */
} dq_file;

/** Reads or maps the regular file at `path`, refusing one over `limit` bytes. Sentences name the path; faults
 * of the file itself carry `fault` as their status. */
dq_status dq_file_map(const char *path, uint64_t limit, const dq_allocator *allocator, dq_status fault,
                      dq_file *out, dq_error *err);
/** The same for an open descriptor, which stays the caller's; `path` is for sentences. */
dq_status dq_file_map_fd(int fd, const char *path, uint64_t limit, const dq_allocator *allocator,
                         dq_status fault, dq_file *out, dq_error *err);
/** The same for a descriptor that need not be a regular file: a regular file is read or mapped from its
 * beginning, anything else (a pipe, a socket, a device) is read from where it stands to its end. */
dq_status dq_file_load_fd(int fd, const char *path, uint64_t limit, const dq_allocator *allocator,
                          dq_status fault, dq_file *out, dq_error *err);
/** Reads what `read` gives until its end, refusing more than `limit` bytes. */
dq_status dq_file_read(dq_read_fn read, void *arg, const char *path, uint64_t limit,
                       const dq_allocator *allocator, dq_status fault, dq_file *out, dq_error *err);
void dq_file_unmap(dq_file *file);
/** Gives back the memory of the whole pages in bytes[0 … size-1], part of a mapped file; they are read again
 * when they are looked at again. */
void dq_file_forget(const void *bytes, size_t size);
/** The same behind somebody who goes through `data` from its beginning and has come to byte `end`: some MB at
 * once. *given_back is 0 at first. */
void dq_file_drop_pages(const void *data, size_t *given_back, size_t end);
/** Whether p points into a mapped file's bytes. */
static inline bool dq_file_holds(const dq_file *file, const void *p)
{
    const unsigned char *at = p;
    return file->mapped && at >= file->bytes && at < file->bytes + file->size;
}

/** A file that is being written under a temporary name beside its own. */
typedef struct dq_file_out {
    char *path, *temporary;
    FILE *stream;
    int fault; /* errno of the first write that failed, or 0 */
} dq_file_out;

dq_status dq_file_create(const char *path, dq_file_out *out, dq_error *err);
/** Appends; a fault is kept for dq_file_commit. */
void dq_file_write(dq_file_out *out, const void *bytes, size_t size);
/** Brings what was written to the disk and gives it its name; after any fault removes it and says so. Ends
 * `out` in any case. */
dq_status dq_file_commit(dq_file_out *out, dq_error *err);

#endif
