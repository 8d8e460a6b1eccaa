/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/types.h"

#include <stdio.h>
#include <string.h>

typedef struct form_row {
    const char *head, *tail; /* Around the element type. */
} form_row;

static const form_row forms[DQ_FORM_COUNT] = {
    [DQ_FORM_TENSOR] = {"tensor(", ")"},
    [DQ_FORM_SPARSE] = {"sparse_tensor(", ")"},
    [DQ_FORM_SEQUENCE] = {"seq(tensor(", "))"},
    [DQ_FORM_OPTIONAL] = {"optional(tensor(", "))"},
    [DQ_FORM_OPTIONAL_SEQUENCE] = {"optional(seq(tensor(", ")))"},
    /* The value types of ONNX's maps are written without "tensor". */
    [DQ_FORM_MAP_INT64] = {"map(int64, ", ")"},
    [DQ_FORM_MAP_STRING] = {"map(string, ", ")"},
    [DQ_FORM_SEQUENCE_MAP_INT64] = {"seq(map(int64, ", "))"},
    [DQ_FORM_SEQUENCE_MAP_STRING] = {"seq(map(string, ", "))"},
};

bool dq_form_parse(const char *text, dq_form *form, dq_dtype *dtype)
{
    size_t length = strlen(text);
    for (unsigned f = 0; f < DQ_FORM_COUNT; f++) {
        size_t head = strlen(forms[f].head), tail = strlen(forms[f].tail);
        char element[32];
        if (length < head + tail || length - head - tail >= sizeof element ||
            strncmp(text, forms[f].head, head) != 0 || strcmp(text + length - tail, forms[f].tail) != 0)
            continue;
        memcpy(element, text + head, length - head - tail);
        element[length - head - tail] = '\0';
        *form = (dq_form)f;
        *dtype = dq_dtype_from_name(element);
        if (*dtype != DQ_UNDEFINED)
            return true;
    }
    return false;
}

static dq_form map_form(const dq_type *map, bool in_sequence, dq_dtype *dtype)
{
    const dq_type *value = map->element;
    if (!value || value->kind != DQ_KIND_TENSOR)
        return DQ_FORM_COUNT;
    *dtype = value->dtype;
    if (map->dtype == DQ_INT64)
        return in_sequence ? DQ_FORM_SEQUENCE_MAP_INT64 : DQ_FORM_MAP_INT64;
    if (map->dtype == DQ_STRING)
        return in_sequence ? DQ_FORM_SEQUENCE_MAP_STRING : DQ_FORM_MAP_STRING;
    return DQ_FORM_COUNT;
}

static dq_form form_around(const dq_type *element, dq_form form, dq_dtype *dtype)
{
    if (!element)
        return form;
    if (element->kind != DQ_KIND_TENSOR)
        return DQ_FORM_COUNT;
    *dtype = element->dtype;
    return form;
}

dq_form dq_form_of(const dq_type *type, dq_dtype *dtype)
{
    const dq_type *element = type->element;
    *dtype = DQ_UNDEFINED;
    switch (type->kind) {
    case DQ_KIND_TENSOR:
        *dtype = type->dtype;
        return DQ_FORM_TENSOR;
    case DQ_KIND_SPARSE:
        *dtype = type->dtype;
        return DQ_FORM_SPARSE;
    case DQ_KIND_MAP:
        return map_form(type, false, dtype);
    case DQ_KIND_SEQUENCE:
        if (element && element->kind == DQ_KIND_MAP)
            return map_form(element, true, dtype);
        return form_around(element, DQ_FORM_SEQUENCE, dtype);
    case DQ_KIND_OPTIONAL:
        if (element && element->kind == DQ_KIND_SEQUENCE)
            return form_around(element->element, DQ_FORM_OPTIONAL_SEQUENCE, dtype);
        return form_around(element, DQ_FORM_OPTIONAL, dtype);
    }
    return DQ_FORM_COUNT;
}

bool dq_type_set_has(const dq_type_set *set, dq_form form, dq_dtype dtype)
{
    return set->dtypes[form] >> dtype & 1;
}

void dq_type_set_add(dq_type_set *set, dq_form form, dq_dtype dtype)
{
    set->dtypes[form] |= 1u << dtype;
}

bool dq_type_set_only(const dq_type_set *set, dq_form *form, dq_dtype *dtype)
{
    unsigned found = 0;
    for (unsigned f = 0; f < DQ_FORM_COUNT; f++)
        for (unsigned d = 0; d < DQ_DTYPE_COUNT; d++)
            if (dq_type_set_has(set, (dq_form)f, (dq_dtype)d)) {
                found++;
                *form = (dq_form)f;
                *dtype = (dq_dtype)d;
            }
    return found == 1;
}

#define TENSOR_ROW(d) [d] = {.kind = DQ_KIND_TENSOR, .dtype = (dq_dtype)(d)}
#define EIGHT(ROW, d)                                                                                        \
    ROW(d), ROW((d) + 1), ROW((d) + 2), ROW((d) + 3), ROW((d) + 4), ROW((d) + 5), ROW((d) + 6), ROW((d) + 7)
static const dq_type tensors[32] = {EIGHT(TENSOR_ROW, 0), EIGHT(TENSOR_ROW, 8), EIGHT(TENSOR_ROW, 16),
                                    EIGHT(TENSOR_ROW, 24)};
#define SEQUENCE_ROW(d) [d] = {.kind = DQ_KIND_SEQUENCE, .element = &tensors[d]}
static const dq_type sequences[32] = {EIGHT(SEQUENCE_ROW, 0), EIGHT(SEQUENCE_ROW, 8), EIGHT(SEQUENCE_ROW, 16),
                                      EIGHT(SEQUENCE_ROW, 24)};
#define MAP_ROW(key, d) [d] = {.kind = DQ_KIND_MAP, .dtype = (key), .element = &tensors[d]}
#define INT64_MAP_ROW(d) MAP_ROW(DQ_INT64, d)
#define STRING_MAP_ROW(d) MAP_ROW(DQ_STRING, d)
static const dq_type int64_maps[32] = {EIGHT(INT64_MAP_ROW, 0), EIGHT(INT64_MAP_ROW, 8),
                                       EIGHT(INT64_MAP_ROW, 16), EIGHT(INT64_MAP_ROW, 24)};
static const dq_type string_maps[32] = {EIGHT(STRING_MAP_ROW, 0), EIGHT(STRING_MAP_ROW, 8),
                                        EIGHT(STRING_MAP_ROW, 16), EIGHT(STRING_MAP_ROW, 24)};

dq_type dq_type_make(dq_form form, dq_dtype dtype)
{
    switch (form) {
    case DQ_FORM_SPARSE:
        return (dq_type){.kind = DQ_KIND_SPARSE, .dtype = dtype};
    case DQ_FORM_SEQUENCE:
        return sequences[dtype];
    case DQ_FORM_OPTIONAL:
        return (dq_type){.kind = DQ_KIND_OPTIONAL, .element = &tensors[dtype]};
    case DQ_FORM_OPTIONAL_SEQUENCE:
        return (dq_type){.kind = DQ_KIND_OPTIONAL, .element = &sequences[dtype]};
    case DQ_FORM_MAP_INT64:
        return int64_maps[dtype];
    case DQ_FORM_MAP_STRING:
        return string_maps[dtype];
    case DQ_FORM_SEQUENCE_MAP_INT64:
        return (dq_type){.kind = DQ_KIND_SEQUENCE, .element = &int64_maps[dtype]};
    case DQ_FORM_SEQUENCE_MAP_STRING:
        return (dq_type){.kind = DQ_KIND_SEQUENCE, .element = &string_maps[dtype]};
    default:
        return tensors[dtype];
    }
}

size_t dq_type_set_text(const dq_type_set *set, char *buffer, size_t size)
{
    size_t length = 0;
    if (size)
        buffer[0] = '\0';
    for (unsigned f = 0; f < DQ_FORM_COUNT; f++)
        for (unsigned d = 0; d < DQ_DTYPE_COUNT; d++) {
            if (!dq_type_set_has(set, (dq_form)f, (dq_dtype)d))
                continue;
            int n = snprintf(length < size ? buffer + length : NULL, length < size ? size - length : 0,
                             "%s%s%s%s", length ? ", " : "", forms[f].head, dq_dtype_name((dq_dtype)d),
                             forms[f].tail);
            length += n > 0 ? (size_t)n : 0;
        }
    return length;
}
