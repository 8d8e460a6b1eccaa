/* SPDX-License-Identifier: Apache-2.0 */
/* Inspection of a session: planning without a run, and the steps and memory of its current plan. */
#include "api/session.h"
#include "api/structs.h"
#include "base/file.h"
#include "base/memory.h"
#include "plan/batch_tiling.h"
#include "plan/inspect.h"
#include "tensor/items.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Data about plans[0] that callers requested; made on first request. */
struct dq_inspection {
    dq_arena arena;
    dq_run_steps steps;
    const char **ops; /* By step. */
};

void dq_session_forget_inspection(dq_session *session)
{
    if (!session->inspection)
        return;
    dq_arena_free(&session->inspection->arena);
    dq_memory_free(&session->allocator, session->inspection, sizeof *session->inspection);
    session->inspection = NULL;
}

static const dq_ir *ir_of(const dq_session *session)
{
    return session->model->program->ir;
}

/* ---- Planning ----------------------------------------------------------------------------------------- */

dq_status dq_session_prepare(dq_session *session, dq_error *err)
{
    uint32_t binding_count;
    DQ_NOT_NULL(session);
    session->ran = false;
    DQ_TRY(dq_session_check_inputs(session, err));
    const dq_fpenv callers = dq_fpenv_enter();
    return dq_session_end(session, callers, dq_session_plan(session, &binding_count, err), err);
}

/* ---- Packed weights -------------------------------------------------------------------------------------
 */

dq_status dq_session_save_packed_write(dq_session *session, dq_write_fn write, void *arg, dq_error *err)
{
    dq_content *content = NULL;
    DQ_NOT_NULL(session);
    DQ_NOT_NULL(write);
    dq_packs *packs = session->model->program->packs;
    DQ_TRY(dq_packs_finish(packs, session->threads, err));
    DQ_TRY(dq_content_create(ir_of(session), NULL, &content, err));
    const dq_status status = dq_packs_save(packs, session->isa, content, write, arg, err);
    dq_content_free(content);
    return status;
}

static int write_to_file(void *file, const void *bytes, size_t size)
{
    dq_file_write(file, bytes, size);
    return ((const dq_file_out *)file)->fault;
}

dq_status dq_session_save_packed(dq_session *session, const char *path, dq_error *err)
{
    dq_file_out file;
    DQ_NOT_NULL(session);
    DQ_NOT_NULL(path);
    DQ_TRY(dq_file_create(path, &file, err));
    const dq_status status = dq_session_save_packed_write(session, write_to_file, &file, err);
    if (status == DQ_OK || status == DQ_IO) /* the file knows why it could not be written */
        return dq_file_commit(&file, err);
    file.fault = ECANCELED;
    dq_file_commit(&file, NULL);
    return status;
}

/* ---- Shapes before a run ------------------------------------------------------------------------------ */

/* Inputs of a plan for given shapes, by position in the graph's inputs. */
typedef struct shapes {
    dq_tensor *tensors; /* Without data. */
    bool *known;
    dq_binding *bindings; /* The known ones. */
    uint32_t binding_count;
} shapes;

/* Sets the type of an input, and the shape if it is a tensor. */
static dq_status set_shape(const dq_session *session, uint32_t i, size_t rank, const int64_t *dims,
                           dq_tensor *t, dq_error *err)
{
    const dq_value *v = ir_of(session)->graph->inputs[i];
    const dq_tensor *set = session->inputs[i] ? session->inputs[i] : v->constant;
    const dq_type *type = &v->type, *inside = type->element;
    const char *path = ir_of(session)->path;
    *t = (dq_tensor){0};
    if (type->kind == DQ_KIND_SEQUENCE || type->kind == DQ_KIND_OPTIONAL) {
        const dq_kind item = inside ? inside->kind : DQ_KIND_TENSOR;
        while (inside && inside->kind != DQ_KIND_TENSOR)
            inside = inside->element;
        dq_items_describe(t, type->kind, item, inside ? inside->dtype : DQ_UNDEFINED);
        return DQ_OK;
    }
    const dq_dtype dtype = type->dtype == DQ_UNDEFINED && set ? set->dtype : type->dtype;
    if (dtype == DQ_UNDEFINED)
        return dq_fail(err, DQ_BAD_INPUT, "%s: input '%s' has no declared type; set a tensor to tell it",
                       path, v->name);
    dq_status status =
        dq_tensor_set_shape(t, dtype, rank, dims, ir_of(session)->limits.tensor_bytes, DQ_BAD_INPUT, err);
    if (status != DQ_OK)
        dq_error_prefix(err, "%s: input '%s': ", path, v->name);
    return status;
}

static bool is_static(const dq_type *type)
{
    bool known = type->kind != DQ_KIND_TENSOR || type->has_shape;
    for (uint32_t d = 0; type->has_shape && d < type->rank; d++)
        known = known && type->dims[d] >= 0;
    return known;
}

/* Completes a missing shape: that of the tensor that is set, else the declared one. */
static dq_status complete_shape(const dq_session *session, uint32_t i, shapes *s, dq_error *err)
{
    const dq_value *v = ir_of(session)->graph->inputs[i];
    char wants[512];
    if (s->known[i] || (v->constant && !session->inputs[i]))
        return DQ_OK;
    s->known[i] = true;
    if (session->inputs[i]) {
        s->tensors[i] = *session->inputs[i];
        s->tensors[i].data = NULL;
        s->tensors[i].owned = false;
        return DQ_OK;
    }
    if (is_static(&v->type))
        return set_shape(session, i, v->type.rank, v->type.dims, &s->tensors[i], err);
    dq_model_wants(session->model, wants, sizeof wants);
    return dq_fail(err, DQ_BAD_INPUT, "%s: the shape of input '%s' is missing; the model wants %s",
                   ir_of(session)->path, v->name, wants);
}

static dq_status read_shape(const dq_session *session, size_t k, const void *bindings, shapes *s,
                            dq_error *err)
{
    dq_shape shape;
    size_t input;
    char where[64];
    snprintf(where, sizeof where, "dq_session_infer: inputs[%zu]", k);
    DQ_TRY(dq_read_struct(DQ_STRUCT_SHAPE, where, bindings, &shape, err));
    DQ_TRY(dq_model_find_input(session->model, shape.name, &input, err));
    const uint32_t i = session->model->input_at[input];
    if (shape.rank && !shape.dims)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s.dims is NULL, expected %zu dimensions", where,
                       shape.rank);
    DQ_TRY(set_shape(session, i, shape.rank, shape.dims, &s->tensors[i], err));
    s->known[i] = true;
    return dq_session_check_input(session, ir_of(session)->graph->inputs[i], &s->tensors[i], err);
}

/* Reads the shapes. The caller's array has structs of the size that the first one gives. */
static dq_status read_shapes(dq_session *session, size_t count, const dq_shape *inputs, shapes *s,
                             dq_error *err)
{
    const dq_graph *g = ir_of(session)->graph;
    const size_t stride = count ? inputs->size : 0;
    for (size_t k = 0; k < count; k++)
        DQ_TRY(read_shape(session, k, (const char *)inputs + k * stride, s, err));
    for (uint32_t i = 0; i < g->input_count; i++) {
        DQ_TRY(complete_shape(session, i, s, err));
        if (s->known[i])
            s->bindings[s->binding_count++] = (dq_binding){.value = g->inputs[i], .tensor = &s->tensors[i]};
    }
    return DQ_OK;
}

/* ---- Descriptions of a plan --------------------------------------------------------------------------- */

static void describe_memory(const dq_session *session, const dq_plan *plan, dq_memory_info *own)
{
    *own = (dq_memory_info){.size = sizeof *own,
                            .activation_bytes = plan->buffer_size,
                            .weight_bytes = dq_packs_bytes(session->model->program->packs),
                            .constant_bytes = dq_plan_constant_bytes(plan)};
}

/* Describes an output with the type and shape in the plan. */
static dq_status describe_output(const dq_session *session, const dq_plan *plan, uint32_t i,
                                 dq_value_info *info, char type[DQ_KIND_TEXT], dq_error *err)
{
    static const char *const no_names[DQ_MAX_RANK];
    const dq_value *v = session->requested[i];
    const dq_graph *g = ir_of(session)->graph;
    const dq_slot *slot = dq_plan_slot(plan, v);
    const dq_tensor *t = &slot->t;
    DQ_TRY(dq_describe_value(v, info, err));
    if (i < g->output_count)
        info->name = g->output_names[i];
    if (t->kind == DQ_KIND_TENSOR && t->dtype == DQ_UNDEFINED) /* Of a dynamic step whose type is unknown. */
        return DQ_OK;
    info->type = dq_tensor_kind_text(t, type);
    info->kind = t->kind;
    info->item_kind = t->item_kind;
    const bool tensor = t->kind == DQ_KIND_TENSOR;
    info->item_dtype = tensor ? DQ_UNDEFINED : t->dtype;
    info->dtype = tensor ? t->dtype : DQ_UNDEFINED;
    info->has_shape = tensor && slot->shaped;
    info->rank = info->has_shape ? t->rank : 0;
    info->dims = info->has_shape ? t->dims : NULL;
    info->dim_names = info->has_shape ? no_names : NULL;
    return DQ_OK;
}

static dq_status visit_outputs(const dq_session *session, const dq_plan *plan,
                               int (*visit)(void *arg, const dq_value_info *output), void *arg, dq_error *err)
{
    for (uint32_t i = 0; visit && i < session->requested_count; i++) {
        dq_value_info info;
        char type[DQ_KIND_TEXT];
        DQ_TRY(describe_output(session, plan, i, &info, type, err));
        if (visit(arg, &info))
            return DQ_OK;
    }
    return DQ_OK;
}

static dq_status infer(dq_session *session, const shapes *s,
                       int (*visit)(void *arg, const dq_value_info *output), void *arg,
                       dq_memory_info *memory, dq_error *err)
{
    dq_plan *plan = NULL;
    const dq_fpenv callers = dq_fpenv_enter();
    dq_status status = dq_session_plan_for(session, s->bindings, s->binding_count, &plan, err);
    if (status == DQ_OK) {
        describe_memory(session, plan, memory);
        status = visit_outputs(session, plan, visit, arg, err);
    }
    dq_plan_free(plan);
    return dq_session_end(session, callers, status, err);
}

dq_status dq_session_infer(dq_session *session, size_t count, const dq_shape *inputs,
                           int (*visit)(void *arg, const dq_value_info *output), void *arg,
                           dq_memory_info *memory, dq_error *err)
{
    DQ_NOT_NULL(session);
    if (count)
        DQ_NOT_NULL(inputs);
    const uint32_t most = ir_of(session)->graph->input_count;
    dq_arena arena = {0};
    dq_memory_info own = {.size = sizeof own};
    shapes s = {DQ_NEW_ARRAY(&arena, most, dq_tensor), DQ_NEW_ARRAY(&arena, most, bool),
                DQ_NEW_ARRAY(&arena, most, dq_binding), 0};
    dq_status status =
        s.tensors && s.known && s.bindings ? DQ_OK : dq_no_memory(err, most * sizeof *s.bindings, "inputs");
    if (status == DQ_OK && memory) /* Before any work, because the caller's size may be invalid. */
        status = dq_write_struct(DQ_STRUCT_MEMORY_INFO, "dq_session_infer: memory", &own, memory, err);
    if (status == DQ_OK)
        status = read_shapes(session, count, inputs, &s, err);
    if (status == DQ_OK)
        status = infer(session, &s, visit, arg, &own, err);
    if (status == DQ_OK && memory)
        status = dq_write_struct(DQ_STRUCT_MEMORY_INFO, "dq_session_infer: memory", &own, memory, err);
    dq_arena_free(&arena);
    return status;
}

/* ---- The current plan --------------------------------------------------------------------------------- */

static dq_status current_plan(const dq_session *session, const char *function, const dq_plan **plan,
                              dq_error *err)
{
    if (!session)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: session is NULL", function);
    *plan = session->plans[0].plan;
    return *plan ? DQ_OK
                 : dq_fail(err, DQ_INVALID_ARGUMENT,
                           "%s: the session has not planned, expected dq_session_prepare or a run first",
                           function);
}

static dq_status inspect(const dq_session *session, const dq_plan *plan, struct dq_inspection *i,
                         dq_error *err)
{
    DQ_TRY(dq_plan_steps(plan, session->requested, session->requested_count, &i->arena, &i->steps, err));
    i->ops = DQ_NEW_ARRAY(&i->arena, i->steps.count, const char *);
    if (!i->ops)
        return dq_no_memory(err, i->steps.count * sizeof *i->ops, "the steps of a plan");
    for (uint32_t n = 0; n < i->steps.count; n++) {
        const dq_node *node = i->steps.steps[n].step->node;
        i->ops[n] = dq_arena_printf(&i->arena, "%.40s%s%.100s-%d", node->domain, *node->domain ? "." : "",
                                    node->op_type, node->version);
        if (!i->ops[n])
            return dq_no_memory(err, 64, "the steps of a plan");
    }
    return DQ_OK;
}

static dq_status need_inspection(dq_session *session, const dq_plan *plan, dq_error *err)
{
    if (session->inspection)
        return DQ_OK;
    session->inspection = dq_memory_calloc(&session->allocator, 1, sizeof *session->inspection);
    if (!session->inspection)
        return dq_no_memory(err, sizeof *session->inspection, "the steps of a plan");
    session->inspection->arena.allocator = &session->allocator;
    dq_status status = inspect(session, plan, session->inspection, err);
    if (status != DQ_OK)
        dq_session_forget_inspection(session);
    return status;
}

size_t dq_session_step_count(const dq_session *session)
{
    const dq_plan *plan = session->plans[0].plan;
    return plan ? plan->step_count + (size_t)(plan->tiling ? plan->tiling->runners[0].plan->step_count : 0)
                : 0;
}

static uint64_t scratch_of(const dq_run_step *s)
{
    const dq_op_call *call = &s->step->call;
    return s->step->dynamic
               ? 0
               : call->scratch_size + (uint64_t)dq_threads_count(call->threads) * call->worker_scratch_size;
}

dq_status dq_session_step(dq_session *session, size_t i, dq_step_info *info, dq_error *err)
{
    const dq_plan *plan = NULL;
    DQ_TRY(current_plan(session, "dq_session_step", &plan, err));
    const size_t count = dq_session_step_count(session);
    if (i >= count)
        return dq_fail(err, DQ_INVALID_ARGUMENT,
                       "dq_session_step: i is %zu, expected less than %zu, the number of steps", i, count);
    DQ_TRY(need_inspection(session, plan, err));
    const dq_run_step *s = &session->inspection->steps.steps[i];
    const dq_step_info own = {.size = sizeof own,
                              .node = s->step->node,
                              .op = session->inspection->ops[i],
                              .algorithm = s->step->call.algorithm ? s->step->call.algorithm->id : NULL,
                              .decision = s->step->decision,
                              .written_count = s->written_count,
                              .written = s->written,
                              .work = s->work,
                              .scratch_bytes = scratch_of(s),
                              .macs = s->macs,
                              .bytes = s->bytes};
    return dq_write_struct(DQ_STRUCT_STEP_INFO, "dq_session_step: info", &own, info, err);
}

dq_status dq_session_memory(const dq_session *session, dq_memory_info *memory, dq_error *err)
{
    const dq_plan *plan = NULL;
    dq_memory_info own;
    DQ_TRY(current_plan(session, "dq_session_memory", &plan, err));
    describe_memory(session, plan, &own);
    return dq_write_struct(DQ_STRUCT_MEMORY_INFO, "dq_session_memory: memory", &own, memory, err);
}

dq_status dq_session_lifetimes(const dq_session *session,
                               int (*visit)(void *arg, const dq_lifetime *lifetime), void *arg, dq_error *err)
{
    const dq_plan *plan = NULL;
    dq_arena arena = {0};
    dq_value_lifetime *lives = NULL;
    size_t count = 0;
    DQ_TRY(current_plan(session, "dq_session_lifetimes", &plan, err));
    DQ_NOT_NULL(visit);
    dq_status status =
        dq_plan_lifetimes(plan, session->requested, session->requested_count, &arena, &lives, &count, err);
    for (size_t i = 0; status == DQ_OK && i < count; i++) {
        const dq_lifetime own = {.size = sizeof own,
                                 .value = lives[i].value,
                                 .memory_of = lives[i].memory_of,
                                 .offset = lives[i].offset,
                                 .bytes = lives[i].bytes,
                                 .first_step = lives[i].first,
                                 .last_step = lives[i].last};
        if (visit(arg, &own))
            break;
    }
    dq_arena_free(&arena);
    return status;
}
