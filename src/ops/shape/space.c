/* SPDX-License-Identifier: Apache-2.0 */
/* DepthToSpace and SpaceToDepth: rearrange blocks of channels to squares of pixels, and back, by one strided
 * copy. */
#include "ops/copy_nd.h"

#include <inttypes.h>
#include <string.h>

/* Checks input and block size, from which the dimensions of both tensors follow. */
static dq_status read_block(const dq_op_call *call, bool to_space, size_t *block, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    int64_t b = dq_node_int(call->node, "blocksize", 0);
    if (in->rank != 4)
        return dq_call_fail_input(call, err, 0, "has rank %u, expected 4", in->rank);
    if (b < 1 || b > INT32_MAX)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'blocksize' is %" PRId64 ", expected 1 or more", b);
    bool fits = to_space ? in->dims[1] % (b * b) == 0 : in->dims[2] % b == 0 && in->dims[3] % b == 0;
    char text[DQ_SHAPE_TEXT];
    if (!fits)
        return dq_call_fail_input(call, err, 0, "has shape %s, which is not whole blocks of %" PRId64,
                                  dq_shape_text(in->rank, in->dims, text), b);
    *block = (size_t)b;
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, bool to_space, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    size_t block = 1;
    DQ_TRY(read_block(call, to_space, &block, err));
    int64_t b = (int64_t)block, dims[4] = {in->dims[0], in->dims[1], in->dims[2], in->dims[3]};
    dims[1] = to_space ? dims[1] / (b * b) : dims[1] * b * b;
    dims[2] = to_space ? dims[2] * b : dims[2] / b;
    dims[3] = to_space ? dims[3] * b : dims[3] / b;
    return dq_call_output(call, 0, in->dtype, 4, dims, err);
}

/* The copy's axes are image, channel, row of the block, column of the block, row, column. `deep` is the
 * tensor with more channels, `wide` the one with more pixels; d and w are their strides. */
static dq_status prepare(dq_op_call *call, bool to_space, dq_error *err)
{
    const dq_tensor *deep = to_space ? call->in[0] : call->out[0],
                    *wide = to_space ? call->out[0] : call->in[0];
    size_t b = 1, d[DQ_MAX_RANK], w[DQ_MAX_RANK];
    DQ_TRY(read_block(call, to_space, &b, err));
    DQ_TRY(dq_call_state(call, sizeof(dq_copy_nd), err));
    dq_strides(4, deep->dims, d);
    dq_strides(4, wide->dims, w);
    size_t channels = (size_t)wide->dims[1];
    /* In the deep tensor, channels vary fastest with DCR, the block with CRD. SpaceToDepth has DCR only. */
    bool crd = strcmp(dq_node_string(call->node, "mode", "DCR"), "CRD") == 0;
    const size_t axes[6][3] = {
        {(size_t)wide->dims[0], d[0], w[0]},        {channels, d[1] * (crd ? b * b : 1), w[1]},
        {b, d[1] * b * (crd ? 1 : channels), w[2]}, {b, d[1] * (crd ? 1 : channels), w[3]},
        {(size_t)deep->dims[2], d[2], w[2] * b},    {(size_t)deep->dims[3], d[3], w[3] * b},
    };
    for (size_t i = 0; i < 6; i++)
        dq_copy_nd_add(call->state, axes[i][0], (int64_t)axes[i][to_space ? 1 : 2],
                       axes[i][to_space ? 2 : 1]);
    dq_copy_nd_coalesce(call->state);
    return DQ_OK;
}

#define SPACE(symbol, to_space)                                                                              \
    static dq_status symbol##_infer(dq_op_call *call, dq_error *err)                                         \
    {                                                                                                        \
        return infer(call, to_space, err);                                                                   \
    }                                                                                                        \
    static dq_status symbol##_prepare(dq_op_call *call, dq_error *err)                                       \
    {                                                                                                        \
        return prepare(call, to_space, err);                                                                 \
    }                                                                                                        \
    const dq_op_impl symbol = {symbol##_infer, symbol##_prepare, dq_copy_all, DQ_OP_BATCH_SEPARABLE_FIRST};

SPACE(dq_op_depth_to_space, true)
SPACE(dq_op_space_to_depth, false)
