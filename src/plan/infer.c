/* What planning and late steps share: a node's types and shapes from its inputs'. */
#include "plan/plan.h"

#include <inttypes.h>

enum { FEW = 16 };

static dq_status bind(dq_plan *plan, dq_step *step, const dq_type **in, dq_type *in_types, dq_type *out_types,
                      dq_error *err)
{
    const dq_node *node = step->node;
    for (uint32_t i = 0; i < node->in_count; i++) {
        in_types[i] = (dq_type){0};
        if (node->in[i])
            in_types[i].dtype = plan->slots[node->in[i]->id].t.dtype;
        in[i] = node->in[i] ? &in_types[i] : NULL;
    }
    DQ_TRY(dq_schema_bind_types(node->schema, node, in, out_types, err));
    for (uint32_t i = 0; i < node->out_count; i++) {
        char text[DQ_TYPE_TEXT];
        if (out_types[i].kind != DQ_KIND_TENSOR)
            return dq_fail(err, DQ_UNSUPPORTED, "output %u is %s, and only tensors run in this build", i,
                           dq_type_text(&out_types[i], text));
        /* where the schema leaves a choice, what the graph declares is one */
        if (step->call.out[i])
            step->call.out[i]->dtype =
                out_types[i].dtype != DQ_UNDEFINED ? out_types[i].dtype : node->out[i]->type.dtype;
    }
    return DQ_OK;
}

static dq_status bind_types(dq_plan *plan, dq_step *step, dq_error *err)
{
    const dq_type *in[FEW];
    dq_type in_types[FEW], out_types[FEW];
    const dq_node *node = step->node;
    if (node->in_count <= FEW && node->out_count <= FEW)
        return bind(plan, step, in, in_types, out_types, err);
    /* what a late step leaves here is gone before its next run */
    dq_arena *arena = step->late ? &step->late_arena : &plan->arena;
    const dq_type **many_in = DQ_NEW_ARRAY(arena, node->in_count, const dq_type *);
    dq_type *many_in_types = DQ_NEW_ARRAY(arena, node->in_count, dq_type);
    dq_type *many_out_types = DQ_NEW_ARRAY(arena, node->out_count, dq_type);
    if (!many_in || !many_in_types || !many_out_types)
        return dq_no_memory(err, node->in_count * sizeof(dq_type), "a node's types");
    return bind(plan, step, many_in, many_in_types, many_out_types, err);
}

/* An output's type that only the operator could tell, from an attribute: the schema has a say in it too. */
static dq_status check_output_types(const dq_step *step, dq_error *err)
{
    const dq_node *node = step->node;
    for (uint32_t i = 0; i < node->out_count; i++) {
        const dq_formal *formal = dq_schema_output(node->schema, i);
        const dq_tensor *out = step->call.out[i];
        if (!formal || !out || dq_type_set_has(&formal->types, DQ_FORM_TENSOR, out->dtype))
            continue;
        char wanted[512];
        size_t length = dq_type_set_text(&formal->types, wanted, sizeof wanted);
        return dq_fail(err, DQ_BAD_MODEL, "output %u '%s' is tensor(%s), wanted %s%s", i, formal->name,
                       dq_dtype_name(out->dtype), wanted, length < sizeof wanted ? "" : "…");
    }
    return DQ_OK;
}

/* An output must be of the type that the graph declares. */
static dq_status check_declared(const dq_step *step, dq_error *err)
{
    for (uint32_t i = 0; i < step->node->out_count; i++) {
        const dq_tensor *out = step->call.out[i];
        dq_dtype declared = out ? step->node->out[i]->type.dtype : DQ_UNDEFINED;
        if (declared != DQ_UNDEFINED && out->dtype != declared)
            return dq_fail(err, DQ_BAD_MODEL,
                           "output %u '%s' is declared tensor(%s), and the node gives tensor(%s)", i,
                           step->node->out_names[i], dq_dtype_name(declared), dq_dtype_name(out->dtype));
    }
    return DQ_OK;
}

dq_status dq_step_infer(dq_plan *plan, dq_step *step, dq_error *err)
{
    DQ_TRY(bind_types(plan, step, err));
    const dq_op_call *call = &step->call;
    for (uint32_t i = 0; i < call->in_count; i++)
        if (step->node->in[i] && !plan->slots[step->node->in[i]->id].shaped && !call->in[i]->data)
            return DQ_LATE;
    DQ_TRY(step->node->op->impl->infer(&step->call, err));
    DQ_TRY(check_output_types(step, err));
    return check_declared(step, err);
}

dq_status dq_step_fault(const dq_plan *plan, const dq_step *step, dq_status status, dq_error *err)
{
    char text[DQ_NODE_TEXT];
    if (status != DQ_OK && status != DQ_LATE)
        dq_error_prefix(err, "%s: %s: ", plan->program->ir->path, dq_node_text(step->node, text));
    return status;
}
