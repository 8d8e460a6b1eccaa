/* SPDX-License-Identifier: Apache-2.0 */
/* Output bindings: which requested values can be computed in the caller's memory. These are values that own
 * an interval of the buffer, alone or with earlier values and parts in it; and values of dynamic steps. */
#include "plan/planner.h"

/* The interval of a slot in the buffer, or the outermost interval that contains it. */
static dq_interval *whole_of(const dq_planner *p, const dq_slot *slot)
{
    dq_interval *interval = &p->intervals[p->plan->slots[slot->root].interval];
    while (interval->within)
        interval = &p->intervals[interval->within - 1];
    return interval;
}

static void add_slot(dq_plan *plan, dq_output_binding *binding, uint32_t i)
{
    plan->slots[i].next = binding->slots;
    binding->slots = i + 1;
}

/* If several requested values share an interval, the first is bound to it. */
static void find_output_binding(const dq_planner *p, uint32_t number)
{
    dq_plan *plan = p->plan;
    dq_output_binding *binding = &plan->output_bindings[number];
    const dq_slot *slot = dq_planner_slot(p, binding->value);
    dq_interval *interval =
        slot->where == DQ_AT_BUFFER ? &p->intervals[plan->slots[slot->root].interval] : NULL;
    if (slot->where == DQ_AT_DYNAMIC) {
        binding->first = slot->touched;
        if (!(plan->steps[binding->first]->node->op->impl->flags & DQ_OP_SUBGRAPH))
            add_slot(plan, binding, dq_plan_index(plan, binding->value));
    } else if (interval && !interval->within && !interval->binding && slot->shift == 0 &&
               slot->t.size == interval->size) {
        interval->binding = number + 1;
        binding->first = interval->first;
        binding->offset = interval->offset;
    }
}

dq_status dq_planner_list_output_bindings(dq_planner *p, dq_error *err)
{
    dq_plan *plan = p->plan;
    const uint32_t count = plan->graph->outer ? 0 : p->request->requested_count;
    plan->output_bindings = DQ_NEW_ARRAY(&plan->shaped, count, dq_output_binding);
    if (!plan->output_bindings)
        return dq_no_memory(err, count * sizeof(dq_output_binding), "a plan's outputs");
    plan->output_binding_count = count;
    for (uint32_t i = 0; i < count; i++) {
        plan->output_bindings[i].value = p->request->requested[i];
        find_output_binding(p, i);
    }
    for (uint32_t i = 0; count && i < plan->slot_count; i++) {
        const dq_slot *slot = &plan->slots[i];
        const uint32_t own = slot->where == DQ_AT_BUFFER ? whole_of(p, slot)->binding : 0;
        if (own)
            add_slot(plan, &plan->output_bindings[own - 1], i);
    }
    return DQ_OK;
}
