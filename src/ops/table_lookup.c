/* dqrun TableLookup: y = table[x]. */
#include "ops/op.h"

enum { X, TABLE, CODES = 256, GRAIN = 1 << 16 };

static dq_status infer(dq_op_call *call, dq_error *err)
{
    if (call->in[TABLE]->count != CODES)
        return dq_call_fail_input(call, err, TABLE, "has %zu elements, wanted %d", call->in[TABLE]->count,
                                  CODES);
    return dq_call_output_like(call, 0, call->in[TABLE]->dtype, call->in[X], err);
}

static void look_up(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *call = arg;
    const uint8_t *x = call->in[X]->data, *table = call->in[TABLE]->data;
    uint8_t *y = call->out[0]->data, flip = call->in[X]->dtype == DQ_INT8 ? 0x80 : 0;
    for (size_t i = begin; i < end; i++)
        y[i] = table[x[i] ^ flip];
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    if (call->out[0])
        dq_parallel(call->threads, call->in[X]->count, GRAIN, look_up, (void *)(uintptr_t)call);
    return DQ_OK;
}

const dq_op_impl dq_op_table_lookup = {infer, NULL, run, 0};
