/* Read-only files in memory. */
#ifndef DQ_BASE_FILE_H
#define DQ_BASE_FILE_H

#include "base/error.h"

/** A mapped file. Zero-initialised is none. */
typedef struct dq_file {
    const unsigned char *bytes; /* not NULL once open, also when size is 0 */
    size_t size;
    bool mapped;
} dq_file;

/** Maps the regular file at `path`, refusing one over `limit` bytes. Sentences name the path; faults of the
 * file itself carry `fault` as their status. */
dq_status dq_file_map(const char *path, uint64_t limit, dq_status fault, dq_file *out, dq_error *err);
/** The same for an open descriptor, which stays the caller's; `path` is for sentences. */
dq_status dq_file_map_fd(int fd, const char *path, uint64_t limit, dq_status fault, dq_file *out,
                         dq_error *err);
void dq_file_unmap(dq_file *file);

#endif
