/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/check.h"

#include "ops/op.h"

#include <stdlib.h>
#include <string.h>

typedef struct check {
    dq_schemas *schemas;
    dq_fault_fn fault;
    void *arg;
    dq_type *types; /* By value id: the type of each value as far as it is known. */
} check;

/* Checks schema, attributes and implementation, not types. */
static dq_status check_node(dq_schemas *schemas, dq_node *node, dq_error *err)
{
    const dq_schema *schema = NULL;
    dq_status status = dq_schemas_find(schemas, node->domain, node->op_type, node->opset, &schema, err);
    if (status == DQ_UNSUPPORTED && dq_op_known(node->domain, node->op_type))
        return dq_fail(
            err, DQ_UNSUPPORTED,
            "this build implements the operator, but no schema for it is known: add its YAML file with "
            "--schema-dir");
    DQ_TRY(status);
    node->version = schema->since_version;
    DQ_TRY(dq_schema_check_node(schema, node, err));
    node->op = dq_op_find(node->domain, node->op_type, schema->since_version);
    if (node->op)
        return DQ_OK;
    if (dq_op_known(node->domain, node->op_type))
        return dq_fail(err, DQ_UNSUPPORTED, "the operator is implemented, but not its version %d",
                       schema->since_version);
    return dq_fail(err, DQ_UNSUPPORTED, "the operator has a schema but no implementation in this build");
}

/* The declared or known type of a value, if its node does not determine it. */
static const dq_type *type_of(check *c, const dq_value *v)
{
    dq_type *known = &c->types[v->id];
    if (known->kind == DQ_KIND_TENSOR && known->dtype == DQ_UNDEFINED) {
        *known = v->type;
        if (v->constant && known->dtype == DQ_UNDEFINED)
            known->dtype = v->constant->dtype;
    }
    return known;
}

/* Takes an output's type from the schema. An error if the graph declares a different one. */
static dq_status take_type(check *c, const dq_node *node, uint32_t i, const dq_type *type, dq_error *err)
{
    const dq_type *declared = &node->out[i]->type;
    char text[DQ_TYPE_TEXT], other[DQ_TYPE_TEXT];
    c->types[node->out[i]->id] = *type;
    if (declared->kind != DQ_KIND_TENSOR || declared->dtype == DQ_UNDEFINED ||
        (type->kind == declared->kind && type->dtype == declared->dtype))
        return DQ_OK;
    return dq_fail(err, DQ_BAD_MODEL, "output %u '%s' is declared %s, and the node gives %s", i,
                   node->out_names[i], dq_type_text(declared, text), dq_type_text(type, other));
}

static dq_status check_types(check *c, const dq_node *node, dq_error *err)
{
    const dq_type **in = calloc(node->in_count + 1, sizeof *in);
    dq_type *out = calloc(node->out_count + 1, sizeof *out);
    dq_status status = in && out ? DQ_OK : dq_no_memory(err, sizeof *out, "a node's types");
    if (status == DQ_OK) {
        for (uint32_t i = 0; i < node->in_count; i++)
            in[i] = node->in[i] ? type_of(c, node->in[i]) : NULL;
        status = dq_schema_bind_types(node->schema, node, in, out, err);
    }
    for (uint32_t i = 0; status == DQ_OK && i < node->out_count; i++)
        if (node->out[i] && (out[i].kind != DQ_KIND_TENSOR || out[i].dtype != DQ_UNDEFINED))
            status = take_type(c, node, i, &out[i], err);
    free(in);
    free(out);
    return status;
}

static dq_status check_graph(check *c, dq_graph *g, dq_error *err);

static dq_status check_inner(check *c, const dq_node *node, dq_error *err)
{
    dq_graph *const *graphs;
    for (uint32_t a = 0; a < node->attr_count; a++)
        for (size_t n = dq_attr_graphs(&node->attrs[a], &graphs), k = 0; k < n; k++)
            DQ_TRY(check_graph(c, graphs[k], err));
    return DQ_OK;
}

/* ---- Types of results of subgraphs ------------------------------------------------------------------- */

static bool is_op(const dq_node *node, const char *op)
{
    return !*node->domain && strcmp(node->op_type, op) == 0;
}

/* The element type of output `at` of a subgraph; DQ_UNDEFINED: unknown, or no tensor. */
static dq_dtype output_type(check *c, const dq_graph *g, uint32_t at)
{
    const dq_type *type = at < g->output_count && g->outputs[at] ? type_of(c, g->outputs[at]) : NULL;
    return type && type->kind == DQ_KIND_TENSOR ? type->dtype : DQ_UNDEFINED;
}

static dq_dtype input_type(check *c, const dq_node *node, uint32_t at)
{
    const dq_type *type = at < node->in_count && node->in[at] ? type_of(c, node->in[at]) : NULL;
    return type && type->kind == DQ_KIND_TENSOR ? type->dtype : DQ_UNDEFINED;
}

/* The correspondence of the outputs of Loop and Scan to those of their body. */
typedef struct loop_layout {
    uint32_t first_output; /* Output of the body that determines output 0 of the node. */
    uint32_t first_state;  /* Input of the node with the initial value of output 0. */
    uint32_t states;       /* Number of outputs of the node that are loop-carried states. */
} loop_layout;

static loop_layout layout_of(const dq_node *node)
{
    if (is_op(node, "Loop"))
        return (loop_layout){1, 2, node->in_count > 2 ? node->in_count - 2 : 0};
    const uint32_t first = node->version < 9;
    const int64_t inputs = (int64_t)node->in_count - first;
    const int64_t states = inputs - dq_node_int(node, "num_scan_inputs", 0);
    return (loop_layout){0, first, states > 0 && states <= inputs ? (uint32_t)states : 0};
}

/* The element type of output `i` of If, Loop or Scan. The branches of If must agree. A state of a loop must
 * agree with its initial value, which is the result if no iteration runs. */
static dq_dtype flow_type(check *c, const dq_node *node, uint32_t i)
{
    loop_layout l = {0};
    if (!is_op(node, "If"))
        l = layout_of(node);
    dq_dtype dtype = i < l.states ? input_type(c, node, l.first_state + i) : DQ_UNDEFINED;
    bool first = i >= l.states;
    dq_graph *const *graphs;
    for (uint32_t a = 0; a < node->attr_count; a++)
        for (size_t n = dq_attr_graphs(&node->attrs[a], &graphs), k = 0; k < n; k++) {
            const dq_dtype bindings = output_type(c, graphs[k], l.first_output + i);
            if (!first && bindings != dtype)
                return DQ_UNDEFINED;
            dtype = bindings;
            first = false;
        }
    return dtype;
}

/* Schemas do not determine the result types of If, Loop and Scan; their subgraphs, which are already checked,
 * do. */
static void take_flow_types(check *c, const dq_node *node)
{
    if (!is_op(node, "If") && !is_op(node, "Loop") && !is_op(node, "Scan"))
        return;
    for (uint32_t i = 0; i < node->out_count; i++) {
        dq_type *known = node->out[i] ? &c->types[node->out[i]->id] : NULL;
        if (!known || type_of(c, node->out[i])->kind != DQ_KIND_TENSOR || known->dtype != DQ_UNDEFINED)
            continue;
        const dq_dtype dtype = flow_type(c, node, i);
        if (dtype != DQ_UNDEFINED)
            *known = dq_type_make(DQ_FORM_TENSOR, dtype);
    }
}

static dq_status check_graph(check *c, dq_graph *g, dq_error *err)
{
    for (uint32_t i = 0; i < g->node_count; i++) {
        dq_node *node = g->nodes[i];
        char text[DQ_NODE_TEXT];
        dq_status status = check_node(c->schemas, node, err);
        if (status == DQ_OK || status == DQ_UNSUPPORTED) {
            dq_error types;
            if (node->schema && check_types(c, node, &types) != DQ_OK) {
                status = types.status;
                *err = types;
            }
        }
        if (status == DQ_OUT_OF_MEMORY)
            return status;
        if (status != DQ_OK) {
            dq_error_prefix(err, "%s: %s: ", g->ir->path, dq_node_text(node, text));
            if (c->fault(c->arg, err) != DQ_OK)
                return dq_no_memory(err, sizeof *err, "a sentence");
        }
        DQ_TRY(check_inner(c, node, err));
        take_flow_types(c, node);
    }
    return DQ_OK;
}

dq_status dq_check_graph(dq_graph *g, dq_schemas *schemas, dq_fault_fn fault, void *arg, dq_dtype *dtypes,
                         dq_error *err)
{
    dq_error own;
    check c = {.schemas = schemas, .fault = fault, .arg = arg};
    c.types = calloc((size_t)g->ir->value_count + 1, sizeof *c.types);
    if (!c.types)
        return dq_no_memory(err, g->ir->value_count * sizeof *c.types, "the check of a model");
    dq_status status = check_graph(&c, g, err ? err : &own);
    for (uint32_t id = 0; id < g->ir->value_count; id++)
        dtypes[id] = c.types[id].kind == DQ_KIND_TENSOR ? c.types[id].dtype : DQ_UNDEFINED;
    free(c.types);
    return status;
}
