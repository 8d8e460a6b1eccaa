/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schema/read.h"

static dq_status wrong(const dq_schema_reader *r, const dq_yaml *node, const char *name, dq_attr_kind kind)
{
    const char *got = node->kind == DQ_YAML_SCALAR ? node->text : dq_yaml_kind_name(node->kind);
    return dq_read_fail(r, node->line, "the default of attribute '%s' is %.80s%s, expected %s", name, got,
                        node->kind == DQ_YAML_SCALAR && !node->plain ? " in quotes" : "",
                        dq_attr_kind_name(kind));
}

static bool parse_int(const char *text, int64_t *out)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    *out = value;
    return end != text && !*end && errno == 0;
}

/* Parses YAML's spellings of infinity and NaN. */
static bool parse_special(const char *text, float *out)
{
    if (strcmp(text, ".nan") == 0)
        *out = NAN;
    else if (strcmp(text, ".inf") == 0 || strcmp(text, "+.inf") == 0)
        *out = INFINITY;
    else if (strcmp(text, "-.inf") == 0)
        *out = -INFINITY;
    else
        return false;
    return true;
}

/* Parses the nearest float32, with a decimal point in any locale. *ok: whether the text is a number. */
static dq_status parse_float(const dq_schema_reader *r, const dq_yaml *node, float *out, bool *ok)
{
    *ok = false;
    if (node->kind != DQ_YAML_SCALAR || !node->plain)
        return DQ_OK;
    *ok = parse_special(node->text, out);
    if (*ok || strspn(node->text, "+-.0123456789eE") != strlen(node->text))
        return DQ_OK;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return dq_read_no_memory(r);
    locale_t old = uselocale(c);
    char *end = NULL;
    *out = strtof(node->text, &end);
    uselocale(old);
    freelocale(c);
    *ok = end != node->text && !*end && isfinite(*out);
    return DQ_OK;
}

static dq_status read_float(const dq_schema_reader *r, const dq_yaml *node, const char *name, float *out)
{
    bool ok;
    DQ_TRY(parse_float(r, node, out, &ok));
    return ok ? DQ_OK : wrong(r, node, name, DQ_ATTR_FLOAT);
}

static dq_status read_int(const dq_schema_reader *r, const dq_yaml *node, const char *name, int64_t *out)
{
    bool plain = node->kind == DQ_YAML_SCALAR && node->plain;
    return plain && parse_int(node->text, out) ? DQ_OK : wrong(r, node, name, DQ_ATTR_INT);
}

static dq_status copy_string(const dq_schema_reader *r, const dq_yaml *node, dq_string *out)
{
    out->length = strlen(node->text);
    out->bytes = dq_arena_string(r->arena, node->text, out->length);
    return out->bytes ? DQ_OK : dq_read_no_memory(r);
}

static dq_status read_ints(const dq_schema_reader *r, const dq_yaml *node, const char *name, dq_attr *out)
{
    int64_t *values = DQ_NEW_ARRAY(r->arena, node->count, int64_t), *next = values;
    if (!values)
        return dq_read_no_memory(r);
    for (const dq_yaml_item *item = node->items; item; item = item->next)
        DQ_TRY(read_int(r, item->value, name, next++));
    out->u.ints = values;
    return DQ_OK;
}

static dq_status read_floats(const dq_schema_reader *r, const dq_yaml *node, const char *name, dq_attr *out)
{
    float *values = DQ_NEW_ARRAY(r->arena, node->count, float), *next = values;
    if (!values)
        return dq_read_no_memory(r);
    for (const dq_yaml_item *item = node->items; item; item = item->next)
        DQ_TRY(read_float(r, item->value, name, next++));
    out->u.floats = values;
    return DQ_OK;
}

static dq_status read_strings(const dq_schema_reader *r, const dq_yaml *node, const char *name, dq_attr *out)
{
    dq_string *values = DQ_NEW_ARRAY(r->arena, node->count, dq_string), *next = values;
    if (!values)
        return dq_read_no_memory(r);
    for (const dq_yaml_item *item = node->items; item; item = item->next) {
        if (item->value->kind != DQ_YAML_SCALAR)
            return wrong(r, item->value, name, DQ_ATTR_STRING);
        DQ_TRY(copy_string(r, item->value, next++));
    }
    out->u.strings = values;
    return DQ_OK;
}

static dq_status read_list(const dq_schema_reader *r, const dq_yaml *node, const char *name, dq_attr *out)
{
    if (node->kind != DQ_YAML_LIST)
        return wrong(r, node, name, out->kind);
    out->count = node->count;
    switch (out->kind) {
    case DQ_ATTR_INTS:
        return read_ints(r, node, name, out);
    case DQ_ATTR_FLOATS:
        return read_floats(r, node, name, out);
    default:
        return read_strings(r, node, name, out);
    }
}

dq_status dq_read_default(const dq_schema_reader *r, const dq_yaml *node, const char *name, dq_attr_kind kind,
                          dq_attr *out)
{
    *out = (dq_attr){.name = name, .kind = kind};
    switch (kind) {
    case DQ_ATTR_INT:
        return read_int(r, node, name, &out->u.i);
    case DQ_ATTR_FLOAT:
        return read_float(r, node, name, &out->u.f);
    case DQ_ATTR_STRING:
        return node->kind == DQ_YAML_SCALAR ? copy_string(r, node, &out->u.s) : wrong(r, node, name, kind);
    case DQ_ATTR_INTS:
    case DQ_ATTR_FLOATS:
    case DQ_ATTR_STRINGS:
        return read_list(r, node, name, out);
    default:
        return dq_read_fail(r, node->line,
                            "attribute '%s' of type %s has a default, which only numbers and texts may", name,
                            dq_attr_kind_name(kind));
    }
}
