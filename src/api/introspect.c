/* SPDX-License-Identifier: Apache-2.0 */
/* Introspection of a model: graphs, nodes and values as the public structs describe them. */
#include "api/handles.h"
#include "api/structs.h"
#include "graph/views.h"

static dq_status past_the_last(const char *function, size_t i, size_t count, const char *what, dq_error *err)
{
    return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: i is %zu, expected less than %zu, the number of %s",
                   function, i, count, what);
}

/* ---- The model ---------------------------------------------------------------------------------------- */

dq_status dq_model_describe(const dq_model *model, dq_model_info *info, dq_error *err)
{
    DQ_NOT_NULL(model);
    const dq_ir *ir = model->program->ir;
    const dq_model_info own = {.size = sizeof own,
                               .name = ir->path,
                               .ir_version = ir->ir_version,
                               .producer_name = ir->producer,
                               .producer_version = ir->producer_version,
                               .domain = ir->domain,
                               .model_version = ir->model_version,
                               .doc = ir->doc,
                               .graph = ir->graph,
                               .opset_count = ir->opset_count,
                               .metadata_count = ir->metadata_count};
    return dq_write_struct(DQ_STRUCT_MODEL_INFO, "dq_model_describe: info", &own, info, err);
}

dq_status dq_model_opset(const dq_model *model, size_t i, const char **domain, int *version, dq_error *err)
{
    DQ_NOT_NULL(model);
    const dq_ir *ir = model->program->ir;
    if (i >= ir->opset_count)
        return past_the_last("dq_model_opset", i, ir->opset_count, "imports", err);
    if (domain)
        *domain = ir->opsets[i].domain;
    if (version)
        *version = ir->opsets[i].version;
    return DQ_OK;
}

dq_status dq_model_metadata(const dq_model *model, size_t i, const char **key, const char **value,
                            dq_error *err)
{
    DQ_NOT_NULL(model);
    const dq_ir *ir = model->program->ir;
    if (i >= ir->metadata_count)
        return past_the_last("dq_model_metadata", i, ir->metadata_count, "entries", err);
    if (key)
        *key = ir->metadata[i].key;
    if (value)
        *value = ir->metadata[i].value;
    return DQ_OK;
}

/* ---- Graphs ------------------------------------------------------------------------------------------- */

dq_status dq_graph_describe(const dq_graph *graph, dq_graph_info *info, dq_error *err)
{
    DQ_NOT_NULL(graph);
    const dq_graph_info own = {.size = sizeof own,
                               .name = graph->name,
                               .outer = graph->outer,
                               .node_count = graph->node_count,
                               .nodes = (const dq_node *const *)graph->nodes,
                               .input_count = graph->input_count,
                               .inputs = (const dq_value *const *)graph->inputs,
                               .output_count = graph->output_count,
                               .outputs = (const dq_value *const *)graph->outputs,
                               .output_names = graph->output_names,
                               .value_count = graph->value_count,
                               .values = (const dq_value *const *)graph->all};
    return dq_write_struct(DQ_STRUCT_GRAPH_INFO, "dq_graph_describe: info", &own, info, err);
}

const dq_value *dq_graph_find_value(const dq_graph *graph, const char *name)
{
    const dq_value *v = graph && name ? dq_namemap_get(&graph->values, name) : NULL;
    return v && (v->is_input || v->constant || v->producer) ? v : NULL;
}

const dq_value *dq_model_find_value(const dq_model *model, const char *name)
{
    return model ? dq_graph_find_value(model->program->ir->graph, name) : NULL;
}

/* ---- Nodes -------------------------------------------------------------------------------------------- */

/* Whether the node is synthetic: it has the position of a node of the model, but is another node. */
static bool is_synthetic(const dq_node *node)
{
    const dq_graph *g = node->graph;
    return node->made || node->position >= g->node_count || g->nodes[node->position] != node;
}

dq_status dq_node_describe(const dq_node *node, dq_node_info *info, dq_error *err)
{
    DQ_NOT_NULL(node);
    const dq_node_info own = {.size = sizeof own,
                              .name = node->name,
                              .op_type = node->op_type,
                              .domain = node->domain,
                              .since_version = node->schema ? node->version : 0,
                              .opset = node->opset,
                              .input_count = node->in_count,
                              .inputs = (const dq_value *const *)node->in,
                              .output_count = node->out_count,
                              .outputs = (const dq_value *const *)node->out,
                              .attribute_count = node->attr_count,
                              .graph = node->graph,
                              .synthetic = is_synthetic(node)};
    return dq_write_struct(DQ_STRUCT_NODE_INFO, "dq_node_describe: info", &own, info, err);
}

/* Reads the field of the attribute's kind. */
static dq_status read_attribute(dq_ir *ir, const dq_attr *from, dq_attribute *to, dq_error *err)
{
    *to = (dq_attribute){.size = sizeof *to, .name = from->name, .kind = (dq_attribute_kind)from->kind};
    to->count = from->count;
    switch (from->kind) {
    case DQ_ATTR_FLOAT:
        to->f = from->u.f;
        return DQ_OK;
    case DQ_ATTR_INT:
        to->i = from->u.i;
        return DQ_OK;
    case DQ_ATTR_STRING:
        to->s = from->u.s.bytes ? from->u.s.bytes : "";
        to->count = from->u.s.length;
        return DQ_OK;
    case DQ_ATTR_TENSOR:
        to->tensor = from->u.tensor;
        return DQ_OK;
    case DQ_ATTR_GRAPH:
        to->graph = from->u.graph;
        return DQ_OK;
    case DQ_ATTR_FLOATS:
        to->floats = from->u.floats;
        return DQ_OK;
    case DQ_ATTR_INTS:
        to->ints = from->u.ints;
        return DQ_OK;
    case DQ_ATTR_STRINGS:
        return dq_views_strings(ir, from->u.strings, from->count, &to->strings, err);
    case DQ_ATTR_TENSORS:
        to->tensors = from->u.tensors;
        return DQ_OK;
    case DQ_ATTR_GRAPHS:
        to->graphs = (const dq_graph *const *)from->u.graphs;
        return DQ_OK;
    case DQ_ATTR_TYPE_PROTO:
        return dq_views_type(ir, from->u.type, &to->type, err);
    case DQ_ATTR_TYPE_PROTOS:
        return dq_views_types(ir, from->u.types, from->count, &to->types, err);
    default:
        return dq_fail(err, DQ_INTERNAL, "attribute '%s' is of kind %s", from->name,
                       dq_attr_kind_name(from->kind));
    }
}

dq_status dq_node_attribute(const dq_node *node, size_t i, dq_attribute *attribute, dq_error *err)
{
    dq_attribute own;
    DQ_NOT_NULL(node);
    if (i >= node->attr_count)
        return past_the_last("dq_node_attribute", i, node->attr_count, "attributes", err);
    DQ_TRY(read_attribute(node->graph->ir, &node->attrs[i], &own, err));
    return dq_write_struct(DQ_STRUCT_ATTRIBUTE, "dq_node_attribute: attribute", &own, attribute, err);
}

/* ---- Values ------------------------------------------------------------------------------------------- */

/* The declared type, completed by an initializer or the schemas if it leaves something open. */
static dq_type type_of(const dq_value *v)
{
    const dq_ir *ir = v->graph->ir;
    dq_type type = v->type;
    if (type.kind != DQ_KIND_TENSOR)
        return type;
    if (type.dtype == DQ_UNDEFINED && v->constant)
        type.dtype = v->constant->dtype;
    if (type.dtype == DQ_UNDEFINED && ir->dtypes && v->id < ir->value_count)
        type.dtype = ir->dtypes[v->id];
    if (!type.has_shape && v->constant) {
        type.has_shape = true;
        type.rank = v->constant->rank;
        type.dims = v->constant->dims;
    }
    return type;
}

dq_status dq_describe_value(const dq_value *v, dq_value_info *info, dq_error *err)
{
    static const char *const no_names[DQ_MAX_RANK];
    const dq_type type = type_of(v);
    const dq_type *inside = type.element;
    const bool tensor = type.kind == DQ_KIND_TENSOR;
    *info = (dq_value_info){.size = sizeof *info,
                            .name = v->name,
                            .kind = type.kind,
                            .optional = v->is_input && v->constant,
                            .graph = v->graph,
                            .initializer = v->constant,
                            .producer = v->producer,
                            .is_input = v->is_input,
                            .is_output = v->is_output};
    if (tensor) {
        info->dtype = type.dtype;
        info->has_shape = type.has_shape;
        info->rank = type.rank;
        info->dims = type.dims;
        info->dim_names = !type.has_shape || type.dim_names ? type.dim_names : no_names;
    } else {
        info->item_kind = inside ? inside->kind : DQ_KIND_TENSOR;
        while (inside && inside->kind != DQ_KIND_TENSOR)
            inside = inside->element;
        info->item_dtype = inside ? inside->dtype : type.dtype;
    }
    return dq_views_type(v->graph->ir, tensor ? &type : &v->type, &info->type, err);
}

dq_status dq_value_describe(const dq_value *value, dq_value_info *info, dq_error *err)
{
    dq_value_info own;
    DQ_NOT_NULL(value);
    DQ_TRY(dq_describe_value(value, &own, err));
    return dq_write_struct(DQ_STRUCT_VALUE_INFO, "dq_value_describe: info", &own, info, err);
}

dq_status dq_value_consumers(const dq_model *model, const dq_value *value, size_t *count,
                             const dq_node *const **nodes, dq_error *err)
{
    DQ_NOT_NULL(model);
    DQ_NOT_NULL(value);
    DQ_NOT_NULL(count);
    DQ_NOT_NULL(nodes);
    return dq_views_consumers(model->program->ir, value, count, nodes, err);
}
