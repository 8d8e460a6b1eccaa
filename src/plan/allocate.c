/* SPDX-License-Identifier: Apache-2.0 */
/* The third phase of planning: which steps run, their algorithms and scratch sizes, and the offsets of values
 * and scratch in the buffer. */
#include "plan/planner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dq_status add_interval(dq_planner *p, size_t size, uint32_t first, uint32_t *index, dq_error *err)
{
    if (p->interval_count == p->piece_capacity) {
        uint32_t requested = p->piece_capacity ? p->piece_capacity * 2 : 64;
        dq_interval *grown = realloc(p->intervals, requested * sizeof *grown);
        if (!grown)
            return dq_no_memory(err, requested * sizeof *grown, "the memory plan");
        p->intervals = grown;
        p->piece_capacity = requested;
    }
    *index = p->interval_count;
    p->intervals[p->interval_count++] = (dq_interval){.size = size, .first = first, .last = first};
    return DQ_OK;
}

/* ---- Preparing steps --------------------------------------------------------------------------------- */

typedef struct use {
    dq_planner *p;
    uint32_t at;
} use;

static void use_at(void *arg, dq_value *v)
{
    const use *u = arg;
    dq_slot *root = &u->p->plan->slots[dq_planner_slot(u->p, v)->root];
    if (root->where == DQ_AT_BUFFER)
        u->p->intervals[root->interval].last = u->at;
    if (root->where != DQ_AT_INPUT)
        return;
    root->touched = u->at + 1;
    root->read_from = root->read_from ? root->read_from : root->touched;
}

static void use_inputs(dq_planner *p, const dq_step *step, uint32_t at)
{
    use u = {p, at};
    dq_node_each_use(step->node, use_at, &u);
}

static dq_status allocate_outputs(dq_planner *p, dq_step *step, uint32_t at, dq_error *err)
{
    for (uint32_t i = 0; i < step->node->out_count; i++) {
        dq_slot *slot = dq_planner_out(p, step, i);
        if (!slot)
            continue;
        slot->touched = at;
        if (!step->dynamic && !dq_planner_reuse_input(p, step, slot))
            DQ_TRY(add_interval(p, slot->t.size, at, &slot->interval, err));
    }
    return DQ_OK;
}

/* Largest worker scratch in bytes that has the same offset in all steps, so that it stays in its core's
 * cache. Scratch that moves over memory that another core has written costs cache misses. */
enum {
    OWN_SCRATCH = 1 << 20,
    OWN_ALIGN = 4096 /* The prefetcher of one core must not fetch another core's lines. */
};

static void tell(const dq_planner *p, const dq_node *node, const char *decision)
{
    char text[DQ_NODE_TEXT];
    if (!p->request->why || !decision)
        return;
    dq_node_text(node, text);
    const size_t size = strlen(text) + strlen(decision) + sizeof ": ";
    char *message = malloc(size);
    if (!message)
        return;
    snprintf(message, size, "%s: %s", text, decision);
    p->request->why(p->request->why_arg, message);
    free(message);
}

static dq_status prepare(dq_planner *p, dq_step *step, uint32_t at, dq_error *err)
{
    dq_op_call *call = &step->call;
    size_t workers = dq_threads_count(call->threads), all = 0;
    if (step->node->op->impl->prepare)
        DQ_TRY(step->node->op->impl->prepare(call, err));
    tell(p, step->node, call->explanation);
    DQ_TRY(dq_planner_align(p, step->node,
                            step->node->op->impl->flags & DQ_OP_UNALIGNED ? 1 : call->packed_inputs, err));
    if (__builtin_mul_overflow(workers, call->worker_scratch_size, &all))
        return dq_no_memory(err, call->worker_scratch_size, "an operator's scratch");
    DQ_TRY(add_interval(p, call->scratch_size, at, &step->scratch_interval, err));
    if (workers > 1 && call->worker_scratch_size <= OWN_SCRATCH) {
        size_t *size = &p->intervals[p->pinned_scratch].size;
        *size = *size > call->worker_scratch_size ? *size : call->worker_scratch_size;
        step->worker_interval = p->pinned_scratch;
        return DQ_OK;
    }
    return add_interval(p, all, at, &step->worker_interval, err);
}

static dq_status allocate_step(dq_planner *p, dq_step *step, dq_error *err)
{
    dq_plan *plan = p->plan;
    if (step->constant)
        return DQ_OK;
    if (!step->dynamic && dq_planner_make_view(p, step)) {
        step->decision = "takes no step: its output is its input's memory";
        plan->stepless_work = dq_work_add(plan->stepless_work, step->work);
        return DQ_OK;
    }
    if (!step->dynamic && step->call.split_offsets &&
        dq_planner_slot(p, step->node->in[0])->where == DQ_AT_BUFFER)
        step->decision = "copies, so that its input need not stay in memory for a small part of it";
    const uint32_t at = plan->step_count;
    plan->steps[plan->step_count++] = step;
    use_inputs(p, step, at);
    DQ_TRY(allocate_outputs(p, step, at, err));
    if (step->dynamic)
        return DQ_OK;
    DQ_TRY(dq_step_fault(plan, step, prepare(p, step, at, err), err));
    if (dq_planner_concat_in_place(p, step)) {
        step->decision = "takes no step: its inputs are computed where they stand in its output";
        plan->stepless_work = dq_work_add(plan->stepless_work, step->work);
        plan->step_count--;
    }
    return DQ_OK;
}

static dq_status allocate_steps(dq_planner *p, dq_error *err)
{
    dq_plan *plan = p->plan;
    for (uint32_t i = 0; i < plan->all_count; i++) {
        dq_step *step = &plan->all[i];
        p->at = step->position;
        DQ_TRY(dq_plan_go_on(plan, err));
        DQ_TRY(allocate_step(p, step, err));
        tell(p, step->node, step->decision);
    }
    for (uint32_t n = 0; n < p->node_count; n++)
        if (!p->request->nodes && !plan->needed[n]) /* For a rewritten graph, the rewriter has already
                                                       explained which nodes are unread. */
            tell(p, p->nodes[n], "left out: no output needs it");
    return DQ_OK;
}

/* ---- Outputs and offsets ----------------------------------------------------------------------------- */

static dq_status keep_output(dq_planner *p, const dq_value *v, dq_error *err)
{
    dq_plan *plan = p->plan;
    dq_slot *slot = dq_planner_slot(p, v);
    if (slot->where == DQ_AT_CONSTANT)
        DQ_TRY(dq_packs_align(plan->program->packs, &slot->t, err));
    dq_slot *root = &plan->slots[slot->root];
    if (slot->where == DQ_AT_NONE)
        return dq_fail(err, DQ_INTERNAL, "%s: output '%s' has no memory", plan->program->ir->path, v->name);
    if (root->where == DQ_AT_BUFFER)
        p->intervals[root->interval].last = plan->step_count;
    if (root->where != DQ_AT_INPUT)
        return DQ_OK;
    root->touched = UINT32_MAX;
    dq_copy *copy = &plan->copies[plan->copy_count++];
    slot->copy = slot->copy ? slot->copy : plan->copy_count;
    *copy = (dq_copy){.from = dq_plan_index(plan, v), .t = slot->t};
    if (!slot->shaped)
        return DQ_OK;
    DQ_TRY(add_interval(p, slot->t.size, plan->step_count, &copy->interval, err));
    return DQ_OK;
}

static dq_status keep_outputs(dq_planner *p, dq_error *err)
{
    dq_plan *plan = p->plan;
    plan->copies = DQ_NEW_ARRAY(&plan->shaped, p->request->requested_count, dq_copy);
    if (!plan->copies)
        return dq_no_memory(err, sizeof(dq_copy), "a plan's outputs");
    for (uint32_t i = 0; i < p->request->requested_count; i++)
        DQ_TRY(keep_output(p, p->request->requested[i], err));
    return DQ_OK;
}

static dq_status list_caller_slots(dq_planner *p, dq_error *err)
{
    dq_plan *plan = p->plan;
    uint32_t slots = plan->slot_count, caller_slots = 0;
    for (uint32_t i = 0; i < slots; i++)
        caller_slots += plan->slots[i].where == DQ_AT_INPUT;
    plan->caller_slots = DQ_NEW_ARRAY(&plan->shaped, caller_slots, uint32_t);
    if (!plan->caller_slots)
        return dq_no_memory(err, caller_slots * sizeof *plan->caller_slots, "a plan's inputs");
    /* Roots before their views. Ids grow from producers to users only within one graph, so it takes two
     * passes. */
    for (int views = 0; views < 2; views++)
        for (uint32_t i = 0; i < slots; i++)
            if (plan->slots[i].where == DQ_AT_INPUT && (plan->slots[i].root != i) == views)
                plan->caller_slots[plan->caller_slot_count++] = i;
    return DQ_OK;
}

/* Each worker gets the size of the largest step. */
static void size_own_scratch(dq_planner *p)
{
    dq_plan *plan = p->plan;
    dq_interval *own = &p->intervals[p->pinned_scratch];
    const size_t each = (own->size + OWN_ALIGN - 1) / OWN_ALIGN * OWN_ALIGN;
    own->size = each * dq_threads_count(plan->threads);
    own->last = plan->step_count;
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (!plan->steps[i]->dynamic && plan->steps[i]->worker_interval == p->pinned_scratch)
            plan->steps[i]->call.worker_scratch_size = each;
}

static dq_status assign_all(dq_planner *p, dq_error *err)
{
    dq_plan *plan = p->plan;
    size_own_scratch(p);
    DQ_TRY(dq_assign_offsets(p->intervals, p->interval_count, &plan->buffer_size, err));
    uint64_t limit = plan->program->ir->limits.session_bytes;
    if (plan->buffer_size > limit)
        return dq_fail(err, DQ_OUT_OF_MEMORY,
                       "%s: the activations take %zu bytes, over the limit of %" PRIu64,
                       plan->program->ir->path, plan->buffer_size, limit);
    for (uint32_t i = 0; i < plan->slot_count; i++) {
        dq_slot *slot = &plan->slots[i];
        if (slot->where == DQ_AT_BUFFER)
            slot->offset = p->intervals[plan->slots[slot->root].interval].offset + slot->shift;
    }
    plan->ahead_offset = p->intervals[p->ahead].offset;
    for (uint32_t i = 0; i < plan->copy_count; i++)
        if (plan->slots[plan->copies[i].from].shaped)
            plan->copies[i].offset = p->intervals[plan->copies[i].interval].offset;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        dq_step *step = plan->steps[i];
        if (step->dynamic)
            continue;
        step->scratch_offset = p->intervals[step->scratch_interval].offset;
        step->worker_offset = p->intervals[step->worker_interval].offset;
    }
    return DQ_OK;
}

dq_status dq_planner_allocate(dq_planner *p, dq_error *err)
{
    DQ_TRY(add_interval(p, 0, 0, &p->pinned_scratch, err));
    DQ_TRY(add_interval(p, p->request->ahead, 0, &p->ahead, err));
    for (uint32_t i = 0; i < p->request->binding_count; i++) {
        dq_slot *slot = dq_planner_slot(p, p->request->bindings[i].value);
        if (slot->where == DQ_AT_BUFFER)
            DQ_TRY(add_interval(p, slot->t.size, 0, &slot->interval, err));
    }
    DQ_TRY(allocate_steps(p, err));
    DQ_TRY(keep_outputs(p, err));
    DQ_TRY(list_caller_slots(p, err));
    DQ_TRY(assign_all(p, err));
    DQ_TRY(dq_planner_list_output_bindings(p, err));
    return p->request->part ? DQ_OK : dq_packs_finish(p->plan->program->packs, p->plan->threads, err);
}
