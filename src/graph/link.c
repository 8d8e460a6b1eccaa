/* SPDX-License-Identifier: Apache-2.0 */
/* Linking: resolves names to values, checks single assignment, sorts the nodes topologically, and lists
 * captures of subgraphs. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

/* The value of `name` in the scope of g: its own, or that of the nearest outer graph. */
static dq_value *visible(const dq_graph *g, const char *name)
{
    for (; g; g = g->outer) {
        dq_value *v = dq_namemap_get(&g->values, name);
        /* A value_info alone does not define a value. */
        if (v && (v->is_input || v->constant || v->producer))
            return v;
    }
    return NULL;
}

static dq_status take_output(dq_graph *g, dq_node *node, uint32_t i, dq_error *err)
{
    const char *name = node->out_names[i];
    char text[DQ_NODE_TEXT], other[DQ_NODE_TEXT];
    dq_value *v = NULL;
    if (!*name)
        return DQ_OK;
    DQ_TRY(dq_graph_value(g, name, &v, err));
    if (v->producer)
        return dq_fail(err, DQ_BAD_MODEL, "%s: output '%s' is already given by %s", dq_node_text(node, text),
                       name, dq_node_text(v->producer, other));
    if (v->is_input || v->constant)
        return dq_fail(err, DQ_BAD_MODEL, "%s: output '%s' is already %s of the graph",
                       dq_node_text(node, text), name, v->is_input ? "an input" : "an initializer");
    v->producer = node;
    node->out[i] = v;
    return DQ_OK;
}

static dq_status take_inputs(dq_graph *g, dq_node *node, dq_error *err)
{
    for (uint32_t i = 0; i < node->in_count; i++) {
        const char *name = node->in_names[i];
        char text[DQ_NODE_TEXT];
        if (!*name)
            continue;
        node->in[i] = visible(g, name);
        if (!node->in[i])
            return dq_fail(err, DQ_BAD_MODEL, "%s: input %u '%s' is given by no node, input or initializer",
                           dq_node_text(node, text), i, name);
    }
    return DQ_OK;
}

/* ---- Topological order -------------------------------------------------------------------------------- */

void dq_node_each_use(const dq_node *node, dq_use_fn use, void *arg)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (node->in[i])
            use(arg, node->in[i]);
    dq_graph *const *graphs;
    for (uint32_t a = 0; a < node->attr_count; a++)
        for (size_t n = dq_attr_graphs(&node->attrs[a], &graphs), k = 0; k < n; k++)
            for (uint32_t i = 0; i < graphs[k]->capture_count; i++)
                use(arg, graphs[k]->captures[i]);
}

/* The users of each node in one array of edges: those of node p are edges[start[p] … start[p + 1] - 1]. */
typedef struct edges {
    size_t *start;
    uint32_t *users;
    uint32_t *waiting; /* Per node: number of producers that are not in the order yet. */
    size_t count;
    const dq_graph *graph;
    uint32_t node; /* The node whose edges are being listed. */
    bool sorted;   /* No producer comes after its user. */
} edges;

static void count_edge(void *arg, dq_value *v)
{
    edges *e = arg;
    const dq_node *needed = v->producer;
    if (!needed || v->graph != e->graph)
        return;
    e->start[needed->position + 1]++;
    e->waiting[e->node]++;
    e->count++;
    if (needed->position >= e->node)
        e->sorted = false;
}

static void store_edge(void *arg, dq_value *v)
{
    edges *e = arg;
    if (v->producer && v->graph == e->graph)
        e->users[e->start[v->producer->position]++] = e->node;
}

static void list_edges(const dq_graph *g, edges *e, dq_use_fn fn)
{
    for (e->node = 0; e->node < g->node_count; e->node++)
        dq_node_each_use(g->nodes[e->node], fn, e);
}

static dq_status cycle(const dq_graph *g, const edges *e, dq_error *err)
{
    for (uint32_t i = 0; i < g->node_count; i++) {
        char text[DQ_NODE_TEXT];
        if (e->waiting[i])
            return dq_fail(err, DQ_BAD_MODEL, "%s is part of, or waits for, a cycle of nodes",
                           dq_node_text(g->nodes[i], text));
    }
    return dq_fail(err, DQ_INTERNAL, "the topological sort lost a node");
}

/* Kahn's algorithm. Ready nodes keep the model's order as far as possible. */
static dq_status sort_nodes(dq_graph *g, edges *e, dq_node **order, dq_error *err)
{
    uint32_t sorted = 0, n = g->node_count;
    list_edges(g, e, store_edge);
    for (uint32_t i = n; i > 0; i--) /* Storing moved each start to its end. */
        e->start[i] = e->start[i - 1];
    e->start[0] = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!e->waiting[i])
            order[sorted++] = g->nodes[i];
    for (uint32_t i = 0; i < sorted; i++) {
        uint32_t p = order[i]->position;
        for (size_t k = e->start[p]; k < e->start[p + 1]; k++)
            if (--e->waiting[e->users[k]] == 0)
                order[sorted++] = g->nodes[e->users[k]];
    }
    if (sorted != n)
        return cycle(g, e, err);
    memcpy(g->nodes, order, n * sizeof *order);
    for (uint32_t i = 0; i < n; i++)
        g->nodes[i]->position = i;
    return DQ_OK;
}

static dq_status sort(dq_graph *g, dq_error *err)
{
    size_t n = g->node_count;
    if (n == 0)
        return DQ_OK;
    edges e = {.sorted = true, .graph = g};
    e.start = calloc(n + 1, sizeof *e.start);
    e.waiting = calloc(n, sizeof *e.waiting);
    dq_node **order = calloc(n, sizeof *order);
    dq_status status = DQ_OK;
    if (!e.start || !e.waiting || !order)
        status = dq_no_memory(err, n * sizeof *order, "the topological sort");
    if (status == DQ_OK)
        list_edges(g, &e, count_edge);
    if (status == DQ_OK && !e.sorted) {
        for (size_t i = 0; i < n; i++)
            e.start[i + 1] += e.start[i];
        e.users = calloc(e.count, sizeof *e.users);
        status = e.users ? sort_nodes(g, &e, order, err)
                         : dq_no_memory(err, e.count * sizeof *e.users, "the topological sort");
    }
    free(e.start);
    free(e.waiting);
    free(e.users);
    free(order);
    return status;
}

/* ---- Linking ------------------------------------------------------------------------------------------ */

static dq_status link_inner(dq_node *node, dq_error *err)
{
    dq_graph *const *graphs;
    for (uint32_t a = 0; a < node->attr_count; a++)
        for (size_t n = dq_attr_graphs(&node->attrs[a], &graphs), k = 0; k < n; k++)
            DQ_TRY(dq_graph_link(graphs[k], err));
    return DQ_OK;
}

static dq_status take_graph_output(dq_graph *g, uint32_t i, dq_error *err)
{
    const char *name = g->output_names[i];
    dq_value *v = visible(g, name);
    if (!v)
        return dq_fail(err, DQ_BAD_MODEL, "graph '%s': output '%s' is given by no node, input or initializer",
                       g->name, name);
    g->outputs[i] = v;
    if (v->graph != g)
        return DQ_OK;
    v->is_output = true;
    const dq_type *declared = &g->output_types[i];
    if (v->type.kind == DQ_KIND_TENSOR && v->type.dtype == DQ_UNDEFINED)
        v->type = *declared;
    return DQ_OK;
}

/* Collects the values of outer graphs that g uses. */
typedef struct outside {
    const dq_graph *g;
    dq_value **values; /* NULL: only counts them. */
    size_t count;
} outside;

static void add_outside(void *arg, dq_value *v)
{
    outside *o = arg;
    if (v->graph == o->g)
        return;
    if (o->values)
        o->values[o->count] = v;
    o->count++;
}

static void list_outside(const dq_graph *g, outside *o)
{
    o->count = 0;
    for (uint32_t n = 0; n < g->node_count; n++)
        dq_node_each_use(g->nodes[n], add_outside, o);
    for (uint32_t i = 0; i < g->output_count; i++)
        add_outside(o, g->outputs[i]);
}

static int by_id(const void *a, const void *p)
{
    const dq_value *const *x = a, *const *y = p;
    return (*x)->id < (*y)->id ? -1 : (*x)->id > (*y)->id;
}

/* Lists the captures of a graph once. Outer graphs use the list instead of its nodes, so that the cost does
 * not grow with nesting. */
static dq_status list_captures(dq_graph *g, dq_error *err)
{
    outside o = {.g = g};
    uint32_t count = 0;
    list_outside(g, &o);
    if (o.count == 0)
        return DQ_OK;
    dq_value **all = calloc(o.count, sizeof *all);
    if (!all)
        return dq_no_memory(err, o.count * sizeof *all, "what a graph takes from outside");
    o.values = all;
    list_outside(g, &o);
    qsort(all, o.count, sizeof *all, by_id);
    for (size_t i = 0; i < o.count; i++)
        if (i == 0 || all[i] != all[count - 1])
            all[count++] = all[i];
    g->captures = DQ_NEW_ARRAY(&g->ir->arena, count, dq_value *);
    if (g->captures)
        memcpy(g->captures, all, count * sizeof *all);
    free(all);
    if (!g->captures)
        return dq_no_memory(err, count * sizeof *all, "what a graph takes from outside");
    g->capture_count = count;
    return DQ_OK;
}

dq_status dq_graph_link(dq_graph *g, dq_error *err)
{
    if (g->linked)
        return DQ_OK;
    for (uint32_t n = 0; n < g->node_count; n++) {
        if (!g->nodes[n]->version)
            g->nodes[n]->version = g->nodes[n]->opset;
        for (uint32_t i = 0; i < g->nodes[n]->out_count; i++)
            DQ_TRY(take_output(g, g->nodes[n], i, err));
    }
    for (uint32_t n = 0; n < g->node_count; n++)
        DQ_TRY(take_inputs(g, g->nodes[n], err));
    for (uint32_t i = 0; i < g->output_count; i++)
        DQ_TRY(take_graph_output(g, i, err));
    for (uint32_t n = 0; n < g->node_count; n++)
        DQ_TRY(link_inner(g->nodes[n], err));
    DQ_TRY(sort(g, err));
    DQ_TRY(list_captures(g, err));
    g->linked = true;
    return DQ_OK;
}
