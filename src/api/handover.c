/* SPDX-License-Identifier: Apache-2.0 */
#include "api/handover.h"

#include "base/memory.h"
#include "tensor/items.h"
#include "tensor/owned.h"

#include <string.h>

static bool grow_list(const dq_handover *h, void *list, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count <= *capacity)
        return true;
    void *grown = dq_memory_grow(h->allocator, *(void **)list, *capacity * size, count * size);
    if (!grown)
        return false;
    *(void **)list = grown;
    *capacity = count;
    return true;
}

dq_status dq_handover_grow(dq_handover *h, uint32_t count, dq_error *err)
{
    if (!grow_list(h, &h->entries, count, &h->entry_capacity, sizeof *h->entries) ||
        !grow_list(h, &h->targets, count, &h->target_capacity, sizeof *h->targets))
        return dq_no_memory(err, count * sizeof *h->entries, "a session's outputs");
    for (; h->count < count; h->count++) {
        h->entries[h->count] = (dq_handover_entry){0};
        h->targets[h->count] = NULL;
    }
    return DQ_OK;
}

void dq_handover_free(dq_handover *h)
{
    for (uint32_t i = 0; i < h->count; i++)
        dq_tensor_free_owned(h->entries[i].next);
    dq_memory_free(h->allocator, h->entries, h->entry_capacity * sizeof *h->entries);
    dq_memory_free(h->allocator, h->targets, h->target_capacity * sizeof *h->targets);
    *h = (dq_handover){.allocator = h->allocator};
}

/* ---- Before a run -------------------------------------------------------------------------------------- */

/* Whether runs of the plan can compute the value in separate memory of a size that is known now. */
static bool can_bind(const dq_plan *plan, uint32_t i)
{
    const dq_output_binding *binding = &plan->output_bindings[i];
    const dq_slot *slot = dq_plan_slot(plan, binding->value);
    return binding->slots && slot->shaped && slot->where == DQ_AT_BUFFER && slot->t.kind == DQ_KIND_TENSOR &&
           slot->t.dtype != DQ_STRING;
}

static void drop_next(dq_handover_entry *e)
{
    dq_tensor_free_owned(e->next);
    e->next = NULL;
}

dq_status dq_handover_prepare(dq_handover *h, const dq_plan *plan, dq_tensor *const *callers, dq_error *err)
{
    for (uint32_t i = 0; i < h->count; i++) {
        dq_handover_entry *e = &h->entries[i];
        e->placed_interval = false;
        e->bound = e->active && !callers[i] && can_bind(plan, i);
        h->targets[i] = callers[i];
        if (!e->bound) {
            drop_next(e);
            continue;
        }
        const dq_tensor *t = &dq_plan_slot(plan, plan->output_bindings[i].value)->t;
        if (e->next && (e->next->dtype != t->dtype || !dq_tensor_same_shape(e->next, t)))
            drop_next(e);
        if (!e->next)
            DQ_TRY(dq_tensor_new_owned(h->allocator, t, &e->next, err));
        h->targets[i] = e->next;
    }
    return DQ_OK;
}

/* ---- After a run --------------------------------------------------------------------------------------- */

static bool lies_in(const dq_tensor *t, const dq_tensor *memory)
{
    if (t->kind == DQ_KIND_TENSOR)
        return dq_tensor_overlap(t, memory);
    for (size_t i = 0; i < t->count; i++)
        if (lies_in(dq_item(t, i), memory))
            return true;
    return false;
}

/* Whether an output that the session still owns is in the memory of output i: a view of it, or the same value
 * under another name. */
static bool is_shared(const dq_handover *h, uint32_t i, const dq_plan *plan, const dq_value *const *requested)
{
    for (uint32_t k = 0; k < h->count; k++)
        if (k != i && !h->entries[k].placed_interval &&
            lies_in(dq_plan_output(plan, requested[k]), h->entries[i].next))
            return true;
    return false;
}

dq_status dq_handover_take(dq_handover *h, uint32_t i, const dq_plan *plan, const dq_value *const *requested,
                           dq_tensor **out, dq_error *err)
{
    dq_handover_entry *e = &h->entries[i];
    e->active = true;
    if (e->bound && !is_shared(h, i, plan, requested)) {
        *out = e->next;
        e->next = NULL;
        e->bound = false;
    } else {
        DQ_TRY(dq_tensor_copy_owned(h->allocator, dq_plan_output(plan, requested[i]), out, err));
    }
    e->placed_interval = true;
    return DQ_OK;
}
