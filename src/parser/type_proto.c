/* SPDX-License-Identifier: Apache-2.0 */
/* Converts TypeProto to dq_type. */
#include "parser/reader.h"

#include <inttypes.h>

static dq_status read_dtype(int32_t number, const char *what, dq_dtype *out, dq_error *err)
{
    if (number != DQ_UNDEFINED && !dq_dtype_valid(number))
        return dq_fail(err, DQ_BAD_MODEL, "has %s type %" PRId32 ", which is not one of ONNX's (1 to %d)",
                       what, number, DQ_DTYPE_COUNT - 1);
    *out = (dq_dtype)number;
    return DQ_OK;
}

static dq_status read_dim(dq_reader *r, const Onnx__TensorShapeProto__Dimension *proto, size_t i,
                          int64_t *dim, const char **name, dq_error *err)
{
    *dim = -1;
    *name = NULL;
    if (proto->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
        /* Some writers use -1 for unknown. */
        if (proto->dim_value < -1)
            return dq_fail(err, DQ_BAD_MODEL, "has %" PRId64 " as dimension %zu, expected 0 or more",
                           proto->dim_value, i);
        *dim = proto->dim_value;
    } else if (proto->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
               *dq_pb_text(proto->dim_param)) {
        *name = dq_proto_text(r, proto->dim_param);
        if (!*name)
            return dq_no_memory(err, 1, "the name of a dimension");
    }
    return DQ_OK;
}

static dq_status read_shape(dq_reader *r, const Onnx__TensorShapeProto *proto, dq_type *out, dq_error *err)
{
    if (!proto)
        return DQ_OK;
    if (proto->n_dim > DQ_MAX_RANK)
        return dq_fail(err, DQ_UNSUPPORTED, "has rank %zu, expected at most %d", proto->n_dim, DQ_MAX_RANK);
    int64_t *dims = DQ_NEW_ARRAY(&r->ir->arena, proto->n_dim, int64_t);
    const char **names = DQ_NEW_ARRAY(&r->ir->arena, proto->n_dim, const char *);
    if (!dims || !names)
        return dq_no_memory(err, proto->n_dim * sizeof *dims, "a shape");
    for (size_t i = 0; i < proto->n_dim; i++)
        DQ_TRY(read_dim(r, proto->dim[i], i, &dims[i], &names[i], err));
    out->has_shape = true;
    out->rank = (uint32_t)proto->n_dim;
    out->dims = dims;
    out->dim_names = names;
    return DQ_OK;
}

static dq_status read_element(dq_reader *r, const Onnx__TypeProto *proto, dq_kind kind, dq_type *out,
                              dq_error *err)
{
    dq_type *element = DQ_NEW(&r->ir->arena, dq_type);
    if (!element)
        return dq_no_memory(err, sizeof *element, "a type");
    out->kind = kind;
    out->element = element;
    return dq_proto_type(r, proto, element, err);
}

/* The depth limit of the skeleton's walk bounds the recursion. */
dq_status dq_proto_type(dq_reader *r, const Onnx__TypeProto *proto, dq_type *out, dq_error *err)
{
    *out = (dq_type){.kind = DQ_KIND_TENSOR};
    if (!proto)
        return DQ_OK;
    switch (proto->value_case) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        DQ_TRY(read_dtype(proto->tensor_type->elem_type, "element", &out->dtype, err));
        return read_shape(r, proto->tensor_type->shape, out, err);
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        out->kind = DQ_KIND_SPARSE;
        DQ_TRY(read_dtype(proto->sparse_tensor_type->elem_type, "element", &out->dtype, err));
        return read_shape(r, proto->sparse_tensor_type->shape, out, err);
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        return read_element(r, proto->sequence_type->elem_type, DQ_KIND_SEQUENCE, out, err);
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        return read_element(r, proto->optional_type->elem_type, DQ_KIND_OPTIONAL, out, err);
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        DQ_TRY(read_dtype(proto->map_type->key_type, "key", &out->dtype, err));
        return read_element(r, proto->map_type->value_type, DQ_KIND_MAP, out, err);
    default: /* No type, or an opaque one: nothing is declared. */
        return DQ_OK;
    }
}
