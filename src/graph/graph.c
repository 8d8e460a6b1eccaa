/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/views.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

dq_limits dq_limits_complete(const dq_limits *requested)
{
    dq_limits limits = requested ? *requested : (dq_limits){0};
    const uint64_t gib = UINT64_C(1) << 30;
    if (!limits.file_bytes)
        limits.file_bytes = 64 * gib;
    if (!limits.tensor_bytes)
        limits.tensor_bytes = 16 * gib;
    if (!limits.session_bytes)
        limits.session_bytes = 64 * gib;
    if (!limits.work)
        limits.work = UINT64_MAX;
    if (!limits.nodes)
        limits.nodes = 1000000;
    if (!limits.nesting)
        limits.nesting = 32;
    return limits;
}

dq_status dq_ir_create(const char *path, const dq_limits *limits, const dq_allocator *allocator, dq_ir **out,
                       dq_error *err)
{
    dq_ir *ir = dq_memory_calloc(allocator, 1, sizeof *ir);
    if (!ir)
        return dq_no_memory(err, sizeof *ir, "a model");
    if (allocator)
        ir->allocator = *allocator;
    ir->arena.allocator = &ir->allocator;
    ir->limits = dq_limits_complete(limits);
    ir->producer = ir->producer_version = ir->domain = ir->doc = "";
    ir->path = dq_arena_string(&ir->arena, path, strlen(path));
    dq_status status = ir->path ? dq_views_create(&ir->allocator, &ir->views, err)
                                : dq_no_memory(err, strlen(path) + 1, "a model");
    if (status != DQ_OK)
        dq_ir_free(ir);
    else
        *out = ir;
    return status;
}

/* The growing lists of a graph are separate allocations; its other contents are in the arena. */
static void free_list(const dq_graph *g, const void *list, uint32_t capacity, size_t size)
{
    dq_memory_free(&g->ir->allocator, list, capacity * size);
}

static void free_lists(dq_graph *g)
{
    dq_namemap_free(&g->values);
    free_list(g, g->nodes, g->node_capacity, sizeof *g->nodes);
    free_list(g, g->inputs, g->input_capacity, sizeof *g->inputs);
    free_list(g, g->outputs, g->output_capacity, sizeof *g->outputs);
    free_list(g, g->output_names, g->name_capacity, sizeof *g->output_names);
    free_list(g, g->output_types, g->type_capacity, sizeof *g->output_types);
    free_list(g, g->all, g->value_capacity, sizeof *g->all);
}

void dq_ir_free(dq_ir *ir)
{
    if (!ir)
        return;
    for (dq_graph *g = ir->last_made; g; g = g->made_before)
        free_lists(g);
    if (ir->release)
        ir->release(ir->release_arg);
    dq_views_free(ir->views);
    dq_arena_free(&ir->arena);
    const dq_allocator allocator = ir->allocator;
    dq_memory_free(&allocator, ir, sizeof *ir);
}

dq_status dq_graph_create(dq_ir *ir, const char *name, dq_graph *outer, dq_graph **out, dq_error *err)
{
    dq_graph *g = DQ_NEW(&ir->arena, dq_graph);
    if (!g)
        return dq_no_memory(err, sizeof *g, "a graph");
    g->ir = ir;
    g->values.allocator = &ir->allocator;
    g->name = name ? name : "";
    g->outer = outer;
    g->number = ir->graph_count++;
    g->made_before = ir->last_made;
    ir->last_made = g;
    *out = g;
    return DQ_OK;
}

/* Makes the capacity of a list sufficient for one more element. */
static bool grow_list(const dq_graph *g, void *list, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    uint32_t new_capacity = *capacity ? *capacity * 2 : 8;
    if (new_capacity < *capacity)
        return false;
    void *grown = dq_memory_grow(&g->ir->allocator, *(void **)list, *capacity * size, new_capacity * size);
    if (!grown)
        return false;
    *(void **)list = grown;
    *capacity = new_capacity;
    return true;
}

static dq_status out_of_memory(dq_error *err)
{
    return dq_no_memory(err, sizeof(void *), "a longer list of a graph's parts");
}

dq_status dq_graph_value(dq_graph *g, const char *name, dq_value **out, dq_error *err)
{
    dq_value *v = dq_namemap_get(&g->values, name);
    if (!v) {
        v = DQ_NEW(&g->ir->arena, dq_value);
        if (!v || !grow_list(g, &g->all, g->value_count, &g->value_capacity, sizeof *g->all))
            return out_of_memory(err);
        v->name = name;
        v->graph = g;
        v->id = g->ir->value_count;
        if (!dq_namemap_put(&g->values, name, v))
            return out_of_memory(err);
        g->ir->value_count++;
        v->index = g->value_count;
        g->all[g->value_count++] = v;
    }
    *out = v;
    return DQ_OK;
}

static bool says_nothing(const dq_type *type)
{
    return type->kind == DQ_KIND_TENSOR && type->dtype == DQ_UNDEFINED;
}

dq_status dq_graph_add_input(dq_graph *g, const char *name, const dq_type *type, dq_error *err)
{
    dq_value *v = NULL;
    if (!*name)
        return dq_fail(err, DQ_BAD_MODEL, "graph '%s': input %u has no name", g->name, g->input_count);
    DQ_TRY(dq_graph_value(g, name, &v, err));
    if (v->is_input)
        return dq_fail(err, DQ_BAD_MODEL, "graph '%s': two inputs are named '%s'", g->name, name);
    if (!grow_list(g, &g->inputs, g->input_count, &g->input_capacity, sizeof *g->inputs))
        return out_of_memory(err);
    v->is_input = true;
    if (type && !says_nothing(type))
        v->type = *type;
    g->inputs[g->input_count++] = v;
    return DQ_OK;
}

dq_status dq_graph_add_output(dq_graph *g, const char *name, const dq_type *type, dq_error *err)
{
    if (!*name)
        return dq_fail(err, DQ_BAD_MODEL, "graph '%s': output %u has no name", g->name, g->output_count);
    if (!grow_list(g, &g->outputs, g->output_count, &g->output_capacity, sizeof *g->outputs) ||
        !grow_list(g, &g->output_names, g->output_count, &g->name_capacity, sizeof *g->output_names) ||
        !grow_list(g, &g->output_types, g->output_count, &g->type_capacity, sizeof *g->output_types))
        return out_of_memory(err);
    g->outputs[g->output_count] = NULL;
    g->output_names[g->output_count] = name;
    g->output_types[g->output_count] = type ? *type : (dq_type){0};
    g->output_count++;
    return DQ_OK;
}

dq_status dq_graph_add_value_info(dq_graph *g, const char *name, const dq_type *type, dq_error *err)
{
    dq_value *v = NULL;
    if (!*name)
        return DQ_OK;
    DQ_TRY(dq_graph_value(g, name, &v, err));
    if (says_nothing(&v->type))
        v->type = *type;
    return DQ_OK;
}

dq_status dq_graph_add_initializer(dq_graph *g, const char *name, const dq_tensor *tensor, dq_error *err)
{
    dq_value *v = NULL;
    if (!*name)
        return dq_fail(err, DQ_BAD_MODEL, "graph '%s': an initializer has no name", g->name);
    DQ_TRY(dq_graph_value(g, name, &v, err));
    if (v->constant)
        return dq_fail(err, DQ_BAD_MODEL, "graph '%s': two initializers are named '%s'", g->name, name);
    v->constant = tensor;
    return DQ_OK;
}

dq_status dq_graph_add_node(dq_graph *g, uint32_t in_count, uint32_t out_count, uint32_t attr_count,
                            dq_node **out, dq_error *err)
{
    dq_arena *arena = &g->ir->arena;
    dq_node *node = DQ_NEW(arena, dq_node);
    if (!node || !grow_list(g, &g->nodes, g->node_count, &g->node_capacity, sizeof *g->nodes))
        return out_of_memory(err);
    node->in_names = DQ_NEW_ARRAY(arena, in_count, const char *);
    node->out_names = DQ_NEW_ARRAY(arena, out_count, const char *);
    node->in = DQ_NEW_ARRAY(arena, in_count, dq_value *);
    node->out = DQ_NEW_ARRAY(arena, out_count, dq_value *);
    node->attrs = DQ_NEW_ARRAY(arena, attr_count, dq_attr);
    if (!node->in_names || !node->out_names || !node->in || !node->out || !node->attrs)
        return out_of_memory(err);
    for (uint32_t i = 0; i < in_count; i++)
        node->in_names[i] = "";
    for (uint32_t i = 0; i < out_count; i++)
        node->out_names[i] = "";
    node->name = node->domain = node->op_type = node->overload = "";
    node->in_count = in_count;
    node->out_count = out_count;
    node->attr_count = attr_count;
    node->graph = g;
    node->position = g->node_count;
    g->nodes[g->node_count++] = node;
    *out = node;
    return DQ_OK;
}

/* ---- Look-up ----------------------------------------------------------------------------------------- */

const char *dq_domain_canonical(const char *domain)
{
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

int dq_opset_version(const dq_opset *opsets, size_t count, const char *domain)
{
    const char *new_capacity = dq_domain_canonical(domain);
    for (size_t i = 0; i < count; i++)
        if (strcmp(dq_domain_canonical(opsets[i].domain), new_capacity) == 0)
            return opsets[i].version;
    return 0;
}

const dq_attr *dq_node_attr(const dq_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->attr_count; i++)
        if (strcmp(node->attrs[i].name, name) == 0)
            return &node->attrs[i];
    return NULL;
}

int64_t dq_node_int(const dq_node *node, const char *name, int64_t absent)
{
    const dq_attr *attr = dq_node_attr(node, name);
    return attr && attr->kind == DQ_ATTR_INT ? attr->u.i : absent;
}

float dq_node_float(const dq_node *node, const char *name, float absent)
{
    const dq_attr *attr = dq_node_attr(node, name);
    return attr && attr->kind == DQ_ATTR_FLOAT ? attr->u.f : absent;
}

const char *dq_node_string(const dq_node *node, const char *name, const char *absent)
{
    const dq_attr *attr = dq_node_attr(node, name);
    return attr && attr->kind == DQ_ATTR_STRING ? attr->u.s.bytes : absent;
}

const int64_t *dq_node_ints(const dq_node *node, const char *name, size_t *count)
{
    const dq_attr *attr = dq_node_attr(node, name);
    bool has = attr && attr->kind == DQ_ATTR_INTS;
    *count = has ? attr->count : 0;
    return has ? attr->u.ints : NULL;
}

const char *dq_attr_kind_name(dq_attr_kind kind)
{
    static const char *const names[] = {"undefined",      "float",      "int",        "string",
                                        "tensor",         "graph",      "floats",     "ints",
                                        "strings",        "tensors",    "graphs",     "sparse_tensor",
                                        "sparse_tensors", "type_proto", "type_protos"};
    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

size_t dq_attr_graphs(const dq_attr *attr, dq_graph *const **graphs)
{
    switch (attr->kind) {
    case DQ_ATTR_GRAPH:
        *graphs = &attr->u.graph;
        return 1;
    case DQ_ATTR_GRAPHS:
        *graphs = attr->u.graphs;
        return attr->count;
    default:
        *graphs = NULL;
        return 0;
    }
}

const char *dq_type_text(const dq_type *type, char buffer[DQ_TYPE_TEXT])
{
    char inner[DQ_TYPE_TEXT];
    static const dq_type nothing = {0};
    switch (type->kind) {
    case DQ_KIND_TENSOR:
        snprintf(buffer, DQ_TYPE_TEXT, "tensor(%s)", dq_dtype_name(type->dtype));
        break;
    case DQ_KIND_SPARSE:
        snprintf(buffer, DQ_TYPE_TEXT, "sparse_tensor(%s)", dq_dtype_name(type->dtype));
        break;
    case DQ_KIND_SEQUENCE:
    case DQ_KIND_OPTIONAL:
        dq_type_text(type->element ? type->element : &nothing, inner);
        snprintf(buffer, DQ_TYPE_TEXT, "%s(%.*s)", type->kind == DQ_KIND_SEQUENCE ? "seq" : "optional",
                 DQ_TYPE_TEXT - 12, inner);
        break;
    case DQ_KIND_MAP:
        dq_type_text(type->element ? type->element : &nothing, inner);
        snprintf(buffer, DQ_TYPE_TEXT, "map(%s,%.*s)", dq_dtype_name(type->dtype), DQ_TYPE_TEXT - 24, inner);
        break;
    }
    return buffer;
}

const char *dq_node_text(const dq_node *node, char buffer[DQ_NODE_TEXT])
{
    const char *dot = *node->domain ? "." : "";
    if (*node->name)
        snprintf(buffer, DQ_NODE_TEXT, "node '%.96s' (%.48s%s%.64s-%d)", node->name, node->domain, dot,
                 node->op_type, node->version);
    else
        snprintf(buffer, DQ_NODE_TEXT, "node %u (%.48s%s%.64s-%d)", node->position, node->domain, dot,
                 node->op_type, node->version);
    return buffer;
}
