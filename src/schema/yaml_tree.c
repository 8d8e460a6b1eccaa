/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/yaml_tree.h"

#include <string.h>
#include <yaml.h>

typedef struct anchor anchor;
struct anchor {
    const char *name;
    const dq_yaml *node; /* NULL while the node is being read. */
    anchor *next;
};

typedef struct reader {
    yaml_parser_t parser;
    dq_arena *arena;
    const char *source;
    dq_error *err;
    anchor *anchors; /* Newest first: a later anchor of the same name hides the earlier one. */
    unsigned anchor_count;
} reader;

/* Reads one node. The caller deletes the event. */
static dq_status read_node(reader *r, const yaml_event_t *event, unsigned depth, const dq_yaml **out);

static unsigned line_of(yaml_mark_t mark)
{
    return (unsigned)mark.line + 1;
}

static dq_status fail_at(reader *r, unsigned line, const char *what)
{
    return dq_fail(r->err, DQ_BAD_MODEL, "%s:%u: %s", r->source, line, what);
}

static dq_status over_limit(reader *r, unsigned line, const char *what, size_t limit)
{
    return dq_fail(r->err, DQ_OUT_OF_MEMORY, "%s:%u: %s, the limit is %zu", r->source, line, what, limit);
}

static dq_status no_memory(reader *r)
{
    return dq_no_memory(r->err, sizeof(dq_yaml), "a YAML node");
}

static dq_status next_event(reader *r, yaml_event_t *event)
{
    if (yaml_parser_parse(&r->parser, event))
        return DQ_OK;
    if (r->parser.error == YAML_MEMORY_ERROR)
        return no_memory(r);
    const char *problem = r->parser.problem ? r->parser.problem : "it cannot be read";
    if (r->parser.error == YAML_READER_ERROR)
        return dq_fail(r->err, DQ_BAD_MODEL, "%s: byte %zu is not YAML text: %s", r->source,
                       r->parser.problem_offset, problem);
    return dq_fail(r->err, DQ_BAD_MODEL, "%s:%u: not YAML: %s", r->source, line_of(r->parser.problem_mark),
                   problem);
}

static dq_status add_anchor(reader *r, const yaml_char_t *name, unsigned line, anchor **out)
{
    *out = NULL;
    if (!name)
        return DQ_OK;
    if (r->anchor_count++ >= DQ_YAML_MAX_ANCHORS)
        return over_limit(r, line, "too many anchors", DQ_YAML_MAX_ANCHORS);
    anchor *a = DQ_NEW(r->arena, anchor);
    if (!a)
        return no_memory(r);
    a->name = dq_arena_string(r->arena, (const char *)name, strlen((const char *)name));
    if (!a->name)
        return no_memory(r);
    a->next = r->anchors;
    r->anchors = a;
    *out = a;
    return DQ_OK;
}

static dq_status find_alias(reader *r, const yaml_event_t *event, const dq_yaml **out)
{
    const char *name = (const char *)event->data.alias.anchor;
    unsigned line = line_of(event->start_mark);
    const anchor *a = r->anchors;
    while (a && strcmp(a->name, name) != 0)
        a = a->next;
    if (!a)
        return dq_fail(r->err, DQ_BAD_MODEL, "%s:%u: alias *%s names no anchor before it", r->source, line,
                       name);
    if (!a->node)
        return dq_fail(r->err, DQ_BAD_MODEL, "%s:%u: alias *%s stands inside its own anchor", r->source, line,
                       name);
    *out = a->node;
    return DQ_OK;
}

static dq_status read_scalar(reader *r, const yaml_event_t *event, dq_yaml *node)
{
    const char *value = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(value, 0, length))
        return fail_at(r, node->line, "a text holds a zero byte");
    node->kind = DQ_YAML_SCALAR;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text = dq_arena_string(r->arena, value, length);
    return node->text ? DQ_OK : no_memory(r);
}

/* Appends `child` to `node`, and checks the limits of the tree's size and depth with aliases expanded. */
static dq_status add_item(reader *r, dq_yaml *node, const char *key, unsigned line, const dq_yaml *child,
                          unsigned depth, dq_yaml_item **last)
{
    node->weight += child->weight;
    if (node->weight > DQ_YAML_MAX_NODES)
        return over_limit(r, line, "too many nodes, aliases expanded", DQ_YAML_MAX_NODES);
    if (child->height >= node->height)
        node->height = child->height + 1;
    if (depth + node->height > DQ_YAML_MAX_DEPTH)
        return over_limit(r, line, "nested too deep", DQ_YAML_MAX_DEPTH);
    dq_yaml_item *item = DQ_NEW(r->arena, dq_yaml_item);
    if (!item)
        return no_memory(r);
    *item = (dq_yaml_item){.key = key, .line = line, .value = child};
    if (*last)
        (*last)->next = item;
    else
        node->items = item;
    *last = item;
    node->count++;
    return DQ_OK;
}

/* Reads the next node in a list or mapping, and its line; NULL if `end` closes it. */
static dq_status read_child(reader *r, yaml_event_type_t end, unsigned depth, const dq_yaml **child,
                            unsigned *line)
{
    yaml_event_t event;
    DQ_TRY(next_event(r, &event));
    *child = NULL;
    *line = line_of(event.start_mark);
    dq_status status = event.type == end ? DQ_OK : read_node(r, &event, depth + 1, child);
    yaml_event_delete(&event);
    return status;
}

static dq_status read_list(reader *r, unsigned depth, dq_yaml *node)
{
    dq_yaml_item *last = NULL;
    node->kind = DQ_YAML_LIST;
    for (;;) {
        unsigned line;
        const dq_yaml *child;
        DQ_TRY(read_child(r, YAML_SEQUENCE_END_EVENT, depth, &child, &line));
        if (!child)
            return DQ_OK;
        DQ_TRY(add_item(r, node, NULL, line, child, depth, &last));
    }
}

static dq_status check_key(reader *r, const dq_yaml *map, const dq_yaml *key, unsigned line)
{
    if (key->kind != DQ_YAML_SCALAR)
        return dq_fail(r->err, DQ_BAD_MODEL, "%s:%u: a key is %s, expected a text", r->source, line,
                       dq_yaml_kind_name(key->kind));
    if (map->count >= DQ_YAML_MAX_KEYS)
        return over_limit(r, line, "too many keys in a mapping", DQ_YAML_MAX_KEYS);
    for (const dq_yaml_item *item = map->items; item; item = item->next)
        if (strcmp(item->key, key->text) == 0)
            return dq_fail(r->err, DQ_BAD_MODEL, "%s:%u: key '%.80s' stands twice, first on line %u",
                           r->source, line, key->text, item->line);
    return DQ_OK;
}

static dq_status read_map(reader *r, unsigned depth, dq_yaml *node)
{
    dq_yaml_item *last = NULL;
    const dq_yaml *key = NULL;
    node->kind = DQ_YAML_MAP;
    for (;;) {
        unsigned line;
        const dq_yaml *child;
        DQ_TRY(read_child(r, YAML_MAPPING_END_EVENT, depth, &child, &line));
        if (!child)
            return DQ_OK;
        if (!key) {
            DQ_TRY(check_key(r, node, child, line));
            key = child;
        } else {
            DQ_TRY(add_item(r, node, key->text, line, child, depth, &last));
            key = NULL;
        }
    }
}

static dq_status refuse_tag(reader *r, const yaml_char_t *tag, unsigned line)
{
    if (!tag)
        return DQ_OK;
    return dq_fail(r->err, DQ_BAD_MODEL, "%s:%u: tag '%.80s' is not allowed", r->source, line,
                   (const char *)tag);
}

static dq_status read_node(reader *r, const yaml_event_t *event, unsigned depth, const dq_yaml **out)
{
    unsigned line = line_of(event->start_mark);
    if (event->type == YAML_ALIAS_EVENT)
        return find_alias(r, event, out);
    if (depth >= DQ_YAML_MAX_DEPTH)
        return over_limit(r, line, "nested too deep", DQ_YAML_MAX_DEPTH);
    dq_yaml *node = DQ_NEW(r->arena, dq_yaml);
    if (!node)
        return no_memory(r);
    *node = (dq_yaml){.line = line, .height = 1, .weight = 1};
    anchor *a = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        DQ_TRY(refuse_tag(r, event->data.scalar.tag, line));
        DQ_TRY(add_anchor(r, event->data.scalar.anchor, line, &a));
        DQ_TRY(read_scalar(r, event, node));
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        DQ_TRY(refuse_tag(r, event->data.sequence_start.tag, line));
        DQ_TRY(add_anchor(r, event->data.sequence_start.anchor, line, &a));
        DQ_TRY(read_list(r, depth, node));
    } else {
        DQ_TRY(refuse_tag(r, event->data.mapping_start.tag, line));
        DQ_TRY(add_anchor(r, event->data.mapping_start.anchor, line, &a));
        DQ_TRY(read_map(r, depth, node));
    }
    if (a)
        a->node = node;
    *out = node;
    return DQ_OK;
}

static dq_status read_documents(reader *r, dq_status (*visit)(void *, const dq_yaml *, dq_error *), void *arg)
{
    for (;;) {
        yaml_event_t event;
        DQ_TRY(next_event(r, &event));
        yaml_event_type_t type = event.type;
        const dq_yaml *root = NULL;
        dq_status status = DQ_OK;
        if (type == YAML_SCALAR_EVENT || type == YAML_SEQUENCE_START_EVENT ||
            type == YAML_MAPPING_START_EVENT || type == YAML_ALIAS_EVENT) {
            status = read_node(r, &event, 0, &root);
        } else if (type == YAML_DOCUMENT_START_EVENT) {
            r->anchors = NULL;
            r->anchor_count = 0;
        }
        yaml_event_delete(&event);
        DQ_TRY(status);
        if (root)
            DQ_TRY(visit(arg, root, r->err));
        if (type == YAML_STREAM_END_EVENT)
            return DQ_OK;
    }
}

dq_status dq_yaml_read(dq_arena *arena, const char *text, size_t length, const char *source,
                       dq_status (*visit)(void *arg, const dq_yaml *root, dq_error *err), void *arg,
                       dq_error *err)
{
    if (length > DQ_YAML_MAX_BYTES)
        return dq_fail(err, DQ_OUT_OF_MEMORY, "%s: has %zu bytes, the limit is %zu", source, length,
                       DQ_YAML_MAX_BYTES);
    reader r = {.arena = arena, .source = source, .err = err};
    if (!yaml_parser_initialize(&r.parser))
        return no_memory(&r);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, length);
    dq_status status = read_documents(&r, visit, arg);
    yaml_parser_delete(&r.parser);
    return status;
}

const char *dq_yaml_kind_name(dq_yaml_kind kind)
{
    return kind == DQ_YAML_SCALAR ? "a text" : kind == DQ_YAML_LIST ? "a list" : "a mapping";
}
