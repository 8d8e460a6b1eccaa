/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft's LinearAttentionGate and GatedRMSNorm, row by row in float, rounded once:
 *
 *   LinearAttentionGate   decay = decay_scale * softplus(a + dt_bias), beta = sigmoid(b)
 *   GatedRMSNorm          x / sqrt(mean(x * x) + epsilon) * scale * f(gate), where f(z) is z * sigmoid(z)
 *                         or sigmoid(z) */
#include "base/checked.h"
#include "ops/reduce/row_norm.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <string.h>

enum { ELEMENTS_PER_TASK = 4096 /* approximate elements of a parallel task */ };

/* Reserves worker scratch for `buffers` rows of n floats. */
static dq_status take_buffers(dq_op_call *call, size_t n, size_t buffers, dq_error *err)
{
    if (!dq_mul_size(n, buffers * sizeof(float), &call->worker_scratch_size))
        return dq_no_memory(err, n, "a row");
    return DQ_OK;
}

/* ---- LinearAttentionGate ------------------------------------------------------------------------------- */

enum { A, DT_BIAS, DECAY_SCALE, B };

static size_t heads_of(const dq_op_call *call)
{
    const dq_tensor *a = call->in[A];
    return (size_t)a->dims[a->rank - 1];
}

static dq_status gate_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *a = call->in[A], *b = dq_call_in(call, B);
    if (a->rank < 1)
        return dq_call_fail_input(call, err, A, "has rank 0, expected a last axis of heads");
    for (uint32_t i = DT_BIAS; i <= DECAY_SCALE; i++)
        if (call->in[i]->count != heads_of(call))
            return dq_call_fail_input(call, err, i, "has %zu elements, expected %zu (heads)",
                                      call->in[i]->count, heads_of(call));
    if (b && !dq_tensor_same_shape(a, b))
        return dq_call_fail_input(call, err, B, "has another shape than input 0");
    if (!b && call->out_count > 1 && call->out[1])
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has output 1 and no input 3, which it is made of");
    DQ_TRY(dq_call_output_like(call, 1, a->dtype, a, err));
    return dq_call_output_like(call, 0, a->dtype, a, err);
}

static dq_status gate_prepare(dq_op_call *call, dq_error *err)
{
    return take_buffers(call, heads_of(call), 1, err);
}

static void gate_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const dq_rows_f32 *rows = call->kernels->rows_f32;
    const dq_tensor *a = call->in[A];
    const float *bias = dq_data(call->in[DT_BIAS], float), *scale = dq_data(call->in[DECAY_SCALE], float);
    size_t n = heads_of(call);
    float *x = dq_call_worker_scratch(call, worker);
    for (size_t row = begin; row < end; row++) {
        dq_load_floats(call->kernels, a->dtype, a->data, row * n, n, x);
        rows->add(x, 1, bias, 1, n, x);
        rows->softplus(x, n, x);
        rows->mul(x, 1, scale, 1, n, x);
        if (call->out[0])
            dq_store_from_floats(call->kernels, a->dtype, call->out[0]->data, row * n, n, x, false);
        if (call->out_count < 2 || !call->out[1])
            continue;
        dq_load_floats(call->kernels, a->dtype, call->in[B]->data, row * n, n, x);
        rows->sigmoid(x, n, x);
        dq_store_from_floats(call->kernels, a->dtype, call->out[1]->data, row * n, n, x, false);
    }
}

static dq_status gate_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    size_t n = heads_of(call);
    if (call->in[A]->count)
        dq_parallel(call->threads, call->in[A]->count / n, ELEMENTS_PER_TASK / n + 1, gate_rows, &call);
    return DQ_OK;
}

const dq_op_impl dq_op_linear_attention_gate = {gate_infer, gate_prepare, gate_run, 0};

/* ---- GatedRMSNorm -------------------------------------------------------------------------------------- */

enum { X, SCALE, GATE };

static dq_status norm_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[X], *scale = call->in[SCALE];
    const char *name = dq_node_string(call->node, "activation", "silu");
    if (x->rank < 1 || scale->rank != 1 || scale->count == 0 ||
        x->dims[x->rank - 1] % (int64_t)scale->count != 0)
        return dq_call_fail_input(call, err, SCALE,
                                  "has %zu elements, expected a divisor of the last axis of input 0",
                                  scale->count);
    if (!dq_tensor_same_shape(x, call->in[GATE]))
        return dq_call_fail_input(call, err, GATE, "has another shape than input 0");
    if (strcmp(name, "silu") != 0 && strcmp(name, "swish") != 0 && strcmp(name, "sigmoid") != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'activation' is '%s', expected silu, swish or sigmoid", name);
    return dq_call_output_like(call, 0, x->dtype, x, err);
}

static dq_status norm_prepare(dq_op_call *call, dq_error *err)
{
    return take_buffers(call, call->in[SCALE]->count, 3, err);
}

static void norm_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const dq_rows_f32 *rows = call->kernels->rows_f32;
    const dq_tensor *in = call->in[X], *gate = call->in[GATE];
    size_t n = call->in[SCALE]->count;
    float *x = dq_call_worker_scratch(call, worker), *z = x + n, *scale = z + n;
    bool swish = strcmp(dq_node_string(call->node, "activation", "silu"), "sigmoid") != 0;
    dq_row_norm norm = {
        .epsilon = (double)dq_node_float(call->node, "epsilon", 1e-5f), .n = n, .gamma = scale};
    dq_load_floats(call->kernels, in->dtype, call->in[SCALE]->data, 0, n, scale);
    for (size_t row = begin; row < end; row++) {
        dq_load_floats(call->kernels, in->dtype, in->data, row * n, n, x);
        dq_load_floats(call->kernels, in->dtype, gate->data, row * n, n, z);
        dq_row_normalize(call, &norm, x, x);
        if (swish)
            rows->silu(z, n, 1, z);
        else
            rows->sigmoid(z, n, z);
        rows->mul(x, 1, z, 1, n, x);
        dq_store_from_floats(call->kernels, in->dtype, call->out[0]->data, row * n, n, x, false);
    }
}

static dq_status norm_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    size_t n = call->in[SCALE]->count;
    dq_parallel(call->threads, call->in[X]->count / n, ELEMENTS_PER_TASK / n + 1, norm_rows, &call);
    return DQ_OK;
}

const dq_op_impl dq_op_gated_rms_norm = {norm_infer, norm_prepare, norm_run, 0};
