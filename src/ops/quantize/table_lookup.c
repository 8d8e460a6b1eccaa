/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun TableLookup: y = table[x], for 8-bit values. */
#include "ops/op.h"

#include <string.h>

enum { X, TABLE, CODES = 256, GRAIN = 1 << 16 };

typedef struct lookup {
    const dq_op_call *call;
    uint8_t table[CODES]; /* indexed by the byte: negative int8 values are the upper half */
} lookup;

static dq_status infer(dq_op_call *call, dq_error *err)
{
    if (call->in[TABLE]->count != CODES)
        return dq_call_fail_input(call, err, TABLE, "has %zu elements, expected %d", call->in[TABLE]->count,
                                  CODES);
    return dq_call_output_like(call, 0, call->in[TABLE]->dtype, call->in[X], err);
}

static void look_up(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const lookup *job = arg;
    const dq_op_call *call = job->call;
    call->kernels->lookup_x8(dq_data(call->in[X], uint8_t) + begin, end - begin, job->table,
                             dq_data(call->out[0], uint8_t) + begin);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const uint8_t *table = call->in[TABLE]->data;
    size_t first = call->in[X]->dtype == DQ_INT8 ? CODES / 2 : 0;
    lookup job = {.call = call};
    memcpy(job.table, table + first, CODES - first);
    memcpy(job.table + CODES - first, table, first);
    if (call->out[0])
        dq_parallel(call->threads, call->in[X]->count, GRAIN, look_up, &job);
    return DQ_OK;
}

const dq_op_impl dq_op_table_lookup = {infer, NULL, run, DQ_OP_IN_PLACE | DQ_OP_BATCH_SEPARABLE_FIRST};
