/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a model's file and the values between them, at which dqrun reduce cuts. */
#include "insight/reduce.h"

#include "io/common.h"
#include "io/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- Values by name ------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const insight_cut_value *)a)->name, ((const insight_cut_value *)b)->name);
}

static insight_cut_value *find_value(const insight_cuts *c, const char *name)
{
    const insight_cut_value key = {.name = name};
    return c->value_count && name ? bsearch(&key, c->values, c->value_count, sizeof key, by_name) : NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The reads of a node: results of other nodes, and inputs of the graph. Sorts `reads` to find repetitions. */
static dq_status read_reads(insight_cuts *c, insight_cut_node *node, const model_node *from, dq_error *err)
{
    size_t outer = 0;
    node->reads = insight_alloc(&c->pool, from->read_count, sizeof(void *));
    node->outer = insight_alloc(&c->pool, from->read_count + 1, sizeof(char *));
    if (!node->reads || !node->outer)
        return io_no_memory(err);
    qsort(from->reads, from->read_count, sizeof *from->reads, by_text);
    for (size_t i = 0; i < from->read_count; i++) {
        if (!*from->reads[i] || (i && !strcmp(from->reads[i], from->reads[i - 1])))
            continue;
        insight_cut_value *value = find_value(c, from->reads[i]);
        if (value && &c->nodes[value->node] != node) {
            value->used = true;
            node->reads[node->read_count++] = value;
        } else if (!value && model_cut_is_input(c->edit, from->reads[i])) {
            node->outer[outer++] = from->reads[i];
        }
    }
    return DQ_OK;
}

static dq_status read_results(insight_cuts *c, model_node *nodes, dq_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < c->node_count; i++)
        count += nodes[i].output_count;
    c->values = insight_alloc(&c->pool, count, sizeof *c->values);
    if (!c->values)
        return io_no_memory(err);
    for (size_t i = 0; i < c->node_count; i++)
        for (size_t k = 0; k < nodes[i].output_count; k++)
            if (*nodes[i].outputs[k])
                c->values[c->value_count++] = (insight_cut_value){.name = nodes[i].outputs[k], .node = i};
    qsort(c->values, c->value_count, sizeof *c->values, by_name);
    for (size_t i = 0; i < c->value_count; i++)
        c->values[i].used = c->values[i].is_output = model_cut_is_output(c->edit, c->values[i].name);
    for (size_t i = 1; i < c->value_count; i++)
        if (!strcmp(c->values[i - 1].name, c->values[i].name))
            return io_fail(err, DQ_BAD_MODEL, "value '%s' is the result of two nodes", c->values[i].name);
    return DQ_OK;
}

/* Inner graphs may read what a value of the same name inside them hides; such a read is harmless. */
static dq_status read_graph(insight_cuts *c, model_node *nodes, dq_error *err)
{
    dq_status status = DQ_OK;
    for (size_t i = 0; i < c->node_count && status == DQ_OK; i++)
        status = model_cut_node(c->edit, i, &nodes[i], err);
    if (status == DQ_OK)
        status = read_results(c, nodes, err);
    for (size_t i = 0; i < c->node_count && status == DQ_OK; i++) {
        insight_cut_node *node = &c->nodes[i];
        *node = (insight_cut_node){.name = nodes[i].name, .op_type = nodes[i].op_type};
        node->value_count = nodes[i].output_count;
        node->values = insight_alloc(&c->pool, nodes[i].output_count, sizeof(void *));
        status = node->values ? read_reads(c, node, &nodes[i], err) : io_no_memory(err);
        for (size_t k = 0; k < nodes[i].output_count && status == DQ_OK; k++)
            node->values[k] = *nodes[i].outputs[k] ? find_value(c, nodes[i].outputs[k]) : NULL;
    }
    for (size_t i = 0; i < c->node_count; i++)
        free(nodes[i].reads);
    return status;
}

/* Values that follow from initializers alone. The file has nodes in topological order; where it has not, a
 * value is taken for one that varies. */
static void find_constants(insight_cuts *c)
{
    for (size_t i = 0; i < c->node_count; i++) {
        const insight_cut_node *node = &c->nodes[i];
        bool constant = !node->outer[0];
        for (size_t k = 0; k < node->read_count; k++)
            constant = constant && node->reads[k]->is_constant;
        for (size_t k = 0; k < node->value_count; k++)
            if (node->values[k])
                node->values[k]->is_constant = constant;
    }
}

/* ---- Tensors ------------------------------------------------------------------------------------------- */

static dq_status run_as_written(insight_cuts *c, dq_error *err)
{
    const insight_reduce_request *r = c->request;
    dq_session_options options = r->against ? *r->against : *r->options;
    options.no_fuse = true;
    dq_status status = dq_session_create(r->model, &options, &c->written, err);
    for (size_t i = 0; i < c->value_count && status == DQ_OK; i++) {
        size_t index = 0;
        if (dq_model_find_value(r->model, c->values[i].name) &&
            dq_model_find_output(r->model, c->values[i].name, &index, NULL) != DQ_OK)
            status = dq_session_add_output(c->written, c->values[i].name, err);
    }
    for (size_t i = 0; i < r->input_count && status == DQ_OK; i++)
        status = dq_session_set_input(c->written, r->input_names[i], r->input_tensors[i], err);
    if (status == DQ_OK)
        status = dq_session_run(c->written, err);
    for (size_t i = 0; i < c->value_count && status == DQ_OK; i++) {
        const dq_tensor *tensor = NULL;
        if (dq_session_get_output(c->written, c->values[i].name, &tensor, NULL) == DQ_OK && tensor &&
            dq_tensor_kind(tensor) == DQ_KIND_TENSOR)
            c->values[i].tensor = tensor;
    }
    return status;
}

static bool same_type(const dq_tensor *a, const dq_tensor *b)
{
    const size_t rank = dq_tensor_rank(a);
    return dq_tensor_dtype(a) == dq_tensor_dtype(b) && rank == dq_tensor_rank(b) &&
           (!rank || !memcmp(dq_tensor_dims(a), dq_tensor_dims(b), rank * sizeof(int64_t)));
}

/* Reference values take the place of those as written; without one, the graph cannot be cut at a value. */
static dq_status take_references(insight_cuts *c, dq_error *err)
{
    const insight_reduce_request *r = c->request;
    size_t found = 0;
    for (size_t i = 0; i < r->ref_count; i++) {
        char got[IO_TYPE_TEXT], has[IO_TYPE_TEXT];
        const dq_tensor *ref = r->ref_tensors[i];
        insight_cut_value *value = find_value(c, r->ref_names[i]);
        if (!value || !value->tensor)
            continue;
        if (!same_type(ref, value->tensor))
            return io_fail(err, DQ_BAD_INPUT, "array '%s' is %s, expected %s", r->ref_names[i],
                           io_type_text(dq_tensor_dtype(ref), dq_tensor_rank(ref), dq_tensor_dims(ref), got),
                           io_type_text(dq_tensor_dtype(value->tensor), dq_tensor_rank(value->tensor),
                                        dq_tensor_dims(value->tensor), has));
        value->ref = ref;
        found++;
    }
    return found ? DQ_OK
                 : io_fail(err, DQ_BAD_INPUT, "none of the %zu arrays has the name of a node's result",
                           r->ref_count);
}

dq_status insight_cuts_open(const insight_reduce_request *r, insight_cuts *c, dq_error *err)
{
    c->request = r;
    dq_status status = model_edit_open(r->bytes, r->size, &c->edit, err);
    if (status != DQ_OK)
        return status;
    c->node_count = model_cut_node_count(c->edit);
    c->nodes = insight_alloc(&c->pool, c->node_count, sizeof *c->nodes);
    c->target = insight_alloc(&c->pool, c->node_count, sizeof *c->target);
    model_node *nodes = calloc(c->node_count + 1, sizeof *nodes);
    status = c->nodes && c->target && nodes ? read_graph(c, nodes, err) : io_no_memory(err);
    free(nodes);
    c->ends_are_quantized = r->against && r->against->no_fuse && !r->options->no_fuse;
    if (status == DQ_OK) {
        find_constants(c);
        status = run_as_written(c, err);
    }
    return status == DQ_OK && !r->against ? take_references(c, err) : status;
}

void insight_cuts_close(insight_cuts *c)
{
    dq_session_free(c->written);
    model_edit_close(c->edit);
    insight_pool_free(&c->pool);
    *c = (insight_cuts){0};
}

/* ---- Sets of nodes ------------------------------------------------------------------------------------- */

bool insight_cuts_can_compare(const insight_cuts *c, const insight_cut_value *value)
{
    return value->tensor && (c->request->against || value->ref) &&
           (!c->ends_are_quantized || value->is_output || io_is_integer(dq_tensor_dtype(value->tensor)));
}

bool insight_cuts_is_comparable(const insight_cuts *c, const insight_cut_node *node)
{
    for (size_t k = 0; k < node->value_count; k++)
        if (node->values[k] && insight_cuts_can_compare(c, node->values[k]))
            return true;
    return false;
}

/* Whether a candidate may have the value as an input. */
static bool can_feed(const insight_cuts *c, const insight_cut_value *value)
{
    return value->tensor && strcmp(c->nodes[value->node].op_type, "Constant") != 0 &&
           (c->request->against || value->ref || value->is_constant);
}

void insight_cuts_complete(const insight_cuts *c, bool *keep)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = c->node_count; i-- > 0;) /* producers come first: mostly one pass */
            for (size_t k = 0; keep[i] && k < c->nodes[i].read_count; k++) {
                const insight_cut_value *value = c->nodes[i].reads[k];
                if (keep[value->node] || can_feed(c, value))
                    continue;
                keep[value->node] = true;
                changed = changed || value->node > i;
            }
    }
}

void insight_cuts_aim_at_ends(insight_cuts *c, bool *keep)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < c->node_count; i++)
            c->target[i] = keep[i];
        for (size_t i = 0; i < c->node_count; i++)
            for (size_t k = 0; keep[i] && k < c->nodes[i].read_count; k++)
                c->target[c->nodes[i].reads[k]->node] = false;
        for (size_t i = 0; i < c->node_count; i++) {
            if (!c->target[i] || insight_cuts_is_comparable(c, &c->nodes[i]))
                continue;
            keep[i] = c->target[i] = false;
            changed = true;
        }
    }
}

void insight_cuts_prune(const insight_cuts *c, bool *keep)
{
    bool changed = true;
    bool *needed = calloc(c->node_count + 1, sizeof *needed);
    if (!needed)
        return; /* a larger candidate is valid, too */
    for (size_t i = 0; i < c->node_count; i++)
        needed[i] = keep[i] && c->target[i];
    while (changed) {
        changed = false;
        for (size_t i = c->node_count; i-- > 0;)
            for (size_t k = 0; needed[i] && k < c->nodes[i].read_count; k++) {
                const size_t from = c->nodes[i].reads[k]->node;
                if (!keep[from] || needed[from])
                    continue;
                needed[from] = true;
                changed = changed || from > i;
            }
    }
    memcpy(keep, needed, c->node_count * sizeof *keep);
    free(needed);
}

size_t insight_cuts_count(const insight_cuts *c, const bool *keep)
{
    size_t count = 0;
    for (size_t i = 0; i < c->node_count; i++)
        count += keep[i];
    return count;
}
