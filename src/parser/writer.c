/* SPDX-License-Identifier: Apache-2.0 */
#include "parser/writer.h"

#include "base/file.h"
#include "parser/pb.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Messages point into the graph. Only data with another form in messages is copied, to `arena`. */
typedef struct writer {
    dq_arena arena;
    dq_error *err;
} writer;

static dq_status no_memory(writer *w)
{
    return dq_no_memory(w->err, 64, "the messages of a model file");
}

/* protobuf-c's messages have non-const strings, but only read them. */
static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

/* ---- Types -------------------------------------------------------------------------------------------- */

static dq_status write_shape(writer *w, const dq_type *type, Onnx__TensorShapeProto **out)
{
    Onnx__TensorShapeProto *shape = DQ_NEW(&w->arena, Onnx__TensorShapeProto);
    Onnx__TensorShapeProto__Dimension *dims =
        DQ_NEW_ARRAY(&w->arena, type->rank, Onnx__TensorShapeProto__Dimension);
    if (!shape || !dims)
        return no_memory(w);
    onnx__tensor_shape_proto__init(shape);
    shape->n_dim = type->rank;
    shape->dim = DQ_NEW_ARRAY(&w->arena, type->rank, Onnx__TensorShapeProto__Dimension *);
    if (!shape->dim)
        return no_memory(w);
    for (uint32_t i = 0; i < type->rank; i++) {
        onnx__tensor_shape_proto__dimension__init(&dims[i]);
        shape->dim[i] = &dims[i];
        const char *name = type->dim_names ? type->dim_names[i] : NULL;
        if (type->dims[i] >= 0) {
            dims[i].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            dims[i].dim_value = type->dims[i];
        } else if (name) {
            dims[i].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            dims[i].dim_param = text(name);
        }
    }
    *out = shape;
    return DQ_OK;
}

static dq_status write_type(writer *w, const dq_type *type, Onnx__TypeProto **out)
{
    Onnx__TypeProto *proto = DQ_NEW(&w->arena, Onnx__TypeProto);
    if (!proto)
        return no_memory(w);
    onnx__type_proto__init(proto);
    *out = proto;
    if (type->kind == DQ_KIND_SEQUENCE) {
        proto->value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
        proto->sequence_type = DQ_NEW(&w->arena, Onnx__TypeProto__Sequence);
        if (!proto->sequence_type)
            return no_memory(w);
        onnx__type_proto__sequence__init(proto->sequence_type);
        return write_type(w, type->element, &proto->sequence_type->elem_type);
    }
    if (type->kind == DQ_KIND_OPTIONAL) {
        proto->value_case = ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE;
        proto->optional_type = DQ_NEW(&w->arena, Onnx__TypeProto__Optional);
        if (!proto->optional_type)
            return no_memory(w);
        onnx__type_proto__optional__init(proto->optional_type);
        return write_type(w, type->element, &proto->optional_type->elem_type);
    }
    if (type->kind != DQ_KIND_TENSOR) {
        char name[DQ_TYPE_TEXT];
        return dq_fail(w->err, DQ_UNSUPPORTED, "a value of type %s cannot be written",
                       dq_type_text(type, name));
    }
    proto->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    proto->tensor_type = DQ_NEW(&w->arena, Onnx__TypeProto__Tensor);
    if (!proto->tensor_type)
        return no_memory(w);
    onnx__type_proto__tensor__init(proto->tensor_type);
    proto->tensor_type->has_elem_type = true;
    proto->tensor_type->elem_type = (int32_t)type->dtype;
    return type->has_shape ? write_shape(w, type, &proto->tensor_type->shape) : DQ_OK;
}

static dq_status write_value(writer *w, const char *name, const dq_type *type, Onnx__ValueInfoProto **out)
{
    Onnx__ValueInfoProto *info = DQ_NEW(&w->arena, Onnx__ValueInfoProto);
    if (!info)
        return no_memory(w);
    onnx__value_info_proto__init(info);
    info->name = text(name);
    *out = info;
    bool declared = type->kind != DQ_KIND_TENSOR || type->dtype != DQ_UNDEFINED;
    return declared ? write_type(w, type, &info->type) : DQ_OK;
}

/* ---- Tensors ------------------------------------------------------------------------------------------ */

static ProtobufCBinaryData bytes_of(const void *data, size_t size)
{
    return (ProtobufCBinaryData){.len = size, .data = (uint8_t *)(uintptr_t)data};
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
/* The data of a tensor as raw_data, which is little-endian. */
static const void *little_endian(writer *w, const dq_tensor *t)
{
    size_t width = dq_dtype_get(t->dtype)->align; /* Of a number: complex types are pairs. */
    const uint8_t *from = t->data;
    uint8_t *to = dq_arena_alloc(&w->arena, t->size, 1);
    for (size_t i = 0; to && i < t->size; i++)
        to[i] = from[i / width * width + width - 1 - i % width];
    return to;
}
#else
static const void *little_endian(writer *w, const dq_tensor *t)
{
    (void)w;
    return t->data;
}
#endif

static dq_status write_strings(writer *w, const dq_string *strings, size_t count, ProtobufCBinaryData **out)
{
    *out = DQ_NEW_ARRAY(&w->arena, count, ProtobufCBinaryData);
    if (!*out)
        return no_memory(w);
    for (size_t i = 0; i < count; i++)
        (*out)[i] = bytes_of(strings[i].bytes, strings[i].length);
    return DQ_OK;
}

static dq_status write_tensor(writer *w, const char *name, const dq_tensor *t, Onnx__TensorProto **out)
{
    Onnx__TensorProto *proto = DQ_NEW(&w->arena, Onnx__TensorProto);
    if (!proto)
        return no_memory(w);
    onnx__tensor_proto__init(proto);
    *out = proto;
    proto->name = text(name);
    proto->has_data_type = true;
    proto->data_type = (int32_t)t->dtype;
    proto->n_dims = t->rank;
    proto->dims = (int64_t *)(uintptr_t)t->dims;
    if (t->dtype == DQ_STRING) {
        proto->n_string_data = t->count;
        return write_strings(w, t->data, t->count, &proto->string_data);
    }
    const void *raw = little_endian(w, t);
    if (!raw)
        return no_memory(w);
    proto->has_raw_data = true;
    proto->raw_data = bytes_of(raw, t->size);
    return DQ_OK;
}

/* ---- Attributes, nodes, graphs ------------------------------------------------------------------------ */

static dq_status write_graph(writer *w, const dq_graph *g, Onnx__GraphProto **out);

static dq_status write_attribute(writer *w, const dq_attr *attr, Onnx__AttributeProto **out)
{
    Onnx__AttributeProto *proto = DQ_NEW(&w->arena, Onnx__AttributeProto);
    if (!proto)
        return no_memory(w);
    onnx__attribute_proto__init(proto);
    *out = proto;
    proto->name = text(attr->name);
    proto->has_type = true;
    proto->type = (Onnx__AttributeProto__AttributeType)attr->kind;
    switch (attr->kind) {
    case DQ_ATTR_FLOAT:
        proto->has_f = true;
        proto->f = attr->u.f;
        return DQ_OK;
    case DQ_ATTR_INT:
        proto->has_i = true;
        proto->i = attr->u.i;
        return DQ_OK;
    case DQ_ATTR_STRING:
        proto->has_s = true;
        proto->s = bytes_of(attr->u.s.bytes, attr->u.s.length);
        return DQ_OK;
    case DQ_ATTR_TENSOR:
        return write_tensor(w, "", attr->u.tensor, &proto->t);
    case DQ_ATTR_GRAPH:
        return write_graph(w, attr->u.graph, &proto->g);
    case DQ_ATTR_FLOATS:
        proto->n_floats = attr->count;
        proto->floats = (float *)(uintptr_t)attr->u.floats;
        return DQ_OK;
    case DQ_ATTR_INTS:
        proto->n_ints = attr->count;
        proto->ints = (int64_t *)(uintptr_t)attr->u.ints;
        return DQ_OK;
    case DQ_ATTR_STRINGS:
        proto->n_strings = attr->count;
        return write_strings(w, attr->u.strings, attr->count, &proto->strings);
    case DQ_ATTR_TYPE_PROTO:
        return write_type(w, attr->u.type, &proto->tp);
    default:
        return dq_fail(w->err, DQ_UNSUPPORTED, "attribute '%s' of kind %s cannot be written", attr->name,
                       dq_attr_kind_name(attr->kind));
    }
}

static dq_status write_node(writer *w, const dq_node *node, Onnx__NodeProto **out)
{
    Onnx__NodeProto *proto = DQ_NEW(&w->arena, Onnx__NodeProto);
    if (!proto)
        return no_memory(w);
    onnx__node_proto__init(proto);
    *out = proto;
    proto->name = text(node->name);
    proto->domain = text(node->domain);
    proto->op_type = text(node->op_type);
    proto->n_input = node->in_count;
    proto->n_output = node->out_count;
    proto->input = (char **)(uintptr_t)node->in_names;
    proto->output = (char **)(uintptr_t)node->out_names;
    proto->n_attribute = node->attr_count;
    proto->attribute = DQ_NEW_ARRAY(&w->arena, node->attr_count, Onnx__AttributeProto *);
    if (!proto->attribute)
        return no_memory(w);
    for (uint32_t i = 0; i < node->attr_count; i++)
        DQ_TRY(write_attribute(w, &node->attrs[i], &proto->attribute[i]));
    return DQ_OK;
}

static dq_status write_values(writer *w, const dq_graph *g, Onnx__GraphProto *proto)
{
    proto->input = DQ_NEW_ARRAY(&w->arena, g->input_count, Onnx__ValueInfoProto *);
    proto->output = DQ_NEW_ARRAY(&w->arena, g->output_count, Onnx__ValueInfoProto *);
    proto->value_info = DQ_NEW_ARRAY(&w->arena, g->value_count, Onnx__ValueInfoProto *);
    proto->initializer = DQ_NEW_ARRAY(&w->arena, g->value_count, Onnx__TensorProto *);
    if (!proto->input || !proto->output || !proto->value_info || !proto->initializer)
        return no_memory(w);
    for (uint32_t i = 0; i < g->input_count; i++)
        DQ_TRY(write_value(w, g->inputs[i]->name, &g->inputs[i]->type, &proto->input[proto->n_input++]));
    for (uint32_t i = 0; i < g->output_count; i++)
        DQ_TRY(write_value(w, g->output_names[i], &g->output_types[i], &proto->output[proto->n_output++]));
    for (uint32_t i = 0; i < g->value_count; i++) {
        const dq_value *v = g->all[i];
        bool declared = v->type.kind != DQ_KIND_TENSOR || v->type.dtype != DQ_UNDEFINED;
        if (v->constant)
            DQ_TRY(write_tensor(w, v->name, v->constant, &proto->initializer[proto->n_initializer++]));
        else if (declared && !v->is_input && !v->is_output)
            DQ_TRY(write_value(w, v->name, &v->type, &proto->value_info[proto->n_value_info++]));
    }
    return DQ_OK;
}

static dq_status write_graph(writer *w, const dq_graph *g, Onnx__GraphProto **out)
{
    Onnx__GraphProto *proto = DQ_NEW(&w->arena, Onnx__GraphProto);
    if (!proto)
        return no_memory(w);
    onnx__graph_proto__init(proto);
    *out = proto;
    proto->name = text(*g->name ? g->name : "graph"); /* ONNX requires a name. */
    proto->n_node = g->node_count;
    proto->node = DQ_NEW_ARRAY(&w->arena, g->node_count, Onnx__NodeProto *);
    if (!proto->node)
        return no_memory(w);
    for (uint32_t i = 0; i < g->node_count; i++)
        DQ_TRY(write_node(w, g->nodes[i], &proto->node[i]));
    return write_values(w, g, proto);
}

/* ---- The model ---------------------------------------------------------------------------------------- */

static dq_status write_opsets(writer *w, const dq_ir *ir, Onnx__ModelProto *model)
{
    Onnx__OperatorSetIdProto *ids = DQ_NEW_ARRAY(&w->arena, ir->opset_count, Onnx__OperatorSetIdProto);
    model->opset_import = DQ_NEW_ARRAY(&w->arena, ir->opset_count, Onnx__OperatorSetIdProto *);
    if (!ids || !model->opset_import)
        return no_memory(w);
    for (uint32_t i = 0; i < ir->opset_count; i++) {
        onnx__operator_set_id_proto__init(&ids[i]);
        ids[i].domain = text(ir->opsets[i].domain);
        ids[i].has_version = true;
        ids[i].version = ir->opsets[i].version;
        model->opset_import[model->n_opset_import++] = &ids[i];
    }
    return DQ_OK;
}

static dq_status write_metadata(writer *w, const dq_ir *ir, Onnx__ModelProto *model)
{
    const uint32_t count = ir->metadata_count;
    Onnx__StringStringEntryProto *entries = DQ_NEW_ARRAY(&w->arena, count, Onnx__StringStringEntryProto);
    model->metadata_props = DQ_NEW_ARRAY(&w->arena, count, Onnx__StringStringEntryProto *);
    if (!entries || !model->metadata_props)
        return no_memory(w);
    for (uint32_t i = 0; i < count; i++) {
        onnx__string_string_entry_proto__init(&entries[i]);
        entries[i].key = text(ir->metadata[i].key);
        entries[i].value = text(ir->metadata[i].value);
        model->metadata_props[model->n_metadata_props++] = &entries[i];
    }
    return DQ_OK;
}

/* The destination of a model: receives its size, then all bytes, then reports the result. */
typedef struct target {
    dq_status (*begin)(struct target *target, size_t size, dq_error *err);
    void (*append)(struct target *target, const void *bytes, size_t size); /* Errors are reported by `end`. */
    dq_status (*end)(struct target *target, dq_error *err);
} target;

typedef struct sink {
    ProtobufCBuffer base;
    target *target;
} sink;

static void append(ProtobufCBuffer *buffer, size_t length, const uint8_t *data)
{
    target *t = ((sink *)buffer)->target;
    t->append(t, data, length);
}

static dq_status write_model(writer *w, const dq_ir *ir, target *t)
{
    Onnx__ModelProto model;
    onnx__model_proto__init(&model);
    model.has_ir_version = true;
    model.ir_version = ir->ir_version;
    model.producer_name = text(*ir->producer ? ir->producer : "dqrun");
    model.producer_version = text(ir->producer_version);
    model.domain = text(ir->domain);
    model.doc_string = text(ir->doc);
    model.has_model_version = ir->model_version != 0;
    model.model_version = ir->model_version;
    DQ_TRY(write_metadata(w, ir, &model));
    DQ_TRY(write_opsets(w, ir, &model));
    DQ_TRY(write_graph(w, ir->graph, &model.graph));
    const size_t size = onnx__model_proto__get_packed_size(&model);
    if (size > INT_MAX)
        return dq_fail(w->err, DQ_UNSUPPORTED, "has %zu bytes, over protobuf's limit of %d", size, INT_MAX);
    DQ_TRY(t->begin(t, size, w->err));
    sink out = {.base = {.append = append}, .target = t};
    onnx__model_proto__pack_to_buffer(&model, &out.base);
    return t->end(t, w->err);
}

/* Writes the model. Prefixes messages with `name`, except those of DQ_IO, which have it. */
static dq_status write_to(const dq_ir *ir, target *t, const char *name, dq_error *err)
{
    writer w = {.err = err};
    dq_status status = write_model(&w, ir, t);
    dq_arena_free(&w.arena);
    if (status != DQ_OK && status != DQ_IO)
        dq_error_prefix(err, "%s: ", name);
    return status;
}

/* ---- To a file ---------------------------------------------------------------------------------------- */

typedef struct file_target {
    target base;
    const char *path;
    dq_file_out file;
} file_target;

static dq_status begin_file(target *t, size_t size, dq_error *err)
{
    file_target *f = (file_target *)t;
    (void)size;
    return dq_file_create(f->path, &f->file, err);
}

static void append_file(target *t, const void *bytes, size_t size)
{
    dq_file_write(&((file_target *)t)->file, bytes, size);
}

static dq_status end_file(target *t, dq_error *err)
{
    return dq_file_commit(&((file_target *)t)->file, err);
}

dq_status dq_write_file(const dq_ir *ir, const char *path, dq_error *err)
{
    file_target f = {.base = {begin_file, append_file, end_file}, .path = path};
    return write_to(ir, &f.base, path, err);
}

/* ---- To memory ---------------------------------------------------------------------------------------- */

typedef struct memory_target {
    target base;
    uint8_t *bytes;
    size_t size, used;
} memory_target;

static dq_status begin_memory(target *t, size_t size, dq_error *err)
{
    memory_target *m = (memory_target *)t;
    m->bytes = malloc(size ? size : 1);
    m->size = size;
    return m->bytes ? DQ_OK : dq_no_memory(err, size, "a model file in memory");
}

static void append_memory(target *t, const void *bytes, size_t size)
{
    memory_target *m = (memory_target *)t;
    assert(size <= m->size - m->used); /* As protobuf-c has counted. */
    if (size)
        memcpy(m->bytes + m->used, bytes, size);
    m->used += size;
}

static dq_status end_memory(target *t, dq_error *err)
{
    (void)t;
    (void)err;
    return DQ_OK;
}

dq_status dq_write_memory(const dq_ir *ir, void **bytes, size_t *size, dq_error *err)
{
    memory_target m = {.base = {begin_memory, append_memory, end_memory}};
    DQ_TRY(write_to(ir, &m.base, ir->path, err));
    *bytes = m.bytes;
    *size = m.used;
    return DQ_OK;
}

/* ---- To a function ------------------------------------------------------------------------------------ */

/* Collects the small pieces of a few bytes that protobuf-c writes. */
typedef struct piece_target {
    target base;
    const char *name;
    dq_write_fn write;
    void *arg;
    int fault; /* The first non-zero result of `write`, which is then not called again. */
    size_t sent, used;
    uint8_t collected[1 << 14];
} piece_target;

static dq_status begin_pieces(target *t, size_t size, dq_error *err)
{
    (void)t;
    (void)size;
    (void)err;
    return DQ_OK;
}

static void send(piece_target *p, const void *bytes, size_t size)
{
    if (size && !p->fault && !(p->fault = p->write(p->arg, bytes, size)))
        p->sent += size;
}

static void append_pieces(target *t, const void *bytes, size_t size)
{
    piece_target *p = (piece_target *)t;
    if (size > sizeof p->collected - p->used) {
        send(p, p->collected, p->used);
        p->used = 0;
    }
    if (size > sizeof p->collected) {
        send(p, bytes, size);
    } else if (size) {
        memcpy(p->collected + p->used, bytes, size);
        p->used += size;
    }
}

static dq_status end_pieces(target *t, dq_error *err)
{
    piece_target *p = (piece_target *)t;
    send(p, p->collected, p->used);
    return p->fault ? dq_fail(err, DQ_IO, "%s: cannot be written: the write function returned %d at byte %zu",
                              p->name, p->fault, p->sent)
                    : DQ_OK;
}

dq_status dq_write_pieces(const dq_ir *ir, dq_write_fn write, void *arg, dq_error *err)
{
    piece_target p = {
        .base = {begin_pieces, append_pieces, end_pieces}, .name = ir->path, .write = write, .arg = arg};
    return write_to(ir, &p.base, ir->path, err);
}
