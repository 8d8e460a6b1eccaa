/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/inner.h"

#include "base/memory.h"
#include "ops/copy_nd.h"
#include "tensor/items.h"
#include "tensor/shape.h"

#include <string.h>

/* ---- Making and freeing ------------------------------------------------------------------------------- */

static size_t count_bindings(const dq_graph *g)
{
    return (size_t)g->input_count + g->capture_count + 1;
}

static void free_inner(dq_inner *inner, const dq_allocator *allocator)
{
    if (!inner)
        return;
    const size_t inputs = (size_t)inner->graph->input_count + 1,
                 outputs = (size_t)inner->graph->output_count + 1, all = count_bindings(inner->graph);
    dq_plan_free(inner->plan);
    dq_exec_free(&inner->exec);
    dq_memory_free(allocator, inner->inputs, inputs * sizeof *inner->inputs);
    dq_memory_free(allocator, inner->bindings, all * sizeof *inner->bindings);
    dq_memory_free(allocator, inner->planned, all * sizeof *inner->planned);
    dq_memory_free(allocator, inner->passed, outputs * sizeof *inner->passed);
    dq_memory_free(allocator, inner->requested, outputs * sizeof *inner->requested);
    dq_memory_free(allocator, inner, sizeof *inner);
}

void dq_kept_free(dq_kept *kept)
{
    dq_memory_free(kept->allocator, kept->memory, kept->capacity);
    *kept = (dq_kept){.allocator = kept->allocator};
}

static dq_kept *make_kept(const dq_allocator *allocator, uint32_t count)
{
    dq_kept *kept = dq_memory_calloc(allocator, (size_t)count + 1, sizeof *kept);
    for (uint32_t i = 0; kept && i < count; i++)
        kept[i].allocator = allocator;
    return kept;
}

static void free_kept(dq_kept *kept, uint32_t count, const dq_allocator *allocator)
{
    for (uint32_t i = 0; kept && i < count; i++)
        dq_kept_free(&kept[i]);
    dq_memory_free(allocator, kept, ((size_t)count + 1) * sizeof *kept);
}

static void free_flow(dq_flow *flow)
{
    const dq_allocator *allocator = flow->allocator;
    free_inner(flow->inners[0], allocator);
    free_inner(flow->inners[1], allocator);
    free_kept(flow->kept, flow->kept_count, allocator);
    free_kept(flow->slices, flow->slice_count, allocator);
    dq_memory_free(allocator, flow, sizeof *flow);
}

static dq_status make_inner(dq_graph *g, const dq_allocator *allocator, dq_inner **out, dq_error *err)
{
    const size_t inputs = (size_t)g->input_count + 1, outputs = (size_t)g->output_count + 1,
                 all = count_bindings(g);
    dq_inner *inner = dq_memory_calloc(allocator, 1, sizeof *inner);
    if (!inner)
        return dq_no_memory(err, sizeof *inner, "an inner graph");
    *out = inner;
    inner->graph = g;
    dq_exec_init(&inner->exec, allocator);
    inner->inputs = dq_memory_calloc(allocator, inputs, sizeof *inner->inputs);
    inner->bindings = dq_memory_calloc(allocator, all, sizeof *inner->bindings);
    inner->planned = dq_memory_calloc(allocator, all, sizeof *inner->planned);
    inner->passed = dq_memory_calloc(allocator, outputs, sizeof *inner->passed);
    inner->requested = dq_memory_calloc(allocator, outputs, sizeof *inner->requested);
    if (!inner->inputs || !inner->bindings || !inner->planned || !inner->passed || !inner->requested)
        return dq_no_memory(err, all * sizeof *inner->planned, "an inner graph");
    for (uint32_t i = 0; i < g->input_count; i++)
        inner->bindings[inner->binding_count++] =
            (dq_binding){.value = g->inputs[i], .tensor = &inner->inputs[i]};
    for (uint32_t i = 0; i < g->capture_count; i++)
        inner->bindings[inner->binding_count++] = (dq_binding){.value = g->captures[i]};
    return DQ_OK;
}

static dq_status fill_flow(dq_flow *flow, const dq_step *step, const char *const names[2], dq_error *err)
{
    for (int i = 0; i < 2 && names[i]; i++)
        DQ_TRY(
            make_inner(dq_node_attr(step->node, names[i])->u.graph, flow->allocator, &flow->inners[i], err));
    flow->kept_count = flow->inners[0]->graph->output_count + step->call.in_count;
    flow->slice_count = flow->inners[0]->graph->input_count;
    flow->kept = make_kept(flow->allocator, flow->kept_count);
    flow->slices = make_kept(flow->allocator, flow->slice_count);
    return flow->kept && flow->slices ? DQ_OK : dq_no_memory(err, sizeof *flow->kept, "an inner graph");
}

dq_status dq_flow_open(const dq_plan *plan, dq_step *step, const char *first, const char *second,
                       dq_flow **out, dq_error *err)
{
    *out = step->flow;
    if (step->flow)
        return DQ_OK;
    const char *const names[2] = {first, second};
    dq_flow *flow = dq_memory_calloc(plan->allocator, 1, sizeof *flow);
    if (!flow)
        return dq_no_memory(err, sizeof *flow, "an inner graph");
    flow->allocator = plan->allocator;
    dq_status status = fill_flow(flow, step, names, err);
    if (status != DQ_OK) {
        free_flow(flow);
        return status;
    }
    step->flow = *out = flow;
    step->free_flow = free_flow;
    return DQ_OK;
}

/* ---- Running ------------------------------------------------------------------------------------------ */

/* Wraps a plain value in an optional. A body may declare an input optional whose initial value is an empty
 * optional and whose later values are plain. */
static dq_status wrap(dq_tensor *t, dq_arena *arena, dq_error *err)
{
    const dq_tensor *item, **items;
    dq_tensor *head = DQ_NEW(arena, dq_tensor);
    if (!head)
        return dq_no_memory(err, sizeof *head, "an optional");
    *head = *t;
    item = head; /* Items of a sequence live as long as the run. */
    if (t->kind == DQ_KIND_TENSOR)
        DQ_TRY(dq_tensor_keep(arena, t, &item, err));
    dq_items_describe(t, DQ_KIND_OPTIONAL, item->kind, item->dtype);
    DQ_TRY(dq_items_alloc(arena, t, 1, &items, err));
    items[0] = item;
    return DQ_OK;
}

static dq_status check_inputs(const dq_inner *inner, const dq_step *step, dq_error *err)
{
    for (uint32_t i = 0; i < inner->graph->input_count; i++) {
        const dq_value *v = inner->graph->inputs[i];
        const dq_type *type = &v->type;
        char declared[DQ_TYPE_TEXT], got[DQ_KIND_TEXT];
        if (type->kind == DQ_KIND_OPTIONAL && type->element && inner->inputs[i].kind == type->element->kind &&
            dq_tensor_is(&inner->inputs[i], type->element))
            DQ_TRY(wrap(&inner->inputs[i], step->call.strings, err));
        if (!dq_tensor_is(&inner->inputs[i], type))
            return dq_call_fail(&step->call, err, DQ_BAD_MODEL,
                                "input %u '%s' of graph '%s' is declared %s, and gets %s", i, v->name,
                                inner->graph->name, dq_type_text(&v->type, declared),
                                dq_tensor_kind_text(&inner->inputs[i], got));
    }
    return DQ_OK;
}

/* Whether there is a plan for values of these types. */
static bool same_types(const dq_inner *inner)
{
    for (uint32_t i = 0; inner->plan && i < inner->binding_count; i++) {
        const dq_tensor *now = inner->bindings[i].tensor, *planned = &inner->planned[i];
        if (now->kind != planned->kind || now->item_kind != planned->item_kind ||
            now->dtype != planned->dtype)
            return false;
    }
    return inner->plan != NULL;
}

/* Whether the plan matches the bindings. Values whose shape it does not match, although the outer plan is the
 * same, become varying. */
static bool fits(dq_inner *inner, const dq_plan *outer)
{
    const bool same = inner->generation == outer->generation;
    bool all = same && same_types(inner);
    for (uint32_t i = 0; inner->plan && same && i < inner->binding_count; i++) {
        dq_binding *bindings = &inner->bindings[i];
        const dq_tensor *now = bindings->tensor, *planned = &inner->planned[i];
        if (bindings->constant || bindings->varying || now->kind != DQ_KIND_TENSOR ||
            planned->kind != DQ_KIND_TENSOR || dq_tensor_same_shape(now, planned))
            continue;
        bindings->varying = true;
        all = false;
    }
    return all;
}

static void take_kind(dq_binding *bindings, const dq_slot *from)
{
    bindings->constant = from->where == DQ_AT_CONSTANT;
    bindings->fixed = bindings->constant && from->fixed;
    bindings->persistent = bindings->constant && from->persistent;
}

static void take_captures(dq_inner *inner, const dq_plan *outer)
{
    for (uint32_t i = inner->graph->input_count; i < inner->binding_count; i++) {
        const dq_slot *from = dq_plan_slot(outer, inner->bindings[i].value);
        inner->bindings[i].tensor = &from->t;
        take_kind(&inner->bindings[i], from);
    }
}

bool dq_inner_is_invariant(dq_inner *inner, uint32_t out, uint32_t in)
{
    const dq_value *v = inner->graph->outputs[out];
    while (v->producer && v->graph == inner->graph && !strcmp(v->producer->op_type, "Identity") &&
           !*v->producer->domain)
        v = v->producer->in[0];
    return inner->passed[out] = v == inner->graph->inputs[in];
}

void dq_inner_bind_invariant(dq_inner *inner, uint32_t in, const dq_plan *outer, const dq_step *step,
                             uint32_t from)
{
    inner->inputs[in] = *step->call.in[from];
    if (inner->graph->inputs[in]->type.kind == DQ_KIND_TENSOR) /* Others may be wrapped, see check_inputs. */
        take_kind(&inner->bindings[in], dq_plan_slot(outer, step->node->in[from]));
}

static dq_status make_plan(dq_inner *inner, const dq_plan *outer, dq_error *err)
{
    uint32_t requested_count = 0;
    for (uint32_t i = 0; i < inner->graph->output_count; i++)
        if (!inner->passed[i])
            inner->requested[requested_count++] = inner->graph->outputs[i];
    dq_plan_request request = {.graph = inner->graph,
                               .bindings = inner->bindings,
                               .binding_count = inner->binding_count,
                               .requested = inner->requested,
                               .requested_count = requested_count,
                               .kernels = outer->kernels,
                               .threads = outer->threads,
                               .budget = outer->budget,
                               .allocator = outer->allocator,
                               .fuse = outer->fuse,
                               .disabled_passes = outer->disabled_passes,
                               .honor_accuracy_level = outer->honor_accuracy_level,
                               .forced_algorithms = outer->forced_algorithms,
                               .why = outer->why,
                               .why_arg = outer->why_arg};
    if (outer->fuse && !inner->rewritten)
        DQ_TRY(dq_program_rewrite(outer->program, &request, &inner->rewritten, err));
    dq_plan_request_use(&request, inner->rewritten);
    if (!same_types(inner) || outer->why || dq_plan_reshape(&inner->plan, &request, NULL) != DQ_OK) {
        dq_plan_free(inner->plan);
        inner->plan = NULL;
        DQ_TRY(dq_plan_create(outer->program, &request, &inner->plan, err));
    }
    inner->generation = outer->generation;
    for (uint32_t i = 0; i < inner->binding_count; i++)
        inner->planned[i] = *inner->bindings[i].tensor;
    return DQ_OK;
}

dq_status dq_inner_run(dq_inner *inner, const dq_plan *outer, const dq_step *step, dq_error *err)
{
    take_captures(inner, outer);
    DQ_TRY(check_inputs(inner, step, err));
    if (!fits(inner, outer))
        DQ_TRY(make_plan(inner, outer, err));
    DQ_TRY(dq_exec_run_inner(&inner->exec, inner->plan, inner->bindings, inner->binding_count,
                             step->call.strings, err));
    uint64_t bindings = 1;
    for (uint32_t i = 0; i < inner->graph->output_count; i++)
        bindings = dq_work_add(bindings, inner->passed[i] ? 0 : dq_inner_output(inner, i)->count);
    return dq_plan_take(inner->plan, bindings, err);
}

const dq_tensor *dq_inner_output(const dq_inner *inner, uint32_t i)
{
    return dq_plan_output(inner->plan, inner->graph->outputs[i]);
}

dq_status dq_inner_check_arity(const dq_inner *inner, const dq_step *step, uint32_t inputs, uint32_t outputs,
                               dq_error *err)
{
    const dq_graph *g = inner->graph;
    if (g->input_count == inputs && g->output_count == outputs)
        return DQ_OK;
    return dq_call_fail(&step->call, err, DQ_BAD_MODEL,
                        "graph '%s' has %u inputs and %u outputs, expected %u and %u", g->name,
                        g->input_count, g->output_count, inputs, outputs);
}

void dq_flow_set_output(dq_step *step, uint32_t i, const dq_tensor *t)
{
    if (i >= step->call.out_count || !step->call.out[i])
        return;
    *step->call.out[i] = *t;
    step->call.out[i]->owned = false;
}

dq_status dq_flow_give_input(dq_step *step, uint32_t i, const dq_plan *outer, uint32_t from, dq_kept *kept,
                             dq_error *err)
{
    if (i >= step->call.out_count || !step->call.out[i])
        return DQ_OK;
    const dq_tensor *t = step->call.in[from];
    if (dq_plan_slot(outer, step->node->in[from])->where != DQ_AT_CONSTANT) {
        DQ_TRY(dq_kept_set(kept, t, err)); /* A later step may reuse its memory for another value. */
        t = &kept->t;
    }
    dq_flow_set_output(step, i, t);
    return DQ_OK;
}

/* ---- Values that outlive an iteration ----------------------------------------------------------------- */

dq_status dq_kept_set(dq_kept *kept, const dq_tensor *t, dq_error *err)
{
    const void *from = t->data; /* t may be kept->t. */
    kept->t = *t;
    kept->t.owned = false;
    if (t->kind != DQ_KIND_TENSOR || from == kept->memory)
        return DQ_OK;
    DQ_TRY(dq_exec_reserve(kept->allocator, &kept->memory, &kept->capacity, t->size, 0, "a value of a loop",
                           err));
    kept->t.data = kept->memory;
    if (t->size)
        memcpy(kept->memory, from, t->size);
    return DQ_OK;
}

dq_status dq_kept_shape(dq_kept *kept, const dq_step *step, dq_dtype dtype, size_t rank, const int64_t *dims,
                        bool keep, dq_error *err)
{
    size_t held = keep ? kept->t.size : 0, requested;
    DQ_TRY(dq_tensor_set_shape(&kept->t, dtype, rank, dims, step->call.tensor_limit, DQ_BAD_MODEL, err));
    requested = kept->t.size;
    if (held && requested > kept->capacity && requested < SIZE_MAX / 2)
        requested *= 2; /* It grows by one slice at a time. */
    DQ_TRY(dq_exec_reserve(kept->allocator, &kept->memory, &kept->capacity, requested, held, "a scan output",
                           err));
    kept->t.data = kept->memory;
    if (kept->t.size > held)
        memset((char *)kept->memory + held, 0, kept->t.size - held);
    return DQ_OK;
}

void dq_slice_extract(const dq_step *step, const dq_tensor *whole, size_t axis, size_t at, dq_tensor *slice)
{
    dq_copy_nd m = dq_copy_nd_part(whole, axis, at, 1, false);
    dq_clear_tail_bits(slice);
    if (slice->count)
        dq_copy_nd_run(&step->call, &m, whole->dtype, slice->data, whole->data);
}

void dq_slice_insert(const dq_step *step, dq_tensor *whole, size_t axis, size_t at, const dq_tensor *slice)
{
    dq_copy_nd m = dq_copy_nd_part(whole, axis, at, 1, true);
    if (slice->count)
        dq_copy_nd_run(&step->call, &m, whole->dtype, whole->data, slice->data);
}

dq_status dq_empty_scan(const dq_inner *inner, const dq_step *step, uint32_t i, uint32_t to, int64_t axis,
                        int64_t length, dq_kept *kept, dq_error *err)
{
    const dq_type *type = &inner->graph->output_types[i];
    int64_t dims[DQ_MAX_RANK] = {0};
    dq_dtype dtype = type->kind == DQ_KIND_TENSOR ? type->dtype : DQ_UNDEFINED;
    if (dtype == DQ_UNDEFINED && to < step->node->out_count && step->node->out[to])
        dtype = step->node->out[to]->type.dtype;
    if (dtype == DQ_UNDEFINED)
        return dq_call_fail(&step->call, err, DQ_BAD_MODEL,
                            "output %u of graph '%s' is not declared, and no iteration says its type", i,
                            inner->graph->name);
    size_t rank = type->has_shape && type->rank < DQ_MAX_RANK ? type->rank + 1 : 1, at = 0;
    if (!dq_axis(axis, rank, &at))
        at = 0; /* The shape is not declared. */
    for (size_t d = 0; d < rank; d++) {
        int64_t declared = d == at ? length : type->dims[d - (d > at)];
        dims[d] = declared < 0 ? 0 : declared;
    }
    return dq_kept_shape(kept, step, dtype, rank, dims, false, err);
}
