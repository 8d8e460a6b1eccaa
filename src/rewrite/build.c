/* SPDX-License-Identifier: Apache-2.0 */
/* Construction of values and nodes: making, binding, inserting and evaluating them. */
#include "rewrite/match.h"

#include <stdlib.h>
#include <string.h>

bool dq_rewriter_no_memory(dq_rewriter *f)
{
    f->failed = true;
    dq_no_memory(f->err, 64, "fused nodes");
    return false;
}

static dq_value *add_value(dq_rewriter *f)
{
    if (f->value_count == f->value_capacity) {
        uint32_t requested = f->value_capacity ? f->value_capacity * 2 : 64;
        dq_value **grown = DQ_NEW_ARRAY(f->arena, requested, dq_value *);
        if (!grown)
            return dq_rewriter_no_memory(f), NULL;
        if (f->value_count)
            memcpy(grown, f->values, f->value_count * sizeof *grown);
        f->values = grown;
        f->value_capacity = requested;
    }
    dq_value *v = DQ_NEW(f->arena, dq_value);
    if (!v)
        return dq_rewriter_no_memory(f), NULL;
    v->id = f->request->ir->value_count + f->value_count;
    v->index = f->written_count + f->value_count;
    v->graph = f->graph;
    v->name = "";
    f->values[f->value_count++] = v;
    return v;
}

dq_value *dq_rewriter_make_constant(dq_rewriter *f, dq_dtype dtype, size_t rank, const int64_t *dims,
                                    dq_tensor **t)
{
    dq_value *v = add_value(f);
    if (!v || dq_tensor_new(f->arena, dtype, rank, dims, 0, t, f->err) != DQ_OK)
        return dq_rewriter_no_memory(f), NULL;
    v->constant = *t;
    v->type.dtype = dtype;
    return v;
}

dq_value *dq_rewriter_make_value(dq_rewriter *f, const char *name, dq_dtype dtype)
{
    dq_value *v = add_value(f);
    if (v) {
        v->name = name;
        v->type.dtype = dtype;
    }
    return v;
}

static dq_value *zero_value(dq_rewriter *f, dq_value *v, dq_dtype dtype)
{
    dq_tensor *t;
    return v ? v : dq_rewriter_make_constant(f, dtype, 0, NULL, &t);
}

bool dq_rewriter_flip_sign(dq_rewriter *f, dq_dequantized *x)
{
    dq_tensor *qvalues, *zero;
    if (!dq_rewriter_move_to_quantized(f, x) || (x->dtype != DQ_UINT8 && x->dtype != DQ_INT8) ||
        !x->per_tensor)
        return false;
    const dq_tensor *from = dq_match_constant(x->qvalues);
    dq_dtype dtype = x->dtype == DQ_INT8 ? DQ_UINT8 : DQ_INT8;
    int64_t step = x->dtype == DQ_INT8 ? 128 : -128;
    if (!from)
        return false;
    x->qvalues = dq_rewriter_make_constant(f, dtype, from->rank, from->dims, &qvalues);
    x->zero = dq_rewriter_make_constant(f, dtype, 0, NULL, &zero);
    if (!x->qvalues || !x->zero)
        return false;
    for (size_t i = 0; i < from->count; i++)
        dq_data(qvalues, uint8_t)[i] = dq_data(from, uint8_t)[i] ^ 0x80;
    dq_tensor_put_int(zero, 0, dq_match_zero_point(x->zero_t, 0) + step);
    x->zero_t = zero;
    x->dtype = dtype;
    return true;
}

bool dq_rewriter_operand(dq_rewriter *f, const dq_dequantized *x, dq_value **in)
{
    in[0] = dq_rewriter_quantized_value(f, x);
    in[1] = x->scale;
    in[2] = zero_value(f, x->zero, x->dtype);
    return in[0] && in[2];
}

void dq_rewriter_result(dq_rewriter *f, const dq_quantized *q, dq_value **in)
{
    in[0] = q->scale;
    in[1] = zero_value(f, q->zero, q->dtype);
}

void dq_rewriter_copy_attrs(const dq_node *from, dq_node *to)
{
    for (uint32_t i = 0; i < from->attr_count; i++)
        to->attrs[i] = from->attrs[i];
}

dq_node *dq_rewriter_node(dq_rewriter *f, dq_op_id op, const dq_node *like, uint32_t in_count,
                          dq_value *const *in, dq_value *out, uint32_t attr_count)
{
    dq_node *node = DQ_NEW(f->arena, dq_node);
    if (!node)
        return dq_rewriter_no_memory(f), NULL;
    *node = (dq_node){.name = like->name,
                      .domain = op.domain,
                      .op_type = op.name,
                      .overload = "",
                      .opset = op.opset,
                      .in_count = in_count,
                      .out_count = 1,
                      .attr_count = attr_count,
                      .graph = f->graph,
                      .position = like->position,
                      .made_for = like,
                      .made = true};
    node->in = DQ_NEW_ARRAY(f->arena, in_count, dq_value *);
    node->out = DQ_NEW_ARRAY(f->arena, 1, dq_value *);
    node->in_names = DQ_NEW_ARRAY(f->arena, in_count, const char *);
    node->out_names = DQ_NEW_ARRAY(f->arena, 1, const char *);
    node->attrs = DQ_NEW_ARRAY(f->arena, attr_count, dq_attr);
    if (!node->in || !node->out || !node->in_names || !node->out_names || !node->attrs)
        return dq_rewriter_no_memory(f), NULL;
    for (uint32_t i = 0; i < in_count; i++) {
        node->in[i] = in[i];
        /* A non-empty name means that the input is present. */
        node->in_names[i] = !in[i] ? "" : *in[i]->name ? in[i]->name : "(made)";
    }
    node->out[0] = out;
    node->out_names[0] = *out->name ? out->name : "(made)";
    return node;
}

bool dq_rewriter_set_outputs(dq_rewriter *f, dq_node *node, uint32_t count, dq_value *const *outs)
{
    dq_value **out = DQ_NEW_ARRAY(f->arena, count, dq_value *);
    const char **names = DQ_NEW_ARRAY(f->arena, count, const char *);
    if (!out || !names)
        return dq_rewriter_no_memory(f);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = outs[i];
        names[i] = !outs[i] ? "" : *outs[i]->name ? outs[i]->name : "(made)";
    }
    node->out = out;
    node->out_names = names;
    node->out_count = count;
    return true;
}

dq_status dq_rewriter_bind_types(const dq_rewriter *f, const dq_node *node, dq_dtype *dtypes, dq_error *err)
{
    dq_type *types = calloc((size_t)node->in_count + node->out_count + 1, sizeof *types);
    const dq_type **in = calloc((size_t)node->in_count + 1, sizeof *in);
    dq_status status = types && in ? DQ_OK : dq_no_memory(err, sizeof *types, "a node's types");
    for (uint32_t i = 0; status == DQ_OK && i < node->in_count; i++)
        if (node->in[i]) {
            types[i].dtype = dq_match_dtype(f, node->in[i]);
            in[i] = &types[i];
        }
    if (status == DQ_OK)
        status = dq_schema_bind_types(node->schema, node, in, types + node->in_count, err);
    for (uint32_t i = 0; status == DQ_OK && dtypes && i < node->out_count; i++)
        if (node->out[i] && types[node->in_count + i].kind == DQ_KIND_TENSOR && !dtypes[node->out[i]->index])
            dtypes[node->out[i]->index] = types[node->in_count + i].dtype;
    free(types);
    free(in);
    return status;
}

bool dq_rewriter_bind(dq_rewriter *f, dq_node *node)
{
    const dq_schema *schema = NULL;
    dq_error why;
    dq_status status =
        dq_schemas_find(f->request->schemas, node->domain, node->op_type, node->opset, &schema, &why);
    if (status == DQ_OK) {
        node->version = schema->since_version;
        status = dq_schema_check_node(schema, node, &why);
    }
    if (status == DQ_OK)
        status = dq_rewriter_bind_types(f, node, NULL, &why);
    if (status == DQ_OUT_OF_MEMORY)
        return dq_rewriter_no_memory(f);
    if (status == DQ_OK)
        node->op = dq_op_find(node->domain, node->op_type, node->version);
    if (status == DQ_OK && node->op)
        return true;
    dq_rewriter_explain(f, node, "not fused: %s",
                        status == DQ_OK ? "the operator is not implemented" : why.message);
    return false;
}

struct dq_inserted {
    dq_node *node;
    struct dq_inserted *next;
};

bool dq_rewriter_insert_before(dq_rewriter *f, dq_node *node)
{
    struct dq_inserted *made = DQ_NEW(f->scratch, struct dq_inserted);
    dq_insertion *here = &f->insertions[f->at];
    if (!made)
        return dq_rewriter_no_memory(f);
    made->node = node;
    if (here->last)
        here->last->next = made;
    else
        here->first = made;
    here->last = made;
    f->inserted++;
    dq_rewriter_add_uses(f, node);
    return true;
}

bool dq_rewriter_apply_insertions(dq_rewriter *f)
{
    const uint32_t count = f->count + f->inserted;
    if (!f->inserted)
        return true;
    dq_node **nodes = DQ_NEW_ARRAY(f->arena, count, dq_node *);
    dq_insertion *insertions = DQ_NEW_ARRAY(f->scratch, count, dq_insertion);
    if (!nodes || !insertions)
        return dq_rewriter_no_memory(f);
    for (uint32_t n = 0, to = 0; n < f->count; n++) {
        for (const struct dq_inserted *i = f->insertions[n].first; i; i = i->next)
            nodes[to++] = i->node;
        nodes[to++] = f->nodes[n];
    }
    f->nodes = nodes;
    f->insertions = insertions;
    f->count = count;
    f->inserted = 0;
    f->uses_of = NULL; /* Positions have changed. */
    return true;
}

/* Lists the constants that nodes capture from outer graphs; writes them to `bound` unless that is NULL. */
static uint32_t captured_constants(const dq_rewriter *f, dq_node *const *nodes, uint32_t count,
                                   dq_bound_value *bound)
{
    uint32_t found = 0;
    for (uint32_t n = 0; n < count; n++)
        for (uint32_t i = 0; i < nodes[n]->in_count; i++) {
            const dq_value *v = nodes[n]->in[i];
            const dq_tensor *constant = v && v->graph != f->graph ? dq_match_constant(v) : NULL;
            if (constant && bound)
                bound[found] = (dq_bound_value){.value = v, .tensor = constant, .initializer = true};
            found += constant != NULL;
        }
    return found;
}

dq_status dq_rewriter_evaluate_all(const dq_rewriter *f, dq_node *const *nodes, uint32_t count,
                                   const dq_bound_value *bound, uint32_t bound_count,
                                   const dq_value *const *results, uint32_t result_count,
                                   const dq_tensor **out, dq_error *err)
{
    const uint32_t captured = captured_constants(f, nodes, count, NULL);
    dq_bound_value *all = DQ_NEW_ARRAY(f->scratch, bound_count + captured, dq_bound_value);
    if (!all)
        return dq_no_memory(err, (bound_count + captured) * sizeof *all, "rewritten nodes");
    if (bound_count)
        memcpy(all, bound, bound_count * sizeof *all);
    captured_constants(f, nodes, count, all + bound_count);
    const dq_evaluation e = {.graph = f->graph,
                             .nodes = nodes,
                             .node_count = count,
                             .made = f->values,
                             .made_count = f->value_count,
                             .bound = all,
                             .bound_count = bound_count + captured,
                             .results = results,
                             .result_count = result_count};
    return f->request->evaluate(f->request->arg, &e, f->arena, out, err);
}

dq_status dq_rewriter_evaluate(const dq_rewriter *f, dq_node *const *nodes, uint32_t count,
                               const dq_bound_value *bound, uint32_t bound_count, const dq_value *result,
                               const dq_tensor **out, dq_error *err)
{
    return dq_rewriter_evaluate_all(f, nodes, count, bound, bound_count, &result, 1, out, err);
}

bool dq_rewriter_insert_or_fold(dq_rewriter *f, dq_node *node)
{
    dq_error why;
    const dq_tensor *result = NULL;
    if (dq_match_constant(node->in[0]) && node->out_count == 1 &&
        dq_rewriter_evaluate(f, &node, 1, NULL, 0, node->out[0], &result, &why) == DQ_OUT_OF_MEMORY)
        return dq_rewriter_no_memory(f);
    node->out[0]->constant = result;
    return result || dq_rewriter_insert_before(f, node);
}
