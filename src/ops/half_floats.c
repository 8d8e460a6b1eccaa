/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/half_floats.h"
#include "ops/packers.h"

#include "base/checked.h"
#include "base/codec.h"

#include <string.h>

enum { PIECE = 1 << 14 };

bool dq_half_floats_take(dq_dtype dtype)
{
    return dtype == DQ_FLOAT || dtype == DQ_FLOAT16 || dtype == DQ_BFLOAT16;
}

typedef struct job {
    dq_convert_f16_f32_fn *widen;
    dq_convert_f32_f16_fn *narrow;
    dq_dtype dtype;
    const void *from;
    void *to;
} job;

void dq_half_floats_row(dq_convert_f16_f32_fn *widen, dq_dtype dtype, const uint16_t *from, size_t n,
                        float *to)
{
    if (dtype == DQ_FLOAT16)
        widen(from, n, to);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = dq_bf16_to_f32(from[i]);
}

static void widen(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    dq_half_floats_row(j->widen, j->dtype, (const uint16_t *)j->from + begin, end - begin,
                       (float *)j->to + begin);
}

static void narrow(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const float *x = j->from;
    uint16_t *y = j->to;
    if (j->dtype == DQ_FLOAT16)
        j->narrow(x + begin, end - begin, y + begin);
    else
        for (size_t i = begin; i < end; i++)
            y[i] = dq_f32_to_bf16(x[i]);
}

typedef struct key {
    dq_convert_f16_f32_fn *widen;
} key;

void dq_pack_half_floats(void *packed, const dq_tensor *from, const void *k)
{
    job j = {.widen = ((const key *)k)->widen, .dtype = from->dtype, .from = from->data, .to = packed};
    widen(&j, 0, from->count, 0);
}

dq_status dq_half_floats_pack(dq_op_call *call, uint32_t i, const float **floats, dq_error *err)
{
    const key k = {call->kernels->convert_f16_f32};
    const void *packed;
    size_t bytes;
    if (!dq_mul_size(call->in[i]->count, sizeof(float), &bytes))
        return dq_no_memory(err, SIZE_MAX, "operands as floats");
    DQ_TRY(dq_call_pack(call, i, dq_pack_half_floats, &k, sizeof k, bytes, &packed, err));
    *floats = packed;
    return DQ_OK;
}

void dq_half_floats_widen(const dq_op_call *call, const dq_tensor *from, float *to)
{
    job j = {.widen = call->kernels->convert_f16_f32, .dtype = from->dtype, .from = from->data, .to = to};
    dq_parallel(call->threads, dq_tensor_stored(from), PIECE, widen, &j);
}

void dq_half_floats_narrow(const dq_op_call *call, const float *from, dq_tensor *to)
{
    job j = {.narrow = call->kernels->convert_f32_f16, .dtype = to->dtype, .from = from, .to = to->data};
    dq_parallel(call->threads, to->count, PIECE, narrow, &j);
}

static dq_status reserve(dq_op_call *call, size_t count, size_t *at, dq_error *err)
{
    return dq_call_reserve(call, count, 1, sizeof(float), at)
               ? DQ_OK
               : dq_no_memory(err, SIZE_MAX, "operands as floats");
}

dq_status dq_half_floats_prepare(dq_op_call *call, unsigned without, dq_half_floats *h, dq_error *err)
{
    memset(h, 0, sizeof *h);
    h->without = without;
    if (call->in[0]->dtype == DQ_FLOAT)
        return DQ_OK;
    for (uint32_t i = 0; i < DQ_HALF_INPUTS && i < call->in_count; i++) {
        const dq_tensor *t = call->in[i];
        if (!t || t->dtype != call->in[0]->dtype || without >> i & 1)
            continue;
        if (!dq_call_constant(call, i) || t->count == 0) {
            DQ_TRY(reserve(call, dq_tensor_stored(t), &h->at[i], err));
            continue;
        }
        DQ_TRY(dq_half_floats_pack(call, i, &h->fixed[i], err));
    }
    return call->out[0] ? reserve(call, call->out[0]->count, &h->out_at, err) : DQ_OK;
}

static float *workspace(const dq_op_call *call, size_t at)
{
    return (float *)(void *)((char *)call->scratch + at);
}

const float *dq_half_floats_in(const dq_op_call *call, const dq_half_floats *h, uint32_t i)
{
    const dq_tensor *t = h->without >> i & 1 ? NULL : dq_call_in(call, i);
    if (!t || t->dtype == DQ_FLOAT || h->fixed[i])
        return !t ? NULL : h->fixed[i] ? h->fixed[i] : dq_data(t, float);
    float *floats = workspace(call, h->at[i]);
    dq_half_floats_widen(call, t, floats);
    return floats;
}

float *dq_half_floats_out(const dq_op_call *call, const dq_half_floats *h)
{
    dq_tensor *t = call->out[0];
    return t->dtype == DQ_FLOAT ? dq_data(t, float) : workspace(call, h->out_at);
}

void dq_half_floats_done(const dq_op_call *call, const dq_half_floats *h)
{
    dq_tensor *t = call->out[0];
    if (t->dtype != DQ_FLOAT)
        dq_half_floats_narrow(call, workspace(call, h->out_at), t);
}
