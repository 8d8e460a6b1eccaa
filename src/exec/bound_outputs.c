/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/bound_outputs.h"

#include <string.h>

static dq_status check(const dq_plan *plan, const dq_value *v, const dq_tensor *t, const dq_tensor *to,
                       dq_error *err)
{
    char text[DQ_SHAPE_TEXT], requested[DQ_SHAPE_TEXT];
    if (t->kind == DQ_KIND_TENSOR && t->dtype == to->dtype && dq_tensor_same_shape(t, to))
        return DQ_OK;
    if (t->kind != DQ_KIND_TENSOR)
        return dq_fail(err, DQ_BAD_INPUT, "%s: output '%s' is no tensor, and cannot be written to one",
                       plan->program->ir->path, v->name);
    return dq_fail(err, DQ_BAD_INPUT, "%s: the tensor for output '%s' is %s %s, expected %s %s",
                   plan->program->ir->path, v->name, dq_dtype_name(to->dtype),
                   dq_shape_text(to->rank, to->dims, text), dq_dtype_name(t->dtype),
                   dq_shape_text(t->rank, t->dims, requested));
}

/* ---- Direct writes to targets ------------------------------------------------------------------------- */

/* Whether the step may write output `out` over its input k. */
static bool may_share(const dq_step *step, uint32_t out, uint32_t k)
{
    const unsigned flags = step->node->op->impl->flags, past = dq_op_past(flags);
    if (past && (out == 1 || out == 2))
        return k == past + out - 1;
    return (flags & DQ_OP_IN_PLACE) && (k == 0 || (flags & DQ_OP_IN_ANY_PLACE));
}

static bool is_at(const dq_plan *plan, const dq_output_binding *binding, uint32_t slot)
{
    for (uint32_t i = binding->slots; i; i = plan->slots[i - 1].next)
        if (i - 1 == slot)
            return true;
    return false;
}

/* Whether the step that first writes to the target may do so although it reads inputs that overlap it. */
static bool in_place(const dq_exec *exec, const dq_plan *plan, const dq_output_binding *binding,
                     const dq_tensor *to)
{
    const dq_step *step = plan->steps[binding->first];
    const dq_node *node = step->node;
    const dq_tensor *in = NULL;
    uint32_t at = 0;
    for (uint32_t k = 0; k < node->in_count; k++) {
        const dq_slot *slot = node->in[k] ? dq_plan_slot(plan, node->in[k]) : NULL;
        if (!slot || plan->slots[slot->root].where != DQ_AT_INPUT || !dq_tensor_overlap(&slot->t, to))
            continue;
        if (in)
            return false;
        in = &slot->t;
        at = k;
    }
    if (!in || in->data != to->data || in->size != to->size)
        return false;
    for (uint32_t o = 0; o < node->out_count; o++) {
        const dq_slot *out = step->call.out[o] ? dq_plan_slot(plan, node->out[o]) : NULL;
        if (out && is_at(plan, binding, dq_plan_index(plan, node->out[o])))
            return may_share(step, o, at) &&
                   (!exec->may_retry ||
                    (node->op->impl->flags & DQ_OP_IDEMPOTENT && node->out[o] == binding->value)) &&
                   in->count == (out->shaped ? out->t.count : to->count);
    }
    return false;
}

static bool may_write(const dq_exec *exec, const dq_plan *plan, const dq_output_binding *binding,
                      const dq_tensor *to, const dq_binding *bindings, uint32_t binding_count)
{
    bool at_once = false;
    for (uint32_t i = 0; i < binding_count; i++) {
        const dq_slot *slot = dq_plan_slot(plan, bindings[i].value);
        if (slot->where != DQ_AT_INPUT || bindings[i].tensor->kind != DQ_KIND_TENSOR ||
            !dq_tensor_overlap(bindings[i].tensor, to))
            continue;
        if (slot->touched > binding->first + 1 ||
            (exec->may_retry && slot->read_from != binding->first + 1) ||
            (plan->tiling && binding->first == 0))
            return false; /* Batch tiles read inputs until they have written all of it. */
        at_once = at_once || slot->touched == binding->first + 1;
    }
    return !at_once || in_place(exec, plan, binding, to);
}

/* ---- Binding and filling ---------------------------------------------------------------------------- */

static void bind_output(dq_plan *plan, dq_output_binding *binding, const char *at)
{
    if (binding->at == at)
        return;
    binding->at = at;
    for (uint32_t i = binding->slots; i; i = plan->slots[i - 1].next) {
        dq_slot *slot = &plan->slots[i - 1];
        slot->t.data = (char *)(uintptr_t)at + (slot->offset - binding->offset);
    }
}

dq_status dq_targets_bind(const dq_exec *exec, dq_plan *plan, const dq_binding *bindings,
                          uint32_t binding_count, dq_error *err)
{
    for (uint32_t i = 0; i < plan->output_binding_count; i++) {
        dq_output_binding *binding = &plan->output_bindings[i];
        const dq_tensor *to = exec->targets ? exec->targets[i] : NULL;
        dq_slot *slot = dq_plan_slot(plan, binding->value);
        if (to && slot->shaped)
            DQ_TRY(check(plan, binding->value, &slot->t, to, err));
        if (to && !(binding->slots && may_write(exec, plan, binding, to, bindings, binding_count)))
            to = NULL;
        if (slot->where == DQ_AT_DYNAMIC)
            slot->target = to;
        else if (binding->slots)
            bind_output(plan, binding,
                        to && to->size ? to->data : (const char *)exec->buffer + binding->offset);
    }
    return DQ_OK;
}

dq_status dq_targets_fill(const dq_exec *exec, const dq_plan *plan, dq_error *err)
{
    for (uint32_t i = 0; exec->targets && i < plan->output_binding_count; i++) {
        const dq_tensor *to = exec->targets[i], *from = dq_plan_output(plan, plan->output_bindings[i].value);
        if (!to)
            continue;
        DQ_TRY(check(plan, plan->output_bindings[i].value, from, to, err));
        if (to->size && to->data != from->data)
            memcpy(to->data, from->data, to->size);
    }
    return DQ_OK;
}
