/* SPDX-License-Identifier: Apache-2.0 */
/* Files of packed weights: docs/packed-weights.md describes the format. */
#ifndef DQ_OPS_PACKED_FILE_H
#define DQ_OPS_PACKED_FILE_H

#include "graph/content.h"
#include "ops/packers.h"

/** Version of the format: of the file's layout and of the layouts of packed forms within a version of dqrun.
 */
enum { DQ_PACKED_FORMAT = 3 };

/** A packed form, identified by all fields but `constant`, `packed` and `size`. */
typedef struct dq_packed_form {
    dq_hash source;    /* of the data of the tensor that it was made from */
    uint32_t constant; /* number of a constant of the model with these data, or DQ_NO_CONSTANT */
    dq_dtype dtype;    /* of that tensor */
    const dq_packer *packer;
    const void *key; /* after its pointers */
    size_t key_size;
    size_t full;        /* bytes of the form in memory, where unused ones may be at the end */
    const void *packed; /* aligned to DQ_ALIGN */
    size_t size;        /* bytes of it in the file */
} dq_packed_form;

/** Writes a file for the kernels of `isa` through `write`; `types` is dq_content_types of the model.
 * Orders the forms, and writes equal ones once. DQ_IO: `write` returned another number than 0. */
dq_status dq_packed_file_write(dq_write_fn write, void *arg, unsigned isa, dq_hash types,
                               dq_packed_form *forms, size_t count, dq_error *err);

typedef struct dq_packed_file dq_packed_file;

/** Maps a file of at most `limit` bytes and verifies it: version, checksums, all offsets and sizes, and that
 * it was made from constants of these types, shapes and data. `model_path` is for messages. DQ_BAD_INPUT with
 * the difference if it was not. */
dq_status dq_packed_file_open(const char *path, uint64_t limit, dq_content *content, const char *model_path,
                              const dq_allocator *allocator, dq_packed_file **out, dq_error *err);
void dq_packed_file_close(dq_packed_file *file);
const char *dq_packed_file_path(const dq_packed_file *file);
/** The ISA levels that it was written for, and the name of the highest. */
unsigned dq_packed_file_isa(const dq_packed_file *file);
const char *dq_packed_file_isa_name(const dq_packed_file *file);
/** Sets `packed` and `size` to those in the file; NULL and 0 if the file has no such form. */
void dq_packed_file_find(const dq_packed_file *file, dq_packed_form *form);

#endif
