/* SPDX-License-Identifier: Apache-2.0 */
/* BitCast: reinterprets the bits as another type of the same width. */
#include "ops/op.h"

#include <inttypes.h>
#include <string.h>

static dq_status infer(dq_op_call *call, dq_error *err)
{
    int64_t to = dq_node_int(call->node, "to", 0);
    if (!dq_dtype_valid(to) || to == DQ_STRING)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'to' is %" PRId64 ", expected the number of a type other than string",
                            to);
    dq_dtype from = call->in[0]->dtype;
    unsigned expected = dq_dtype_bits(from), got = dq_dtype_bits((dq_dtype)to);
    if (got != expected)
        return dq_call_fail(
            call, err, DQ_BAD_MODEL,
            "attribute 'to' is %s of %u bits, expected a type of %u bits as input 0 of %s has",
            dq_dtype_name((dq_dtype)to), got, expected, dq_dtype_name(from));
    return dq_call_output_like(call, 0, (dq_dtype)to, call->in[0], err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    if (call->out[0] && call->in[0]->size)
        memcpy(call->out[0]->data, call->in[0]->data, call->in[0]->size);
    return DQ_OK;
}

const dq_op_impl dq_op_bit_cast = {infer, NULL, run, DQ_OP_VIEW};
