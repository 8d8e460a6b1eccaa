/* SPDX-License-Identifier: Apache-2.0 */
/* ReverseSequence: reverses the first `sequence_lens` time steps of each batch element. */
#include "ops/element.h"

#include <inttypes.h>

enum { X, LENGTHS };

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[X], *lengths = call->in[LENGTHS];
    int64_t batch = dq_node_int(call->node, "batch_axis", 1), time = dq_node_int(call->node, "time_axis", 0);
    if (in->rank < 2)
        return dq_call_fail_input(call, err, X, "has rank %u, expected 2 or more", in->rank);
    if (batch < 0 || batch > 1 || time != 1 - batch)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attributes 'batch_axis' and 'time_axis' are %" PRId64 " and %" PRId64
                            ", expected 0 and 1 or 1 and 0",
                            batch, time);
    if (lengths->rank != 1 || lengths->dims[0] != in->dims[batch])
        return dq_call_fail_input(call, err, LENGTHS,
                                  "has %zu elements, expected %" PRId64 " (batch elements)", lengths->count,
                                  in->dims[batch]);
    return dq_call_output_like(call, 0, in->dtype, in, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[X], *lengths = call->in[LENGTHS];
    bool time_first = dq_node_int(call->node, "time_axis", 0) == 0;
    size_t batches = (size_t)in->dims[time_first], steps = (size_t)in->dims[!time_first];
    size_t inner = dq_dims_product(in->dims, 2, in->rank);
    for (size_t b = 0; b < batches; b++) {
        int64_t length = dq_tensor_get_int(lengths, b);
        if (length < 0 || length > (int64_t)steps)
            return dq_call_fail(call, err, DQ_BAD_INPUT,
                                "input 1 holds length %" PRId64 ", expected 0 to %zu", length, steps);
        for (size_t t = 0; t < steps && inner; t++) {
            size_t from = t < (size_t)length ? (size_t)length - 1 - t : t;
            size_t at = time_first ? from * batches + b : b * steps + from;
            size_t to = time_first ? t * batches + b : b * steps + t;
            dq_copy_elements(in, at * inner, call->out[0], to * inner, inner);
        }
    }
    return DQ_OK;
}

const dq_op_impl dq_op_reverse_sequence = {infer, NULL, run, 0};
