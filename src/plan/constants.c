/* SPDX-License-Identifier: Apache-2.0 */
/* Constants, and constant folding: steps that run at planning time. */
#include "plan/fold_constants.h"
#include "plan/planner.h"

void dq_slot_set_constant(dq_slot *slot, const dq_tensor *t, bool fixed, bool persistent)
{
    slot->t = *t;
    slot->t.owned = false;
    slot->where = DQ_AT_CONSTANT;
    slot->shaped = true;
    slot->fixed = fixed;
    slot->persistent = persistent;
}

dq_status dq_planner_align(dq_planner *p, const dq_node *node, uint64_t except, dq_error *err)
{
    for (uint32_t i = 0; i < node->in_count; i++) {
        dq_slot *slot = node->in[i] ? dq_planner_slot(p, node->in[i]) : NULL;
        if (slot && slot->where == DQ_AT_CONSTANT && !(i < 64 && (except >> i & 1)))
            DQ_TRY(dq_packs_align(p->plan->program->packs, &slot->t, err));
    }
    return DQ_OK;
}

bool dq_planner_can_fold(const dq_planner *p, const dq_step *step)
{
    unsigned flags = step->node->op->impl->flags;
    if (flags & (DQ_OP_IMPURE | DQ_OP_SUBGRAPH))
        return false;
    if (flags & DQ_OP_SHAPE_ONLY)
        return true;
    for (uint32_t i = 0; i < step->node->in_count; i++)
        if (step->node->in[i] && dq_planner_slot(p, step->node->in[i])->where != DQ_AT_CONSTANT)
            return false;
    return true;
}

static bool take_folded(dq_planner *p, const dq_step *step)
{
    for (uint32_t i = 0; i < step->node->out_count; i++)
        if (step->call.out[i] && !dq_folded_get(p->plan->program->folded, step->node->out[i]->id))
            return false;
    for (uint32_t i = 0; i < step->node->out_count; i++)
        if (step->call.out[i])
            dq_slot_set_constant(dq_planner_slot(p, step->node->out[i]),
                                 dq_folded_get(p->plan->program->folded, step->node->out[i]->id), true, true);
    return true;
}

/* Runs the step now, with memory for its outputs and scratch from `arena`. */
static dq_status run_now(dq_step *step, dq_arena *arena, dq_error *err)
{
    dq_op_call *call = &step->call;
    const dq_op_impl *impl = step->node->op->impl;
    size_t workers = dq_threads_count(call->threads);
    if (impl->prepare)
        DQ_TRY(impl->prepare(call, err));
    DQ_TRY(dq_packs_finish(call->packs, call->threads, err));
    call->scratch = dq_arena_alloc(arena, call->scratch_size, DQ_ALIGN);
    call->worker_scratch = dq_arena_array(arena, workers, call->worker_scratch_size);
    if (!call->scratch || !call->worker_scratch)
        return dq_no_memory(err, call->scratch_size, "an operator's scratch");
    call->strings = arena;
    for (uint32_t i = 0; i < call->out_count; i++) {
        dq_tensor *out = call->out[i];
        if (out && !(out->data = dq_arena_alloc(arena, out->size, DQ_ALIGN)))
            return dq_no_memory(err, out->size, "a constant");
    }
    DQ_TRY(impl->run(call, err));
    /* A cancelled result is incomplete, and must not become a constant of the program. */
    return dq_threads_cancelled(call->threads) ? dq_fail(err, DQ_CANCELLED, "the run was cancelled") : DQ_OK;
}

dq_status dq_planner_fold(dq_planner *p, dq_step *step, dq_error *err)
{
    dq_arena temporary = {0};
    bool fixed = dq_planner_all_fixed(p, step->node);
    dq_status status = DQ_OK;
    if (fixed && take_folded(p, step))
        return DQ_OK;
    step->call.arena = fixed ? &temporary : &p->plan->shaped;
    step->call.honor_accuracy_level = false; /* Folded constants are shared by all sessions. */
    step->call.forced = NULL;
    status = run_now(step, step->call.arena, err);
    for (uint32_t i = 0; status == DQ_OK && i < step->node->out_count; i++) {
        dq_slot *slot = dq_planner_out(p, step, i);
        const dq_tensor *kept = slot ? &slot->t : NULL;
        if (!slot)
            continue;
        if (fixed)
            status = dq_folded_put(p->plan->program->folded, step->node->out[i]->id, &slot->t, &kept, err);
        if (status == DQ_OK)
            dq_slot_set_constant(slot, kept, fixed, fixed);
    }
    dq_arena_free(&temporary);
    return status;
}
