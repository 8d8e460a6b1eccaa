/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft GatedAdd: X + Y * gate, with one gate per row. The product is rounded to the type before it
 * is added, as by Mul and Add. */
#include "ops/op.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <string.h>

enum { X, Y, GATE, WEIGHT };
enum { ELEMENTS_PER_TASK = 4096 /* elements of a task, about */ };

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[X], *gate = call->in[GATE];
    if (dq_call_in(call, WEIGHT))
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "has a gate_weight, which is not known here");
    if (!dq_tensor_same_shape(x, call->in[Y]))
        return dq_call_fail_input(call, err, Y, "has another shape than input 0");
    char text[DQ_SHAPE_TEXT];
    if (x->rank < 1 || gate->rank != x->rank || gate->dims[x->rank - 1] != 1 ||
        memcmp(gate->dims, x->dims, (x->rank - 1) * sizeof *x->dims) != 0)
        return dq_call_fail_input(call, err, GATE, "has shape %s, expected a number for each row of input 0",
                                  dq_shape_text(gate->rank, gate->dims, text));
    return dq_call_output_like(call, 0, x->dtype, x, err);
}

static void one_row(const dq_op_call *call, size_t row, size_t first, size_t n)
{
    const dq_tensor *x = call->in[X], *y = call->in[Y];
    dq_dtype type = x->dtype;
    float gate, sum[DQ_ROW], product[DQ_ROW];
    uint16_t rounded[DQ_ROW];
    dq_load_floats(call->kernels, type, call->in[GATE]->data, row, 1, &gate);
    dq_load_floats(call->kernels, type, x->data, first, n, sum);
    dq_load_floats(call->kernels, type, y->data, first, n, product);
    for (size_t i = 0; i < n; i++)
        product[i] *= gate;
    if (type != DQ_FLOAT) {
        dq_store_from_floats(call->kernels, type, rounded, 0, n, product, false);
        dq_load_floats(call->kernels, type, rounded, 0, n, product);
    }
    for (size_t i = 0; i < n; i++)
        sum[i] += product[i];
    dq_store_from_floats(call->kernels, type, call->out[0]->data, first, n, sum, false);
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const size_t n = (size_t)call->in[X]->dims[call->in[X]->rank - 1];
    for (size_t row = begin; row < end; row++)
        for (size_t at = 0; at < n; at += DQ_ROW)
            one_row(call, row, row * n + at, n - at < DQ_ROW ? n - at : DQ_ROW);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    if (call->in[X]->count)
        dq_parallel(call->threads, call->in[GATE]->count,
                    ELEMENTS_PER_TASK / (call->in[X]->count / call->in[GATE]->count) + 1, piece, &call);
    return DQ_OK;
}

const dq_op_impl dq_op_gated_add = {infer, NULL, run, 0};
