/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_SINCE_VERSION 1000000
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* One key of a mapping: its definition in the format, and after take_fields its value in the text. */
typedef struct field {
    const char *key;
    bool required;
    const dq_yaml *value; /* NULL: absent. */
} field;

dq_status dq_read_fail(const dq_schema_reader *r, unsigned line, const char *format, ...)
{
    char message[sizeof r->err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return dq_fail(r->err, DQ_BAD_MODEL, "%s:%u: %s", r->source, line, message);
}

dq_status dq_read_no_memory(const dq_schema_reader *r)
{
    return dq_no_memory(r->err, sizeof(dq_schema), "a schema");
}

/* Whether the node is a plain scalar for "nothing": empty, ~ or null. */
static bool is_null(const dq_yaml *node)
{
    return node->kind == DQ_YAML_SCALAR && node->plain &&
           (!*node->text || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0);
}

static dq_status want_kind(const dq_schema_reader *r, const dq_yaml *node, const char *what,
                           dq_yaml_kind kind)
{
    if (node->kind == kind)
        return DQ_OK;
    return dq_read_fail(r, node->line, "%s is %s, expected %s", what, dq_yaml_kind_name(node->kind),
                        dq_yaml_kind_name(kind));
}

/* Copies the scalar's text; `what` names it in the message. */
static dq_status read_text(const dq_schema_reader *r, const dq_yaml *node, const char *what, const char **out)
{
    DQ_TRY(want_kind(r, node, what, DQ_YAML_SCALAR));
    *out = dq_arena_string(r->arena, node->text, strlen(node->text));
    return *out ? DQ_OK : dq_read_no_memory(r);
}

static dq_status read_name(const dq_schema_reader *r, const dq_yaml *node, const char *what, const char **out)
{
    DQ_TRY(read_text(r, node, what, out));
    return **out ? DQ_OK : dq_read_fail(r, node->line, "%s is empty", what);
}

static dq_status read_number(const dq_schema_reader *r, const dq_yaml *node, const char *what, uint32_t low,
                             uint32_t high, uint32_t *out)
{
    DQ_TRY(want_kind(r, node, what, DQ_YAML_SCALAR));
    char *end = NULL;
    errno = 0;
    long long value = strtoll(node->text, &end, 10);
    if (!node->plain || end == node->text || *end || errno || value < low || value > high)
        return dq_read_fail(r, node->line, "%s is '%.40s', expected a number from %u to %u", what, node->text,
                            low, high);
    *out = (uint32_t)value;
    return DQ_OK;
}

static dq_status read_bool(const dq_schema_reader *r, const dq_yaml *node, const char *what, bool *out)
{
    DQ_TRY(want_kind(r, node, what, DQ_YAML_SCALAR));
    *out = strcasecmp(node->text, "true") == 0;
    if (!node->plain || (!*out && strcasecmp(node->text, "false") != 0))
        return dq_read_fail(r, node->line, "%s is '%.40s', expected true or false", what, node->text);
    return DQ_OK;
}

/* Assigns a mapping's values to `fields`. Refuses an unknown key, and a missing required one. */
static dq_status take_fields(const dq_schema_reader *r, const dq_yaml *map, const char *what, field *fields,
                             size_t count)
{
    DQ_TRY(want_kind(r, map, what, DQ_YAML_MAP));
    for (const dq_yaml_item *item = map->items; item; item = item->next) {
        size_t i = 0;
        while (i < count && strcmp(fields[i].key, item->key) != 0)
            i++;
        if (i == count)
            return dq_read_fail(r, item->line, "%s has the unknown key '%.80s'", what, item->key);
        fields[i].value = item->value;
    }
    for (size_t i = 0; i < count; i++)
        if (fields[i].required && !fields[i].value)
            return dq_read_fail(r, map->line, "%s lacks the key '%s'", what, fields[i].key);
    return DQ_OK;
}

/* Checks that a list has no more rows than a schema may have. */
static dq_status want_list(const dq_schema_reader *r, const dq_yaml *list, const char *what)
{
    DQ_TRY(want_kind(r, list, what, DQ_YAML_LIST));
    if (list->count > DQ_MAX_SCHEMA_ROWS)
        return dq_fail(r->err, DQ_OUT_OF_MEMORY, "%s:%u: %s has %zu rows, the limit is %d", r->source,
                       list->line, what, list->count, DQ_MAX_SCHEMA_ROWS);
    return DQ_OK;
}

/* ---- Type constraints -------------------------------------------------------------------------------- */

static dq_status add_type(const dq_schema_reader *r, const dq_yaml *node, dq_type_set *set)
{
    DQ_TRY(want_kind(r, node, "a type", DQ_YAML_SCALAR));
    dq_form form;
    dq_dtype dtype;
    if (!dq_form_parse(node->text, &form, &dtype))
        return dq_read_fail(r, node->line, "'%.80s' is no type that dqrun knows", node->text);
    dq_type_set_add(set, form, dtype);
    return DQ_OK;
}

static dq_status read_constraint(const dq_schema_reader *r, const dq_yaml *node, const dq_schema *schema,
                                 uint32_t known, dq_constraint *out)
{
    field fields[] = {
        {"type_param_str", true, NULL}, {"description", false, NULL}, {"allowed_type_strs", true, NULL}};
    DQ_TRY(take_fields(r, node, "a type constraint", fields, COUNT(fields)));
    DQ_TRY(read_name(r, fields[0].value, "type_param_str", &out->name));
    for (uint32_t i = 0; i < known; i++)
        if (strcmp(schema->constraints[i].name, out->name) == 0)
            return dq_read_fail(r, node->line, "type variable '%s' is constrained twice", out->name);
    DQ_TRY(want_kind(r, fields[2].value, "allowed_type_strs", DQ_YAML_LIST));
    if (!fields[2].value->count)
        return dq_read_fail(r, fields[2].value->line, "type variable '%s' allows no type", out->name);
    for (const dq_yaml_item *item = fields[2].value->items; item; item = item->next)
        DQ_TRY(add_type(r, item->value, &out->types));
    return DQ_OK;
}

static dq_status read_constraints(const dq_schema_reader *r, const dq_yaml *list, dq_schema *schema)
{
    if (!list)
        return DQ_OK;
    DQ_TRY(want_list(r, list, "type_constraints"));
    dq_constraint *rows = DQ_NEW_ARRAY(r->arena, list->count, dq_constraint);
    if (!rows)
        return dq_read_no_memory(r);
    schema->constraints = rows;
    for (const dq_yaml_item *item = list->items; item; item = item->next, schema->constraint_count++)
        DQ_TRY(read_constraint(r, item->value, schema, schema->constraint_count,
                               &rows[schema->constraint_count]));
    return DQ_OK;
}

/* ---- Inputs and outputs ------------------------------------------------------------------------------ */

static dq_status read_tag(const dq_schema_reader *r, const dq_yaml *tag, dq_formal *out)
{
    DQ_TRY(want_kind(r, tag, "a tag", DQ_YAML_SCALAR));
    if (strcmp(tag->text, "optional") == 0)
        out->option = DQ_OPTIONAL;
    else if (strcmp(tag->text, "variadic") == 0)
        out->option = DQ_VARIADIC;
    else if (strcmp(tag->text, "heterogeneous") == 0)
        out->homogeneous = false;
    else if (strcmp(tag->text, "differentiable") != 0 && strcmp(tag->text, "non-differentiable") != 0)
        return dq_read_fail(r, tag->line,
                            "'%.40s' is no tag; there are optional, variadic, heterogeneous, "
                            "differentiable and non-differentiable",
                            tag->text);
    return DQ_OK;
}

static dq_status read_type_str(const dq_schema_reader *r, const dq_yaml *node, const dq_schema *schema,
                               dq_formal *out)
{
    DQ_TRY(read_name(r, node, "type_str", &out->type_str));
    out->variable = -1;
    for (uint32_t i = 0; i < schema->constraint_count; i++)
        if (strcmp(schema->constraints[i].name, out->type_str) == 0) {
            out->variable = (int)i;
            out->types = schema->constraints[i].types;
            return DQ_OK;
        }
    dq_form form;
    dq_dtype dtype;
    if (!dq_form_parse(out->type_str, &form, &dtype))
        return dq_read_fail(r, node->line,
                            "type_str '%.80s' is neither a type variable of type_constraints nor a type",
                            out->type_str);
    dq_type_set_add(&out->types, form, dtype);
    return DQ_OK;
}

static dq_status read_formal(const dq_schema_reader *r, const dq_yaml *node, const dq_schema *schema,
                             dq_formal *out)
{
    field fields[] = {{"name", true, NULL},
                      {"type_str", true, NULL},
                      {"description", false, NULL},
                      {"min_arity", false, NULL},
                      {"tags", false, NULL}};
    DQ_TRY(take_fields(r, node, "an input or output", fields, COUNT(fields)));
    DQ_TRY(read_name(r, fields[0].value, "name", &out->name));
    DQ_TRY(read_type_str(r, fields[1].value, schema, out));
    out->homogeneous = true;
    out->min_arity = 1;
    if (fields[3].value)
        DQ_TRY(read_number(r, fields[3].value, "min_arity", 0, DQ_UNBOUNDED, &out->min_arity));
    if (!fields[4].value)
        return DQ_OK;
    DQ_TRY(want_kind(r, fields[4].value, "tags", DQ_YAML_LIST));
    for (const dq_yaml_item *item = fields[4].value->items; item; item = item->next)
        DQ_TRY(read_tag(r, item->value, out));
    return DQ_OK;
}

/* The inputs or the outputs of an operator: source fields and destination. */
typedef struct side {
    const field *list, *min_field, *max_field;
    const dq_formal **formals;
    uint32_t *count, *min, *max;
} side;

/* Derives options of a schema without tags: a formal after the minimal arity is optional, and so is one with
 * a minimum of none; a last formal that stands for several is variadic. */
static void settle_options(dq_formal *formals, uint32_t count, uint32_t min, uint32_t max)
{
    for (uint32_t i = 0; i < count; i++) {
        dq_formal *formal = &formals[i];
        if (formal->option != DQ_SINGLE)
            continue;
        if (i + 1 == count && max > count)
            formal->option = DQ_VARIADIC;
        else if (i >= min || formal->min_arity == 0)
            formal->option = DQ_OPTIONAL;
    }
}

/* Reads the least and largest number of inputs or outputs: from the fields, else from the formals. */
static dq_status read_arity(const dq_schema_reader *r, const side *s, const dq_formal *formals)
{
    const field *min = s->min_field, *max = s->max_field;
    const uint32_t count = *s->count;
    *s->min = 0;
    for (uint32_t i = 0; i < count; i++)
        if (formals[i].option == DQ_SINGLE && formals[i].min_arity > 0)
            *s->min = i + 1;
        else if (formals[i].option == DQ_VARIADIC && formals[i].min_arity > 0)
            *s->min = i + formals[i].min_arity;
    *s->max = count && formals[count - 1].option == DQ_VARIADIC ? DQ_UNBOUNDED : count;
    if (min->value)
        DQ_TRY(read_number(r, min->value, min->key, 0, DQ_UNBOUNDED, s->min));
    if (max->value)
        DQ_TRY(read_number(r, max->value, max->key, 0, DQ_UNBOUNDED, s->max));
    if (*s->min > *s->max)
        return dq_read_fail(r, min->value ? min->value->line : s->list->value->line, "%s is %u, above %s, %u",
                            min->key, *s->min, max->key, *s->max);
    return DQ_OK;
}

static dq_status read_formals(const dq_schema_reader *r, const dq_schema *schema, const side *s)
{
    const dq_yaml *node = s->list->value;
    DQ_TRY(want_list(r, node, s->list->key));
    dq_formal *formals = DQ_NEW_ARRAY(r->arena, node->count, dq_formal);
    if (!formals)
        return dq_read_no_memory(r);
    *s->formals = formals;
    for (const dq_yaml_item *item = node->items; item; item = item->next) {
        const dq_formal *before = *s->count ? &formals[*s->count - 1] : NULL;
        if (before && before->option == DQ_VARIADIC)
            return dq_read_fail(r, item->line, "'%s' is variadic and not the last of %s", before->name,
                                s->list->key);
        DQ_TRY(read_formal(r, item->value, schema, &formals[(*s->count)++]));
    }
    DQ_TRY(read_arity(r, s, formals));
    settle_options(formals, *s->count, *s->min, *s->max);
    return DQ_OK;
}

/* ---- Attributes -------------------------------------------------------------------------------------- */

static dq_status read_attr_kind(const dq_schema_reader *r, const dq_yaml *node, dq_attr_kind *out)
{
    static const struct {
        const char *name;
        dq_attr_kind kind;
    } kinds[] = {{"FLOAT", DQ_ATTR_FLOAT},
                 {"INT", DQ_ATTR_INT},
                 {"STRING", DQ_ATTR_STRING},
                 {"TENSOR", DQ_ATTR_TENSOR},
                 {"GRAPH", DQ_ATTR_GRAPH},
                 {"FLOATS", DQ_ATTR_FLOATS},
                 {"INTS", DQ_ATTR_INTS},
                 {"STRINGS", DQ_ATTR_STRINGS},
                 {"TENSORS", DQ_ATTR_TENSORS},
                 {"GRAPHS", DQ_ATTR_GRAPHS},
                 {"SPARSE_TENSOR", DQ_ATTR_SPARSE_TENSOR},
                 {"SPARSE_TENSORS", DQ_ATTR_SPARSE_TENSORS},
                 {"TYPE_PROTO", DQ_ATTR_TYPE_PROTO},
                 {"TYPE_PROTOS", DQ_ATTR_TYPE_PROTOS}};
    DQ_TRY(want_kind(r, node, "type", DQ_YAML_SCALAR));
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strcasecmp(kinds[i].name, node->text) == 0) {
            *out = kinds[i].kind;
            return DQ_OK;
        }
    return dq_read_fail(r, node->line,
                        "'%.40s' is no attribute type; there are INT, FLOAT, STRING, TENSOR, GRAPH, "
                        "SPARSE_TENSOR, TYPE_PROTO and each with S",
                        node->text);
}

static dq_status read_attr(const dq_schema_reader *r, const dq_yaml *node, const dq_schema *schema,
                           dq_schema_attr *out)
{
    field fields[] = {{"name", true, NULL},
                      {"description", false, NULL},
                      {"type", true, NULL},
                      {"required", false, NULL},
                      {"default", false, NULL}};
    DQ_TRY(take_fields(r, node, "an attribute", fields, COUNT(fields)));
    DQ_TRY(read_name(r, fields[0].value, "name", &out->name));
    for (uint32_t i = 0; i < schema->attr_count; i++)
        if (strcmp(schema->attrs[i].name, out->name) == 0)
            return dq_read_fail(r, node->line, "attribute '%s' stands twice", out->name);
    DQ_TRY(read_attr_kind(r, fields[2].value, &out->kind));
    if (fields[3].value)
        DQ_TRY(read_bool(r, fields[3].value, "required", &out->required));
    const dq_yaml *value = fields[4].value;
    if (!value || is_null(value))
        return DQ_OK;
    if (out->required)
        return dq_read_fail(r, value->line, "attribute '%s' is required and has a default", out->name);
    out->has_default = true;
    return dq_read_default(r, value, out->name, out->kind, &out->value);
}

static dq_status read_attrs(const dq_schema_reader *r, const dq_yaml *list, dq_schema *schema)
{
    if (!list)
        return DQ_OK;
    DQ_TRY(want_list(r, list, "attributes"));
    dq_schema_attr *rows = DQ_NEW_ARRAY(r->arena, list->count, dq_schema_attr);
    if (!rows)
        return dq_read_no_memory(r);
    schema->attrs = rows;
    for (const dq_yaml_item *item = list->items; item; item = item->next, schema->attr_count++)
        DQ_TRY(read_attr(r, item->value, schema, &rows[schema->attr_count]));
    return DQ_OK;
}

/* ---- The document ------------------------------------------------------------------------------------ */

enum {
    DOMAIN,
    NAME,
    SINCE_VERSION,
    MIN_INPUT,
    MAX_INPUT,
    MIN_OUTPUT,
    MAX_OUTPUT,
    DOC,
    ATTRIBUTES,
    INPUTS,
    OUTPUTS,
    TYPE_CONSTRAINTS,
    SUPPORT_LEVEL,
    DEPRECATED,
    FIELD_COUNT
};

static dq_status read_head(const dq_schema_reader *r, const field *fields, dq_schema *schema)
{
    uint32_t version = 0;
    schema->domain = schema->doc = "";
    if (fields[DOMAIN].value)
        DQ_TRY(read_text(r, fields[DOMAIN].value, "domain", &schema->domain));
    schema->domain = dq_domain_canonical(schema->domain);
    DQ_TRY(read_name(r, fields[NAME].value, "name", &schema->name));
    DQ_TRY(read_number(r, fields[SINCE_VERSION].value, "since_version", 1, MAX_SINCE_VERSION, &version));
    schema->since_version = (int)version;
    if (fields[DOC].value)
        DQ_TRY(read_text(r, fields[DOC].value, "doc", &schema->doc));
    if (fields[SUPPORT_LEVEL].value)
        DQ_TRY(want_kind(r, fields[SUPPORT_LEVEL].value, "support_level", DQ_YAML_SCALAR));
    if (fields[DEPRECATED].value)
        DQ_TRY(read_bool(r, fields[DEPRECATED].value, "deprecated", &schema->deprecated));
    return DQ_OK;
}

dq_status dq_schema_read(dq_arena *arena, const dq_yaml *root, const char *source, dq_schema **out,
                         dq_error *err)
{
    dq_schema_reader r = {arena, source, err};
    field fields[FIELD_COUNT] = {
        [DOMAIN] = {"domain", false, NULL},
        [NAME] = {"name", true, NULL},
        [SINCE_VERSION] = {"since_version", true, NULL},
        [MIN_INPUT] = {"min_input", false, NULL},
        [MAX_INPUT] = {"max_input", false, NULL},
        [MIN_OUTPUT] = {"min_output", false, NULL},
        [MAX_OUTPUT] = {"max_output", false, NULL},
        [DOC] = {"doc", false, NULL},
        [ATTRIBUTES] = {"attributes", false, NULL},
        [INPUTS] = {"inputs", true, NULL},
        [OUTPUTS] = {"outputs", true, NULL},
        [TYPE_CONSTRAINTS] = {"type_constraints", false, NULL},
        [SUPPORT_LEVEL] = {"support_level", false, NULL},
        [DEPRECATED] = {"deprecated", false, NULL},
    };
    DQ_TRY(take_fields(&r, root, "a schema", fields, FIELD_COUNT));
    dq_schema *schema = DQ_NEW(arena, dq_schema);
    if (!schema)
        return dq_read_no_memory(&r);
    DQ_TRY(read_head(&r, fields, schema));
    DQ_TRY(read_constraints(&r, fields[TYPE_CONSTRAINTS].value, schema));
    DQ_TRY(read_attrs(&r, fields[ATTRIBUTES].value, schema));
    const side inputs = {.list = &fields[INPUTS],
                         .min_field = &fields[MIN_INPUT],
                         .max_field = &fields[MAX_INPUT],
                         .formals = &schema->inputs,
                         .count = &schema->input_count,
                         .min = &schema->min_input,
                         .max = &schema->max_input};
    const side outputs = {.list = &fields[OUTPUTS],
                          .min_field = &fields[MIN_OUTPUT],
                          .max_field = &fields[MAX_OUTPUT],
                          .formals = &schema->outputs,
                          .count = &schema->output_count,
                          .min = &schema->min_output,
                          .max = &schema->max_output};
    DQ_TRY(read_formals(&r, schema, &inputs));
    DQ_TRY(read_formals(&r, schema, &outputs));
    *out = schema;
    return DQ_OK;
}
