/* SPDX-License-Identifier: Apache-2.0 */
/* A file to write that comes to be as a whole or not at all, whatever ends the process. */
#ifndef DQ_TOOLS_IO_OUT_FILE_H
#define DQ_TOOLS_IO_OUT_FILE_H

#include "common.h"

/** One at a time in a process. */
typedef struct out_file {
    FILE *file;   /**< write here, in any order */
    char *path;   /**< what comes to be; NULL: `stream` gets a copy */
    FILE *stream; /**< a pipe, a device or the standard output */
} out_file;

/** "-" is the standard output. Opens a temporary file in the folder of the one that `path` names, through
 * symbolic links, which stay as they are. SIGINT, SIGTERM and SIGHUP, where they are not ignored, remove it
 * and end the process until it is closed. Pipes, devices and what is the standard output get the bytes when
 * all are there. On failure nothing is left to close. Sentences do not name the path. */
dq_status out_open(const char *path, out_file *out, dq_error *err);

/** Closes it. With `status` DQ_OK it is flushed to the disk and takes the place of what is there, unless that
 * fails; otherwise, and then, an older file stays as it was, and nothing new is left. Returns `status` or
 * what failed. */
dq_status out_close(out_file *out, dq_status status, dq_error *err);

#endif
