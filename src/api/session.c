/* SPDX-License-Identifier: Apache-2.0 */
#include "api/session.h"
#include "api/structs.h"

#include "base/cpu.h"
#include "base/fpenv.h"
#include "base/memory.h"
#include "plan/rewrite_cache.h"
#include "tensor/items.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const dq_graph *graph_of(const dq_session *session)
{
    return session->model->program->ir->graph;
}

static dq_status choose_isa(dq_session *session, const dq_session_options *options, dq_error *err)
{
    session->isa = dq_cpu_isa();
    if (options->isa && *options->isa)
        DQ_TRY(dq_isa_from_name(options->isa, &session->isa, err));
    dq_kernels_select(session->isa, &session->kernels);
    return DQ_OK;
}

static dq_status choose_threads(dq_session *session, const dq_session_options *options, dq_error *err)
{
    dq_thread_pool *pool = NULL;
    const dq_thread_pool_options of_own = {.threads = options->threads};
    if (options->pool)
        return dq_threads_create(options->pool, &session->threads, err);
    DQ_TRY(options->threads ? dq_pool_create(&of_own, &pool, err) : dq_threads_process_pool(&pool, err));
    dq_status status = dq_threads_create(pool, &session->threads, err);
    dq_thread_pool_free(pool); /* The session holds a reference. */
    return status;
}

static dq_status set_up(dq_session *session, const dq_session_options *options, dq_error *err)
{
    DQ_TRY(choose_isa(session, options, err));
    DQ_TRY(dq_packs_check_isa(session->model->program->packs, session->isa, err));
    DQ_TRY(choose_threads(session, options, err));
    session->fuse = !options->no_fuse;
    DQ_TRY(dq_pass_set_read(options->disabled_passes, &session->disabled_passes, err));
    DQ_TRY(dq_forced_algorithms_read(options->algorithms, &session->forced_algorithms, err));
    session->honor_accuracy_level = options->honor_accuracy_level;
    session->exec.trace = options->trace;
    session->exec.trace_arg = options->arg;
    session->log = options->log;
    session->progress = options->progress;
    session->arg = options->arg;
    size_t inputs = graph_of(session)->input_count;
    const dq_graph *g = graph_of(session);
    const dq_allocator *allocator = &session->allocator;
    session->inputs = dq_memory_calloc(allocator, inputs, sizeof *session->inputs);
    session->bindings = dq_memory_calloc(allocator, inputs, sizeof *session->bindings);
    session->requested = dq_memory_calloc(allocator, g->output_count, sizeof *session->requested);
    session->targets = dq_memory_calloc(allocator, g->output_count, sizeof *session->targets);
    session->requested_capacity = session->target_capacity = g->output_count;
    if (!session->inputs || !session->bindings || !session->requested || !session->targets)
        return dq_no_memory(err, inputs * sizeof *session->bindings, "a session");
    for (int i = 0; i < DQ_SESSION_PLANS; i++)
        if (!(session->plans[i].inputs = dq_memory_calloc(allocator, inputs, sizeof(dq_tensor))))
            return dq_no_memory(err, inputs * sizeof(dq_tensor), "a session");
    DQ_TRY(dq_handover_grow(&session->handover, g->output_count, err));
    for (uint32_t i = 0; i < g->output_count; i++)
        session->requested[session->requested_count++] = g->outputs[i];
    return DQ_OK;
}

dq_status dq_session_create(dq_model *model, const dq_session_options *options, dq_session **out,
                            dq_error *err)
{
    dq_session_options own;
    dq_allocator allocator;
    DQ_NOT_NULL(model);
    DQ_NOT_NULL(out);
    DQ_TRY(dq_read_struct(DQ_STRUCT_SESSION_OPTIONS, "dq_session_create: options", options, &own, err));
    DQ_TRY(dq_allocator_read("dq_session_create: options.allocator", own.allocator, &allocator, err));
    if (model->program->fault_count) {
        if (err)
            *err = model->program->faults[0];
        return model->program->faults[0].status;
    }
    dq_session *session = dq_memory_calloc(&allocator, 1, sizeof *session);
    if (!session)
        return dq_no_memory(err, sizeof *session, "a session");
    session->allocator = allocator;
    session->handover.allocator = &session->allocator;
    dq_exec_init(&session->exec, &session->allocator);
    session->model = model;
    atomic_fetch_add(&model->users, 1);
    dq_status status = set_up(session, &own, err);
    if (status != DQ_OK)
        dq_session_free(session);
    else
        *out = session;
    return status;
}

void dq_session_free(dq_session *session)
{
    if (!session)
        return;
    const dq_allocator allocator = session->allocator;
    const size_t inputs = graph_of(session)->input_count;
    dq_session_forget_inspection(session);
    for (int i = 0; i < DQ_SESSION_PLANS; i++) {
        dq_plan_free(session->plans[i].plan);
        dq_memory_free(&allocator, session->plans[i].inputs, inputs * sizeof(dq_tensor));
    }
    dq_exec_free(&session->exec);
    dq_handover_free(&session->handover);
    dq_threads_free(session->threads);
    dq_memory_free(&allocator, session->inputs, inputs * sizeof *session->inputs);
    dq_memory_free(&allocator, session->bindings, inputs * sizeof *session->bindings);
    dq_memory_free(&allocator, session->requested, session->requested_capacity * sizeof *session->requested);
    dq_memory_free(&allocator, session->targets, session->target_capacity * sizeof *session->targets);
    dq_model_free(session->model);
    dq_memory_free(&allocator, session, sizeof *session);
}

/* ---- Inputs ------------------------------------------------------------------------------------------- */

dq_status dq_session_check_input(const dq_session *session, const dq_value *v, const dq_tensor *t,
                                 dq_error *err)
{
    const dq_type *type = &v->type;
    const char *path = session->model->program->ir->path;
    char got[DQ_SHAPE_TEXT], requested[DQ_SHAPE_TEXT], text[DQ_TYPE_TEXT];
    if (type->kind == DQ_KIND_SPARSE || type->kind == DQ_KIND_MAP)
        return dq_fail(err, DQ_UNSUPPORTED, "%s: input '%s' is %s, which does not run in this build", path,
                       v->name, dq_type_text(type, text));
    if (type->kind != DQ_KIND_TENSOR || t->kind != DQ_KIND_TENSOR) {
        char kind[DQ_KIND_TEXT];
        if (dq_tensor_is(t, type))
            return DQ_OK;
        return dq_fail(err, DQ_BAD_INPUT, "%s: input '%s' is %s, expected %s", path, v->name,
                       dq_tensor_kind_text(t, kind), dq_type_text(type, text));
    }
    if (type->dtype != DQ_UNDEFINED && t->dtype != type->dtype)
        return dq_fail(err, DQ_BAD_INPUT, "%s: input '%s' has type %s, expected %s", path, v->name,
                       dq_dtype_name(t->dtype), dq_dtype_name(type->dtype));
    bool fits = !type->has_shape || type->rank == t->rank;
    for (uint32_t d = 0; fits && type->has_shape && d < type->rank; d++)
        fits = type->dims[d] < 0 || type->dims[d] == t->dims[d];
    if (fits)
        return DQ_OK;
    return dq_fail(err, DQ_BAD_INPUT, "%s: input '%s' has shape %s, expected %s", path, v->name,
                   dq_shape_text(t->rank, t->dims, got),
                   dq_symbols_text(type->rank, type->dims, type->dim_names, requested));
}

dq_status dq_session_set_input(dq_session *session, const char *name, const dq_tensor *tensor, dq_error *err)
{
    size_t at;
    DQ_NOT_NULL(session);
    DQ_TRY(dq_model_find_input(session->model, name, &at, err));
    const uint32_t i = session->model->input_at[at];
    if (tensor)
        DQ_TRY(dq_session_check_input(session, graph_of(session)->inputs[i], tensor, err));
    session->inputs[i] = tensor;
    return DQ_OK;
}

dq_status dq_session_check_inputs(const dq_session *session, dq_error *err)
{
    const dq_graph *g = graph_of(session);
    for (uint32_t i = 0; i < g->input_count; i++) {
        char wants[512];
        if (session->inputs[i] || g->inputs[i]->constant)
            continue;
        dq_model_wants(session->model, wants, sizeof wants);
        return dq_fail(err, DQ_BAD_INPUT, "%s: input '%s' is missing; the model has %s",
                       session->model->program->ir->path, g->inputs[i]->name, wants);
    }
    return DQ_OK;
}

/* Refuses overlapping targets: they would have to hold two values. */
static dq_status check_no_overlap(const dq_session *session, dq_error *err)
{
    for (uint32_t i = 0; i < session->requested_count; i++)
        for (uint32_t k = 0; session->targets[i] && k < i; k++)
            if (session->targets[k] && dq_tensor_overlap(session->targets[i], session->targets[k]))
                return dq_fail(err, DQ_INVALID_ARGUMENT,
                               "%s: the tensors for outputs '%s' and '%s' overlap, expected memory for each",
                               session->model->program->ir->path, session->requested[k]->name,
                               session->requested[i]->name);
    return DQ_OK;
}

/* ---- Running ------------------------------------------------------------------------------------------ */

/* Whether the plan is for inputs of these types; `shapes`: also of these shapes. */
static bool plan_fits(const dq_session *session, const dq_planned *p, bool shapes)
{
    const dq_graph *g = graph_of(session);
    if (!p->plan)
        return false;
    for (uint32_t i = 0; i < g->input_count; i++) {
        const dq_tensor *then = &p->inputs[i], *now = session->inputs[i];
        if (!now != (then->dtype == DQ_UNDEFINED))
            return false;
        if (!now)
            continue;
        if (now->kind != then->kind || now->item_kind != then->item_kind || now->dtype != then->dtype)
            return false;
        if (shapes && now->kind == DQ_KIND_TENSOR && !dq_tensor_same_shape(now, then))
            return false;
    }
    return true;
}

static void drop_plan(dq_planned *p)
{
    dq_plan_free(p->plan);
    p->plan = NULL;
}

/* Moves plan i to the front. */
static void put_first(dq_session *session, int i)
{
    dq_planned first = session->plans[i];
    dq_session_forget_inspection(session);
    memmove(session->plans + 1, session->plans, (size_t)i * sizeof first);
    session->plans[0] = first;
}

/* Moves an entry for a new plan to the front: an empty one, or that of the least recently used plan. A
 * current plan with dynamic steps is replaced instead: it owns memory, so a session keeps only one. */
static void reserve_capacity(dq_session *session, bool keep)
{
    const dq_planned *first = &session->plans[0];
    if (first->plan && keep && !dq_plan_has_dynamic_steps(first->plan))
        put_first(session, DQ_SESSION_PLANS - 1);
}

static void forget_plans(dq_session *session)
{
    session->rewritten = NULL;
    session->ran = false;
    dq_session_forget_inspection(session);
    for (int i = 0; i < DQ_SESSION_PLANS; i++)
        drop_plan(&session->plans[i]);
}

/* Records that an input's default is overridden, before planning for the new value. */
static void override_default(dq_session *session, dq_value *v)
{
    if (!v->constant)
        return;
    uint32_t fed = dq_rewrite_cache_override(session->model->program->rewrites, v);
    if (session->rewritten && session->rewritten->overridden != fed)
        forget_plans(session); /* They may treat its default as a constant. */
}

static uint32_t list_given(dq_session *session)
{
    const dq_graph *g = graph_of(session);
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->input_count; i++) {
        if (!session->inputs[i])
            continue;
        session->bindings[count++] = (dq_binding){.value = g->inputs[i], .tensor = session->inputs[i]};
        override_default(session, g->inputs[i]);
    }
    return count;
}

static void log_message(const dq_session *session, dq_log_kind kind, const char *message)
{
    const dq_log_record record = {.size = sizeof record, .kind = kind, .message = message};
    session->log(session->arg, &record);
}

static void log_rewrite(void *session, const char *message)
{
    log_message(session, DQ_LOG_REWRITE, message);
}

static void log_plan(void *session, const char *message)
{
    log_message(session, DQ_LOG_PLAN, message);
}

static dq_plan_request request_of(dq_session *session, const dq_binding *bindings, uint32_t binding_count,
                                  bool fuse)
{
    return (dq_plan_request){.graph = session->model->program->ir->graph,
                             .bindings = bindings,
                             .binding_count = binding_count,
                             .requested = session->requested,
                             .requested_count = session->requested_count,
                             .kernels = &session->kernels,
                             .threads = session->threads,
                             .budget = &session->budget,
                             .allocator = &session->allocator,
                             .fuse = fuse,
                             .disabled_passes = session->disabled_passes,
                             .forced_algorithms = &session->forced_algorithms,
                             .honor_accuracy_level = session->honor_accuracy_level,
                             .by_batch_tiles = !session->exec.trace, /* A trace has each step once. */
                             .why = session->log ? log_rewrite : NULL,
                             .why_arg = session};
}

/* Whether the status is final. Other errors may not occur in a plan of the graph as written. */
static bool is_final(dq_status status)
{
    return status == DQ_OK || status == DQ_OUT_OF_MEMORY || status == DQ_CANCELLED ||
           status == DQ_INVALID_ARGUMENT; /* A forced algorithm is not applicable. */
}

/* Plans the rewritten graph. A synthetic node may require more of shapes than the nodes that it replaces; if
 * it does not fit, the graph is planned as written. */
static dq_status plan_rewritten_or_not(dq_session *session, dq_plan_request *request,
                                       const dq_rewritten_graph *rewritten, dq_error *err)
{
    dq_planned *p = &session->plans[0];
    dq_status status = DQ_OK;
    dq_session_forget_inspection(session);
    dq_plan_request_use(request, rewritten);
    if (p->plan && p->is_rewritten == (rewritten != NULL) && plan_fits(session, p, false) && !session->log &&
        dq_plan_reshape(&p->plan, request, NULL) == DQ_OK)
        return DQ_OK;
    drop_plan(p);
    if (rewritten) {
        status = dq_plan_create(session->model->program, request, &p->plan, err);
        p->is_rewritten = status == DQ_OK;
        if (is_final(status))
            return status;
        if (session->log)
            log_plan(session, "the model is planned as written: a fused node does not accept these shapes");
    }
    dq_plan_request_use(request, NULL);
    p->is_rewritten = false;
    return dq_plan_create(session->model->program, request, &p->plan, err);
}

static dq_status make_plan(dq_session *session, uint32_t binding_count, bool fuse, dq_error *err)
{
    const dq_graph *g = graph_of(session);
    reserve_capacity(session, fuse == session->fuse);
    dq_plan_request request = request_of(session, session->bindings, binding_count, fuse);
    if (fuse && !session->rewritten)
        DQ_TRY(dq_program_rewrite(session->model->program, &request, &session->rewritten, err));
    request.why = session->log ? log_plan : NULL;
    DQ_TRY(plan_rewritten_or_not(session, &request, fuse ? session->rewritten : NULL, err));
    for (uint32_t i = 0; i < g->input_count; i++)
        session->plans[0].inputs[i] = session->inputs[i] ? *session->inputs[i] : (dq_tensor){0};
    return DQ_OK;
}

static dq_status choose_plan(dq_session *session, uint32_t binding_count, dq_error *err)
{
    for (int i = 0; i < DQ_SESSION_PLANS; i++)
        if (plan_fits(session, &session->plans[i], true)) {
            put_first(session, i);
            return DQ_OK;
        }
    return make_plan(session, binding_count, session->fuse, err);
}

/* Resets the budget: planning may have run subgraphs, and the run counts from 0. */
static void begin_run(dq_session *session, const dq_plan *plan)
{
    session->budget.used = 0;
    session->budget.reported = (dq_progress){
        .size = sizeof(dq_progress), .phase = DQ_PHASE_RUN, .total_work = dq_plan_total_work(plan)};
}

static dq_status run_plan(dq_session *session, uint32_t binding_count, dq_error *err)
{
    dq_plan *plan = session->plans[0].plan;
    DQ_TRY(dq_handover_prepare(&session->handover, plan, session->targets, err));
    session->exec.targets = session->handover.targets;
    begin_run(session, plan);
    return dq_exec_run(&session->exec, plan, session->bindings, binding_count, err);
}

static void begin_plan(dq_session *session)
{
    session->budget = (dq_budget){.limit = session->model->program->ir->limits.work,
                                  .progress = session->progress,
                                  .progress_arg = session->arg,
                                  .reported = {.size = sizeof(dq_progress), .phase = DQ_PHASE_PLAN}};
}

dq_status dq_session_plan(dq_session *session, uint32_t *binding_count, dq_error *err)
{
    *binding_count = list_given(session);
    begin_plan(session);
    return choose_plan(session, *binding_count, err);
}

dq_status dq_session_plan_for(dq_session *session, const dq_binding *bindings, uint32_t binding_count,
                              dq_plan **out, dq_error *err)
{
    dq_status status = DQ_OK;
    begin_plan(session);
    for (uint32_t i = 0; i < binding_count; i++)
        override_default(session, (dq_value *)(uintptr_t)bindings[i].value);
    dq_plan_request request = request_of(session, bindings, binding_count, session->fuse);
    if (session->fuse && !session->rewritten)
        DQ_TRY(dq_program_rewrite(session->model->program, &request, &session->rewritten, err));
    request.why = session->log ? log_plan : NULL;
    if (session->fuse) {
        dq_plan_request_use(&request, session->rewritten);
        status = dq_plan_create(session->model->program, &request, out, err);
        if (is_final(status))
            return status;
    }
    dq_plan_request_use(&request, NULL);
    return dq_plan_create(session->model->program, &request, out, err);
}

static dq_status plan_and_run(dq_session *session, dq_error *err)
{
    uint32_t binding_count;
    DQ_TRY(dq_session_plan(session, &binding_count, err));
    const dq_planned *p = &session->plans[0];
    session->exec.may_retry = p->is_rewritten && dq_plan_has_dynamic_steps(p->plan);
    dq_status status = run_plan(session, binding_count, err);
    if (status == DQ_BAD_MODEL && session->exec.may_retry &&
        !dq_threads_cancelled(session->threads)) { /* A dynamic step may be the one that does not fit. */
        DQ_TRY(make_plan(session, binding_count, false, err));
        session->exec.may_retry = false;
        status = run_plan(session, binding_count, err);
    }
    return status;
}

dq_status dq_session_end(dq_session *session, dq_fpenv callers, dq_status status, dq_error *err)
{
    dq_threads_rest(session->threads);
    dq_fpenv_leave(callers);
    if (!dq_threads_cancelled(session->threads)) /* Results of unfinished work are not used. */
        return status;
    dq_threads_set_cancelled(session->threads, false);
    return dq_fail(err, DQ_CANCELLED, "%s: the run was cancelled", session->model->program->ir->path);
}

dq_status dq_session_run(dq_session *session, dq_error *err)
{
    DQ_NOT_NULL(session);
    session->ran = false;
    DQ_TRY(dq_session_check_inputs(session, err));
    DQ_TRY(check_no_overlap(session, err));
    const dq_fpenv callers = dq_fpenv_enter();
    dq_status status = plan_and_run(session, err);
    status = dq_session_end(session, callers, status, err);
    session->ran = status == DQ_OK;
    return status;
}

void dq_session_cancel(dq_session *session)
{
    dq_threads_set_cancelled(session->threads, true);
}

/* ---- Outputs ------------------------------------------------------------------------------------------ */

/* Position in `requested`; requested_count: there is none. */
static uint32_t output_named(const dq_session *session, const char *name)
{
    const dq_graph *g = graph_of(session);
    uint32_t i = 0;
    while (i < session->requested_count && name &&
           strcmp(i < g->output_count ? g->output_names[i] : session->requested[i]->name, name) != 0)
        i++;
    return i;
}

static dq_status find_output(const dq_session *session, const char *name, uint32_t *at, dq_error *err)
{
    *at = output_named(session, name);
    return *at < session->requested_count
               ? DQ_OK
               : dq_fail(err, DQ_INVALID_ARGUMENT, "%s: has no output '%s'",
                         session->model->program->ir->path, name ? name : "(first)");
}

dq_status dq_session_set_output(dq_session *session, const char *name, dq_tensor *tensor, dq_error *err)
{
    uint32_t at;
    DQ_NOT_NULL(session);
    DQ_TRY(find_output(session, name, &at, err));
    const char *path = session->model->program->ir->path;
    const dq_value *v = session->requested[at];
    char got[DQ_KIND_TEXT], requested[DQ_TYPE_TEXT];
    if (tensor && (tensor->kind != DQ_KIND_TENSOR || tensor->dtype == DQ_STRING))
        return dq_fail(err, DQ_INVALID_ARGUMENT,
                       "%s: output '%s' cannot be written to %s, expected a tensor of numbers", path, v->name,
                       dq_tensor_kind_text(tensor, got));
    if (tensor && tensor->is_const)
        return dq_fail(
            err, DQ_INVALID_ARGUMENT,
            "%s: output '%s' cannot be written to a tensor of dq_tensor_wrap_const, expected one that "
            "may be written",
            path, v->name);
    if (tensor && !dq_tensor_is(tensor, &v->type))
        return dq_fail(err, DQ_BAD_INPUT, "%s: the tensor for output '%s' is %s, expected %s", path, v->name,
                       dq_tensor_kind_text(tensor, got), dq_type_text(&v->type, requested));
    session->targets[at] = tensor;
    return DQ_OK;
}

/* Finds an output of the last run that was not taken. */
static dq_status find_result(const dq_session *session, const char *name, uint32_t *at, dq_error *err)
{
    DQ_TRY(find_output(session, name, at, err));
    const char *path = session->model->program->ir->path, *shown = session->requested[*at]->name;
    if (!session->ran)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: output '%s' is there only after a run that succeeded",
                       path, shown);
    if (session->handover.entries[*at].placed_interval)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: output '%s' of the last run has been taken", path,
                       shown);
    return DQ_OK;
}

dq_status dq_session_get_output(dq_session *session, const char *name, const dq_tensor **out, dq_error *err)
{
    DQ_NOT_NULL(session);
    DQ_NOT_NULL(out);
    uint32_t at;
    DQ_TRY(find_result(session, name, &at, err));
    *out = dq_plan_output(session->plans[0].plan, session->requested[at]);
    return DQ_OK;
}

dq_status dq_session_take_output(dq_session *session, const char *name, dq_tensor **out, dq_error *err)
{
    DQ_NOT_NULL(session);
    DQ_NOT_NULL(out);
    uint32_t at;
    DQ_TRY(find_result(session, name, &at, err));
    return dq_handover_take(&session->handover, at, session->plans[0].plan, session->requested, out, err);
}

/* Makes the capacity of a list sufficient for one more element. */
static bool grow_list(const dq_session *session, void *list, uint32_t *capacity, size_t size)
{
    if (session->requested_count < *capacity)
        return true;
    const uint32_t requested = *capacity + 1;
    void *grown = dq_memory_grow(&session->allocator, *(void **)list, *capacity * size, requested * size);
    if (!grown)
        return false;
    *(void **)list = grown;
    *capacity = requested;
    return true;
}

dq_status dq_session_add_output(dq_session *session, const char *name, dq_error *err)
{
    DQ_NOT_NULL(session);
    DQ_NOT_NULL(name);
    if (output_named(session, name) < session->requested_count)
        return DQ_OK;
    const dq_value *v = dq_namemap_get(&graph_of(session)->values, name);
    if (!v || !(v->is_input || v->constant || v->producer))
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: has no value '%s'", session->model->program->ir->path,
                       name);
    if (!grow_list(session, &session->requested, &session->requested_capacity, sizeof *session->requested) ||
        !grow_list(session, &session->targets, &session->target_capacity, sizeof *session->targets))
        return dq_no_memory(err, sizeof *session->requested, "an output");
    DQ_TRY(dq_handover_grow(&session->handover, session->requested_count + 1, err));
    session->targets[session->requested_count] = NULL;
    session->requested[session->requested_count++] = v;
    forget_plans(session);
    session->ran = false;
    return DQ_OK;
}

const char *dq_session_isa(const dq_session *session)
{
    return dq_isa_highest(session->isa);
}

unsigned dq_session_threads(const dq_session *session)
{
    return dq_threads_count(session->threads);
}
