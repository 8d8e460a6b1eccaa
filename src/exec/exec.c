/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/exec.h"

#include "base/checked.h"
#include "base/memory.h"
#include "base/pages.h"
#include "exec/bound_outputs.h"
#include "exec/control_flow.h"
#include "plan/batch_tiling.h"
#include "tensor/items.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

dq_status dq_exec_reserve(const dq_allocator *allocator, void **memory, size_t *capacity, size_t size,
                          size_t keep, const char *what, dq_error *err)
{
    /* Use a whole last large page if more than half of it is needed. */
    size_t align = size % DQ_LARGE_PAGE > DQ_LARGE_PAGE / 2 ? DQ_LARGE_PAGE : DQ_ALIGN, requested;
    if (*memory && *capacity >= size)
        return DQ_OK;
    /* Memory that grew once usually grows again, as a text grows by a word in each run: avoid new pages for
     * each. */
    size_t more = *memory && !keep && size < SIZE_MAX / 2 ? size / 4 : 0;
    if (!dq_align_size(size ? size + more : 1, align, &requested))
        return dq_no_memory(err, size, what);
    if (!keep) { /* Free first: keeping both would need more memory. */
        dq_memory_free(allocator, *memory, *capacity);
        *memory = NULL;
        *capacity = 0;
    }
    void *grown = dq_memory_alloc(allocator, requested);
    if (!grown)
        return dq_no_memory(err, requested, what);
    if (keep) {
        memcpy(grown, *memory, keep);
        dq_memory_free(allocator, *memory, *capacity);
    }
    *memory = grown;
    *capacity = requested;
    return DQ_OK;
}

static dq_status reserve(const dq_allocator *allocator, void **memory, size_t *capacity, size_t size,
                         const char *what, dq_error *err)
{
    return dq_exec_reserve(allocator, memory, capacity, size, 0, what, err);
}

/* ---- Data pointers ------------------------------------------------------------------------------------ */

static void bind_buffer(dq_plan *plan, char *base)
{
    if (plan->bound == base)
        return;
    plan->bound = base;
    for (uint32_t i = 0; i < plan->slot_count; i++)
        if (plan->slots[i].where == DQ_AT_BUFFER)
            plan->slots[i].t.data = base + plan->slots[i].offset;
    for (uint32_t i = 0; i < plan->output_binding_count; i++)
        plan->output_bindings[i].at = base + plan->output_bindings[i].offset;
    for (uint32_t i = 0; i < plan->copy_count; i++)
        if (plan->slots[plan->copies[i].from].shaped)
            plan->copies[i].t.data = base + plan->copies[i].offset;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        dq_step *step = plan->steps[i];
        if (step->dynamic)
            continue;
        step->call.scratch = base + step->scratch_offset;
        step->call.worker_scratch = base + step->worker_offset;
    }
}

static void bind_inputs(dq_plan *plan, const dq_binding *bindings, uint32_t binding_count)
{
    for (uint32_t i = 0; i < binding_count; i++) {
        dq_slot *slot = dq_plan_slot(plan, bindings[i].value);
        if (slot->where != DQ_AT_INPUT)
            continue; /* A constant: the plan has it. */
        if (slot->shaped)
            slot->t.data = bindings[i].tensor->data;
        else if (bindings[i].tensor->kind == DQ_KIND_TENSOR || plan->graph->outer)
            slot->t = *bindings[i].tensor; /* Lists of the main graph are copied, see own_lists. */
    }
    for (uint32_t i = 0; i < plan->caller_slot_count; i++) {
        dq_slot *slot = &plan->slots[plan->caller_slots[i]];
        char *root = plan->slots[slot->root].t.data;
        slot->t.data = root ? root + slot->shift : NULL;
    }
}

/* ---- Steps -------------------------------------------------------------------------------------------- */

static dq_status reserve_dynamic_scratch(const dq_plan *plan, dq_step *step, dq_error *err)
{
    dq_op_call *call = &step->call;
    size_t shared, workers, all;
    if (!dq_align_size(call->scratch_size, DQ_ALIGN, &shared) ||
        !dq_mul_size(dq_threads_count(call->threads), call->worker_scratch_size, &workers) ||
        !dq_add_size(shared, workers, &all))
        return dq_no_memory(err, call->scratch_size, "an operator's scratch");
    DQ_TRY(reserve(plan->allocator, &step->dynamic_scratch, &step->dynamic_scratch_capacity, all,
                   "an operator's scratch", err));
    call->scratch = step->dynamic_scratch;
    call->worker_scratch = (char *)step->dynamic_scratch + shared;
    return DQ_OK;
}

/* Whether a dynamic step is prepared for inputs of these types and shapes. */
static bool is_prepared(const dq_step *step)
{
    const dq_op_call *call = &step->call;
    for (uint32_t i = 0; step->prepared_for && i < call->in_count; i++) {
        const dq_tensor *now = call->in[i], *then = &step->prepared_for[i];
        if (now &&
            (now->dtype != then->dtype || !dq_tensor_same_shape(now, then) || now->block != then->block ||
             now->repeats != then->repeats || now->unaligned != then->unaligned))
            return false;
    }
    return step->prepared_for != NULL;
}

/* Hides the values of all inputs that are not constant, as planning does: what is inferred and prepared then
 * depends on types and shapes alone. */
static dq_status hide_values(dq_step *step, dq_tensor **hidden, dq_error *err)
{
    const dq_op_call *call = &step->call;
    *hidden = DQ_NEW_ARRAY(&step->dynamic_arena, call->in_count + 1, dq_tensor);
    if (!*hidden)
        return dq_no_memory(err, call->in_count * sizeof **hidden, "the inputs of a step");
    for (uint32_t i = 0; i < call->in_count; i++)
        if (call->in[i])
            (*hidden)[i] = *call->in[i];
    for (uint32_t i = 0; i < call->in_count; i++)
        if (call->in[i] && !dq_call_constant(call, i))
            dq_slot_of(call->in[i])->t.data = NULL;
    return DQ_OK;
}

static void show_values(const dq_step *step, const dq_tensor *hidden)
{
    for (uint32_t i = 0; i < step->call.in_count; i++)
        if (step->call.in[i])
            dq_slot_of(step->call.in[i])->t.data = hidden[i].data;
}

static void forget_dynamic(dq_step *step)
{
    dq_arena_reset(&step->dynamic_arena);
    step->call.arena = &step->dynamic_arena;
    step->call.state = NULL;
    step->call.scratch_size = step->call.worker_scratch_size = 0;
    step->prepared_for = NULL;
}

static dq_status infer_and_prepare(dq_plan *plan, dq_step *step, dq_error *err)
{
    dq_op_call *call = &step->call;
    const dq_op_impl *impl = step->node->op->impl;
    dq_status status = dq_step_infer(plan, step, err);
    if (status != DQ_OK)
        return status;
    step->work = dq_call_work(call);
    if (impl->prepare)
        DQ_TRY(impl->prepare(call, err));
    return dq_packs_finish(call->packs, call->threads, err);
}

/* Without values where the operator can do so: the step then stays prepared for these types and shapes. */
static dq_status plan_dynamic(dq_plan *plan, dq_step *step, dq_error *err)
{
    if (!step->reads_values) {
        dq_tensor *hidden;
        forget_dynamic(step);
        DQ_TRY(hide_values(step, &hidden, err));
        dq_status status = infer_and_prepare(plan, step, err);
        show_values(step, hidden);
        if (status != DQ_DEFERRED) {
            step->prepared_for = status == DQ_OK ? hidden : NULL;
            return status;
        }
        step->reads_values = true;
    }
    forget_dynamic(step);
    dq_status status = infer_and_prepare(plan, step, err);
    return status == DQ_DEFERRED ? dq_fail(err, DQ_INTERNAL, "the operator wants a value that it has")
                                 : status;
}

static dq_status place_dynamic_outputs(const dq_plan *plan, const dq_step *step, dq_error *err)
{
    const dq_op_call *call = &step->call;
    for (uint32_t i = 0; i < call->out_count; i++) {
        if (!call->out[i])
            continue;
        dq_slot *slot = dq_plan_slot(plan, step->node->out[i]);
        const dq_tensor *to = slot->target;
        if (to && to->dtype == slot->t.dtype && to->size == slot->t.size && slot->t.size) {
            slot->t.data = to->data;
            continue;
        }
        DQ_TRY(reserve(plan->allocator, &slot->dynamic_memory, &slot->dynamic_capacity, slot->t.size,
                       "a value inside the graph", err));
        slot->t.data = slot->dynamic_memory;
    }
    return DQ_OK;
}

/* Infers and prepares a step with inputs and outputs in memory of its own. A step whose shapes do not depend
 * on values stays prepared until its inputs have other types or shapes. */
static dq_status dynamic_step(dq_plan *plan, dq_step *step, dq_error *err)
{
    if (!is_prepared(step))
        DQ_TRY(plan_dynamic(plan, step, err));
    DQ_TRY(place_dynamic_outputs(plan, step, err));
    DQ_TRY(dq_plan_take(plan, step->work, err));
    return reserve_dynamic_scratch(plan, step, err);
}

static void report(const dq_exec *exec, const dq_step *step, double seconds)
{
    const dq_node *node = step->node;
    char op[160];
    const char *name = node->name;
    for (uint32_t i = 0; !*name && i < node->out_count; i++)
        name = node->out_names[i];
    snprintf(op, sizeof op, "%.40s%s%.100s-%d", node->domain, *node->domain ? "." : "", node->op_type,
             node->version);
    dq_trace_event event = {.size = sizeof event,
                            .node = name,
                            .op = op,
                            .seconds = seconds,
                            .output_count = step->call.out_count,
                            .output_names = node->out_names,
                            .outputs = (const dq_tensor *const *)step->call.out,
                            .algorithm = step->call.algorithm ? step->call.algorithm->id : NULL};
    exec->trace(exec->trace_arg, &event);
}

static dq_status run_step(const dq_exec *exec, dq_plan *plan, dq_step *step, dq_arena *strings, dq_error *err)
{
    double start = exec->trace ? now() : 0;
    step->call.strings = strings;
    if (step->node->op->impl->flags & DQ_OP_SUBGRAPH) {
        DQ_TRY(dq_plan_take(plan, 1, err));
        DQ_TRY(dq_flow_run(plan, step, err));
    } else {
        if (step->dynamic)
            DQ_TRY(dynamic_step(plan, step, err));
        else
            DQ_TRY(dq_plan_take(plan, step->work, err));
        DQ_TRY(step->node->op->impl->run(&step->call, err));
    }
    uint64_t limit = plan->program->ir->limits.session_bytes;
    if (strings->used > limit)
        return dq_fail(err, DQ_OUT_OF_MEMORY,
                       "the strings and sequences of the run take %zu bytes, over the limit of %" PRIu64,
                       strings->used, limit);
    if (exec->trace)
        report(exec, step, now() - start);
    return DQ_OK;
}

/* Copies an output that is also an input to memory of the run. */
static dq_status copy_output(const dq_plan *plan, dq_copy *copy, dq_error *err)
{
    const dq_slot *from = &plan->slots[copy->from];
    if (!from->shaped) {
        copy->t = from->t;
        copy->t.owned = false;
        if (from->t.kind != DQ_KIND_TENSOR)
            return DQ_OK; /* The run already owns the items. */
        DQ_TRY(reserve(plan->allocator, &copy->memory, &copy->capacity, from->t.size, "an output", err));
        copy->t.data = copy->memory;
    }
    if (copy->t.size)
        memcpy(copy->t.data, from->t.data, copy->t.size);
    return DQ_OK;
}

static dq_status run_steps(const dq_exec *exec, dq_plan *plan, dq_arena *strings, dq_error *err)
{
    for (uint32_t i = 0; i < plan->step_count; i++) {
        dq_step *step = plan->steps[i];
        DQ_TRY(dq_plan_go_on(plan, err));
        DQ_TRY(dq_step_fault(plan, step, run_step(exec, plan, step, strings, err), err));
    }
    DQ_TRY(dq_plan_go_on(plan, err)); /* Reports that the last step is complete. */
    for (uint32_t i = 0; i < plan->copy_count; i++)
        DQ_TRY(copy_output(plan, &plan->copies[i], err));
    return DQ_OK;
}

/* ---- Batch tiles before the first step ---------------------------------------------------------------- */

typedef struct tile_job {
    const dq_exec *exec;
    dq_plan *plan;
    const dq_binding *bindings;
    dq_arena *strings;
} tile_job;

static void run_tile(const tile_job *j, dq_batch_tile_runner *runner, size_t at)
{
    const struct dq_batch_tiling *s = j->plan->tiling;
    for (uint32_t i = 0; i < s->binding_count; i++)
        runner->tensors[i].data =
            (char *)j->bindings[i].tensor->data + (s->is_batched[i] ? at * runner->tensors[i].size : 0);
    bind_inputs(runner->plan, runner->bindings, s->binding_count);
    runner->status = run_steps(j->exec, runner->plan, j->strings, &runner->err);
    for (uint32_t i = 0; i < s->value_count && runner->status == DQ_OK; i++) {
        const dq_tensor *from = dq_plan_output(runner->plan, s->values[i]);
        char *to = dq_plan_slot(j->plan, s->values[i])->t.data;
        if (from->size)
            memcpy(to + at * from->size, from->data, from->size);
    }
}

static void run_some_tiles(void *arg, size_t begin, size_t end, unsigned worker)
{
    const tile_job *j = arg;
    dq_batch_tile_runner *runner = &j->plan->tiling->runners[worker];
    for (size_t i = begin; i < end && runner->status == DQ_OK; i++) {
        if (worker == 0) /* Only one thread reports, as the caller's callback expects. A cancelled tile
                            reports itself. */
            (void)dq_plan_go_on(j->plan, NULL);
        run_tile(j, runner, i);
    }
}

static dq_status run_tiles(tile_job *j, char *memory, dq_error *err)
{
    const struct dq_batch_tiling *s = j->plan->tiling;
    for (size_t i = 0; i < s->runner_count; i++, memory += s->runner_bytes) {
        bind_buffer(s->runners[i].plan, memory);
        s->runners[i].status = DQ_OK;
    }
    dq_parallel(s->runner_count > 1 ? j->plan->threads : dq_threads_alone(j->plan->threads), s->count, 1,
                run_some_tiles, j);
    for (size_t i = 0; i < s->runner_count; i++)
        if (s->runners[i].status != DQ_OK) {
            if (err)
                *err = s->runners[i].err;
            return s->runners[i].status;
        }
    return DQ_OK;
}

dq_status dq_exec_run_inner(dq_exec *exec, dq_plan *plan, const dq_binding *bindings, uint32_t binding_count,
                            dq_arena *strings, dq_error *err)
{
    DQ_TRY(dq_plan_go_on(plan, err));
    const uint64_t before_steps = dq_work_add(plan->stepless_work, plan->tiling ? plan->tiling->work : 0);
    dq_status status = dq_plan_take(plan, before_steps, err);
    if (status != DQ_OK && !plan->graph->outer)
        dq_error_prefix(err, "%s: ", plan->program->ir->path);
    DQ_TRY(status);
    DQ_TRY(reserve(exec->allocator, &exec->buffer, &exec->buffer_capacity, plan->buffer_size, "activations",
                   err));
    bind_buffer(plan, exec->buffer);
    bind_inputs(plan, bindings, binding_count);
    DQ_TRY(dq_targets_bind(exec, plan, bindings, binding_count, err));
    tile_job j = {exec, plan, bindings, strings};
    if (plan->tiling)
        DQ_TRY(run_tiles(&j, (char *)exec->buffer + plan->ahead_offset, err));
    DQ_TRY(run_steps(exec, plan, strings, err));
    return dq_targets_fill(exec, plan, err);
}

/* Copies input sequences: outputs may share their items and outlive the caller's sequence. */
static dq_status own_lists(dq_exec *exec, const dq_plan *plan, const dq_binding *bindings,
                           uint32_t binding_count, dq_error *err)
{
    for (uint32_t i = 0; i < binding_count; i++) {
        const dq_tensor *t = bindings[i].tensor, *kept;
        if (t->kind == DQ_KIND_TENSOR)
            continue;
        DQ_TRY(dq_tensor_keep(&exec->strings, t, &kept, err));
        dq_plan_slot(plan, bindings[i].value)->t = *kept;
    }
    return DQ_OK;
}

dq_status dq_exec_run(dq_exec *exec, dq_plan *plan, const dq_binding *bindings, uint32_t binding_count,
                      dq_error *err)
{
    dq_arena_reset(&exec->strings);
    DQ_TRY(own_lists(exec, plan, bindings, binding_count, err));
    return dq_exec_run_inner(exec, plan, bindings, binding_count, &exec->strings, err);
}

void dq_exec_init(dq_exec *exec, const dq_allocator *allocator)
{
    *exec = (dq_exec){.allocator = allocator, .strings.allocator = allocator};
}

void dq_exec_free(dq_exec *exec)
{
    dq_memory_free(exec->allocator, exec->buffer, exec->buffer_capacity);
    dq_arena_free(&exec->strings);
    *exec = (dq_exec){0};
}
