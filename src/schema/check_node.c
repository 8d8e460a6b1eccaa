/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/schema.h"

#include <stdio.h>
#include <string.h>

enum { LIST_TEXT = 640 };

/* Marks a truncated list with an ellipsis. */
static void mark_cut(char *text, size_t size, size_t expected)
{
    static const char dots[] = "…";
    if (expected >= size)
        memcpy(text + size - sizeof dots, dots, sizeof dots);
}

/* ---- Arity ------------------------------------------------------------------------------------------- */

static const dq_formal *formal_at(const dq_formal *formals, uint32_t count, size_t i)
{
    if (i < count)
        return &formals[i];
    return count && formals[count - 1].option == DQ_VARIADIC ? &formals[count - 1] : NULL;
}

const dq_formal *dq_schema_input(const dq_schema *schema, size_t i)
{
    return formal_at(schema->inputs, schema->input_count, i);
}

const dq_formal *dq_schema_output(const dq_schema *schema, size_t i)
{
    return formal_at(schema->outputs, schema->output_count, i);
}

static dq_status check_count(uint32_t count, uint32_t min, uint32_t max, const char *what, dq_error *err)
{
    if (count >= min && count <= max)
        return DQ_OK;
    const char *plural = count == 1 ? "" : "s";
    if (min == max)
        return dq_fail(err, DQ_BAD_MODEL, "has %u %s%s, expected %u", count, what, plural, min);
    if (max == DQ_UNBOUNDED)
        return dq_fail(err, DQ_BAD_MODEL, "has %u %s%s, expected at least %u", count, what, plural, min);
    return dq_fail(err, DQ_BAD_MODEL, "has %u %s%s, expected %u to %u", count, what, plural, min, max);
}

static dq_status check_left_out(const char *const *names, uint32_t count, const dq_formal *formals,
                                uint32_t formal_count, const char *what, dq_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        const dq_formal *formal = formal_at(formals, formal_count, i);
        if (!*names[i] && formal && formal->option != DQ_OPTIONAL)
            return dq_fail(err, DQ_BAD_MODEL, "%s %u '%s' is left out, and it is not optional", what, i,
                           formal->name);
    }
    return DQ_OK;
}

static dq_status check_arity(const dq_schema *schema, const dq_node *node, dq_error *err)
{
    DQ_TRY(check_count(node->in_count, schema->min_input, schema->max_input, "input", err));
    DQ_TRY(check_count(node->out_count, schema->min_output, schema->max_output, "output", err));
    DQ_TRY(check_left_out(node->in_names, node->in_count, schema->inputs, schema->input_count, "input", err));
    return check_left_out(node->out_names, node->out_count, schema->outputs, schema->output_count, "output",
                          err);
}

/* ---- Attributes -------------------------------------------------------------------------------------- */

static const dq_schema_attr *find_attr(const dq_schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->attr_count; i++)
        if (strcmp(schema->attrs[i].name, name) == 0)
            return &schema->attrs[i];
    return NULL;
}

static dq_status unknown_attr(const dq_schema *schema, const char *name, dq_error *err)
{
    char list[LIST_TEXT] = "none";
    size_t length = 0;
    for (uint32_t i = 0; i < schema->attr_count && length < sizeof list; i++) {
        int n = snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", schema->attrs[i].name);
        length += n > 0 ? (size_t)n : 0;
    }
    mark_cut(list, sizeof list, length);
    return dq_fail(err, DQ_BAD_MODEL,
                   "has the attribute '%.80s', which the operator does not know; it has %s", name, list);
}

/* The kind in the graph: the parser densifies sparse tensors. */
static dq_attr_kind kind_in_graph(dq_attr_kind kind)
{
    return kind == DQ_ATTR_SPARSE_TENSOR    ? DQ_ATTR_TENSOR
           : kind == DQ_ATTR_SPARSE_TENSORS ? DQ_ATTR_TENSORS
                                            : kind;
}

static dq_status check_attr(const dq_schema *schema, const dq_node *node, uint32_t at, dq_error *err)
{
    const dq_attr *attr = &node->attrs[at];
    const dq_schema_attr *known = find_attr(schema, attr->name);
    if (!known)
        return unknown_attr(schema, attr->name, err);
    for (uint32_t i = 0; i < at; i++)
        if (strcmp(node->attrs[i].name, attr->name) == 0)
            return dq_fail(err, DQ_BAD_MODEL, "has the attribute '%s' twice", attr->name);
    if (attr->ref)
        return dq_fail(err, DQ_BAD_MODEL,
                       "attribute '%s' refers to attribute '%.80s' of a function, and is in none", attr->name,
                       attr->ref);
    if (attr->kind != kind_in_graph(known->kind))
        return dq_fail(err, DQ_BAD_MODEL, "attribute '%s' is of type %s, expected %s", attr->name,
                       dq_attr_kind_name(attr->kind), dq_attr_kind_name(known->kind));
    return DQ_OK;
}

static dq_status check_attrs(const dq_schema *schema, const dq_node *node, dq_error *err)
{
    for (uint32_t i = 0; i < node->attr_count; i++)
        DQ_TRY(check_attr(schema, node, i, err));
    for (uint32_t i = 0; i < schema->attr_count; i++)
        if (schema->attrs[i].required && !dq_node_attr(node, schema->attrs[i].name))
            return dq_fail(err, DQ_BAD_MODEL, "lacks the attribute '%s' of type %s, which is required",
                           schema->attrs[i].name, dq_attr_kind_name(schema->attrs[i].kind));
    return DQ_OK;
}

static dq_status add_defaults(const dq_schema *schema, dq_node *node, dq_error *err)
{
    uint32_t missing = 0;
    for (uint32_t i = 0; i < schema->attr_count; i++)
        missing += schema->attrs[i].has_default && !dq_node_attr(node, schema->attrs[i].name);
    if (!missing)
        return DQ_OK;
    uint32_t given = node->attr_count;
    dq_attr *attrs = DQ_NEW_ARRAY(&node->graph->ir->arena, (size_t)given + missing, dq_attr);
    if (!attrs)
        return dq_no_memory(err, ((size_t)given + missing) * sizeof(dq_attr), "attributes");
    if (given)
        memcpy(attrs, node->attrs, given * sizeof *attrs);
    uint32_t count = given;
    for (uint32_t i = 0; i < schema->attr_count; i++)
        if (schema->attrs[i].has_default && !dq_node_attr(node, schema->attrs[i].name))
            attrs[count++] = schema->attrs[i].value;
    node->attrs = attrs;
    node->attr_count = count;
    return DQ_OK;
}

dq_status dq_schema_check_node(const dq_schema *schema, dq_node *node, dq_error *err)
{
    if (schema->deprecated)
        return dq_fail(err, DQ_BAD_MODEL, "the operator is withdrawn since version %d of its domain",
                       schema->since_version);
    DQ_TRY(check_arity(schema, node, err));
    DQ_TRY(check_attrs(schema, node, err));
    DQ_TRY(add_defaults(schema, node, err));
    node->schema = schema;
    return DQ_OK;
}

/* ---- Types ------------------------------------------------------------------------------------------- */

/* The type bound to a type variable in one node, and the input that determined it. */
typedef struct binding {
    bool bound;
    dq_form form;
    dq_dtype dtype;
    uint32_t input;
} binding;

static dq_status refuse_type(const dq_formal *formal, uint32_t i, const dq_type *type, dq_error *err)
{
    char got[DQ_TYPE_TEXT], expected[LIST_TEXT];
    size_t length = dq_type_set_text(&formal->types, expected, sizeof expected);
    mark_cut(expected, sizeof expected, length);
    return dq_fail(err, DQ_BAD_MODEL, "input %u '%s' is %s, expected %s%s", i, formal->name,
                   dq_type_text(type, got), strchr(expected, ',') ? "one of " : "", expected);
}

static dq_status refuse_mix(const dq_schema *schema, uint32_t i, const dq_type *type, const binding *b,
                            dq_error *err)
{
    char got[DQ_TYPE_TEXT], expected[DQ_TYPE_TEXT];
    dq_type bound = dq_type_make(b->form, b->dtype);
    return dq_fail(err, DQ_BAD_MODEL, "input %u '%s' is %s, expected %s, the type of input %u '%s'", i,
                   dq_schema_input(schema, i)->name, dq_type_text(type, got), dq_type_text(&bound, expected),
                   b->input, dq_schema_input(schema, b->input)->name);
}

static dq_status bind_input(const dq_schema *schema, uint32_t i, const dq_type *type, binding *bindings,
                            dq_error *err)
{
    const dq_formal *formal = dq_schema_input(schema, i);
    if (!formal || !type)
        return DQ_OK;
    dq_dtype dtype;
    dq_form form = dq_form_of(type, &dtype);
    if (form != DQ_FORM_COUNT && dtype == DQ_UNDEFINED)
        return DQ_OK;
    if (form == DQ_FORM_COUNT || !dq_type_set_has(&formal->types, form, dtype))
        return refuse_type(formal, i, type, err);
    if (formal->variable < 0 || !formal->homogeneous)
        return DQ_OK;
    binding *b = &bindings[formal->variable];
    if (b->bound && (b->form != form || b->dtype != dtype))
        return refuse_mix(schema, i, type, b, err);
    if (!b->bound)
        *b = (binding){true, form, dtype, i};
    return DQ_OK;
}

static dq_type output_type(const dq_formal *formal, const binding *bindings)
{
    dq_form form;
    dq_dtype dtype;
    if (formal && formal->variable >= 0 && formal->homogeneous && bindings[formal->variable].bound)
        return dq_type_make(bindings[formal->variable].form, bindings[formal->variable].dtype);
    if (formal && dq_type_set_only(&formal->types, &form, &dtype))
        return dq_type_make(form, dtype);
    return dq_type_make(DQ_FORM_TENSOR, DQ_UNDEFINED);
}

dq_status dq_schema_bind_types(const dq_schema *schema, const dq_node *node, const dq_type *const *in,
                               dq_type *out, dq_error *err)
{
    binding bindings[DQ_MAX_SCHEMA_ROWS] = {{false, DQ_FORM_TENSOR, DQ_UNDEFINED, 0}};
    for (uint32_t i = 0; i < node->in_count; i++)
        DQ_TRY(bind_input(schema, i, in[i], bindings, err));
    for (uint32_t i = 0; i < node->out_count; i++)
        out[i] = output_type(dq_schema_output(schema, i), bindings);
    return DQ_OK;
}

size_t dq_schema_types_text(const dq_schema *schema, char *buffer, size_t size)
{
    size_t length = 0;
    if (size)
        buffer[0] = '\0';
    for (uint32_t i = 0; i < schema->constraint_count; i++) {
        char *at = length < size ? buffer + length : NULL;
        int n = snprintf(at, at ? size - length : 0, "%s%s: ", i ? "; " : "", schema->constraints[i].name);
        length += n > 0 ? (size_t)n : 0;
        at = length < size ? buffer + length : NULL;
        length += dq_type_set_text(&schema->constraints[i].types, at, at ? size - length : 0);
    }
    return length;
}
