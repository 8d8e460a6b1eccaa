/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/inline_functions.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call that is being inlined. `call` has the names of the graph that contains it. */
typedef struct frame {
    const struct frame *caller; /* NULL: called from the model's own graphs. */
    const dq_function *function;
    const dq_node *call;
    const char *prefix; /* Prefix of the names of values and nodes. */
    dq_namemap names;   /* Maps a name in the body to its name in the model. */
} frame;

typedef struct inliner {
    dq_ir *ir;
    dq_namemap functions;       /* By key. */
    dq_namemap placed_interval; /* All value names of the model. */
    uint64_t nodes;             /* Of all graphs, so far. */
    uint64_t copied;            /* Names, attributes and calls of functions, so far. */
    unsigned fresh;             /* Suffix number for names that already exist. */
} inliner;

static dq_status no_memory(dq_error *err)
{
    return dq_no_memory(err, sizeof(dq_node), "the nodes of a function");
}

/* ---- Look-up of functions ---------------------------------------------------------------------------- */

/* The key "domain\nname\noverload". Names that contain newlines can collide, so that a hit is compared. */
static char *function_key(const char *domain, const char *name, const char *overload)
{
    size_t size = strlen(domain) + strlen(name) + strlen(overload) + 3;
    char *key = malloc(size);
    if (key)
        snprintf(key, size, "%s\n%s\n%s", domain, name, overload);
    return key;
}

static bool is_called(const dq_function *f, const dq_node *node)
{
    return strcmp(f->name, node->op_type) == 0 && strcmp(f->domain, node->domain) == 0 &&
           strcmp(f->overload, node->overload) == 0;
}

static dq_status find_function(const inliner *in, const dq_node *node, const dq_function **out, dq_error *err)
{
    *out = NULL;
    if (in->functions.count == 0)
        return DQ_OK;
    char *key = function_key(node->domain, node->op_type, node->overload);
    if (!key)
        return no_memory(err);
    const dq_function *f = dq_namemap_get(&in->functions, key);
    free(key);
    if (f && is_called(f, node))
        *out = f;
    return DQ_OK;
}

static dq_status index_functions(inliner *in, dq_error *err)
{
    for (uint32_t i = 0; i < in->ir->function_count; i++) {
        dq_function *f = &in->ir->functions[i];
        char *key = function_key(f->domain, f->name, f->overload);
        const char *kept = key ? dq_arena_string(&in->ir->arena, key, strlen(key)) : NULL;
        free(key);
        if (!kept)
            return no_memory(err);
        if (dq_namemap_get(&in->functions, kept))
            return dq_fail(err, DQ_BAD_MODEL, "two functions are named '%s' in domain '%s'%s%s", f->name,
                           f->domain, *f->overload ? ", overload " : "", f->overload);
        if (!dq_namemap_put(&in->functions, kept, f))
            return no_memory(err);
    }
    return DQ_OK;
}

/* ---- Names -------------------------------------------------------------------------------------------- */

static dq_status take_name(inliner *in, const char *name, dq_error *err)
{
    static char placed_interval;
    return dq_namemap_put(&in->placed_interval, name, &placed_interval) ? DQ_OK : no_memory(err);
}

static dq_status take_graph(inliner *in, const dq_graph *g, dq_error *err);

static dq_status take_attr(inliner *in, const dq_attr *attr, dq_error *err)
{
    dq_graph *const *graphs;
    for (size_t n = dq_attr_graphs(attr, &graphs), k = 0; k < n; k++)
        DQ_TRY(take_graph(in, graphs[k], err));
    return DQ_OK;
}

/* Records every value name of a graph, so that no new name collides with one. */
static dq_status take_graph(inliner *in, const dq_graph *g, dq_error *err)
{
    for (uint32_t i = 0; i < g->value_count; i++)
        DQ_TRY(take_name(in, g->all[i]->name, err));
    for (uint32_t i = 0; i < g->node_count; i++) {
        const dq_node *node = g->nodes[i];
        for (uint32_t k = 0; k < node->out_count; k++)
            DQ_TRY(take_name(in, node->out_names[k], err));
        for (uint32_t k = 0; k < node->attr_count; k++)
            DQ_TRY(take_attr(in, &node->attrs[k], err));
    }
    return DQ_OK;
}

/* Longest part of a name that enters new names: a prefix of a megabyte on a million names would be too large.
 */
enum { NAME_PART = 160 };

/* Length of the name, truncated to NAME_PART bytes between characters. */
static int part(const char *name)
{
    size_t length = strnlen(name, NAME_PART + 1);
    if (length <= NAME_PART)
        return (int)length;
    length = NAME_PART;
    while (length > 0 && ((unsigned char)name[length] & 0xC0) == 0x80)
        length--;
    return (int)length;
}

/* Maps a name in the body to its name in the model. Without a frame names stay: subgraphs that a caller
 * passes as an attribute already have the model's names. */
static dq_status rename_value(inliner *in, frame *f, const char *name, const char **out, dq_error *err)
{
    *out = name;
    if (!f || !*name)
        return DQ_OK;
    const char *known = dq_namemap_get(&f->names, name);
    if (known) {
        *out = known;
        return DQ_OK;
    }
    dq_arena *arena = &in->ir->arena;
    char *fresh = dq_arena_printf(arena, "%s/%.*s", f->prefix, part(name), name);
    while (fresh && dq_namemap_get(&in->placed_interval, fresh))
        fresh = dq_arena_printf(arena, "%s/%.*s.%u", f->prefix, part(name), name, ++in->fresh);
    if (!fresh || !dq_namemap_put(&f->names, name, fresh))
        return no_memory(err);
    *out = fresh;
    return take_name(in, fresh, err);
}

/* ---- Copies ------------------------------------------------------------------------------------------- */

static unsigned frame_depth(const frame *f)
{
    unsigned depth = 0;
    for (; f; f = f->caller)
        depth++;
    return depth;
}

static unsigned graph_depth(const dq_graph *g)
{
    unsigned depth = 0;
    for (g = g->outer; g; g = g->outer)
        depth++;
    return depth;
}

static dq_status check_depth(const inliner *in, const frame *f, const dq_graph *g, dq_error *err)
{
    if (frame_depth(f) + graph_depth(g) > in->ir->limits.nesting)
        return dq_fail(err, DQ_OUT_OF_MEMORY,
                       "functions and subgraphs nest deeper than the limit of %" PRIu32 " levels",
                       in->ir->limits.nesting);
    return DQ_OK;
}

static dq_status count_node(inliner *in, dq_error *err)
{
    if (++in->nodes > in->ir->limits.nodes)
        return dq_fail(err, DQ_OUT_OF_MEMORY,
                       "has more nodes than the limit of %" PRIu64 " once functions are inlined",
                       in->ir->limits.nodes);
    return DQ_OK;
}

enum { PARTS_OF_NODE = 16, PARTS_OF_CALL = 8 };

/* Limits work that the number of nodes does not: calls of functions without nodes, and nodes with many names.
 */
static dq_status count_copied(inliner *in, uint64_t parts, dq_error *err)
{
    const uint64_t nodes = in->ir->limits.nodes,
                   most = nodes > UINT64_MAX / PARTS_OF_NODE ? UINT64_MAX : nodes * PARTS_OF_NODE;
    in->copied += 1 + parts;
    if (in->copied > most)
        return dq_fail(err, DQ_OUT_OF_MEMORY,
                       "its functions hold more names, attributes and calls than %" PRIu64
                       " once they are inlined, %d for each node of the limit",
                       most, PARTS_OF_NODE);
    return DQ_OK;
}

static dq_status inline_node(inliner *in, frame *f, const dq_node *node, dq_graph *to, dq_error *err);

static dq_status copy_graph(inliner *in, frame *f, const dq_graph *from, dq_graph *outer, dq_graph **out,
                            dq_error *err)
{
    dq_graph *g = NULL;
    const char *name = NULL;
    DQ_TRY(dq_graph_create(in->ir, from->name, outer, &g, err));
    DQ_TRY(check_depth(in, f, g, err));
    DQ_TRY(count_copied(in, (uint64_t)from->value_count + from->output_count, err));
    for (uint32_t i = 0; i < from->input_count; i++) {
        DQ_TRY(rename_value(in, f, from->inputs[i]->name, &name, err));
        DQ_TRY(dq_graph_add_input(g, name, &from->inputs[i]->type, err));
    }
    for (uint32_t i = 0; i < from->value_count; i++) {
        const dq_value *v = from->all[i];
        if (!v->constant)
            continue;
        DQ_TRY(rename_value(in, f, v->name, &name, err));
        DQ_TRY(dq_graph_add_initializer(g, name, v->constant, err));
    }
    for (uint32_t i = 0; i < from->node_count; i++)
        DQ_TRY(inline_node(in, f, from->nodes[i], g, err));
    for (uint32_t i = 0; i < from->output_count; i++) {
        DQ_TRY(rename_value(in, f, from->output_names[i], &name, err));
        DQ_TRY(dq_graph_add_output(g, name, &from->output_types[i], err));
    }
    *out = g;
    return DQ_OK;
}

/* Copies the subgraphs of an attribute: two nodes may not share one, since linking writes to it. */
static dq_status copy_attr_graphs(inliner *in, frame *f, dq_graph *outer, dq_attr *attr, dq_error *err)
{
    if (attr->kind == DQ_ATTR_GRAPH)
        return copy_graph(in, f, attr->u.graph, outer, &attr->u.graph, err);
    if (attr->kind != DQ_ATTR_GRAPHS)
        return DQ_OK;
    dq_graph **graphs = DQ_NEW_ARRAY(&in->ir->arena, attr->count, dq_graph *);
    if (!graphs)
        return no_memory(err);
    for (size_t k = 0; k < attr->count; k++)
        DQ_TRY(copy_graph(in, f, attr->u.graphs[k], outer, &graphs[k], err));
    attr->u.graphs = graphs;
    return DQ_OK;
}

static const dq_attr *default_of(const dq_function *function, const char *name)
{
    for (uint32_t i = 0; i < function->attr_default_count; i++)
        if (strcmp(function->attr_defaults[i].name, name) == 0)
            return &function->attr_defaults[i];
    return NULL;
}

/* Copies an attribute of a body's node. *present is false if it refers to an attribute without a value. */
static dq_status copy_attr(inliner *in, frame *f, const dq_attr *from, dq_graph *g, dq_attr *out,
                           bool *present, dq_error *err)
{
    *present = true;
    *out = *from;
    if (!from->ref)
        return copy_attr_graphs(in, f, g, out, err);
    const dq_attr *value = dq_node_attr(f->call, from->ref);
    if (!value)
        value = default_of(f->function, from->ref);
    if (!value) {
        *present = false;
        return DQ_OK;
    }
    if (from->kind != DQ_ATTR_UNDEFINED && from->kind != value->kind)
        return dq_fail(
            err, DQ_BAD_MODEL,
            "attribute '%s' has type %s, and attribute '%s' of function '%s', which it refers to, %s",
            from->name, dq_attr_kind_name(from->kind), from->ref, f->function->name,
            dq_attr_kind_name(value->kind));
    *out = *value;
    out->name = from->name;
    return copy_attr_graphs(in, NULL, g, out, err);
}

/* Appends a copy of a body's node to g, with the model's names. */
static dq_status copy_node(inliner *in, frame *f, const dq_node *from, dq_graph *g, dq_node **out,
                           dq_error *err)
{
    dq_node *node = NULL;
    DQ_TRY(count_copied(in, (uint64_t)from->in_count + from->out_count + from->attr_count, err));
    DQ_TRY(dq_graph_add_node(g, from->in_count, from->out_count, from->attr_count, &node, err));
    node->name = !f ? from->name
                 : *from->name
                     ? dq_arena_printf(&in->ir->arena, "%s/%.*s", f->prefix, part(from->name), from->name)
                     : f->prefix;
    if (!node->name)
        return no_memory(err);
    node->domain = from->domain;
    node->op_type = from->op_type;
    node->overload = from->overload;
    node->opset = from->opset;
    node->version = from->version;
    for (uint32_t i = 0; i < from->in_count; i++)
        DQ_TRY(rename_value(in, f, from->in_names[i], &node->in_names[i], err));
    for (uint32_t i = 0; i < from->out_count; i++)
        DQ_TRY(rename_value(in, f, from->out_names[i], &node->out_names[i], err));
    node->attr_count = 0;
    for (uint32_t i = 0; i < from->attr_count; i++) {
        bool present = false;
        DQ_TRY(copy_attr(in, f, &from->attrs[i], g, &node->attrs[node->attr_count], &present, err));
        node->attr_count += present;
    }
    *out = node;
    return DQ_OK;
}

/* ---- Calls -------------------------------------------------------------------------------------------- */

static dq_status refuse_cycle(const frame *caller, const dq_function *function, dq_error *err)
{
    /* Outermost first, from the begin of the cycle. */
    char way[512] = "";
    for (const frame *f = caller; f; f = f->caller) {
        char longer[512];
        snprintf(longer, sizeof longer, "%.96s -> %.400s", f->function->name, way);
        memcpy(way, longer, sizeof way);
        if (f->function == function)
            break;
    }
    return dq_fail(err, DQ_BAD_MODEL, "function '%s' calls itself: %s%s", function->name, way,
                   function->name);
}

static bool declares(const dq_function *f, const char *attr)
{
    for (uint32_t i = 0; i < f->attr_name_count; i++)
        if (strcmp(f->attr_names[i], attr) == 0)
            return true;
    return default_of(f, attr) != NULL;
}

static dq_status check_call(const dq_function *f, const dq_node *call, dq_error *err)
{
    if (call->in_count > f->input_count)
        return dq_fail(err, DQ_BAD_MODEL, "has %" PRIu32 " inputs, and the function takes at most %" PRIu32,
                       call->in_count, f->input_count);
    if (call->out_count > f->output_count)
        return dq_fail(err, DQ_BAD_MODEL, "has %" PRIu32 " outputs, and the function gives at most %" PRIu32,
                       call->out_count, f->output_count);
    for (uint32_t i = 0; i < call->attr_count; i++)
        if (!declares(f, call->attrs[i].name))
            return dq_fail(err, DQ_BAD_MODEL, "has attribute '%s', which the function does not declare",
                           call->attrs[i].name);
    return DQ_OK;
}

/* Maps the function's inputs to the arguments of the call; "" if omitted. */
static dq_status bind_inputs(frame *f, dq_error *err)
{
    for (uint32_t i = 0; i < f->function->input_count; i++) {
        const char *bindings = i < f->call->in_count ? f->call->in_names[i] : "";
        const char *name = f->function->inputs[i];
        if (dq_namemap_get(&f->names, name))
            return dq_fail(err, DQ_BAD_MODEL, "two inputs of the function are named '%s'", name);
        if (!dq_namemap_put(&f->names, name, (void *)(uintptr_t)bindings))
            return no_memory(err);
    }
    return DQ_OK;
}

/* Adds an Identity for an output that is an input of the function, or that occurs twice: no node can produce
 * it under the caller's name. */
static dq_status pass_through(inliner *in, const frame *f, const char *from, const char *to, dq_graph *g,
                              dq_error *err)
{
    dq_node *node = NULL;
    DQ_TRY(count_node(in, err));
    DQ_TRY(dq_graph_add_node(g, 1, 1, 0, &node, err));
    node->name = f->prefix;
    node->op_type = "Identity";
    node->opset = dq_opset_version(f->function->opsets, f->function->opset_count, "");
    if (!node->opset)
        node->opset = dq_opset_version(in->ir->opsets, in->ir->opset_count, "");
    node->version = node->opset;
    node->in_names[0] = from;
    node->out_names[0] = to;
    return DQ_OK;
}

static dq_status bind_outputs(inliner *in, frame *f, dq_graph *g, dq_error *err)
{
    for (uint32_t i = 0; i < f->call->out_count; i++) {
        const char *requested = f->call->out_names[i], *name = f->function->outputs[i];
        if (!*requested)
            continue; /* Gets a new name if the body uses it. */
        const char *known = dq_namemap_get(&f->names, name);
        if (known && !*known)
            return dq_fail(err, DQ_BAD_MODEL,
                           "output %" PRIu32 " is input '%s' of the function, which the call leaves out", i,
                           name);
        if (known)
            DQ_TRY(pass_through(in, f, known, requested, g, err));
        else if (!dq_namemap_put(&f->names, name, (void *)(uintptr_t)requested))
            return no_memory(err);
    }
    return DQ_OK;
}

static dq_status expand_into(inliner *in, frame *f, dq_graph *g, dq_error *err)
{
    const char *name = *f->call->name ? f->call->name : f->function->name;
    f->prefix = dq_arena_string(&in->ir->arena, name, (size_t)part(name));
    if (!f->prefix)
        return no_memory(err);
    DQ_TRY(check_call(f->function, f->call, err));
    DQ_TRY(bind_inputs(f, err));
    DQ_TRY(bind_outputs(in, f, g, err));
    for (uint32_t i = 0; i < f->function->body->node_count; i++)
        DQ_TRY(inline_node(in, f, f->function->body->nodes[i], g, err));
    return DQ_OK;
}

static dq_status expand(inliner *in, const frame *caller, const dq_function *function, const dq_node *call,
                        dq_graph *g, dq_error *err)
{
    frame f = {.caller = caller, .function = function, .call = call};
    for (const frame *up = caller; up; up = up->caller)
        if (up->function == function)
            return refuse_cycle(caller, function, err);
    DQ_TRY(check_depth(in, &f, g, err));
    DQ_TRY(count_copied(in, PARTS_OF_CALL, err));
    dq_status status = expand_into(in, &f, g, err);
    dq_namemap_free(&f.names);
    if (status != DQ_OK && !caller) {
        char text[DQ_NODE_TEXT];
        dq_error_prefix(err, "%s: ", dq_node_text(call, text));
    }
    return status;
}

/* Appends a copy of a body's node to g; a call of a function is inlined instead. */
static dq_status inline_node(inliner *in, frame *f, const dq_node *node, dq_graph *g, dq_error *err)
{
    const dq_function *function = NULL;
    dq_node *copy = NULL;
    DQ_TRY(copy_node(in, f, node, g, &copy, err));
    DQ_TRY(find_function(in, copy, &function, err));
    if (!function)
        return count_node(in, err);
    g->node_count--; /* Removes the call itself. It was added last, since the nodes of its subgraphs are in
                        those graphs. */
    return expand(in, f, function, copy, g, err);
}

/* ---- The model's own graphs --------------------------------------------------------------------------- */

static dq_status inline_graph(inliner *in, dq_graph *g, dq_error *err);

static dq_status inline_attrs(inliner *in, dq_node *node, dq_error *err)
{
    dq_graph *const *graphs;
    for (uint32_t a = 0; a < node->attr_count; a++)
        for (size_t n = dq_attr_graphs(&node->attrs[a], &graphs), k = 0; k < n; k++)
            DQ_TRY(inline_graph(in, graphs[k], err));
    return DQ_OK;
}

/* Moves a node of the model unchanged to the end of the rebuilt list. */
static dq_status keep(dq_graph *g, dq_node *node, dq_error *err)
{
    dq_node *workspace = NULL;
    DQ_TRY(dq_graph_add_node(g, 0, 0, 0, &workspace, err));
    node->position = workspace->position;
    g->nodes[workspace->position] = node;
    return DQ_OK;
}

static dq_status inline_list(inliner *in, dq_graph *g, dq_node **nodes, uint32_t count, dq_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        const dq_function *function = NULL;
        DQ_TRY(inline_attrs(in, nodes[i], err));
        DQ_TRY(find_function(in, nodes[i], &function, err));
        if (function) {
            DQ_TRY(expand(in, NULL, function, nodes[i], g, err));
            continue;
        }
        DQ_TRY(count_node(in, err));
        DQ_TRY(keep(g, nodes[i], err));
    }
    return DQ_OK;
}

static dq_status inline_graph(inliner *in, dq_graph *g, dq_error *err)
{
    dq_node **nodes = g->nodes;
    const uint32_t count = g->node_count, capacity = g->node_capacity;
    g->nodes = NULL;
    g->node_count = g->node_capacity = 0;
    dq_status status = inline_list(in, g, nodes, count, err);
    dq_memory_free(&g->ir->allocator, nodes, capacity * sizeof *nodes);
    return status;
}

dq_status dq_inline_functions(dq_ir *ir, dq_error *err)
{
    if (ir->function_count == 0)
        return DQ_OK;
    inliner in = {.ir = ir};
    dq_status status = index_functions(&in, err);
    if (status == DQ_OK)
        status = take_graph(&in, ir->graph, err);
    if (status == DQ_OK)
        status = inline_graph(&in, ir->graph, err);
    dq_namemap_free(&in.functions);
    dq_namemap_free(&in.placed_interval);
    return status;
}
