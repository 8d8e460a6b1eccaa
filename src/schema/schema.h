/* SPDX-License-Identifier: Apache-2.0 */
/* Operator schemas: the signature of each version of an operator, from ONNX or from a user's YAML file, and
 * the checks of nodes against it. docs/schema-format.md describes the file format.
 *
 * A set (dq_schemas, declared with its create, add and free in dqrun.h) begins with the schemas that are
 * embedded in the library. The first look-up of an operator inflates and parses its schemas. Rows never
 * change after they were returned, and live as long as the set.
 *
 * Messages of the checks are about the node's own parts ("has 2 inputs, expected 1"). The caller prefixes the
 * model and the node. */
#ifndef DQ_SCHEMA_SCHEMA_H
#define DQ_SCHEMA_SCHEMA_H

#include "graph/graph.h"
#include "schema/types.h"

typedef enum dq_option { DQ_SINGLE, DQ_OPTIONAL, DQ_VARIADIC } dq_option;

/** max_input or max_output without a limit. */
#define DQ_UNBOUNDED INT32_MAX
/** Maximum number of rows of one list (type constraints, attributes, inputs, outputs) of a schema. */
#define DQ_MAX_SCHEMA_ROWS 64

/** A type variable ("T1"), or one type that a formal names directly. */
typedef struct dq_constraint {
    const char *name;
    dq_type_set types;
} dq_constraint;

/** A formal input or output. */
typedef struct dq_formal {
    const char *name;
    const char *type_str; /* A type variable or a type. */
    dq_option option;
    bool homogeneous;   /* Variadic: all have the same type. */
    uint32_t min_arity; /* Variadic: the least number. */
    int variable;       /* Index into dq_schema.constraints; -1: type_str is a type. */
    dq_type_set types;  /* The types that the variable allows, or the one type. */
} dq_formal;

typedef struct dq_schema_attr {
    const char *name;
    dq_attr_kind kind;
    bool required, has_default;
    dq_attr value; /* The default, complete with name and kind; only if has_default. */
} dq_schema_attr;

typedef struct dq_schema dq_schema;
struct dq_schema {
    const char *domain; /* "" is ai.onnx. */
    const char *name;
    int since_version;
    uint32_t min_input, max_input, min_output, max_output;
    const char *doc;
    uint32_t attr_count, input_count, output_count, constraint_count;
    const dq_schema_attr *attrs;
    const dq_formal *inputs, *outputs; /* A variadic one is the last. */
    const dq_constraint *constraints;
    bool deprecated;
};

/** Takes a reference to the set, which dq_schemas_free releases. Returns `set`. */
dq_schemas *dq_schemas_keep(dq_schemas *set);

/** Finds the newest version of the operator that is not above `opset_version`, the version of `domain` that
 * the model imports. DQ_UNSUPPORTED: there is no schema for the operator. DQ_BAD_MODEL: the operator was
 * introduced in a later version, or the domain is not imported (version 0). Thread-safe. */
dq_status dq_schemas_find(dq_schemas *set, const char *domain, const char *name, int opset_version,
                          const dq_schema **out, dq_error *err);

/** Calls `visit` for each operator version, sorted by domain, name and version, until it returns non-zero.
 * Parses all schemas that are not parsed yet. */
dq_status dq_schemas_each(dq_schemas *set, int (*visit)(void *arg, const dq_schema *schema), void *arg,
                          dq_error *err);

/** Checks the node's arity, omitted inputs and outputs, and attributes against the schema. Sets node->schema,
 * and adds the defaults of missing attributes. Attributes must have values: nodes of a function's body are
 * checked after inlining. Returns DQ_BAD_MODEL with a message, or DQ_OUT_OF_MEMORY. */
dq_status dq_schema_check_node(const dq_schema *schema, dq_node *node, dq_error *err);

/** Checks the types of a node's inputs against the formals: each must be in its set, and all that share a
 * type variable must be equal. in[i] is NULL if input i is omitted; a tensor of DQ_UNDEFINED is unknown, and
 * allowed. Then writes the type of each output as far as it follows (without shape: has_shape is false), and
 * DQ_UNDEFINED if only the operator's inference can determine it. The node must have passed
 * dq_schema_check_node. */
dq_status dq_schema_bind_types(const dq_schema *schema, const dq_node *node, const dq_type *const *in,
                               dq_type *out, dq_error *err);

/** The formal of input or output i; NULL if the arity allows more than there are formals. */
const dq_formal *dq_schema_input(const dq_schema *schema, size_t i);
const dq_formal *dq_schema_output(const dq_schema *schema, size_t i);

/** Writes "T1: tensor(float), tensor(int32); T2: tensor(uint8)" to `buffer` (always terminated). Returns the
 * required length without the terminator. */
size_t dq_schema_types_text(const dq_schema *schema, char *buffer, size_t size);

/* ---- Inside src/schema --------------------------------------------------------------------------------- */

struct dq_yaml;
/** Makes a row from one YAML document, with copies of all data in `arena`. Messages begin with "SOURCE:LINE:
 * ". */
dq_status dq_schema_read(dq_arena *arena, const struct dq_yaml *root, const char *source, dq_schema **out,
                         dq_error *err);

/** One version of an operator from its YAML file. embed.py writes the rows, sorted by domain, name and
 * since_version. They hold offsets, because the loader would have to relocate pointers. */
typedef struct dq_embedded_schema {
    uint16_t names; /* Offset in dq_embedded_names of domain and name, each zero-terminated. */
    uint16_t since_version;
    /* Offset and size in dq_embedded_streams of raw deflate data for all versions of the operator, with
     * dq_embedded_dictionary as preset dictionary. */
    uint16_t stream, compressed_size;
    uint16_t from, size; /* Of this version in the inflated data, in which the newest is first. */
} dq_embedded_schema;
extern const unsigned char dq_embedded_streams[];
extern const char dq_embedded_names[];
extern const dq_embedded_schema dq_embedded_schemas[];
extern const size_t dq_embedded_schema_count;
extern const unsigned char dq_embedded_dictionary[];
extern const size_t dq_embedded_dictionary_size;

#endif
