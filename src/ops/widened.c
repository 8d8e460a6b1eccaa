/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/widened.h"

#include "ops/half_floats.h"

typedef struct widened {
    dq_op_call call;      /* the float32 call that the operator sees */
    size_t *at;           /* byte offsets in the scratch of the widened inputs, then outputs */
    dq_tensor *workspace; /* tensors of the widened inputs, then outputs */
} widened;

static bool narrow(const dq_tensor *t)
{
    return t && (t->dtype == DQ_FLOAT16 || t->dtype == DQ_BFLOAT16);
}

static bool any_narrow(const dq_op_call *call)
{
    bool any = false;
    for (uint32_t i = 0; i < call->in_count; i++)
        any = any || narrow(call->in[i]);
    for (uint32_t i = 0; i < call->out_count; i++)
        any = any || narrow(call->out[i]);
    return any;
}

/* Makes tensor i (of inputs, then outputs) a float tensor: at `fixed`, or in reserved scratch if that is
 * NULL. */
static dq_status widen(dq_op_call *call, widened *w, uint32_t i, const dq_tensor *t, const float *fixed,
                       dq_error *err)
{
    w->workspace[i] = *t;
    w->workspace[i].data = (void *)(uintptr_t)fixed;
    w->workspace[i].mapped = w->workspace[i].unaligned = false;
    DQ_TRY(dq_tensor_set_shape(&w->workspace[i], DQ_FLOAT, t->rank, t->dims, 0, DQ_OUT_OF_MEMORY, err));
    if (!fixed && !dq_call_reserve(call, t->count, 1, sizeof(float), &w->at[i]))
        return dq_no_memory(err, SIZE_MAX, "operands as floats");
    return DQ_OK;
}

static dq_status widen_input(dq_op_call *call, widened *w, uint32_t i, dq_error *err)
{
    const dq_tensor *t = call->in[i];
    const float *fixed = NULL;
    w->call.in[i] = t;
    if (!narrow(t))
        return DQ_OK;
    if (dq_call_constant(call, i) && t->count)
        DQ_TRY(dq_half_floats_pack(call, i, &fixed, err));
    w->call.in[i] = &w->workspace[i];
    return widen(call, w, i, t, fixed, err);
}

static dq_status prepare_floats(dq_op_call *call, dq_prepare_fn *prepare, dq_error *err)
{
    const uint32_t ins = call->in_count, outs = call->out_count;
    dq_op_call inner = *call; /* keeps the state that infer may have set */
    DQ_TRY(dq_call_state(call, sizeof(widened), err));
    widened *w = call->state;
    w->call = inner;
    w->call.packs = NULL; /* packed forms are of temporary floats: they must not enter the model's cache */
    w->call.persistent_inputs = 0;
    w->call.in = DQ_NEW_ARRAY(call->arena, ins + 1, const dq_tensor *);
    w->call.out = DQ_NEW_ARRAY(call->arena, outs, dq_tensor *);
    w->workspace = DQ_NEW_ARRAY(call->arena, ins + outs, dq_tensor);
    w->at = DQ_NEW_ARRAY(call->arena, ins + outs, size_t);
    if (!w->call.in || !w->call.out || !w->workspace || !w->at)
        return dq_no_memory(err, (ins + outs) * sizeof(dq_tensor), "operands as floats");
    for (uint32_t i = 0; i < ins; i++)
        DQ_TRY(widen_input(call, w, i, err));
    for (uint32_t i = 0; i < outs; i++) {
        w->call.out[i] = call->out[i];
        if (!narrow(call->out[i]))
            continue;
        DQ_TRY(widen(call, w, ins + i, call->out[i], NULL, err));
        w->call.out[i] = &w->workspace[ins + i];
    }
    if (prepare)
        DQ_TRY(prepare(&w->call, err));
    dq_call_take_algorithm(call, &w->call);
    call->worker_scratch_size = w->call.worker_scratch_size;
    return dq_call_reserve(call, w->call.scratch_size, 1, 1, &w->call.scratch_size)
               ? DQ_OK
               : dq_no_memory(err, SIZE_MAX, "operands as floats");
}

dq_status dq_widened_prepare(dq_op_call *call, bool when, dq_prepare_fn *prepare, dq_error *err)
{
    if (when && any_narrow(call))
        return prepare_floats(call, prepare, err);
    return prepare ? prepare(call, err) : DQ_OK;
}

static dq_status run_floats(const dq_op_call *call, dq_run_fn *run, dq_error *err)
{
    widened *w = call->state;
    char *scratch = call->scratch;
    dq_op_call inner = w->call;
    inner.scratch = scratch + w->call.scratch_size;
    inner.worker_scratch = call->worker_scratch;
    inner.strings = call->strings;
    for (uint32_t i = 0; i < call->in_count; i++) {
        if (!narrow(call->in[i]))
            inner.in[i] = call->in[i];
        if (!narrow(call->in[i]) || (dq_call_constant(call, i) && call->in[i]->count))
            continue;
        w->workspace[i].data = scratch + w->at[i];
        dq_half_floats_widen(call, call->in[i], w->workspace[i].data);
    }
    for (uint32_t i = 0; i < call->out_count; i++)
        if (narrow(call->out[i]))
            w->workspace[call->in_count + i].data = scratch + w->at[call->in_count + i];
        else
            inner.out[i] = call->out[i];
    DQ_TRY(run(&inner, err));
    for (uint32_t i = 0; i < call->out_count; i++)
        if (narrow(call->out[i]))
            dq_half_floats_narrow(call, w->workspace[call->in_count + i].data, call->out[i]);
    return DQ_OK;
}

dq_status dq_widened_run(const dq_op_call *call, bool when, dq_run_fn *run, dq_error *err)
{
    return when && any_narrow(call) ? run_floats(call, run, err) : run(call, err);
}
