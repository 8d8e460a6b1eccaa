/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of any plan that a session shows, for test_session_inspect.c and inspect_models.c. A check
 * writes its finding to `fault` and is false. */
#ifndef DQ_TESTS_INSPECTED_H
#define DQ_TESTS_INSPECTED_H

#include <dqrun/dqrun.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char fault[1536];

#define HOLDS(condition, ...)                                                                                \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            snprintf(fault, sizeof fault, __VA_ARGS__);                                                      \
            return false;                                                                                    \
        }                                                                                                    \
    } while (0)

#define WORKS(call) HOLDS((call) == DQ_OK, "%s", inspect_err.message)

static dq_error inspect_err;

/* ---- Steps --------------------------------------------------------------------------------------------- */

/* The main graph as a user sees it, with what the tests count for each node. */
typedef struct inspected {
    dq_graph_info graph;
    unsigned *covered; /* by position: how many steps cover the node */
    bool *needed;      /* some output needs it */
    bool *constant;    /* it follows from constants, or from shapes alone */
} inspected;

static inline size_t position_of(const inspected *g, const dq_node *node)
{
    size_t i = 0;
    while (i < g->graph.node_count && g->graph.nodes[i] != node)
        i++;
    return i;
}

static inline bool is_constant(const inspected *g, const dq_value *v)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    if (!v || dq_value_describe(v, &info, &inspect_err) != DQ_OK)
        return true;
    if (info.initializer) /* also as the default of an input: nobody gives another value here */
        return true;
    const size_t at = info.producer ? position_of(g, info.producer) : g->graph.node_count;
    return at < g->graph.node_count && g->constant[at];
}

/* The values that a node reads, those of graphs inside it too, make their producers needed. */
static inline void need(const inspected *g, const dq_value *v)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    if (!v || dq_value_describe(v, &info, &inspect_err) != DQ_OK || !info.producer)
        return;
    const size_t at = position_of(g, info.producer);
    if (at < g->graph.node_count)
        g->needed[at] = true;
}

static inline void need_inputs(const inspected *g, const dq_node *node);

static inline void need_graph(const inspected *g, const dq_graph *graph)
{
    dq_graph_info inner = DQ_GRAPH_INFO_INIT;
    dq_graph_describe(graph, &inner, &inspect_err);
    for (size_t i = 0; i < inner.node_count; i++)
        need_inputs(g, inner.nodes[i]);
    for (size_t i = 0; i < inner.output_count; i++)
        need(g, inner.outputs[i]);
}

static inline void need_inputs(const inspected *g, const dq_node *node)
{
    dq_node_info info = DQ_NODE_INFO_INIT;
    dq_node_describe(node, &info, &inspect_err);
    for (size_t i = 0; i < info.input_count; i++)
        need(g, info.inputs[i]);
    for (size_t i = 0; i < info.attribute_count; i++) {
        dq_attribute a = DQ_ATTRIBUTE_INIT;
        dq_node_attribute(node, i, &a, &inspect_err);
        if (a.kind == DQ_ATTRIBUTE_GRAPH)
            need_graph(g, a.graph);
    }
}

static inline bool look_at_graph(const dq_model *model, inspected *g)
{
    dq_model_info info = DQ_MODEL_INFO_INIT;
    *g = (inspected){.graph = DQ_GRAPH_INFO_INIT};
    WORKS(dq_model_describe(model, &info, &inspect_err));
    WORKS(dq_graph_describe(info.graph, &g->graph, &inspect_err));
    const size_t count = g->graph.node_count + 1;
    g->covered = calloc(count, sizeof *g->covered);
    g->needed = calloc(count, sizeof *g->needed);
    g->constant = calloc(count, sizeof *g->constant);
    HOLDS(g->covered && g->needed && g->constant, "out of memory");
    for (size_t n = 0; n < g->graph.node_count; n++) {
        dq_node_info node = DQ_NODE_INFO_INIT;
        WORKS(dq_node_describe(g->graph.nodes[n], &node, &inspect_err));
        bool constant = true;
        for (size_t i = 0; i < node.input_count; i++)
            constant = constant && is_constant(g, node.inputs[i]);
        g->constant[n] = constant || strcmp(node.op_type, "Shape") == 0 || strcmp(node.op_type, "Size") == 0;
    }
    for (size_t i = 0; i < g->graph.output_count; i++)
        need(g, g->graph.outputs[i]);
    for (size_t n = g->graph.node_count; n-- > 0;)
        if (g->needed[n])
            need_inputs(g, g->graph.nodes[n]);
    return true;
}

static inline bool count_covered(dq_session *session, inspected *g)
{
    const size_t steps = dq_session_step_count(session);
    for (size_t i = 0; i < steps; i++) {
        dq_step_info step = DQ_STEP_INFO_INIT;
        dq_node_info node = DQ_NODE_INFO_INIT;
        WORKS(dq_session_step(session, i, &step, &inspect_err));
        WORKS(dq_node_describe(step.node, &node, &inspect_err));
        HOLDS(strstr(step.op, node.op_type), "step %zu: op '%s' of a %s", i, step.op, node.op_type);
        bool own = node.synthetic;
        for (size_t k = 0; k < step.written_count; k++) {
            const size_t at = position_of(g, step.written[k]);
            HOLDS(at < g->graph.node_count, "step %zu covers a node that is not of the model", i);
            g->covered[at]++;
            own = own || step.written[k] == step.node;
        }
        HOLDS(own, "step %zu (%s %s) does not cover its own node", i, step.op, node.name);
    }
    return true;
}

/* Each node that is needed and not constant is covered by one step, if there are steps; no other by more. */
static inline bool check_steps(const dq_model *model, dq_session *session)
{
    inspected g;
    bool good = look_at_graph(model, &g) && count_covered(session, &g);
    const size_t steps = dq_session_step_count(session);
    for (size_t n = 0; good && n < g.graph.node_count; n++) {
        dq_node_info node = DQ_NODE_INFO_INIT;
        dq_node_describe(g.graph.nodes[n], &node, &inspect_err);
        const bool expected = g.needed[n] && !g.constant[n] && steps;
        good = g.covered[n] <= 1 && (g.covered[n] == 1 || !expected) && (g.needed[n] || !g.covered[n]);
        if (!good)
            snprintf(fault, sizeof fault, "node %zu (%s '%s', %s%s) is covered by %u steps", n, node.op_type,
                     node.name, g.needed[n] ? "needed" : "not needed", g.constant[n] ? ", constant" : "",
                     g.covered[n]);
    }
    free(g.covered);
    free(g.needed);
    free(g.constant);
    return good;
}

/* ---- Lifetimes ----------------------------------------------------------------------------------------- */

typedef struct lifetimes {
    dq_lifetime *list;
    size_t count, capacity;
} lifetimes;

static inline int add_lifetime(void *arg, const dq_lifetime *l)
{
    lifetimes *all = arg;
    if (all->count == all->capacity) {
        all->capacity = all->capacity ? all->capacity * 2 : 64;
        all->list = realloc(all->list, all->capacity * sizeof *all->list);
    }
    all->list[all->count++] = *l;
    return 0;
}

static inline bool check_pairs(const lifetimes *all, const dq_memory_info *memory, size_t steps)
{
    for (size_t i = 0; i < all->count; i++) {
        const dq_lifetime *a = &all->list[i];
        HOLDS(a->size == sizeof *a && a->value && a->memory_of, "lifetime %zu is incomplete", i);
        HOLDS(a->offset <= memory->activation_bytes && a->bytes <= memory->activation_bytes - a->offset,
              "lifetime %zu ends at byte %llu of %llu", i, (unsigned long long)(a->offset + a->bytes),
              (unsigned long long)memory->activation_bytes);
        HOLDS(a->first_step <= a->last_step && a->last_step <= steps,
              "lifetime %zu is of steps %zu to %zu of %zu", i, a->first_step, a->last_step, steps);
        HOLDS(i == 0 || all->list[i - 1].first_step <= a->first_step, "lifetime %zu is out of order", i);
        for (size_t k = 0; k < i; k++) {
            const dq_lifetime *b = &all->list[k];
            const bool together = a->first_step <= b->last_step && b->first_step <= a->last_step,
                       overlap = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
            HOLDS(!together || !overlap || a->memory_of == b->memory_of,
                  "lifetimes %zu and %zu overlap: steps %zu-%zu, %zu-%zu, bytes %llu+%llu, %llu+%llu", k, i,
                  b->first_step, b->last_step, a->first_step, a->last_step, (unsigned long long)b->offset,
                  (unsigned long long)b->bytes, (unsigned long long)a->offset, (unsigned long long)a->bytes);
        }
    }
    return true;
}

/* Values that live at the same time share no bytes, unless one has the other's memory. */
static inline bool check_lifetimes(const dq_session *session, size_t *count)
{
    lifetimes all = {0};
    dq_memory_info memory = DQ_MEMORY_INFO_INIT;
    WORKS(dq_session_memory(session, &memory, &inspect_err));
    WORKS(dq_session_lifetimes(session, add_lifetime, &all, &inspect_err));
    const bool good = check_pairs(&all, &memory, dq_session_step_count(session));
    *count = all.count;
    free(all.list);
    return good;
}

/* ---- Shapes -------------------------------------------------------------------------------------------- */

typedef struct told {
    const dq_session *session;
    size_t count, shaped;
    bool good;
} told;

/* Holds what was told of an output against the tensor that the last run gave. */
static inline bool same_as_run(told *t, const dq_value_info *info)
{
    const dq_tensor *y = NULL;
    WORKS(dq_session_get_output((dq_session *)(uintptr_t)t->session, info->name, &y, &inspect_err));
    HOLDS(info->kind == dq_tensor_kind(y), "output '%s' is told to be of kind %d and is of %d", info->name,
          (int)info->kind, (int)dq_tensor_kind(y));
    const bool tensor = info->kind == DQ_KIND_TENSOR;
    HOLDS((tensor ? info->dtype : info->item_dtype) == dq_tensor_dtype(y), "output '%s' is told to be %s",
          info->name, info->type);
    if (!tensor || !info->has_shape)
        return true;
    t->shaped++;
    HOLDS(info->rank == dq_tensor_rank(y), "output '%s' is told to have rank %zu and has %zu", info->name,
          info->rank, dq_tensor_rank(y));
    for (size_t d = 0; d < info->rank; d++)
        HOLDS(info->dims[d] == dq_tensor_dims(y)[d], "output '%s' is told to have dimension %zu %lld",
              info->name, d, (long long)info->dims[d]);
    return true;
}

static inline int compare_output(void *arg, const dq_value_info *info)
{
    told *t = arg;
    t->count++;
    t->good = same_as_run(t, info);
    return !t->good;
}

/* `told_by` tells what `ran`, of the same model and options, gave for inputs of these shapes. */
static inline bool check_told(dq_session *told_by, dq_session *ran, size_t count, const dq_shape *shapes,
                              size_t *shaped)
{
    told t = {.session = ran, .good = true};
    dq_memory_info told_memory = DQ_MEMORY_INFO_INIT, memory = DQ_MEMORY_INFO_INIT;
    WORKS(dq_session_infer(told_by, count, shapes, compare_output, &t, &told_memory, &inspect_err));
    WORKS(dq_session_memory(ran, &memory, &inspect_err));
    HOLDS(!t.good || told_memory.activation_bytes == memory.activation_bytes,
          "told %llu bytes of activations, the run has %llu",
          (unsigned long long)told_memory.activation_bytes, (unsigned long long)memory.activation_bytes);
    *shaped += t.shaped;
    return t.good;
}

#endif
