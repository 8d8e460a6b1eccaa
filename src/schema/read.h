/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of reading a schema's tree that read.c and defaults.c share. */
#ifndef DQ_SCHEMA_READ_H
#define DQ_SCHEMA_READ_H

#include "schema/schema.h"
#include "schema/yaml_tree.h"

typedef struct dq_schema_reader {
    dq_arena *arena; /* of the rows */
    const char *source;
    dq_error *err;
} dq_schema_reader;

/** DQ_BAD_MODEL with "SOURCE:LINE: " and the sentence. */
dq_status dq_read_fail(const dq_schema_reader *r, unsigned line, const char *format, ...) DQ_PRINTF(3, 4);
dq_status dq_read_no_memory(const dq_schema_reader *r);

/** The default of attribute `name` of that kind into *out. Lists may be empty. Kinds that hold tensors,
 * graphs or types have no spelling here and are refused. */
dq_status dq_read_default(const dq_schema_reader *r, const dq_yaml *node, const char *name, dq_attr_kind kind,
                          dq_attr *out);

#endif
