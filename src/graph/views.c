/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/views.h"

#include "base/lock.h"
#include "base/memory.h"

#include <string.h>

enum { LISTS = 64 };

/* A view made of the object at `of`. */
typedef struct view {
    struct view *next;
    const void *of, *made;
} view;

struct dq_views {
    dq_lock lock;
    dq_arena arena;
    view *made[LISTS];
    const char *tensors[DQ_DTYPE_COUNT]; /* By element type: the type's text. */
    /* By the id of a value: its consumers are nodes[start[id] … start[id] + count[id] - 1]; NULL: not made
     * yet. */
    uint32_t *start, *count;
    const dq_node **nodes;
};

dq_status dq_views_create(const dq_allocator *allocator, dq_views **out, dq_error *err)
{
    dq_views *views = dq_memory_calloc(allocator, 1, sizeof *views);
    if (!views)
        return dq_no_memory(err, sizeof *views, "views of a model");
    views->arena.allocator = allocator;
    dq_status status = dq_lock_create(&views->lock, "views of a model", err);
    if (status != DQ_OK)
        dq_memory_free(allocator, views, sizeof *views);
    else
        *out = views;
    return status;
}

void dq_views_free(dq_views *views)
{
    if (!views)
        return;
    dq_lock_destroy(&views->lock);
    dq_arena_free(&views->arena);
    dq_memory_free(views->arena.allocator, views, sizeof *views);
}

static dq_status no_memory(dq_error *err, size_t count)
{
    return dq_no_memory(err, count * sizeof(void *), "a view of a model");
}

/* ---- Consumers ---------------------------------------------------------------------------------------- */

typedef void (*visit_fn)(dq_views *views, const dq_node *node, const dq_value *v);

static void count_reading(dq_views *views, const dq_node *node, const dq_value *v)
{
    (void)node;
    views->start[v->id + 1]++;
}

static void add_reading(dq_views *views, const dq_node *node, const dq_value *v)
{
    const dq_node **own = views->nodes + views->start[v->id];
    uint32_t *count = &views->count[v->id];
    if (*count == 0 || own[*count - 1] != node) /* A node that reads it twice occurs twice in a row. */
        own[(*count)++] = node;
}

static void each_reading(dq_views *views, const dq_graph *g, visit_fn visit)
{
    dq_graph *const *graphs;
    for (uint32_t n = 0; n < g->node_count; n++) {
        const dq_node *node = g->nodes[n];
        for (uint32_t i = 0; i < node->in_count; i++)
            if (node->in[i])
                visit(views, node, node->in[i]);
        for (uint32_t a = 0; a < node->attr_count; a++)
            for (size_t count = dq_attr_graphs(&node->attrs[a], &graphs), k = 0; k < count; k++)
                each_reading(views, graphs[k], visit);
    }
}

static bool index_consumers(dq_views *views, const dq_ir *ir)
{
    const uint32_t values = ir->value_count;
    uint32_t *start = DQ_NEW_ARRAY(&views->arena, (size_t)values + 1, uint32_t);
    views->count = DQ_NEW_ARRAY(&views->arena, values, uint32_t);
    views->start = start;
    if (start && views->count) {
        each_reading(views, ir->graph, count_reading);
        for (uint32_t i = 0; i < values; i++)
            start[i + 1] += start[i];
        views->nodes = DQ_NEW_ARRAY(&views->arena, start[values], const dq_node *);
        if (views->nodes)
            each_reading(views, ir->graph, add_reading);
    }
    return views->nodes;
}

dq_status dq_views_consumers(dq_ir *ir, const dq_value *v, size_t *count, const dq_node *const **nodes,
                             dq_error *err)
{
    static const dq_node *const none[1];
    dq_views *views = ir->views;
    *count = 0;
    *nodes = none;
    if (v->id >= ir->value_count) /* A synthetic value: no node of the model reads it. */
        return DQ_OK;
    dq_lock_take(&views->lock);
    const bool good = views->nodes || index_consumers(views, ir);
    if (good) {
        *count = views->count[v->id];
        *nodes = views->nodes + views->start[v->id];
    }
    dq_lock_release(&views->lock);
    return good ? DQ_OK : no_memory(err, ir->value_count);
}

/* ---- Texts -------------------------------------------------------------------------------------------- */

/* Makes the view of `of` in the arena; NULL: out of memory. */
typedef const void *(*make_fn)(dq_views *views, const void *of, size_t count);

static const void *find_or_make(dq_views *views, const void *of, size_t count, make_fn make)
{
    view **list = &views->made[(uintptr_t)of / sizeof(void *) % LISTS];
    for (const view *v = *list; v; v = v->next)
        if (v->of == of)
            return v->made;
    view *made = DQ_NEW(&views->arena, view);
    if (!made || !(made->made = make(views, of, count)))
        return NULL;
    made->of = of;
    made->next = *list;
    *list = made;
    return made->made;
}

static const void *view_of(dq_ir *ir, const void *of, size_t count, make_fn make)
{
    dq_lock_take(&ir->views->lock);
    const void *made = find_or_make(ir->views, of, count, make);
    dq_lock_release(&ir->views->lock);
    return made;
}

static const void *make_strings(dq_views *views, const void *of, size_t count)
{
    const dq_string *strings = of;
    const char **texts = DQ_NEW_ARRAY(&views->arena, count, const char *);
    for (size_t i = 0; texts && i < count; i++)
        texts[i] = strings[i].bytes ? strings[i].bytes : "";
    return texts;
}

static const char *copy_type(dq_views *views, const dq_type *type)
{
    char text[DQ_TYPE_TEXT];
    dq_type_text(type, text);
    return dq_arena_string(&views->arena, text, strlen(text));
}

static const void *make_type(dq_views *views, const void *of, size_t count)
{
    const dq_type *type = of;
    (void)count;
    return copy_type(views, type);
}

static const void *make_types(dq_views *views, const void *of, size_t count)
{
    const dq_type *const *types = of;
    const char **texts = DQ_NEW_ARRAY(&views->arena, count, const char *);
    for (size_t i = 0; texts && i < count; i++)
        if (!(texts[i] = copy_type(views, types[i])))
            return NULL;
    return texts;
}

/* Texts of tensor types, the most frequent ones, are in a table. */
static const char *tensor_type(dq_views *views, const dq_type *type)
{
    const char **text = &views->tensors[dq_dtype_valid(type->dtype) ? type->dtype : DQ_UNDEFINED];
    dq_lock_take(&views->lock);
    if (!*text)
        *text = copy_type(views, type);
    const char *found = *text;
    dq_lock_release(&views->lock);
    return found;
}

dq_status dq_views_strings(dq_ir *ir, const dq_string *strings, size_t count, const char *const **texts,
                           dq_error *err)
{
    *texts = view_of(ir, strings, count, make_strings);
    return *texts ? DQ_OK : no_memory(err, count);
}

dq_status dq_views_type(dq_ir *ir, const dq_type *type, const char **text, dq_error *err)
{
    *text = type->kind == DQ_KIND_TENSOR ? tensor_type(ir->views, type) : view_of(ir, type, 1, make_type);
    return *text ? DQ_OK : no_memory(err, 1);
}

dq_status dq_views_types(dq_ir *ir, const dq_type *const *types, size_t count, const char *const **texts,
                         dq_error *err)
{
    *texts = view_of(ir, types, count, make_types);
    return *texts ? DQ_OK : no_memory(err, count);
}
