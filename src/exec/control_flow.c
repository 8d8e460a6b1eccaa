/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/control_flow.h"

#include "exec/inner.h"

#include <string.h>

/* Checks that a value is a single bool or integer. */
static dq_status only_one(const dq_step *step, uint32_t i, dq_error *err)
{
    const dq_tensor *t = step->call.in[i];
    char text[DQ_SHAPE_TEXT];
    if (t->kind == DQ_KIND_TENSOR && t->count == 1)
        return DQ_OK;
    return dq_call_fail_input(&step->call, err, i, "has shape %s, expected one element",
                              dq_shape_text(t->rank, t->dims, text));
}

static dq_status run_if(dq_plan *plan, dq_step *step, dq_error *err)
{
    dq_flow *flow;
    DQ_TRY(dq_flow_open(plan, step, "then_branch", "else_branch", &flow, err));
    DQ_TRY(only_one(step, 0, err));
    dq_inner *inner = flow->inners[dq_tensor_get_int(step->call.in[0], 0) ? 0 : 1];
    DQ_TRY(dq_inner_check_arity(inner, step, 0, step->call.out_count, err));
    DQ_TRY(dq_inner_run(inner, plan, step, err));
    for (uint32_t i = 0; i < step->call.out_count; i++)
        dq_flow_set_output(step, i, dq_inner_output(inner, i));
    return DQ_OK;
}

/* ---- Loop --------------------------------------------------------------------------------------------- */

typedef struct loop {
    dq_plan *plan;
    dq_step *step;
    dq_flow *flow;
    dq_inner *body;
    uint32_t carried, scans;
    int64_t trips;
    bool follows; /* The loop depends on the body's condition. */
} loop;

static dq_status open_loop(loop *l, dq_error *err)
{
    const dq_op_call *call = &l->step->call;
    DQ_TRY(dq_flow_open(l->plan, l->step, "body", NULL, &l->flow, err));
    l->body = l->flow->inners[0];
    l->carried = call->in_count > 2 ? call->in_count - 2 : 0;
    uint32_t outputs = l->body->graph->output_count;
    l->scans = outputs > l->carried + 1 ? outputs - l->carried - 1 : 0;
    DQ_TRY(dq_inner_check_arity(l->body, l->step, l->carried + 2, l->carried + l->scans + 1, err));
    if (call->out_count > l->carried + l->scans)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has %u outputs, and its body gives %u", call->out_count,
                            l->carried + l->scans);
    const dq_tensor *trips = dq_call_in(call, 0), *go = dq_call_in(call, 1);
    l->trips = INT64_MAX;
    l->flow->go = true;
    if (trips) {
        DQ_TRY(only_one(l->step, 0, err));
        l->trips = dq_tensor_get_int(trips, 0);
    }
    if (go) {
        DQ_TRY(only_one(l->step, 1, err));
        l->flow->go = dq_tensor_get_int(go, 0) != 0;
    }
    /* By the standard, a loop without a condition ignores the body's condition. Without a trip count either,
     * it would never end. */
    l->follows = go || !trips;
    return DQ_OK;
}

static void set_scalar(dq_tensor *t, dq_dtype dtype, size_t size, void *data)
{
    *t = (dq_tensor){.dtype = dtype, .count = 1, .size = size, .data = data};
}

static dq_status begin_loop(loop *l, dq_error *err)
{
    const dq_op_call *call = &l->step->call;
    set_scalar(&l->body->inputs[0], DQ_INT64, sizeof l->flow->iteration, &l->flow->iteration);
    set_scalar(&l->body->inputs[1], DQ_BOOL, 1, &l->flow->go);
    for (uint32_t i = 0; i < l->carried; i++) {
        if (!call->in[2 + i])
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "input %u is left out, expected the value that the loop "
                                "begins with",
                                2 + i);
        if (dq_inner_is_invariant(l->body, 1 + i, 2 + i)) {
            dq_inner_bind_invariant(l->body, 2 + i, l->plan, l->step, 2 + i);
            continue;
        }
        DQ_TRY(dq_kept_set(&l->flow->kept[i], call->in[2 + i], err));
        l->body->inputs[2 + i] = l->flow->kept[i].t;
    }
    return DQ_OK;
}

static bool wants(const loop *l, uint32_t scan)
{
    return l->carried + scan < l->step->call.out_count && l->step->call.out[l->carried + scan];
}

/* Appends the scan output of this iteration to those of earlier iterations. */
static dq_status push(loop *l, uint32_t i, dq_error *err)
{
    dq_kept *kept = &l->flow->kept[l->carried + i];
    const dq_tensor *t = dq_inner_output(l->body, 1 + l->carried + i);
    int64_t n = l->flow->iteration, dims[DQ_MAX_RANK + 1] = {n + 1};
    bool same = n == 0 || (kept->t.rank == t->rank + 1 && kept->t.dtype == t->dtype);
    for (uint32_t d = 0; d < t->rank; d++) {
        same = same && (n == 0 || kept->t.dims[d + 1] == t->dims[d]);
        dims[d + 1] = t->dims[d];
    }
    char mine[DQ_SHAPE_TEXT], earlier[DQ_SHAPE_TEXT];
    if (t->kind != DQ_KIND_TENSOR)
        return dq_call_fail(&l->step->call, err, DQ_BAD_MODEL,
                            "the body gives a sequence or optional as scan output %u, expected a tensor", i);
    if (!same)
        return dq_call_fail(&l->step->call, err, DQ_BAD_MODEL,
                            "scan output %u has shape %s in one iteration, and %s in an earlier one", i,
                            dq_shape_text(t->rank, t->dims, mine),
                            dq_shape_text(kept->t.rank - 1, kept->t.dims + 1, earlier));
    DQ_TRY(dq_kept_shape(kept, l->step, t->dtype, (size_t)t->rank + 1, dims, n > 0, err));
    dq_slice_insert(l->step, &kept->t, 0, (size_t)n, t);
    return DQ_OK;
}

static dq_status iterate(loop *l, dq_error *err)
{
    DQ_TRY(dq_inner_run(l->body, l->plan, l->step, err));
    const dq_tensor *go = dq_inner_output(l->body, 0);
    if (go->kind != DQ_KIND_TENSOR || go->dtype != DQ_BOOL || go->count != 1)
        return dq_call_fail(&l->step->call, err, DQ_BAD_MODEL,
                            "output 0 of graph '%s' is %s of %zu elements, "
                            "expected one bool",
                            l->body->graph->name, dq_dtype_name(go->dtype), go->count);
    if (l->follows)
        l->flow->go = dq_tensor_get_int(go, 0) != 0;
    for (uint32_t i = 0; i < l->scans; i++)
        if (wants(l, i))
            DQ_TRY(push(l, i, err));
    for (uint32_t i = 0; i < l->carried; i++) {
        if (l->body->passed[1 + i])
            continue;
        DQ_TRY(dq_kept_set(&l->flow->kept[i], dq_inner_output(l->body, 1 + i), err));
        l->body->inputs[2 + i] = l->flow->kept[i].t;
    }
    return DQ_OK;
}

static dq_status run_loop(dq_plan *plan, dq_step *step, dq_error *err)
{
    loop l = {.plan = plan, .step = step};
    DQ_TRY(open_loop(&l, err));
    DQ_TRY(begin_loop(&l, err));
    for (l.flow->iteration = 0; l.flow->iteration < l.trips && l.flow->go; l.flow->iteration++)
        DQ_TRY(iterate(&l, err));
    for (uint32_t i = 0; l.flow->iteration == 0 && i < l.scans; i++)
        if (wants(&l, i))
            DQ_TRY(dq_empty_scan(l.body, step, 1 + l.carried + i, l.carried + i, 0, 0,
                                 &l.flow->kept[l.carried + i], err));
    for (uint32_t i = 0; i < l.carried + l.scans; i++) {
        if (i < l.carried && l.body->passed[1 + i])
            DQ_TRY(dq_flow_give_input(step, i, plan, 2 + i, &l.flow->kept[i], err));
        else
            dq_flow_set_output(step, i, &l.flow->kept[i].t);
    }
    return DQ_OK;
}

/* ---- Dispatch ----------------------------------------------------------------------------------------- */

dq_status dq_flow_run(dq_plan *plan, dq_step *step, dq_error *err)
{
    static const struct {
        const char *name;
        dq_status (*run)(dq_plan *plan, dq_step *step, dq_error *err);
    } rows[] = {
        {"If", run_if}, {"Loop", run_loop}, {"Scan", dq_flow_scan}, {"SequenceMap", dq_flow_sequence_map}};
    DQ_TRY(dq_step_infer(plan, step, err));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, step->node->op_type) != 0)
            continue;
        DQ_TRY(rows[i].run(plan, step, err));
        return dq_step_check_outputs(step, err);
    }
    return dq_fail(err, DQ_INTERNAL, "the executor has no control flow of this name");
}
