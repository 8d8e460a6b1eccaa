/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for reading a schema from its YAML tree, shared by read.c and defaults.c. */
#ifndef DQ_SCHEMA_READ_H
#define DQ_SCHEMA_READ_H

#include "schema/schema.h"
#include "schema/yaml_tree.h"

typedef struct dq_schema_reader {
    dq_arena *arena; /* Memory of the rows. */
    const char *source;
    dq_error *err;
} dq_schema_reader;

/** Returns DQ_BAD_MODEL, with the message after "SOURCE:LINE: ". */
dq_status dq_read_fail(const dq_schema_reader *r, unsigned line, const char *format, ...) DQ_PRINTF(3, 4);
dq_status dq_read_no_memory(const dq_schema_reader *r);

/** Reads the default of attribute `name` of that kind to *out. Lists may be empty. Kinds of tensors, graphs
 * or types cannot be written in YAML and are refused. */
dq_status dq_read_default(const dq_schema_reader *r, const dq_yaml *node, const char *name, dq_attr_kind kind,
                          dq_attr *out);

#endif
