/* SPDX-License-Identifier: Apache-2.0 */
/* Shape inference of a step, at planning time and in runs of dynamic steps. */
#include "plan/plan.h"

#include "ops/work.h"
#include "tensor/items.h"

enum { INLINE_VALUES = 16 };

static dq_form form_of(const dq_tensor *t)
{
    if (t->kind == DQ_KIND_SEQUENCE)
        return DQ_FORM_SEQUENCE;
    if (t->kind == DQ_KIND_OPTIONAL)
        return t->item_kind == DQ_KIND_SEQUENCE ? DQ_FORM_OPTIONAL_SEQUENCE : DQ_FORM_OPTIONAL;
    return DQ_FORM_TENSOR;
}

static dq_status take_form(dq_tensor *t, dq_form form, uint32_t i, dq_error *err)
{
    static const char refusal[] = "output %u is a sparse tensor or a map, and only tensors, sequences and "
                                  "optionals run in this build";
    bool optional = form == DQ_FORM_OPTIONAL || form == DQ_FORM_OPTIONAL_SEQUENCE;
    if (!optional && form != DQ_FORM_TENSOR && form != DQ_FORM_SEQUENCE)
        return dq_fail(err, DQ_UNSUPPORTED, refusal, i);
    t->kind = optional ? DQ_KIND_OPTIONAL : form == DQ_FORM_SEQUENCE ? DQ_KIND_SEQUENCE : DQ_KIND_TENSOR;
    t->item_kind = form == DQ_FORM_OPTIONAL_SEQUENCE ? DQ_KIND_SEQUENCE : DQ_KIND_TENSOR;
    return DQ_OK;
}

static dq_status bind(dq_plan *plan, dq_step *step, const dq_type **in, dq_type *in_types, dq_type *out_types,
                      dq_error *err)
{
    const dq_node *node = step->node;
    for (uint32_t i = 0; i < node->in_count; i++) {
        if (node->in[i]) {
            const dq_tensor *t = &dq_plan_slot(plan, node->in[i])->t;
            in_types[i] = dq_type_make(form_of(t), t->dtype);
        }
        in[i] = node->in[i] ? &in_types[i] : NULL;
    }
    DQ_TRY(dq_schema_bind_types(node->schema, node, in, out_types, err));
    for (uint32_t i = 0; i < node->out_count; i++) {
        if (!step->call.out[i])
            continue;
        /* If the schema allows several types, the graph's declaration selects one. */
        dq_form form = dq_form_of(&out_types[i], &step->call.out[i]->dtype);
        if (step->call.out[i]->dtype == DQ_UNDEFINED)
            form = dq_form_of(&node->out[i]->type, &step->call.out[i]->dtype);
        DQ_TRY(take_form(step->call.out[i], form, i, err));
    }
    return DQ_OK;
}

static dq_status bind_types(dq_plan *plan, dq_step *step, dq_error *err)
{
    const dq_type *in[INLINE_VALUES];
    dq_type in_types[INLINE_VALUES], out_types[INLINE_VALUES];
    const dq_node *node = step->node;
    if (node->in_count <= INLINE_VALUES && node->out_count <= INLINE_VALUES)
        return bind(plan, step, in, in_types, out_types, err);
    /* The arena of a dynamic step is reset before its next run. */
    dq_arena *arena = step->dynamic ? &step->dynamic_arena : &plan->shaped;
    const dq_type **many_in = DQ_NEW_ARRAY(arena, node->in_count, const dq_type *);
    dq_type *many_in_types = DQ_NEW_ARRAY(arena, node->in_count, dq_type);
    dq_type *many_out_types = DQ_NEW_ARRAY(arena, node->out_count, dq_type);
    if (!many_in || !many_in_types || !many_out_types)
        return dq_no_memory(err, node->in_count * sizeof(dq_type), "a node's types");
    return bind(plan, step, many_in, many_in_types, many_out_types, err);
}

/* Checks against the schema an output type that the operator determined from an attribute. */
static dq_status check_output_types(const dq_step *step, dq_error *err)
{
    const dq_node *node = step->node;
    for (uint32_t i = 0; i < node->out_count; i++) {
        const dq_formal *formal = dq_schema_output(node->schema, i);
        const dq_tensor *out = step->call.out[i];
        if (!formal || !out || dq_type_set_has(&formal->types, form_of(out), out->dtype))
            continue;
        char requested[512], text[DQ_KIND_TEXT];
        size_t length = dq_type_set_text(&formal->types, requested, sizeof requested);
        return dq_fail(err, DQ_BAD_MODEL, "output %u '%s' is %s, expected %s%s", i, formal->name,
                       dq_tensor_kind_text(out, text), requested, length < sizeof requested ? "" : "…");
    }
    return DQ_OK;
}

/* Checks that an output has the type that the graph declares. */
static dq_status check_declared(const dq_step *step, dq_error *err)
{
    for (uint32_t i = 0; i < step->node->out_count; i++) {
        const dq_tensor *out = step->call.out[i];
        const dq_type *declared = out ? &step->node->out[i]->type : NULL;
        char text[DQ_TYPE_TEXT], got[DQ_KIND_TEXT];
        if (out && !dq_tensor_is(out, declared))
            return dq_fail(err, DQ_BAD_MODEL, "output %u '%s' is declared %s, and the node gives %s", i,
                           step->node->out_names[i], dq_type_text(declared, text),
                           dq_tensor_kind_text(out, got));
    }
    return DQ_OK;
}

bool dq_tensor_is(const dq_tensor *t, const dq_type *type)
{
    dq_dtype dtype;
    dq_form form = dq_form_of(type, &dtype);
    return dtype == DQ_UNDEFINED || (form == form_of(t) && dtype == t->dtype);
}

dq_status dq_step_check_outputs(const dq_step *step, dq_error *err)
{
    DQ_TRY(check_output_types(step, err));
    return check_declared(step, err);
}

dq_status dq_step_infer(dq_plan *plan, dq_step *step, dq_error *err)
{
    if (!step->typed)
        DQ_TRY(bind_types(plan, step, err));
    const dq_op_call *call = &step->call;
    for (uint32_t i = 0; !step->dynamic && i < call->in_count; i++)
        if (step->node->in[i] && !dq_plan_slot(plan, step->node->in[i])->shaped && !call->in[i]->data)
            return DQ_DEFERRED;
    const dq_op_impl *impl = step->node->op->impl;
    if (!step->dynamic && impl->flags & (DQ_OP_SUBGRAPH | DQ_OP_ITEMS))
        return DQ_DEFERRED;
    if (impl->flags & DQ_OP_SUBGRAPH)
        return DQ_OK;
    const uint64_t work = dq_call_infer_work(&step->call);
    if (work)
        DQ_TRY(dq_plan_allows(plan, work, err));
    DQ_TRY(impl->infer(&step->call, err));
    return step->typed ? DQ_OK : dq_step_check_outputs(step, err);
}

dq_status dq_step_fault(const dq_plan *plan, const dq_step *step, dq_status status, dq_error *err)
{
    char text[DQ_NODE_TEXT];
    if (status == DQ_OK || status == DQ_DEFERRED)
        return status;
    /* In a subgraph, the message of the outer node precedes this one. */
    if (plan->graph->outer)
        dq_error_prefix(err, "%s: ", dq_node_text(step->node, text));
    else
        dq_error_prefix(err, "%s: %s: ", plan->program->ir->path, dq_node_text(step->node, text));
    return status;
}
