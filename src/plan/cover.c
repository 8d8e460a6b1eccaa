/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes of the model each step of a plan covers. */
#include "plan/batch_tiling.h"
#include "plan/inspect.h"
#include "rewrite/match.h"

#include <string.h>

#define NO_STEP UINT32_MAX

typedef struct cover {
    const dq_plan *whole; /* The plan of all nodes and the whole batch. */
    const dq_graph *graph;
    dq_run_steps *out;
    /* By position in whole->all: the step of the node itself or of a neighbor. */
    uint32_t *steps;
    uint32_t *producer_of; /* By slot of `whole`: 1 + position in whole->all of its producer; 0: none. */
    /* By position in the graph: */
    uint32_t *owner;  /* The step that covers the node. */
    uint8_t *rank;    /* Rank of the claim that determined the owner; the lowest wins. */
    uint32_t *reader; /* The first step that reads its results. */
    bool *listed;     /* The node itself is in the plan. */
    bool *needed;     /* By index of a value in the graph. */
    uint32_t at;      /* The current position. */
} cover;

static bool is_written(const cover *c, const dq_node *node)
{
    return node->position < c->graph->node_count && c->graph->nodes[node->position] == node;
}

/* The node of the model that produces the value; NULL: none. */
static const dq_node *model_producer(const cover *c, const dq_value *v)
{
    return v && v->graph == c->graph && v->id < c->graph->ir->value_count ? c->graph->all[v->index]->producer
                                                                          : NULL;
}

/* ---- Steps -------------------------------------------------------------------------------------------- */

/* Position in whole->all of the step of the node at that position of the list. */
static uint32_t find(const dq_plan *whole, uint32_t position)
{
    uint32_t low = 0, high = whole->all_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (whole->all[middle].position < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void measure(const dq_op_call *whole, dq_run_step *step)
{
    step->macs = dq_call_macs(whole, step->work);
    step->bytes = dq_call_bytes(whole);
}

static void add_steps(cover *c, const dq_plan *plan, uint32_t first_position)
{
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const dq_step *step = plan->steps[i];
        const uint32_t position = first_position + step->position;
        c->steps[find(c->whole, position)] = c->out->count;
        c->out->steps[c->out->count++] =
            (dq_run_step){.plan = plan, .step = step, .work = c->whole->works[position]};
        if (!step->dynamic)
            measure(&c->whole->all[find(c->whole, position)].call, &c->out->steps[c->out->count - 1]);
    }
}

static dq_status list_steps(cover *c, const dq_plan *plan, dq_arena *arena, dq_error *err)
{
    const struct dq_batch_tiling *tiling = plan->tiling;
    const dq_plan *first = tiling ? tiling->runners[0].plan : NULL;
    const uint32_t count = plan->step_count + (first ? first->step_count : 0);
    c->out->steps = DQ_NEW_ARRAY(arena, count, dq_run_step);
    if (!c->out->steps)
        return dq_no_memory(err, count * sizeof *c->out->steps, "the steps of a plan");
    if (first)
        add_steps(c, first, 0);
    add_steps(c, plan, tiling ? tiling->node_count : 0);
    return DQ_OK;
}

/* A node without a step belongs to the step of its first input, with which it shares memory … */
static void follow_inputs(cover *c)
{
    for (uint32_t e = 0; e < c->whole->all_count; e++) {
        const dq_step *step = &c->whole->all[e];
        const dq_value *v = dq_node_input(step->node, 0);
        const uint32_t producer_of = v ? c->producer_of[dq_plan_index(c->whole, v)] : 0;
        if (c->steps[e] == NO_STEP && !step->constant && producer_of)
            c->steps[e] = c->steps[producer_of - 1];
        for (uint32_t i = 0; i < step->node->out_count; i++)
            if (step->node->out[i])
                c->producer_of[dq_plan_index(c->whole, step->node->out[i])] = e + 1;
    }
}

static void read_by_entry(void *arg, dq_value *v)
{
    const cover *c = arg;
    const uint32_t producer_of = c->producer_of[dq_plan_index(c->whole, v)];
    if (producer_of && !c->whole->all[producer_of - 1].constant && c->steps[producer_of - 1] == NO_STEP)
        c->steps[producer_of - 1] = c->steps[c->at];
}

/* … else to the step of its first reader: the readers are visited from the last to the first. */
static void follow_readers(cover *c)
{
    for (uint32_t e = c->whole->all_count; e-- > 0;) {
        c->at = e;
        if (c->steps[e] != NO_STEP)
            dq_node_each_use(c->whole->all[e].node, read_by_entry, c);
    }
}

/* ---- Claims of synthetic nodes ----------------------------------------------------------------------- */

/* The rank of a synthetic node's claim to a node of the model. SAME: made for it, with the same operator.
 * GIVES: the node, or one that it replaces, produces a result of the model's node. FOR: made for it. Data
 * movement ranks after all others, because it may only be auxiliary. */
enum { LISTED = 0, SAME = 1, GIVES = 2, FOR = 3, MOVES = 3, UNCLAIMED = UINT8_MAX };

static void claim(cover *c, const dq_node *node, uint32_t step, const dq_node *written, int rank)
{
    if (!written)
        return;
    const bool same = strcmp(node->op_type, written->op_type) == 0;
    if (same && rank == FOR)
        rank = SAME;
    if (!same && dq_match_trait(node, DQ_TRAIT_DATA_MOVEMENT))
        rank += MOVES;
    if (rank < c->rank[written->position]) {
        c->rank[written->position] = (uint8_t)rank;
        c->owner[written->position] = step;
    }
}

static void make_claims(cover *c, const dq_node *node, uint32_t step)
{
    const dq_node *from = node;
    for (; from && !is_written(c, from); from = from->made_for)
        for (uint32_t i = 0; i < from->out_count; i++)
            claim(c, node, step, model_producer(c, from->out[i]), GIVES);
    claim(c, node, step, from, FOR);
}

static void claim_all(cover *c)
{
    for (uint32_t e = 0; e < c->whole->all_count; e++) {
        const dq_node *node = c->whole->all[e].node;
        if (is_written(c, node)) {
            c->listed[node->position] = true;
            c->owner[node->position] = c->steps[e];
            c->rank[node->position] = LISTED;
        } else if (c->steps[e] != NO_STEP) {
            make_claims(c, node, c->steps[e]);
        }
    }
    /* A reshaped plan no longer lists nodes whose constant results do not depend on shapes. */
    for (uint32_t n = 0; n < c->graph->node_count; n++)
        for (uint32_t i = 0; i < c->graph->nodes[n]->out_count; i++) {
            const dq_value *v = c->graph->nodes[n]->out[i];
            c->listed[n] = c->listed[n] || (v && dq_plan_slot(c->whole, v)->where == DQ_AT_CONSTANT);
        }
}

/* ---- The graph as written ----------------------------------------------------------------------------- */

static void read_by_node(void *arg, dq_value *v)
{
    const cover *c = arg;
    const uint32_t step = c->owner[c->at];
    if (v->graph != c->graph)
        return;
    c->needed[v->index] = true;
    if (v->producer && step < c->reader[v->producer->position])
        c->reader[v->producer->position] = step;
}

/* Visits nodes from the last to the first. A node without a claim belongs to its first reader. */
static void follow_graph(cover *c)
{
    for (c->at = c->graph->node_count; c->at-- > 0;) {
        const dq_node *node = c->graph->nodes[c->at];
        bool needed = false;
        for (uint32_t i = 0; i < node->out_count; i++)
            needed = needed || (node->out[i] && c->needed[node->out[i]->index]);
        if (!needed)
            c->owner[c->at] = NO_STEP;
        else if (c->rank[c->at] == UNCLAIMED && !c->listed[c->at])
            c->owner[c->at] = c->reader[c->at];
        if (needed)
            dq_node_each_use(node, read_by_node, c);
    }
}

static dq_status list_written(const cover *c, dq_arena *arena, dq_error *err)
{
    for (uint32_t n = 0; n < c->graph->node_count; n++)
        if (c->owner[n] != NO_STEP)
            c->out->steps[c->owner[n]].written_count++;
    for (uint32_t i = 0; i < c->out->count; i++) {
        dq_run_step *step = &c->out->steps[i];
        step->written = DQ_NEW_ARRAY(arena, step->written_count, const dq_node *);
        if (!step->written)
            return dq_no_memory(err, step->written_count * sizeof *step->written, "the steps of a plan");
        step->written_count = 0;
    }
    for (uint32_t n = 0; n < c->graph->node_count; n++)
        if (c->owner[n] != NO_STEP) {
            dq_run_step *step = &c->out->steps[c->owner[n]];
            step->written[step->written_count++] = c->graph->nodes[n];
        }
    return DQ_OK;
}

static bool reserve_capacity(cover *c, dq_arena *arena)
{
    const uint32_t nodes = c->graph->node_count, entries = c->whole->all_count;
    c->steps = DQ_NEW_ARRAY(arena, entries, uint32_t);
    c->producer_of = DQ_NEW_ARRAY(arena, (size_t)c->whole->slot_count + 1, uint32_t);
    c->owner = DQ_NEW_ARRAY(arena, nodes, uint32_t);
    c->rank = DQ_NEW_ARRAY(arena, nodes, uint8_t);
    c->reader = DQ_NEW_ARRAY(arena, nodes, uint32_t);
    c->listed = DQ_NEW_ARRAY(arena, nodes, bool);
    c->needed = DQ_NEW_ARRAY(arena, c->graph->value_count, bool);
    if (!c->steps || !c->producer_of || !c->owner || !c->rank || !c->reader || !c->listed || !c->needed)
        return false;
    for (uint32_t e = 0; e < entries; e++)
        c->steps[e] = NO_STEP;
    for (uint32_t n = 0; n < nodes; n++) {
        c->owner[n] = c->reader[n] = NO_STEP;
        c->rank[n] = UNCLAIMED;
    }
    return true;
}

dq_status dq_plan_steps(const dq_plan *plan, const dq_value *const *requested, uint32_t requested_count,
                        dq_arena *arena, dq_run_steps *out, dq_error *err)
{
    const dq_plan *whole = plan->tiling ? plan->tiling->shapes : plan;
    dq_arena passing = {0};
    cover c = {.whole = whole, .graph = plan->graph, .out = out};
    *out = (dq_run_steps){0};
    dq_status status =
        reserve_capacity(&c, &passing)
            ? DQ_OK
            : dq_no_memory(err, plan->graph->node_count * sizeof *c.owner, "the steps of a plan");
    if (status == DQ_OK)
        status = list_steps(&c, plan, arena, err);
    if (status == DQ_OK) {
        follow_inputs(&c);
        follow_readers(&c);
        claim_all(&c);
        for (uint32_t i = 0; i < requested_count; i++)
            if (requested[i]->graph == c.graph)
                c.needed[requested[i]->index] = true;
        follow_graph(&c);
        status = list_written(&c, arena, err);
    }
    dq_arena_free(&passing);
    return status;
}
