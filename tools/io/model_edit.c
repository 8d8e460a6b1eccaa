/* SPDX-License-Identifier: Apache-2.0 */
#include "io/model_proto.h"

#include <stdlib.h>
#include <string.h>

dq_status model_edit_open(const void *bytes, size_t size, model_edit **out, dq_error *err)
{
    model_edit *edit = calloc(1, sizeof *edit);
    if (!edit)
        return io_no_memory(err);
    edit->model = onnx__model_proto__unpack(NULL, size, bytes);
    if (!edit->model || !edit->model->graph) {
        model_edit_close(edit);
        return io_fail(err, DQ_BAD_MODEL, "is no ONNX model or is damaged");
    }
    edit->node_count = edit->model->graph->n_node;
    *out = edit;
    return DQ_OK;
}

void model_edit_close(model_edit *edit)
{
    if (edit && edit->model)
        onnx__model_proto__free_unpacked(edit->model, NULL);
    free(edit);
}

/* One more element of a list of pointers; NULL: memory ran out. */
static void **grow(void *list, size_t count)
{
    void *grown = realloc(*(void **)list, (count + 1) * sizeof(void *));
    if (grown)
        *(void **)list = grown;
    return grown ? (void **)grown + count : NULL;
}

/* ---- Readers ------------------------------------------------------------------------------------------- */

/* Calls `visit` for each name that a node reads. */
typedef dq_status (*visit_fn)(void *arg, char **name);

static dq_status each_read(Onnx__GraphProto *graph, size_t node_count, visit_fn visit, void *arg)
{
    dq_status status = DQ_OK;
    for (size_t i = 0; i < node_count && status == DQ_OK; i++) {
        Onnx__NodeProto *node = graph->node[i];
        for (size_t k = 0; k < node->n_input && status == DQ_OK; k++)
            status = visit(arg, &node->input[k]);
        for (size_t k = 0; k < node->n_attribute && status == DQ_OK; k++) {
            Onnx__AttributeProto *a = node->attribute[k];
            if (a->g)
                status = each_read(a->g, a->g->n_node, visit, arg);
            for (size_t g = 0; g < a->n_graphs && status == DQ_OK; g++)
                status = each_read(a->graphs[g], a->graphs[g]->n_node, visit, arg);
        }
    }
    return status;
}

typedef struct renaming {
    const char *from, *to;
    size_t count;
    dq_error *err;
} renaming;

static dq_status rename_one(void *arg, char **name)
{
    renaming *r = arg;
    if (strcmp(*name, r->from) != 0)
        return DQ_OK;
    r->count++;
    if (!r->to)
        return DQ_OK;
    char *copy = strdup(r->to);
    if (!copy)
        return io_no_memory(r->err);
    free(*name);
    *name = copy;
    return DQ_OK;
}

dq_status model_edit_redirect(model_edit *edit, const char *from, const char *to, dq_error *err)
{
    renaming r = {.from = from, .to = to, .err = err};
    return each_read(edit->model->graph, edit->node_count, rename_one, &r);
}

size_t model_edit_count_readers(const model_edit *edit, const char *name)
{
    renaming r = {.from = name};
    each_read(edit->model->graph, edit->model->graph->n_node, rename_one, &r);
    return r.count;
}

/* ---- Additions ----------------------------------------------------------------------------------------- */

dq_status model_edit_add_input(model_edit *edit, const char *name, dq_dtype dtype, dq_error *err)
{
    Onnx__GraphProto *graph = edit->model->graph;
    Onnx__ValueInfoProto *info = malloc(sizeof *info);
    Onnx__TypeProto *type = malloc(sizeof *type);
    Onnx__TypeProto__Tensor *tensor = malloc(sizeof *tensor);
    char *copy = strdup(name);
    void **slot = info && type && tensor && copy ? grow(&graph->input, graph->n_input) : NULL;
    if (!slot) {
        free(info);
        free(type);
        free(tensor);
        free(copy);
        return io_no_memory(err);
    }
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    tensor->has_elem_type = 1;
    tensor->elem_type = (int32_t)dtype;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    info->name = copy;
    info->type = type;
    *slot = info;
    graph->n_input++;
    return DQ_OK;
}

static void clear_data(Onnx__TensorProto *t)
{
    free(t->float_data);
    free(t->int32_data);
    free(t->int64_data);
    free(t->double_data);
    free(t->uint64_data);
    if (t->has_raw_data)
        free(t->raw_data.data);
    t->float_data = NULL;
    t->int32_data = NULL;
    t->int64_data = NULL;
    t->double_data = NULL;
    t->uint64_data = NULL;
    t->n_float_data = t->n_int32_data = t->n_int64_data = t->n_double_data = t->n_uint64_data = 0;
    t->has_raw_data = 0;
    t->has_data_location = 0;
    for (size_t i = 0; i < t->n_external_data; i++)
        onnx__string_string_entry_proto__free_unpacked(t->external_data[i], NULL);
    free(t->external_data);
    t->external_data = NULL;
    t->n_external_data = 0;
}

/* raw_data is little endian. */
static dq_status set_data(Onnx__TensorProto *t, const dq_tensor *tensor, dq_error *err)
{
    const size_t size = dq_tensor_size(tensor), bytes = dq_dtype_bits(dq_tensor_dtype(tensor)) / 8;
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        return io_no_memory(err);
    if (size)
        memcpy(copy, dq_tensor_data(tensor), size);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (size_t i = 0; bytes > 1 && i < size; i += bytes)
        for (size_t k = 0; k < bytes; k++)
            copy[i + k] = ((const uint8_t *)dq_tensor_data(tensor))[i + bytes - 1 - k];
#else
    (void)bytes;
#endif
    clear_data(t);
    t->has_raw_data = 1;
    t->raw_data.data = copy;
    t->raw_data.len = size;
    return DQ_OK;
}

Onnx__TensorProto *model_proto_tensor(const char *name, const dq_tensor *tensor)
{
    Onnx__TensorProto *t = malloc(sizeof *t);
    if (!t)
        return NULL;
    onnx__tensor_proto__init(t);
    t->name = strdup(name);
    t->n_dims = dq_tensor_rank(tensor);
    t->dims = malloc((t->n_dims + 1) * sizeof *t->dims);
    t->has_data_type = 1;
    t->data_type = (int32_t)dq_tensor_dtype(tensor);
    if (t->dims && t->n_dims)
        memcpy(t->dims, dq_tensor_dims(tensor), t->n_dims * sizeof *t->dims);
    if (!t->name || !t->dims || set_data(t, tensor, NULL) != DQ_OK) {
        onnx__tensor_proto__free_unpacked(t, NULL);
        return NULL;
    }
    return t;
}

dq_status model_edit_add_initializer(model_edit *edit, const char *name, const dq_tensor *tensor,
                                     dq_error *err)
{
    Onnx__GraphProto *graph = edit->model->graph;
    Onnx__TensorProto *t = model_proto_tensor(name, tensor);
    void **slot = t ? grow(&graph->initializer, graph->n_initializer) : NULL;
    if (!slot) {
        if (t)
            onnx__tensor_proto__free_unpacked(t, NULL);
        return io_no_memory(err);
    }
    *slot = t;
    graph->n_initializer++;
    return DQ_OK;
}

static Onnx__NodeProto *producer_of(const Onnx__GraphProto *graph, const char *value)
{
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_output; k++)
            if (!strcmp(graph->node[i]->output[k], value))
                return graph->node[i];
    return NULL;
}

/* A copy by packing and unpacking: no field is forgotten. */
static dq_status copy_attributes(Onnx__NodeProto *to, const Onnx__NodeProto *from, dq_error *err)
{
    for (size_t i = 0; i < from->n_attribute; i++) {
        const size_t size = onnx__attribute_proto__get_packed_size(from->attribute[i]);
        uint8_t *bytes = malloc(size + 1);
        void **slot = bytes ? grow(&to->attribute, to->n_attribute) : NULL;
        if (slot) {
            onnx__attribute_proto__pack(from->attribute[i], bytes);
            *slot = onnx__attribute_proto__unpack(NULL, size, bytes);
        }
        free(bytes);
        if (!slot || !*slot)
            return io_no_memory(err);
        to->n_attribute++;
    }
    return DQ_OK;
}

static dq_status add_name(char ***list, size_t *count, const char *name, dq_error *err)
{
    void **slot = grow(list, *count);
    if (slot)
        *slot = strdup(name);
    if (!slot || !*slot)
        return io_no_memory(err);
    ++*count;
    return DQ_OK;
}

/* The operator itself, or its QLinear form, which has the same attributes. */
static bool is_form_of(const char *op_type, const char *of)
{
    return op_type && (!strcmp(op_type, of) || (!strncmp(op_type, "QLinear", 7) && !strcmp(op_type + 7, of)));
}

dq_status model_edit_add_node(model_edit *edit, const char *op_type, const char *const inputs[4],
                              const char *output, const char *like, dq_error *err)
{
    Onnx__GraphProto *graph = edit->model->graph;
    Onnx__NodeProto *node = malloc(sizeof *node);
    if (!node)
        return io_no_memory(err);
    onnx__node_proto__init(node);
    node->op_type = strdup(op_type);
    node->name = strdup(output);
    dq_status status = node->op_type && node->name ? DQ_OK : io_no_memory(err);
    for (size_t i = 0; i < 4 && inputs[i] && status == DQ_OK; i++)
        status = add_name(&node->input, &node->n_input, inputs[i], err);
    if (status == DQ_OK)
        status = add_name(&node->output, &node->n_output, output, err);
    const Onnx__NodeProto *model = like ? producer_of(graph, like) : NULL;
    if (status == DQ_OK && model && is_form_of(model->op_type, op_type))
        status = copy_attributes(node, model, err);
    void **slot = status == DQ_OK ? grow(&graph->node, graph->n_node) : NULL;
    if (!slot) {
        onnx__node_proto__free_unpacked(node, NULL);
        return io_no_memory(err);
    }
    *slot = node;
    graph->n_node++;
    return DQ_OK;
}

/* ---- Constants ----------------------------------------------------------------------------------------- */

static Onnx__TensorProto *constant_of(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (graph->initializer[i]->name && !strcmp(graph->initializer[i]->name, name))
            return graph->initializer[i];
    const Onnx__NodeProto *node = producer_of(graph, name);
    for (size_t k = 0; node && node->op_type && !strcmp(node->op_type, "Constant") && k < node->n_attribute;
         k++)
        if (node->attribute[k]->t)
            return node->attribute[k]->t;
    return NULL;
}

dq_status model_edit_set_constant(model_edit *edit, const char *name, const dq_tensor *tensor, dq_error *err)
{
    Onnx__TensorProto *t = constant_of(edit->model->graph, name);
    if (!t)
        return io_fail(err, DQ_BAD_MODEL, "'%s' is not a constant of the graph, expected an initializer",
                       name);
    if (t->data_type != (int32_t)dq_tensor_dtype(tensor))
        return io_fail(err, DQ_BAD_MODEL, "initializer '%s' is of type %s, expected %s", name,
                       dq_dtype_name((dq_dtype)t->data_type), dq_dtype_name(dq_tensor_dtype(tensor)));
    return set_data(t, tensor, err);
}

dq_status model_edit_pack(const model_edit *edit, void **bytes, size_t *size, dq_error *err)
{
    *size = onnx__model_proto__get_packed_size(edit->model);
    *bytes = malloc(*size + 1);
    if (!*bytes)
        return io_no_memory(err);
    onnx__model_proto__pack(edit->model, *bytes);
    return DQ_OK;
}
