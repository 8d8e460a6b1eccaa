/* SPDX-License-Identifier: Apache-2.0 */
/* SequenceMap: runs a subgraph for each item of a sequence. */
#include "exec/inner.h"

#include "tensor/items.h"

typedef struct map {
    dq_step *step;
    dq_inner *body;
    size_t count;
} map;

static dq_status check_lengths(const map *m, dq_error *err)
{
    const dq_op_call *call = &m->step->call;
    for (uint32_t i = 0; i < call->in_count; i++)
        if (call->in[i]->kind == DQ_KIND_SEQUENCE && call->in[i]->count != m->count)
            return dq_call_fail_input(call, err, i, "has %zu items, expected %zu as the first sequence has",
                                      call->in[i]->count, m->count);
    return DQ_OK;
}

/* An output without items, of the type that the body declares. */
static dq_status empty_output(const map *m, uint32_t i, dq_tensor *out, dq_error *err)
{
    dq_kept first = {0};
    dq_status status = dq_empty_scan(m->body, m->step, i, i, 0, 0, &first, err);
    out->dtype = first.t.dtype;
    dq_kept_free(&first);
    return status;
}

static dq_status iterate(const map *m, const dq_plan *plan, size_t at, const dq_tensor ***items,
                         dq_error *err)
{
    dq_op_call *call = &m->step->call;
    for (uint32_t i = 0; i < call->in_count; i++)
        m->body->inputs[i] = call->in[i]->kind == DQ_KIND_SEQUENCE ? *dq_item(call->in[i], at) : *call->in[i];
    DQ_TRY(dq_inner_run(m->body, plan, m->step, err));
    for (uint32_t i = 0; i < call->out_count; i++) {
        const dq_tensor *t = dq_inner_output(m->body, i);
        if (!call->out[i])
            continue;
        if (t->kind != DQ_KIND_TENSOR || (at && t->dtype != call->out[i]->dtype))
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "output %u of graph '%s' is no tensor of one type for all items", i,
                                m->body->graph->name);
        call->out[i]->dtype = t->dtype;
        DQ_TRY(dq_tensor_keep(call->strings, t, &items[i][at], err));
    }
    return DQ_OK;
}

dq_status dq_flow_sequence_map(dq_plan *plan, dq_step *step, dq_error *err)
{
    dq_flow *flow;
    DQ_TRY(dq_flow_open(plan, step, "body", NULL, &flow, err));
    dq_op_call *call = &step->call;
    map m = {.step = step, .body = flow->inners[0], .count = call->in[0]->count};
    DQ_TRY(dq_inner_check_arity(m.body, step, call->in_count, call->out_count, err));
    DQ_TRY(check_lengths(&m, err));
    const dq_tensor ***items = DQ_NEW_ARRAY(call->strings, call->out_count, const dq_tensor **);
    if (!items)
        return dq_no_memory(err, call->out_count * sizeof *items, "a sequence");
    for (uint32_t i = 0; i < call->out_count; i++) {
        if (!call->out[i])
            continue;
        dq_items_describe(call->out[i], DQ_KIND_SEQUENCE, DQ_KIND_TENSOR, DQ_UNDEFINED);
        DQ_TRY(dq_items_alloc(call->strings, call->out[i], m.count, &items[i], err));
        if (!m.count)
            DQ_TRY(empty_output(&m, i, call->out[i], err));
    }
    for (size_t at = 0; at < m.count; at++)
        DQ_TRY(iterate(&m, plan, at, items, err));
    return DQ_OK;
}
