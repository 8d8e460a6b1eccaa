/* SPDX-License-Identifier: Apache-2.0 */
/* Assignment of slots to values. A plan of the main graph has a slot for each value of the model. A plan of a
 * subgraph, or of a few nodes, has slots only for the values that it uses: thousands of small plans of a
 * large model must not each be as large as the model. */
#include "plan/planner.h"

#include <stdlib.h>

typedef struct list {
    const dq_value **values; /* NULL: only counts them. */
    size_t count;
} list;

static void add(void *arg, dq_value *v)
{
    list *l = arg;
    if (l->values)
        l->values[l->count] = v;
    l->count++;
}

static void add_all(const dq_planner *p, list *l)
{
    const dq_plan_request *r = p->request;
    for (uint32_t n = 0; n < p->node_count; n++) {
        const dq_node *node = p->nodes[n];
        dq_node_each_use(node, add, l);
        for (uint32_t i = 0; i < node->out_count; i++)
            if (node->out[i])
                add(l, node->out[i]);
    }
    for (uint32_t i = 0; i < r->binding_count; i++)
        add(l, (dq_value *)(uintptr_t)r->bindings[i].value);
    for (uint32_t i = 0; i < r->requested_count; i++)
        add(l, (dq_value *)(uintptr_t)r->requested[i]);
}

static int by_id(const void *a, const void *p)
{
    const dq_value *const *x = a, *const *y = p;
    return (*x)->id < (*y)->id ? -1 : (*x)->id > (*y)->id;
}

/* Lists the values, if the plan uses few of the model's. */
static dq_status list_values(dq_planner *p, uint32_t all, dq_error *err)
{
    enum { MIN_SLOT_SHARE = 4 /* Least ratio of the model's values to those with a slot. */ };
    dq_plan *plan = p->plan;
    list l = {0};
    add_all(p, &l);
    if (l.count >= all / MIN_SLOT_SHARE)
        return DQ_OK;
    l.values = DQ_NEW_ARRAY(&plan->outline, l.count, const dq_value *);
    if (!l.values)
        return dq_no_memory(err, l.count * sizeof *l.values, "a plan");
    l.count = 0;
    add_all(p, &l);
    qsort(l.values, l.count, sizeof *l.values, by_id);
    plan->slot_count = 0;
    for (size_t i = 0; i < l.count; i++)
        if (i == 0 || l.values[i]->id != l.values[i - 1]->id)
            l.values[plan->slot_count++] = l.values[i];
    plan->values = l.values;
    return DQ_OK;
}

dq_status dq_planner_make_slots(dq_planner *p, dq_error *err)
{
    dq_plan *plan = p->plan;
    plan->slot_count = plan->program->ir->value_count + p->request->made_count;
    if (p->request->nodes || plan->graph->outer)
        DQ_TRY(list_values(p, plan->slot_count, err));
    plan->slots = DQ_NEW_ARRAY(&plan->outline, (size_t)plan->slot_count + 1, dq_slot);
    if (!plan->slots)
        return dq_no_memory(err, plan->slot_count * sizeof *plan->slots, "a plan");
    for (uint32_t i = 0; i < plan->slot_count; i++)
        plan->slots[i].root = i;
    return DQ_OK;
}

uint32_t dq_plan_index(const dq_plan *plan, const dq_value *value)
{
    uint32_t low = 0, high = plan->slot_count;
    if (!plan->values)
        return value->id < high ? value->id : high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (plan->values[middle]->id < value->id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < plan->slot_count && plan->values[low]->id == value->id ? low : plan->slot_count;
}
