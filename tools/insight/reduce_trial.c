/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a model, run in two ways. */
#include "insight/reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

dq_status insight_run_on(dq_model *model, const dq_session_options *options, insight_inputs inputs,
                         dq_session **session, dq_error *err)
{
    dq_status status = dq_session_create(model, options, session, err);
    for (size_t i = 0; i < inputs.count && status == DQ_OK; i++)
        status = dq_session_set_input(*session, inputs.names[i], inputs.tensors[i], err);
    return status == DQ_OK ? dq_session_run(*session, err) : status;
}

/* ---- Edges --------------------------------------------------------------------------------------------- */

typedef struct edges {
    size_t input_count, output_count;
    model_cut_value *inputs, *outputs;
} edges;

static bool is_read(const insight_cuts *c, const bool *keep, const insight_cut_value *value)
{
    for (size_t i = 0; i < c->node_count; i++)
        for (size_t k = 0; keep[i] && k < c->nodes[i].read_count; k++)
            if (c->nodes[i].reads[k] == value)
                return true;
    return false;
}

static bool has_input(const edges *e, const char *name)
{
    for (size_t i = 0; i < e->input_count; i++)
        if (!strcmp(e->inputs[i].name, name))
            return true;
    return false;
}

static void find_inputs(const insight_cuts *c, const bool *keep, edges *e)
{
    for (size_t i = 0; i < c->node_count; i++)
        for (size_t k = 0; keep[i] && k < c->nodes[i].read_count; k++) {
            const insight_cut_value *v = c->nodes[i].reads[k];
            const dq_tensor *tensor = v->ref ? v->ref : v->tensor;
            if (keep[v->node] || has_input(e, v->name))
                continue;
            e->inputs[e->input_count++] =
                (model_cut_value){v->name, tensor, v->is_constant && dq_tensor_dtype(tensor) != DQ_STRING};
        }
}

/* The results of targets that can be compared. Those that the model does not use are left out unless there
 * are no others. */
static void find_outputs(const insight_cuts *c, const bool *keep, edges *e)
{
    for (size_t i = 0; i < c->node_count; i++) {
        const insight_cut_node *node = &c->nodes[i];
        const size_t before = e->output_count;
        for (int unused = 0; unused < 2 && e->output_count == before && keep[i] && c->target[i]; unused++)
            for (size_t k = 0; k < node->value_count; k++) {
                const insight_cut_value *v = node->values[k];
                if (v && v->used == !unused && insight_cuts_can_compare(c, v) && !is_read(c, keep, v))
                    e->outputs[e->output_count++] =
                        (model_cut_value){v->name, v->ref ? v->ref : v->tensor, false};
            }
    }
}

static dq_status find_edges(const insight_cuts *c, const bool *keep, edges *e, dq_error *err)
{
    size_t reads = 1;
    for (size_t i = 0; i < c->node_count; i++)
        reads += keep[i] ? c->nodes[i].read_count : 0;
    e->inputs = calloc(reads, sizeof *e->inputs);
    e->outputs = calloc(c->value_count + 1, sizeof *e->outputs);
    if (!e->inputs || !e->outputs)
        return io_no_memory(err);
    find_inputs(c, keep, e);
    find_outputs(c, keep, e);
    return DQ_OK;
}

/* ---- Running ------------------------------------------------------------------------------------------- */

/* Fills the inputs and outputs of the trial: edges, and inputs of the graph that kept nodes read. */
static dq_status bind(const insight_cuts *c, const bool *keep, const edges *e, insight_trial *t,
                      dq_error *err)
{
    const insight_reduce_request *r = c->request;
    const size_t inputs = e->input_count + r->input_count + 1;
    t->input_names = calloc(inputs, sizeof *t->input_names);
    t->input_tensors = calloc(inputs, sizeof *t->input_tensors);
    t->output_names = calloc(e->output_count + 1, sizeof *t->output_names);
    t->expected = calloc(e->output_count + 1, sizeof *t->expected);
    if (!t->input_names || !t->input_tensors || !t->output_names || !t->expected)
        return io_no_memory(err);
    for (size_t i = 0; i < r->input_count; i++) {
        bool read = false;
        for (size_t n = 0; n < c->node_count && !read; n++)
            for (const char **name = c->nodes[n].outer; keep[n] && *name && !read; name++)
                read = !strcmp(*name, r->input_names[i]);
        if (!read)
            continue;
        t->input_names[t->input_count] = r->input_names[i];
        t->input_tensors[t->input_count++] = r->input_tensors[i];
    }
    for (size_t i = 0; i < e->input_count; i++) {
        if (e->inputs[i].is_constant)
            continue;
        t->input_names[t->input_count] = e->inputs[i].name;
        t->input_tensors[t->input_count++] = e->inputs[i].tensor;
    }
    for (size_t i = 0; i < e->output_count; i++) {
        t->output_names[i] = e->outputs[i].name;
        t->expected[i] = e->outputs[i].tensor;
    }
    t->output_count = e->output_count;
    return DQ_OK;
}

static void say(insight_trial *t, const char *name, const char *what)
{
    snprintf(t->difference, sizeof t->difference, "%.300s%s%.640s", name, *name ? ": " : "", what);
}

static dq_status compare(const insight_cuts *c, insight_trial *t, dq_error *err)
{
    dq_status status = DQ_OK;
    t->ran = true;
    for (size_t i = 0; i < t->output_count && status == DQ_OK; i++) {
        const dq_tensor *got = NULL;
        compare_result result;
        if (t->against)
            status = dq_session_get_output(t->against, t->output_names[i], &t->expected[i], err);
        if (status == DQ_OK)
            status = dq_session_get_output(t->session, t->output_names[i], &got, err);
        if (status != DQ_OK)
            return status;
        compare_tensors(got, t->expected[i], &c->request->tolerance, &result);
        if (result.same || t->differs)
            continue;
        t->differs = true;
        t->different = i;
        say(t, t->output_names[i], result.message);
    }
    return status;
}

/* Whether the status says something about the candidate, not about the process. */
static bool is_of_candidate(dq_status status)
{
    return status != DQ_OK && status != DQ_OUT_OF_MEMORY && status != DQ_CANCELLED;
}

static dq_status load_and_run(const insight_cuts *c, insight_trial *t, dq_error *err)
{
    const insight_reduce_request *r = c->request;
    dq_load_options load = DQ_LOAD_OPTIONS_INIT;
    load.schemas = r->schemas;
    load.limits = r->limits;
    const insight_inputs inputs = {t->input_count, t->input_names, t->input_tensors};
    dq_status status = dq_model_load_memory(t->bytes, t->size, "the part", &load, &t->model, err);
    if (status == DQ_OK && r->against)
        status = insight_run_on(t->model, r->against, inputs, &t->against, err);
    if (status != DQ_OK)
        return status;
    status = insight_run_on(t->model, r->options, inputs, &t->session, err);
    if (status == DQ_OK)
        return compare(c, t, err);
    if (r->against && is_of_candidate(status)) { /* One way works and the other fails. */
        t->ran = t->differs = true;
        say(t, "", err->message);
        status = DQ_OK;
        for (size_t i = 0; i < t->output_count && status == DQ_OK; i++)
            status = dq_session_get_output(t->against, t->output_names[i], &t->expected[i], err);
    }
    return status;
}

dq_status insight_trial_run(const insight_cuts *c, const bool *keep, insight_trial *t, dq_error *err)
{
    edges e = {0};
    dq_error why = {0};
    t->nodes = insight_cuts_count(c, keep);
    t->keep = calloc(c->node_count + 1, sizeof *t->keep);
    dq_status status = t->keep ? find_edges(c, keep, &e, err) : io_no_memory(err);
    if (status == DQ_OK) {
        memcpy(t->keep, keep, c->node_count * sizeof *keep);
        status = bind(c, keep, &e, t, err);
    }
    if (status == DQ_OK && e.output_count) {
        const model_cut cut = {keep, e.input_count, e.output_count, e.inputs, e.outputs};
        status = model_cut_pack(c->edit, &cut, c->request->model, &t->bytes, &t->size, &why);
        if (status == DQ_OK)
            status = load_and_run(c, t, &why);
        if (is_of_candidate(status)) {
            say(t, "", why.message);
            status = DQ_OK;
        } else if (status != DQ_OK && err) {
            *err = why;
        }
    }
    free(e.inputs);
    free(e.outputs);
    return status;
}

void insight_trial_close(insight_trial *t)
{
    dq_session_free(t->session);
    dq_session_free(t->against);
    dq_model_free(t->model);
    free(t->bytes);
    free(t->keep);
    free(t->input_names);
    free(t->input_tensors);
    free(t->output_names);
    free(t->expected);
    *t = (insight_trial){0};
}
