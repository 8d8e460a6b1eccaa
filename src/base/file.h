/* SPDX-License-Identifier: Apache-2.0 */
/* Files: input files in memory, and output files that are written atomically. */
#ifndef DQ_BASE_FILE_H
#define DQ_BASE_FILE_H

#include "base/error.h"

#include <stdio.h>

/** Files up to this size are read; larger ones are mapped. */
enum { DQ_FILE_READ = 1 << 20 };

/** A file in memory. All zeros: no file. */
typedef struct dq_file {
    const unsigned char *bytes; /* Not NULL once open, also if size is 0. */
    size_t size, capacity;      /* capacity: allocated bytes of an owned copy. */
    bool mapped;                /* Else a copy, or static. */
    bool owned;
    const dq_allocator *allocator; /* Of an owned copy; NULL: malloc. */
} dq_file;

/** Reads or maps the regular file at `path`; refuses one of more than `limit` bytes. Messages name the path.
 * Errors of the file itself have the status `fault`. */
dq_status dq_file_map(const char *path, uint64_t limit, const dq_allocator *allocator, dq_status fault,
                      dq_file *out, dq_error *err);
/** Maps files of any size: bytes begin at a page, which processes share. */
dq_status dq_file_map_pages(const char *path, uint64_t limit, dq_status fault, dq_file *out, dq_error *err);
/** The same as dq_file_map for an open descriptor, which remains the caller's; `path` is for messages. */
dq_status dq_file_map_fd(int fd, const char *path, uint64_t limit, const dq_allocator *allocator,
                         dq_status fault, dq_file *out, dq_error *err);
/** The same for a descriptor of any kind: a regular file is read or mapped from its beginning; anything else
 * (a pipe, a socket, a device) is read from its current position to its end. */
dq_status dq_file_load_fd(int fd, const char *path, uint64_t limit, const dq_allocator *allocator,
                          dq_status fault, dq_file *out, dq_error *err);
/** Reads everything that `read` supplies; refuses more than `limit` bytes. */
dq_status dq_file_read(dq_read_fn read, void *arg, const char *path, uint64_t limit,
                       const dq_allocator *allocator, dq_status fault, dq_file *out, dq_error *err);
void dq_file_unmap(dq_file *file);
/** Maps the pages of bytes[0 … size-1], part of a mapped file, at once: reading them then takes no page
 * faults, which cost more than hashing the bytes. */
void dq_file_populate(const void *bytes, size_t size);
/** Releases the memory of the whole pages in bytes[0 … size-1], part of a mapped file. The system reads them
 * again on the next access. */
void dq_file_forget(const void *bytes, size_t size);
/** The same for a sequential reader of `data` that has reached byte `end`: releases pages before `end`, some
 * MB at a time. *given_back is 0 at first. */
void dq_file_drop_pages(const void *data, size_t *given_back, size_t end);
/** Whether p points into the bytes of a mapped file. */
static inline bool dq_file_holds(const dq_file *file, const void *p)
{
    const unsigned char *at = p;
    return file->mapped && at >= file->bytes && at < file->bytes + file->size;
}

/** An output file that is written under a temporary name in the same folder. */
typedef struct dq_file_out {
    char *path, *temporary;
    FILE *stream;
    int fault; /* errno of the first failed write, or 0. */
} dq_file_out;

dq_status dq_file_create(const char *path, dq_file_out *out, dq_error *err);
/** Appends. dq_file_commit reports an error. */
void dq_file_write(dq_file_out *out, const void *bytes, size_t size);
/** Flushes the file to disk and renames it. After any error it removes the file and reports the error. Ends
 * `out` in any case. */
dq_status dq_file_commit(dq_file_out *out, dq_error *err);

#endif
