/* SPDX-License-Identifier: Apache-2.0 */
/* YAML text as a small tree, with the bounds that text from a stranger needs. The only file that knows
 * libyaml is yaml_tree.c.
 *
 * A document over a limit (bytes, nesting, nodes counted with aliases expanded, keys of one mapping, anchors)
 * is refused with DQ_OUT_OF_MEMORY; text that is no YAML, a key that stands twice, a tag, a mapping as a key,
 * a zero byte or an alias of an unfinished node with DQ_BAD_MODEL. Sentences begin "SOURCE:LINE: ". */
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
    bool plain;    /**< a scalar without quotes, not a block: only such a one is a number, a bool or null */
    unsigned line; /**< counted from 1 */
    unsigned height;
    size_t weight;             /**< nodes in this tree, aliases expanded */
    const char *text;          /**< scalar: zero-terminated */
    const dq_yaml_item *items; /**< list or mapping */
    size_t count;              /**< items */
};

/** Calls `visit` with the root of each document. Trees live in `arena`. `source` is for sentences. A status
 * other than DQ_OK from `visit` ends the reading and is returned. */
dq_status dq_yaml_read(dq_arena *arena, const char *text, size_t length, const char *source,
                       dq_status (*visit)(void *arg, const dq_yaml *root, dq_error *err), void *arg,
                       dq_error *err);

/** "a text", "a list", "a mapping". */
const char *dq_yaml_kind_name(dq_yaml_kind kind);

#endif
