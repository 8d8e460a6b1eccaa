/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a model: values with their quantization, nodes, weights, operators, and what cannot run. */
#include "insight/inspect.h"

#include "io/common.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const insight_compute_names[INSIGHT_COMPUTES] = {
    [INSIGHT_UNUSED] = "unused",   [INSIGHT_PLANNING] = "planning", [INSIGHT_CONVERT] = "convert",
    [INSIGHT_INTEGER] = "integer", [INSIGHT_TILED] = "tiled float", [INSIGHT_WEIGHT_ONLY] = "weight-only",
    [INSIGHT_FLOAT] = "float",     [INSIGHT_OTHER] = "other",
};

/* ---- Handles ------------------------------------------------------------------------------------------- */

struct insight_handle {
    const void *handle;
    size_t index;
};

static int by_handle(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const struct insight_handle *)a)->handle;
    const uintptr_t y = (uintptr_t)((const struct insight_handle *)b)->handle;
    return (x > y) - (x < y);
}

static size_t find(const insight_model *m, const void *handle)
{
    const struct insight_handle key = {handle, 0};
    const struct insight_handle *found =
        handle && m->handle_count ? bsearch(&key, m->handles, m->handle_count, sizeof key, by_handle) : NULL;
    return found ? found->index : INSIGHT_NONE;
}

size_t insight_find_value(const insight_model *m, const dq_value *value)
{
    return find(m, value);
}

size_t insight_find_node(const insight_model *m, const dq_node *node)
{
    return find(m, node);
}

static dq_status index_handles(insight_model *m, dq_error *err)
{
    m->handles = insight_alloc(&m->pool, m->value_count + m->node_count, sizeof *m->handles);
    if (!m->handles)
        return io_no_memory(err);
    for (size_t i = 0; i < m->value_count; i++)
        m->handles[m->handle_count++] = (struct insight_handle){m->values[i].value, i};
    for (size_t i = 0; i < m->node_count; i++)
        m->handles[m->handle_count++] = (struct insight_handle){m->nodes[i].node, i};
    qsort(m->handles, m->handle_count, sizeof *m->handles, by_handle);
    return DQ_OK;
}

/* ---- Texts --------------------------------------------------------------------------------------------- */

const char *insight_granularity_text(const insight_quantization *q, char *buffer, size_t size)
{
    if (q->granularity == DQ_PER_TENSOR)
        snprintf(buffer, size, "per tensor");
    else if (q->granularity == DQ_PER_AXIS)
        snprintf(buffer, size, "per axis %" PRId64, q->axis);
    else if (q->granularity == DQ_PER_BLOCK)
        snprintf(buffer, size, "per block of %" PRId64 " on axis %" PRId64, q->block_size, q->axis);
    else
        snprintf(buffer, size, "by data");
    return buffer;
}

const char *insight_shape_text(const insight_value *v, char *buffer, size_t size)
{
    if (!v->has_shape) {
        snprintf(buffer, size, "?");
        return buffer;
    }
    size_t used = (size_t)snprintf(buffer, size, "[");
    for (size_t d = 0; d < v->rank && used < size; d++) {
        const char *separator = d ? "," : "";
        if (v->dims[d] >= 0)
            used += (size_t)snprintf(buffer + used, size - used, "%s%" PRId64, separator, v->dims[d]);
        else
            used += (size_t)snprintf(buffer + used, size - used, "%s%s", separator,
                                     v->dim_names && v->dim_names[d] ? v->dim_names[d] : "?");
    }
    if (used < size)
        snprintf(buffer + used, size - used, "]");
    return buffer;
}

/* ---- Values -------------------------------------------------------------------------------------------- */

/* Smallest and largest element; NaN does not count. */
static void range_of(const dq_tensor *t, double *min, double *max)
{
    *min = *max = 0;
    for (size_t i = 0, seen = 0; i < dq_tensor_count(t); i++) {
        double x = dq_tensor_value(t, i);
        if (isnan(x))
            continue;
        *min = !seen || x < *min ? x : *min;
        *max = !seen || x > *max ? x : *max;
        seen++;
    }
}

static dq_status read_quantization(insight_model *m, const dq_value *value, insight_quantization *to,
                                   dq_error *err)
{
    dq_quantization q = DQ_QUANTIZATION_INIT;
    dq_node_info node = DQ_NODE_INFO_INIT;
    dq_status status = dq_value_quantization(m->model, value, &q, err);
    if (status != DQ_OK || !q.quantized)
        return status;
    *to = (insight_quantization){.quantized = true,
                                 .granularity = q.granularity,
                                 .axis = q.axis,
                                 .block_size = q.block_size,
                                 .has_scale = q.scale_data != NULL,
                                 .has_zero_point = q.zero_point_data != NULL};
    if (q.scale_data) {
        to->scale_count = dq_tensor_count(q.scale_data);
        range_of(q.scale_data, &to->scale_min, &to->scale_max);
    }
    if (q.zero_point_data)
        range_of(q.zero_point_data, &to->zero_point_min, &to->zero_point_max);
    if (q.node && dq_node_describe(q.node, &node, NULL) == DQ_OK)
        to->node = node.name;
    return DQ_OK;
}

static dq_status read_value(insight_model *m, const dq_value *value, insight_value *to, dq_error *err)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    dq_status status = dq_value_describe(value, &info, err);
    if (status != DQ_OK)
        return status;
    *to = (insight_value){.value = value,
                          .name = info.name,
                          .type = info.kind != DQ_KIND_TENSOR  ? info.type
                                  : info.dtype == DQ_UNDEFINED ? "?"
                                                               : dq_dtype_name(info.dtype),
                          .is_initializer = info.initializer && !info.is_input,
                          .is_input = info.is_input,
                          .is_output = info.is_output,
                          .has_shape = info.kind == DQ_KIND_TENSOR && info.has_shape,
                          .rank = info.rank,
                          .dims = info.dims,
                          .dim_names = info.dim_names,
                          .producer = INSIGHT_NONE};
    to->is_constant = to->is_initializer;
    to->bytes = info.initializer ? dq_tensor_size(info.initializer) : 0;
    return read_quantization(m, value, &to->quantization, err);
}

static int most_bytes_first(const void *a, const void *b)
{
    const insight_weights *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1)
                                : (x->dtype > y->dtype) - (x->dtype < y->dtype);
}

static dq_status count_weights(insight_model *m, dq_error *err)
{
    m->weights = insight_alloc(&m->pool, DQ_DTYPE_COUNT, sizeof *m->weights);
    if (!m->weights)
        return io_no_memory(err);
    for (size_t i = 0; i < DQ_DTYPE_COUNT; i++)
        m->weights[i].dtype = (dq_dtype)i;
    for (size_t i = 0; i < m->value_count; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        dq_status status = dq_value_describe(m->values[i].value, &info, err);
        if (status != DQ_OK)
            return status;
        if (!info.initializer)
            continue;
        insight_weights *w = &m->weights[dq_tensor_dtype(info.initializer)];
        w->tensors++;
        w->elements += dq_tensor_count(info.initializer);
        w->bytes += dq_tensor_size(info.initializer);
        m->weight_bytes += dq_tensor_size(info.initializer);
    }
    qsort(m->weights, DQ_DTYPE_COUNT, sizeof *m->weights, most_bytes_first);
    while (m->weight_count < DQ_DTYPE_COUNT && m->weights[m->weight_count].tensors)
        m->weight_count++;
    return DQ_OK;
}

/* ---- Nodes --------------------------------------------------------------------------------------------- */

static dq_status read_node(insight_model *m, const dq_node *node, insight_node *to, dq_error *err)
{
    dq_node_info info = DQ_NODE_INFO_INIT;
    dq_value_info first = DQ_VALUE_INFO_INIT;
    dq_status status = dq_node_describe(node, &info, err);
    if (status == DQ_OK && !*info.name && info.output_count && info.outputs[0])
        status = dq_value_describe(info.outputs[0], &first, err);
    if (status != DQ_OK)
        return status;
    *to = (insight_node){.node = node,
                         .name = *info.name   ? info.name
                                 : first.name ? first.name
                                              : "",
                         .op_type = info.op_type,
                         .domain = info.domain,
                         .input_count = info.input_count,
                         .output_count = info.output_count,
                         .step = INSIGHT_NONE,
                         .compute = insight_compute_of(node)};
    to->op = insight_format(&m->pool, "%s%s%s-%d", info.domain, *info.domain ? "." : "", info.op_type,
                            info.since_version ? info.since_version : info.opset);
    return to->op ? DQ_OK : io_no_memory(err);
}

/* Connects nodes and values by index. */
static dq_status connect_node(insight_model *m, size_t index, dq_error *err)
{
    insight_node *n = &m->nodes[index];
    dq_node_info info = DQ_NODE_INFO_INIT;
    dq_status status = dq_node_describe(n->node, &info, err);
    size_t *inputs = insight_alloc(&m->pool, n->input_count, sizeof *inputs);
    size_t *outputs = insight_alloc(&m->pool, n->output_count, sizeof *outputs);
    if (status != DQ_OK)
        return status;
    if (!inputs || !outputs)
        return io_no_memory(err);
    bool all_constant = true;
    for (size_t i = 0; i < info.input_count; i++) {
        inputs[i] = insight_find_value(m, info.inputs[i]);
        all_constant = all_constant &&
                       (!info.inputs[i] || (inputs[i] != INSIGHT_NONE && m->values[inputs[i]].is_constant));
    }
    for (size_t i = 0; i < info.output_count; i++) {
        outputs[i] = insight_find_value(m, info.outputs[i]);
        if (outputs[i] == INSIGHT_NONE)
            continue;
        m->values[outputs[i]].producer = index;
        m->values[outputs[i]].is_constant = all_constant && strncmp(n->op_type, "Random", 6) != 0;
    }
    if (all_constant && info.output_count && outputs[0] != INSIGHT_NONE && m->values[outputs[0]].is_constant)
        n->compute = INSIGHT_PLANNING;
    n->is_constant = n->compute == INSIGHT_PLANNING;
    n->inputs = inputs;
    n->outputs = outputs;
    return DQ_OK;
}

static dq_status read_graph(insight_model *m, const dq_graph *handle, dq_error *err)
{
    dq_graph_info graph = DQ_GRAPH_INFO_INIT;
    dq_status status = dq_graph_describe(handle, &graph, err);
    if (status != DQ_OK)
        return status;
    m->value_count = graph.value_count;
    m->node_count = graph.node_count;
    m->values = insight_alloc(&m->pool, graph.value_count, sizeof *m->values);
    m->nodes = insight_alloc(&m->pool, graph.node_count, sizeof *m->nodes);
    if (!m->values || !m->nodes)
        return io_no_memory(err);
    for (size_t i = 0; i < graph.value_count && status == DQ_OK; i++)
        status = read_value(m, graph.values[i], &m->values[i], err);
    for (size_t i = 0; i < graph.node_count && status == DQ_OK; i++)
        status = read_node(m, graph.nodes[i], &m->nodes[i], err);
    if (status == DQ_OK)
        status = index_handles(m, err);
    for (size_t i = 0; i < graph.node_count && status == DQ_OK; i++)
        status = connect_node(m, i, err);
    return status;
}

static int most_frequent_first(const void *a, const void *b)
{
    const insight_operator *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->op, y->op);
}

static dq_status count_operators(insight_model *m, dq_error *err)
{
    m->operators = insight_alloc(&m->pool, m->node_count, sizeof *m->operators);
    if (!m->operators)
        return io_no_memory(err);
    for (size_t i = 0; i < m->node_count; i++) {
        const insight_node *n = &m->nodes[i];
        size_t k = 0;
        while (k < m->operator_count && strcmp(m->operators[k].op, n->op) != 0)
            k++;
        m->operators[k].op = n->op;
        m->operators[k].count++;
        m->operators[k].computes[n->compute]++;
        m->operator_count += k == m->operator_count;
        m->computes[n->compute]++;
    }
    qsort(m->operators, m->operator_count, sizeof *m->operators, most_frequent_first);
    return DQ_OK;
}

/* ---- What cannot run ----------------------------------------------------------------------------------- */

typedef struct findings {
    insight_model *m;
    size_t capacity;
    dq_status status;
} findings;

/* The node that a message names as "node 'NAME' (". */
static void attach_problem(insight_model *m, const char *message)
{
    const char *at = strstr(message, "node '");
    const char *end = at ? strstr(at + 6, "' (") : NULL;
    for (size_t i = 0; end && i < m->node_count; i++) {
        const size_t length = (size_t)(end - at - 6);
        if (strlen(m->nodes[i].name) == length && !memcmp(m->nodes[i].name, at + 6, length)) {
            m->nodes[i].problem = message;
            return;
        }
    }
}

static void find_problem(void *arg, const dq_error *why)
{
    findings *f = arg;
    insight_model *m = f->m;
    const char *message = insight_copy(&m->pool, why->message);
    if (m->problem_count == f->capacity) {
        const size_t capacity = f->capacity ? 2 * f->capacity : 16;
        const char **grown = insight_alloc(&m->pool, capacity, sizeof *grown);
        if (!grown) {
            f->status = DQ_OUT_OF_MEMORY;
            return;
        }
        if (m->problem_count)
            memcpy(grown, m->problems, m->problem_count * sizeof *grown);
        m->problems = grown;
        f->capacity = capacity;
    }
    if (!message) {
        f->status = DQ_OUT_OF_MEMORY;
        return;
    }
    m->problems[m->problem_count++] = message;
    attach_problem(m, message);
}

static dq_status read_problems(insight_model *m, dq_error *err)
{
    findings f = {.m = m};
    const dq_status status = dq_model_check(m->model, find_problem, &f, err);
    if (f.status != DQ_OK)
        return io_no_memory(err);
    return m->problem_count ? DQ_OK : status;
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

static dq_status read_header(insight_model *m, const dq_model_info *info, dq_error *err)
{
    const char *text = "";
    m->name = info->name;
    m->ir_version = info->ir_version;
    m->producer = insight_format(&m->pool, "%s%s%s", info->producer_name, *info->producer_version ? " " : "",
                                 info->producer_version);
    for (size_t i = 0; i < info->opset_count && text; i++) {
        const char *domain = NULL;
        int version = 0;
        dq_status status = dq_model_opset(m->model, i, &domain, &version, err);
        if (status != DQ_OK)
            return status;
        text =
            insight_format(&m->pool, "%s%s%s %d", text, i ? ", " : "", *domain ? domain : "ai.onnx", version);
    }
    m->opsets = text;
    return m->producer && text ? DQ_OK : io_no_memory(err);
}

dq_status insight_inspect(dq_model *model, const dq_session_options *options, dq_tensor *const *tensors,
                          const char *why_not, insight_model *out, dq_error *err)
{
    dq_model_info info = DQ_MODEL_INFO_INIT;
    *out = (insight_model){.model = model};
    dq_status status = dq_model_describe(model, &info, err);
    if (status == DQ_OK)
        status = read_header(out, &info, err);
    if (status == DQ_OK)
        status = read_graph(out, info.graph, err);
    if (status == DQ_OK)
        status = count_weights(out, err);
    if (status == DQ_OK)
        status = read_problems(out, err);
    if (status != DQ_OK)
        return status;
    if (out->problem_count)
        out->not_planned = "nodes cannot run";
    else if (!tensors)
        out->not_planned = why_not ? insight_copy(&out->pool, why_not) : "not asked for";
    else
        status = insight_read_plan(out, model, options, tensors, err);
    return status == DQ_OK ? count_operators(out, err) : status;
}

void insight_model_free(insight_model *m)
{
    insight_pool_free(&m->pool);
    *m = (insight_model){0};
}
