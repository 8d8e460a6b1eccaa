/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of value types, as in a schema's type constraints. */
#ifndef DQ_SCHEMA_TYPES_H
#define DQ_SCHEMA_TYPES_H

#include "graph/graph.h"

/** The type constructor around the element type. Maps have one form for each of the two key types that ONNX
 * operators use. */
typedef enum dq_form {
    DQ_FORM_TENSOR,
    DQ_FORM_SPARSE,
    DQ_FORM_SEQUENCE,
    DQ_FORM_OPTIONAL,
    DQ_FORM_OPTIONAL_SEQUENCE,
    DQ_FORM_MAP_INT64,
    DQ_FORM_MAP_STRING,
    DQ_FORM_SEQUENCE_MAP_INT64,
    DQ_FORM_SEQUENCE_MAP_STRING,
    DQ_FORM_COUNT
} dq_form;

/** Bit `dtype` of dtypes[form] is set if the set has that form of that element type. */
typedef struct dq_type_set {
    uint32_t dtypes[DQ_FORM_COUNT];
} dq_type_set;

/** Parses a type in ONNX's notation, "seq(tensor(float))". False: none of the forms above. */
bool dq_form_parse(const char *text, dq_form *form, dq_dtype *dtype);
/** The form of a graph's type, or DQ_FORM_COUNT if it is none of the forms above. *dtype becomes its element
 * type, DQ_UNDEFINED if it is not declared. */
dq_form dq_form_of(const dq_type *type, dq_dtype *dtype);

bool dq_type_set_has(const dq_type_set *set, dq_form form, dq_dtype dtype);
void dq_type_set_add(dq_type_set *set, dq_form form, dq_dtype dtype);
/** Whether the set has exactly one type, and which. */
bool dq_type_set_only(const dq_type_set *set, dq_form *form, dq_dtype *dtype);

/** Makes a graph type of that form, without shapes. It needs no freeing. */
dq_type dq_type_make(dq_form form, dq_dtype dtype);

/** Writes "tensor(float), tensor(int8)" to `buffer`, always terminated. Returns the required length without
 * the terminator. */
size_t dq_type_set_text(const dq_type_set *set, char *buffer, size_t size);

#endif
