/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/quantize/q8.h"

/* Elements of a task. */
enum { GRAIN = 32768 };

dq_status dq_q8_check(const dq_op_call *call, uint32_t scale, uint32_t zero, dq_error *err)
{
    const uint32_t inputs[] = {scale, zero};
    for (size_t k = 0; k < 2; k++) {
        const dq_tensor *t = dq_call_in(call, inputs[k]);
        if (t && t->count != 1)
            return dq_call_fail_input(call, err, inputs[k], "has %zu elements, expected 1", t->count);
    }
    return DQ_OK;
}

dq_status dq_q8_check_exact(const dq_op_call *call, uint32_t scale, uint32_t zero, dq_error *err)
{
    DQ_TRY(dq_q8_check(call, scale, zero, err));
    const dq_tensor *s = call->in[scale];
    if (!dq_q8_constant(call, scale, zero) || !s->data || !isnormal(dq_data(s, float)[0]) ||
        dq_data(s, float)[0] < 0)
        return dq_call_fail_input(call, err, scale, "is no constant that is positive and normal");
    return DQ_OK;
}

bool dq_q8_constant(const dq_op_call *call, uint32_t scale, uint32_t zero)
{
    return dq_call_constant(call, scale) && (!dq_call_in(call, zero) || dq_call_constant(call, zero));
}

dq_q8 dq_q8_read(const dq_op_call *call, uint32_t scale, uint32_t zero, dq_dtype dtype)
{
    const dq_dtype_row *row = dq_dtype_get(dtype);
    const dq_tensor *z = dq_call_in(call, zero);
    return (dq_q8){.scale = dq_data(call->in[scale], float)[0],
                   .zero = z ? (int)dq_tensor_get_int(z, 0) : 0,
                   .min = (int)row->min,
                   .max = (int)row->max};
}

bool dq_q8_convert_table(const dq_q8 *from, const dq_q8 *to, uint8_t table[256])
{
    bool same = from->scale == to->scale && from->zero == to->zero && from->min == to->min;
    for (int i = 0; i < 256; i++)
        table[i] = same ? (uint8_t)i : dq_q8_quantize(to, dq_q8_real(from, (uint8_t)i));
    return same;
}

typedef struct map_job {
    const dq_kernels *kernels;
    const uint8_t *table, *x;
    uint8_t *y;
} map_job;

static void map_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const map_job *job = arg;
    job->kernels->lookup_x8(job->x + begin, end - begin, job->table, job->y + begin);
}

void dq_q8_map(const dq_op_call *call, const uint8_t table[256], const uint8_t *x, size_t n, uint8_t *y)
{
    map_job job = {call->kernels, table, x, y};
    dq_parallel(call->threads, n, GRAIN, map_range, &job);
}
