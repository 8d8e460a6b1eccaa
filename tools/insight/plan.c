/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a session's plan: its steps, how each node is computed, and memory over time. */
#include "insight/inspect.h"

#include "io/common.h"

#include <stdlib.h>
#include <string.h>

/* ---- How a node computes ------------------------------------------------------------------------------- */

static bool is_float(dq_dtype dtype)
{
    return dtype == DQ_FLOAT || dtype == DQ_FLOAT16 || dtype == DQ_BFLOAT16 || dtype == DQ_DOUBLE;
}

/* Element types of quantized values. */
static bool is_narrow(dq_dtype dtype)
{
    const unsigned bits = dq_dtype_bits(dtype);
    return bits && !is_float(dtype) && dtype != DQ_BOOL && bits <= 16;
}

static bool has_word(const char *text, const char *word)
{
    return strstr(text, word) != NULL;
}

insight_compute insight_compute_of(const dq_node *node)
{
    dq_node_info n = DQ_NODE_INFO_INIT;
    bool floats = false, narrow_data = false, narrow_more = false;
    if (dq_node_describe(node, &n, NULL) != DQ_OK)
        return INSIGHT_OTHER;
    if (!strcmp(n.op_type, "QuantizeLinear") || !strcmp(n.op_type, "DequantizeLinear") ||
        !strcmp(n.op_type, "DynamicQuantizeLinear"))
        return INSIGHT_CONVERT;
    if (has_word(n.op_type, "TiledQdq"))
        return INSIGHT_TILED;
    if (has_word(n.op_type, "Integer") || has_word(n.op_type, "DynamicQuantize") ||
        !strncmp(n.op_type, "QLinear", 7))
        return INSIGHT_INTEGER;
    for (size_t i = 0; i < n.input_count + n.output_count; i++) {
        const dq_value *value = i < n.input_count ? n.inputs[i] : n.outputs[i - n.input_count];
        dq_value_info info = DQ_VALUE_INFO_INIT;
        if (!value || dq_value_describe(value, &info, NULL) != DQ_OK || info.kind != DQ_KIND_TENSOR)
            continue;
        const bool is_data = i == 0 || i == n.input_count;
        floats = floats || (is_float(info.dtype) && (is_data || i < n.input_count));
        narrow_data = narrow_data || (is_data && is_narrow(info.dtype));
        narrow_more = narrow_more || (!is_data && i < n.input_count && is_narrow(info.dtype));
    }
    if (has_word(n.op_type, "Elementwise")) /* its loop dequantizes and quantizes on the way */
        return narrow_data || narrow_more ? INSIGHT_TILED : INSIGHT_FLOAT;
    return narrow_data             ? INSIGHT_INTEGER
           : floats && narrow_more ? INSIGHT_WEIGHT_ONLY
           : floats                ? INSIGHT_FLOAT
                                   : INSIGHT_OTHER;
}

/* ---- Notes of the rewriter ----------------------------------------------------------------------------- */

/* Notes of one session, by node: the last that says why it stays in float. */
typedef struct notes {
    insight_model *m;
    bool out_of_memory;
} notes;

/* The node of "node 'NAME' (" or, where it has no name, of "node N (", its number in the file. */
static size_t named_node(const insight_model *m, const char *text)
{
    const char *end = !strncmp(text, "node '", 6) ? strstr(text, "' (") : NULL;
    for (size_t i = 0; end && i < m->node_count; i++) {
        const size_t length = (size_t)(end - text - 6);
        if (strlen(m->nodes[i].name) == length && !memcmp(m->nodes[i].name, text + 6, length))
            return i;
    }
    return INSIGHT_NONE;
}

/* "…: stays after node 'X' (Op-1) in float: REASON", and "node 'X' (Op-1): PASS: not …". */
static void take_note(void *arg, const dq_log_record *record)
{
    notes *n = arg;
    const char *at = record->message, *in_float = strstr(at, " in float: ");
    if (record->kind != DQ_LOG_REWRITE || n->out_of_memory)
        return;
    if (in_float) {
        for (const char *next = at; (next = strstr(next, "node '")) && next < in_float; next += 6)
            at = next;
        at = strncmp(at, "node '", 6) ? record->message : at;
    }
    const size_t node = named_node(n->m, at);
    const char *reason = in_float ? in_float + strlen(" in float: ") : strstr(at, "): not ");
    if (node == INSIGHT_NONE || !reason)
        return;
    n->m->nodes[node].reason = insight_copy(&n->m->pool, in_float ? reason : reason + strlen("): "));
    n->out_of_memory = !n->m->nodes[node].reason;
}

/* ---- Why a node computes on floats -----------------------------------------------------------------------
 */

static bool is_op(const insight_model *m, size_t node, const char *op_type)
{
    return node != INSIGHT_NONE && !strcmp(m->nodes[node].op_type, op_type);
}

static bool is_dequantized(const insight_model *m, size_t value)
{
    return value != INSIGHT_NONE && is_op(m, m->values[value].producer, "DequantizeLinear");
}

static bool is_quantized_next(const insight_model *m, size_t value)
{
    size_t count = 0;
    const dq_node *const *readers = NULL;
    if (value == INSIGHT_NONE ||
        dq_value_consumers(m->model, m->values[value].value, &count, &readers, NULL) != DQ_OK)
        return false;
    bool quantized = count > 0;
    for (size_t i = 0; i < count; i++)
        quantized = quantized && is_op(m, insight_find_node(m, readers[i]), "QuantizeLinear");
    return quantized;
}

/* From the graph, where the rewriter has said nothing. */
static const char *reason_of(const insight_model *m, const insight_node *n)
{
    bool any = false, all = true;
    for (size_t i = 0; i < n->input_count; i++) {
        if (n->inputs[i] == INSIGHT_NONE || m->values[n->inputs[i]].is_constant)
            continue;
        any = any || is_dequantized(m, n->inputs[i]);
        all = all && is_dequantized(m, n->inputs[i]);
    }
    const bool result = n->output_count && is_quantized_next(m, n->outputs[0]);
    if (!any && !result)
        return "neither its inputs nor its results are quantized";
    if (!any)
        return "its inputs are not quantized, only its result";
    if (!all)
        return "some of its inputs are not quantized";
    return result ? "no rewrite computes it on quantized values" : "its result is not quantized";
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

static dq_status read_step(insight_model *m, dq_session *session, size_t index, dq_error *err)
{
    insight_step *to = &m->steps[index];
    dq_step_info step = DQ_STEP_INFO_INIT;
    dq_node_info node = DQ_NODE_INFO_INIT;
    dq_status status = dq_session_step(session, index, &step, err);
    if (status == DQ_OK)
        status = dq_node_describe(step.node, &node, err);
    if (status != DQ_OK)
        return status;
    size_t *nodes = insight_alloc(&m->pool, step.written_count, sizeof *nodes);
    *to = (insight_step){.op = insight_copy(&m->pool, step.op),
                         .algorithm = insight_copy(&m->pool, step.algorithm),
                         .decision = insight_copy(&m->pool, step.decision),
                         .name = insight_copy(&m->pool, node.name),
                         .compute = insight_compute_of(step.node),
                         .nodes = nodes,
                         .work = step.work,
                         .scratch_bytes = step.scratch_bytes,
                         .macs = step.macs,
                         .bytes = step.bytes};
    if (!nodes || !to->op || !to->name)
        return io_no_memory(err);
    for (size_t i = 0; i < step.written_count; i++) {
        const size_t written = insight_find_node(m, step.written[i]);
        if (written == INSIGHT_NONE)
            continue;
        nodes[to->node_count++] = written;
        m->nodes[written].step = index;
    }
    if (!*to->name && to->node_count)
        to->name = m->nodes[nodes[to->node_count - 1]].name;
    m->work += step.work;
    m->integer_work += to->compute == INSIGHT_INTEGER ? step.work : 0;
    return DQ_OK;
}

/* A node computes as its step does. A conversion that a step of floats takes in stays a conversion. */
static void classify_nodes(insight_model *m)
{
    for (size_t i = 0; i < m->node_count; i++) {
        insight_node *n = &m->nodes[i];
        if (n->step == INSIGHT_NONE)
            n->compute = n->compute == INSIGHT_PLANNING ? INSIGHT_PLANNING : INSIGHT_UNUSED;
        else if (m->steps[n->step].compute == INSIGHT_INTEGER || m->steps[n->step].compute == INSIGHT_TILED)
            n->compute = m->steps[n->step].compute;
        if (n->compute != INSIGHT_FLOAT)
            n->reason = NULL;
        else if (!n->reason)
            n->reason = reason_of(m, n);
    }
}

/* Without a step, a node may still be computed: in the memory of its input, or while planning. The values
 * that planning knows are constants; what only they need is planned, and the rest is not needed. */
static void classify_unused(insight_model *m)
{
    for (size_t i = m->node_count; i-- > 0;) {
        insight_node *n = &m->nodes[i];
        bool read = false;
        for (size_t k = 0; k < n->output_count && !read; k++) {
            size_t count = 0;
            const dq_node *const *readers = NULL;
            if (n->outputs[k] == INSIGHT_NONE)
                continue;
            read = m->values[n->outputs[k]].is_output;
            if (dq_value_consumers(m->model, m->values[n->outputs[k]].value, &count, &readers, NULL) != DQ_OK)
                continue;
            for (size_t r = 0; r < count && !read; r++) {
                const size_t reader = insight_find_node(m, readers[r]);
                read = reader == INSIGHT_NONE || m->nodes[reader].compute != INSIGHT_UNUSED;
            }
        }
        if (n->compute == INSIGHT_UNUSED && read)
            n->compute = INSIGHT_PLANNING;
    }
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

typedef struct lives {
    insight_model *m;
    size_t capacity;
    bool out_of_memory;
} lives;

static const char *name_of(insight_model *m, const dq_value *value)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    const size_t known = insight_find_value(m, value);
    if (known != INSIGHT_NONE)
        return m->values[known].name;
    return dq_value_describe(value, &info, NULL) == DQ_OK ? insight_copy(&m->pool, info.name) : "";
}

static int take_life(void *arg, const dq_lifetime *life)
{
    lives *l = arg;
    insight_model *m = l->m;
    if (m->life_count == l->capacity) {
        const size_t capacity = l->capacity ? 2 * l->capacity : 64;
        insight_life *grown = insight_alloc(&m->pool, capacity, sizeof *grown);
        l->out_of_memory = !grown;
        if (!grown)
            return 1;
        if (m->life_count)
            memcpy(grown, m->lives, m->life_count * sizeof *grown);
        m->lives = grown;
        l->capacity = capacity;
    }
    m->lives[m->life_count++] = (insight_life){
        name_of(m, life->value), name_of(m, life->memory_of), life->offset, life->bytes, life->first_step,
        life->last_step};
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const insight_life *x = a, *y = b;
    return x->offset != y->offset ? (x->offset > y->offset) - (x->offset < y->offset)
                                  : (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Bytes of the buffer that hold a live value: the union of their intervals, as views share memory. */
static dq_status sum_live_bytes(insight_model *m, dq_error *err)
{
    insight_life *sorted = insight_alloc(&m->pool, m->life_count, sizeof *sorted);
    if (!sorted)
        return io_no_memory(err);
    if (m->life_count)
        memcpy(sorted, m->lives, m->life_count * sizeof *sorted);
    qsort(sorted, m->life_count, sizeof *sorted, by_start);
    for (size_t s = 0; s < m->step_count; s++) {
        uint64_t end = 0, bytes = 0;
        for (size_t i = 0; i < m->life_count; i++) {
            const insight_life *life = &sorted[i];
            const uint64_t from = life->offset > end ? life->offset : end, to = life->offset + life->bytes;
            if (s < life->first_step || s > life->last_step || to <= from)
                continue;
            bytes += to - from;
            end = to;
        }
        m->steps[s].live_bytes = bytes;
        if (bytes > m->peak_bytes) {
            m->peak_bytes = bytes;
            m->peak_step = s;
        }
    }
    return DQ_OK;
}

static dq_status read_memory(insight_model *m, dq_session *session, dq_error *err)
{
    dq_memory_info memory = DQ_MEMORY_INFO_INIT;
    lives l = {.m = m};
    dq_status status = dq_session_memory(session, &memory, err);
    if (status == DQ_OK)
        status = dq_session_lifetimes(session, take_life, &l, err);
    if (status == DQ_OK && l.out_of_memory)
        status = io_no_memory(err);
    m->activation_bytes = memory.activation_bytes;
    m->packed_bytes = memory.weight_bytes;
    m->constant_bytes = memory.constant_bytes;
    return status == DQ_OK ? sum_live_bytes(m, err) : status;
}

/* ---- The session --------------------------------------------------------------------------------------- */

static dq_status set_inputs(const insight_model *m, dq_session *session, dq_tensor *const *tensors,
                            dq_error *err)
{
    dq_status status = DQ_OK;
    for (size_t i = 0; i < dq_model_input_count(m->model) && status == DQ_OK; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        status = dq_model_input(m->model, i, &info, err);
        if (status == DQ_OK && tensors[i])
            status = dq_session_set_input(session, info.name, tensors[i], err);
    }
    return status;
}

/* Whether a failure says something about the model, and not about this process. */
static bool is_finding(dq_status status)
{
    return status == DQ_BAD_MODEL || status == DQ_UNSUPPORTED || status == DQ_BAD_INPUT;
}

static dq_status read_steps(insight_model *m, dq_session *session, dq_error *err)
{
    m->step_count = dq_session_step_count(session);
    m->steps = insight_alloc(&m->pool, m->step_count, sizeof *m->steps);
    m->isa = insight_copy(&m->pool, dq_session_isa(session));
    if (!m->steps || !m->isa)
        return io_no_memory(err);
    dq_status status = DQ_OK;
    for (size_t i = 0; i < m->step_count && status == DQ_OK; i++)
        status = read_step(m, session, i, err);
    if (status == DQ_OK)
        status = read_memory(m, session, err);
    classify_nodes(m);
    classify_unused(m);
    return status;
}

dq_status insight_read_plan(insight_model *m, dq_model *model, const dq_session_options *options,
                            dq_tensor *const *tensors, dq_error *err)
{
    dq_session *session = NULL;
    notes n = {.m = m};
    dq_session_options own = *options;
    own.trace = NULL;
    own.progress = NULL;
    own.log = take_note;
    own.arg = &n;
    dq_status status = dq_session_create(model, &own, &session, err);
    if (status == DQ_OK)
        status = set_inputs(m, session, tensors, err);
    if (status == DQ_OK) {
        status = dq_session_prepare(session, err);
        if (is_finding(status)) {
            m->not_planned = insight_copy(&m->pool, err ? err->message : "planning failed");
            status = m->not_planned ? DQ_OK : io_no_memory(err);
        } else if (status == DQ_OK) {
            status = n.out_of_memory ? io_no_memory(err) : read_steps(m, session, err);
        }
    }
    dq_session_free(session);
    return status == DQ_OK && !m->not_planned ? insight_read_shapes(m, model, tensors, err) : status;
}

/* ---- Shapes -------------------------------------------------------------------------------------------- */

typedef struct shapes {
    insight_model *m;
    bool out_of_memory;
} shapes;

static int take_shape(void *arg, const dq_value_info *info)
{
    shapes *s = arg;
    for (size_t i = 0; i < s->m->value_count; i++) {
        insight_value *v = &s->m->values[i];
        if (strcmp(v->name, info->name) != 0)
            continue;
        if (info->kind == DQ_KIND_TENSOR && info->has_shape) {
            int64_t *dims = insight_alloc(&s->m->pool, info->rank, sizeof *dims);
            s->out_of_memory = !dims;
            if (!dims)
                return 1;
            if (info->rank)
                memcpy(dims, info->dims, info->rank * sizeof *dims);
            v->has_shape = true;
            v->rank = info->rank;
            v->dims = dims;
        }
        if (info->kind == DQ_KIND_TENSOR && info->dtype != DQ_UNDEFINED)
            v->type = dq_dtype_name(info->dtype);
        break;
    }
    return 0;
}

/* Inputs have the shapes of their tensors. */
static dq_status take_input_shapes(insight_model *m, dq_tensor *const *tensors, dq_error *err)
{
    dq_status status = DQ_OK;
    for (size_t i = 0; i < dq_model_input_count(m->model) && status == DQ_OK; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        status = dq_model_input(m->model, i, &info, err);
        if (status != DQ_OK || !tensors[i] || dq_tensor_kind(tensors[i]) != DQ_KIND_TENSOR)
            continue;
        const size_t v = insight_find_value(m, dq_model_find_value(m->model, info.name));
        int64_t *dims = insight_alloc(&m->pool, dq_tensor_rank(tensors[i]), sizeof *dims);
        if (!dims)
            return io_no_memory(err);
        memcpy(dims, dq_tensor_dims(tensors[i]), dq_tensor_rank(tensors[i]) * sizeof *dims);
        if (v == INSIGHT_NONE)
            continue;
        m->values[v].has_shape = true;
        m->values[v].rank = dq_tensor_rank(tensors[i]);
        m->values[v].dims = dims;
    }
    return status;
}

dq_status insight_read_shapes(insight_model *m, dq_model *model, dq_tensor *const *tensors, dq_error *err)
{
    dq_session *session = NULL;
    dq_session_options options = DQ_SESSION_OPTIONS_INIT;
    shapes s = {.m = m};
    options.no_fuse = true;
    options.threads = 1;
    dq_status status = dq_session_create(model, &options, &session, err);
    if (status == DQ_OK)
        status = set_inputs(m, session, tensors, err);
    if (status == DQ_OK)
        status = take_input_shapes(m, tensors, err);
    for (size_t i = 0; i < m->value_count && status == DQ_OK; i++) {
        const insight_value *v = &m->values[i];
        if (v->producer != INSIGHT_NONE && !v->is_output)
            status = dq_session_add_output(session, v->name, err);
    }
    if (status == DQ_OK)
        status = dq_session_infer(session, 0, NULL, take_shape, &s, NULL, err);
    dq_session_free(session);
    if (status == DQ_OK && s.out_of_memory)
        status = io_no_memory(err);
    return is_finding(status) ? DQ_OK : status; /* shapes that depend on data stay unknown */
}
