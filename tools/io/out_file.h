/* SPDX-License-Identifier: Apache-2.0 */
/* An output file that is written atomically: whole or not at all, however the process ends. */
#ifndef DQ_TOOLS_IO_OUT_FILE_H
#define DQ_TOOLS_IO_OUT_FILE_H

#include "common.h"

/** A process may have one at a time. */
typedef struct out_file {
    FILE *file;   /**< Write here, in any order. */
    char *path;   /**< The final file; NULL: `stream` gets a copy. */
    FILE *stream; /**< A pipe, a device or standard output. */
} out_file;

/** Opens a temporary file in the folder of the file that `path` names, with symbolic links resolved; the
 * links stay. "-" is standard output. Until it is closed, SIGINT, SIGTERM and SIGHUP, unless ignored, remove
 * it and end the process. Pipes, devices and standard output get the bytes when all are written. After an
 * error there is nothing to close. Messages do not name the path. */
dq_status out_open(const char *path, out_file *out, dq_error *err);

/** Closes it. If `status` is DQ_OK, flushes it to the disk and renames it to the final file. Otherwise, or if
 * that fails, an older file stays and nothing new is left. Returns `status` or its own error. */
dq_status out_close(out_file *out, dq_status status, dq_error *err);

#endif
