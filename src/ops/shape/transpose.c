/* SPDX-License-Identifier: Apache-2.0 */
/* Transpose: output axis i is input axis perm[i]; without perm, the axes are reversed. */
#include "ops/copy_nd.h"
#include "ops/lists.h"

static dq_status read_perm(const dq_op_call *call, dq_list *perm, dq_error *err)
{
    size_t rank = call->in[0]->rank;
    DQ_TRY(dq_list_from_attr(call, "perm", perm, err));
    if (!perm->present) {
        perm->count = rank;
        for (size_t d = 0; d < rank; d++)
            perm->at[d] = (int64_t)(rank - 1 - d);
    }
    if (perm->count != rank)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'perm' has %zu axes, expected the input's %zu", perm->count, rank);
    return dq_list_axes(call, perm, rank, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_list perm;
    DQ_TRY(read_perm(call, &perm, err));
    int64_t dims[DQ_MAX_RANK];
    for (size_t d = 0; d < perm.count; d++)
        dims[d] = call->in[0]->dims[perm.at[d]];
    return dq_call_output(call, 0, call->in[0]->dtype, perm.count, dims, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    dq_list perm;
    size_t from[DQ_MAX_RANK], to[DQ_MAX_RANK];
    DQ_TRY(read_perm(call, &perm, err));
    DQ_TRY(dq_call_state(call, sizeof(dq_copy_nd), err));
    dq_strides(call->in[0]->rank, call->in[0]->dims, from);
    dq_strides(call->out[0]->rank, call->out[0]->dims, to);
    for (size_t d = 0; d < perm.count; d++)
        dq_copy_nd_add(call->state, (size_t)call->out[0]->dims[d], (int64_t)from[perm.at[d]], to[d]);
    dq_copy_nd_coalesce(call->state);
    return DQ_OK;
}

const dq_op_impl dq_op_transpose = {infer, prepare, dq_copy_all, DQ_OP_BATCH_SEPARABLE_FIRST};
