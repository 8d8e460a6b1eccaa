/* SPDX-License-Identifier: Apache-2.0 */
/* Operator schemas: what ONNX, or a user's YAML file, says about each version of an operator, and the checks
 * of nodes against it. The file format is described in docs/schema-format.md.
 *
 * A set (dq_schemas, declared with its create, add and free in dqrun.h) starts with the schemas embedded in
 * the library. They are inflated and parsed for an operator when it is first looked for. Rows never change
 * once handed out and live as long as the set.
 *
 * Sentences of the checks are about one node's own parts ("has 2 inputs, expected 1"): the caller puts the
 * model and the node in front. */
#ifndef DQ_SCHEMA_SCHEMA_H
#define DQ_SCHEMA_SCHEMA_H

#include "graph/graph.h"
#include "schema/types.h"

typedef enum dq_option { DQ_SINGLE, DQ_OPTIONAL, DQ_VARIADIC } dq_option;

/** max_input or max_output without an end. */
#define DQ_UNBOUNDED INT32_MAX
/** Rows of one list (type constraints, attributes, inputs, outputs) that a schema may have. */
#define DQ_MAX_SCHEMA_ROWS 64

/** A type variable ("T1"), or one type that a formal names directly. */
typedef struct dq_constraint {
    const char *name;
    dq_type_set types;
} dq_constraint;

/** A formal input or output. */
typedef struct dq_formal {
    const char *name;
    const char *type_str; /* a type variable or a type */
    dq_option option;
    bool homogeneous;   /* variadic: all have one type */
    uint32_t min_arity; /* variadic: how many at least */
    int variable;       /* index into dq_schema.constraints; -1: type_str is a type */
    dq_type_set types;  /* that the variable may be, or the one type */
} dq_formal;

typedef struct dq_schema_attr {
    const char *name;
    dq_attr_kind kind;
    bool required, has_default;
    dq_attr value; /* the default, complete with name and kind; only when has_default */
} dq_schema_attr;

typedef struct dq_schema dq_schema;
struct dq_schema {
    const char *domain; /* "" is ai.onnx */
    const char *name;
    int since_version;
    uint32_t min_input, max_input, min_output, max_output;
    const char *doc;
    uint32_t attr_count, input_count, output_count, constraint_count;
    const dq_schema_attr *attrs;
    const dq_formal *inputs, *outputs; /* a variadic one is the last */
    const dq_constraint *constraints;
    bool deprecated;
};

/** One more user of the set, who gives it back with dq_schemas_free. Returns `set`. */
dq_schemas *dq_schemas_keep(dq_schemas *set);

/** The newest version of the operator that is not above `opset_version`, the version of `domain` that the
 * model imports. DQ_UNSUPPORTED: no schema for the operator at all. DQ_BAD_MODEL: the operator came with a
 * later version, or the domain is not imported (version 0). Any thread may call it. */
dq_status dq_schemas_find(dq_schemas *set, const char *domain, const char *name, int opset_version,
                          const dq_schema **out, dq_error *err);

/** Calls `visit` for each operator version by domain, name and version; ends when it returns non-zero. Parses
 * all schemas that have not been parsed yet. */
dq_status dq_schemas_each(dq_schemas *set, int (*visit)(void *arg, const dq_schema *schema), void *arg,
                          dq_error *err);

/** Holds the node against what the schema says of arity, left-out inputs and outputs and attributes, sets
 *  node->schema, and gives the node the defaults of the attributes that it lacks. For a node whose attributes
 * hold values (a function's body: once inlined). DQ_BAD_MODEL with a sentence, or DQ_OUT_OF_MEMORY. */
dq_status dq_schema_check_node(const dq_schema *schema, dq_node *node, dq_error *err);

/** Holds the types of a node's inputs against the formals: each in its set, equal where one type variable
 * stands. in[i] is NULL where an input is left out; a tensor of DQ_UNDEFINED is not known, and allowed. Then
 * writes the type of each of the node's outputs as far as it follows (shapes are left alone: has_shape is
 * false), and DQ_UNDEFINED where only the operator's inference can tell. The node has passed
 * dq_schema_check_node. */
dq_status dq_schema_bind_types(const dq_schema *schema, const dq_node *node, const dq_type *const *in,
                               dq_type *out, dq_error *err);

/** The formal of input or output i; NULL where an arity allows more than there are formals. */
const dq_formal *dq_schema_input(const dq_schema *schema, size_t i);
const dq_formal *dq_schema_output(const dq_schema *schema, size_t i);

/** "T1: tensor(float), tensor(int32); T2: tensor(uint8)" into `buffer` (always terminated); returns the
 * length it wanted without the terminator. */
size_t dq_schema_types_text(const dq_schema *schema, char *buffer, size_t size);

/* ---- Inside src/schema --------------------------------------------------------------------------------- */

struct dq_yaml;
/** A row from one YAML document. Everything in it is copied to `arena`. Sentences begin "SOURCE:LINE: ". */
dq_status dq_schema_read(dq_arena *arena, const struct dq_yaml *root, const char *source, dq_schema **out,
                         dq_error *err);

/** One version of an operator, from its YAML file, made by embed.py. Sorted by domain, name, since_version.
 * Offsets, as the loader of programs would have to mend pointers. */
typedef struct dq_embedded_schema {
    uint16_t names; /* in dq_embedded_names: domain and name, each with its zero */
    uint16_t since_version;
    uint16_t stream, compressed_size; /* in dq_embedded_streams: raw deflate with dq_embedded_dictionary as
                                         its preset dictionary, of all versions of the operator */
    uint16_t from, size;              /* of the version in it; the newest stands first */
} dq_embedded_schema;
extern const unsigned char dq_embedded_streams[];
extern const char dq_embedded_names[];
extern const dq_embedded_schema dq_embedded_schemas[];
extern const size_t dq_embedded_schema_count;
extern const unsigned char dq_embedded_dictionary[];
extern const size_t dq_embedded_dictionary_size;

#endif
