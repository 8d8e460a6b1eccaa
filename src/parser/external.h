/* SPDX-License-Identifier: Apache-2.0 */
/* External data files. Their names come from an untrusted model: only regular files inside the model's folder
 * are opened, and no symbolic link is followed. */
#ifndef DQ_PARSER_EXTERNAL_H
#define DQ_PARSER_EXTERNAL_H

#include "base/arena.h"
#include "base/file.h"

typedef struct dq_externals dq_externals;

/** Creates the set of external files in `arena`, whose owner calls dq_externals_close. It copies the
 * arguments. `base_dir` NULL: no file may be opened. If `options` (may be NULL) has the callback
 * external_data, the callback supplies the bytes and no file is opened. */
dq_status dq_externals_create(dq_arena *arena, const char *base_dir, const dq_load_options *options,
                              uint64_t file_limit, dq_externals **out, dq_error *err);
/** Maps the file at the relative path `location`. A file that is requested several times is mapped once. */
dq_status dq_externals_map(dq_externals *externals, const char *location, const dq_file **out, dq_error *err);
void dq_externals_close(dq_externals *externals);

#endif
