/* SPDX-License-Identifier: Apache-2.0 */
/* Trilu: the upper or lower triangle of matrices, zeros elsewhere. */
#include "ops/copy_nd.h"
#include "ops/lists.h"

#include <string.h>

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_list k;
    DQ_TRY(dq_list_from_input(call, 1, &k, err));
    if (k.present && k.count != 1)
        return dq_call_fail_input(call, err, 1, "has %zu elements, expected one diagonal", k.count);
    if (call->in[0]->rank < 2)
        return dq_call_fail_input(call, err, 0, "has rank %u, expected 2 or more", call->in[0]->rank);
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list k;
    DQ_TRY(dq_list_from_input(call, 1, &k, err));
    bool upper = dq_node_int(call->node, "upper", 1) != 0;
    int64_t rows = in->dims[in->rank - 2], cols = in->dims[in->rank - 1], shift = k.present ? k.at[0] : 0;
    /* beyond the corners all diagonals give the same */
    shift = shift > cols ? cols : shift < -rows ? -rows : shift;
    size_t width = dq_element_width(in->dtype), lines = cols ? in->count / (size_t)cols : 0;
    char *to = call->out[0]->data;
    memset(to, 0, in->size);
    for (size_t line = 0; line < lines; line++) {
        int64_t first = (int64_t)(line % (size_t)rows) + shift; /* column on the diagonal */
        int64_t from = upper ? first : 0, end = upper ? cols : first + 1;
        from = from < 0 ? 0 : from;
        end = end > cols ? cols : end;
        size_t at = (line * (size_t)cols + (size_t)from) * width;
        if (end > from)
            memcpy(to + at, (const char *)in->data + at, (size_t)(end - from) * width);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_trilu = {infer, NULL, run, 0};
