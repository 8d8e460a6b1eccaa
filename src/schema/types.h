/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of value types, as a schema's type constraints name them. */
#ifndef DQ_SCHEMA_TYPES_H
#define DQ_SCHEMA_TYPES_H

#include "graph/graph.h"

/** What stands around the element type. Maps have one form for each of the two key types that ONNX operators
 * use. */
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

/** Bit `dtype` of dtypes[form]: that form with that element type. */
typedef struct dq_type_set {
    uint32_t dtypes[DQ_FORM_COUNT];
} dq_type_set;

/** The form and element type of a type as ONNX writes it, "seq(tensor(float))"; false when it is none of
 * those above. */
bool dq_form_parse(const char *text, dq_form *form, dq_dtype *dtype);
/** The form of a graph's type, DQ_FORM_COUNT when it is none of those above, and its element type,
 * DQ_UNDEFINED when nothing says it. */
dq_form dq_form_of(const dq_type *type, dq_dtype *dtype);

bool dq_type_set_has(const dq_type_set *set, dq_form form, dq_dtype dtype);
void dq_type_set_add(dq_type_set *set, dq_form form, dq_dtype dtype);
/** Whether there is exactly one type in the set, and which. */
bool dq_type_set_only(const dq_type_set *set, dq_form *form, dq_dtype *dtype);

/** A graph type of that form, without shapes. Nothing in it needs to be freed. */
dq_type dq_type_make(dq_form form, dq_dtype dtype);

/** "tensor(float), tensor(int8)": always terminated; returns the length it wanted without the terminator. */
size_t dq_type_set_text(const dq_type_set *set, char *buffer, size_t size);

#endif
