/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/quantize/dynamic_quantize.h"

#include "base/checked.h"
#include "ops/rows.h"

#include <math.h>

/* Elements of a task. */
enum { GRAIN = 16384 };

typedef struct range {
    float low, high;
} range;

typedef struct job {
    const dq_op_call *call;
    const float *x;
    range *pieces; /* range of each GRAIN elements */
    const dq_dynamic *by;
    size_t n;
    void *y;
} job;

static size_t piece_count(size_t n)
{
    return n / GRAIN + (n % GRAIN != 0);
}

size_t dq_dynamic_scratch(size_t n)
{
    return piece_count(n) * sizeof(range);
}

static void find_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    range *piece = &j->pieces[begin / GRAIN];
    piece->low = piece->high = 0.0f;
    j->call->kernels->minmax_f32(j->x + begin, end - begin, &piece->low, &piece->high);
}

dq_dynamic dq_dynamic_find(const dq_op_call *call, const float *x, size_t n, dq_dtype dtype, void *scratch)
{
    job j = {.call = call, .x = x, .pieces = scratch};
    dq_parallel(call->threads, n, GRAIN, find_range, &j);
    float low = 0.0f, high = 0.0f;
    for (size_t i = 0; i < piece_count(n); i++) {
        low = j.pieces[i].low < low ? j.pieces[i].low : low;
        high = j.pieces[i].high > high ? j.pieces[i].high : high;
    }
    float qmin = dtype == DQ_INT8 ? -127.0f : 0.0f, qmax = dtype == DQ_INT8 ? 127.0f : 255.0f;
    float width = low == high ? 1.0f : high - low;
    dq_dynamic found = {.dtype = dtype, .scale = width / (qmax - qmin)};
    float zero = qmin - low / found.scale;
    zero = zero > qmin ? zero : qmin; /* an infinite range gives NaN: qmin, too */
    zero = zero < qmax ? zero : qmax;
    found.zero = (int32_t)rintf(zero);
    return found;
}

/* Quantizes from the end: the range search read that last, so it may still be in a cache. */
static void quantize_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const dq_kernels *kernels = j->call->kernels;
    const size_t count = end - begin, first = j->n - end;
    if (j->by->dtype == DQ_UINT8) {
        uint8_t zero = (uint8_t)j->by->zero;
        kernels->quantize_f32_u8(j->x + first, count, &j->by->scale, &zero, 0, (uint8_t *)j->y + first);
        return;
    }
    int8_t zero = (int8_t)j->by->zero, *y = (int8_t *)j->y + first;
    kernels->quantize_f32_s8(j->x + first, count, &j->by->scale, &zero, 0, y);
    for (size_t i = 0; i < count; i++)
        y[i] = y[i] < -127 ? -127 : y[i];
}

void dq_dynamic_quantize(const dq_op_call *call, const float *x, size_t n, const dq_dynamic *by, void *y)
{
    job j = {.call = call, .x = x, .by = by, .n = n, .y = y};
    dq_parallel(call->threads, n, dq_row_grain(n), quantize_range, &j);
}

/* ---- An operand that its operator quantizes ----------------------------------------------------------- */

void dq_dynamic_bind(const dq_op_call *call, uint32_t count, uint32_t x, uint32_t scale, uint32_t zero,
                     dq_dynamic_call *v)
{
    v->call = *call;
    for (uint32_t i = 0; i < count; i++) {
        v->in[i] = dq_call_in(call, i);
        v->formals[i] = i < call->in_count && call->in_formals ? call->in_formals[i] : NULL;
    }
    v->call.in = v->in;
    v->call.in_count = count;
    v->call.in_formals = v->formals;
    if (call->in[x]->dtype != DQ_FLOAT)
        return;
    v->x = *call->in[x];
    v->x.dtype = DQ_UINT8;
    v->x.size = v->x.count;
    v->x.data = NULL;
    v->scale = (dq_tensor){.dtype = DQ_FLOAT, .count = 1, .size = sizeof(float), .data = &v->scale_value};
    v->zero = (dq_tensor){.dtype = DQ_UINT8, .count = 1, .size = 1, .data = &v->zero_value};
    v->scale_value = 1;
    v->zero_value = 0;
    v->in[x] = &v->x;
    v->in[scale] = &v->scale;
    v->in[zero] = &v->zero;
}

dq_status dq_dynamic_reserve(dq_op_call *call, uint32_t x, const dq_dynamic_call *v,
                             dq_dynamic_offsets *offsets, dq_error *err)
{
    size_t count = call->in[x]->count;
    call->worker_scratch_size = v->call.worker_scratch_size;
    call->scratch_size = v->call.scratch_size;
    call->packed_inputs = v->call.packed_inputs;
    dq_call_take_algorithm(call, &v->call);
    if (call->in[x]->dtype == DQ_FLOAT &&
        (!dq_call_reserve(call, count, 1, 1, &offsets->qvalues) ||
         !dq_call_reserve(call, dq_dynamic_scratch(count), 1, 1, &offsets->range)))
        return dq_no_memory(err, count, "a quantized operand");
    return DQ_OK;
}

void dq_dynamic_quantize_operand(const dq_op_call *call, uint32_t x, const dq_dynamic_offsets *offsets,
                                 dq_dynamic_call *v)
{
    const dq_tensor *from = call->in[x];
    char *scratch = call->scratch;
    if (from->dtype != DQ_FLOAT)
        return;
    dq_dynamic found = dq_dynamic_find(call, from->data, from->count, DQ_UINT8, scratch + offsets->range);
    v->x.data = scratch + offsets->qvalues;
    v->scale_value = found.scale;
    v->zero_value = (uint8_t)found.zero;
    dq_dynamic_quantize(call, from->data, from->count, &found, v->x.data);
}
