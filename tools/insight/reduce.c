/* SPDX-License-Identifier: Apache-2.0 */
/* The search of dqrun reduce. Each candidate is a model of its own that runs in both ways:
 *
 *     nodes of the file   0 … k            end:    the least k whose first k nodes differ, by bisection
 *                         a … k            start:  the nearest 1, 2, 4 … nodes before the end
 *                         a … c … k        middle: blocks of halves, quarters … left out (delta debugging)
 *
 * What left-out nodes compute is an input, with the value of the graph as written or the reference. */
#include "insight/reduce.h"

#include "io/common.h"

#include <stdlib.h>
#include <string.h>

typedef struct search {
    const insight_reduce_request *request;
    insight_cuts *cuts;
    insight_reduction *out;
    const char *phase;
    bool *keep;       /* the candidate that is made */
    size_t *distance; /* of each node to the targets, in nodes; SIZE_MAX: none */
    size_t *order;    /* nodes that may be left out, the nearest first */
    size_t order_count;
} search;

/* ---- Candidates ---------------------------------------------------------------------------------------- */

/* Runs s->keep. Where it differs it becomes the best one. */
static dq_status try_candidate(search *s, bool *differs, dq_error *err)
{
    insight_trial trial = {0};
    dq_status status = insight_trial_run(s->cuts, s->keep, &trial, err);
    *differs = status == DQ_OK && trial.differs;
    if (status == DQ_OK) {
        s->out->trials++;
        if (s->request->report)
            s->request->report(s->request->arg, &(insight_reduce_step){s->phase, trial.nodes, trial.differs,
                                                                       trial.difference});
    }
    if (*differs) {
        insight_trial_close(&s->out->best);
        s->out->best = trial;
    } else {
        insight_trial_close(&trial);
    }
    return status;
}

/* The same for these nodes and those that the targets need with them. A candidate that is as large as the
 * best one is not run. */
static dq_status try_smaller(search *s, bool *differs, dq_error *err)
{
    *differs = false;
    insight_cuts_complete(s->cuts, s->keep);
    insight_cuts_prune(s->cuts, s->keep);
    return insight_cuts_count(s->cuts, s->keep) < s->out->best.nodes ? try_candidate(s, differs, err) : DQ_OK;
}

/* ---- The end ------------------------------------------------------------------------------------------- */

static dq_status try_first(search *s, size_t count, bool *differs, dq_error *err)
{
    for (size_t i = 0; i < s->cuts->node_count; i++)
        s->keep[i] = i < count;
    insight_cuts_complete(s->cuts, s->keep);
    insight_cuts_aim_at_ends(s->cuts, s->keep);
    insight_cuts_prune(s->cuts, s->keep);
    return try_candidate(s, differs, err);
}

static void aim_at(search *s, size_t node)
{
    memset(s->cuts->target, 0, s->cuts->node_count * sizeof *s->cuts->target);
    s->cuts->target[node] = true;
}

/* Keeps all that one node needs, and makes it the target. */
static dq_status try_node(search *s, size_t node, bool *differs, dq_error *err)
{
    aim_at(s, node);
    for (size_t i = 0; i < s->cuts->node_count; i++)
        s->keep[i] = true;
    insight_cuts_prune(s->cuts, s->keep);
    return try_candidate(s, differs, err);
}

/* With references: the first value as written that differs from its own; node_count: there is none. */
static size_t first_wrong_node(const search *s)
{
    size_t first = s->cuts->node_count;
    for (size_t i = 0; i < s->cuts->value_count; i++) {
        const insight_cut_value *v = &s->cuts->values[i];
        compare_result result;
        if (!v->ref || v->node >= first)
            continue;
        compare_tensors(v->tensor, v->ref, &s->request->tolerance, &result);
        first = result.same ? first : v->node;
    }
    return first;
}

/* The value of the output in which the best candidate differs. */
static const insight_cut_value *different_value(const search *s)
{
    const insight_trial *best = &s->out->best;
    for (size_t i = 0; i < s->cuts->value_count; i++)
        if (!strcmp(s->cuts->values[i].name, best->output_names[best->different]))
            return &s->cuts->values[i];
    return NULL; /* not reached: outputs are values of the graph */
}

/* The first k nodes that differ, by bisection: then the node whose result differs, and what it needs. */
static dq_status find_end(search *s, dq_error *err)
{
    size_t low = 0, high = s->cuts->node_count;
    bool differs = false;
    dq_status status = try_first(s, high, &differs, err);
    while (status == DQ_OK && s->out->best.differs && high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        status = try_first(s, middle, &differs, err);
        if (differs)
            high = middle;
        else
            low = middle;
    }
    if (status != DQ_OK || !s->out->best.differs)
        return status;
    const insight_trial *best = &s->out->best;
    for (size_t i = 0; i < s->cuts->node_count; i++)
        s->keep[i] = best->keep[i];
    aim_at(s, different_value(s)->node);
    insight_cuts_prune(s->cuts, s->keep);
    differs = best->output_count == 1 && insight_cuts_count(s->cuts, s->keep) == best->nodes;
    status = differs ? DQ_OK : try_candidate(s, &differs, err);
    if (status == DQ_OK && !differs) { /* Only together with other ends. */
        for (size_t i = 0; i < s->cuts->node_count; i++)
            s->keep[i] = s->out->best.keep[i];
        insight_cuts_aim_at_ends(s->cuts, s->keep);
    }
    return status;
}

/* ---- The start and the middle -------------------------------------------------------------------------- */

/* Lists the nodes of the best candidate that may be left out, the nearest to a target first. */
static void list_order(search *s)
{
    const insight_cuts *c = s->cuts;
    const bool *keep = s->out->best.keep;
    size_t *queue = s->order, begin = 0, end = 0;
    for (size_t i = 0; i < c->node_count; i++) {
        s->distance[i] = keep[i] && c->target[i] ? 0 : SIZE_MAX;
        if (!s->distance[i])
            queue[end++] = i;
    }
    while (begin < end) {
        const insight_cut_node *node = &c->nodes[queue[begin]];
        for (size_t k = 0; k < node->read_count; k++) {
            const size_t from = node->reads[k]->node;
            if (!keep[from] || s->distance[from] != SIZE_MAX)
                continue;
            s->distance[from] = s->distance[queue[begin]] + 1;
            queue[end++] = from;
        }
        begin++;
    }
    s->order_count = 0;
    for (size_t i = 0; i < end; i++)
        if (!c->target[queue[i]] && strcmp(c->nodes[queue[i]].op_type, "Constant") != 0)
            s->order[s->order_count++] = queue[i];
}

/* The targets, and the nodes of the list without those from `begin` to `end`. */
static void keep_without(search *s, size_t begin, size_t end)
{
    memcpy(s->keep, s->cuts->target, s->cuts->node_count * sizeof *s->keep);
    for (size_t i = 0; i < s->order_count; i++)
        if (i < begin || i >= end)
            s->keep[s->order[i]] = true;
}

static dq_status find_start(search *s, dq_error *err)
{
    bool differs = false;
    dq_status status = DQ_OK;
    s->phase = "start";
    list_order(s);
    for (size_t count = 0; count < s->order_count && status == DQ_OK && !differs;
         count = count ? 2 * count : 1) {
        keep_without(s, count, s->order_count);
        status = try_smaller(s, &differs, err);
    }
    return status;
}

static dq_status leave_out(search *s, size_t block, bool *any, dq_error *err)
{
    dq_status status = DQ_OK;
    *any = false;
    for (size_t end = s->order_count; end > 0 && status == DQ_OK;) { /* the farthest first */
        bool differs = false;
        const size_t begin = end > block ? end - block : 0;
        keep_without(s, begin, end);
        status = try_smaller(s, &differs, err);
        if (differs) {
            list_order(s);
            *any = true;
        }
        end = begin < s->order_count ? begin : s->order_count;
    }
    return status;
}

static dq_status find_middle(search *s, dq_error *err)
{
    dq_status status = DQ_OK;
    bool any = true;
    s->phase = "middle";
    list_order(s);
    for (size_t block = (s->order_count + 1) / 2; block && status == DQ_OK;) {
        status = leave_out(s, block, &any, err);
        if (block == 1 && !any)
            break;
        block = block > 1 ? (block + 1) / 2 : 1;
        block = s->order_count ? block : 0;
    }
    return status;
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

/* Whether the outputs of the model itself differ. */
static dq_status model_differs(const insight_reduce_request *r, bool *differs, dq_error *err)
{
    const insight_inputs inputs = {r->input_count, r->input_names, r->input_tensors};
    dq_session *session = NULL, *against = NULL;
    dq_error why = {0};
    *differs = false;
    dq_status status = insight_run_on(r->model, r->against, inputs, &against, err);
    if (status == DQ_OK) {
        status = insight_run_on(r->model, r->options, inputs, &session, &why);
        if (status == DQ_OUT_OF_MEMORY || status == DQ_CANCELLED)
            *err = why;
        else if (status != DQ_OK) {
            *differs = true;
            status = DQ_OK;
        }
    }
    for (size_t i = 0; i < dq_model_output_count(r->model) && status == DQ_OK && !*differs; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        const dq_tensor *got = NULL, *expected = NULL;
        compare_result result;
        status = dq_model_output(r->model, i, &info, err);
        if (status == DQ_OK)
            status = dq_session_get_output(session, info.name, &got, err);
        if (status == DQ_OK)
            status = dq_session_get_output(against, info.name, &expected, err);
        if (status != DQ_OK)
            break;
        compare_tensors(got, expected, &r->tolerance, &result);
        *differs = !result.same;
    }
    dq_session_free(session);
    dq_session_free(against);
    return status;
}

static dq_status list_operators(insight_reduction *out, const insight_cuts *c, dq_error *err)
{
    size_t count = 0;
    out->operators = calloc(out->best.nodes + 1, sizeof *out->operators);
    if (!out->operators)
        return io_no_memory(err);
    for (size_t i = 0; i < c->node_count; i++)
        if (out->best.keep[i])
            out->operators[count++] = c->nodes[i].op_type;
    return DQ_OK;
}

static dq_status run_search(search *s, dq_error *err)
{
    const insight_reduce_request *r = s->request;
    bool differs = !r->against;
    s->phase = "end";
    dq_status status = r->against ? model_differs(r, &differs, err) : DQ_OK;
    if (status == DQ_OK && !r->against) {
        const size_t wrong = first_wrong_node(s);
        if (wrong < s->cuts->node_count)
            status = try_node(s, wrong, &differs, err);
    }
    if (status == DQ_OK && (differs || !r->against) && !s->out->best.differs)
        status = find_end(s, err);
    const bool found = status == DQ_OK && s->out->best.differs;
    if (status == DQ_OK && differs && s->cuts->ends_are_quantized &&
        !(found && io_is_integer(dq_tensor_dtype(different_value(s)->tensor)))) {
        /* No quantized value differs: the difference is among floats. */
        s->cuts->ends_are_quantized = false;
        status = find_end(s, err);
    }
    if (status != DQ_OK || !s->out->best.differs)
        return status == DQ_OK && differs && r->against
                   ? io_fail(err, DQ_UNSUPPORTED,
                             "the outputs differ, and no part of the graph does that gives its results as "
                             "outputs: there is nothing to reduce")
                   : status;
    status = find_start(s, err);
    if (status == DQ_OK)
        status = find_middle(s, err);
    s->out->differs = status == DQ_OK;
    return status == DQ_OK ? list_operators(s->out, s->cuts, err) : status;
}

dq_status insight_reduce(const insight_reduce_request *request, insight_reduction *out, dq_error *err)
{
    search s = {.request = request, .out = out};
    out->cuts = s.cuts = calloc(1, sizeof *s.cuts);
    if (!s.cuts)
        return io_no_memory(err);
    dq_status status = insight_cuts_open(request, s.cuts, err);
    out->nodes_before = s.cuts->node_count;
    s.keep = calloc(s.cuts->node_count + 1, sizeof *s.keep);
    s.distance = calloc(s.cuts->node_count + 1, sizeof *s.distance);
    s.order = calloc(s.cuts->node_count + 1, sizeof *s.order);
    if (status == DQ_OK)
        status = s.keep && s.distance && s.order ? run_search(&s, err) : io_no_memory(err);
    free(s.keep);
    free(s.distance);
    free(s.order);
    return status;
}

void insight_reduction_free(insight_reduction *r)
{
    insight_trial_close(&r->best);
    free(r->operators);
    if (r->cuts)
        insight_cuts_close(r->cuts);
    free(r->cuts);
    *r = (insight_reduction){0};
}
