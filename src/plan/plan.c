/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "plan/batch_tiling.h"
#include "plan/planner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Needed nodes ------------------------------------------------------------------------------------ */

static void want(void *arg, dq_value *v)
{
    dq_planner *p = arg;
    dq_planner_slot(p, v)->requested = true;
    uint32_t *last = dq_planner_last_read(p, v);
    if (*last == 0)
        *last = p->at;
}

/* Marks the required outputs of a needed node as requested, so that operators need not check whether anything
 * reads them. */
static void want_required_outputs(const dq_planner *p, const dq_node *node)
{
    for (uint32_t i = 0; i < node->out_count; i++) {
        const dq_formal *formal = dq_schema_output(node->schema, i);
        if (node->out[i] && formal && formal->option == DQ_SINGLE)
            dq_planner_slot(p, node->out[i])->requested = true;
    }
}

/* Marks needed nodes and values, backwards from the requested values: the nodes are in topological order. */
static void find_needed(dq_planner *p)
{
    for (uint32_t i = 0; i < p->request->requested_count; i++) {
        dq_planner_slot(p, p->request->requested[i])->requested = true;
        *dq_planner_last_read(p, p->request->requested[i]) = UINT32_MAX;
    }
    for (uint32_t n = p->node_count; n-- > 0;) {
        const dq_node *node = p->nodes[n];
        p->at = n;
        for (uint32_t i = 0; i < node->out_count; i++)
            if (node->out[i] && dq_planner_slot(p, node->out[i])->requested)
                p->plan->needed[n] = true;
        if (p->plan->needed[n]) {
            want_required_outputs(p, node);
            dq_node_each_use(node, want, p);
        }
    }
}

/* ---- Inputs and constants ----------------------------------------------------------------------------- */

/* Binds a value of the caller. Each run sets its memory; it also sets the shape of a varying value or of a
 * sequence. */
static void set_bindings(dq_slot *slot, const dq_binding *bindings)
{
    if (bindings->constant) {
        dq_slot_set_constant(slot, bindings->tensor, bindings->fixed, bindings->persistent);
        return;
    }
    slot->t = *bindings->tensor;
    slot->t.data = NULL;
    slot->t.owned = false;
    slot->where = bindings->computed ? DQ_AT_BUFFER : DQ_AT_INPUT;
    slot->shaped = slot->t.kind == DQ_KIND_TENSOR && !bindings->varying;
}

/* Sets a value without a binding. */
static dq_status take_value(const dq_planner *p, const dq_value *v, dq_error *err)
{
    dq_slot *slot = dq_planner_slot(p, v);
    bool made = v->id >= p->plan->program->ir->value_count;
    if (slot->where != DQ_AT_NONE)
        return DQ_OK;
    /* Not fixed: the default of an input that other runs override, and constants of synthetic nodes. Results
     * of the latter differ from results of the graph as written, so they are not shared. */
    if (v->constant)
        dq_slot_set_constant(slot, v->constant, dq_value_holds(v) && !made, true);
    else if (v->is_input && slot->requested)
        return dq_fail(err, DQ_BAD_INPUT, "%s: input '%s' is missing", p->plan->program->ir->path, v->name);
    return DQ_OK;
}

static dq_status take_values(dq_planner *p, dq_error *err)
{
    const dq_plan *plan = p->plan;
    const dq_graph *g = plan->graph;
    for (uint32_t i = 0; i < p->request->binding_count; i++)
        set_bindings(dq_planner_slot(p, p->request->bindings[i].value), &p->request->bindings[i]);
    for (uint32_t i = 0; plan->values && i < plan->slot_count; i++)
        if (plan->values[i]->graph == g)
            DQ_TRY(take_value(p, plan->values[i], err));
    for (uint32_t i = 0; !plan->values && i < g->value_count; i++)
        DQ_TRY(take_value(p, g->all[i], err));
    for (uint32_t i = 0; !plan->values && i < p->request->made_count; i++)
        DQ_TRY(take_value(p, p->request->made[i], err));
    return DQ_OK;
}

/* ---- The outline -------------------------------------------------------------------------------------- */

static dq_status make_step(dq_planner *p, const dq_node *node, dq_error *err)
{
    dq_plan *plan = p->plan;
    dq_step *step = &plan->all[plan->all_count++];
    dq_op_call *call = &step->call;
    step->node = node;
    step->position = p->at;
    step->dynamic_arena.allocator = plan->allocator;
    call->in = DQ_NEW_ARRAY(&plan->outline, node->in_count, const dq_tensor *);
    call->out = DQ_NEW_ARRAY(&plan->outline, node->out_count, dq_tensor *);
    const char **formals = DQ_NEW_ARRAY(&plan->outline, node->in_count, const char *);
    if (!call->in || !call->out || !formals)
        return dq_no_memory(err, node->in_count * sizeof *formals, "a step of the plan");
    call->in_formals = formals;
    for (uint32_t i = 0; i < node->in_count; i++) {
        const dq_formal *formal = dq_schema_input(node->schema, i);
        formals[i] = formal ? formal->name : NULL;
        call->in[i] = node->in[i] ? &dq_planner_slot(p, node->in[i])->t : NULL;
    }
    for (uint32_t i = 0; i < node->out_count; i++)
        if (node->out[i] && dq_planner_slot(p, node->out[i])->requested)
            call->out[i] = &dq_planner_slot(p, node->out[i])->t;
    return DQ_OK;
}

static dq_status make_outline(dq_planner *p, dq_error *err)
{
    dq_plan *plan = p->plan;
    size_t count = 1;
    DQ_TRY(dq_planner_make_slots(p, err));
    plan->needed = DQ_NEW_ARRAY(&plan->outline, (size_t)p->node_count + 1, bool);
    plan->reads = DQ_NEW_ARRAY(&plan->outline, (size_t)plan->slot_count + 1, uint32_t);
    plan->last_read = DQ_NEW_ARRAY(&plan->outline, (size_t)plan->slot_count + 1, uint32_t);
    plan->works = DQ_NEW_ARRAY(&plan->outline, (size_t)p->node_count + 1, uint64_t);
    if (!plan->needed || !plan->reads || !plan->last_read || !plan->works)
        return dq_no_memory(err, plan->slot_count * sizeof *plan->reads, "a plan");
    find_needed(p);
    memcpy(plan->reads, plan->last_read, plan->slot_count * sizeof *plan->reads);
    for (uint32_t n = 0; n < p->node_count; n++)
        count += plan->needed[n];
    plan->all = DQ_NEW_ARRAY(&plan->outline, count, dq_step);
    plan->steps = DQ_NEW_ARRAY(&plan->outline, count, dq_step *);
    if (!plan->all || !plan->steps)
        return dq_no_memory(err, count * sizeof *plan->all, "a plan");
    for (p->at = 0; p->at < p->node_count; p->at++)
        if (plan->needed[p->at])
            DQ_TRY(make_step(p, p->nodes[p->at], err));
    return take_values(p, err);
}

/* ---- Shapes ------------------------------------------------------------------------------------------- */

/* Initializes the call; it keeps only pointers to slots. */
static void begin_call(dq_plan *plan, dq_step *step)
{
    dq_op_call *call = &step->call;
    *call = (dq_op_call){.node = step->node,
                         .version = step->node->version,
                         .in_count = step->node->in_count,
                         .out_count = step->node->out_count,
                         .in = call->in,
                         .out = call->out,
                         .in_formals = call->in_formals,
                         .arena = &plan->shaped,
                         .kernels = plan->kernels,
                         .threads = plan->threads,
                         .honor_accuracy_level = plan->honor_accuracy_level,
                         .forced = plan->forced_algorithms,
                         .explain = plan->why != NULL,
                         .packs = plan->program->packs,
                         .tensor_limit = plan->program->ir->limits.tensor_bytes};
    for (uint32_t i = 0; i < call->in_count && i < 64; i++) {
        const dq_slot *slot = dq_slot_of(call->in[i]);
        call->constant_inputs |= (uint64_t)(slot && slot->where == DQ_AT_CONSTANT) << i;
        call->persistent_inputs |= (uint64_t)(slot && slot->persistent) << i;
    }
}

static dq_status over_budget(const dq_plan *plan, dq_error *err)
{
    return dq_fail(err, DQ_OUT_OF_MEMORY, "the run takes more work than the limit of %" PRIu64,
                   plan->program->ir->limits.work);
}

/* Counts the work of folded nodes before they are computed. */
static dq_status add_stepless(dq_plan *plan, uint64_t work, dq_error *err)
{
    plan->stepless_work = dq_work_add(plan->stepless_work, work);
    return plan->stepless_work <= plan->program->ir->limits.work ? DQ_OK : over_budget(plan, err);
}

dq_status dq_plan_take(const dq_plan *plan, uint64_t work, dq_error *err)
{
    return !plan->budget || dq_budget_take(plan->budget, work) ? DQ_OK : over_budget(plan, err);
}

dq_status dq_plan_allows(const dq_plan *plan, uint64_t work, dq_error *err)
{
    dq_budget budget = plan->budget ? *plan->budget : (dq_budget){.limit = UINT64_MAX};
    return dq_budget_take(&budget, work) ? DQ_OK : over_budget(plan, err);
}

dq_status dq_plan_go_on(const dq_plan *plan, dq_error *err)
{
    dq_budget *budget = plan->budget;
    if (budget && budget->progress) {
        budget->reported.work = budget->used;
        if (budget->progress(budget->progress_arg, &budget->reported))
            dq_threads_set_cancelled(plan->threads, true);
        budget->reported.nodes++;
    }
    return dq_threads_cancelled(plan->threads) ? dq_fail(err, DQ_CANCELLED, "the run was cancelled") : DQ_OK;
}

uint64_t dq_plan_total_work(const dq_plan *plan)
{
    uint64_t work = dq_work_add(plan->stepless_work, plan->tiling ? plan->tiling->work : 0);
    for (uint32_t i = 0; i < plan->step_count; i++) {
        if (plan->steps[i]->dynamic || plan->steps[i]->node->op->impl->flags & DQ_OP_SUBGRAPH)
            return 0;
        work = dq_work_add(work, plan->steps[i]->work);
    }
    return work;
}

/* Infers types and shapes of a step's outputs, or folds the step. */
static dq_status find_shape(dq_planner *p, dq_step *step, dq_error *err)
{
    const dq_node *node = step->node;
    const unsigned flags = node->op->impl->flags;
    const uint64_t may_be_unaligned = flags & DQ_OP_PACKS                      ? UINT64_MAX
                                      : flags & (DQ_OP_UNALIGNED | DQ_OP_VIEW) ? 1
                                                                               : 0;
    begin_call(p->plan, step);
    step->prepared_for = NULL;
    step->reads_values = (flags & DQ_OP_ITEMS) != 0;
    DQ_TRY(dq_planner_align(p, node, may_be_unaligned, err));
    const dq_status status = dq_step_infer(p->plan, step, err);
    if (status != DQ_OK && status != DQ_DEFERRED)
        return status;
    step->dynamic = status == DQ_DEFERRED;
    step->typed = !step->dynamic;
    step->work = step->dynamic ? 0 : dq_call_work(&step->call);
    p->plan->works[step->position] = step->work;
    for (uint32_t i = 0; i < node->out_count; i++) {
        dq_slot *slot = dq_slot_of(step->call.out[i]);
        if (slot) {
            slot->where = step->dynamic ? DQ_AT_DYNAMIC : DQ_AT_BUFFER;
            slot->shaped = !step->dynamic;
        }
    }
    if (step->dynamic) {
        step->decision = "planned in the run, as a shape depends on data";
        step->call.arena = NULL;
        return dq_planner_align(p, node, flags & DQ_OP_UNALIGNED ? 1 : 0, err);
    }
    if (dq_planner_share_constant(p, step)) {
        step->decision = "takes no step: its output is its input's memory";
        step->constant = true;
        DQ_TRY(add_stepless(p->plan, step->work, err));
    } else if (dq_planner_can_fold(p, step)) {
        step->decision = "computed while planning, as all that it needs is constant";
        step->constant = true;
        DQ_TRY(add_stepless(p->plan, step->work, err));
        DQ_TRY(dq_planner_align(p, node, 0, err));
        return dq_planner_fold(p, step, err);
    }
    return DQ_OK;
}

static dq_status find_shapes(dq_planner *p, dq_error *err)
{
    dq_plan *plan = p->plan;
    plan->generation++;
    for (uint32_t i = 0; i < plan->all_count; i++) {
        dq_step *step = &plan->all[i];
        p->at = step->position;
        DQ_TRY(dq_plan_go_on(plan, err));
        DQ_TRY(dq_step_fault(plan, step, find_shape(p, step, err), err));
    }
    return DQ_OK;
}

/* ---- Reshaping a plan -------------------------------------------------------------------------------- */

/* Whether its outputs are the same for all shapes. */
static bool outputs_are_constant(const dq_step *step)
{
    bool is_constant = step->constant;
    for (uint32_t i = 0; i < step->call.out_count; i++) {
        const dq_slot *slot = dq_slot_of(step->call.out[i]);
        is_constant = is_constant && (!slot || (slot->fixed && slot->persistent));
    }
    return is_constant;
}

/* Resets the slot to its state after the outline. */
static void clear_slot(const dq_plan *plan, const dq_step *step, dq_slot *slot)
{
    const dq_tensor t = slot->t;
    *slot = (dq_slot){.requested = slot->requested,
                      .root = (uint32_t)(slot - plan->slots),
                      .dynamic_memory = slot->dynamic_memory,
                      .dynamic_capacity = slot->dynamic_capacity};
    if (step->typed) {
        slot->t.dtype = t.dtype;
        slot->t.kind = t.kind;
        slot->t.item_kind = t.item_kind;
    }
}

static void free_copies(const dq_plan *plan)
{
    for (uint32_t i = 0; i < plan->copy_count; i++)
        dq_memory_free(plan->allocator, plan->copies[i].memory, plan->copies[i].capacity);
}

/* Resets the plan to its outline. */
static void forget_shapes(dq_plan *plan)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < plan->all_count; i++)
        if (!outputs_are_constant(&plan->all[i]))
            plan->all[kept++] = plan->all[i];
        else
            plan->constant_work = dq_work_add(plan->constant_work, plan->all[i].work);
    plan->all_count = kept;
    plan->stepless_work = plan->constant_work;
    for (uint32_t i = 0; i < kept; i++) {
        dq_step *step = &plan->all[i];
        for (uint32_t k = 0; k < step->call.out_count; k++)
            if (step->call.out[k])
                clear_slot(plan, step, dq_slot_of(step->call.out[k]));
        step->constant = step->dynamic = false;
        step->decision = NULL;
    }
    free_copies(plan);
    dq_arena_reset(&plan->shaped);
    memcpy(plan->last_read, plan->reads, plan->slot_count * sizeof *plan->reads);
    plan->step_count = plan->copy_count = plan->caller_slot_count = plan->output_binding_count = 0;
    plan->bound = NULL;
}

static dq_status rebind(const dq_planner *p, dq_error *err)
{
    for (uint32_t i = 0; i < p->request->binding_count; i++) {
        const dq_binding *bindings = &p->request->bindings[i];
        dq_slot *slot = dq_planner_slot(p, bindings->value);
        if (slot->fixed && !(bindings->constant && bindings->fixed))
            return dq_fail(err, DQ_INTERNAL, "constant values changed");
        *slot = (dq_slot){.requested = slot->requested, .root = slot->root};
        set_bindings(slot, bindings);
    }
    return DQ_OK;
}

/* ---- Making a plan ----------------------------------------------------------------------------------- */

static dq_planner planner_of(dq_plan *plan, const dq_plan_request *request)
{
    return (dq_planner){.plan = plan,
                        .request = request,
                        .nodes = request->nodes ? request->nodes : plan->graph->nodes,
                        .node_count = request->nodes ? request->node_count : plan->graph->node_count};
}

/* Runs the second and third phase if `status` of the first is DQ_OK. */
static dq_status finish(dq_planner *p, dq_status status, dq_plan **out, dq_error *err)
{
    *out = p->plan;
    if (status == DQ_OK)
        status = find_shapes(p, err);
    if (status == DQ_OK && p->request->by_batch_tiles) {
        status = dq_batch_tiling_make(out, p->request, err);
        if (status == DQ_OK && *out != p->plan)
            return DQ_OK;
    }
    if (status == DQ_OK)
        status = dq_planner_allocate(p, err);
    free(p->intervals);
    if (status != DQ_OK) {
        dq_plan_free(p->plan);
        *out = NULL;
    }
    return status;
}

dq_status dq_plan_create(dq_program *program, const dq_plan_request *request, dq_plan **out, dq_error *err)
{
    dq_plan *plan = dq_memory_calloc(request->allocator, 1, sizeof *plan);
    if (!plan)
        return dq_no_memory(err, sizeof *plan, "a plan");
    plan->program = program;
    plan->allocator = plan->outline.allocator = plan->shaped.allocator = request->allocator;
    plan->graph = request->graph;
    plan->kernels = request->kernels;
    plan->threads = request->threads;
    plan->budget = request->budget;
    plan->fuse = request->fuse;
    plan->disabled_passes = request->disabled_passes;
    plan->honor_accuracy_level = request->honor_accuracy_level;
    plan->forced_algorithms = request->forced_algorithms;
    plan->why = request->why;
    plan->why_arg = request->why_arg;
    dq_planner p = planner_of(plan, request);
    return finish(&p, make_outline(&p, err), out, err);
}

dq_status dq_plan_reshape(dq_plan **plan, const dq_plan_request *request, dq_error *err)
{
    dq_plan *whole = dq_batch_tiling_undo(*plan);
    dq_planner p = planner_of(whole, request);
    forget_shapes(whole);
    return finish(&p, rebind(&p, err), plan, err);
}

void dq_plan_free(dq_plan *plan)
{
    if (!plan)
        return;
    for (uint32_t i = 0; i < plan->all_count; i++) {
        dq_step *step = &plan->all[i];
        dq_arena_free(&step->dynamic_arena);
        dq_memory_free(plan->allocator, step->dynamic_scratch, step->dynamic_scratch_capacity);
        if (step->free_flow)
            step->free_flow(step->flow);
    }
    for (uint32_t i = 0; plan->slots && i < plan->slot_count; i++)
        dq_memory_free(plan->allocator, plan->slots[i].dynamic_memory, plan->slots[i].dynamic_capacity);
    free_copies(plan);
    dq_batch_tiling_free(plan->tiling);
    dq_arena_free(&plan->shaped);
    dq_arena_free(&plan->outline);
    dq_memory_free(plan->allocator, plan, sizeof *plan);
}

bool dq_plan_has_dynamic_steps(const dq_plan *plan)
{
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i]->dynamic)
            return true;
    return false;
}

const dq_tensor *dq_plan_output(const dq_plan *plan, const dq_value *value)
{
    const dq_slot *slot = dq_plan_slot(plan, value);
    return slot->copy ? &plan->copies[slot->copy - 1].t : &slot->t;
}
