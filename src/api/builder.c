/* SPDX-License-Identifier: Apache-2.0 */
#include "api/handles.h"
#include "api/structs.h"

#include "base/fpenv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dq_builder {
    dq_ir *ir;
    uint32_t generated; /* Number of names so far. */
};

static dq_status no_memory(dq_error *err)
{
    return dq_no_memory(err, 64, "a model that is being built");
}

/* Prefixes the model's name: messages of the graph do not have it. */
static dq_status named(const dq_builder *b, dq_status status, dq_error *err)
{
    if (status != DQ_OK)
        dq_error_prefix(err, "%s: ", b->ir->path);
    return status;
}

static const char *copy_text(dq_builder *b, const char *text)
{
    return dq_arena_string(&b->ir->arena, text, strlen(text));
}

dq_status dq_builder_create(const char *name, dq_builder **out, dq_error *err)
{
    DQ_NOT_NULL(name);
    DQ_NOT_NULL(out);
    dq_builder *b = calloc(1, sizeof *b);
    if (!b)
        return no_memory(err);
    dq_status status = dq_ir_create(name, NULL, NULL, &b->ir, err);
    if (status == DQ_OK)
        status = dq_graph_create(b->ir, b->ir->path, NULL, &b->ir->graph, err);
    if (status != DQ_OK)
        dq_builder_free(b);
    else
        *out = b;
    return status;
}

void dq_builder_free(dq_builder *builder)
{
    if (!builder)
        return;
    dq_ir_free(builder->ir);
    free(builder);
}

/* ---- Opsets ------------------------------------------------------------------------------------------- */

/* The IR version of an opset of ai.onnx, as ONNX's releases pair them. */
static int64_t ir_version_of(int opset)
{
    static const struct {
        int opset, ir;
    } pairs[] = {{28, 14}, {25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9},
                 {15, 8},  {14, 7},  {12, 7},  {11, 6},  {10, 5}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (opset >= pairs[i].opset)
            return pairs[i].ir;
    return 4;
}

dq_status dq_builder_opset(dq_builder *builder, const char *domain, int version, dq_error *err)
{
    DQ_NOT_NULL(builder);
    DQ_NOT_NULL(domain);
    dq_ir *ir = builder->ir;
    const char *canonical = dq_domain_canonical(domain);
    if (version < 1)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: opset %d of domain '%s', expected 1 or more", ir->path,
                       version, domain);
    if (dq_opset_version(ir->opsets, ir->opset_count, canonical))
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: domain '%s' is imported twice", ir->path, domain);
    dq_opset *opsets = DQ_NEW_ARRAY(&ir->arena, (size_t)ir->opset_count + 1, dq_opset);
    const char *name = copy_text(builder, canonical);
    if (!opsets || !name)
        return no_memory(err);
    if (ir->opset_count)
        memcpy(opsets, ir->opsets, ir->opset_count * sizeof *opsets);
    opsets[ir->opset_count++] = (dq_opset){name, version};
    ir->opsets = opsets;
    if (!*canonical)
        ir->ir_version = ir_version_of(version);
    return DQ_OK;
}

/* ---- Values ------------------------------------------------------------------------------------------- */

static dq_status make_type(dq_builder *b, const char *name, dq_dtype dtype, size_t rank, const int64_t *dims,
                           const char *const *dim_names, dq_type *out, dq_error *err)
{
    *out = (dq_type){.dtype = dtype};
    if (dtype != DQ_UNDEFINED && !dq_dtype_valid((int64_t)dtype))
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: value '%s': %d is no element type", b->ir->path, name,
                       (int)dtype);
    if (rank == DQ_ANY_SHAPE)
        return DQ_OK;
    if (rank > DQ_MAX_RANK)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: value '%s' has rank %zu, expected at most %d",
                       b->ir->path, name, rank, DQ_MAX_RANK);
    int64_t *own = DQ_NEW_ARRAY(&b->ir->arena, rank, int64_t);
    const char **names = DQ_NEW_ARRAY(&b->ir->arena, rank, const char *);
    if (!own || !names)
        return no_memory(err);
    for (size_t i = 0; i < rank; i++) {
        own[i] = dims[i];
        if (dims[i] < -1)
            return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: value '%s' has a dimension below -1", b->ir->path,
                           name);
        if (dim_names && dim_names[i] && !(names[i] = copy_text(b, dim_names[i])))
            return no_memory(err);
    }
    out->has_shape = true;
    out->rank = (uint32_t)rank;
    out->dims = own;
    out->dim_names = names;
    return DQ_OK;
}

typedef dq_status (*add_value_fn)(dq_graph *g, const char *name, const dq_type *type, dq_error *err);

static dq_status add_value(dq_builder *b, add_value_fn add, const char *name, dq_dtype dtype, size_t rank,
                           const int64_t *dims, const char *const *dim_names, dq_error *err)
{
    dq_type type;
    const char *own = copy_text(b, name);
    if (!own)
        return no_memory(err);
    DQ_TRY(make_type(b, name, dtype, rank, dims, dim_names, &type, err));
    return named(b, add(b->ir->graph, own, &type, err), err);
}

dq_status dq_builder_input(dq_builder *builder, const char *name, dq_dtype dtype, size_t rank,
                           const int64_t *dims, const char *const *dim_names, dq_error *err)
{
    DQ_NOT_NULL(builder);
    DQ_NOT_NULL(name);
    if (rank && rank != DQ_ANY_SHAPE)
        DQ_NOT_NULL(dims);
    return add_value(builder, dq_graph_add_input, name, dtype, rank, dims, dim_names, err);
}

dq_status dq_builder_output(dq_builder *builder, const char *name, dq_dtype dtype, size_t rank,
                            const int64_t *dims, const char *const *dim_names, dq_error *err)
{
    DQ_NOT_NULL(builder);
    DQ_NOT_NULL(name);
    if (rank && rank != DQ_ANY_SHAPE)
        DQ_NOT_NULL(dims);
    return add_value(builder, dq_graph_add_output, name, dtype, rank, dims, dim_names, err);
}

dq_status dq_builder_value(dq_builder *builder, const char *name, dq_dtype dtype, size_t rank,
                           const int64_t *dims, const char *const *dim_names, dq_error *err)
{
    DQ_NOT_NULL(builder);
    DQ_NOT_NULL(name);
    if (rank && rank != DQ_ANY_SHAPE)
        DQ_NOT_NULL(dims);
    return add_value(builder, dq_graph_add_value_info, name, dtype, rank, dims, dim_names, err);
}

static dq_status copy_tensor(dq_builder *b, const dq_tensor *t, const dq_tensor **out, dq_error *err)
{
    dq_tensor *copy = NULL;
    if (t->kind != DQ_KIND_TENSOR)
        return dq_fail(err, DQ_INVALID_ARGUMENT,
                       "%s: a constant is a sequence or optional, expected a tensor", b->ir->path);
    DQ_TRY(dq_tensor_new(&b->ir->arena, t->dtype, t->rank, t->dims, b->ir->limits.tensor_bytes, &copy, err));
    if (t->size)
        memcpy(copy->data, t->data, t->size);
    if (t->dtype == DQ_STRING) {
        dq_string *s = copy->data;
        for (size_t i = 0; i < t->count; i++)
            if (!(s[i].bytes = dq_arena_string(&b->ir->arena, s[i].bytes, s[i].length)))
                return no_memory(err);
    }
    *out = copy;
    return DQ_OK;
}

dq_status dq_builder_initializer(dq_builder *builder, const char *name, const dq_tensor *tensor,
                                 dq_error *err)
{
    const dq_tensor *copy = NULL;
    DQ_NOT_NULL(builder);
    DQ_NOT_NULL(name);
    DQ_NOT_NULL(tensor);
    const char *own = copy_text(builder, name);
    if (!own)
        return no_memory(err);
    DQ_TRY(copy_tensor(builder, tensor, &copy, err));
    return named(builder, dq_graph_add_initializer(builder->ir->graph, own, copy, err), err);
}

/* ---- Nodes -------------------------------------------------------------------------------------------- */

static dq_status copy_strings(dq_builder *b, const dq_attribute *from, dq_attr *to, dq_error *err)
{
    dq_string *strings = DQ_NEW_ARRAY(&b->ir->arena, from->count, dq_string);
    if (!strings)
        return no_memory(err);
    for (size_t i = 0; i < from->count; i++) {
        strings[i].length = strlen(from->strings[i]);
        if (!(strings[i].bytes = copy_text(b, from->strings[i])))
            return no_memory(err);
    }
    to->u.strings = strings;
    return DQ_OK;
}

static dq_status copy_list(dq_builder *b, const void *from, size_t count, size_t size, const void **out,
                           dq_error *err)
{
    void *list = dq_arena_array(&b->ir->arena, count, size);
    if (!list)
        return no_memory(err);
    if (count)
        memcpy(list, from, count * size);
    *out = list;
    return DQ_OK;
}

/* Whether the field of the attribute's kind is set. */
static bool complete(const dq_attribute *a)
{
    if (a->kind == DQ_ATTRIBUTE_STRINGS && a->strings)
        for (size_t i = 0; i < a->count; i++)
            if (!a->strings[i])
                return false;
    switch (a->kind) {
    case DQ_ATTRIBUTE_FLOAT:
    case DQ_ATTRIBUTE_INT:
        return true;
    case DQ_ATTRIBUTE_STRING:
        return a->s != NULL;
    case DQ_ATTRIBUTE_TENSOR:
        return a->tensor != NULL;
    case DQ_ATTRIBUTE_FLOATS:
        return !a->count || a->floats;
    case DQ_ATTRIBUTE_INTS:
        return !a->count || a->ints;
    case DQ_ATTRIBUTE_STRINGS:
        return !a->count || a->strings;
    default:
        return false;
    }
}

static dq_status copy_attribute(dq_builder *b, const dq_attribute *from, dq_attr *to, dq_error *err)
{
    if (!from->name || !complete(from))
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: attribute '%s' has no value of kind %d", b->ir->path,
                       from->name ? from->name : "", (int)from->kind);
    *to = (dq_attr){.name = copy_text(b, from->name), .kind = (dq_attr_kind)from->kind, .count = from->count};
    if (!to->name)
        return no_memory(err);
    const void *list = NULL;
    switch (from->kind) {
    case DQ_ATTRIBUTE_FLOAT:
        to->u.f = from->f;
        return DQ_OK;
    case DQ_ATTRIBUTE_INT:
        to->u.i = from->i;
        return DQ_OK;
    case DQ_ATTRIBUTE_STRING:
        to->u.s = (dq_string){copy_text(b, from->s), strlen(from->s)};
        return to->u.s.bytes ? DQ_OK : no_memory(err);
    case DQ_ATTRIBUTE_TENSOR:
        return copy_tensor(b, from->tensor, &to->u.tensor, err);
    case DQ_ATTRIBUTE_FLOATS:
        DQ_TRY(copy_list(b, from->floats, from->count, sizeof *from->floats, &list, err));
        to->u.floats = list;
        return DQ_OK;
    case DQ_ATTRIBUTE_INTS:
        DQ_TRY(copy_list(b, from->ints, from->count, sizeof *from->ints, &list, err));
        to->u.ints = list;
        return DQ_OK;
    case DQ_ATTRIBUTE_STRINGS:
        return copy_strings(b, from, to, err);
    default: /* Not complete. */
        return DQ_OK;
    }
}

/* Copies the attributes. The caller's array has structs of the size that the first one gives. */
static dq_status copy_attributes(dq_builder *b, size_t count, const dq_attribute *from, dq_attr *to,
                                 dq_error *err)
{
    const size_t stride = count ? from->size : 0;
    for (size_t i = 0; i < count; i++) {
        dq_attribute own;
        char where[64];
        snprintf(where, sizeof where, "dq_builder_node: spec.attributes[%zu]", i);
        DQ_TRY(dq_read_struct(DQ_STRUCT_ATTRIBUTE, where, (const char *)from + i * stride, &own, err));
        DQ_TRY(copy_attribute(b, &own, &to[i], err));
    }
    return DQ_OK;
}

static const char *generate(dq_builder *b, const char *op)
{
    return dq_arena_printf(&b->ir->arena, "%s:%u", op, b->generated++);
}

/* Sets the names of inputs and outputs. `outputs` (may be NULL) receives the names of the node's outputs. */
static dq_status name_ports(dq_builder *b, dq_node *node, const dq_node_spec *spec, const char **outputs,
                            dq_error *err)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (spec->inputs[i] && !(node->in_names[i] = copy_text(b, spec->inputs[i])))
            return no_memory(err);
    for (uint32_t i = 0; i < node->out_count; i++) {
        const char *name = spec->outputs ? spec->outputs[i] : NULL;
        node->out_names[i] = name ? copy_text(b, name) : generate(b, node->op_type);
        if (!node->out_names[i])
            return no_memory(err);
        if (outputs)
            outputs[i] = node->out_names[i];
    }
    return DQ_OK;
}

/* Checks that all required parts of a node are set and that the domain is imported; `opset` receives its
 * version. */
static dq_status check_node(const dq_builder *b, const dq_node_spec *spec, int *opset, dq_error *err)
{
    const size_t most = 1u << 20;
    const char *missing = !spec->op_type                               ? "op_type"
                          : spec->input_count && !spec->inputs         ? "inputs"
                          : spec->attribute_count && !spec->attributes ? "attributes"
                                                                       : NULL;
    if (missing)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "dq_builder_node: spec.%s is NULL", missing);
    if (spec->input_count > most || spec->output_count > most || spec->attribute_count > most)
        return dq_fail(
            err, DQ_INVALID_ARGUMENT,
            "%s: a node of %s has %zu inputs, %zu outputs and %zu attributes, expected at most %zu of each",
            b->ir->path, spec->op_type, spec->input_count, spec->output_count, spec->attribute_count, most);
    *opset = dq_opset_version(b->ir->opsets, b->ir->opset_count, spec->domain);
    return *opset ? DQ_OK
                  : dq_fail(err, DQ_INVALID_ARGUMENT,
                            "%s: domain '%s' of %s is not imported, expected dq_builder_opset first",
                            b->ir->path, spec->domain, spec->op_type);
}

dq_status dq_builder_node(dq_builder *builder, const dq_node_spec *spec, const char **outputs, dq_error *err)
{
    dq_node *node = NULL;
    dq_node_spec own;
    int opset = 0;
    DQ_NOT_NULL(builder);
    DQ_NOT_NULL(spec);
    DQ_TRY(dq_read_struct(DQ_STRUCT_NODE_SPEC, "dq_builder_node: spec", spec, &own, err));
    if (!own.domain)
        own.domain = "";
    DQ_TRY(check_node(builder, &own, &opset, err));
    DQ_TRY(dq_graph_add_node(builder->ir->graph, (uint32_t)own.input_count, (uint32_t)own.output_count,
                             (uint32_t)own.attribute_count, &node, err));
    node->opset = opset;
    node->domain = copy_text(builder, dq_domain_canonical(own.domain));
    node->op_type = copy_text(builder, own.op_type);
    if (!node->domain || !node->op_type)
        return no_memory(err);
    node->name = own.name ? copy_text(builder, own.name) : generate(builder, node->op_type);
    if (!node->name)
        return no_memory(err);
    DQ_TRY(name_ports(builder, node, &own, outputs, err));
    return copy_attributes(builder, own.attribute_count, own.attributes, node->attrs, err);
}

dq_status dq_builder_finish(dq_builder *builder, const dq_load_options *options, dq_model **out,
                            dq_error *err)
{
    if (!builder || !out) {
        const char *missing = builder ? "out" : "builder";
        dq_builder_free(builder);
        return dq_fail(err, DQ_INVALID_ARGUMENT, "dq_builder_finish: %s is NULL", missing);
    }
    dq_load_request own;
    dq_ir *ir = builder->ir;
    dq_status status = dq_load_request_read("dq_builder_finish", options, &own, err);
    if (status != DQ_OK) {
        dq_builder_free(builder);
        return status;
    }
    ir->limits = dq_limits_complete(&own.limits);
    free(builder);
    const dq_fpenv callers = dq_fpenv_enter();
    status = dq_model_from_ir(ir, &own.options, out, err);
    dq_fpenv_leave(callers);
    return status;
}
