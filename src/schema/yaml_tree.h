/* SPDX-License-Identifier: Apache-2.0 */
/* YAML text as a small tree, with limits for text from untrusted sources. Only yaml_tree.c uses libyaml.
 *
 * DQ_OUT_OF_MEMORY: a document exceeds a limit (bytes, nesting, nodes counted with aliases expanded, keys of
 * one mapping, anchors). DQ_BAD_MODEL: the text is no YAML, or has a duplicate key, a tag, a mapping as a
 * key, a zero byte, or an alias of an unfinished node. Messages begin with "SOURCE:LINE: ". */
#ifndef DQ_SCHEMA_YAML_TREE_H
#define DQ_SCHEMA_YAML_TREE_H

#include "base/arena.h"
#include "base/error.h"

#define DQ_YAML_MAX_BYTES ((size_t)4 << 20)
#define DQ_YAML_MAX_NODES 100000u
#define DQ_YAML_MAX_DEPTH 16u
#define DQ_YAML_MAX_KEYS 64u
#define DQ_YAML_MAX_ANCHORS 256u

typedef enum dq_yaml_kind { DQ_YAML_SCALAR, DQ_YAML_LIST, DQ_YAML_MAP } dq_yaml_kind;

typedef struct dq_yaml dq_yaml;

/** One element of a list (key NULL) or one entry of a mapping, in the order of the text. */
typedef struct dq_yaml_item dq_yaml_item;
struct dq_yaml_item {
    const char *key;
    unsigned line;
    const dq_yaml *value;
    const dq_yaml_item *next;
};

struct dq_yaml {
    dq_yaml_kind kind;
    /** A plain scalar, neither quoted nor a block: only such a scalar can be a number, a bool or null. */
    bool plain;
    unsigned line; /**< Counted from 1. */
    unsigned height;
    size_t weight;             /**< Nodes in this tree, aliases expanded. */
    const char *text;          /**< Scalar: zero-terminated. */
    const dq_yaml_item *items; /**< List or mapping. */
    size_t count;              /**< Number of items. */
};

/** Calls `visit` with the root of each document. Trees live in `arena`. `source` is for messages. If `visit`
 * does not return DQ_OK, reading ends and returns that status. */
dq_status dq_yaml_read(dq_arena *arena, const char *text, size_t length, const char *source,
                       dq_status (*visit)(void *arg, const dq_yaml *root, dq_error *err), void *arg,
                       dq_error *err);

/** "a text", "a list" or "a mapping". */
const char *dq_yaml_kind_name(dq_yaml_kind kind);

#endif
