/* SPDX-License-Identifier: Apache-2.0 */
/* TensorScatter: copies a cache and writes an update into each batch element, from write_indices[batch] on
 * along one axis. An update past the end is an error, or wraps around to the beginning (mode circular). */
#include "ops/element.h"

#include <inttypes.h>

enum { CACHE, UPDATE, WHERE };

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *cache = call->in[CACHE], *update = call->in[UPDATE], *where = dq_call_in(call, WHERE);
    const char *mode = dq_node_string(call->node, "mode", "linear");
    int64_t value = dq_node_int(call->node, "axis", -2);
    size_t axis;
    if (!dq_axis(value, cache->rank, &axis) || axis == 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'axis' is %" PRId64
                            ", expected an axis of a rank of %u after the first",
                            value, cache->rank);
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "circular") != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'mode' is '%s', expected linear or circular",
                            mode);
    bool fits = cache->rank == update->rank;
    for (size_t d = 0; fits && d < cache->rank; d++)
        fits = d == axis ? update->dims[d] <= cache->dims[d] : update->dims[d] == cache->dims[d];
    if (!fits) {
        char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
        return dq_call_fail_input(call, err, UPDATE,
                                  "has shape %s, expected %s with at most that along axis %zu",
                                  dq_shape_text(update->rank, update->dims, mine),
                                  dq_shape_text(cache->rank, cache->dims, theirs), axis);
    }
    if (where && (where->rank != 1 || where->dims[0] != cache->dims[0]))
        return dq_call_fail_input(call, err, WHERE, "has %zu elements, expected %" PRId64 " (batch elements)",
                                  where->count, cache->dims[0]);
    return dq_call_output_like(call, 0, cache->dtype, cache, err);
}

static dq_status first_position(const dq_op_call *call, size_t batch, size_t n, size_t total, bool circular,
                                size_t *at, dq_error *err)
{
    const dq_tensor *where = dq_call_in(call, WHERE);
    int64_t value = where ? dq_tensor_get_int(where, batch) : 0;
    *at = (size_t)value;
    if (value >= 0 && (circular || (uint64_t)value <= total - n))
        return DQ_OK;
    return dq_call_fail(call, err, DQ_BAD_INPUT,
                        "input 2 holds %" PRId64 ": %zu steps from there on do not fit in a cache of %zu",
                        value, n, total);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *cache = call->in[CACHE], *update = call->in[UPDATE];
    bool circular = strcmp(dq_node_string(call->node, "mode", "linear"), "circular") == 0;
    size_t axis = 0;
    dq_axis(dq_node_int(call->node, "axis", -2), cache->rank, &axis);
    size_t total = (size_t)cache->dims[axis], n = (size_t)update->dims[axis];
    size_t outer = dq_dims_product(cache->dims, 0, axis), batches = (size_t)cache->dims[0];
    size_t inner = dq_dims_product(cache->dims, axis + 1, cache->rank);
    if (cache->size && cache->data != call->out[0]->data)
        memcpy(call->out[0]->data, cache->data, cache->size);
    if (update->count == 0)
        return DQ_OK;
    for (size_t o = 0; o < outer; o++) {
        size_t at;
        DQ_TRY(first_position(call, o / (outer / batches), n, total, circular, &at, err));
        for (size_t t = 0; t < n; t++)
            dq_copy_elements(update, (o * n + t) * inner, call->out[0],
                             (o * total + (at % total + t) % total) * inner, inner);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_tensor_scatter = {infer, NULL, run, DQ_OP_IN_PLACE};
