/* SPDX-License-Identifier: Apache-2.0 */
/* Converts AttributeProto to dq_attr. */
#include "parser/reader.h"

#include <inttypes.h>
#include <string.h>

/* The kinds whose fields are set, one bit each. */
static unsigned kinds_set(const Onnx__AttributeProto *a)
{
    const bool set[] = {
        [DQ_ATTR_FLOAT] = a->has_f,
        [DQ_ATTR_INT] = a->has_i,
        [DQ_ATTR_STRING] = a->has_s,
        [DQ_ATTR_TENSOR] = a->t != NULL,
        [DQ_ATTR_GRAPH] = a->g != NULL,
        [DQ_ATTR_FLOATS] = a->n_floats > 0,
        [DQ_ATTR_INTS] = a->n_ints > 0,
        [DQ_ATTR_STRINGS] = a->n_strings > 0,
        [DQ_ATTR_TENSORS] = a->n_tensors > 0,
        [DQ_ATTR_GRAPHS] = a->n_graphs > 0,
        [DQ_ATTR_SPARSE_TENSOR] = a->sparse_tensor != NULL,
        [DQ_ATTR_SPARSE_TENSORS] = a->n_sparse_tensors > 0,
        [DQ_ATTR_TYPE_PROTO] = a->tp != NULL,
        [DQ_ATTR_TYPE_PROTOS] = a->n_type_protos > 0,
    };
    unsigned mask = 0;
    for (unsigned i = 0; i < sizeof set / sizeof set[0]; i++)
        mask |= (unsigned)set[i] << i;
    return mask;
}

/* Gives the kind of the attribute. In models older than the field `type`, it is the kind of the field that is
 * set. */
static dq_status find_kind(const Onnx__AttributeProto *a, dq_attr_kind *out, dq_error *err)
{
    unsigned set = kinds_set(a);
    if (a->type < 0 || a->type > (int)DQ_ATTR_TYPE_PROTOS)
        return dq_fail(err, DQ_BAD_MODEL, "has type %d, which is not one of ONNX's (1 to %d)", (int)a->type,
                       DQ_ATTR_TYPE_PROTOS);
    if (set & (set - 1))
        return dq_fail(err, DQ_BAD_MODEL, "has values of several types, expected one");
    dq_attr_kind found = set ? (dq_attr_kind)__builtin_ctz(set) : DQ_ATTR_UNDEFINED;
    dq_attr_kind said = (dq_attr_kind)a->type;
    if (said != DQ_ATTR_UNDEFINED && found != DQ_ATTR_UNDEFINED && said != found)
        return dq_fail(err, DQ_BAD_MODEL, "has the type %s and a value of type %s", dq_attr_kind_name(said),
                       dq_attr_kind_name(found));
    *out = said != DQ_ATTR_UNDEFINED ? said : found;
    if (*out == DQ_ATTR_UNDEFINED)
        return dq_fail(err, DQ_BAD_MODEL, "has neither a type nor a value");
    bool message = *out == DQ_ATTR_TENSOR || *out == DQ_ATTR_GRAPH || *out == DQ_ATTR_SPARSE_TENSOR ||
                   *out == DQ_ATTR_TYPE_PROTO;
    if (message && !set)
        return dq_fail(err, DQ_BAD_MODEL, "has no value, expected one of type %s", dq_attr_kind_name(*out));
    return DQ_OK;
}

static dq_status no_memory(dq_error *err, size_t count)
{
    return dq_no_memory(err, count, "an attribute");
}

/* Copies a list of numbers to the arena. An empty one is not NULL. */
static const void *copy_list(dq_reader *r, const void *list, size_t count, size_t size)
{
    void *copy = dq_arena_array(&r->ir->arena, count, size);
    if (copy && count)
        memcpy(copy, list, count * size);
    return copy;
}

static dq_status read_string(dq_reader *r, const ProtobufCBinaryData *bytes, dq_string *out, dq_error *err)
{
    out->bytes = dq_arena_string(&r->ir->arena, (const char *)bytes->data, bytes->len);
    out->length = bytes->len;
    return out->bytes ? DQ_OK : no_memory(err, bytes->len);
}

static dq_status read_one_graph(dq_reader *r, const dq_scope *scope, dq_graph *outer,
                                const Onnx__GraphProto *proto, dq_graph **out, dq_error *err)
{
    const char *name = dq_proto_text(r, proto->name);
    if (!name)
        return no_memory(err, 1);
    DQ_TRY(dq_graph_create(r->ir, name, outer, out, err));
    return dq_proto_graph(r, scope, proto, *out, err);
}

static dq_status read_strings(dq_reader *r, const Onnx__AttributeProto *a, dq_attr *out, dq_error *err)
{
    dq_string *list = DQ_NEW_ARRAY(&r->ir->arena, a->n_strings, dq_string);
    if (!list)
        return no_memory(err, a->n_strings);
    for (size_t i = 0; i < a->n_strings; i++)
        DQ_TRY(read_string(r, &a->strings[i], &list[i], err));
    out->u.strings = list;
    out->count = a->n_strings;
    return DQ_OK;
}

static dq_status read_tensors(dq_reader *r, const Onnx__AttributeProto *a, dq_attr *out, dq_error *err)
{
    size_t count = a->n_tensors + a->n_sparse_tensors; /* One of them is 0. */
    const dq_tensor **list = DQ_NEW_ARRAY(&r->ir->arena, count, const dq_tensor *);
    if (!list)
        return no_memory(err, count);
    for (size_t i = 0; i < count; i++)
        DQ_TRY(a->n_tensors ? dq_proto_tensor(r, a->tensors[i], &list[i], err)
                            : dq_proto_sparse(r, a->sparse_tensors[i], &list[i], err));
    out->u.tensors = list;
    out->count = count;
    return DQ_OK;
}

static dq_status read_graphs(dq_reader *r, const dq_scope *scope, dq_graph *g, const Onnx__AttributeProto *a,
                             dq_attr *out, dq_error *err)
{
    dq_graph **list = DQ_NEW_ARRAY(&r->ir->arena, a->n_graphs, dq_graph *);
    if (!list)
        return no_memory(err, a->n_graphs);
    for (size_t i = 0; i < a->n_graphs; i++)
        DQ_TRY(read_one_graph(r, scope, g, a->graphs[i], &list[i], err));
    out->u.graphs = list;
    out->count = a->n_graphs;
    return DQ_OK;
}

static dq_status read_types(dq_reader *r, const Onnx__AttributeProto *a, dq_attr *out, dq_error *err)
{
    bool one = out->kind == DQ_ATTR_TYPE_PROTO;
    size_t count = one ? 1 : a->n_type_protos;
    dq_type *types = DQ_NEW_ARRAY(&r->ir->arena, count, dq_type);
    const dq_type **list = DQ_NEW_ARRAY(&r->ir->arena, count, const dq_type *);
    if (!types || !list)
        return no_memory(err, count);
    for (size_t i = 0; i < count; i++) {
        DQ_TRY(dq_proto_type(r, one ? a->tp : a->type_protos[i], &types[i], err));
        list[i] = &types[i];
    }
    if (one) {
        out->u.type = types;
        return DQ_OK;
    }
    out->u.types = list;
    out->count = count;
    return DQ_OK;
}

static dq_status read_numbers(dq_reader *r, const Onnx__AttributeProto *a, dq_attr *out, dq_error *err)
{
    bool ints = out->kind == DQ_ATTR_INTS;
    out->count = ints ? a->n_ints : a->n_floats;
    if (ints)
        out->u.ints = copy_list(r, a->ints, a->n_ints, sizeof *a->ints);
    else
        out->u.floats = copy_list(r, a->floats, a->n_floats, sizeof *a->floats);
    return (ints ? (const void *)out->u.ints : (const void *)out->u.floats) ? DQ_OK
                                                                            : no_memory(err, out->count);
}

static dq_status read_value(dq_reader *r, const dq_scope *scope, dq_graph *g, const Onnx__AttributeProto *a,
                            dq_attr *out, dq_error *err)
{
    switch (out->kind) {
    case DQ_ATTR_FLOAT:
        out->u.f = a->f;
        return DQ_OK;
    case DQ_ATTR_INT:
        out->u.i = a->i;
        return DQ_OK;
    case DQ_ATTR_STRING:
        return read_string(r, &a->s, &out->u.s, err);
    case DQ_ATTR_TENSOR:
        return dq_proto_tensor(r, a->t, &out->u.tensor, err);
    case DQ_ATTR_GRAPH:
        return read_one_graph(r, scope, g, a->g, &out->u.graph, err);
    case DQ_ATTR_FLOATS:
    case DQ_ATTR_INTS:
        return read_numbers(r, a, out, err);
    case DQ_ATTR_STRINGS:
        return read_strings(r, a, out, err);
    case DQ_ATTR_SPARSE_TENSOR:
        out->kind = DQ_ATTR_TENSOR;
        return dq_proto_sparse(r, a->sparse_tensor, &out->u.tensor, err);
    case DQ_ATTR_TENSORS:
    case DQ_ATTR_SPARSE_TENSORS:
        out->kind = DQ_ATTR_TENSORS;
        return read_tensors(r, a, out, err);
    case DQ_ATTR_GRAPHS:
        return read_graphs(r, scope, g, a, out, err);
    default:
        return read_types(r, a, out, err);
    }
}

dq_status dq_proto_attribute(dq_reader *r, const dq_scope *scope, dq_graph *g,
                             const Onnx__AttributeProto *proto, dq_attr *out, dq_error *err)
{
    out->name = dq_proto_text(r, proto->name);
    if (!out->name)
        return no_memory(err, 1);
    if (!*dq_pb_text(proto->ref_attr_name)) {
        DQ_TRY(find_kind(proto, &out->kind, err));
        return read_value(r, scope, g, proto, out, err);
    }
    if (!scope->in_function)
        return dq_fail(err, DQ_BAD_MODEL, "refers to attribute '%s' of a function, and stands in none",
                       proto->ref_attr_name);
    if (kinds_set(proto))
        return dq_fail(err, DQ_BAD_MODEL, "has a value and refers to attribute '%s' too",
                       proto->ref_attr_name);
    if (proto->type < 0 || proto->type > (int)DQ_ATTR_TYPE_PROTOS)
        return dq_fail(err, DQ_BAD_MODEL, "has type %d, which is not one of ONNX's (1 to %d)",
                       (int)proto->type, DQ_ATTR_TYPE_PROTOS);
    out->kind = (dq_attr_kind)proto->type;
    if (out->kind == DQ_ATTR_SPARSE_TENSOR || out->kind == DQ_ATTR_SPARSE_TENSORS)
        out->kind = out->kind == DQ_ATTR_SPARSE_TENSOR ? DQ_ATTR_TENSOR : DQ_ATTR_TENSORS;
    out->ref = dq_proto_text(r, proto->ref_attr_name);
    return out->ref ? DQ_OK : no_memory(err, 1);
}
