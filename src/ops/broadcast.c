/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/broadcast.h"

dq_status dq_loop_infer(dq_op_call *call, const uint32_t inputs[], size_t count, dq_dtype dtype,
                        dq_error *err)
{
    int64_t dims[DQ_MAX_RANK] = {0};
    size_t rank = 0;
    for (size_t k = 0; k < count; k++) {
        const dq_tensor *t = call->in[inputs[k]];
        if (!dq_broadcast(rank, dims, t->rank, t->dims, &rank, dims)) {
            char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
            return dq_call_fail_input(call, err, inputs[k], "has shape %s, which does not broadcast with %s",
                                      dq_shape_text(t->rank, t->dims, mine),
                                      dq_shape_text(rank, dims, theirs));
        }
    }
    return dq_call_output(call, 0, dtype, rank, dims, err);
}

/* Drops dimensions of 1 and merges adjacent dimensions that every operand walks with one stride. */
void dq_loop_plan(const dq_op_call *call, const uint32_t inputs[], size_t count, dq_loop *loop)
{
    const dq_tensor *out = call->out[0];
    *loop = (dq_loop){.operands = count};
    size_t strides[DQ_LOOP_OPERANDS][DQ_MAX_RANK];
    for (size_t k = 0; k < count; k++)
        dq_broadcast_strides(call->in[inputs[k]], out->rank, out->dims, strides[k]);
    for (size_t d = 0; d < out->rank; d++) {
        size_t n = (size_t)out->dims[d];
        if (n == 1)
            continue;
        bool join = loop->rank > 0;
        for (size_t k = 0; join && k < count; k++)
            join = loop->strides[k][loop->rank - 1] == strides[k][d] * n;
        if (!join)
            loop->dims[loop->rank++] = 1;
        loop->dims[loop->rank - 1] *= n;
        for (size_t k = 0; k < count; k++)
            loop->strides[k][loop->rank - 1] = strides[k][d];
    }
    if (loop->rank == 0)
        loop->dims[loop->rank++] = 1; /* one result, strides 0 */
}

void dq_loop_range(const dq_loop *loop, size_t begin, size_t end, dq_loop_fn *fn, void *arg)
{
    size_t last = loop->rank - 1;
    for (dq_loop_segment run = {.at = begin}; run.at < end; run.at += run.n) {
        size_t rest = run.at / loop->dims[last], inner = run.at % loop->dims[last];
        for (size_t k = 0; k < loop->operands; k++) {
            run.step[k] = loop->strides[k][last];
            run.offset[k] = inner * run.step[k];
        }
        for (size_t d = last; d-- > 0; rest /= loop->dims[d])
            for (size_t k = 0; k < loop->operands; k++)
                run.offset[k] += rest % loop->dims[d] * loop->strides[k][d];
        run.n = loop->dims[last] - inner;
        if (run.n > end - run.at)
            run.n = end - run.at;
        fn(arg, &run);
    }
}
