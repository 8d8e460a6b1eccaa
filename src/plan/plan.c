#include "plan/builder.h"
#include "plan/fold.h"
#include "plan/slices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dq_status add_piece(dq_builder *b, size_t size, uint32_t first, uint32_t *index, dq_error *err)
{
    if (b->piece_count == b->piece_capacity) {
        uint32_t wanted = b->piece_capacity ? b->piece_capacity * 2 : 64;
        dq_piece *grown = realloc(b->pieces, wanted * sizeof *grown);
        if (!grown)
            return dq_no_memory(err, wanted * sizeof *grown, "the memory plan");
        b->pieces = grown;
        b->piece_capacity = wanted;
    }
    *index = b->piece_count;
    b->pieces[b->piece_count++] = (dq_piece){.size = size, .first = first, .last = first};
    return DQ_OK;
}

/* ---- What is needed ----------------------------------------------------------------------------------- */

static void want(void *arg, dq_value *v)
{
    dq_builder *b = arg;
    dq_builder_slot(b, v)->wanted = true;
    uint32_t *last = dq_builder_last_read(b, v);
    if (*last == 0)
        *last = b->at;
}

/* Outputs that the operator's schema requires are computed with the others: operators need not look whether
 * somebody reads them. */
static void want_required_outputs(const dq_builder *b, const dq_node *node)
{
    for (uint32_t i = 0; i < node->out_count; i++) {
        const dq_formal *formal = dq_schema_output(node->schema, i);
        if (node->out[i] && formal && formal->option == DQ_SINGLE)
            dq_builder_slot(b, node->out[i])->wanted = true;
    }
}

/* Backwards from what is wanted: the nodes are in topological order. */
static void find_needed(dq_builder *b)
{
    for (uint32_t i = 0; i < b->request->wanted_count; i++) {
        dq_builder_slot(b, b->request->wanted[i])->wanted = true;
        *dq_builder_last_read(b, b->request->wanted[i]) = UINT32_MAX;
    }
    for (uint32_t n = b->node_count; n-- > 0;) {
        const dq_node *node = b->nodes[n];
        b->at = n;
        for (uint32_t i = 0; i < node->out_count; i++)
            if (node->out[i] && dq_builder_slot(b, node->out[i])->wanted)
                b->needed[n] = true;
        if (b->needed[n]) {
            want_required_outputs(b, node);
            dq_node_each_use(node, want, b);
        }
    }
}

/* ---- Inputs and constants ----------------------------------------------------------------------------- */

static void set_constant(dq_slot *slot, const dq_tensor *t, bool fixed, bool lasting)
{
    slot->t = *t;
    slot->t.owned = false;
    slot->where = DQ_AT_CONSTANT;
    slot->shaped = true;
    slot->fixed = fixed;
    slot->lasting = lasting;
}

/* A value of the caller's: its memory, and of a varying one or of a list the shape too, are those of each
 * run.
 */
static void set_given(dq_slot *slot, const dq_given *given)
{
    if (given->constant) {
        set_constant(slot, given->tensor, given->fixed, given->lasting);
        return;
    }
    slot->t = *given->tensor;
    slot->t.data = NULL;
    slot->t.owned = false;
    slot->where = given->computed ? DQ_AT_BUFFER : DQ_AT_INPUT;
    slot->shaped = slot->t.kind == DQ_KIND_TENSOR && !given->varying;
}

/* A value that nobody has given. */
static dq_status take_value(const dq_builder *b, const dq_value *v, dq_error *err)
{
    dq_slot *slot = dq_builder_slot(b, v);
    bool made = v->id >= b->plan->program->ir->value_count;
    if (slot->where != DQ_AT_NONE)
        return DQ_OK;
    /* a default of an input: another session may feed another value; what follows from a fused node's
     * constants: not what follows in the graph as written. Nothing of it is shared */
    if (v->constant)
        set_constant(slot, v->constant, !v->is_input && !made, true);
    else if (v->is_input && slot->wanted)
        return dq_fail(err, DQ_BAD_INPUT, "%s: input '%s' is missing", b->plan->program->ir->path, v->name);
    return DQ_OK;
}

static dq_status take_inputs(dq_builder *b, dq_error *err)
{
    const dq_plan *plan = b->plan;
    const dq_graph *g = plan->graph;
    for (uint32_t i = 0; i < b->request->given_count; i++) {
        dq_slot *slot = dq_builder_slot(b, b->request->given[i].value);
        set_given(slot, &b->request->given[i]);
        if (slot->where == DQ_AT_BUFFER)
            DQ_TRY(add_piece(b, slot->t.size, 0, &slot->piece, err));
    }
    for (uint32_t i = 0; plan->values && i < plan->slot_count; i++)
        if (plan->values[i]->graph == g)
            DQ_TRY(take_value(b, plan->values[i], err));
    for (uint32_t i = 0; !plan->values && i < g->value_count; i++)
        DQ_TRY(take_value(b, g->all[i], err));
    for (uint32_t i = 0; !plan->values && i < b->request->made_count; i++)
        DQ_TRY(take_value(b, b->request->made[i], err));
    return DQ_OK;
}

/* ---- Steps -------------------------------------------------------------------------------------------- */

/* Gives the step's loose constants aligned data, but for the inputs in `except`. */
static dq_status align_inputs(dq_builder *b, const dq_node *node, uint64_t except, dq_error *err)
{
    for (uint32_t i = 0; i < node->in_count; i++) {
        dq_slot *slot = node->in[i] ? dq_builder_slot(b, node->in[i]) : NULL;
        if (slot && slot->where == DQ_AT_CONSTANT && !(i < 64 && (except >> i & 1)))
            DQ_TRY(dq_packs_align(b->plan->program->packs, &slot->t, err));
    }
    return DQ_OK;
}

static dq_status make_step(dq_builder *b, const dq_node *node, dq_step *step, dq_error *err)
{
    dq_plan *plan = b->plan;
    step->node = node;
    dq_op_call *call = &step->call;
    *call = (dq_op_call){.node = node,
                         .version = node->version,
                         .in_count = node->in_count,
                         .out_count = node->out_count,
                         .arena = &plan->arena,
                         .kernels = plan->kernels,
                         .threads = plan->threads,
                         .honor_accuracy_level = plan->honor_accuracy_level,
                         .packs = plan->program->packs,
                         .tensor_limit = plan->program->ir->limits.tensor_bytes};
    call->in = DQ_NEW_ARRAY(&plan->arena, node->in_count, const dq_tensor *);
    call->out = DQ_NEW_ARRAY(&plan->arena, node->out_count, dq_tensor *);
    const char **formals = DQ_NEW_ARRAY(&plan->arena, node->in_count, const char *);
    if (!call->in || !call->out || !formals)
        return dq_no_memory(err, node->in_count * sizeof *formals, "a step of the plan");
    call->in_formals = formals;
    for (uint32_t i = 0; i < node->in_count; i++) {
        const dq_formal *formal = dq_schema_input(node->schema, i);
        formals[i] = formal ? formal->name : NULL;
        if (!node->in[i])
            continue;
        dq_slot *slot = dq_builder_slot(b, node->in[i]);
        call->in[i] = &slot->t;
        if (i < 64 && slot->where == DQ_AT_CONSTANT)
            call->constant_inputs |= UINT64_C(1) << i;
        if (i < 64 && slot->lasting)
            call->lasting_inputs |= UINT64_C(1) << i;
    }
    for (uint32_t i = 0; i < node->out_count; i++)
        if (node->out[i] && dq_builder_slot(b, node->out[i])->wanted)
            call->out[i] = &dq_builder_slot(b, node->out[i])->t;
    return DQ_OK;
}

/* ---- Folding ------------------------------------------------------------------------------------------ */

static bool can_fold(const dq_builder *b, const dq_step *step)
{
    unsigned flags = step->node->op->impl->flags;
    if (flags & (DQ_OP_IMPURE | DQ_OP_SUBGRAPH))
        return false;
    if (flags & DQ_OP_SHAPE_ONLY)
        return true;
    for (uint32_t i = 0; i < step->node->in_count; i++)
        if (step->node->in[i] && dq_builder_slot(b, step->node->in[i])->where != DQ_AT_CONSTANT)
            return false;
    return true;
}

static bool take_folded(dq_builder *b, const dq_step *step)
{
    for (uint32_t i = 0; i < step->node->out_count; i++)
        if (step->call.out[i] && !dq_folded_get(b->plan->program->folded, step->node->out[i]->id))
            return false;
    for (uint32_t i = 0; i < step->node->out_count; i++)
        if (step->call.out[i])
            set_constant(dq_builder_slot(b, step->node->out[i]),
                         dq_folded_get(b->plan->program->folded, step->node->out[i]->id), true, true);
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
    call->scratch = dq_arena_alloc(arena, call->scratch_size, 64);
    call->worker_scratch = dq_arena_array(arena, workers, call->worker_scratch_size);
    if (!call->scratch || !call->worker_scratch)
        return dq_no_memory(err, call->scratch_size, "an operator's scratch");
    call->strings = arena;
    for (uint32_t i = 0; i < call->out_count; i++) {
        dq_tensor *out = call->out[i];
        if (out && !(out->data = dq_arena_alloc(arena, out->size, 64)))
            return dq_no_memory(err, out->size, "a constant");
    }
    return impl->run(call, err);
}

static dq_status fold(dq_builder *b, dq_step *step, dq_error *err)
{
    dq_arena temporary = {0};
    bool fixed = dq_builder_all_fixed(b, step->node);
    dq_status status = DQ_OK;
    if (fixed && take_folded(b, step))
        return DQ_OK;
    step->call.arena = fixed ? &temporary : &b->plan->arena;
    step->call.honor_accuracy_level = false; /* what is folded is for all sessions */
    status = run_now(step, step->call.arena, err);
    for (uint32_t i = 0; status == DQ_OK && i < step->node->out_count; i++) {
        dq_slot *slot = dq_builder_out(b, step, i);
        const dq_tensor *kept = slot ? &slot->t : NULL;
        if (!slot)
            continue;
        if (fixed)
            status = dq_folded_put(b->plan->program->folded, step->node->out[i]->id, &slot->t, &kept, err);
        if (status == DQ_OK)
            set_constant(slot, kept, fixed, fixed);
    }
    dq_arena_free(&temporary);
    return status;
}

/* ---- One node after the other ------------------------------------------------------------------------- */

typedef struct use {
    dq_builder *b;
    uint32_t at;
} use;

static void use_at(void *arg, dq_value *v)
{
    const use *u = arg;
    dq_slot *root = &u->b->plan->slots[dq_builder_slot(u->b, v)->root];
    if (root->where == DQ_AT_BUFFER)
        u->b->pieces[root->piece].last = u->at;
    if (root->where != DQ_AT_INPUT)
        return;
    root->touched = u->at + 1;
    root->read_from = root->read_from ? root->read_from : root->touched;
}

static void use_inputs(dq_builder *b, const dq_step *step, uint32_t at)
{
    use u = {b, at};
    dq_node_each_use(step->node, use_at, &u);
}

static dq_status place_outputs(dq_builder *b, dq_step *step, uint32_t at, dq_error *err)
{
    for (uint32_t i = 0; i < step->node->out_count; i++) {
        dq_slot *slot = dq_builder_out(b, step, i);
        if (!slot)
            continue;
        slot->where = step->late ? DQ_AT_LATE : DQ_AT_BUFFER;
        slot->shaped = !step->late;
        slot->touched = at;
        if (!step->late && !dq_builder_take_over(b, step, slot))
            DQ_TRY(add_piece(b, slot->t.size, at, &slot->piece, err));
    }
    return DQ_OK;
}

/* Bytes of a worker's scratch, at most, that it has in the same place in all steps: they stay in its core's
 * cache. Where it wanders over memory that another core has written it comes as slowly as that. */
enum { OWN_SCRATCH = 1 << 20, OWN_ALIGN = 4096 /* what one core fetches ahead is not the other's */ };

static dq_status prepare(dq_builder *b, dq_step *step, uint32_t at, dq_error *err)
{
    dq_op_call *call = &step->call;
    size_t workers = dq_threads_count(call->threads), all = 0;
    if (step->node->op->impl->prepare)
        DQ_TRY(step->node->op->impl->prepare(call, err));
    DQ_TRY(align_inputs(b, step->node, step->node->op->impl->flags & DQ_OP_LOOSE ? 1 : call->packed_inputs,
                        err));
    if (__builtin_mul_overflow(workers, call->worker_scratch_size, &all))
        return dq_no_memory(err, call->worker_scratch_size, "an operator's scratch");
    DQ_TRY(add_piece(b, call->scratch_size, at, &step->scratch_piece, err));
    if (workers > 1 && call->worker_scratch_size <= OWN_SCRATCH) {
        size_t *size = &b->pieces[b->own_scratch].size;
        *size = *size > call->worker_scratch_size ? *size : call->worker_scratch_size;
        step->worker_piece = b->own_scratch;
        return DQ_OK;
    }
    return add_piece(b, all, at, &step->worker_piece, err);
}

static void tell(const dq_builder *b, const dq_node *node, const char *decision)
{
    char text[DQ_NODE_TEXT], sentence[DQ_NODE_TEXT + 128];
    if (!b->request->why)
        return;
    snprintf(sentence, sizeof sentence, "%s: %s", dq_node_text(node, text), decision);
    b->request->why(b->request->why_arg, sentence);
}

static dq_status plan_node(dq_builder *b, const dq_node *node, dq_error *err)
{
    dq_plan *plan = b->plan;
    dq_step *step = &plan->steps[plan->step_count];
    *step = (dq_step){0};
    DQ_TRY(make_step(b, node, step, err));
    unsigned flags = node->op->impl->flags;
    uint64_t may_be_loose = flags & DQ_OP_PACKS ? UINT64_MAX : flags & (DQ_OP_LOOSE | DQ_OP_VIEW) ? 1 : 0;
    DQ_TRY(align_inputs(b, node, may_be_loose, err));
    dq_status status = dq_step_infer(plan, step, err);
    if (status == DQ_LATE) {
        step->late = true;
        step->call.arena = NULL;
        DQ_TRY(align_inputs(b, node, flags & DQ_OP_LOOSE ? 1 : 0, err));
        tell(b, node, "planned in each run, as a shape depends on data");
    } else if (status != DQ_OK) {
        return dq_step_fault(plan, step, status, err);
    } else if (dq_builder_share_constant(b, step)) {
        tell(b, node, "takes no step: its output is its input's memory");
        return DQ_OK;
    } else if (can_fold(b, step)) {
        DQ_TRY(align_inputs(b, node, 0, err));
        tell(b, node, "computed while planning, as all that it needs is constant");
        return dq_step_fault(plan, step, fold(b, step, err), err);
    } else if (dq_builder_share(b, step)) {
        tell(b, node, "takes no step: its output is its input's memory");
        return DQ_OK;
    } else if (step->call.parts && dq_builder_slot(b, node->in[0])->where == DQ_AT_BUFFER) {
        tell(b, node, "copies, so that its input need not stay in memory for a small part of it");
    }
    uint32_t at = plan->step_count++;
    use_inputs(b, step, at);
    DQ_TRY(place_outputs(b, step, at, err));
    if (step->late || b->request->shapes_only)
        return DQ_OK;
    DQ_TRY(dq_step_fault(plan, step, prepare(b, step, at, err), err));
    if (dq_builder_join(b, step)) {
        tell(b, node, "takes no step: its inputs are computed where they stand in its output");
        plan->step_count--;
    }
    return DQ_OK;
}

/* ---- Outputs and places ------------------------------------------------------------------------------- */

static dq_status keep_output(dq_builder *b, const dq_value *v, dq_error *err)
{
    dq_plan *plan = b->plan;
    dq_slot *slot = dq_builder_slot(b, v);
    if (slot->where == DQ_AT_CONSTANT)
        DQ_TRY(dq_packs_align(plan->program->packs, &slot->t, err));
    dq_slot *root = &plan->slots[slot->root];
    if (slot->where == DQ_AT_NONE)
        return dq_fail(err, DQ_INTERNAL, "%s: output '%s' has no place", plan->program->ir->path, v->name);
    if (root->where == DQ_AT_BUFFER)
        b->pieces[root->piece].last = plan->step_count;
    if (root->where != DQ_AT_INPUT)
        return DQ_OK;
    root->touched = UINT32_MAX;
    dq_copy *copy = &plan->copies[plan->copy_count++];
    *copy = (dq_copy){.from = dq_plan_index(plan, v), .t = slot->t};
    if (!slot->shaped)
        return DQ_OK;
    DQ_TRY(add_piece(b, slot->t.size, plan->step_count, &copy->piece, err));
    return DQ_OK;
}

static dq_status keep_outputs(dq_builder *b, dq_error *err)
{
    dq_plan *plan = b->plan;
    plan->copies = DQ_NEW_ARRAY(&plan->arena, b->request->wanted_count, dq_copy);
    if (!plan->copies)
        return dq_no_memory(err, sizeof(dq_copy), "a plan's outputs");
    for (uint32_t i = 0; i < b->request->wanted_count; i++)
        DQ_TRY(keep_output(b, b->request->wanted[i], err));
    return DQ_OK;
}

static dq_status list_moving(dq_builder *b, dq_error *err)
{
    dq_plan *plan = b->plan;
    uint32_t slots = plan->slot_count, moving = 0;
    for (uint32_t i = 0; i < slots; i++)
        moving += plan->slots[i].where == DQ_AT_INPUT;
    plan->moving = DQ_NEW_ARRAY(&plan->arena, moving, uint32_t);
    if (!plan->moving)
        return dq_no_memory(err, moving * sizeof *plan->moving, "a plan's inputs");
    /* A root before its views: ids grow from producers to users only within one graph, so that two passes it
     * is. */
    for (int views = 0; views < 2; views++)
        for (uint32_t i = 0; i < slots; i++)
            if (plan->slots[i].where == DQ_AT_INPUT && (plan->slots[i].root != i) == views)
                plan->moving[plan->moving_count++] = i;
    return DQ_OK;
}

/* The largest of all steps is each one's. */
static void size_own_scratch(dq_builder *b)
{
    dq_plan *plan = b->plan;
    dq_piece *own = &b->pieces[b->own_scratch];
    const size_t each = (own->size + OWN_ALIGN - 1) / OWN_ALIGN * OWN_ALIGN;
    own->size = each * dq_threads_count(plan->threads);
    own->last = plan->step_count;
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (!plan->steps[i].late && plan->steps[i].worker_piece == b->own_scratch)
            plan->steps[i].call.worker_scratch_size = each;
}

static dq_status place_all(dq_builder *b, dq_error *err)
{
    dq_plan *plan = b->plan;
    size_own_scratch(b);
    DQ_TRY(dq_place(b->pieces, b->piece_count, &plan->buffer_size, err));
    uint64_t limit = plan->program->ir->limits.session_bytes;
    if (plan->buffer_size > limit)
        return dq_fail(err, DQ_OUT_OF_MEMORY,
                       "%s: the activations take %zu bytes, over the limit of %" PRIu64,
                       plan->program->ir->path, plan->buffer_size, limit);
    for (uint32_t i = 0; i < plan->slot_count; i++) {
        dq_slot *slot = &plan->slots[i];
        if (slot->where == DQ_AT_BUFFER)
            slot->offset = b->pieces[plan->slots[slot->root].piece].offset + slot->shift;
    }
    plan->ahead_offset = b->pieces[b->ahead].offset;
    for (uint32_t i = 0; i < plan->copy_count; i++)
        if (plan->slots[plan->copies[i].from].shaped)
            plan->copies[i].offset = b->pieces[plan->copies[i].piece].offset;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        dq_step *step = &plan->steps[i];
        if (step->late)
            continue;
        step->scratch_offset = b->pieces[step->scratch_piece].offset;
        step->worker_offset = b->pieces[step->worker_piece].offset;
    }
    return DQ_OK;
}

static dq_status build(dq_builder *b, dq_error *err)
{
    dq_plan *plan = b->plan;
    size_t nodes;
    b->nodes = b->request->nodes ? b->request->nodes : plan->graph->nodes;
    b->node_count = b->request->nodes ? b->request->node_count : plan->graph->node_count;
    nodes = b->node_count;
    DQ_TRY(dq_builder_make_slots(b, err));
    plan->steps = DQ_NEW_ARRAY(&plan->arena, nodes + 1, dq_step);
    b->needed = calloc(nodes + 1, sizeof *b->needed);
    b->last_read = calloc((size_t)plan->slot_count + 1, sizeof *b->last_read);
    if (!plan->steps || !b->needed || !b->last_read)
        return dq_no_memory(err, nodes * sizeof *plan->steps, "a plan");
    find_needed(b);
    DQ_TRY(add_piece(b, 0, 0, &b->own_scratch, err));
    DQ_TRY(add_piece(b, b->request->ahead, 0, &b->ahead, err));
    DQ_TRY(take_inputs(b, err));
    for (b->at = 0; b->at < nodes; b->at++)
        if (b->needed[b->at])
            DQ_TRY(plan_node(b, b->nodes[b->at], err));
        else if (!b->request->nodes) /* fusion has told what it made needless */
            tell(b, b->nodes[b->at], "left out: no output needs it");
    if (b->request->shapes_only)
        return DQ_OK;
    DQ_TRY(keep_outputs(b, err));
    DQ_TRY(list_moving(b, err));
    DQ_TRY(place_all(b, err));
    DQ_TRY(dq_builder_list_homes(b, err));
    return b->request->part ? DQ_OK : dq_packs_finish(plan->program->packs, plan->threads, err);
}

dq_status dq_plan_create(dq_program *program, const dq_plan_request *request, dq_plan **out, dq_error *err)
{
    dq_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return dq_no_memory(err, sizeof *plan, "a plan");
    plan->program = program;
    plan->graph = request->graph;
    plan->kernels = request->kernels;
    plan->threads = request->threads;
    plan->fuse = request->fuse;
    plan->honor_accuracy_level = request->honor_accuracy_level;
    plan->why = request->why;
    plan->why_arg = request->why_arg;
    dq_builder b = {.plan = plan, .request = request};
    dq_status status = build(&b, err);
    free(b.needed);
    free(b.last_read);
    free(b.pieces);
    if (status != DQ_OK)
        dq_plan_free(plan);
    else
        *out = plan;
    return status;
}

void dq_plan_free(dq_plan *plan)
{
    if (!plan)
        return;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        dq_arena_free(&plan->steps[i].late_arena);
        free(plan->steps[i].late_scratch);
        if (plan->steps[i].free_flow)
            plan->steps[i].free_flow(plan->steps[i].flow);
    }
    for (uint32_t i = 0; plan->slots && i < plan->slot_count; i++)
        free(plan->slots[i].late_memory);
    for (uint32_t i = 0; i < plan->copy_count; i++)
        free(plan->copies[i].memory);
    dq_slices_free(plan->slices);
    dq_arena_free(&plan->arena);
    free(plan);
}

bool dq_plan_has_late(const dq_plan *plan)
{
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].late)
            return true;
    return false;
}

const dq_tensor *dq_plan_output(const dq_plan *plan, const dq_value *value)
{
    uint32_t at = dq_plan_index(plan, value);
    for (uint32_t i = 0; i < plan->copy_count; i++)
        if (plan->copies[i].from == at)
            return &plan->copies[i].t;
    return &plan->slots[at].t;
}
