/* SPDX-License-Identifier: Apache-2.0 */
/* Files of external data. A model names them, so that they are opened with suspicion: only regular files
 * inside the model's folder, reached without any link. */
#ifndef DQ_PARSER_EXTERNAL_H
#define DQ_PARSER_EXTERNAL_H

#include "base/arena.h"
#include "base/file.h"

typedef struct dq_externals dq_externals;

/** `base_dir` NULL: no file may be opened. `options` (may be NULL) with a callback external_data: that gives
 * the bytes, and no file is opened. Both live in `arena`, whose owner calls dq_externals_close. */
dq_status dq_externals_create(dq_arena *arena, const char *base_dir, const dq_load_options *options,
                              uint64_t file_limit, dq_externals **out, dq_error *err);
/** Maps the file at the relative path `location`, once however often it is asked for. */
dq_status dq_externals_map(dq_externals *externals, const char *location, const dq_file **out, dq_error *err);
void dq_externals_close(dq_externals *externals);

#endif
