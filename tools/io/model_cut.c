/* SPDX-License-Identifier: Apache-2.0 */
#include "io/model_cut.h"

#include "io/model_proto.h"

#include <stdlib.h>
#include <string.h>

/* ---- The main graph ------------------------------------------------------------------------------------ */

/* Counts the names that a node reads, with those of inner graphs, and writes them to `to` unless it is NULL.
 */
static size_t list_reads(const Onnx__NodeProto *node, const char **to);

static size_t list_graph_reads(const Onnx__GraphProto *graph, const char **to)
{
    size_t count = 0;
    for (size_t i = 0; i < graph->n_node; i++)
        count += list_reads(graph->node[i], to ? to + count : NULL);
    for (size_t i = 0; i < graph->n_output; i++, count++) /* a branch may give a value of the outer graph */
        if (to)
            to[count] = graph->output[i]->name ? graph->output[i]->name : "";
    return count;
}

static size_t list_reads(const Onnx__NodeProto *node, const char **to)
{
    size_t count = node->n_input;
    for (size_t i = 0; to && i < node->n_input; i++)
        to[i] = node->input[i];
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        if (a->g)
            count += list_graph_reads(a->g, to ? to + count : NULL);
        for (size_t g = 0; g < a->n_graphs; g++)
            count += list_graph_reads(a->graphs[g], to ? to + count : NULL);
    }
    return count;
}

size_t model_cut_node_count(const model_edit *edit)
{
    return edit->model->graph->n_node;
}

dq_status model_cut_node(const model_edit *edit, size_t i, model_node *node, dq_error *err)
{
    const Onnx__NodeProto *from = edit->model->graph->node[i];
    *node = (model_node){.name = from->name ? from->name : "",
                         .op_type = from->op_type ? from->op_type : "",
                         .output_count = from->n_output,
                         .outputs = from->output,
                         .read_count = list_reads(from, NULL)};
    node->reads = calloc(node->read_count + 1, sizeof *node->reads);
    if (!node->reads)
        return io_no_memory(err);
    list_reads(from, node->reads);
    return DQ_OK;
}

static bool is_in(Onnx__ValueInfoProto *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (list[i]->name && !strcmp(list[i]->name, name))
            return true;
    return false;
}

static bool is_initializer(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (graph->initializer[i]->name && !strcmp(graph->initializer[i]->name, name))
            return true;
    for (size_t i = 0; i < graph->n_sparse_initializer; i++)
        if (graph->sparse_initializer[i]->values && !strcmp(graph->sparse_initializer[i]->values->name, name))
            return true;
    return false;
}

bool model_cut_is_input(const model_edit *edit, const char *name)
{
    const Onnx__GraphProto *graph = edit->model->graph;
    return is_in(graph->input, graph->n_input, name) &&
           (edit->model->ir_version >= 4 || !is_initializer(graph, name));
}

bool model_cut_is_output(const model_edit *edit, const char *name)
{
    return is_in(edit->model->graph->output, edit->model->graph->n_output, name);
}

/* ---- Sets of names ------------------------------------------------------------------------------------- */

typedef struct names {
    size_t count;
    const char **list; /* sorted */
} names;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has_name(const names *n, const char *name)
{
    return name && n->count && bsearch(&name, n->list, n->count, sizeof *n->list, by_text);
}

/* The names that the kept nodes read, or the names of their results. */
static dq_status collect(const Onnx__GraphProto *graph, const bool *keep, bool reads, names *out,
                         dq_error *err)
{
    size_t capacity = 1;
    for (size_t i = 0; i < graph->n_node; i++)
        if (keep[i])
            capacity += reads ? list_reads(graph->node[i], NULL) : graph->node[i]->n_output;
    out->count = 0;
    out->list = calloc(capacity, sizeof *out->list);
    if (!out->list)
        return io_no_memory(err);
    for (size_t i = 0; i < graph->n_node; i++) {
        if (keep[i] && reads)
            out->count += list_reads(graph->node[i], out->list + out->count);
        for (size_t k = 0; keep[i] && !reads && k < graph->node[i]->n_output; k++)
            out->list[out->count++] = graph->node[i]->output[k];
    }
    qsort(out->list, out->count, sizeof *out->list, by_text);
    return DQ_OK;
}

/* ---- The part ------------------------------------------------------------------------------------------ */

/* A graph whose lists point to messages of the whole model, and messages of its own at the ends: all outputs,
 * and from `own_inputs` and `own_initializers` on. */
typedef struct part {
    Onnx__GraphProto graph;
    size_t own_inputs, own_initializers;
    names reads, results;
    dq_error *err;
} part;

static Onnx__ValueInfoProto *declare(const char *name, const dq_tensor *tensor)
{
    const size_t rank = dq_tensor_rank(tensor);
    Onnx__ValueInfoProto *info = malloc(sizeof *info);
    if (!info)
        return NULL;
    onnx__value_info_proto__init(info);
    info->name = strdup(name);
    Onnx__TypeProto *type = info->type = malloc(sizeof *type);
    if (type)
        onnx__type_proto__init(type);
    Onnx__TypeProto__Tensor *t = type ? malloc(sizeof *t) : NULL;
    if (t) {
        onnx__type_proto__tensor__init(t);
        t->has_elem_type = 1;
        t->elem_type = (int32_t)dq_tensor_dtype(tensor);
        type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
        type->tensor_type = t;
        t->shape = malloc(sizeof *t->shape);
    }
    Onnx__TensorShapeProto *shape = t ? t->shape : NULL;
    if (shape) {
        onnx__tensor_shape_proto__init(shape);
        shape->dim = calloc(rank + 1, sizeof(void *));
    }
    for (size_t i = 0; shape && shape->dim && i < rank; i++) {
        Onnx__TensorShapeProto__Dimension *dim = malloc(sizeof *dim);
        if (!dim)
            break;
        onnx__tensor_shape_proto__dimension__init(dim);
        dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dim->dim_value = dq_tensor_dims(tensor)[i];
        shape->dim[shape->n_dim++] = dim;
    }
    if (info->name && shape && shape->n_dim == rank)
        return info;
    onnx__value_info_proto__free_unpacked(info, NULL);
    return NULL;
}

static dq_status allocate(part *p, const Onnx__GraphProto *from, const model_cut *cut)
{
    Onnx__GraphProto *g = &p->graph;
    *g = *from;
    g->n_node = g->n_input = g->n_output = g->n_initializer = g->n_sparse_initializer = 0;
    g->n_value_info = g->n_quantization_annotation = 0;
    g->node = calloc(from->n_node + 1, sizeof(void *));
    g->input = calloc(from->n_input + cut->input_count + 1, sizeof(void *));
    g->output = calloc(cut->output_count + 1, sizeof(void *));
    g->initializer = calloc(from->n_initializer + cut->input_count + 1, sizeof(void *));
    g->sparse_initializer = calloc(from->n_sparse_initializer + 1, sizeof(void *));
    g->value_info = calloc(from->n_value_info + 1, sizeof(void *));
    g->quantization_annotation = calloc(from->n_quantization_annotation + 1, sizeof(void *));
    return g->node && g->input && g->output && g->initializer && g->sparse_initializer && g->value_info &&
                   g->quantization_annotation
               ? DQ_OK
               : io_no_memory(p->err);
}

/* Takes what the kept nodes need as the file has it. Messages of the part's own come after these. */
static void select_parts(part *p, const Onnx__GraphProto *from, const model_cut *cut)
{
    Onnx__GraphProto *g = &p->graph;
    for (size_t i = 0; i < from->n_node; i++)
        if (cut->keep[i])
            g->node[g->n_node++] = from->node[i];
    for (size_t i = 0; i < from->n_input; i++)
        if (has_name(&p->reads, from->input[i]->name))
            g->input[g->n_input++] = from->input[i];
    for (size_t i = 0; i < from->n_initializer; i++)
        if (has_name(&p->reads, from->initializer[i]->name) && !from->initializer[i]->n_external_data)
            g->initializer[g->n_initializer++] = from->initializer[i];
    for (size_t i = 0; i < from->n_sparse_initializer; i++)
        if (from->sparse_initializer[i]->values &&
            has_name(&p->reads, from->sparse_initializer[i]->values->name))
            g->sparse_initializer[g->n_sparse_initializer++] = from->sparse_initializer[i];
    for (size_t i = 0; i < from->n_value_info; i++) {
        bool is_edge = !has_name(&p->results, from->value_info[i]->name);
        for (size_t k = 0; k < cut->output_count && !is_edge; k++)
            is_edge = !strcmp(cut->outputs[k].name, from->value_info[i]->name);
        if (!is_edge)
            g->value_info[g->n_value_info++] = from->value_info[i];
    }
    for (size_t i = 0; i < from->n_quantization_annotation; i++)
        if (has_name(&p->results, from->quantization_annotation[i]->tensor_name))
            g->quantization_annotation[g->n_quantization_annotation++] = from->quantization_annotation[i];
    p->own_inputs = g->n_input;
    p->own_initializers = g->n_initializer;
}

static dq_status add_initializer(part *p, const char *name, const dq_tensor *tensor)
{
    Onnx__TensorProto *t = model_proto_tensor(name, tensor);
    if (!t)
        return io_no_memory(p->err);
    p->graph.initializer[p->graph.n_initializer++] = t;
    return DQ_OK;
}

/* Copies the initializers that the file keeps in other files. */
static dq_status add_external(part *p, const Onnx__GraphProto *from, const dq_model *loaded)
{
    dq_status status = DQ_OK;
    for (size_t i = 0; i < from->n_initializer && status == DQ_OK; i++) {
        const Onnx__TensorProto *t = from->initializer[i];
        dq_value_info info = DQ_VALUE_INFO_INIT;
        if (!t->n_external_data || !has_name(&p->reads, t->name))
            continue;
        const dq_value *value = dq_model_find_value(loaded, t->name);
        if (!value || dq_value_describe(value, &info, NULL) != DQ_OK || !info.initializer)
            return io_fail(p->err, DQ_UNSUPPORTED,
                           "initializer '%s' has its data in another file, and the "
                           "model does not hold it",
                           t->name);
        status = add_initializer(p, t->name, info.initializer);
    }
    return status;
}

static dq_status add_edges(part *p, const Onnx__ModelProto *model, const model_cut *cut)
{
    Onnx__GraphProto *g = &p->graph;
    dq_status status = DQ_OK;
    for (size_t i = 0; i < cut->input_count && status == DQ_OK; i++) {
        const model_cut_value *v = &cut->inputs[i];
        if (v->is_constant)
            status = add_initializer(p, v->name, v->tensor);
        if (status == DQ_OK && (!v->is_constant || model->ir_version < 4)) {
            /* Before IR version 4, every initializer is an input, too. */
            g->input[g->n_input] = declare(v->name, v->tensor);
            status = g->input[g->n_input] ? DQ_OK : io_no_memory(p->err);
            g->n_input += status == DQ_OK;
        }
    }
    for (size_t i = 0; i < cut->output_count && status == DQ_OK; i++) {
        g->output[i] = declare(cut->outputs[i].name, cut->outputs[i].tensor);
        status = g->output[i] ? DQ_OK : io_no_memory(p->err);
        g->n_output += status == DQ_OK;
    }
    return status;
}

static void clear(part *p)
{
    Onnx__GraphProto *g = &p->graph;
    for (size_t i = p->own_inputs; g->input && i < g->n_input; i++)
        onnx__value_info_proto__free_unpacked(g->input[i], NULL);
    for (size_t i = 0; g->output && i < g->n_output; i++)
        onnx__value_info_proto__free_unpacked(g->output[i], NULL);
    for (size_t i = p->own_initializers; g->initializer && i < g->n_initializer; i++)
        onnx__tensor_proto__free_unpacked(g->initializer[i], NULL);
    free(g->node);
    free(g->input);
    free(g->output);
    free(g->initializer);
    free(g->sparse_initializer);
    free(g->value_info);
    free(g->quantization_annotation);
    free(p->reads.list);
    free(p->results.list);
}

dq_status model_cut_pack(const model_edit *edit, const model_cut *cut, const dq_model *loaded, void **bytes,
                         size_t *size, dq_error *err)
{
    const Onnx__GraphProto *from = edit->model->graph;
    part p = {.err = err};
    dq_status status = allocate(&p, from, cut);
    if (status == DQ_OK)
        status = collect(from, cut->keep, true, &p.reads, err);
    if (status == DQ_OK)
        status = collect(from, cut->keep, false, &p.results, err);
    if (status == DQ_OK) {
        select_parts(&p, from, cut);
        status = add_external(&p, from, loaded);
    }
    if (status == DQ_OK)
        status = add_edges(&p, edit->model, cut);
    if (status == DQ_OK) {
        Onnx__ModelProto model = *edit->model;
        const model_edit whole = {.model = &model};
        model.graph = &p.graph;
        status = model_edit_pack(&whole, bytes, size, err);
    }
    clear(&p);
    return status;
}
